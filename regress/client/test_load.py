"""Load that is sent away: by memory and by the length of queues, with nothing lost that was acknowledged."""
import os
import signal

import grpc

import world
from harness import Proxy, topology, wait_for
from rawh2 import DATA, Raw, frame, message, request
from wigclient import Client, ClientTest, flow, fresh_name, run_of

UNAVAILABLE = grpc.StatusCode.UNAVAILABLE


def hold(raw, size):
    """A request that is never complete: its bytes stay in the proxy's memory."""
    stream = raw.open(request("StartInstance"))
    body, sent = message(b"x" * size, length=size + 1), 0
    while sent < len(body):
        raw.wait(lambda: min(raw.window, raw.first_window + raw.granted.get(stream, 0) - sent) > 0)
        piece = body[sent:sent + min(raw.window, raw.first_window + raw.granted.get(stream, 0) - sent, 16384)]
        sent += len(piece)
        raw.window -= len(piece)
        raw.send(frame(DATA, 0, stream, piece))


class LoadTest(ClientTest):
    server = "single"

    def setUp(self):
        database = fresh_name("load").replace("-", "")
        world.lone.psql("create database " + database, "postgres")
        self.addCleanup(world.lone.psql, "drop database %s with (force)" % database, "postgres")
        self.database, self.document = database, topology(world.lone)
        self.document["shards"][0]["primary"]["url"] = "jdbc:postgresql://127.0.0.1:%d/%s" % (world.lone.port, database)

    def serve(self, **settings):
        self.proxy = Proxy(world.AREA, self.document, name=self.database, **settings).start()
        self.addCleanup(self.proxy.stop)
        self.client = Client(self.proxy.address)
        self.addCleanup(self.client.close)
        self.name = fresh_name()
        self.client.register(flow(self.name, "a"))

    def metric(self, name):
        return self.proxy.metric(name)

    def poll_away(self, least, most):
        """A poll is sent away at once, with a pause between the two."""
        reply = self.client.call("PollTasks", worker_id="w", queues=[self.name], max=1, wait_millis=20000)
        self.assertEqual(list(reply.tasks), [])
        self.assertTrue(least <= reply.retry_after_millis <= most, reply.retry_after_millis)
        return reply.retry_after_millis


class Memory(LoadTest):
    def test_polls_and_starts_are_sent_away_and_reports_are_not(self):
        self.serve(WIGGLE_MAX_REQUEST_BYTES="8MB", WIGGLE_MEMORY_THRESHOLD="0.5", WIGGLE_MEMORY_RETRY_MILLIS="300",
                   WIGGLE_MEMORY_RETRY_JITTER_MILLIS="200", WIGGLE_MEMORY_LIMIT_BYTES="64GB")
        ids = [self.client.start(self.name, {"n": n}) for n in range(3)]
        tasks = self.client.poll(self.name, max=2)
        raw = Raw(self.proxy.address)
        self.addCleanup(raw.close)
        for _ in range(5):
            hold(raw, 1_000_000)
        wait_for(lambda: self.metric("wiggle_proxy_request_bytes") > 4_500_000, 60, "memory full of requests")
        pauses = {self.poll_away(300, 500) for _ in range(30)}
        self.assertGreater(len(pauses), 3, "they do not come back all at once")
        with self.assertRaises(grpc.RpcError) as caught:
            self.client.start(self.name)
        self.assertEqual((caught.exception.code(), caught.exception.details()),
                         (UNAVAILABLE, "the server is short of memory; try again later"))
        events = self.client.call("PollEvents", consumer="c", max=1, wait_millis=20000)
        self.assertGreater(events.retry_after_millis, 0)
        self.client.call("HeartbeatTask", task_id=tasks[0].task_id, lease_owner=tasks[0].lease_owner, extend_millis=60000)
        self.assertEqual([self.client.report(task, {}).applied.instance_status for task in tasks], ["COMPLETED"] * 2)
        wait_for(lambda: "pressure: short of memory" in self.proxy.log(), 60, "a line of the log")
        raw.close()
        wait_for(lambda: self.metric("wiggle_proxy_request_bytes") < 4_000_000, 60, "room again")
        ids.append(self.client.start(self.name))
        for _ in range(2):
            self.client.report(self.client.poll_one(self.name), {})
        self.assertEqual([self.client.status(i) for i in ids], ["COMPLETED"] * 4)
        wait_for(lambda: "pressure: enough memory again" in self.proxy.log(), 60, "a line of the log")
        self.assertEqual((self.metric("wiggle_proxy_shed_polls_total"), self.metric("wiggle_proxy_shed_starts_total")), (30, 1))

    def test_the_process_itself_may_be_too_large(self):
        self.serve(WIGGLE_MEMORY_LIMIT_BYTES="1MB", WIGGLE_MEMORY_RETRY_MILLIS="250", WIGGLE_MEMORY_RETRY_JITTER_MILLIS="0")
        self.poll_away(250, 250)
        self.assertEqual(self.metric("wiggle_proxy_memory_limit_bytes"), 1048576)
        self.assertGreater(self.metric("wiggle_proxy_resident_bytes"), 1048576)
        self.assertEqual(self.proxy.stop(), 0)
        self.proxy.settings["WIGGLE_MEMORY_SHEDDING_ENABLED"] = "false"
        self.proxy.start()
        client = Client(self.proxy.address)
        self.addCleanup(client.close)
        client.start(self.name)
        client.report(client.poll_one(self.name), {})


class Queues(LoadTest):
    def test_a_long_queue_refuses_starts_first_and_loses_nothing(self):
        self.serve(WIGGLE_LANES_PER_SHARD="1", WIGGLE_LANE_QUEUE_ITEMS="64", WIGGLE_POLL_RETRY_MILLIS="200")
        for _ in range(8):
            self.client.start(self.name)
        tasks = self.client.poll(self.name, max=8)
        self.assertEqual(len(tasks), 8)
        lane = int(world.lone.psql("select pid from pg_stat_activity where datname = :'d' and application_name"
                                   " like 'wiggle-proxy%lane%'", "postgres", d=self.database))
        os.kill(lane, signal.SIGSTOP)
        try:
            first = self.client.future("StartInstance", workflow=self.name)   # the batch in flight
            wait_for(lambda: self.metric("wiggle_proxy_lane_batches_total") > 0 and
                     self.metric("wiggle_proxy_lane_waiting_items") == 0, 60, "a batch that stands")
            starts = [self.client.future("StartInstance", workflow=self.name) for _ in range(100)]
            wait_for(lambda: sum(s.done() for s in starts) >= 100 - 48, 60, "refused starts")
            away = [s for s in starts if s.done()]
            self.assertEqual({s.code() for s in away}, {UNAVAILABLE})
            self.poll_away(200, 400)
            beats = [self.client.future("HeartbeatTask", task_id=t.task_id, lease_owner=t.lease_owner, extend_millis=60000)
                     for t in tasks[:4]]
            reports = [self.client.future("ReportSteps", runs=[run_of(t)]) for t in tasks[4:]]
            wait_for(lambda: self.metric("wiggle_proxy_lane_waiting_items") >= 48 + 8, 60, "calls that were let in")
            self.assertFalse(any(call.done() for call in beats + reports), "none was refused")
        finally:
            os.kill(lane, signal.SIGCONT)
        self.assertEqual([b.result().lease_expires_at > 0 for b in beats], [True] * 4)
        self.assertEqual([r.result().results[0].applied.instance_status for r in reports], ["COMPLETED"] * 4)
        acknowledged = {first.result().instance_id}
        acknowledged |= {s.result().instance_id for s in starts if s not in away}
        acknowledged |= {self.client.start(self.name) for _ in away}
        self.assertEqual(len(acknowledged), 101)
        self.assertEqual(int(self.metric("wiggle_proxy_shed_starts_total")), len(away))
        stored = set(world.lone.psql("select id from wiggle.wf_instance", self.database).split())
        self.assertEqual(len(stored), 109)
        self.assertEqual(acknowledged - stored, set(), "nothing acknowledged is lost")
