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
from relay import Deaf
from wigclient import Client, ClientTest, fresh_name

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

    def test_a_primary_that_falls_silent(self):
        self.apart("a_primary_falls_silent")


class Silent(ClientTest):
    """Of a url's hosts some take connections and say nothing at all."""

    def setUp(self):
        self.shard = world.make_shard(fresh_name("silent"))
        self.addCleanup(self.shard.stop)
        self.deaf = [Deaf() for _ in range(2)]
        for listener in self.deaf:
            self.addCleanup(listener.close)

    def serves(self, servers, name):
        document = topology(self.shard)
        document["shards"][0]["primary"]["url"] = "postgresql://%s/wiggle" % ",".join("127.0.0.1:%d" % s.port for s in servers)
        proxy = Proxy(world.AREA, document, name=name, WIGGLE_CONNECT_TIMEOUT_MILLIS=500)
        self.addCleanup(proxy.stop)
        self.client = Client(proxy.start().address)
        self.addCleanup(self.client.close)
        workflow = self.define("a")
        instance = self.client.start(workflow)
        task = self.client.poll_one(workflow)
        self.assertEqual(self.client.report(task).applied.instance_status, "COMPLETED")
        self.assertEqual(self.client.status(instance), "COMPLETED")
        return proxy

    def test_the_server_is_found_behind_them_and_before(self):
        self.serves([*self.deaf, self.shard], "silent-first")
        self.serves([self.shard, *self.deaf], "silent-last")

    def test_sessions_that_are_lost_are_opened_past_them(self):
        proxy = self.serves([self.deaf[0], self.shard], "silent-again")
        for _ in range(3):
            self.shard.psql("select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'wiggle-proxy%'")
            wait_for(lambda: self.shard.psql("select count(*) > 2 from pg_stat_activity where application_name like"
                                             " 'wiggle-proxy%'") == "t", 60, "its sessions")
            wait_for(proxy.ready, 60, "readiness")


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

    def leads_to(self, *addresses):
        with open(self.hosts, "w", encoding="ascii") as f:
            f.writelines("%s wiggle-moves\n" % address for address in addresses)

    def behind_the_name(self, primary, name):
        document = topology(primary)
        document["shards"][0]["primary"]["url"] = "postgresql://wiggle-moves:%d/wiggle" % primary.port
        proxy = Proxy(world.AREA, document, name=name, within=[*self.OWN_HOSTS, self.hosts], WIGGLE_CONNECT_TIMEOUT_MILLIS=500)
        self.addCleanup(proxy.stop)
        self.client = Client(proxy.start().address)
        self.addCleanup(self.client.close)
        return proxy

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
        proxy = self.behind_the_name(primary, "moves")
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

    def test_a_name_of_several_addresses_some_of_which_are_silent(self):
        """The resolver puts 127.0.0.1 first, which is the source of what is sent to any of them."""
        primary = world.make_shard("moves-several", "listen_addresses = '127.0.0.3'")
        self.addCleanup(primary.stop)
        for address in ("127.0.0.1", "127.0.0.2"):
            self.addCleanup(Deaf(address, primary.port).close)
        for number, addresses in enumerate((("127.0.0.1", "127.0.0.3"), ("127.0.0.1", "127.0.0.2", "127.0.0.3"))):
            self.leads_to(*addresses)
            self.behind_the_name(primary, "moves-several-%d" % number)
            self.assertEqual(self.client.status(self.client.start(self.define("a"))), "RUNNING")
