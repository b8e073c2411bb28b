"""Proxies whose clocks are wrong, and a shard whose clock is ahead of the other's."""
import glob
import unittest

import world
from harness import Proxy, topology, wait_for
from test_failover import Load
from test_storage import OwnWorld
from wigclient import Client, flow

# Debian's place; the program faketime would start a process of its own in between.
LIBRARIES = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")
with_faketime = unittest.skipUnless(LIBRARIES, "libfaketime is not installed (scripts/deps check)")


def clock_off_by(seconds):
    """What is put before a command whose clock is to be wrong; its waits are not."""
    return ["env", "LD_PRELOAD=" + LIBRARIES[0], "FAKETIME=%+d" % seconds, "DONT_FAKE_MONOTONIC=1"]


@with_faketime
class Clocks(OwnWorld):
    def setUp(self):
        super().setUp()
        self.clients = {"right": self.client}
        self.addresses = [self.proxy.address]
        for name, offset in (("fast", 600), ("slow", -600)):
            proxy = Proxy(world.AREA, topology(*self.shards), name="%s-%s" % (self.id().split(".")[-1], name),
                          within=clock_off_by(offset))
            self.addCleanup(proxy.stop)
            proxy.start()
            self.addresses.append(proxy.address)
            self.clients[name] = Client(proxy.address)
            self.addCleanup(self.clients[name].close)

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
        name = self.define(("sleep", 300), "a")
        for client in self.clients.values():
            instance = client.start(name)
            tasks = [c.future("PollTasks", worker_id="w", queues=[name], max=1, wait_millis=10000)
                     for c in self.clients.values()]
            got = wait_for(lambda t=tasks: [task for call in t if call.done() for task in call.result().tasks], 20,
                           "the task behind the sleep")
            self.assertEqual([t.instance_id for t in got], [instance])
            self.client.report(got[0])
            for call in tasks:
                call.result()


@with_faketime
class Apart(OwnWorld):
    """One shard's clock is five minutes ahead of the other's."""

    def setUp(self):
        make = world.make_shard
        ahead = {"within": clock_off_by(300)}
        world.make_shard = lambda name, *settings: make(name, *settings, **(ahead if name.endswith("-1") else {}))
        try:
            super().setUp()
        finally:
            world.make_shard = make

    def test_lists_and_events_skip_nothing(self):
        self.assertGreater(float(self.shards[1].psql("select extract(epoch from (wiggle.shard()).now)"))
                           - float(self.shards[0].psql("select extract(epoch from (wiggle.shard()).now)")), 200)
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
