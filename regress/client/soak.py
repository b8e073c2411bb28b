"""What takes too long for make check, in real time and at full length: make soak."""
import os
import signal
import time

import test_cascades
import test_handover
import test_restarts
from harness import wait_for


class ManyCancels(test_cascades.Wide):
    runs = 100


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
