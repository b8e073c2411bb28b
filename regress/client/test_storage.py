"""What becomes of calls when databases stall, fail or hold too much."""
import os
import re
import signal
import subprocess

import grpc

import world
from connect import Http1, Http2
from harness import Proxy, Waiting, topology, wait_for
from relay import Relay
from test_cli import wiggle
from test_failover import Load
from wigclient import NO_RETRY, Client, ClientTest, flow, fresh_name, plain, run_of

PART = (("wiggle-partial", "allow"),)


class OwnWorld(ClientTest):
    """Two shards and a proxy that the test may harm."""

    settings = {}
    home_settings = ()
    generations = None

    def setUp(self):
        self.shards = [world.make_shard("%s-%d" % (self.id().split(".")[-1][:24], i), *settings)
                       for i, settings in enumerate((self.home_settings, ()))]
        for shard in self.shards:
            self.addCleanup(shard.stop)
        self.proxy = self.start_proxy("")
        self.client = Client(self.proxy.address)
        self.addCleanup(self.client.close)

    def start_proxy(self, suffix, generations=None):
        proxy = Proxy(world.AREA, topology(*self.shards, generations=generations or self.generations),
                      name=self.id().split(".")[-1] + suffix, **self.settings).start()
        self.addCleanup(proxy.stop)
        return proxy

    def start_on(self, shard, workflow, context=None, **more):
        """Start instances until one lands on the shard."""
        for _ in range(20):
            instance = self.client.start(workflow, context, **more)
            if instance.startswith("wfi.s%d." % shard):
                return instance
        self.fail("placement never chose shard %d" % shard)

    def backends(self, shard):
        return [int(pid) for pid in self.shards[shard].psql(
            "select pid from pg_stat_activity where application_name like 'wiggle-proxy%'").split()]

    def hold(self, shard, sql, database="wiggle"):
        """Run this in a transaction that stays open; the returned function rolls it back."""
        holder = subprocess.Popen(["psql", "-X", "-q", "-A", "-t", "-d", self.shards[shard].conninfo(database)],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

        def release():
            if holder.poll() is None:
                holder.communicate("rollback;\n")
        self.addCleanup(release)
        holder.stdin.write("begin; %s; select 'held';\n" % sql)
        holder.stdin.flush()
        for line in iter(holder.stdout.readline, "held\n"):
            self.assertEqual(line, "\n")
        return release

    def silence(self, shard):
        """Its server takes connections and says nothing, until what is returned is called."""
        pids = [self.shards[shard].postmaster]
        os.kill(pids[0], signal.SIGSTOP)
        with open("/proc/%d/task/%d/children" % (pids[0], pids[0]), encoding="ascii") as f:
            pids += [int(pid) for pid in f.read().split()]
        for pid in pids[1:]:
            os.kill(pid, signal.SIGSTOP)

        def wake():
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGCONT)
                except ProcessLookupError:
                    pass
        self.addCleanup(wake)
        return wake

    def stop_hard(self, shard):
        subprocess.run(["pg_ctl", "-D", self.shards[shard].data, "-m", "immediate", "-w", "-s", "stop"], check=True)

    def metric(self, name):
        return self.proxy.metric(name)


class Stalls(OwnWorld):
    def test_a_database_that_does_not_answer_delays_no_other(self):
        name = self.define("a")
        self.assertGreaterEqual(len(self.backends(1)), 3)
        wake = self.silence(1)

        # polls go into the stalled shard and have to come back out of it
        polls = [self.client.future("PollTasks", worker_id="w%d" % i, queues=[name], max=1, wait_millis=20000)
                 for i in range(4)]
        wait_for(lambda: self.metric("wiggle_proxy_parked_polls") == 4, 60, "polls to be parked again")
        ids = [self.client.start(name) for _ in range(4)]
        self.assertEqual({i.split(".")[1] for i in ids}, {"s0"})
        self.assertEqual(sorted(p.result().tasks[0].instance_id for p in polls), sorted(ids))

        self.lists_without_it(name)
        wake()
        wait_for(lambda: self.client.start(name).startswith("wfi.s1."), 60, "shard 1 to be chosen again")

    def lists_without_it(self, name):
        """Who takes part is given what the other has, long before the stalled session is given up (25 s)."""
        calls = [(rpc, self.client.future(rpc, timeout=20, metadata=PART, **fields)) for rpc, fields in
                 (("ListInstances", {"workflow": name}), ("GetStepStats", {"workflow": name}), ("GetBacklogCoverage", {}))]
        for rpc, call in calls:
            with self.subTest(rpc=rpc):
                call.result()
                self.assertEqual(dict(call.initial_metadata()).get("wiggle-missing-shards"), "1")

    def test_a_locked_instance_fails_alone(self):
        name = self.define("a")
        ids = [self.start_on(0, name) for _ in range(3)]
        tasks = {t.instance_id: t for t in self.client.poll(name, max=100)}
        wait_for(lambda: tasks.update({t.instance_id: t for t in self.client.poll(name, max=100, wait=0)})
                 or set(ids) <= set(tasks), 60, "all tasks")
        release = self.hold(0, "select from wiggle.wf_instance where id = '%s' for update" % ids[0])

        def report(instance):
            task = tasks[instance]
            run = {"task_id": task.task_id, "lease_owner": task.lease_owner, "steps": [{"node_id": task.node_id}],
                   "final": True}
            return self.client.future("ReportSteps", timeout=60, runs=[run])
        calls = [report(i) for i in ids]
        with self.assertRaises(grpc.RpcError) as caught:
            calls[0].result()
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)
        for call in calls[1:]:
            self.assertEqual(call.result().results[0].applied.instance_status, "COMPLETED")
        release()
        again = report(ids[0]).result()
        self.assertEqual(again.results[0].applied.instance_status, "COMPLETED")

    def start_on_other(self, load, shard, name):
        """An instance that is not on this shard, whatever is refused before."""
        return wait_for(lambda: next((i for i in [load.attempt(self.client.start, name, {})] if i is not None
                                      and not i.startswith("wfi.s%d." % shard)), None), 60, "a start elsewhere")

    def test_a_locked_table_is_waited_for_by_nobody_else(self):
        """Calls of its shard are refused, of the others served; what had been started before is done afterwards."""
        name, stuck = self.define("a", "b"), self.define("a", "b")
        # a second proxy starts everything in the table that will be locked
        away = self.start_proxy("-away", [{"id": 2, "activeFrom": "2026-01-01T00:00:00Z", "weights": {"0": 0, "1": 1}}])
        load, stuck_load = Load([self.proxy.address], name), Load([away.address], stuck)
        load.more(50)
        stuck_load.more(50)
        there = self.start_on(1, name)
        release = self.hold(1, "lock table wiggle.wf_instance in access exclusive mode")
        waiting = Waiting(away)
        refused = self.client.future("CancelInstance", instance_id=there)
        load.more(6)
        self.assertEqual(refused.exception().code(), grpc.StatusCode.UNAVAILABLE)
        self.assertIn(self.client.status(self.start_on_other(load, 1, name)), ("RUNNING", "COMPLETED"))
        waiting.lasts(30)
        waiting.is_quiet(self)
        release()
        self.start_on_other(load, 0, name)
        stuck_load.more(50)
        for some in (load, stuck_load):
            some.end(self.shards)
            some.is_as_acknowledged(self, self.shards)
            self.assertEqual(set(some.refused) - {grpc.StatusCode.UNAVAILABLE}, set())
        self.assertEqual([proxy.process.poll() for proxy in (self.proxy, away)], [None, None])

    def test_a_locked_instance_costs_its_neighbours_no_call(self):
        """The batch is halved until the instance is alone; nobody waits behind it for long enough to be refused."""
        name = self.define("a")
        ids = self.shards[0].psql("select wiggle.start(:'wf') from generate_series(1, 72)", wf=name).split()
        tasks = {}
        while len(tasks) < 72:
            tasks.update((t.instance_id, t) for t in self.client.poll(name, max=72, lease_millis=600000))
        locker = subprocess.Popen(["psql", "-X", "-q", "-A", "-t", "-d", self.shards[0].conninfo()], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(locker.communicate)
        locker.stdin.write("begin; select id from wiggle.wf_instance where id = '%s' for update;\n" % ids[5])
        locker.stdin.flush()
        self.assertEqual(locker.stdout.readline().strip(), ids[5])

        def report(instance):
            return self.client.future("ReportSteps", timeout=120, runs=[run_of(tasks[instance])])
        reports = {i: report(i) for i in ids[:8]}
        wait_for(lambda: self.shards[0].psql("select count(*) from pg_stat_activity where wait_event_type = 'Lock'") != "0",
                 10, "a batch that waits")
        beats = [self.client.future("HeartbeatTask", timeout=120, task_id=tasks[i].task_id,
                                    lease_owner=tasks[i].lease_owner, extend_millis=600000) for i in ids[8:]]
        for beat in beats:
            self.assertGreater(beat.result().lease_expires_at, 0)
        for instance in ids[:8]:
            if instance != ids[5]:
                self.assertEqual(reports[instance].result().results[0].applied.instance_status, "COMPLETED")
        with self.assertRaises(grpc.RpcError) as caught:
            reports[ids[5]].result()
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)


class HomeDown(OwnWorld):
    def test_without_home_everything_but_registration_goes_on(self):
        name = self.define("a")
        away = self.start_on(1, name)
        parked = self.client.future("PollTasks", worker_id="w", queues=["nothing"], max=1, wait_millis=1500)
        self.stop_hard(0)
        wait_for(lambda: not self.proxy.ready(), 60, "readiness to fall")
        self.assertEqual(list(parked.result().tasks), [])
        self.assertEqual({self.client.start(name).split(".")[1] for _ in range(4)}, {"s1"})
        self.assertEqual(plain(self.client.call("GetWorkflow", name=name).definition)["name"], name)
        self.assertEqual(list(self.client.call("ListWorkflows").workflows), [name])
        self.assertEqual(self.client.status(away), "RUNNING")
        tasks = self.client.poll(name, max=10)
        self.assertIn(away, [t.instance_id for t in tasks])
        unavailable = grpc.StatusCode.UNAVAILABLE
        with self.assertRaises(grpc.RpcError) as caught:
            self.client.register(flow(name, "a"))
        self.assertEqual(caught.exception.code(), unavailable)
        self.assertRegex(caught.exception.details(), r"^storage temporarily unavailable \(ref [0-9a-f]{8}\) \(shard 0\)$")
        self.refused(unavailable, "*storage temporarily unavailable*", self.client.call, "ListInstances")
        self.shards[0].start()


class PartOfAll(OwnWorld):
    """What asks every shard, with one that is down."""

    def setUp(self):
        super().setUp()
        self.workflow = self.define("a")
        self.here = self.start_on(0, self.workflow, correlation_id="here")
        self.there = self.start_on(1, self.workflow, correlation_id="there")
        self.others = {i.id for i in self.client.call("ListInstances", workflow=self.workflow).instances}
        self.stop_hard(1)
        wait_for(lambda: not self.proxy.ready(), 60, "readiness to fall")

    def asked(self, rpc, metadata=(), **fields):
        """The reply, and the shards that it lacks."""
        request, method = self.client.method(rpc)
        reply, call = method.with_call(request(**fields), timeout=60, metadata=metadata)
        return reply, dict(call.initial_metadata()).get("wiggle-missing-shards")

    def test_a_list_is_whole_or_refused_unless_a_part_is_asked_for(self):
        unavailable = grpc.StatusCode.UNAVAILABLE
        here = {i for i in self.others if i.startswith("wfi.s0.")}
        for rpc, fields in (("ListInstances", {"workflow": self.workflow}), ("GetStepStats", {"workflow": self.workflow}),
                            ("GetBacklogCoverage", {})):
            with self.subTest(rpc=rpc):
                self.refused(unavailable, "*storage temporarily unavailable*", self.client.call, rpc, **fields)
                self.assertEqual(self.asked(rpc, PART, **fields)[1], "1")
        self.assertEqual({i.id for i in self.asked("ListInstances", PART, workflow=self.workflow)[0].instances}, here)
        with self.assertRaises(grpc.RpcError) as caught:
            self.asked("GetStepStats", PART, workflow="nobody's")
        self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)
        answer = Http1(self.proxy).send("ListInstances", {"workflow": self.workflow}, wiggle_partial="allow")
        self.assertEqual((answer.status, answer.headers.get("wiggle-missing-shards")), (200, "1"))
        answer = Http2(self.proxy).send("ListInstances", {"workflow": self.workflow}, wiggle_partial="allow")
        self.assertEqual((answer.status, answer.headers.get("wiggle-missing-shards")), (200, "1"))

    def test_what_a_correlation_id_finds_is_an_answer_and_nothing_is_not(self):
        reply, missing = self.asked("ListInstances", correlation_id="here")
        self.assertEqual(([i.id for i in reply.instances][0].split(".")[1], missing), ("s0", "1"))
        self.refused(grpc.StatusCode.UNAVAILABLE, "*storage temporarily unavailable*", self.client.call, "ListInstances",
                     correlation_id="elsewhere")

    def test_the_command_line_shows_what_there_is_and_says_so(self):
        done = wiggle("list", "--workflow", self.workflow, server=self.proxy.address)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(self.here, done.stdout)
        self.assertNotIn(self.there, done.stdout)
        self.assertIn("shard 1 does not answer: what it holds is not in here", done.stderr)


class LostAnswers(ClientTest):
    """What was applied is learnt by asking again, never guessed."""

    def setUp(self):
        self.shard = world.make_shard("lost-" + self.id().split(".")[-1][5:25])
        self.addCleanup(self.shard.stop)
        self.relay = Relay(self.shard.port)
        self.addCleanup(self.relay.close)
        document = topology(self.shard)
        document["shards"][0]["primary"]["url"] = "postgresql://127.0.0.1:%d/wiggle" % self.relay.port
        self.proxy = Proxy(world.AREA, document, name=self.id().split(".")[-1]).start()
        self.addCleanup(self.proxy.stop)
        self.client = Client(self.proxy.address)
        self.addCleanup(self.client.close)
        self.name = self.define("a", "b")

    def lose(self, marker, for_good=False):
        self.relay.lose_next(marker.encode(), for_good)

    def lost(self, times):
        self.assertEqual(self.relay.lost, times)

    def test_a_start_is_made_once(self):
        self.lose("only-once")
        instance = self.client.start(self.name, correlation_id="only-once")
        self.lost(1)
        self.assertEqual(self.shard.psql("select id from wf_instance"), instance)

    def test_a_report_counts_once(self):
        self.client.start(self.name)
        task = self.client.poll_one(self.name)
        self.lose(task.task_id)
        outcome = self.client.report(task, {"n": 1})
        self.lost(1)
        self.assertEqual(outcome.error_status, 0)
        self.assertEqual(outcome.applied.instance_status, "RUNNING")
        self.assertEqual(self.shard.psql("select count(*) from wf_token"), "2")
        following = self.client.poll_one(self.name)
        self.assertEqual(following.step_name, "b")
        # and once more by the worker itself it is a conflict as ever
        self.assertEqual(self.client.report(task).error_status, 409)
        self.assertEqual(self.client.report(following).applied.instance_status, "COMPLETED")

    def test_a_failure_spends_one_attempt(self):
        instance = self.client.start(self.name)
        task = self.client.poll_one(self.name)
        self.lose(task.task_id)
        self.client.fail(task)
        self.lost(1)
        self.assertEqual([t.attempt for t in self.client.get(instance).tokens], [1])

    def test_a_heartbeat_is_repeated(self):
        self.client.start(self.name)
        task = self.client.poll_one(self.name)
        self.lose(task.task_id)
        reply = self.client.call("HeartbeatTask", task_id=task.task_id, lease_owner=task.lease_owner,
                                 extend_millis=600000)
        self.lost(1)
        self.assertGreater(reply.lease_expires_at, task.lease_expires_at + 500000)

    def test_what_a_lost_poll_claimed_comes_at_once(self):
        instance = self.client.start(self.name)
        self.lose("loser")
        task = self.client.poll_one(self.name, worker="loser", wait=20000)
        self.lost(1)
        self.assertEqual(task.instance_id, instance)
        self.assertEqual(task.attempt, 1, "neither its lease nor the poll had to run out")
        self.assertEqual(self.client.report(task).error_status, 0)

    def test_a_registration_is_repeated(self):
        name = fresh_name()
        self.lose(name)
        self.assertEqual(self.client.register(flow(name, "a")).name, name)
        self.lost(1)

    def test_a_cancel_is_repeated(self):
        instance = self.client.start(self.name)
        self.lose(instance)
        self.assertEqual(self.client.call("CancelInstance", instance_id=instance).cancelled, instance)
        self.lost(1)
        self.assertEqual(self.client.status(instance), "CANCELLED")

    def test_a_fate_that_cannot_be_learnt_is_internal(self):
        self.lose("never-told", for_good=True)
        with self.assertRaises(grpc.RpcError) as caught:
            self.client.start(self.name, correlation_id="never-told", timeout=60)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.INTERNAL)
        self.assertRegex(caught.exception.details(), r"^internal error \(ref [0-9a-f]{8}\)$")
        self.assertEqual(self.shard.psql("select count(*) from wf_instance"), "1")
        self.refused(grpc.StatusCode.UNAVAILABLE, "*storage temporarily unavailable*", self.client.start, self.name)


class Culprits(OwnWorld):
    def test_one_bad_item_never_fails_its_neighbours(self):
        name = self.define("a")
        for shard in self.shards:
            shard.psql("""
                create function public.refuse() returns trigger language plpgsql as
                $$ begin if new.correlation_id = 'bad' then raise 'secret of %', new.correlation_id; end if; return new; end $$;
                create trigger refuse before insert on wiggle.wf_instance for each row execute function public.refuse();
                """)
        calls = [(i, self.client.future("StartInstance", workflow=name, correlation_id="bad" if i % 20 == 7 else "ok"))
                 for i in range(100)]
        for i, call in calls:
            if i % 20 != 7:
                self.assertTrue(call.result().instance_id)
                continue
            with self.assertRaises(grpc.RpcError) as caught:
                call.result()
            self.assertEqual(caught.exception.code(), grpc.StatusCode.INTERNAL)
            self.assertRegex(caught.exception.details(), r"^internal error \(ref [0-9a-f]{8}\)$")
        self.assertEqual(sum(int(s.psql("select count(*) from wf_instance")) for s in self.shards), 95)
        self.assertGreater(self.metric("wiggle_proxy_lane_replayed_items_total"), 0)


class Schema(OwnWorld):
    def test_an_extension_dropped_under_the_proxy(self):
        name = self.define("a")
        self.start_on(1, name)
        self.shards[1].psql("drop extension wiggle cascade")
        instance = "wfi.s1.0123456789abcdefghjkmn"

        def refused_with():
            with self.assertRaises(grpc.RpcError) as caught:
                self.client.get(instance)
            return caught.exception.code()
        wait_for(lambda: refused_with() == grpc.StatusCode.UNAVAILABLE, 60, "UNAVAILABLE")
        wait_for(lambda: not self.proxy.ready(), 60, "readiness to fall")
        self.start_on(0, name)

        # the proxy does not bring back what somebody has dropped, but takes it when it is there
        self.shards[1].psql("create extension wiggle")
        wait_for(self.proxy.ready, 60, "the shard to be claimed again")
        self.assertEqual(self.shards[1].psql("select shard_id from wiggle.shard()"), "1")
        self.refused(grpc.StatusCode.NOT_FOUND, "instance not found", self.client.get, instance)

    def test_an_extension_made_anew_in_one_transaction(self):
        """Prepared statements then name types that are gone, which no SQLSTATE tells."""
        name = self.define("a")
        self.start_on(1, name)
        self.client.poll(name, max=1)
        definition = self.shards[1].psql("select wiggle.definition('%s')" % name)
        self.shards[1].psql("begin; drop extension wiggle cascade; create extension wiggle;"
                            " select wiggle.shard_claim(1); select wiggle.register('%s'); commit" % definition)

        def serves_again():
            try:
                self.start_on(1, name)
                return True
            except grpc.RpcError as e:
                self.assertEqual(e.code(), grpc.StatusCode.UNAVAILABLE, e.details())
                return False
        wait_for(serves_again, 60, "the shard to serve again")
        wait_for(self.proxy.ready, 60, "readiness")


class Sizes(OwnWorld):
    def test_a_full_answer_is_packed_by_bytes(self):
        name = self.define("a")
        text = "x" * 100000
        started = [self.client.future("StartInstance", workflow=name, context={"string_value": text})
                   for _ in range(100)]
        ids = {call.result().instance_id for call in started}
        got = []
        while len(got) < 100:
            tasks = self.client.poll(name, max=100, lease_millis=600000)
            self.assertTrue(tasks, "%d of 100 have come" % len(got))
            got += tasks
        self.assertEqual({t.instance_id for t in got}, ids)
        self.assertEqual(len(got), 100)
        leases = sum(int(s.psql("select count(*) from wiggle.wf_lease")) for s in self.shards)
        self.assertEqual(leases, 100)

    def test_a_context_that_no_answer_can_carry_ends_its_task(self):
        name = fresh_name()
        self.client.register(flow(name, ("task", "a", NO_RETRY)))
        big = self.shards[0].psql("select wiggle.start(:'wf', jsonb_build_object('x', repeat('y', 5000000)))", wf=name)
        small = self.start_on(0, name, {"small": True})
        wait_for(lambda: small in [t.instance_id for t in self.client.poll(name, max=10, wait=1000)], 60, "the task that fits")
        wait_for(lambda: self.shards[0].psql("select status from wiggle.instance(:'id')", id=big) == "FAILED", 60,
                 "the instance to fail")
        self.assertRegex(self.shards[0].psql("select error from wiggle.instance(:'id')", id=big),
                         r"^a: the context needs \d+ bytes on the wire; a poll's answer carries up to \d+$")
        self.refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "*read it with SQL*", self.client.get, big)
        self.refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "*ask for fewer*", self.client.call, "ListInstances",
                     workflow=name)

    def test_the_largest_context_that_an_answer_carries(self):
        """A client that takes 4 MiB gets what fits to the byte; one byte more ends the step."""
        name = fresh_name()
        self.client.register(flow(name, ("task", "a", NO_RETRY)))
        error = self.outcome(name, 4 << 20)
        needs, carries = map(int, re.fullmatch(
            r"a: the context needs (\d+) bytes on the wire; a poll's answer carries up to (\d+)", error).groups())
        fits = (4 << 20) - (needs - carries)
        self.assertIsNone(self.outcome(name, fits))
        self.assertRegex(self.outcome(name, fits + 1), r"^a: the context needs %d bytes" % (carries + 1))

    def outcome(self, name, size):
        """Poll an instance with a text of so many bytes; its error, None when the step was completed."""
        instance = self.shards[0].psql("select wiggle.start(:'wf', to_jsonb(repeat('y', :size)))", wf=name, size=size)

        def ended():
            for task in self.client.poll(name, wait=200):
                self.assertEqual(len(plain(task.context)), size)
                self.client.report(task, {})
            return self.shards[0].psql("select status from wiggle.instance(:'id')", id=instance) != "RUNNING"
        wait_for(ended, 60, "the end of the instance")
        return self.shards[0].psql("select error from wiggle.instance(:'id')", id=instance) or None

    def test_queue_names_that_no_notification_can_carry_together(self):
        """Forty names of 200 characters, ready in one transaction; NOTIFY takes less than 8,000 bytes."""
        names = [fresh_name("q").ljust(200, "q") for _ in range(40)]
        for name in names:
            self.client.register(flow(name, "a"))
        parked = {name: self.client.future("PollTasks", worker_id=name[:20], queues=[name], max=1, wait_millis=15000,
                                           timeout=60) for name in names}
        wait_for(lambda: self.metric("wiggle_proxy_parked_polls") == len(names), 60, "parked polls")
        self.shards[1].psql("select wiggle.start(w) from unnest(string_to_array(:'names', ',')) w", names=",".join(names))
        for name, poll in parked.items():
            self.assertEqual([t.workflow for t in poll.result().tasks], [name])

    def test_integers_beyond_doubles_are_not_rewritten_by_being_seen(self):
        name = self.define("a", "b")
        instance = self.shards[0].psql(
            """select wiggle.start(:'wf', '{"id":9007199254740993,"one":1,"half":0.5}')""", wf=name)
        task = self.client.poll_one(name)
        self.assertEqual(plain(task.context)["one"], 1)
        self.client.report(task)
        self.assertEqual(self.shards[0].psql("select context->>'id', context->>'one' from wiggle.instance(:'id')",
                                             id=instance), "9007199254740993|1")


class Crowds(OwnWorld):
    settings = {"WIGGLE_LANE_BATCH_ITEMS": 8}

    def crowd(self, clients, name):
        """Starts that come all at once, so that both queues are long."""
        with self.proxy.standing_still():
            calls = [client.future("StartInstance", timeout=120, workflow=name) for client in clients for _ in range(300)]
        return [call.result().instance_id for call in calls]

    def test_a_crowd_opens_further_lanes_and_loses_nothing(self):
        name = self.define("a")
        clients = [Client(self.proxy.address, options=[("grpc.use_local_subchannel_pool", 1)]) for _ in range(4)]
        for client in clients:
            self.addCleanup(client.close)
            client.call("HealthCheck")	# so that it is connected
        ids = []

        def spreads():
            ids.extend(self.crowd(clients, name))
            return re.search(r"spreads over \d lanes", self.proxy.log())
        wait_for(spreads, 60, "another lane")
        ids.extend(self.crowd(clients, name))
        self.assertEqual(len(set(ids)), len(ids))
        self.assertEqual(sum(int(s.psql("select count(*) from wf_instance")) for s in self.shards), len(ids))


class Startup(ClientTest):
    """What a proxy finds when it starts."""

    def setUp(self):
        self.shard = world.make_shard("startup-" + self.id().split(".")[-1][5:25])
        self.addCleanup(self.shard.stop)

    def proxy_for(self, document, **settings):
        proxy = Proxy(world.AREA, document, name=self.id().split(".")[-1], **settings)
        self.addCleanup(proxy.stop)
        return proxy

    def refuses(self, document, *words, **settings):
        proxy = self.proxy_for(document, **settings)
        proxy.start(wait=False)
        self.assertNotEqual(proxy.process.wait(60), 0)
        for word in words:
            self.assertIn(word, proxy.log())

    def two(self, first="127.0.0.1", second="127.0.0.1", database="wiggle"):
        document = topology(self.shard, self.shard)
        for shard, host, name in zip(document["shards"], (first, second), ("wiggle", database)):
            shard["primary"]["url"] = "postgresql://%s:%d/%s" % (host, self.shard.port, name)
        return document

    def test_one_database_under_two_names_is_found_out(self):
        self.refuses(self.two(second="localhost"), "this is the same database as shard")

    def test_every_refusal_is_told_once(self):
        document = topology(self.shard, self.shard, self.shard)
        for number, (entry, name) in enumerate(zip(document["shards"], ("seven", "eight", "wiggle"))):
            entry["primary"]["url"] = "postgresql://127.0.0.1:%d/%s" % (self.shard.port, name)
            if number < 2:
                self.shard.psql("create database %s" % name, "postgres")
            self.shard.psql("create extension wiggle; select wiggle.shard_claim(%d)" % (7, 8, 2)[number], name)
        proxy = Proxy(world.AREA, document, name=fresh_name("refused"), WIGGLE_SCHEMA_MODE="verify")
        self.addCleanup(proxy.stop)
        proxy.start(wait=False)
        wait_for(lambda: proxy.process.poll() is not None, 30, "the end of the proxy")
        self.assertEqual(proxy.process.returncode, 1)
        errors = [line for line in proxy.log().splitlines() if "ERROR" in line]
        self.assertEqual(len(errors), 3, errors)
        for shard in (0, 1):
            self.assertEqual(sum("shard %d (" % shard in line for line in errors), 1, errors)
        self.assertIn("2 of 3 shards cannot be used as they are", errors[-1])

    def test_two_databases_of_one_cluster_are_two_shards(self):
        self.shard.psql("create database other", "postgres")
        document = self.two(database="other")
        document["shards"][1]["pool"] = 16
        proxy = self.proxy_for(document, WIGGLE_NODE_NAME="here").start()
        for line in ("shard 0: up to 10 primary and 0 replica connection(s) per node, over 0 replica(s)",
                     "shard 1: up to 16 primary and 0 replica connection(s) per node, over 0 replica(s)",
                     "Wiggle server 'here' on port %d (gRPC: plaintext, storage: 2 shards)" % proxy.port):
            self.assertRegex(proxy.log(), r"(?m)^\S+ INFO  [a-z]+: %s$" % re.escape(line))
        client = Client(proxy.address)
        self.addCleanup(client.close)
        name = fresh_name()
        client.register(flow(name, "a"))
        self.assertEqual({client.start(name).split(".")[1] for _ in range(4)}, {"s0", "s1"})
        self.assertEqual([self.shard.psql("select count(*) from wf_instance", d) for d in ("wiggle", "other")],
                         ["2", "2"])

    def test_verifying_changes_nothing(self):
        proxy = self.proxy_for(topology(self.shard), WIGGLE_SCHEMA_MODE="verify").start(wait=False)
        self.waits(proxy, "the extension wiggle is not installed")
        self.assertEqual(self.shard.psql("select count(*) from pg_extension where extname = 'wiggle'"), "0")
        self.shard.psql("create extension wiggle")
        self.waits(proxy, "the database belongs to no shard yet", "wiggle.shard_claim(0)")
        self.assertEqual(self.shard.psql("select count(*) from wiggle.wf_shard"), "0")
        self.shard.psql("select wiggle.shard_claim(0)")
        wait_for(proxy.ready, 60, "a proxy that goes on by itself")

    def test_a_database_that_is_not_ready_keeps_nobody_from_starting(self):
        """It is named once with what to do, the others serve, and it joins them when somebody has done it."""
        self.shard.psql("create database other", "postgres")
        self.shard.psql("create extension wiggle; select wiggle.shard_claim(0)")
        document = self.two(database="other")
        proxy = self.proxy_for(document, WIGGLE_SCHEMA_MODE="verify", WIGGLE_STARTUP_TIMEOUT_MILLIS=600000).start(wait=False)
        wait_for(proxy.serves, 60, "a proxy that serves the shard which is ready")
        self.waits(proxy, "shard 1 (127.0.0.1:%d/other): the extension wiggle is not installed; run" % self.shard.port)
        client = Client(proxy.address)
        self.addCleanup(client.close)
        self.refused(grpc.StatusCode.NOT_FOUND, "instance not found", client.get, "wfi.s0.0123456789abcdefghjkmn")
        self.refused(grpc.StatusCode.UNAVAILABLE, "*storage temporarily unavailable*", client.get,
                     "wfi.s1.0123456789abcdefghjkmn")
        # for whoever is to set all up it is a failure, told at once
        job = Proxy(world.AREA, document, name=fresh_name("job"), WIGGLE_SCHEMA_MODE="verify", WIGGLE_MIGRATE_ONLY="true",
                    WIGGLE_STARTUP_TIMEOUT_MILLIS=600000)
        self.addCleanup(job.stop)
        job.start(wait=False)
        wait_for(lambda: job.process.poll() is not None, 60, "the end of the job")
        self.assertEqual(job.process.returncode, 1, job.log())
        self.assertIn("1 of 2 shards could not be set up", job.log())
        self.shard.psql("create extension wiggle; select wiggle.shard_claim(1)", "other")
        wait_for(proxy.ready, 60, "both shards")
        self.assertEqual(proxy.log().count("is not installed"), 1)

    def test_without_home_nobody_is_ready(self):
        self.shard.psql("create database other", "postgres")
        self.shard.psql("create extension wiggle; select wiggle.shard_claim(1)", "other")
        proxy = self.proxy_for(self.two(database="other"), WIGGLE_SCHEMA_MODE="verify", WIGGLE_STARTUP_TIMEOUT_MILLIS=1000)
        proxy.start(wait=False)
        client = Client(proxy.address)
        self.addCleanup(client.close)
        method = client.method("GetInstance")
        with self.assertRaises(grpc.RpcError) as answer:
            method[1](method[0](instance_id="wfi.s1.0123456789abcdefghjkmn"), timeout=60, wait_for_ready=True)
        self.assertEqual(answer.exception.code(), grpc.StatusCode.NOT_FOUND)
        self.assertFalse(proxy.serves())
        self.shard.psql("create extension wiggle; select wiggle.shard_claim(0)")
        wait_for(proxy.ready, 60, "both shards")

    def waits(self, proxy, *words):
        """It says what is missing, and does not end."""
        for word in words:
            wait_for(lambda w=word: w in proxy.log(), 60, "'%s' in the log of the proxy" % word)
        self.assertIsNone(proxy.process.poll(), proxy.log())

    def test_what_cannot_mend_itself_is_named_once_with_what_to_do(self):
        for change, message, advice in (
                ({"password": "wrong"}, "password authentication failed", "WIGGLE_JDBC_PASSWORD"),
                ({"user": "nobody-here"}, "password authentication failed", "WIGGLE_JDBC_USER"),
                ({"url": "postgresql://127.0.0.1:%d/missing" % self.shard.port}, 'database "missing" does not exist',
                 "create the database, or correct its name")):
            with self.subTest(change=change):
                document = topology(self.shard)
                document["shards"][0]["primary"].update(change)
                proxy = Proxy(world.AREA, document, name=fresh_name("wrong"), WIGGLE_STARTUP_TIMEOUT_MILLIS=2000)
                self.addCleanup(proxy.stop)
                proxy.start(wait=False)
                wait_for(lambda p=proxy: "0 of 1 shards can be used" in p.log(), 60, "the end of patience")
                said = [line for line in proxy.log().splitlines() if "cannot connect" in line]
                self.assertEqual(len(said), 1, said)
                self.assertIn(message, said[0])
                self.assertIn(advice, said[0])
                self.assertIn("ERROR", said[0])
                self.assertNotIn("\\x", said[0])

    def test_a_library_that_is_not_preloaded(self):
        bare = world.make_shard("startup-bare", "shared_preload_libraries = ''")
        self.addCleanup(bare.stop)
        self.waits(self.proxy_for(topology(bare)).start(wait=False), "wiggle must be loaded via shared_preload_libraries",
                   "Add wiggle to shared_preload_libraries and restart the server")
        self.assertEqual(bare.psql("select count(*) from pg_extension where extname = 'wiggle'"), "0")

    def test_the_role_that_a_proxy_needs(self):
        self.shard.psql("create role plain login password 'plain'")
        document = topology(self.shard)
        document["shards"][0]["primary"].update(user="plain", password="plain")
        proxy = self.proxy_for(document).start(wait=False)
        self.waits(proxy, "permission denied", "create extension wiggle", "grant wiggle_server")
        self.shard.psql("create extension wiggle")
        self.waits(proxy, "permission denied for schema wiggle", "grant wiggle_server to the proxy's role there")
        self.shard.psql("grant wiggle_client, wiggle_worker to plain")
        self.waits(proxy, 'the role "plain" may not run what the proxy needs; run "grant wiggle_server to plain"')
        self.shard.psql("grant wiggle_server to plain")
        wait_for(proxy.ready, 60, "a proxy that may")
        client = Client(proxy.address)
        self.addCleanup(client.close)
        name = fresh_name()
        client.register(flow(name, "a"))
        instance = client.start(name)
        client.report(client.poll_one(name), {})
        self.assertEqual(client.status(instance), "COMPLETED")
        client.call("CancelInstance", instance_id=instance)

    def test_defaults_of_a_database_or_a_role_do_not_reach_the_sessions(self):
        """Each of them would end or refuse what some session does."""
        self.shard.psql("create role proxy login superuser password 'proxy'")
        settings = ("default_transaction_read_only = on", "default_transaction_isolation = 'serializable'",
                    "default_transaction_deferrable = on", "statement_timeout = 1", "lock_timeout = 1",
                    "idle_session_timeout = 1", "idle_in_transaction_session_timeout = 1")
        for owner, those in [("database wiggle", [s]) for s in settings] + [("role proxy", settings)]:
            with self.subTest(owner=owner, settings=those):
                self.shard.psql("".join("alter %s set %s;" % (owner, s) for s in those), "postgres")
                try:
                    self.serves()
                finally:
                    self.shard.psql("alter %s reset all" % owner, "postgres")

    def serves(self):
        """A proxy that starts now does something in every kind of its sessions."""
        document = topology(self.shard)
        document["shards"][0]["primary"].update(user="proxy", password="proxy")
        proxy = Proxy(world.AREA, document, name=fresh_name("defaults"))
        self.addCleanup(proxy.stop)
        client = Client(proxy.start().address)
        self.addCleanup(client.close)
        name, consumer = fresh_name(), fresh_name("consumer")
        client.call("PollEvents", consumer=consumer)
        client.register(flow(name, "a"))
        instance = client.start(name)
        client.report(client.poll_one(name), {})
        self.assertEqual(client.status(instance), "COMPLETED")
        events = client.call("PollEvents", consumer=consumer, max=9, wait_millis=5000).events
        self.assertEqual({e.instance_id for e in events}, {instance})
        self.assertEqual(proxy.stop(), 0)
        self.assertNotRegex(proxy.log(), "lost:|SQLSTATE|interrupted:")

    def test_no_generation_is_active_yet(self):
        document = topology(self.shard, generations=[
            {"id": 1, "activeFrom": "2999-01-01T00:00:00Z", "weights": {"0": 1}}])
        proxy = self.proxy_for(document).start()
        self.assertIn("no generation is active yet", proxy.log())

    def test_settings_of_the_command_are_not_remarked_on(self):
        proxy = self.proxy_for(topology(self.shard), WIGGLE_URL="x", WIGGLE_RPC_MAX_ATTEMPTS="2",
                               WIGGLE_PROT="1").start()
        remarks = [line for line in proxy.log().splitlines() if " config: " in line]
        self.assertEqual(len(remarks), 1, remarks)
        self.assertIn(" WARN  config: WIGGLE_PROT is no setting, did you mean WIGGLE_PORT?", remarks[0])

    def test_a_shard_that_is_down_does_not_keep_the_others_from_starting(self):
        other = world.make_shard("startup-down")
        self.addCleanup(other.stop)
        document = topology(self.shard, other)
        other.stop()
        proxy = self.proxy_for(document, WIGGLE_STARTUP_TIMEOUT_MILLIS=1000)
        proxy.start(wait=False)
        client = Client(proxy.address)
        self.addCleanup(client.close)
        method = client.method("HealthCheck")
        self.assertEqual(method[1](method[0](), timeout=60, wait_for_ready=True).status, "UP")
        self.assertFalse(proxy.ready())
        self.refused(grpc.StatusCode.NOT_FOUND, "instance not found", client.get, "wfi.s0.0123456789abcdefghjkmn")
        self.refused(grpc.StatusCode.UNAVAILABLE, "*storage temporarily unavailable*", client.get,
                     "wfi.s1.0123456789abcdefghjkmn")
