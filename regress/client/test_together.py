"""Siblings that end in the same instant, reported through two proxies over two shards."""
import random

import grpc

import wiggle_pb2 as pb
from harness import wait_for
from test_storage import OwnWorld
from wigclient import Client, fresh_name, run_of, step_result, value

SENDERS = 10
INSTANCES = 1000
PARENTS, CHILDREN = 200, 50
# Of both proxies' arms.
BAD = {"t1", "t2", "t5", "t6", "t9"}
LEASE = 600_000


class Together(OwnWorld):
    """Ten senders, five to a proxy, each with a part of every instance's work and an order of its own."""

    def setUp(self):
        super().setUp()
        self.second = self.start_proxy("-2")
        self.both = (self.proxy, self.second)
        self.senders = []
        for i in range(SENDERS):
            address = self.both[i % 2].address
            self.senders.append(Client(address, options=[("grpc.use_local_subchannel_pool", 1)]))
            self.addCleanup(self.senders[-1].close)

    def start_all(self, name, n, **more):
        calls = [sender.future("StartInstance", timeout=120, workflow=name, **more)
                 for _ in range(n // SENDERS) for sender in self.senders]
        return [call.result().instance_id for call in calls]

    def claim(self, queue, n):
        """All n tasks of the queue."""
        tasks = []
        while len(tasks) < n:
            calls = [sender.future("PollTasks", worker_id="w", queues=[queue], max=100, wait_millis=10000,
                                   lease_millis=LEASE) for sender in self.senders[:min(SENDERS, n - len(tasks))]]
            got = [task for call in calls for task in call.result().tasks]
            self.assertTrue(got, "%d of %d tasks have come" % (len(tasks), n))
            tasks += got
        self.assertEqual(len({t.task_id for t in tasks}), n)
        return tasks

    def release(self, parts, send):
        """Every sender sends one call for each task of its part, in an order of its own, while both
        proxies stand still; then both go on at once. The answers.

        A call that is UNAVAILABLE has changed nothing and is sent again, as clients do.
        """
        left, answers = parts, []
        for i, part in enumerate(left):
            random.Random(i).shuffle(part)
        while any(left):
            with self.proxy.standing_still(), self.second.standing_still():
                calls = [[(task, send(sender, task)) for task in part] for sender, part in zip(self.senders, left)]
            left = []
            for part in calls:
                left.append([])
                for task, call in part:
                    try:
                        answers.append((task, call.result()))
                    except grpc.RpcError as refusal:
                        if refusal.code() == grpc.StatusCode.UNAVAILABLE:
                            left[-1].append(task)
                        else:
                            answers.append((task, refusal))
        return answers

    def report(self, sender, task):
        return sender.future("ReportSteps", timeout=120, runs=[run_of(task, step_result(task.node_id, {}))])

    def fail_for_good(self, sender, task):
        return sender.future("FailTask", timeout=120, task_id=task.task_id, lease_owner=task.lease_owner,
                             message="for good", retryable=False)

    def accepted(self, answers):
        for task, answer in answers:
            self.assertIsInstance(answer, pb.ReportStepsResult, task)
            self.assertEqual(answer.results[0].error_status, 0, answer)

    def on_both(self, sql, **variables):
        return [line for shard in self.shards for line in shard.psql(sql, **variables).splitlines()]

    def total(self, sql, **variables):
        return sum(map(int, self.on_both(sql, **variables)))

    def nothing_is_left(self):
        for what in ("wf_ready", "wf_lease", "wf_timer"):
            wait_for(lambda what=what: self.total("select count(*) from wiggle.%s" % what) == 0, 120, "an empty " + what)
        self.assertEqual(self.total("""select count(*) from wiggle.wf_instance i, wiggle.tokens(i.id) t
            where i.status <> 'RUNNING' and t.status in ('READY', 'RUNNING', 'WAITING', 'AWAITING')"""), 0)

    def everybody_lives(self):
        for proxy in self.both:
            self.assertIsNone(proxy.process.poll())
            self.assertTrue(proxy.ready())

    def fork(self):
        name = fresh_name("fork")
        arms = {"arm%d" % i: [{"task": "t%d" % i}] for i in range(SENDERS)}
        self.client.register({"workflow": name, "version": 1, "steps": [{"fork": arms, "combine": "meet"}]})
        return name

    def arms(self, name):
        """Each arm's tasks: a part is of one arm, so that an instance's ten have ten senders."""
        tasks = self.claim(name, SENDERS * INSTANCES)
        return [[t for t in tasks if t.step_name == "t%d" % i] for i in range(SENDERS)]

    def test_ten_arms_of_a_thousand_forks(self):
        name = self.fork()
        ids = self.start_all(name, INSTANCES)
        self.accepted(self.release(self.arms(name), self.report))
        combines = self.claim(name, INSTANCES)
        self.assertEqual({t.instance_id for t in combines}, set(ids))
        self.accepted(self.release([combines[i::SENDERS] for i in range(SENDERS)], self.report))
        self.nothing_is_left()
        self.assertEqual(self.on_both("select distinct status from wiggle.wf_instance"), ["COMPLETED"] * 2)
        self.assertEqual(self.total("select count(*) from wiggle.wf_instance"), INSTANCES)
        self.minted_once("meet", INSTANCES)
        self.everybody_lives()

    def minted_once(self, step, n):
        """Each of n instances has one token of this step, and no more."""
        counts = self.on_both("""select count(*) from wiggle.wf_instance i, wiggle.tokens(i.id) t
            where t.activity = i.workflow || '#' || :'step' group by i.id""", step=step)
        self.assertEqual((len(counts), set(counts)), (n, {"1"}))

    def test_half_of_the_arms_fail_for_good(self):
        name = self.fork()
        ids = self.start_all(name, INSTANCES)

        def settle(sender, task):
            return self.fail_for_good(sender, task) if task.step_name in BAD else self.report(sender, task)
        told = []
        for task, answer in self.release(self.arms(name), settle):
            if isinstance(answer, grpc.RpcError):
                self.assertEqual(answer.code(), grpc.StatusCode.FAILED_PRECONDITION, answer.details())
                self.assertEqual(answer.details(), "task %s is CANCELLED, not RUNNING" % task.task_id)
            elif isinstance(answer, pb.Ack):
                told.append(task.instance_id)
            else:
                self.assertEqual(answer.results[0].error_status, 0, answer)
        self.assertEqual(sorted(told), sorted(ids), "the first failure of an instance ends it, and no other counts")
        self.nothing_is_left()
        self.assertEqual(self.on_both("select distinct status from wiggle.wf_instance"), ["FAILED"] * 2)
        self.assertEqual(self.total("select count(*) from wiggle.wf_event where type = 'wf.failed'"), INSTANCES)
        self.assertEqual(self.total("select count(distinct instance_id) from wiggle.wf_event where type = 'wf.failed'"),
                         INSTANCES)
        self.everybody_lives()

    def test_fifty_children_of_two_hundred_parents(self):
        child = self.define("work", stem="child")
        name = fresh_name("parent")
        self.client.register({"workflow": name, "version": 1, "steps": [
            {"fork_each": {"over": "items", "as": "item", "combine": "meet",
                           "body": [{"sub_workflow": {"name": "sub", "workflow": child}}]}}]})
        ids = self.start_all(name, PARENTS, context=value({"items": list(range(CHILDREN))}))
        tasks = self.claim(child, PARENTS * CHILDREN)
        # Dealt out so that every sender has children of every parent.
        tasks.sort(key=lambda t: t.instance_id)
        self.accepted(self.release([tasks[i::SENDERS] for i in range(SENDERS)], self.report))
        combines = self.claim(name, PARENTS)
        self.assertEqual({t.instance_id for t in combines}, set(ids))
        self.accepted(self.release([combines[i::SENDERS] for i in range(SENDERS)], self.report))
        self.nothing_is_left()
        self.assertEqual(self.on_both("select distinct status from wiggle.wf_instance"), ["COMPLETED"] * 2)
        self.assertEqual(self.total("select count(*) from wiggle.wf_instance"), PARENTS * (CHILDREN + 1))
        self.minted_once("meet", PARENTS)
        self.everybody_lives()
