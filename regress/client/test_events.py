"""The event feed: named consumers, cursors over shards, long polls."""
import os
import re
import signal
import subprocess
import time

import grpc

import wiggle_pb2 as pb
import world
from doors import doors
from harness import Proxy, topology, wait_for
from test_storage import OwnWorld
from wigclient import NO_RETRY, Client, ClientTest, flow, fresh_name, plain

INVALID = grpc.StatusCode.INVALID_ARGUMENT
UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
NO_NAME = ("a consumer name is required: the feed's cursor is named, so two consumers with no name would share one"
           " place in the log")


class Feeds:
    def poll_events(self, consumer, max=1000, wait=0, start_from=0, client=None):
        return list((client or self.client).call("PollEvents", consumer=consumer, max=max, wait_millis=wait,
                                                 start_from=start_from).events)

    def ack(self, consumer, event):
        self.client.call("AckEvents", consumer=consumer, acked_cursor=event.cursor)

    def consumer(self):
        """A consumer that starts now."""
        name = fresh_name("consumer-" + self.server)
        self.poll_events(name)
        return name

    def run_one(self, **more):
        name = self.define("a")
        instance = self.client.start(name, **more)
        self.client.report(self.client.poll_one(name), {})
        return instance

    def finish(self, consumer, n):
        """Poll until n entries are there: the proxy of another test may share the log."""
        return wait_for(lambda: (lambda got: got if len(got) >= n else None)(self.poll_events(consumer)), 60,
                        "%d entries" % n)


class Cases(Feeds):
    def test_one_entry_for_each_transition(self):
        consumer = self.consumer()
        instance = self.run_one(correlation_id="order-1")
        got = [e for e in self.finish(consumer, 2) if e.instance_id == instance]
        self.assertEqual([e.type for e in got], ["wf.started", "wf.completed"])
        for e in got:
            self.assertEqual((e.version, e.correlation_id, e.shard), (1, "order-1", self.shard))
            self.assertGreater(e.created_at, 1_700_000_000_000)
            self.assertFalse(e.HasField("payload"))
            self.assertIn("%d:%d" % (e.shard, e.seq), e.cursor.split(","))

    def test_reasons_and_errors(self):
        consumer = self.consumer()
        name = self.define(("task", "a", NO_RETRY))
        failed = self.client.start(name)
        self.client.fail(self.client.poll_one(name), "broken")
        cancelled = self.client.start(name)
        self.client.call("CancelInstance", instance_id=cancelled, reason="not needed")
        gated_name = self.define(("gate", "g"), "b")
        gated = self.client.start(gated_name)
        self.client.report(self.client.poll_one(gated_name), False)
        got = {e.instance_id: (e.type, plain(e.payload)) for e in self.finish(consumer, 6) if e.HasField("payload")}
        self.assertEqual(got[failed], ("wf.failed", {"error": "a: broken"}))
        self.assertEqual(got[cancelled], ("wf.cancelled", {"reason": "not needed"}))
        self.assertEqual(got[gated], ("wf.completed", {"reason": "gated:g"}))

    def test_a_saga_tells_both_ends(self):
        consumer = self.consumer()
        name = fresh_name("saga")
        definition = flow(name, "a", ("task", "b", NO_RETRY))
        definition["nodes"][0]["compensable"] = True
        self.client.register(definition)
        instance = self.client.start(name)
        self.client.report(self.client.poll_one(name), {})
        self.client.fail(self.client.poll_one(name), "broken")
        self.client.report(self.client.poll_one(name), None)
        got = [(e.type, plain(e.payload) if e.HasField("payload") else {}) for e in self.finish(consumer, 3)
               if e.instance_id == instance]
        self.assertEqual([t for t, _ in got], ["wf.started", "wf.compensating", "wf.compensated"])
        self.assertEqual(got[1][1], {"error": "b: broken"})

    def test_unacknowledged_entries_come_again_until_the_cursor_moves(self):
        consumer = self.consumer()
        self.run_one()
        got = self.finish(consumer, 2)
        self.assertEqual([e.seq for e in self.poll_events(consumer)], [e.seq for e in got])
        self.assertEqual([e.seq for e in self.poll_events(consumer, max=1)], [got[0].seq])
        self.assertEqual([e.seq for e in self.poll_events(consumer, max=0)], [got[0].seq], "0 or less is 1")
        self.ack(consumer, got[0])
        self.assertEqual([e.seq for e in self.poll_events(consumer)], [e.seq for e in got[1:]])
        self.ack(consumer, got[-1])
        self.assertEqual(self.poll_events(consumer), [])
        self.ack(consumer, got[0])
        self.assertEqual(self.poll_events(consumer), [], "never backwards")

    def test_consumers_are_independent_and_start_from_counts_once(self):
        early = fresh_name("early-" + self.server)
        instance = self.run_one()
        first = self.poll_events(early, start_from=-1)
        self.assertGreaterEqual(len(first), 2)
        tail = self.consumer()
        self.assertEqual(self.poll_events(tail, start_from=-1), [], "registered already: from now on")
        self.run_one()
        self.assertEqual(len(self.finish(tail, 2)), 2)
        again = self.poll_events(early, start_from=0)
        self.assertEqual(again[0].seq, first[0].seq)
        self.ack(tail, self.poll_events(tail)[-1])
        self.assertEqual(self.poll_events(early)[0].seq, first[0].seq)
        self.assertTrue(instance)

    def test_refusals(self):
        for consumer in ("", "   "):
            self.refused(INVALID, NO_NAME, self.poll_events, consumer)
            self.refused(INVALID, NO_NAME, self.client.call, "AckEvents", consumer=consumer, acked_cursor="0:1")
        self.refused(INVALID, "*consumer*", self.poll_events, "c" * 201)
        consumer = self.consumer()
        for text in (" ", "x", "0", "0:", ":1", "0:-1", "-1:0", "0:1,0:2", "0:1,", ",0:1", "0:1 ", "0:x", "0:1:2", "1.5:2",
                     "0:99999999999999999999"):
            self.refused(INVALID, "not an event cursor: '%s'; ack with the cursor of the last event you handled" % text,
                         self.client.call, "AckEvents", consumer=consumer, acked_cursor=text)

    def test_acknowledging_for_nobody_or_beyond_the_end(self):
        stranger = fresh_name("stranger-" + self.server)
        self.assertTrue(self.client.call("AckEvents", consumer=stranger, acked_cursor="%d:5" % self.shard).ok)
        consumer = self.consumer()
        self.client.call("AckEvents", consumer=consumer, acked_cursor="%d:%d,77:12" % (self.shard, (1 << 63) - 1))
        self.run_one()
        self.assertEqual(len(self.finish(consumer, 2)), 2, "clamped to the log's end as it was")

    def test_a_long_poll_ends_at_its_time_or_with_the_first_entry(self):
        """The first entry thirty times; the look that a proxy takes every two seconds would take 60."""
        consumer = self.consumer()
        begin = time.monotonic()
        self.assertEqual(self.poll_events(consumer, wait=400), [])
        self.assertGreaterEqual(time.monotonic() - begin, 0.3)
        name = self.define("a")
        begin = time.monotonic()
        for _ in range(30):
            waiting = self.in_background(self.poll_events, consumer, 10, 15000)
            self.parked(1)
            instance = self.client.start(name)
            got = waiting()
            self.assertEqual([(e.instance_id, e.type) for e in got], [(instance, "wf.started")])
            self.ack(consumer, got[0])
        self.assertLess(time.monotonic() - begin, 45)
        # What waits longest here waits for 20 seconds.
        begin = time.monotonic()
        self.assertEqual(self.poll_events(consumer, wait=-5), [])
        self.assertLess(time.monotonic() - begin, 15)

    def parked(self, n):
        server = getattr(world, self.server)

        def enough():
            text = server.http("/metrics")[1]
            return any(line == "wiggle_proxy_event_polls %d" % n for line in text.splitlines())
        wait_for(enough, 60, "%d waiting polls" % n)

    def test_a_client_that_goes_away_leaves_nothing_behind(self):
        self.parked(0)
        consumer = self.consumer()
        call = self.client.future("PollEvents", consumer=consumer, max=1, wait_millis=15000)
        self.parked(1)
        call.cancel()
        self.parked(0)

    def test_a_transaction_that_stays_open_loses_nothing(self):
        """Entries after one that is not committed yet wait for it; none before it does."""
        consumer = self.consumer()
        shard = world.lone if self.server == "single" else world.shards[self.shard]
        name = self.define("a")
        session = subprocess.Popen(["psql", "-X", "-q", "-A", "-t", "-d", shard.conninfo()], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(session.communicate)
        before = self.client.start(name)
        self.assertEqual([e.instance_id for e in self.finish(consumer, 1)], [before])
        session.stdin.write("begin; select wiggle.start('%s');\n" % name)
        session.stdin.flush()
        slow = session.stdout.readline().strip()
        after = self.client.start(name)
        self.assertEqual([e.instance_id for e in self.poll_events(consumer, wait=300)], [before])
        session.stdin.write("commit;\n")
        session.stdin.flush()
        self.assertEqual([e.instance_id for e in self.finish(consumer, 3)], [before, slow, after])

    def test_a_rolled_back_transaction_holds_nobody_up(self):
        consumer = self.consumer()
        shard = world.lone if self.server == "single" else world.shards[self.shard]
        name = self.define("a")
        session = subprocess.Popen(["psql", "-X", "-q", "-A", "-t", "-d", shard.conninfo()], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(session.communicate)
        session.stdin.write("begin; select wiggle.start('%s');\n" % name)
        session.stdin.flush()
        session.stdout.readline()
        after = self.client.start(name)
        waiting = self.in_background(self.poll_events, consumer, 10, 15000)
        self.parked(1)
        session.stdin.write("rollback;\n")
        session.stdin.flush()
        self.assertEqual([e.instance_id for e in waiting()], [after])

    def test_a_large_log_comes_in_answers_that_can_be_received(self):
        consumer = self.consumer()
        name = self.define("a")
        big = "x" * 300_000
        for i in range(20):
            self.client.start(name)
            task = self.client.poll_one(name)
            step = pb.StepResult(node_id="n1")
            event = step.events.add(type="big.one")
            event.payload.struct_value["n"] = i
            event.payload.struct_value["big"] = big
            self.client.call("ReportSteps", runs=[pb.ReportedRun(task_id=task.task_id, lease_owner=task.lease_owner,
                                                                 steps=[step], final=True)])
        seen = []
        while True:
            got = self.poll_events(consumer)
            if not got:
                break
            seen += [plain(e.payload)["n"] for e in got if e.type == "big.one"]
            self.ack(consumer, got[-1])
        self.assertEqual(seen, list(range(20)))


Cases.__name__ = "Events"
globals().update(doors(Cases))


class Numbers(Feeds, ClientTest):
    """What only a log of one shard allows."""

    server = "single"
    shard = 0

    def test_start_after_a_number_and_acknowledge_a_number(self):
        base = self.consumer()
        self.run_one()
        first, second = self.finish(base, 2)[:2]
        consumer = fresh_name("numbers")
        got = self.poll_events(consumer, start_from=first.seq)
        self.assertEqual([e.seq for e in got][:1], [second.seq])
        self.client.call("AckEvents", consumer=consumer, acked_seq=second.seq)
        self.assertNotIn(second.seq, [e.seq for e in self.poll_events(consumer)])
        self.client.call("AckEvents", consumer=consumer, acked_seq=first.seq)
        self.client.call("AckEvents", consumer=consumer, acked_seq=-5)
        self.assertNotIn(second.seq, [e.seq for e in self.poll_events(consumer)])
        self.client.call("AckEvents", consumer=base, acked_seq=1, acked_cursor=second.cursor)
        self.assertNotIn(second.seq, [e.seq for e in self.poll_events(base)], "the cursor wins")


class Vector(Feeds, ClientTest):
    """The logs of two shards as one."""

    def test_merged_by_time_with_a_vector_cursor(self):
        consumer = self.consumer()
        name = self.define("a")
        ids = [self.client.start(name) for _ in range(10)]
        got = self.finish(consumer, 10)
        self.assertEqual({e.instance_id for e in got}, set(ids))
        self.assertEqual({e.shard for e in got}, {0, 1})
        self.assertEqual([e.created_at for e in got], sorted(e.created_at for e in got))
        places = {}
        for event in got:
            places[event.shard] = event.seq
            pairs = dict(pair.split(":") for pair in event.cursor.split(","))
            self.assertEqual(list(pairs), ["0", "1"])
            self.assertEqual(int(pairs[str(event.shard)]), event.seq)
            for shard, seq in places.items():
                self.assertEqual(int(pairs[str(shard)]), seq)
        self.ack(consumer, got[4])
        self.assertEqual([e.seq for e in self.poll_events(consumer)], [e.seq for e in got[5:]])
        one_shard = "1:%d" % max(e.seq for e in got if e.shard == 1)
        self.client.call("AckEvents", consumer=consumer, acked_cursor=one_shard)
        self.assertEqual([e.seq for e in self.poll_events(consumer)], [e.seq for e in got[5:] if e.shard == 0])

    def test_what_names_a_place_in_one_log_is_refused(self):
        self.refused(INVALID, "*start_from 5 is a place in one log*", self.poll_events, fresh_name("vector"), start_from=5)
        self.refused(INVALID, "*acked_seq 5 is a place in one log*", self.client.call, "AckEvents",
                     consumer=self.consumer(), acked_seq=5)

    def test_the_cursor_lives_on_home_for_all_proxies(self):
        consumer = self.consumer()
        other = Client(world.away.address)
        self.addCleanup(other.close)
        name = self.define("a")
        self.client.start(name)
        got = self.finish(consumer, 1)
        self.assertEqual([e.seq for e in self.poll_events(consumer, client=other)], [e.seq for e in got])
        other.call("AckEvents", consumer=consumer, acked_cursor=got[-1].cursor)
        self.assertEqual(self.poll_events(consumer), [])

    def test_a_forgotten_consumer_holds_no_log_back(self):
        consumer = self.consumer()
        name = self.define("a")
        self.client.start(name)
        self.ack(consumer, self.finish(consumer, 1)[-1])
        held = "select count(*) from wiggle.wf_event_cursor where consumer = :'name'"
        wait_for(lambda: self.poll_events(consumer) == [] and
                 [s.psql(held, name=consumer) for s in world.shards] == ["2", "1"], 20, "its places on both shards")
        self.assertTrue(self.client.call("ForgetConsumer", consumer=consumer).existed)
        self.assertEqual([s.psql(held, name=consumer) for s in world.shards], ["0", "0"])
        self.assertFalse(self.client.call("ForgetConsumer", consumer=consumer).existed)
        for blank in ("", " "):
            self.refused(INVALID, NO_NAME, self.client.call, "ForgetConsumer", consumer=blank)

    def test_a_shard_knows_how_far_it_may_trim(self):
        consumer = self.consumer()
        name = self.define("a")
        for _ in range(4):
            self.client.start(name)
        got = self.finish(consumer, 4)

        def place(shard, of):
            return world.shards[shard].psql("select acked from wiggle.wf_event_cursor where consumer = :'c' and shard = :of",
                                            c=consumer, of=of)
        self.assertEqual(place(1, 1), place(0, 1))
        self.ack(consumer, got[-1])
        self.poll_events(consumer)
        self.assertEqual(place(1, 1), str(max(e.seq for e in got if e.shard == 1)))
        self.assertEqual(place(1, 1), place(0, 1))

    def test_bounds_on_waiting_polls(self):
        proxy = Proxy(world.AREA, topology(*world.shards), name="bounded-events", WIGGLE_MAX_EVENT_POLLS=2,
                      WIGGLE_POLL_RETRY_MILLIS=321).start()
        self.addCleanup(proxy.stop)
        client = Client(proxy.address)
        self.addCleanup(client.close)
        consumer = self.consumer()
        held = [client.future("PollEvents", consumer=consumer, max=1, wait_millis=15000) for _ in range(2)]
        wait_for(lambda: "wiggle_proxy_event_polls 2" in proxy.http("/metrics")[1], 60, "two waiting polls")
        reply = client.call("PollEvents", consumer=consumer, max=1, wait_millis=15000)
        self.assertEqual(list(reply.events), [])
        self.assertTrue(321 <= reply.retry_after_millis <= 642, reply.retry_after_millis)
        self.assertEqual(proxy.stop(), 0)
        for call in held:
            self.assertEqual(list(call.result().events), [], "a drain answers them empty")


class OneDown(OwnWorld, Feeds):
    """Two shards of its own, one of which goes."""

    def test_the_others_entries_are_served_and_nothing_is_lost(self):
        name = self.define("a")
        consumer = fresh_name("down")
        self.poll_events(consumer)
        here, there = self.start_on(0, name), self.start_on(1, name)
        wait_for(lambda: len(self.poll_events(consumer)) >= 2, 60, "both entries")
        self.control(1, "-m", "fast", "stop")
        wait_for(lambda: not self.proxy.ready(), 60, "readiness to fall")
        got = wait_for(lambda: self.quietly(consumer), 60, "entries of the shard that is up")
        self.assertIn(here, [e.instance_id for e in got])
        self.assertEqual({e.shard for e in got}, {0})
        self.client.call("AckEvents", consumer=consumer, acked_cursor=got[-1].cursor)
        self.refused(UNAVAILABLE, "*temporarily unavailable*", self.poll_events, fresh_name("new"))
        self.control(1, "-l", os.path.join(self.shards[1].folder, "log"), "restart")
        wait_for(self.proxy.ready, 60, "readiness to come back")
        later = wait_for(lambda: self.quietly(consumer), 60, "entries of the shard that was down")
        self.assertIn(there, [e.instance_id for e in later])
        self.assertEqual({e.shard for e in later}, {1})

    def control(self, shard, *arguments):
        subprocess.run(["pg_ctl", "-D", os.path.join(self.shards[shard].folder, "data"), "-w", "-s", *arguments],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def quietly(self, consumer):
        try:
            return self.poll_events(consumer)
        except grpc.RpcError:
            return []

    def test_without_home_it_is_unavailable(self):
        self.define("a")
        self.control(0, "-m", "fast", "stop")
        wait_for(lambda: not self.proxy.ready(), 60, "readiness to fall")
        for call in (lambda: self.poll_events("x"), lambda: self.client.call("ListSchedules"),
                     lambda: self.client.call("GetCluster")):
            with self.assertRaises(grpc.RpcError) as caught:
                call()
            self.assertEqual(caught.exception.code(), UNAVAILABLE)
            self.assertRegex(caught.exception.details(), r"^storage temporarily unavailable \(ref [0-9a-f]{8}\)$")


class Crowds(Feeds, ClientTest):
    """Many consumers at once, on one shard of their own."""

    server = "crowds"

    @classmethod
    def setUpClass(cls):
        cls.shard = world.make_shard("crowds")
        cls.addClassCleanup(cls.shard.stop)
        world.crowds = Proxy(world.AREA, topology(cls.shard), name="crowds").start()
        cls.addClassCleanup(world.crowds.stop)

    def metric(self, name):
        return sum(float(line.rsplit(" ", 1)[1]) for line in world.crowds.http("/metrics")[1].splitlines()
                   if re.match(name + "[ {]", line))

    def psql(self, sql):
        """Begin a transaction that stays open; its session and what it said."""
        session = subprocess.Popen(["psql", "-X", "-q", "-A", "-t", "-d", self.shard.conninfo()], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(session.communicate)
        session.stdin.write("begin; %s; select 'done';\n" % sql)
        session.stdin.flush()
        said = list(iter(session.stdout.readline, "done\n"))
        return session, "".join(said).strip()

    def waiting_for_locks(self):
        return int(self.shard.psql("select count(*) from pg_stat_activity where wait_event_type = 'Lock'"))

    def park(self, consumers):
        calls = [self.client.future("PollEvents", consumer=c, max=1000, wait_millis=20000) for c in consumers]
        wait_for(lambda: self.metric("wiggle_proxy_event_polls") == len(consumers), 10, "waiting polls")
        return calls

    def test_a_log_that_has_nothing_to_show_is_looked_at_once_for_all(self):
        name = self.define(("sleep", 3600000))
        consumers = [self.consumer() for _ in range(20)]
        calls = self.park(consumers)
        self.client.start(name)
        for consumer, call in zip(consumers, calls):
            self.ack(consumer, call.result().events[-1])
        looks = self.metric("wiggle_proxy_event_looks_total")
        calls = self.park(consumers)
        wait_for(lambda: self.metric("wiggle_proxy_event_looks_total") == looks + 20, 10, "a look of each")
        holder, held = self.psql("select wiggle.start('%s')" % name)
        heard, ids = self.metric("wiggle_proxy_wakeups_total"), [held]
        while self.metric("wiggle_proxy_wakeups_total") < heard + 3:
            ids.append(self.client.start(name))
        self.assertEqual(self.metric("wiggle_proxy_event_looks_total"), looks + 20)
        holder.communicate("commit;\n")
        for call in calls:
            self.assertEqual([e.instance_id for e in call.result().events], ids)
        self.assertEqual(self.metric("wiggle_proxy_event_looks_total"), looks + 40)

    def test_looks_that_hang_keep_no_read_waiting(self):
        instance = self.client.start(self.define("a"))
        consumers = [self.consumer() for _ in range(20)]
        holder, _ = self.psql("lock table wiggle.wf_event_cursor")
        calls = self.park(consumers)
        wait_for(self.waiting_for_locks, 10, "looks that hang")
        self.assertEqual(self.client.status(instance), "RUNNING")
        self.assertFalse(any(call.done() for call in calls))
        for call in calls:
            call.cancel()
        holder.communicate("rollback;\n")

    def test_signals_that_wait_for_an_instance_hold_up_no_other_call(self):
        name = self.shorthand({"await_signal": "go"})
        locked, other = self.client.start(name), self.client.start(name)
        consumer = fresh_name("beside")
        holder, _ = self.psql("select from wiggle.wf_instance where id = '%s' for update" % locked)
        calls = [self.client.future("SignalInstance", instance_id=locked, signal="go") for _ in range(20)]
        wait_for(self.waiting_for_locks, 10, "signals that wait")
        self.assertEqual(self.client.status(other), "RUNNING")
        self.assertIn(other, [e.instance_id for e in self.poll_events(consumer, start_from=-1)])
        self.assertIn(other, [i.id for i in self.client.call("ListInstances", workflow=name).instances])
        self.assertFalse(any(call.done() for call in calls))
        for call in calls:
            call.cancel()
        holder.communicate("rollback;\n")


class Hangs(OwnWorld, Feeds):
    """Two shards of its own, one of which takes connections and says nothing."""

    def test_the_others_entries_are_served_and_acknowledged(self):
        name = self.define("a")
        consumer = fresh_name("hangs")
        self.poll_events(consumer)
        here, there = self.start_on(0, name), self.start_on(1, name)
        wait_for(lambda: len(self.poll_events(consumer)) >= 2, 10, "both entries")
        wake = self.silence(1)

        # within the deadline of the calls, which is less than it takes to give the shard up
        got = self.poll_events(consumer)
        self.assertIn(here, [e.instance_id for e in got])
        self.assertEqual({e.shard for e in got}, {0})
        self.ack(consumer, got[-1])
        waiting = self.in_background(self.poll_events, consumer, 10, 15000)
        new = self.start_on(0, name)
        self.assertEqual([e.instance_id for e in waiting() if e.instance_id == new], [new])

        wake()
        wait_for(lambda: there in [e.instance_id for e in self.poll_events(consumer)], 20, "the entries that hung")
