"""Databases and proxies in networks of their own, of which some are cut off for a while, and one that moves.

The networks are made in a user namespace, without privileges; what runs in it is apart.py.
"""
import os
import subprocess
import sys
import tempfile
import unittest

import world
from harness import TREE, Proxy, Standby, topology, wait_for
from wigclient import Client, ClientTest

APART = ["unshare", "--user", "--map-current-user", "--net", "--keep-caps"]


class Network(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        probe = ("ip link add wgprobe type veth peer name wgpeer && ip rule add pref 9 to 10.99.0.1 blackhole"
                 " && echo 1 > /proc/sys/net/ipv4/ip_forward && exec unshare --net true")
        try:
            done = subprocess.run([*APART, "sh", "-ec", probe], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False)
        except OSError as missing:
            raise unittest.SkipTest("no network namespaces: %s" % missing) from missing
        if done.returncode:
            raise unittest.SkipTest("no network namespaces here: %s" % " ".join(done.stdout.split()))

    def apart(self, test):
        argv = [*APART, sys.executable, os.path.join(TREE, "regress", "client", "apart.py"), world.AREA, test]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-6000:])

    def test_a_shard_cut_off_and_healed(self):
        self.apart("a_shard_is_cut_off")

    def test_a_proxy_cut_off_from_home(self):
        self.apart("a_proxy_is_cut_off_from_home")


class Moves(ClientTest):
    """The url has a name, and the proxy a hosts file of its own in which the name leads elsewhere later."""

    OWN_HOSTS = ["unshare", "--user", "--map-current-user", "--mount", "--keep-caps",
                 "sh", "-ec", 'mount --bind "$0" /etc/hosts && exec "$@"']

    def setUp(self):
        self.hosts = os.path.join(world.AREA, "moves.hosts")
        self.leads_to("127.0.0.1")
        try:
            done = subprocess.run([*self.OWN_HOSTS, self.hosts, "getent", "hosts", "wiggle-moves"], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        except OSError as missing:
            self.skipTest("no mount namespaces: %s" % missing)
        if done.returncode:
            self.skipTest("no mount namespaces here: %s" % " ".join(done.stdout.split()))

    def leads_to(self, address):
        with open(self.hosts, "w", encoding="ascii") as f:
            f.write("%s wiggle-moves\n" % address)

    def standby_of(self, primary):
        """At another address and the same port."""
        standby = Standby(primary.folder + "-standby", primary)
        with open(standby.data + "/postgresql.conf", "a", encoding="ascii") as f:
            f.write("listen_addresses = '127.0.0.2'\n")
        with open(standby.folder + "/port", "w", encoding="ascii") as f:
            f.write(str(primary.port))
        os.symlink(tempfile.mkdtemp(prefix="wiggle."), standby.folder + "/socket")
        self.addCleanup(standby.stop)
        return standby.start_again()

    def test_a_name_is_resolved_anew_and_a_read_only_server_is_refused(self):
        primary = world.make_shard("moves")
        self.addCleanup(primary.stop)
        document = topology(primary)
        document["shards"][0]["primary"]["url"] = "postgresql://wiggle-moves:%d/wiggle" % primary.port
        proxy = Proxy(world.AREA, document, name="moves", within=[*self.OWN_HOSTS, self.hosts])
        self.addCleanup(proxy.stop)
        self.client = Client(proxy.start().address)
        self.addCleanup(self.client.close)
        instance = self.client.start(self.define("a"))
        standby = self.standby_of(primary)
        end = primary.psql("select pg_current_wal_flush_lsn()")
        wait_for(lambda: standby.psql("select pg_last_wal_replay_lsn() >= '%s'" % end) == "t", 60, "replay")

        subprocess.run(["pg_ctl", "-D", primary.data, "-m", "immediate", "-w", "-s", "stop"], check=True)
        self.leads_to("127.0.0.2")
        wait_for(lambda: "session is read-only" in proxy.log(), 60, "the standby to be refused")
        self.assertFalse(proxy.ready())
        standby.promote()
        wait_for(proxy.ready, 60, "readiness at the new address")
        self.assertEqual(self.client.status(instance), "RUNNING")
        self.assertIn("its primary was promoted, timeline 2", proxy.log())
