"""PollTasks: parking, wake-up, filters, several workers and proxies."""
import threading
import time

import grpc

import wiggle_pb2 as pb
import world
from harness import Proxy, topology, wait_for
from wigclient import Client, ClientTest, flow, fresh_name


class Polls(ClientTest):
    def test_an_empty_queue_answers_empty_after_the_wait(self):
        begin = time.monotonic()
        self.assertEqual(self.client.poll(fresh_name("empty"), wait=300), [])
        self.assertGreater(time.monotonic() - begin, 0.2)
        # What waits longest here waits for 20 seconds.
        begin = time.monotonic()
        self.assertEqual(self.client.poll(fresh_name("empty"), wait=-5), [])
        self.assertLess(time.monotonic() - begin, 15)

    def test_a_poll_too_many_is_told_when_to_come_again(self):
        proxy = Proxy(world.AREA, topology(*world.shards), name="bounded-polls", WIGGLE_MAX_PARKED_POLLS=2,
                      WIGGLE_POLL_RETRY_MILLIS=321).start()
        self.addCleanup(proxy.stop)
        client = Client(proxy.address)
        self.addCleanup(client.close)
        name = self.define("a")
        held = [client.future("PollTasks", worker_id="h", queues=["nobody"], max=1, wait_millis=20000) for _ in range(2)]
        wait_for(lambda: "wiggle_proxy_parked_polls 2" in proxy.http("/metrics")[1], 60, "two parked polls")
        reply = client.call("PollTasks", worker_id="w", queues=[name], max=1, wait_millis=20000)
        self.assertEqual(list(reply.tasks), [])
        self.assertGreaterEqual(reply.retry_after_millis, 321)
        self.assertIn("wiggle_proxy_shed_polls_total 1", proxy.http("/metrics")[1])
        held.pop().cancel()
        wait_for(lambda: "wiggle_proxy_parked_polls 1" in proxy.http("/metrics")[1], 60, "room")
        parked = client.future("PollTasks", worker_id="w", queues=[name], max=1, wait_millis=20000)
        wait_for(lambda: "wiggle_proxy_parked_polls 2" in proxy.http("/metrics")[1], 60, "the poll to be parked")
        instance = client.start(name)
        self.assertEqual([t.instance_id for t in parked.result().tasks], [instance])

    def test_a_parked_poll_is_woken_by_a_start(self):
        name = self.define("a")
        parked = self.client.future("PollTasks", worker_id="w", queues=[name], max=1, wait_millis=15000)
        instance = self.client.start(name)
        self.assertEqual([t.instance_id for t in parked.result().tasks], [instance])

    def test_a_parked_poll_is_woken_from_sql(self):
        """Twenty times; to be found by the look that a proxy takes every ten seconds would take 200."""
        name = self.define("a")
        begin = time.monotonic()
        for i in range(20):
            parked = self.client.future("PollTasks", worker_id="w", queues=[name], max=1, wait_millis=15000)
            instance = world.shards[i % 2].psql("select wiggle.start(:'name')", name=name)
            self.assertEqual([t.instance_id for t in parked.result().tasks], [instance])
        self.assertLess(time.monotonic() - begin, 100)

    def test_one_wake_up_serves_many_parked_polls(self):
        name = self.define("a")
        parked = [self.client.future("PollTasks", worker_id="w%d" % i, queues=[name], max=1, wait_millis=15000)
                  for i in range(20)]
        ids = {self.client.start(name) for _ in range(20)}
        self.assertEqual({p.result().tasks[0].instance_id for p in parked}, ids)

    def test_max_bounds_the_answer(self):
        name = self.define("a")
        for _ in range(10):
            self.client.start(name)
        self.assertEqual(len(self.client.poll(name, max=3)), 3)
        self.assertEqual(len(self.client.poll(name, max=0)), 1)
        rest = []
        while len(rest) < 6:
            got = self.client.poll(name, max=100)
            self.assertTrue(got, "six tasks are still there")
            rest += got
        self.assertEqual(len(rest), 6)

    def test_a_cancelled_poll_claims_nothing(self):
        name = self.define("a")
        for _ in range(20):
            poll = self.client.future("PollTasks", worker_id="gone", queues=[name], max=1, wait_millis=15000)
            poll.cancel()
        instance = self.client.start(name)
        self.assertEqual(self.client.poll_one(name, worker="alive").instance_id, instance)

    def test_a_client_that_vanishes_leaves_no_task_behind(self):
        name = self.define("a")
        other = Client(world.proxy.address, options=[("grpc.use_local_subchannel_pool", 1)])
        other.future("PollTasks", worker_id="gone", queues=[name], max=1, wait_millis=15000)
        other.call("HealthCheck")
        other.close()
        instance = self.client.start(name)
        self.assertEqual(self.client.poll_one(name).instance_id, instance)

    def test_queues_are_kept_apart(self):
        name = fresh_name()
        definition = flow(name, "a", "b")
        definition["nodes"][1]["queue"] = name + "-second"
        definition["queues"].append(name + "-second")
        self.client.register(definition)
        self.client.start(name)
        self.assertEqual(self.client.poll(name + "-second", wait=0), [])
        self.client.report(self.client.poll_one(name), {})
        self.assertEqual(self.client.poll(name, wait=0), [])
        self.assertEqual(self.client.poll_one(name + "-second").step_name, "b")

    def test_a_version_scoped_poll_never_claims_another_version(self):
        name = fresh_name()
        self.client.register(flow(name, "a", version=1))
        self.client.register(flow(name, "a", version=2))
        old, new = self.client.start(name, version=1), self.client.start(name, version=2)
        only_two = [pb.WorkflowVersion(workflow=name, version=2)]
        self.assertEqual(self.client.poll_one(name, versions=only_two).instance_id, new)
        self.assertEqual(self.client.poll(name, wait=200, versions=only_two), [])
        self.assertEqual(self.client.poll_one(name).instance_id, old)

    def test_the_oldest_instance_goes_first(self):
        name = self.define("a", "b")
        ids = [world.shards[0].psql("select wiggle.start(:'name')", name=name) for _ in range(3)]
        first = self.client.poll_one(name)
        self.assertEqual(first.instance_id, ids[0])
        self.client.report(first, {})
        again = self.client.poll_one(name)
        self.assertEqual((again.instance_id, again.step_name), (ids[0], "b"))

    def test_competing_workers_get_each_task_once(self):
        name = self.define("a", "b")
        ids = [self.client.start(name) for _ in range(40)]
        seen, lock, refused = [], threading.Lock(), []

        def work(number):
            client = Client(world.proxy.address)
            while len(seen) < 80:
                for task in client.poll(name, worker="w%d" % number, wait=500, max=1 + number % 3):
                    if client.report(task, {}).error_status:
                        refused.append(task.task_id)
                    with lock:
                        seen.append(task.task_id)
            client.close()
        waits = [self.in_background(work, n) for n in range(8)]
        for wait in waits:
            wait()
        self.assertEqual((len(seen), len(set(seen)), refused), (80, 80, []))
        self.assertEqual({self.client.status(i) for i in ids}, {"COMPLETED"})

    def test_what_the_columns_bound_is_refused_at_the_door(self):
        self.refused(grpc.StatusCode.INVALID_ARGUMENT, "*worker*", self.client.poll, "q", worker="w" * 121, wait=0)


class TwoProxies(ClientTest):
    def test_both_dispatch_from_one_store_and_wake_each_other(self):
        second = Proxy(world.AREA, topology(*world.shards), name="second").start()
        self.addCleanup(second.stop)
        other = Client(second.address)
        self.addCleanup(other.close)
        name = self.define("a", "b")
        parked = other.future("PollTasks", worker_id="there", queues=[name], max=1, wait_millis=15000)
        instance = self.client.start(name)
        task = parked.result().tasks[0]
        self.assertEqual(task.instance_id, instance)
        parked = self.client.future("PollTasks", worker_id="here", queues=[name], max=1, wait_millis=15000)
        self.assertEqual(other.report(task, {"a": 1}).error_status, 0)
        task = parked.result().tasks[0]
        self.assertEqual(task.step_name, "b")
        self.assertEqual(other.report(task, {"b": 1}).applied.instance_status, "COMPLETED")
