"""Reads that go to streaming replicas, and those that never do."""
import copy
import os
import re
import subprocess

import grpc

import world
from harness import Proxy, Standby, topology, wait_for
from relay import Deaf
from test_topology_reload import written
from wigclient import Client, ClientTest, flow, fresh_name


def entry(standby, **more):
    return {"url": "jdbc:postgresql://127.0.0.1:%d/wiggle" % standby.port, "user": "wiggle",
            "password": standby.password, **more}


class Replicas(ClientTest):
    """Two shards; home has two replicas. A replica may be a second behind."""

    @classmethod
    def setUpClass(cls):
        cls.home, cls.away = (world.make_shard("replicas-%d" % i) for i in (0, 1))
        cls.addClassCleanup(cls.home.stop)
        cls.addClassCleanup(cls.away.stop)
        Proxy(world.AREA, topology(cls.home, cls.away), name="replicas-setup").start().stop()
        cls.standbys = []
        for i in (1, 2):
            standby = Standby(os.path.join(world.AREA, "replica-%d" % i), cls.home)
            standby.start()
            cls.addClassCleanup(standby.stop)
            cls.standbys.append(standby)
        cls.proxy = cls.start_proxy("replicas")
        cls.addClassCleanup(cls.proxy.stop)

    @classmethod
    def start_proxy(cls, name, replicas=None, **more):
        settings = {key: more.pop(key) for key in list(more) if key.startswith("WIGGLE_")}
        document = topology(cls.home, cls.away)
        document["shards"][0].update({"maxReplicaLagMillis": 3000, **more})
        document["shards"][0]["replicas"] = replicas or [entry(s, pool=4) for s in cls.standbys]
        return Proxy(world.AREA, document, name=name, **settings).start()

    def setUp(self):
        super().setUp()
        self.client = Client(self.proxy.address)
        self.addCleanup(self.client.close)
        self.serving(self.proxy, 2)
        self.workflow = fresh_name()
        self.client.register(flow(self.workflow, "a"))
        self.started = 0

    def metric(self, proxy, name, replica=None):
        labels = 'shard="0"' + (',replica="%d"' % replica if replica else "")
        found = re.search(r"^%s\{%s\} (-?[\d.]+)$" % (name, re.escape(labels)), proxy.http("/metrics")[1], re.M)
        return float(found.group(1)) if found else None

    def reads(self, replica, proxy=None):
        return self.metric(proxy or self.proxy, "wiggle_proxy_replica_reads_total", replica)

    def lag(self, replica, proxy=None):
        return self.metric(proxy or self.proxy, "wiggle_proxy_replica_lag_seconds", replica)

    def serving(self, proxy, n):
        """Wait until so many replicas serve."""
        def count():
            return sum(0 <= self.lag(i, proxy) <= 3 for i in (1, 2)) == n
        wait_for(count, 60, "%d serving replicas of %s" % (n, proxy.name))

    def paused(self, standby):
        standby.psql("select pg_wal_replay_pause()")
        self.addCleanup(standby.psql, "select pg_wal_replay_resume()")

    def start_some(self, n=4):
        self.started += n
        return [self.client.start(self.workflow) for _ in range(n)]

    def listed(self, client=None, **more):
        return {i.id for i in (client or self.client).call("ListInstances", workflow=self.workflow, **more).instances}

    def replayed(self):
        """Wait until both standbys have everything that home has now."""
        end = self.home.psql("select pg_current_wal_flush_lsn()")
        for standby in self.standbys:
            wait_for(lambda s=standby: s.psql("select pg_last_wal_replay_lsn() >= '%s'" % end) == "t", 60, "replay")

    def test_lists_and_statistics_are_read_from_the_replicas_in_turn(self):
        ids = set(self.start_some())
        self.replayed()
        before = [self.reads(i) for i in (1, 2)]
        for _ in range(4):
            self.assertEqual(self.listed(), ids)
        self.client.call("GetStepStats", workflow=self.workflow)
        self.client.call("GetBacklogCoverage")
        after = [self.reads(i) for i in (1, 2)]
        self.assertEqual([b - a for a, b in zip(before, after)], [3, 3], "reads of the two replicas")

    def test_what_was_just_written_is_never_read_from_a_replica(self):
        for standby in self.standbys:
            self.paused(standby)
        before = [self.reads(i) for i in (1, 2)]
        for n in range(4):
            correlation = "%s-%d" % (self.workflow, n)
            instance = self.client.start(self.workflow, correlation_id=correlation)
            found = self.client.call("ListInstances", correlation_id=correlation).instances
            self.assertEqual([i.id for i in found], [instance])
            self.assertEqual(self.client.status(instance), "RUNNING")
        self.assertEqual([self.reads(i) for i in (1, 2)], before, "reads of the replicas")

    def test_a_replica_that_falls_behind_is_left_out_until_it_has_caught_up(self):
        self.paused(self.standbys[0])
        ids = set(self.start_some())
        self.serving(self.proxy, 1)
        self.assertIn("behind, more than maxReplicaLagMillis (3000)", self.proxy.log())
        before = [self.reads(i) for i in (1, 2)]
        for _ in range(3):
            self.assertEqual(self.listed(), ids)
        self.assertEqual([self.reads(i) - n for i, n in zip((1, 2), before)], [0, 3])

        self.paused(self.standbys[1])
        ids |= set(self.start_some())
        self.serving(self.proxy, 0)
        self.assertEqual(self.listed(), ids, "with no replica left the primary answers")
        for standby in self.standbys:
            standby.psql("select pg_wal_replay_resume()")
        self.serving(self.proxy, 2)
        before = [self.reads(i) for i in (1, 2)]
        self.assertEqual(self.listed(), ids)
        self.assertEqual(sum(self.reads(i) for i in (1, 2)), sum(before) + 1)

    def test_pages_lack_nothing_though_one_replica_has_less_than_another(self):
        """Whatever the first page was read from: behind an instance of home that it has come all that are older."""
        proxy = self.start_proxy("replicas-pages", maxReplicaLagMillis=600000)
        self.addCleanup(proxy.stop)
        client = Client(proxy.address)
        self.addCleanup(client.close)
        self.serving(proxy, 2)
        self.start_some(6)
        self.replayed()
        self.paused(self.standbys[0])
        self.start_some(20)
        end = self.home.psql("select pg_current_wal_flush_lsn()")
        wait_for(lambda: self.standbys[1].psql("select pg_last_wal_replay_lsn() >= '%s'" % end) == "t", 60, "replay")
        whole = self.home.psql("select id from wiggle.wf_instance where workflow = :'wf' order by no desc", wf=self.workflow).split()
        request, method = client.method("ListInstances")
        before, seen = [self.reads(i, proxy) for i in (1, 2)], set()
        for limit in (2, 3, 2, 3):
            ids, after = [], "begin"
            while after:
                reply, call = method.with_call(request(workflow=self.workflow, limit=limit), timeout=60,
                                               metadata=(("wiggle-after", after),))
                ids += [i.id for i in reply.instances if ".s0." in i.id]
                after = dict(call.initial_metadata()).get("wiggle-next")
            self.assertEqual(ids, whole[len(whole) - len(ids):])
            seen.add(len(ids) == len(whole))
        self.assertEqual([self.reads(i, proxy) - n for i, n in zip((1, 2), before)], [2, 2], "first pages are the replicas'")
        self.assertEqual(seen, {True, False}, "one of them has less")

    def test_the_primary_is_spared_where_the_topology_says_so(self):
        strict = self.start_proxy("replicas-strict", replicaFallback="fail")
        self.addCleanup(strict.stop)
        client = Client(strict.address)
        self.addCleanup(client.close)
        self.serving(strict, 2)
        for standby in self.standbys:
            self.paused(standby)
        ids = set(self.start_some())
        self.serving(strict, 0)
        self.refused(grpc.StatusCode.UNAVAILABLE, "*storage temporarily unavailable*", self.listed, client)
        self.assertIn("no replica is within maxReplicaLagMillis, and replicaFallback is 'fail'", strict.log())
        self.assertEqual(list(client.call("ListInstances", correlation_id="nobody").instances), [])
        for standby in self.standbys:
            standby.psql("select pg_wal_replay_resume()")
        self.serving(strict, 2)
        self.assertEqual(self.listed(client), ids)

    def test_lists_go_on_when_sessions_end_and_when_a_replica_dies(self):
        ids = set(self.start_some())
        self.replayed()
        waiting = [self.client.future("ListInstances", workflow=self.workflow) for _ in range(200)]
        for standby in self.standbys:
            standby.psql("select pg_terminate_backend(pid) from pg_stat_activity"
                         " where application_name like 'wiggle-proxy replica%'")
        for future in waiting:
            self.assertEqual({i.id for i in future.result().instances}, ids)

        self.serving(self.proxy, 2)
        waiting = [self.client.future("ListInstances", workflow=self.workflow) for _ in range(200)]
        control = ["pg_ctl", "-D", os.path.join(self.standbys[1].folder, "data"), "-s", "-w", "-m", "immediate"]
        subprocess.run(control + ["stop"], check=True)
        self.addCleanup(subprocess.run, control + ["-l", os.path.join(self.standbys[1].folder, "log"), "restart"],
                        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        waiting += [self.client.future("ListInstances", workflow=self.workflow) for _ in range(50)]
        for future in waiting:
            self.assertEqual({i.id for i in future.result().instances}, ids)
        self.serving(self.proxy, 1)

    def test_a_replica_of_a_replica_and_one_that_is_to_lag(self):
        """What cascades is judged by what it has, whatever it hangs on; one that applies late on purpose serves nothing."""
        third = Standby(os.path.join(world.AREA, "replica-3"), self.standbys[0])
        third.start()
        self.addCleanup(third.stop)
        proxy = self.start_proxy("replicas-cascade", replicas=[entry(third)])
        self.addCleanup(proxy.stop)
        client = Client(proxy.address)
        self.addCleanup(client.close)

        def serves():
            return 0 <= self.lag(1, proxy) <= 3

        def lists_by(replica):
            before = self.reads(1, proxy)
            instance = client.start(self.workflow, correlation_id=self.workflow)
            self.assertEqual(client.status(instance), "RUNNING")
            self.assertIn(instance, {i.id for i in client.call("ListInstances", correlation_id=self.workflow).instances})
            self.assertEqual(self.reads(1, proxy), before, "reads after writes")
            if not replica:
                self.assertIn(instance, self.listed(client))
            else:
                wait_for(lambda: instance in self.listed(client), 60, "what was written, on the replica")
                self.assertGreater(self.reads(1, proxy), before)

        wait_for(serves, 60, "the cascaded replica to serve")
        lists_by(replica=True)
        control = ["pg_ctl", "-D", self.standbys[0].data, "-s", "-w", "-m", "fast"]
        subprocess.run(control + ["stop"], check=True)
        try:
            wait_for(lambda: not serves(), 60, "the cascaded replica to fall behind")
            lists_by(replica=False)
        finally:
            self.standbys[0].start_again()
        wait_for(serves, 60, "the cascaded replica to be back")
        lists_by(replica=True)

        third.psql("alter system set recovery_min_apply_delay = '1h'")
        third.psql("select pg_reload_conf()")
        wait_for(lambda: not serves(), 60, "the delayed replica to fall behind")
        lists_by(replica=False)
        third.psql("alter system reset recovery_min_apply_delay")
        third.psql("select pg_reload_conf()")
        wait_for(serves, 60, "the replica that was delayed to be back")
        lists_by(replica=True)

    def test_of_several_hosts_a_standby_is_preferred_and_a_silent_one_passed_over(self):
        deaf = Deaf()
        self.addCleanup(deaf.close)

        def at(name, *servers):
            proxy = self.start_proxy("replicas-" + name, replicas=[entry(self.home, url="postgresql://%s/wiggle" % ",".join(
                "127.0.0.1:%d" % s.port for s in servers))], WIGGLE_CONNECT_TIMEOUT_MILLIS=500, WIGGLE_NODE_NAME=name)
            self.addCleanup(proxy.stop)
            wait_for(lambda: "serves reads" in proxy.log(), 60, "its replica to serve")
            return [s.psql("select count(*) > 0 from pg_stat_activity where application_name = 'wiggle-proxy replica %s'" % name)
                    for s in servers if s is not deaf]
        self.assertEqual(at("both", deaf, self.home, self.standbys[0]), ["f", "t"])
        self.assertEqual(at("primary-alone", deaf, self.home), ["t"])

    def test_one_that_is_taken_out_is_shown_no_more(self):
        fewer = self.start_proxy("replicas-fewer")
        self.addCleanup(fewer.stop)
        self.serving(fewer, 2)
        document = copy.deepcopy(fewer.document)
        document["shards"][0]["replicas"].pop()
        written(fewer, document)
        wait_for(lambda: self.lag(2, fewer) is None, 60, "a gauge less")
        wait_for(lambda: self.lag(1, fewer) is not None, 60, "the other one's")

    def test_while_the_primary_has_not_been_there_none_is_up_to_date(self):
        document = topology(self.home, self.away)
        document["shards"][1]["primary"]["url"] = "jdbc:postgresql://127.0.0.1:1/wiggle"
        document["shards"][1]["replicas"] = [entry(self.standbys[0])]
        proxy = Proxy(world.AREA, document, name="replicas-primary-away").start(wait=False)
        self.addCleanup(proxy.stop)
        wait_for(proxy.serves, 60, "home")
        self.assertIn('wiggle_proxy_replica_lag_seconds{shard="1",replica="1"} -1\n', proxy.http("/metrics")[1])

    def test_a_database_that_is_no_copy_of_the_primary_serves_nothing(self):
        strange = self.start_proxy("replicas-strange", replicas=[
            entry(self.away, url="jdbc:postgresql://localhost:%d/wiggle" % self.away.port), entry(self.standbys[0])])
        self.addCleanup(strange.stop)
        wait_for(lambda: "the database belongs to shard 1; correct the topology" in strange.log(), 60, "the refusal")
        self.serving(strange, 1)
        client = Client(strange.address)
        self.addCleanup(client.close)
        ids = set(self.start_some())
        self.replayed()
        for _ in range(3):
            self.assertEqual(self.listed(client), ids)
        self.assertEqual(self.reads(1, strange), 0)
