"""Databases that are stopped hard at any moment, with hundreds of instances in flight."""
import random
import socket
import threading

import grpc
from google.protobuf import json_format, struct_pb2

import world
from harness import Proxy, topology, wait_for
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
        for k in range(self.rounds):
            load.more(self.random.randrange(5, 40))
            shard = self.random.randrange(2)
            afterwards = kinds[k % len(kinds)]()
            self.stop_hard(shard)
            self.shards[shard].start_again()
            afterwards()
        load.end(self.shards)
        load.is_as_acknowledged(self, self.shards)
        self.assertIsNone(self.proxy.process.poll())

    def test_without_its_database_a_proxy_is_quiet(self):
        """With polls parked and calls refused it does not spin, and its log does not fill."""
        name = self.define("a")
        polls = [self.client.future("PollTasks", worker_id="w%d" % i, queues=[name], max=1, wait_millis=15000)
                 for i in range(50)]
        wait_for(lambda: self.metric("wiggle_proxy_parked_polls") == 50, 60, "parked polls")
        for shard in (0, 1):
            self.stop_hard(shard)
        wait_for(lambda: not self.proxy.ready(), 60, "readiness to fall")
        lines = len(self.proxy.log().splitlines())
        with Door(self.shards[1].port) as door:
            for poll in polls:
                poll.exception()    # 15 s, in which nothing comes
        # a link tries 8 times in that time, with TLS and without; there are two lanes of work and a listener
        self.assertGreater(door.knocks, 3)
        self.assertLess(door.knocks, 500, "attempts to connect; without a rest there are thousands")
        self.assertLess(len(self.proxy.log().splitlines()) - lines, 100)
        for shard in self.shards:
            shard.start_again()
        wait_for(self.proxy.ready, 60, "readiness")
        instance = self.client.start(name)
        self.assertEqual(self.client.poll_one(name).instance_id, instance)

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
            heard = self.metric("wiggle_proxy_wakeups_total")
            poll = self.client.future("PollTasks", worker_id="w", queues=[name], max=1, wait_millis=20000)
            wait_for(lambda: self.metric("wiggle_proxy_parked_polls") == 1, 60, "a parked poll")
            instance = shard.psql("select wiggle.start(:'n')", n=name)
            self.assertEqual([t.instance_id for t in poll.result().tasks], [instance])
            self.assertGreater(self.metric("wiggle_proxy_wakeups_total"), heard)


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
