"""What takes too long for make check, in real time and at full length: make soak."""
import os
import signal
import time

import test_cascades
import test_clocks
import test_handover
import test_restarts
from harness import wait_for


class ManyCancels(test_cascades.Wide):
    runs = 100


class FiveMinutes(test_clocks.Leases):
    """With proxies whose clocks are wrong, beside the leases: a schedule of each minute through each, and sleeps."""

    seconds = 300

    def sleep(self, name):
        """One after the other through the proxies in turn, and the task behind it."""
        clients = list(self.clients.values())
        for n in range(self.seconds // 4):
            clients[n % 4].start(name)
            tasks = clients[(n + 1) % 4].poll(name, wait=20000)
            self.assertEqual(len(tasks), 1)
            clients[(n + 2) % 4].report(tasks[0], {})

    def minutes(self, workflow):
        return sorted(float(at) for shard in self.shards for at in shard.psql(
            "select extract(epoch from created_at) from wf_instance where workflow = :'name'", name=workflow).split())

    def test_none_is_given_out_while_it_is_held(self):
        views = [client.call("CreateSchedule", workflow=self.define("tick"), cron="* * * * *")
                 for client in self.clients.values()]
        name = self.define(("sleep", 3000), "a")
        sleeps = self.in_background(self.sleep, name)
        super().test_none_is_given_out_while_it_is_held()
        sleeps(120)
        for view in views:
            dues = [view.next_fire_at // 1000 + 60 * n for n in range(self.seconds // 60)]
            wait_for(lambda v=view: len(self.minutes(v.workflow)) >= len(dues), 120, "a fire of each minute")
            self.client.call("DeleteSchedule", id=view.id)
            fired = self.minutes(view.workflow)
            self.assertEqual([int(at // 60 * 60) for at in fired][:len(dues)], dues)
            self.assertEqual(len({int(at // 60) for at in fired}), len(fired))
        slept = self.sleeps(name)
        print("%d sleeps, the latest %d ms late" % (len(slept), max(late for _, late in slept)), flush=True)
        self.assertEqual({due for due, _ in slept}, {3000})
        self.assertGreaterEqual(min(late for _, late in slept), 0)
        self.assertLess(max(late for _, late in slept), 1000)


class ManyRestarts(test_restarts.Restarts):
    rounds = 20


class RealMinutes(test_handover.Faults):
    minutes = 30

    def until(self, at):
        wait_for(lambda: time.time() >= at, 600, "the time %.1f" % at)

    def worker_ends(self, due, _):
        worker = self.clock_worker()
        self.until(due - 3)
        os.kill(worker, signal.SIGTERM)

    def worker_is_killed(self, due, _):
        worker = self.clock_worker()
        self.until(due - 0.1)
        self.kill(worker)

    def worker_is_frozen(self, due, _):
        worker = self.clock_worker()
        self.until(due - 2)
        self.freeze(worker)
        self.until(due + 3)
        os.kill(worker, signal.SIGCONT)

    def worker_is_cut(self, due, _):
        worker = self.clock_worker()
        self.until(due - 0.5)
        self.end(worker)

    def proxy_ends(self, due, proxy):
        self.until(due - 3)
        self.assertEqual(proxy.stop(), 0)
        proxy.start()

    def proxy_is_killed(self, due, proxy):
        self.until(due - 0.1)
        proxy.kill()
        proxy.start()

    def proxy_is_frozen(self, due, proxy):
        self.until(due - 2)
        with proxy.standing_still():
            self.until(due + 3)

    def proxies_are_cut(self, due, _):
        self.until(due - 0.5)
        self.cut_sessions(self.home)

    def test_thirty_minutes(self):
        harms = (self.worker_ends, self.proxy_ends, self.worker_is_killed, self.proxy_is_killed,
                 self.worker_is_frozen, self.proxy_is_frozen, self.worker_is_cut, self.proxies_are_cut)
        view = self.client.call("CreateSchedule", workflow=self.name, cron="* * * * *")
        first = view.next_fire_at // 1000
        dues = [first + 60 * k for k in range(self.minutes)]
        for k, due in enumerate(dues):
            harms[k % len(harms)](due, self.proxies[k % len(self.proxies)])
        self.until(dues[-1] + 30)
        started = sorted(float(at) for shard in self.shards for at in shard.psql(
            "select extract(epoch from created_at) from wiggle.wf_instance").split())
        self.assertEqual([int(at // 60 * 60) for at in started], dues)
        self.assertLess(max(at - due for at, due in zip(started, dues)), 10)
