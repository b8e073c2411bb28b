"""A schedule of each minute, while what fires it and what carries its instances to another shard
is ended, killed, frozen and cut off around the due time."""
import os
import signal

from harness import wait_for
from test_storage import OwnWorld
from wigclient import fresh_name

BASE = "timestamptz '2040-01-01 00:00+00'"


class Faults(OwnWorld):
    """Three proxies, and what can happen to the clock worker of home."""

    def setUp(self):
        super().setUp()
        self.home, self.away = self.shards
        self.proxies = [self.proxy, self.start_proxy("-2"), self.start_proxy("-3")]
        self.name = fresh_name("minutely")
        self.client.register({"workflow": self.name, "version": 1, "steps": [{"task": "a"}]})
        # Without the generation in force home would keep what it fires.
        wait_for(lambda: self.home.psql("select count(*) from wiggle.wf_placement") != "0", 60, "the placement")

    def patiently(self, sql):
        """The answer of home, which may just be recovering."""
        def attempt():
            try:
                return [self.home.psql(sql)]
            except RuntimeError:
                return None
        return wait_for(attempt, 60, "an answer of home")[0]

    def clock_worker(self):
        return int(wait_for(lambda: self.patiently(
            "select pid from pg_stat_activity where backend_type = 'wiggle clock worker'"
            " and datname = current_database()"), 60, "a clock worker"))

    def end(self, pid):
        self.home.psql("select pg_terminate_backend(%d)" % pid)

    def kill(self, pid):
        """The cluster restarts with it, and forgets what was not on disk."""
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: self.clock_worker() != pid, 60, "another clock worker")

    def freeze(self, pid):
        os.kill(pid, signal.SIGSTOP)

        def stopped():
            with open("/proc/%d/stat" % pid, encoding="ascii", errors="replace") as f:
                return f.read().rsplit(")", 1)[1].split()[0] == "T"
        wait_for(stopped, 60, "process %d to stand still" % pid)

    def cut_sessions(self, shard):
        shard.psql("select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'wiggle-proxy%'")


class Minutes(Faults):
    """Home's clock is moved by hand; it is ahead of the real one, which a crash brings back."""

    home_settings = ("wiggle.test_clock = on", "wiggle.retention = -1", "wiggle.event_retention = -1")

    def setUp(self):
        super().setUp()
        self.clock(30)
        self.client.call("CreateSchedule", workflow=self.name, cron="* * * * *")
        self.assertEqual(self.next_fire(), 60)

    def clock(self, seconds):
        self.patiently("select wiggle.test_set_clock(%s + interval '%g s')" % (BASE, seconds))

    def next_fire(self):
        return int(self.patiently("select extract(epoch from next_fire_at - %s)::int from wiggle.wf_schedule" % BASE))

    def started(self):
        count = "select count(*) from wiggle.wf_instance"
        return int(self.patiently(count)) + int(self.away.psql(count))

    def each_minute_once(self, faults):
        """A fault is given what lets the minute come."""
        for k, fault in enumerate(faults, 1):
            self.clock(60 * k - 1)
            fault(lambda k=k: self.clock(60 * k))
            # Once more, for a clock that was lost in a crash.
            self.clock(60 * k)
            wait_for(lambda k=k: self.next_fire() == 60 * (k + 1), 60, "the fire of minute %d" % k)
            wait_for(lambda: self.patiently("select count(*) from wiggle.wf_outbox") == "0", 60,
                     "the outbox to be empty in minute %d" % k)
            self.assertEqual(self.started(), k)
            # In a minute all is on disk long since.
            self.home.psql("checkpoint")

    def before(self, harm):
        def fault(due):
            harm(self.clock_worker())
            due()
        return fault

    def after(self, harm):
        def fault(due):
            worker = self.clock_worker()
            due()
            harm(worker)
        return fault

    def frozen(self, due):
        worker = self.clock_worker()
        self.freeze(worker)
        before = self.next_fire()
        due()
        self.assertEqual(self.next_fire(), before)
        os.kill(worker, signal.SIGCONT)


class AtHome(Minutes):
    generations = [{"id": 1, "activeFrom": "2026-01-01T00:00:00Z", "weights": {"0": 1, "1": 0}}]

    def test_minutes_at_home(self):
        faults = [self.before(self.end), self.after(self.end), self.before(self.kill), self.after(self.kill), self.frozen]
        self.each_minute_once(faults * 2)


class Carried(Minutes):
    generations = [{"id": 1, "activeFrom": "2026-01-01T00:00:00Z", "weights": {"0": 0, "1": 1}}]

    def midway(self, harm):
        """Harm done while every proxy has read the outbox and starts the instance."""
        def fault(due):
            let_go = self.hold(1, "lock table wiggle.wf_instance in share mode")
            due()
            wait_for(lambda: self.away.psql("select count(*) from pg_locks where not granted") == "3", 60,
                     "three proxies that start the instance")
            afterwards = harm()
            let_go()
            if afterwards is not None:
                afterwards()
        return fault

    def proxy_ends(self):
        self.proxies[1].process.send_signal(signal.SIGTERM)

        def afterwards():
            self.assertEqual(self.proxies[1].process.wait(60), 0)
            self.proxies[1].start()
        return afterwards

    def proxy_is_killed(self):
        self.proxies[2].kill()
        return self.proxies[2].start

    def proxy_is_frozen(self):
        self.freeze(self.proxies[1].process.pid)
        before = self.started()

        def afterwards():
            wait_for(lambda: self.started() == before + 1, 60, "the instance, by another proxy")
            self.proxies[1].process.send_signal(signal.SIGCONT)
        return afterwards

    def sessions_are_cut(self):
        for shard in self.shards:
            self.cut_sessions(shard)

    def home_is_killed(self):
        """What the clock worker did must be on disk before anybody may act on it."""
        worker = self.clock_worker()
        os.kill(worker, signal.SIGKILL)
        os.kill(self.log_writer, signal.SIGCONT)
        wait_for(lambda: self.clock_worker() != worker, 60, "another clock worker")

    def without_log_writer(self, fault):
        def frozen(due):
            self.log_writer = int(self.home.psql("select pid from pg_stat_activity where backend_type = 'walwriter'"))
            self.freeze(self.log_writer)
            fault(due)
        return frozen

    def test_minutes_carried_away(self):
        self.each_minute_once([
            self.before(self.end), self.after(self.end), self.before(self.kill), self.after(self.kill), self.frozen,
            self.midway(self.proxy_ends), self.midway(self.proxy_is_killed), self.midway(self.proxy_is_frozen),
            self.midway(self.sessions_are_cut), self.without_log_writer(self.midway(self.home_is_killed))])
