#!/usr/bin/env python3
"""apart.py AREA NAME: one test in a user and network namespace that unshare has made (test_network.py).

This process is the clients' place and the router between two or three databases and two to four proxies, each with
an address in a network namespace of its own. A cut is a rule of the router that drops packets silently.
"""
import json
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
AREA = os.path.abspath(sys.argv[1])
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "scripts")]

import grpc    # noqa: E402
from google.protobuf import json_format, struct_pb2    # noqa: E402

from harness import Cluster, Proxy, Standby, Waiting, topology, wait_for    # noqa: E402
from test_failover import Load    # noqa: E402
from wigclient import Client, ClientTest, flow, fresh_name    # noqa: E402

UNAVAILABLE, INTERNAL = grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL
IN_FLIGHT = 250
CUT_SECONDS = 60


def run(*argv):
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)


class Place:
    """A network namespace with one address, joined to this one."""

    def __init__(self, number):
        self.host = "10.99.%d.2" % number
        # It lives until its input ends, with this process at the latest.
        self.holder = subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        mine = os.readlink("/proc/self/ns/net")
        wait_for(lambda: os.readlink("/proc/%d/ns/net" % self.holder.pid) != mine, 10, "a network namespace")
        self.within = ["nsenter", "-t", str(self.holder.pid), "-n"]
        near = "near%d" % number
        run("ip", "link", "add", near, "type", "veth", "peer", "name", "far", "netns", str(self.holder.pid))
        run("ip", "address", "add", "10.99.%d.1/24" % number, "dev", near)
        run("ip", "link", "set", near, "up")
        for argv in (["address", "add", self.host + "/24", "dev", "far"], ["link", "set", "far", "up"],
                     ["link", "set", "lo", "up"], ["route", "add", "default", "via", "10.99.%d.1" % number]):
            run(*self.within, "ip", *argv)

    def close(self):
        self.holder.stdin.close()
        self.holder.wait()


class Networks(ClientTest):
    def setUp(self):
        run("ip", "link", "set", "lo", "up")
        with open("/proc/sys/net/ipv4/ip_forward", "w", encoding="ascii") as f:
            f.write("1")
        self.places = [Place(i) for i in range(5)]
        for place in self.places:
            self.addCleanup(place.close)

    def begin(self, proxies):
        self.proxies = proxies
        self.clients = [self.client_of(proxy) for proxy in self.proxies]
        self.client = self.clients[0]
        self.name = self.define("a", ("sleep", 200), "b", stem=self.id().split(".")[-1])

    def client_of(self, proxy):
        client = Client(proxy.address)
        self.addCleanup(client.close)
        return client

    def make_shard(self, number, place):
        cluster = Cluster(os.path.join(AREA, "%s-shard%d" % (self.id().split(".")[-1], number)), "max_connections = 60",
                          "fsync = off", "listen_addresses = '*'", host=place.host, within=place.within)
        with open(cluster.data + "/pg_hba.conf", "a", encoding="utf-8") as f:
            f.write("host all,replication all 10.99.0.0/16 scram-sha-256\n")
        self.addCleanup(cluster.stop)
        cluster.start()
        cluster.psql("create database wiggle", "postgres")
        return cluster

    def make_proxy(self, number, place, document=None):
        proxy = Proxy(AREA, document or topology(*self.shards), name="%s-proxy%d" % (self.id().split(".")[-1], number),
                      host=place.host, within=place.within)
        self.addCleanup(proxy.stop)
        return proxy.start()

    def cut(self, here, there=None):
        """
        Nothing goes between two places, or one and all others, any more, and nobody is told; call what is returned
        to heal it.
        """
        pairs = [("from", here.host, "to", there.host), ("from", there.host, "to", here.host)] if there else \
            [("from", here.host), ("to", here.host)]
        for pair in pairs:
            run("ip", "rule", "add", "pref", "9", *pair, "blackhole")

        def heal():
            for pair in pairs:
                run("ip", "rule", "del", "pref", "9", *pair, "blackhole")
        return heal

    def whole_instances(self, client, shards, n):
        """Start so many instances on these shards by this proxy and see their steps through."""
        done = 0
        while done < n:
            instance = client.start(self.name + "-quick", {})
            self.assertIn(instance.split(".")[1], ["s%d" % s for s in shards])
            task = client.poll_one(self.name + "-quick")
            self.assertEqual(task.instance_id, instance)
            self.assertEqual(client.report(task).applied.instance_status, "COMPLETED")
            done += 1

    def nothing_is_lost(self, load, kept):
        load.started += kept
        load.end(self.shards)
        load.is_as_acknowledged(self, self.shards)

    def lost_lanes(self, proxy, shard):
        return "shard %d: lane 0 lost: the database has not answered for 30 s" % shard in proxy.log()


class Apart(Networks):
    def setUp(self):
        super().setUp()
        self.shards = [self.make_shard(i, place) for i, place in enumerate(self.places[:3])]
        self.begin([self.make_proxy(i, place) for i, place in enumerate(self.places[3:])])

    def start_on(self, client, shard):
        for _ in range(20):
            instance = client.start(self.name, {})
            if instance.startswith("wfi.s%d." % shard):
                return instance
        self.fail("placement never chose shard %d" % shard)

    def starts_elsewhere(self, client, shard):
        """So many in a row that placement would have come to it; one that is on its way there is left to itself."""
        try:
            return all(not client.start(self.name, {}, timeout=5).startswith("wfi.s%d." % shard) for _ in range(12))
        except grpc.RpcError:
            return False

    def refused_with(self, call, *args, **more):
        try:
            call(*args, **more)
            return None
        except grpc.RpcError as refusal:
            return refusal.code()

    def further_proxy(self, number):
        place = Place(3 + number)
        self.addCleanup(place.close)
        self.places.append(place)
        return self.make_proxy(number, place)

    def many_in_flight(self, clients):
        calls = [clients[i % len(clients)].future("StartInstance", workflow=self.name) for i in range(IN_FLIGHT)]
        return [call.result().instance_id for call in calls]

    def refused_now(self, client, instance, everywhere=False):
        """
        What needs the instance's shard is refused, as it has written nothing. None of it is sent into another session that
        nobody has told of the cut, where it would be silent for 20 s at least.
        """
        calls = [("GetInstance", {"instance_id": instance}), ("CancelInstance", {"instance_id": instance}),
                 ("SignalInstance", {"instance_id": instance, "signal": "s"}), ("ListInstances", {}),
                 ("RegisterWorkflow", {"definition": json_format.ParseDict(flow(fresh_name(), "a"), struct_pb2.Struct())})]
        if everywhere:
            calls += [("StartInstance", {"workflow": self.name}), ("ListSchedules", {}),
                      ("PollTasks", {"worker_id": "w", "queues": [self.name], "max": 1, "wait_millis": 100})]
        for rpc, fields in calls:
            self.assertEqual(self.refused_with(client.call, rpc, timeout=15, **fields), UNAVAILABLE, rpc)

    def notices_by_itself(self, proxy, client):
        """Nobody asks it for anything, and what is asked then is not sent into a session that has been dead for long."""
        def without_shards():
            parts = json.loads(proxy.http("/readyz")[1])["parts"]
            return not any(part["ready"] for part in parts if part["name"].startswith("shard"))
        wait_for(without_shards, 60, "a proxy at rest to notice")
        self.assertEqual(self.refused_with(client.start, self.name, timeout=15), UNAVAILABLE)

    def others_are_served(self, kept, asked):
        """What needs the cut-off shard waits first, then is refused; nobody else notices."""
        wait_for(lambda: all(self.starts_elsewhere(c, 2) for c in self.clients), 60, "starts to go elsewhere")
        for client in self.clients:
            self.whole_instances(client, (0, 1), 20)
        for call in asked:
            self.assertFalse(call.done(), "the cut-off shard's call is still waiting")
        wait_for(lambda: all(self.lost_lanes(p, 2) for p in self.proxies), 90, "both proxies to give their lanes up")
        for call in asked:
            self.assertEqual(call.exception().code(), UNAVAILABLE)
        for client in self.clients:
            self.refused_now(client, kept[0])
            self.whole_instances(client, (0, 1), 20)

    def rest_with_polls(self, load):
        """No calls but parked polls, which the shards that are there leave where they are."""
        load.rest()
        return [Waiting(proxy) for proxy in self.proxies], [
            client.future("PollTasks", worker_id="w%d" % i, queues=["nothing"], max=1, wait_millis=20000)
            for client in self.clients for i in range(50)]

    def listens_anew(self, shard, proxy, since):
        """The proxy has a session there that listens and was opened after this moment of the shard's clock."""
        return self.shards[shard].psql(
            "select count(*) > 0 from pg_stat_activity where application_name like 'wiggle-proxy wakeup%' and client_addr = :'a'"
            " and backend_start > :'since' and (query like 'listen%' or query = 'select 1')", a=proxy.host, since=since) == "t"

    def everybody_is_back(self, proxies, clients, cuts, since):
        wait_for(lambda: all(p.ready() for p in proxies), 60, "readiness")
        wait_for(lambda: all(any(c.start(self.name, {}).split(".")[1] == "s2" for _ in range(3)) for c in clients), 60,
                 "starts on the healed shard")
        for proxy, shard in cuts:
            wait_for(lambda s=shard, p=proxy: self.listens_anew(s, p, since), 60, "a new listening session")
        for proxy in proxies:
            self.assertIsNone(proxy.process.poll())
            self.assertEqual(proxy.log().count("Wiggle server '"), 1, "it was never restarted")

    def a_shard_is_cut_off(self):
        """A third proxy loses all of them, and so does a fourth one, which has nothing to do."""
        self.client.register(flow(self.name + "-quick", "q"))
        secluded, resting = [self.further_proxy(number) for number in (2, 3)]
        clients = self.clients + [self.client_of(secluded), self.client_of(resting)]
        own = self.define("a", ("sleep", 200), "b")
        kept = [self.start_on(client, 2) for client in self.clients]
        load, its_load = Load([p.address for p in self.proxies], self.name), Load([secluded.address], own)
        for some in (load, its_load):
            some.more(100)
        kept += self.many_in_flight(clients[:3])
        since = self.shards[2].psql("select now()")
        heal = [self.cut(self.places[2], proxy) for proxy in self.places[3:]]
        heal += [self.cut(shard, proxy) for shard in self.places[:2] for proxy in self.places[5:]]
        quiet = [Waiting(secluded), Waiting(resting)]
        # asked first, and not answered while everybody else is
        asked = [client.future("GetInstance", instance_id=kept[0], timeout=120) for client in self.clients]
        self.others_are_served(kept, asked)
        wait_for(lambda: all(self.lost_lanes(secluded, shard) for shard in range(3)), 90, "its lanes to be given up")
        self.refused_now(clients[2], kept[0], everywhere=True)
        self.notices_by_itself(resting, clients[3])
        load.more(50)
        for proxy in self.proxies:
            self.assertFalse(proxy.ready())
        others_quiet, polls = self.rest_with_polls(load)
        quiet[0].lasts(CUT_SECONDS)
        for waiting in quiet + others_quiet:
            waiting.lasts(10)
            waiting.is_quiet(self)
        for undo in heal:
            undo()
        load.going.set()
        for poll in polls:
            self.assertEqual(list(poll.result().tasks), [])
        proxies = self.proxies + [secluded, resting]
        self.everybody_is_back(proxies, clients, [(p, 2) for p in proxies] + [(p, s) for p in proxies[2:] for s in (0, 1)], since)
        its_load.more(50)
        self.nothing_is_lost(load, kept)
        self.nothing_is_lost(its_load, [])
        for some in (load, its_load):
            # of each client the one call whose answer was lost
            self.assertLessEqual(some.refused[INTERNAL], len(some.threads))
        for proxy, client in zip(proxies, clients):
            self.is_woken_by(self.shards[2], 2, proxy, client)

    def a_proxy_is_cut_off_from_home(self):
        self.client.register(flow(self.name + "-quick", "q"))
        near, far = self.clients[1], self.clients[0]
        kept = [self.start_on(far, shard) for shard in range(3)]
        load = Load([p.address for p in self.proxies], self.name)
        load.more(100)
        heal = self.cut(self.places[0], self.places[3])
        asked = far.future("GetInstance", instance_id=kept[0], timeout=120)
        wait_for(lambda: self.starts_elsewhere(far, 0), 60, "starts to go elsewhere")
        self.whole_instances(far, (1, 2), 20)
        self.assertFalse(asked.done())
        self.whole_instances(near, (0, 1, 2), 20)
        wait_for(lambda: self.lost_lanes(self.proxies[0], 0), 90, "the proxy to give its lane up")
        self.assertEqual(asked.exception().code(), UNAVAILABLE)
        self.assertEqual(self.refused_with(far.get, kept[0]), UNAVAILABLE)
        self.assertIn(far.status(kept[1]), ("RUNNING", "COMPLETED"))
        self.assertIn(near.status(kept[0]), ("RUNNING", "COMPLETED"))
        self.assertEqual(self.refused_with(far.register, flow(fresh_name(), "a")), UNAVAILABLE)
        self.whole_instances(far, (1, 2), 20)
        load.more(50)
        self.assertTrue(self.proxies[1].ready())
        heal()
        wait_for(self.proxies[0].ready, 60, "readiness")
        wait_for(lambda: far.start(self.name, {}).split(".")[1] == "s0", 60, "starts on home")
        self.nothing_is_lost(load, kept)


class Pair(Networks):
    """One shard, a primary and its synchronous standby; some proxies' document names the one first, some the other."""

    def setUp(self):
        super().setUp()
        primary = self.make_shard(0, self.places[0])
        self.standby = self.standby_of(primary, self.places[1])
        self.shards = [primary]
        self.begin([self.make_proxy(0, self.places[2], self.document(primary, self.standby)),
                    self.make_proxy(1, self.places[3], self.document(self.standby, primary))])

    def standby_of(self, primary, place):
        standby = Standby(primary.folder + "-standby", primary)
        standby.host, standby.within = place.host, place.within
        with open(standby.data + "/postgresql.auto.conf", "a", encoding="utf-8") as f:
            f.write("primary_conninfo = 'host=%s port=%d user=wiggle password=%s'\n" % (primary.host, primary.port, primary.password))
        self.addCleanup(standby.stop)
        standby.start()
        primary.psql("alter system set synchronous_standby_names = '*'", "postgres")
        primary.psql("select pg_reload_conf()", "postgres")
        wait_for(lambda: primary.psql("select sync_state from pg_stat_replication where state = 'streaming'", "postgres") == "sync",
                 60, "a synchronous standby")
        return standby

    def document(self, *servers):
        document = topology(servers[0])
        document["shards"][0]["primary"]["url"] = "postgresql://%s/wiggle" % ",".join("%s:%d" % (s.host, s.port) for s in servers)
        return document

    def a_primary_falls_silent(self):
        """Its successor is found by proxies that had sessions in it, and by one that starts meanwhile."""
        self.client.register(flow(self.name + "-quick", "q"))
        load = Load([p.address for p in self.proxies], self.name)
        load.more(100)
        primary = self.shards[0]
        self.cut(self.places[0])
        self.standby.promote()
        self.shards = [self.standby]
        fresh = self.make_proxy(2, self.places[4], self.document(primary, self.standby))
        self.whole_instances(self.client_of(fresh), (0,), 20)
        load.more(100)
        for proxy, client in zip(self.proxies, self.clients):
            wait_for(proxy.ready, 60, "readiness")
            self.whole_instances(client, (0,), 20)
            self.assertTrue(self.lost_lanes(proxy, 0))
            self.assertIn("its primary was promoted, timeline 2", proxy.log())
        self.nothing_is_lost(load, [])
        self.assertTrue(fresh.ready())


if __name__ == "__main__":
    kind = Pair if hasattr(Pair, sys.argv[2]) else Apart
    outcome = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(kind(sys.argv[2]))
    sys.exit(0 if outcome.wasSuccessful() else 1)
