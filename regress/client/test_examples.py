"""The examples that are for reading run as they are."""
import json
import os
import subprocess
import sys

import world
from harness import TREE, Proxy
from wigclient import ClientTest

EXAMPLES = os.path.join(TREE, "examples")


class Examples(ClientTest):
    def test_the_python_client(self):
        done = subprocess.run([sys.executable, os.path.join(EXAMPLES, "client.py"), world.proxy.address], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^wfi\.s[01]\.\w+ COMPLETED \{'said': 'hello, ada', 'name': 'ada'\}|"
                                      r"^wfi\.s[01]\.\w+ COMPLETED \{'name': 'ada', 'said': 'hello, ada'\}")

    def test_the_topology(self):
        with open(os.path.join(EXAMPLES, "topology.json"), encoding="utf-8") as f:
            text = f.read()
        shard = world.make_shard("example-topology")
        self.addCleanup(shard.stop)
        for name in ("wiggle0", "wiggle1"):
            self.assertIn("postgresql://127.0.0.1:5432/%s" % name, text)
            shard.psql("create database %s" % name, "postgres")
        document = json.loads(text.replace("127.0.0.1:5432", "127.0.0.1:%d" % shard.port))
        proxy = Proxy(world.AREA, document, name="example-topology", WIGGLE_JDBC_USER="wiggle",
                      WIGGLE_JDBC_PASSWORD=shard.password).start()
        self.addCleanup(proxy.stop)
        self.assertEqual([shard.psql("select shard_id from wiggle.shard()", name) for name in ("wiggle0", "wiggle1")],
                         ["0", "1"])
