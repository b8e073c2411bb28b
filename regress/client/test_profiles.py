"""Deployed as one proxy that is started again, or as three behind a round robin; and what probes find meanwhile."""
import json
import signal
import socket
import subprocess
import time

import grpc
import health_pb2

import world
from harness import Proxy, topology, wait_for
from relay import Balancer
from test_failover import Load
from test_handover import Minutes
from test_storage import OwnWorld
from wigclient import Client, ClientTest, fresh_name

SERVING, NOT_SERVING = (health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING)
WORK = "a shard that takes instances"


def connects(port):
    """What a probe of the kind tcpSocket finds."""
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
    except ConnectionRefusedError:
        return False
    return True


def found(proxy):
    """What a probe of /readyz finds: the status, and what is missing."""
    status, body = proxy.http("/readyz") or (None, '{"missing": []}')
    return status, json.loads(body)["missing"]


class Probes(OwnWorld):
    def asked(self):
        """gRPC's own health."""
        check = self.client.channel.unary_unary("/grpc.health.v1.Health/Check", lambda _: b"",
                                                health_pb2.HealthCheckResponse.FromString)
        return check(None, timeout=60, wait_for_ready=True).status

    def finds(self, status, *missing):
        wait_for(lambda: found(self.proxy) == (status, list(missing)), 60, "readiness %d without %s, which is %s"
                 % (status, missing, found(self.proxy)))
        self.assertEqual(self.asked(), SERVING if status == 200 else NOT_SERVING)
        self.assertEqual(self.proxy.http("/healthz")[0], 200)
        self.assertTrue(connects(self.proxy.port))

    def pg_ctl(self, shard, action):
        if action == "start":
            self.shards[shard].start_again()
        else:
            subprocess.run(["pg_ctl", "-D", self.shards[shard].data, "-m", "fast", "-w", "-s", action], check=True)

    def test_ready_is_who_has_home_and_one_shard(self):
        name = self.define("a")
        self.finds(200)
        self.pg_ctl(1, "stop")
        wait_for(lambda: not self.proxy.ready(), 60, "the part of shard 1 to tell that it is away")
        self.finds(200)
        self.assertEqual(self.client.start(name).split(".")[1], "s0")
        self.pg_ctl(0, "stop")
        self.finds(503, "shard 0", WORK)
        self.pg_ctl(1, "start")
        self.finds(503, "shard 0")
        self.pg_ctl(0, "start")
        self.finds(200)

    def test_without_any_database_it_waits(self):
        """It ends for none of them, says so once, and opens its port when there is somebody to talk to."""
        for shard in (0, 1):
            self.pg_ctl(shard, "stop")
        proxy = Proxy(world.AREA, topology(*self.shards), name="waits", WIGGLE_STARTUP_TIMEOUT_MILLIS=300)
        proxy.start(wait=False)
        self.addCleanup(proxy.stop)
        told = "0 of 2 shards can be used; the port for clients stays closed until one can be"
        wait_for(lambda: told in proxy.log(), 60, "the end of patience")
        self.assertFalse(connects(proxy.port))
        self.assertEqual(proxy.http("/healthz")[0], 200)
        self.assertEqual(found(proxy), (503, ["port", "shard 0", WORK]))
        self.pg_ctl(1, "start")
        wait_for(lambda: connects(proxy.port), 60, "the port")
        self.assertEqual(found(proxy), (503, ["shard 0"]))
        self.pg_ctl(0, "start")
        wait_for(proxy.ready, 60, "readiness")
        self.assertIsNone(proxy.process.poll())
        self.assertEqual(proxy.log().count(told), 1)
        for shard in (0, 1):
            # refused at first, and perhaps told that the database is starting up
            said = [line.split("trying again: ")[1] for line in proxy.log().splitlines()
                    if "shard %d: cannot connect" % shard in line]
            self.assertTrue(said)
            self.assertEqual(len(said), len(set(said)), said)

    def test_a_drain_shows_at_once_and_calls_are_finished(self):
        name = self.define("a")
        let_go = self.hold(0, "lock table wiggle.wf_instance in share mode")
        also = self.hold(1, "lock table wiggle.wf_instance in share mode")
        call = self.client.future("StartInstance", workflow=name)
        wait_for(lambda: sum(int(s.psql("select count(*) from pg_locks where not granted")) for s in self.shards) > 0, 60,
                 "a start that waits")
        self.proxy.process.terminate()
        wait_for(lambda: found(self.proxy)[0] == 503, 60, "readiness to fall")
        self.assertTrue(json.loads(self.proxy.http("/readyz")[1])["draining"])
        self.assertEqual(self.proxy.http("/healthz")[0], 200, "a probe of its life must not have it killed")
        self.assertFalse(connects(self.proxy.port))
        self.assertFalse(call.done())
        let_go()
        also()
        self.assertIn("wfi.s", call.result().instance_id)
        self.assertEqual(self.proxy.process.wait(60), 0)


class Single(ClientTest):
    """Profile A: one proxy, and the next one when it is gone. Nothing is in it that is not in rows."""

    def setUp(self):
        self.shard = world.make_shard("single-active")
        self.addCleanup(self.shard.stop)
        self.proxy = Proxy(world.AREA, topology(self.shard), name="single-active").start()
        self.addCleanup(self.proxy.stop)
        self.client = Client(self.proxy.address)
        self.addCleanup(self.client.close)

    def patiently(self, call, *args, **more):
        def attempt():
            try:
                return [call(*args, **more)]
            except grpc.RpcError as refusal:
                self.assertEqual(refusal.code(), grpc.StatusCode.UNAVAILABLE, refusal.details())
                return None
        return wait_for(attempt, 60, "an answer")[0]

    def next_pod(self):
        """SIGKILL, then another process at the same address; how long nobody answered."""
        self.proxy.kill()
        killed = time.monotonic()
        self.proxy.start(wait=False, address=(self.proxy.port, self.proxy.second_port))
        started = wait_for(self.proxy.serves, 60, "the next proxy") and time.monotonic()
        self.patiently(self.client.call, "ListWorkflows")
        print("profile A: the next proxy was ready %.2f s after its start, the client served %.2f s after the kill"
              % (started - killed, time.monotonic() - killed))

    def test_the_next_pod_goes_on(self):
        work = self.shorthand({"task": "a"}, {"task": "b"})
        waits = self.shorthand({"await_signal": "go"}, {"task": "after"})
        sleeps = self.shorthand({"sleep": "1500ms"}, {"task": "after"})
        kept, lost, parked, timed = ([self.client.start(name) for _ in range(8)] for name in (work, work, waits, sleeps))
        tasks = {}
        while len(tasks) < 16:
            tasks.update((t.instance_id, t) for t in self.client.poll(work, worker="w", max=16 - len(tasks), lease_millis=600000))
        for instance in lost:    # their worker dies with the proxy
            self.client.call("HeartbeatTask", task_id=tasks[instance].task_id, lease_owner=tasks[instance].lease_owner,
                             extend_millis=2000)
        polls = [self.client.future("PollTasks", worker_id="p", queues=["none"], max=1, wait_millis=20000) for _ in range(8)]
        signals = [self.client.future("SignalInstance", instance_id=i, signal="go") for i in parked[:2]]
        self.next_pod()
        for call in polls + signals:
            self.assertIn(call.code(), (grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE))
        # a signal whose answer was lost may have been delivered: then it is refused the second time
        for instance, sent in zip(parked, signals + [None] * 6):
            if sent is None:
                self.patiently(self.client.signal, instance, "go")
            elif sent.code() != grpc.StatusCode.OK:
                try:
                    self.client.signal(instance, "go")
                except grpc.RpcError as refusal:
                    self.assertEqual(refusal.code(), grpc.StatusCode.FAILED_PRECONDITION)
        for instance in kept:
            self.assertEqual(self.client.report(tasks[instance], {}).error_status, 0, "a lease outlives the proxy")
        attempts = self.work_all(work, waits, sleeps)
        for instance in lost:
            self.assertEqual(attempts[instance, "a"], 2, "the lease of a dead worker ran out")
        self.assertEqual({i for i, _ in attempts}, {*kept, *lost, *parked, *timed})
        self.assertEqual(self.shard.psql("select status, count(*) from wiggle.wf_instance group by 1"), "COMPLETED|32")

    def work_all(self, *queues):
        """A worker until every instance has ended; which attempt of each step was reported."""
        attempts = {}
        while self.shard.psql("select count(*) from wiggle.wf_instance where status = 'RUNNING'") != "0":
            for task in self.client.call("PollTasks", worker_id="after", queues=queues, max=40, wait_millis=200).tasks:
                self.assertNotIn((task.instance_id, task.step_name), attempts)
                attempts[task.instance_id, task.step_name] = task.attempt
                self.assertEqual(self.client.report(task, {}).error_status, 0)
        return attempts


class Rounds(Load):
    """The load of a client that knows the addresses of all, and of one that knows a balancer's."""

    options = Load.options + [("grpc.max_reconnect_backoff_ms", 500),
                              ("grpc.service_config", '{"loadBalancingConfig": [{"round_robin": {}}]}')]

    def __init__(self, *args, **more):
        self.seconds = []
        super().__init__(*args, **more)

    def attempt(self, call, *args, **more):
        """As every client of Wiggle does: UNAVAILABLE is tried again, nothing else."""
        begun = time.monotonic()
        try:
            answer = call(*args, **more)
        except grpc.RpcError as refusal:
            if refusal.code() != grpc.StatusCode.UNAVAILABLE:
                raise
            self.pause.wait(0.02)
            return None
        if not more.get("wait"):
            self.seconds.append(time.monotonic() - begun)
        return answer


class Cluster(Minutes):
    """Profile B: three proxies behind a round robin, one after the other is ended and started again."""

    generations = [{"id": 1, "activeFrom": "2026-01-01T00:00:00Z", "weights": {"0": 0, "1": 1}}]

    def started(self):
        """The schedule's instances, without the load's."""
        count = "select count(*) from wiggle.wf_instance where workflow = '%s'" % self.name
        return int(self.patiently(count)) + int(self.away.psql(count))

    def again(self, proxy, sent):
        """End it in the minute that comes, and go on when the next one is ready."""
        def fault(due):
            before = len(self.load.started)
            if sent == signal.SIGKILL and not self.rolled:
                self.rolled = list(self.load.seconds)    # of the three orderly ends
            due()
            proxy.process.send_signal(sent)
            status = proxy.process.wait(60)
            self.assertEqual(status, 0 if sent == signal.SIGTERM else -sent, "the exit status of %s" % proxy.name)
            proxy.start(wait=False, address=(proxy.port, proxy.second_port))
            wait_for(proxy.serves, 60, "the next %s" % proxy.name)
            self.load.more(max(1, before + 30 - len(self.load.started)))
        return fault

    def test_a_roll_and_a_crash_of_each(self):
        balancer = Balancer(p.port for p in self.proxies)
        self.addCleanup(balancer.close)
        name = fresh_name("rolled")
        self.client.register({"workflow": name, "version": 1, "steps": [{"task": "a"}, {"task": "b"}]})
        self.load = load = Rounds(["ipv4:" + ",".join(p.address for p in self.proxies),
                                   "127.0.0.1:%d" % balancer.port], name)
        load.more(30)
        load.seconds.clear()
        self.rolled = []
        self.each_minute_once([self.again(p, sent) for sent in (signal.SIGTERM, signal.SIGKILL) for p in self.proxies])
        load.end(self.shards)
        load.is_as_acknowledged(self, self.shards)
        print("profile B: %d calls during the roll, p50 %.1f ms, p99 %.1f ms, the longest %.1f ms" % (len(self.rolled), *(
            1000 * sorted(self.rolled)[int(part * (len(self.rolled) - 1))] for part in (0.5, 0.99, 1))))
