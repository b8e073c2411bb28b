"""Schedules: cadence, upsert, refusals, and instances that are fired on any shard."""
import os
import subprocess
import time

import grpc

import world
from doors import doors
from harness import Proxy, topology, wait_for
from wigclient import Client, ClientTest, flow, fresh_name, plain, value

INVALID = grpc.StatusCode.INVALID_ARGUMENT
NOT_FOUND = grpc.StatusCode.NOT_FOUND
INTERNAL = grpc.StatusCode.INTERNAL


class Schedules:
    def setUp(self):
        super().setUp()
        if self.server == "away":
            # another proxy of the same home, with weights of its own, may have published since
            world.shards[0].psql("""select wiggle.publish_placement('[{"id": 2,
                "activeFrom": "2026-01-01T00:00:00Z", "weights": {"0": 0, "1": 1}}]')""")

    def schedule(self, workflow, context=None, **cadence):
        more = {} if context is None else {"context": value(context)}
        view = self.client.call("CreateSchedule", workflow=workflow, **cadence, **more)
        self.addCleanup(self.client.call, "DeleteSchedule", id=view.id)
        return view

    def listed(self, workflow):
        return [s for s in self.client.call("ListSchedules").schedules if s.workflow == workflow]

    def fired(self, workflow):
        return self.client.call("ListInstances", workflow=workflow, limit=1000).instances

    def test_an_interval(self):
        name = self.define("a")
        before = time.time() * 1000
        view = self.schedule(name, every_millis=3_600_000)
        self.assertEqual((view.workflow, view.every_millis, view.cron), (name, 3_600_000, ""))
        self.assertAlmostEqual(view.next_fire_at - before, 3_600_000, delta=10_000)
        self.assertAlmostEqual(view.created_at, before, delta=10_000)
        self.assertEqual(self.listed(name), [view])

    def test_cron_and_upsert_keep_id_and_birth(self):
        name = self.define("a")
        first = self.schedule(name, every_millis=60_000)
        second = self.schedule(name, cron="0 0 1 1 *")
        self.assertEqual((second.id, second.created_at), (first.id, first.created_at))
        self.assertEqual((second.every_millis, second.cron), (0, "0 0 1 1 *"))
        self.assertEqual(second.next_fire_at % 86_400_000, 0)
        self.assertEqual(self.listed(name), [second])

    def test_deleting_is_idempotent(self):
        name = self.define("a")
        view = self.schedule(name, every_millis=60_000)
        for _ in range(2):
            self.assertTrue(self.client.call("DeleteSchedule", id=view.id).ok)
        self.assertEqual(self.listed(name), [])
        self.assertTrue(self.client.call("DeleteSchedule", id="no-such-schedule").ok)

    def test_refusals(self):
        name = self.define("a")

        def create(**fields):
            return self.client.call("CreateSchedule", **{"workflow": name, **fields})
        for every in (0, -1):
            self.refused(INVALID, "schedule interval must be positive", create, every_millis=every)
        self.refused(INVALID, "schedule interval must be positive", create)
        self.refused(INVALID, "*every_millis*", create, every_millis=1 << 62)
        self.refused(NOT_FOUND, "workflow 'no-such' not found", create, workflow="no-such", every_millis=1000)
        for cron, text in (("", "cron expression is required"), ("  ", "cron expression is required"),
                           ("* * * *", "cron '* * * *' must have 5 fields (minute hour day-of-month month day-of-week)"),
                           ("60 * * * *", "cron field '60': out of range 0-59"),
                           ("5-1 * * * *", "cron field '5-1': out of range 0-59"),
                           ("*/0 * * * *", "cron field '*/0': step must be >= 1"),
                           ("x * * * *", "cron field 'x': 'x' is not a number"),
                           ("* * * JAN *", "cron field 'JAN': 'JAN' is not a number")):
            with self.subTest(cron=cron):
                self.refused(INVALID, text, create, cron=cron)
        self.refused(INTERNAL, "cron '0 0 30 2 *' never fires", create, cron="0 0 30 2 *")
        self.refused(INVALID, "*cron*", create, cron="0 " * 100)
        self.assertEqual(self.listed(name), [])

    def test_it_fires_with_its_context(self):
        name = self.define("a")
        view = self.schedule(name, {"from": "schedule"}, every_millis=300)
        wait_for(lambda: len(self.fired(name)) >= 2, 60, "two instances of the schedule")
        self.client.call("DeleteSchedule", id=view.id)
        for instance in self.fired(name):
            self.assertEqual(plain(instance.context), {"from": "schedule"})
            self.assertTrue(instance.id.startswith("wfi.s%d." % self.shard), instance.id)
        found = self.client.call("ListInstances", correlation_id="schedule:" + view.id).instances
        self.assertEqual({i.id for i in found}, {i.id for i in self.fired(name)})


globals().update(doors(Schedules))


class Home(ClientTest):
    def test_a_shard_that_is_not_home_has_no_schedules(self):
        name = self.define("a")
        for shard in world.shards[1:]:
            with self.assertRaisesRegex(RuntimeError, "schedules live in the home database, shard 0; this one is shard 1"):
                shard.psql("select wiggle.schedule(:'name', '1h')", name=name)
        view = world.shards[0].psql("select id from wiggle.schedule(:'name', '1h')", name=name)
        self.client.call("DeleteSchedule", id=view)


class Spread(ClientTest):
    """A schedule of home fires on every shard that the generation in force weighs."""

    def fire(self, client, seconds=60):
        name = fresh_name("spread")
        client.register({"workflow": name, "version": 1, "steps": [{"task": "a"}]})
        view = client.call("CreateSchedule", workflow=name, every_millis=50)
        self.addCleanup(client.call, "DeleteSchedule", id=view.id)
        shards = set()

        def both():
            found = client.call("ListInstances", workflow=name, limit=1000).instances
            shards.update(i.id.split(".")[1] for i in found)
            return {"s0", "s1"} <= shards
        wait_for(both, seconds, "instances on both shards")
        client.call("DeleteSchedule", id=view.id)
        return name, view.id

    def test_by_weight_and_exactly_once(self):
        own = [world.make_shard("spread-%d" % i) for i in (0, 1)]
        for shard in own:
            self.addCleanup(shard.stop)
        proxies = [Proxy(world.AREA, topology(*own), name="spread-proxy-%d" % i).start() for i in (0, 1)]
        for proxy in proxies:
            self.addCleanup(proxy.stop)
        client = Client(proxies[0].address)
        self.addCleanup(client.close)
        name, _ = self.fire(client)
        wait_for(lambda: own[0].psql("select count(*) from wiggle.wf_outbox") == "0", 60, "an empty outbox")
        counts = [int(s.psql("select count(*) from wiggle.wf_instance where workflow = :'w'", w=name)) for s in own]
        # Shards are drawn by chance: shares of a few firings say nothing, that each fired does.
        self.assertTrue(all(counts), counts)
        started = self.client_metric(proxies, "wiggle_proxy_outbox_started_total")
        self.assertGreaterEqual(started, counts[1])

    def client_metric(self, proxies, name):
        return sum(float(line.rsplit(" ", 1)[1]) for p in proxies for line in p.http("/metrics")[1].splitlines()
                   if line.startswith(name + " "))

    def test_what_waits_in_the_outbox_is_started_when_a_proxy_comes(self):
        own = [world.make_shard("outbox-%d" % i) for i in (0, 1)]
        for shard in own:
            self.addCleanup(shard.stop)
        away = topology(*own, generations=[{"id": 1, "activeFrom": "2026-01-01T00:00:00Z", "weights": {"0": 0, "1": 1}}])
        proxy = Proxy(world.AREA, away, name="outbox-first").start()
        self.addCleanup(proxy.stop)
        client = Client(proxy.address)
        self.addCleanup(client.close)
        name = fresh_name("late")
        client.register({"workflow": name, "version": 1, "steps": [{"task": "a"}]})
        wait_for(lambda: own[0].psql("select count(*) from wiggle.wf_placement") == "1", 60, "the placement to be told")
        proxy.stop()
        own[0].psql("select wiggle.schedule(:'w', every => interval '100 ms')", w=name)
        wait_for(lambda: int(own[0].psql("select count(*) from wiggle.wf_outbox")) >= 3, 60, "the outbox to fill")
        own[0].psql("select wiggle.unschedule(id) from wiggle.schedules()")
        ids = set(own[0].psql("select id from wiggle.wf_outbox").split())
        second = Proxy(world.AREA, away, name="outbox-second").start()
        self.addCleanup(second.stop)
        wait_for(lambda: own[0].psql("select count(*) from wiggle.wf_outbox") == "0", 60, "an empty outbox")
        kept = set(own[1].psql("select id from wiggle.wf_instance where workflow = :'w'", w=name).split())
        self.assertEqual(kept, ids)


class Outbox(ClientTest):
    """What home has minted for two shards; neither waits for the other."""

    @classmethod
    def setUpClass(cls):
        cls.shards = [world.make_shard("outbox-of-%d" % i) for i in range(3)]
        for shard in cls.shards:
            cls.addClassCleanup(shard.stop)
        cls.proxy = Proxy(world.AREA, topology(*cls.shards), name="outbox-proxy").start()
        cls.addClassCleanup(cls.proxy.stop)

    def setUp(self):
        self.client = Client(self.proxy.address)
        self.addCleanup(self.client.close)
        self.name = self.define("a")

    def leave(self, shard, n, workflow=None, age="0"):
        """As the clock worker does; the ids."""
        ids = self.shards[0].psql("""
            insert into wiggle.wf_outbox
            select 'wfi.s' || :shard || '.0' || left(md5(random()::text), 21), :shard, :'workflow', 'schedule:x', '{}',
                   now() - :'age'::interval
              from generate_series(1, :n) returning id;
            notify wiggle_outbox;""", shard=shard, n=n, workflow=workflow or self.name, age=age)
        return sorted(ids.split())

    def started(self, shard, workflow=None):
        return sorted(self.shards[shard].psql("select id from wiggle.wf_instance where workflow = :'w'",
                                              w=workflow or self.name).split())

    def remain(self, ids):
        wait_for(lambda: sorted(self.shards[0].psql("select id from wiggle.wf_outbox").split()) == sorted(ids), 40,
                 "%d instances to remain in the outbox" % len(ids))

    def control(self, shard, *arguments):
        subprocess.run(["pg_ctl", "-D", os.path.join(self.shards[shard].folder, "data"), "-w", "-s", *arguments],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def test_what_cannot_be_given_now_holds_up_nothing(self):
        self.control(2, "-m", "fast", "stop")
        wait_for(lambda: not self.proxy.ready(), 10, "readiness to fall")
        down, unknown = self.leave(2, 300, age="2 hours"), self.leave(7, 300, age="1 hour")
        good = self.leave(1, 3)
        self.remain(down + unknown)
        self.assertEqual(self.started(1), good)
        self.control(2, "-l", os.path.join(self.shards[2].folder, "log"), "restart")
        self.remain(unknown)
        self.assertEqual(self.started(2), down)
        self.shards[0].psql("delete from wiggle.wf_outbox")

    def test_what_is_refused_holds_up_nothing(self):
        later = fresh_name()
        refused = self.leave(1, 600, workflow=later, age="1 hour")
        good = self.leave(1, 3)
        self.remain(refused)
        self.assertEqual(self.started(1), good)
        self.assertEqual(self.shards[0].psql("select min(refusals) > 0 from wiggle.wf_outbox"), "t")
        self.client.register(flow(later, "a"))
        self.shards[0].psql("update wiggle.wf_outbox set due_at = now(); notify wiggle_outbox")
        self.remain([])
        self.assertEqual(self.started(1, later), refused)

    def test_a_shard_that_hangs_holds_up_no_other(self):
        holder = subprocess.Popen(["psql", "-X", "-q", "-A", "-t", "-d", self.shards[2].conninfo()], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(holder.communicate)
        holder.stdin.write("begin; lock table wiggle.wf_instance in share mode; select 'held';\n")
        holder.stdin.flush()
        self.assertEqual(holder.stdout.readline(), "held\n")
        hanging = self.leave(2, 32, age="1 hour")
        wait_for(lambda: self.shards[2].psql("select count(*) from pg_stat_activity where wait_event = 'relation'") != "0",
                 10, "a batch that hangs")
        good = self.leave(1, 3)
        self.remain(hanging)
        self.assertEqual(self.started(1), good)
        holder.stdin.write("rollback;\n")
        holder.stdin.flush()
        self.remain([])
        self.assertEqual(self.started(2), hanging)
