"""Databases that are stopped hard at any moment, with hundreds of instances in flight."""
import random
import socket
import threading

import grpc
from google.protobuf import json_format, struct_pb2

import world
from harness import Proxy, Waiting, topology, wait_for
from test_failover import NOTHING_KNOWN, Load
from test_storage import OwnWorld
from wigclient import Client, flow, fresh_name

IN_FLIGHT = 250


class Door:
    """In a database's place: takes connections, ends them and counts them."""

    def __init__(self, port):
        self.knocks = 0
        self.listener = socket.create_server(("127.0.0.1", port))

    def __enter__(self):
        threading.Thread(target=self.count, daemon=True).start()
        return self

    def count(self):
        while True:
            try:
                self.listener.accept()[0].close()
            except OSError:
                return
            self.knocks += 1

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Restarts(OwnWorld):
    rounds = 6

    def setUp(self):
        super().setUp()
        self.second = self.start_proxy("-2")
        self.random = random.Random(1)

    # what a proxy may be about when the database goes

    def nothing(self):
        return lambda: None

    def boots(self):
        proxy = Proxy(world.AREA, topology(*self.shards), name="booting-%d" % self.random.randrange(10 ** 9))
        self.addCleanup(proxy.stop)
        proxy.start(wait=False)

        def serves():
            wait_for(proxy.ready, 60, "the proxy that was booting to serve")
            self.assertEqual(proxy.stop(), 0)
        return serves

    def drains(self):
        proxy = self.start_proxy("-draining-%d" % self.random.randrange(10 ** 9))
        client = Client(proxy.address)
        self.addCleanup(client.close)
        name = self.define("a")
        calls = [client.future("StartInstance", workflow=name) for _ in range(20)]
        calls += [client.future("PollTasks", worker_id="w", queues=[name], max=1, wait_millis=20000) for _ in range(20)]
        proxy.process.terminate()

        def ended():
            self.assertEqual(proxy.process.wait(60), 0, "the status of a drain without a database")
            for call in calls:
                if call.exception() is not None:
                    self.assertIn(call.exception().code(), NOTHING_KNOWN)
        return ended

    def registers(self):
        names = [fresh_name("registered") for _ in range(8)]
        calls = [(name, self.client.future("RegisterWorkflow", definition=json_format.ParseDict(flow(name, "a"), struct_pb2.Struct()))) for name in names]

        def whole():
            for name, call in calls:
                if call.exception() is not None:
                    self.assertIn(call.exception().code(), NOTHING_KNOWN)
                wait_for(lambda n=name: self.load.attempt(self.client.register, flow(n, "a")), 60, "the registration")
                self.assertEqual([s.psql("select count(*) from wf_definition where name = :'n'", n=name)
                                  for s in self.shards], ["1", "1"])
        return whole

    def test_stopped_at_any_moment(self):
        name = fresh_name()
        self.client.register(flow(name, "a", ("sleep", 200), "b"))
        kept = [call.result().instance_id for call in
                [self.client.future("StartInstance", workflow=name) for _ in range(IN_FLIGHT)]]
        self.load = load = Load([self.proxy.address, self.second.address], name)
        load.started += kept
        kinds = (self.nothing, self.boots, self.registers, self.drains)
        stops = 0
        for k in range(self.rounds):
            load.more(self.random.randrange(5, 40))
            shard = self.random.randrange(2)
            afterwards = kinds[k % len(kinds)]()
            for _ in range(1 + k % 2):    # the second time while everybody is recovering from the first
                self.stop_hard(shard)
                Waiting(self.proxy).lasts(self.random.choice((0, 2)))
                self.shards[shard].start_again()
                stops += 1
            afterwards()
        load.end(self.shards)
        load.is_as_acknowledged(self, self.shards)
        self.assertLessEqual(load.refused[grpc.StatusCode.INTERNAL], stops * len(load.threads), "of each the call in flight")
        self.assertIsNone(self.proxy.process.poll())

    def test_without_its_database_a_proxy_is_quiet(self):
        """With polls parked and calls refused it does not spin, and its log does not fill."""
        name, busy = self.define("a"), self.define("a", "b")
        polls = [self.client.future("PollTasks", worker_id="w%d" % i, queues=[name], max=1, wait_millis=15000)
                 for i in range(50)]
        wait_for(lambda: self.metric("wiggle_proxy_parked_polls") == 50, 60, "parked polls")
        load = Load([self.proxy.address], busy)
        load.more(50)
        for shard in (0, 1):
            self.stop_hard(shard)
        wait_for(lambda: not self.proxy.ready(), 60, "readiness to fall")
        lines = len(self.proxy.log().splitlines())
        waiting = Waiting(self.proxy)
        with Door(self.shards[1].port) as door:
            for poll in polls:
                poll.exception()    # 15 s, in which nothing comes
            waiting.lasts(10)
        waiting.is_quiet(self)
        # a link tries 8 times in that time, with TLS and without; there are two lanes of work and a listener
        self.assertGreater(door.knocks, 3)
        self.assertLess(door.knocks, 500, "attempts to connect; without a rest there are thousands")
        self.assertLess(len(self.proxy.log().splitlines()) - lines, 100)
        for shard in self.shards:
            shard.start_again()
        wait_for(self.proxy.ready, 60, "readiness")
        instance = self.client.start(name)
        self.assertEqual(self.client.poll_one(name).instance_id, instance)
        load.end(self.shards)
        load.is_as_acknowledged(self, self.shards)
        self.assertLessEqual(load.refused[grpc.StatusCode.INTERNAL], len(load.threads), "one call of each client was in flight")

    def test_a_listening_session_that_is_ended_comes_back(self):
        """What happens while nobody listens is looked for, and the next notification is heard."""
        name = self.define("a")
        listening = ("select pid from pg_stat_activity where application_name like 'wiggle-proxy wakeup%'"
                     " and (query like 'listen%' or query = 'select 1')")
        for shard in self.shards:
            wait_for(lambda s=shard: len(s.psql(listening).split()) == 2, 60, "both proxies to listen")
            pids = set(shard.psql(listening).split())
            poll = self.client.future("PollTasks", worker_id="w", queues=[name], max=1, wait_millis=20000)
            wait_for(lambda: self.metric("wiggle_proxy_parked_polls") == 1, 60, "a parked poll")
            shard.psql("select pg_terminate_backend(pid) from pg_stat_activity"
                       " where application_name like 'wiggle-proxy wakeup%'")
            instance = shard.psql("select wiggle.start(:'n')", n=name)
            self.assertEqual([t.instance_id for t in poll.result().tasks], [instance])
            wait_for(lambda s=shard, p=pids: len(set(s.psql(listening).split()) - p) == 2, 60, "new listening sessions")
            self.is_woken_by(shard, self.shards.index(shard), self.proxy, self.client)


class Interrupted(OwnWorld):
    """Databases that are stopped hard while something of a proxy stands at a known place: a lock keeps it there."""

    def waiting(self, purpose):
        """How many such sessions of proxies wait for a lock in shard 1."""
        return int(self.shards[1].psql("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and"
                                       " application_name like 'wiggle-proxy %s%%'" % purpose))

    def restart(self):
        self.stop_hard(1)
        self.shards[1].start_again()

    def boots_in(self, database, made, lock):
        """A proxy that starts with this database alone and gets as far as the lock."""
        self.shards[1].psql("create database " + database, "postgres")
        if made:
            self.shards[1].psql("create extension wiggle", database)
        self.hold(1, lock, database)
        document = topology(self.shards[1])
        document["shards"][0]["primary"]["url"] = "postgresql://127.0.0.1:%d/%s" % (self.shards[1].port, database)
        proxy = Proxy(world.AREA, document, name="interrupted-" + database)
        self.addCleanup(proxy.stop)
        return proxy.start(wait=False)

    def test_proxies_that_boot(self):
        proxies = [self.boots_in(*place) for place in (
            ("another_has_the_turn", False, "select pg_advisory_lock(7420398115703004)"),
            ("the_extension_is_made", False, "lock table pg_catalog.pg_extension in share mode"),
            ("the_shard_is_claimed", True, "lock table wiggle.wf_shard in share row exclusive mode"),
            ("the_shard_is_admitted", True, "lock table wiggle.wf_shard_registry in share row exclusive mode"))]
        wait_for(lambda: self.waiting("setup") == len(proxies), 60, "all of them to wait")
        self.restart()
        for proxy in proxies:
            wait_for(proxy.ready, 60, "readiness of " + proxy.name)
            client = Client(proxy.address)
            self.addCleanup(client.close)
            name = fresh_name()
            client.register(flow(name, "a"))
            instance = client.start(name)
            self.assertEqual(client.poll_one(name).instance_id, instance)
            self.assertEqual(proxy.stop(), 0)

    def test_a_registration_and_a_drain(self):
        """The definition is on home already. Instances that are being started are made once or not at all."""
        name, new = self.define("a"), fresh_name("new")
        draining = self.start_proxy("-draining")
        client = Client(draining.address)
        self.addCleanup(client.close)
        self.hold(1, "lock table wiggle.wf_definition, wiggle.wf_instance in share mode")
        polls = [client.future("PollTasks", worker_id="w", queues=["nothing"], max=1, wait_millis=20000) for _ in range(5)]
        starts = [client.future("StartInstance", workflow=name) for _ in range(20)]
        registrations = []

        def all_wait():
            if not registrations or registrations[-1].done():    # it waits for a lock for 5 s only
                registrations.append(self.client.future("RegisterWorkflow", definition=json_format.ParseDict(
                    flow(new, "a"), struct_pb2.Struct())))
            return self.waiting("side") > 0 and self.waiting("lane") > 0
        wait_for(all_wait, 60, "both to wait")
        self.assertEqual(self.shards[0].psql("select count(*) from wf_definition where name = :'n'", n=new), "1")
        draining.process.terminate()
        wait_for(lambda: "SIGTERM: no new work" in draining.log(), 60, "the drain")
        self.restart()
        self.assertEqual(draining.process.wait(60), 0)
        for poll in polls:
            self.assertEqual(list(poll.result().tasks), [])
        known = [call.result().instance_id for call in starts if call.exception() is None]
        self.assertLessEqual({call.exception().code() for call in starts if call.exception() is not None}, set(NOTHING_KNOWN))
        made = [i for s in self.shards for i in s.psql("select id from wf_instance where workflow = :'n'", n=name).split()]
        self.assertLessEqual(set(known), set(made))
        self.assertLessEqual(len(made), len(starts))
        if registrations[-1].exception() is not None:
            self.assertIn(registrations[-1].exception().code(), NOTHING_KNOWN)
        self.client.register(flow(new, "a"))
        bodies = [s.psql("select body from wf_definition where name = :'n'", n=new) for s in self.shards]
        self.assertEqual(bodies[0], bodies[1])


class Refusals(OwnWorld):
    def test_what_wrote_nothing_is_unavailable(self):
        name = self.define("a")
        instance = self.start_on(1, name)
        self.stop_hard(1)
        wait_for(lambda: not self.proxy.ready(), 60, "readiness to fall")
        unavailable = grpc.StatusCode.UNAVAILABLE
        text = "*storage temporarily unavailable*"
        for call, arguments in ((self.client.get, (instance,)), (self.client.signal, (instance, "s")),
                                (self.client.register, (flow(fresh_name(), "a"),))):
            self.refused(unavailable, text, call, *arguments)
        task = "tok" + instance[3:] + "-1"
        self.refused(unavailable, text, self.client.call, "HeartbeatTask", task_id=task, lease_owner="w", extend_millis=1000)
        self.refused(unavailable, text, self.client.call, "CancelInstance", instance_id=instance)
        self.shards[1].start_again()
        wait_for(self.proxy.ready, 60, "readiness")
        self.assertEqual(self.client.status(instance), "RUNNING")
        self.assertEqual(self.client.report(self.client.poll_one(name)).applied.instance_status, "COMPLETED")
