"""The tutorial "Sharded server", one numbered step after the other, over databases of clusters of their own.

What it does with containers is done here with clusters and processes; the document is its own but for addresses and
the moment of its first generation.
Its "Removing a shard" is test_topology_reload.py, under load.
"""
import json
import subprocess

import world
from harness import Proxy, wait_for
from test_cli import shorthand, wiggle
from test_topology_reload import home_time
from wigclient import Client, ClientTest, fresh_name

DOCUMENT = """
{
  "defaults": { "user": "${WIGGLE_JDBC_USER}", "password": "${WIGGLE_JDBC_PASSWORD}", "pool": 16 },
  "shards": [
    { "id": 0, "state": "active", "roles": ["instances", "home"],
      "primary": { "url": "jdbc:postgresql://pg-s0:5432/wiggle" } },
    { "id": 1, "state": "active", "roles": ["instances"],
      "primary": { "url": "jdbc:postgresql://pg-s1:5432/wiggle" } }
  ],
  "generations": [
    { "id": 1, "activeFrom": "2026-01-01T00:00:00Z", "weights": { "0": 1, "1": 1 } }
  ]
}
"""
ADDED = {"id": 2, "state": "active", "roles": ["instances"], "primary": {"url": "jdbc:postgresql://pg-s2:5432/wiggle"}}


class Sharded(ClientTest):
    def setUp(self):
        # 1. databases
        self.shards = [world.make_shard("sharded-%d" % i, "wiggle.test_clock = on") for i in range(3)]
        for shard in self.shards:
            self.addCleanup(shard.stop)
            shard.psql("alter role wiggle password 'wiggle'", "postgres")
        self.nodes = [None, None]
        self.clients = [None, None]

    def written(self, document):
        """With the addresses that the databases have here."""
        for i, shard in enumerate(self.shards):
            document = document.replace("pg-s%d:5432" % i, "127.0.0.1:%d" % shard.port)
        return json.loads(document)

    def roll_out(self, document):
        """One node after the other is stopped and started with it."""
        for i in (0, 1):
            if self.nodes[i] is not None:
                self.assertEqual(self.nodes[i].stop(), 0)
            node = Proxy(world.AREA, self.written(document), name="sharded-node-%d" % i, WIGGLE_JDBC_USER="wiggle",
                         WIGGLE_JDBC_PASSWORD="wiggle").start()
            self.addCleanup(node.stop)
            self.nodes[i], self.clients[i] = node, Client(node.address)
            self.addCleanup(self.clients[i].close)
            self.client = self.clients[0]

    def register(self):
        for text in (shorthand(self.child, {"task": "c"}),
                     shorthand(self.name, {"task": "a"}, {"sub_workflow": {"name": "child", "workflow": self.child}})):
            done = wiggle("register", "-", stdin=text, server=self.nodes[1].address)
            self.assertEqual(done.returncode, 0, done.stderr)

    def instances(self, n):
        """Start so many, see them through, and count the lines that the tutorial prints by their shards."""
        started = [self.clients[k % 2].start(self.name) for k in range(n)]
        shown = {}
        while len(shown) < n:
            for queue in (self.name, self.child):
                for task in self.client.poll(queue, max=50, wait=100):
                    self.assertEqual(self.client.report(task).error_status, 0)
            for instance in started:
                status = self.client.status(instance)
                if status != "RUNNING":
                    shown[instance] = "%s %s" % (instance, status)
        by_shard = [0, 0, 0]
        for instance, line in shown.items():
            shard = int(instance.split(".")[1][1:])
            self.assertRegex(line, r"^wfi\.s%d\.[0-9a-z]{22} COMPLETED$" % shard)
            by_shard[shard] += 1
        return by_shard

    def lands(self, *expected):
        """Shares are exact; only a shard that stalls for a second is passed over meanwhile."""
        seen = []
        while (not seen or seen[-1] != list(expected)) and len(seen) < 5:
            seen.append(self.instances(sum(expected)))
        self.assertEqual(seen[-1], list(expected))

    def held(self, condition="true", shards=2):
        """The tutorial's count in each database."""
        return [int(subprocess.run(["psql", "-X", "-Atc", "select count(*) from wf_instance where %s" % condition, "-d",
                                    shard.conninfo()], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   text=True).stdout) for shard in self.shards[:shards]]

    def rows(self, until):
        """All that is known of the instances up to these numbers."""
        return [s.psql("select md5(string_agg(i::text, ' ' order by no)) from wf_instance i where no <= %s" % no)
                for s, no in zip(self.shards, until)]

    def test_step_by_step(self):
        self.name, self.child = fresh_name("tutorial"), fresh_name("tutorial-child")

        # 2. and 3. the topology and the server
        self.roll_out(DOCUMENT)
        for node in self.nodes:
            lines = ["shard 0: up to 16 primary and 0 replica connection(s) per node, over 0 replica(s)",
                     "shard 1: up to 16 primary and 0 replica connection(s) per node, over 0 replica(s)",
                     "on port %d (gRPC: plaintext, storage: 2 shards)" % node.port]
            log = node.log()
            places = [log.find(line) for line in lines]
            self.assertEqual(places, sorted(places), log)
            self.assertNotIn(-1, places, log)
        self.assertEqual([s.psql("select shard_id from wiggle.shard()") for s in self.shards[:2]], ["0", "1"])

        # 4. the workflow of another tutorial, unchanged
        self.register()
        self.assertEqual([s.psql("select count(*) from wf_definition") for s in self.shards[:2]], ["2", "2"])
        self.lands(4, 4, 0)
        for i in (0, 1):
            self.assertEqual(self.held("id not like 'wfi.s%d.%%'" % i)[i], 0, "instances of others, or children elsewhere")
        until = [s.psql("select max(no) from wf_instance") for s in self.shards[:2]]
        before = self.rows(until)

        # 5. a shard is added: first with no weight
        grown = json.loads(DOCUMENT)
        grown["shards"].append(ADDED)
        self.roll_out(json.dumps(grown))
        self.assertEqual(self.shards[2].psql("select shard_id from wiggle.shard()"), "2")
        self.register()
        self.assertEqual(self.shards[2].psql("select count(*) from wf_definition"), "2")
        self.lands(4, 4, 0)

        # then with a weight, from a time on
        home = self.shards[0]
        grown["generations"].append({"id": 2, "activeFrom": home_time(home, 3600), "weights": {"0": 1, "1": 1, "2": 2}})
        self.roll_out(json.dumps(grown))
        self.lands(4, 4, 0)
        self.assertEqual(self.held(shards=3)[2], 0)
        home.psql("select wiggle.test_set_clock(:'at')", at=home_time(home, 3601))
        for node, client in zip(self.nodes, self.clients):
            wait_for(lambda n=node, c=client: c.start(self.name) and "generation 2 is in force" in n.log(), 60,
                     "generation 2 on " + node.name)
        self.lands(4, 4, 8)
        self.assertEqual(self.rows(until), before, "what was there has not moved")
