"""Proxies whose clocks are wrong or stand still, a shard whose clock is ahead of the other's, and one whose clock is set."""
import collections
import glob
import json
import os
import queue
import re
import subprocess
import sys
import threading
import time
import unittest

import grpc

import world
from harness import Proxy, topology, wait_for
from test_auth import Keyed
from test_cli import wiggle
from test_failover import Load
from test_storage import OwnWorld
from wigclient import Client, ClientTest, flow, fresh_name, retry

# Debian's place; the program faketime would start a process of its own in between.
LIBRARIES = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")
with_faketime = unittest.skipUnless(LIBRARIES, "libfaketime is not installed (scripts/deps check)")


def clock_at(what):
    """What is put before a command whose clock is to be wrong; its waits are not."""
    return ["env", "ASAN_OPTIONS=verify_asan_link_order=0",    # of "make asan": its library is not the first one then
            "LD_PRELOAD=" + LIBRARIES[0], "FAKETIME=" + what, "DONT_FAKE_MONOTONIC=1"]


def frozen_now():
    """A time without @ before it stands still; it is local time."""
    return time.strftime("%Y-%m-%d %H:%M:%S")


@with_faketime
class WrongClocks(OwnWorld):
    """One proxy whose clock is right, one ten minutes ahead, one ten minutes behind, and one whose clock stands still."""

    def setUp(self):
        super().setUp()
        self.clients = {"right": self.client}
        self.addresses = [self.proxy.address]
        for name, clock in (("fast", "+600"), ("slow", "-600"), ("frozen", frozen_now())):
            proxy = Proxy(world.AREA, topology(*self.shards), name="%s-%s" % (self.id().split(".")[-1], name),
                          within=clock_at(clock))
            self.addCleanup(proxy.stop)
            proxy.start()
            self.addresses.append(proxy.address)
            self.clients[name] = Client(proxy.address)
            self.addCleanup(self.clients[name].close)


        # the last one has connected, been set up and opened its port, and all at the same time
        self.assertEqual(len(set(re.findall("^2[0-9-]+T[0-9:.]+Z ", proxy.log(), re.M))), 1, proxy.log())

    def sleeps(self, workflow):
        """Of each that is over, by its shard's clock: when it was due after its begin, and how late it ended; ms."""
        rows = []
        for shard in self.shards:
            rows += shard.psql("select extract(epoch from t.available_at - t.created_at) * 1000,"
                               " extract(epoch from t.finished_at - t.available_at) * 1000 from wf_token t"
                               " join wf_instance i on i.no = t.instance where i.workflow = :'name' and t.node = 'n1'"
                               " and t.finished_at is not null", name=workflow).split()
        return [tuple(float(part) for part in row.split("|")) for row in rows]


class Clocks(WrongClocks):
    def test_a_lease_counts_by_the_shards_clock(self):
        """Held through one proxy it is not given out by another, whatever that one takes the time to be."""
        name = self.define("a")
        for holder in self.clients:
            with self.subTest(holder=holder):
                instance = self.client.start(name)
                task = self.clients[holder].poll_one(name, lease_millis=60000)
                others = [c.future("PollTasks", worker_id="other", queues=[name], max=1, wait_millis=1500)
                          for c in self.clients.values()]
                self.assertEqual([len(call.result().tasks) for call in others], [0] * len(others))
                for client in self.clients.values():
                    beat = client.call("HeartbeatTask", task_id=task.task_id, lease_owner=task.lease_owner,
                                       extend_millis=120000)
                    self.assertGreater(beat.lease_expires_at, task.lease_expires_at)
                    self.assertLess(beat.lease_expires_at, task.lease_expires_at + 300000)
                self.assertEqual(self.client.report(task).applied.instance_status, "COMPLETED")
                self.assertEqual(self.client.status(instance), "COMPLETED")

    def test_nothing_is_given_out_twice(self):
        name = "clocks-load"
        self.client.register(flow(name, "a", ("sleep", 200), "b"))
        consumer = "clocks-consumer"
        self.client.call("PollEvents", consumer=consumer)
        load = Load(self.addresses, name, starters=3, workers=6, lease=600000)
        load.more(300)
        load.end(self.shards)
        load.is_as_acknowledged(self, self.shards)
        self.assertEqual({task: n for task, n in load.given.items() if n > 1}, {})

        # each event once, whichever proxy is asked
        ended, seen = [], set()
        asked = list(self.clients.values())
        while len(ended) < len(load.started):
            asked.append(asked.pop(0))
            events = asked[0].call("PollEvents", consumer=consumer, max=100, wait_millis=5000).events
            self.assertTrue(events, "%d of %d ends have been told" % (len(ended), len(load.started)))
            self.assertEqual({e.cursor for e in events} & seen, set())
            seen.update(e.cursor for e in events)
            ended += [e.instance_id for e in events if e.type == "wf.completed"]
            asked[0].call("AckEvents", consumer=consumer, acked_cursor=events[-1].cursor)
        self.assertEqual(sorted(ended), sorted(set(ended)))
        self.assertEqual(set(load.started) - set(ended), set())
        for client in self.clients.values():
            listed = client.call("ListInstances", workflow=name, limit=1000).instances
            self.assertEqual({i.id for i in listed} & set(load.started), set(load.started))

    def test_a_timer_fires_by_the_shards_clock(self):
        name = self.define(("sleep", 3000), "a")
        started = {client.start(name) for _ in range(2) for client in self.clients.values()}
        got = set()
        while len(got) < len(started):
            calls = [c.future("PollTasks", worker_id="w", queues=[name], max=2, wait_millis=10000)
                     for c in self.clients.values()]
            tasks = [task for call in calls for task in call.result().tasks]
            self.assertTrue(tasks, "%d of %d sleeps are over" % (len(got), len(started)))
            got.update(t.instance_id for t in tasks)
        self.assertEqual(got, started)
        sleeps = self.sleeps(name)
        self.assertEqual(len(sleeps), len(started))
        for due_after, late in sleeps:
            self.assertEqual(due_after, 3000)
            self.assertGreaterEqual(late, 0)


@with_faketime
class Keys(ClientTest):
    """Keys expire by the auth shard's clock, whatever a proxy takes the time to be."""

    def key(self, lasts):
        name = fresh_name("key")
        return name, world.lone.psql("select wiggle.auth_create_key(:'name', 'viewer', %s)" % lasts, name=name)

    def code(self, proxy, key):
        client = Keyed(proxy, key)
        self.addCleanup(client.close)
        try:
            client.call("ListWorkflows")
        except grpc.RpcError as refusal:
            return refusal.code().name, refusal.details()
        return "OK", ""

    def test_expiry(self):
        (over, expired), (_, valid), (_, endless) = (self.key(lasts) for lasts in (
            "now() + interval '1 h'", "now() + interval '1 h'", "'infinity'"))
        world.lone.psql("update wiggle.wf_auth_credential set expires_at = now() where id = :'over'", over=over)
        for clock in ("-86400", "+86400"):
            with self.subTest(clock=clock):
                proxy = Proxy(world.AREA, topology(world.lone), name="%s%s" % (fresh_name("keys"), clock), WIGGLE_GRPC_AUTH="enforce",
                              WIGGLE_AUTH_CACHE_MILLIS=300000, within=clock_at(clock)).start()
                self.addCleanup(proxy.stop)
                self.assertEqual(self.code(proxy, expired), ("UNAUTHENTICATED", "credential '%s' has expired" % over))
                self.assertEqual(self.code(proxy, valid)[0], "OK")
                self.assertEqual(self.code(proxy, endless)[0], "OK")
                # while it is known: what was read stays for longer than this waits
                for seconds in (3, 15, 60):
                    name, short = self.key("now() + interval '%d s'" % seconds)
                    if self.code(proxy, short)[0] == "OK":
                        break
                wait_for(lambda p=proxy, k=short: self.code(p, k)[0] != "OK", 120, "the end of a key")
                self.assertEqual(self.code(proxy, short), ("UNAUTHENTICATED", "credential '%s' has expired" % name))


class Leases(WrongClocks):
    """Leases of 5 s that are renewed every 2 s, each through another proxy, while a poll waits on every proxy."""

    seconds = 20
    lease = 5000

    def setUp(self):
        super().setUp()
        self.found = queue.Queue()
        self.until = {}      # the last expiry that was acknowledged, by task
        self.early, self.kept = [], set()
        self.stop = threading.Event()
        self.addCleanup(self.stop.set)

    def wait(self, client, name):
        """Poll; a task that is held must have had what it was promised, but for the time from a claim's begin to its end."""
        while not self.stop.is_set():
            for task in client.poll(name, worker="waiting", wait=2000, lease_millis=self.lease):
                if task.lease_expires_at - self.lease + 1000 < self.until.get(task.task_id, 0):
                    self.early.append((task, self.until[task.task_id]))
                    self.stop.set()
                self.found.put(task)

    def hold(self, client):
        """Keep a lease until each holder has kept one for so long without a break, by the shard's clock."""
        task = None
        while len(self.kept) < len(self.clients) and not self.stop.is_set():
            if task is None:
                task = self.found.get(timeout=60)
                since = self.until[task.task_id] = task.lease_expires_at
            self.stop.wait(2)
            try:
                self.until[task.task_id] = client.call(
                    "HeartbeatTask", task_id=task.task_id, lease_owner=task.lease_owner,
                    extend_millis=self.lease).lease_expires_at
                if self.until[task.task_id] - since >= self.seconds * 1000:
                    self.kept.add(client)
            except grpc.RpcError as refusal:
                # it was this test that was too late
                self.assertEqual(refusal.code(), grpc.StatusCode.FAILED_PRECONDITION, refusal.details())
                task = None

    def test_none_is_given_out_while_it_is_held(self):
        name = self.define(("task", "a", retry(1000, 1)))
        for _ in self.clients:
            self.client.start(name)
        waits = [self.in_background(self.wait, client, name) for client in self.clients.values()]
        holders = [self.in_background(self.hold, client) for client in self.clients.values()]
        for end in holders:
            end(self.seconds + 120)
        self.stop.set()
        for end in waits:
            end()
        self.assertEqual(self.early, [])


class ShardClock(OwnWorld):
    """One of the shards has a clock of its own, so many seconds ahead at first."""

    shard = None
    at_first = 0

    def set_clock(self, seconds):
        with open(self.file, "r+b" if os.path.exists(self.file) else "wb") as f:
            f.write(seconds.to_bytes(8, sys.byteorder, signed=True))

    def setUp(self):
        stem = os.path.join(world.AREA, self.id())
        self.file, library = stem + ".clock", stem + ".so"
        subprocess.run(["cc", "-O2", "-fPIC", "-shared", "-o", library, os.path.join(os.path.dirname(__file__), "own_clock.c")],
                       check=True)
        self.set_clock(self.at_first)
        make, own = world.make_shard, {"within": ["env", "LD_PRELOAD=" + library, "OWN_CLOCK=" + self.file]}
        world.make_shard = lambda name, *settings: make(name, *settings, **(own if name.endswith("-%d" % self.shard) else {}))
        try:
            super().setUp()
        finally:
            world.make_shard = make

    def ahead(self):
        """Seconds, by the extension's word."""
        now = [float(s.psql("select extract(epoch from (wiggle.shard()).now)")) for s in self.shards]
        return now[self.shard] - now[1 - self.shard]


class Apart(ShardClock):
    """One shard's clock is five minutes ahead of the other's."""

    shard = 1
    at_first = 300

    def test_lists_and_events_skip_nothing(self):
        self.assertGreater(self.ahead(), 200)
        name, consumer = self.define("a"), "apart-consumer"
        self.client.call("PollEvents", consumer=consumer)
        ids = []
        told = []
        for _ in range(20):
            ids += [self.client.start(name) for _ in range(4)]
            events = self.client.call("PollEvents", consumer=consumer, max=3, wait_millis=5000).events
            told += [e.instance_id for e in events]
            self.client.call("AckEvents", consumer=consumer, acked_cursor=events[-1].cursor)
        while len(told) < len(ids):
            events = self.client.call("PollEvents", consumer=consumer, max=7, wait_millis=5000).events
            self.assertTrue(events, "%d of %d starts have been told" % (len(told), len(ids)))
            told += [e.instance_id for e in events]
            self.client.call("AckEvents", consumer=consumer, acked_cursor=events[-1].cursor)
        self.assertEqual(sorted(told), sorted(ids))
        self.assertEqual({i.split(".")[1] for i in ids}, {"s0", "s1"})
        listed = [i.id for i in self.client.call("ListInstances", workflow=name, limit=1000).instances]
        self.assertEqual(sorted(listed), sorted(ids))
        got = []
        while len(got) < len(ids):
            tasks = self.client.poll(name, max=50)
            self.assertTrue(tasks, "%d of %d tasks have come" % (len(got), len(ids)))
            got += [t.instance_id for t in tasks]
            for task in tasks:
                self.assertEqual(self.client.report(task).applied.instance_status, "COMPLETED")
        self.assertEqual(sorted(got), sorted(ids))


class Stepped(ShardClock):
    """Home's clock is set eight hours ahead, and back again."""

    shard = 0
    hours = 8 * 3600

    def step(self, seconds):
        self.set_clock(seconds)
        self.assertAlmostEqual(self.ahead(), seconds, delta=60)

    def fires(self, workflow):
        return len(self.client.call("ListInstances", workflow=workflow, limit=1000).instances)

    def heard(self):
        return int(re.search(r'^wiggle_proxy_wakeups_total\{shard="0"\} (\d+)$', self.proxy.http("/metrics")[1], re.M).group(1))

    def woken(self, name, lease=0):
        """A parked poll is given what becomes ready on the shard, and the shard has told of it."""
        heard = self.heard()
        poll = self.client.future("PollTasks", worker_id="w", queues=[name], max=1, wait_millis=30000, timeout=60,
                                  lease_millis=lease)
        wait_for(lambda: self.metric("wiggle_proxy_parked_polls") == 1, 60, "a parked poll")
        instance = self.shards[0].psql("select wiggle.start(:'n')", n=name)
        self.assertEqual([t.instance_id for t in poll.result().tasks], [instance])
        wait_for(lambda: self.heard() > heard, 60, "a notification")
        return poll.result().tasks[0]

    def test_ahead_and_back(self):
        name, ticking, sleeper, held = fresh_name("stepped"), self.define("a"), self.define(("sleep", 60000), "a"), self.define("a")
        self.client.register(flow(name, "a", "b"))
        consumer = fresh_name("consumer")
        self.client.call("PollEvents", consumer=consumer)
        since = time.monotonic()
        self.client.call("CreateSchedule", workflow=ticking, every_millis=1000)
        wait_for(lambda: self.fires(ticking) >= 2, 60, "two fires")
        load = Load([self.proxy.address], name)
        load.more(50)
        before = self.start_on(0, sleeper)

        self.step(self.hours)
        load.more(50)
        load.end(self.shards)
        task = self.client.poll_one(sleeper)
        self.assertEqual(task.instance_id, before)
        self.client.report(task, {})    # that its lease does not run out before the end
        during = self.start_on(0, sleeper)
        task = self.woken(held, lease=15000)
        fired = self.fires(ticking)
        wait_for(lambda: self.fires(ticking) >= fired + 2, 60, "two fires ahead")

        self.step(0)
        fired = self.fires(ticking)
        self.assertLess(fired, time.monotonic() - since + 3, "fires of a schedule of one a second")
        self.woken(held)
        later = Load([self.proxy.address], name)
        later.more(50)
        later.end(self.shards)

        # schedules go on, and a lease of those hours lasts as long as it was given for
        wait_for(lambda: self.fires(ticking) >= fired + 2, 60, "two more fires")
        again = []
        wait_for(lambda: again.extend(self.client.poll(held, wait=5000)) or again, 60, "the task whose lease has run out")
        self.assertEqual(again[0].task_id, task.task_id)
        self.assertEqual(self.client.report(task, {}).error_status, 409)
        self.assertEqual(self.client.report(again[0], {}).applied.instance_status, "COMPLETED")
        self.assertEqual(self.client.status(during), "RUNNING")

        for each in (load, later):
            each.is_as_acknowledged(self, self.shards)
        self.told_and_listed(consumer, name, load.started + later.started)

        # and nothing that was put there is lost
        self.step(self.hours + 120)
        self.assertEqual(self.client.poll_one(sleeper, wait=30000).instance_id, during)

    def told_and_listed(self, consumer, name, started):
        """Each start and end is told once; each instance is on one page."""
        told, seen = collections.Counter(), set()
        while told["wf.completed"] < len(started):
            events = self.client.call("PollEvents", consumer=consumer, max=500, wait_millis=10000).events
            self.assertTrue(events, "%d of %d ends have been told" % (told["wf.completed"], len(started)))
            self.assertEqual({e.cursor for e in events} & seen, set())
            seen.update(e.cursor for e in events)
            told.update(e.type for e in events if e.workflow == name)
            self.client.call("AckEvents", consumer=consumer, acked_cursor=events[-1].cursor)
        self.assertEqual((told["wf.started"], told["wf.completed"]), (len(started), len(started)))
        done = wiggle("--json", "list", "--all", "--workflow", name, server=self.proxy.address)
        self.assertEqual(sorted(i["id"] for i in json.loads(done.stdout)), sorted(started))
