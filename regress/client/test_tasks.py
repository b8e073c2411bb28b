"""A worker's calls: reports, completions, failures, heartbeats, and their refusals."""
import time

import grpc

import wiggle_pb2 as pb
from wigclient import NO_RETRY, ClientTest, plain, retry, value

INVALID = grpc.StatusCode.INVALID_ARGUMENT
NOT_FOUND = grpc.StatusCode.NOT_FOUND
CONFLICT = grpc.StatusCode.FAILED_PRECONDITION
UNKNOWN_TASK = "tok.s0.01m446vf3rya1rekthaps4-1"


class Flow(ClientTest):
    def test_three_tasks_in_order_with_a_growing_context(self):
        name = self.define("a", "b", "c")
        instance = self.client.start(name, {"start": True})
        for step in "abc":
            task = self.client.poll_one(name)
            self.assertEqual((task.instance_id, task.workflow, task.version), (instance, name, 1))
            self.assertEqual((task.step_name, task.activity, task.kind), (step, "%s#%s" % (name, step), "TASK"))
            self.assertEqual((task.attempt, task.execution_mode), (1, "SERVER"))
            self.assertFalse(task.HasField("base_context"))
            outcome = self.client.report(task, {**plain(task.context), step: 1})
            self.assertEqual(outcome.task_id, task.task_id)
            self.assertEqual(outcome.applied.next_task_id, "")
        self.assertEqual(outcome.applied.instance_status, "COMPLETED")
        view = self.client.get(instance)
        self.assertEqual(view.instance.status, "COMPLETED")
        self.assertEqual(plain(view.instance.context), {"start": True, "a": 1, "b": 1, "c": 1})
        self.assertTrue(all(t.status == "DONE" for t in view.tokens))

    def test_a_false_gate_ends_the_instance_and_later_steps_never_run(self):
        name = self.define("a", ("gate", "in-stock"), "b")
        instance = self.client.start(name)
        self.client.report(self.client.poll_one(name), {})
        gate = self.client.poll_one(name)
        self.assertEqual((gate.kind, gate.step_name), ("PREDICATE", "in-stock"))
        self.assertEqual(self.client.report(gate, False).applied.instance_status, "COMPLETED")
        view = self.client.get(instance).instance
        self.assertEqual((view.status, view.termination_reason), ("COMPLETED", "gated:in-stock"))
        self.assertEqual(self.client.poll(name, wait=0), [])

    def test_a_true_gate_goes_on(self):
        name = self.define(("gate", "g"), "b")
        instance = self.client.start(name)
        self.client.report(self.client.poll_one(name), True)
        self.assertEqual(self.client.poll_one(name).step_name, "b")
        self.assertEqual(self.client.status(instance), "RUNNING")

    def test_a_report_replaces_the_context_and_drops_top_level_nulls(self):
        name = self.define("a", "b")
        instance = self.client.start(name, {"old": 1})
        self.client.report(self.client.poll_one(name), {"new": {"kept": None}, "gone": None})
        self.assertEqual(self.client.context(instance), {"new": {"kept": None}})
        self.client.report(self.client.poll_one(name))
        self.assertEqual(self.client.context(instance), {"new": {"kept": None}})

    def test_several_steps_in_one_server_run(self):
        name = self.define("a", "b", "c")
        instance = self.client.start(name)
        outcome = self.client.report(self.client.poll_one(name), ("n1", {"a": 1}), ("n2", {"b": 2}))
        self.assertEqual((outcome.error_status, outcome.applied.instance_status), (0, "RUNNING"))
        self.assertEqual(self.client.context(instance), {"b": 2})
        self.assertEqual(self.client.poll_one(name).step_name, "c")

    def test_a_sleep_holds_no_worker_and_goes_on_when_due(self):
        for millis in (300, 3_600_000):
            name = self.define("a", ("sleep", millis), "b")
            instance = self.client.start(name)
            task = self.client.poll_one(name)
            begin = time.monotonic()
            self.client.report(task, {})
            if millis == 300:
                self.assertEqual(self.client.poll_one(name).step_name, "b")
                self.assertGreaterEqual(time.monotonic() - begin, 0.28)
            else:
                self.assertEqual(self.client.poll(name, wait=500), [])
                waiting = [t for t in self.client.get(instance).tokens if t.status == "WAITING"]
                self.assertEqual([t.kind for t in waiting], ["SLEEP"])

    def test_worker_clocks_are_kept(self):
        name = self.define("a", "b")
        instance = self.client.start(name)
        task = self.client.poll_one(name)
        step = pb.StepResult(node_id=task.node_id, started_at=1_700_000_000_000, finished_at=1_700_000_001_234)
        self.client.call("ReportSteps", runs=[pb.ReportedRun(task_id=task.task_id, lease_owner=task.lease_owner,
                                                             steps=[step], final=True)])
        token = next(t for t in self.client.get(instance).tokens if t.node_id == task.node_id)
        self.assertEqual((token.started_at, token.finished_at), (1_700_000_000_000, 1_700_000_001_234))


class Reports(ClientTest):
    def test_structural_defects_refuse_the_call(self):
        run = pb.ReportedRun(task_id=UNKNOWN_TASK, lease_owner="x", steps=[pb.StepResult(node_id="n1")])
        empty = pb.ReportedRun(task_id=UNKNOWN_TASK, lease_owner="x")
        for runs, text in (([], "report requires at least one run"), ([empty], "report requires at least one step"),
                           ([run, run], "task %s appears twice in the batch" % UNKNOWN_TASK)):
            self.refused(INVALID, text, self.client.call, "ReportSteps", runs=runs)

    def test_unknown_tasks(self):
        for unknown in (UNKNOWN_TASK, "tok.s1.01m446vf3rya1rekthaps4-7", "nonsense"):
            task = pb.TaskActivation(task_id=unknown, node_id="n1", lease_owner="w#0000000000000")
            self.run_refused(404, "task not found", self.client.report(task, {}))
            self.refused(NOT_FOUND, "task not found", self.client.fail, task)
            self.refused(NOT_FOUND, "task not found", self.client.call, "CompleteTask", task_id=unknown, lease_owner="x")
            self.refused(NOT_FOUND, "task not found", self.client.call, "HeartbeatTask", task_id=unknown,
                         lease_owner="x", extend_millis=1000)

    def test_a_task_that_nobody_leased(self):
        name = self.define("a")
        token = self.client.get(self.client.start(name)).tokens[0]
        task = pb.TaskActivation(task_id=token.id, node_id="n1", lease_owner="me#0000000000000")
        text = "task %s is READY, not RUNNING" % token.id
        self.run_refused(409, text, self.client.report(task, {}))
        self.refused(CONFLICT, text, self.client.fail, task)

    def test_another_owners_lease(self):
        name = self.define("a")
        self.client.start(name)
        task = self.client.poll_one(name)
        text = "lease for task %s is held by %s" % (task.task_id, "tester")
        self.run_refused(409, text, self.client.report(task, {}, owner="thief"))
        stolen = pb.TaskActivation(task_id=task.task_id, lease_owner="thief")
        self.refused(CONFLICT, text, self.client.fail, stolen)
        self.refused(CONFLICT, text, self.client.call, "HeartbeatTask", task_id=task.task_id, lease_owner="thief",
                     extend_millis=1000)
        self.refused(CONFLICT, text, self.client.call, "CompleteTask", task_id=task.task_id, lease_owner="thief")
        self.assertEqual(self.client.report(task, {}).applied.instance_status, "COMPLETED")

    def test_two_polls_of_one_worker_id_cannot_settle_each_others_tasks(self):
        name = self.define("a")
        ids = [self.client.start(name), self.client.start(name)]
        first, second = self.client.poll_one(name, worker="same"), self.client.poll_one(name, worker="same")
        self.assertNotEqual(first.lease_owner, second.lease_owner)
        self.run_refused(409, "*is held by*", self.client.report(first, {}, owner=second.lease_owner))
        self.client.report(first, {})
        self.client.report(second, {})
        self.assertEqual([self.client.status(i) for i in ids], ["COMPLETED"] * 2)

    def test_a_duplicate_report_is_refused(self):
        name = self.define("a", "b")
        self.client.start(name)
        task = self.client.poll_one(name)
        self.client.report(task, {})
        self.run_refused(409, "task %s is DONE, not RUNNING" % task.task_id, self.client.report(task, {}))

    def test_another_node_than_the_tasks_own_rolls_the_run_back(self):
        name = self.define("a", "b")
        instance = self.client.start(name, {"v": 0})
        task = self.client.poll_one(name)
        self.run_refused(409, "reported step n2 but token %s is at n1" % task.task_id,
                         self.client.report(task, ("n2", {"v": 1})))
        outcome = self.client.report(task, ("n1", {"v": 1}), ("n9", {"v": 2}))
        self.assertEqual(outcome.error_status, 409)
        self.assertEqual(self.client.context(instance), {"v": 0})
        self.assertEqual(self.client.report(task, {"v": 3}).error_status, 0)

    def test_a_gate_needs_a_boolean(self):
        name = self.define(("gate", "g"), "b")
        self.client.start(name)
        gate = self.client.poll_one(name)
        self.run_refused(400, "predicate result must be a boolean", self.client.report(gate, {"value": True}))
        self.run_refused(400, "predicate result must be a boolean", self.client.report(gate))
        self.refused(INVALID, "predicate result must be a boolean", self.client.call, "CompleteTask",
                     task_id=gate.task_id, lease_owner=gate.lease_owner, result=value({"other": 1}))
        self.assertEqual(self.client.report(gate, True).error_status, 0)

    def test_a_report_after_a_cancel_is_told_and_changes_nothing(self):
        name = self.define("a")
        instance = self.client.start(name)
        task = self.client.poll_one(name)
        self.client.call("CancelInstance", instance_id=instance)
        outcome = self.client.report(task, {"late": 1})
        self.assertEqual((outcome.error_status, outcome.applied.instance_status), (0, "CANCELLED"))
        self.assertEqual((outcome.applied.lease_expires_at, outcome.applied.next_task_id), (0, ""))
        self.assertEqual(self.client.context(instance), {})
        self.refused(CONFLICT, "task %s is CANCELLED, not RUNNING" % task.task_id, self.client.fail, task)
        self.refused(CONFLICT, "task %s is CANCELLED, not RUNNING" % task.task_id, self.client.call, "CompleteTask",
                     task_id=task.task_id, lease_owner=task.lease_owner)


class Complete(ClientTest):
    """The call of Go, Python and older Java clients."""

    def complete(self, task, *result):
        more = {"result": value(result[0])} if result else {}
        return self.client.call("CompleteTask", task_id=task.task_id, lease_owner=task.lease_owner, **more)

    def test_a_result_is_merged_key_by_key(self):
        name = self.define("a", "b", "c")
        instance = self.client.start(name, {"keep": 1, "drop": 2, "change": 3})
        self.assertTrue(self.complete(self.client.poll_one(name), {"drop": None, "change": 4, "new": [5]}).ok)
        self.assertEqual(self.client.context(instance), {"keep": 1, "change": 4, "new": [5]})
        self.complete(self.client.poll_one(name), None)
        self.complete(self.client.poll_one(name))
        self.assertEqual(self.client.context(instance), {"keep": 1, "change": 4, "new": [5]})
        self.assertEqual(self.client.status(instance), "COMPLETED")

    def test_predicates_take_an_object_or_a_bare_boolean(self):
        name = self.define(("gate", "g"), ("gate", "h"), "b")
        instance = self.client.start(name)
        self.complete(self.client.poll_one(name), {"value": True})
        self.complete(self.client.poll_one(name), False)
        self.assertEqual(self.client.get(instance).instance.termination_reason, "gated:h")

    def test_a_failure_after_a_refused_completion_does_no_harm(self):
        name = self.define("a", "b")
        instance = self.client.start(name)
        task = self.client.poll_one(name)
        self.complete(task, {"x": 1})
        self.refused(CONFLICT, "task %s is DONE, not RUNNING" % task.task_id, self.complete, task, {"x": 2})
        self.refused(CONFLICT, "task %s is DONE, not RUNNING" % task.task_id, self.client.fail, task)
        self.assertEqual((self.client.status(instance), self.client.context(instance)), ("RUNNING", {"x": 1}))


class Failures(ClientTest):
    def test_a_flaky_step_is_retried_by_its_policy(self):
        name = self.define(("task", "flaky", retry(3, 1)), "after")
        instance = self.client.start(name)
        for attempt in (1, 2):
            task = self.client.poll_one(name)
            self.assertEqual(task.attempt, attempt)
            self.assertTrue(self.client.fail(task, "try %d" % attempt).ok)
        token = self.client.get(instance).tokens[0]
        self.assertEqual((token.attempt, token.last_error), (2, "try 2"))
        task = self.client.poll_one(name)
        self.assertEqual(task.attempt, 3)
        self.client.report(task, {"done": True})
        self.assertEqual(self.client.poll_one(name).step_name, "after")

    def test_a_spent_policy_fails_the_instance_and_names_the_step(self):
        name = self.define(("task", "charge", retry(2, 1)))
        instance = self.client.start(name)
        for _ in range(2):
            self.client.fail(self.client.poll_one(name), "card declined")
        view = self.client.get(instance)
        self.assertEqual((view.instance.status, view.instance.error), ("FAILED", "charge: card declined"))
        self.assertEqual([t.status for t in view.tokens], ["FAILED"])
        self.assertEqual(self.client.poll(name, wait=0), [])

    def test_a_permanent_failure_is_not_retried(self):
        name = self.define(("task", "a", retry(10, 1)))
        instance = self.client.start(name)
        self.client.fail(self.client.poll_one(name), "no such card", retryable=False)
        self.assertEqual(self.client.get(instance).instance.error, "a: no such card")

    def test_a_long_backoff_is_parked_and_promoted_when_due(self):
        for millis in (1000, 3_600_000):
            name = self.define(("task", "a", retry(2, millis)))
            instance = self.client.start(name)
            task = self.client.poll_one(name)
            begin = time.monotonic()
            self.client.fail(task)
            if millis == 1000:
                self.assertEqual(self.client.poll_one(name).attempt, 2)
                self.assertGreaterEqual(time.monotonic() - begin, 0.97)
            else:
                self.assertEqual(self.client.poll(name, wait=500), [])
                self.assertEqual(self.client.get(instance).tokens[0].status, "WAITING")

    def test_a_step_without_policy_goes_on_for_ever(self):
        name = self.define("a")
        self.client.start(name)
        self.client.fail(self.client.poll_one(name))
        self.assertEqual(self.client.poll_one(name).attempt, 2)


class Leases(ClientTest):
    def test_an_expired_lease_is_redelivered_and_the_attempt_is_spent(self):
        name = self.define(("task", "a", retry(2, 1)))
        instance = self.client.start(name)
        lost = self.client.poll_one(name, worker="dies", lease_millis=200)
        again = self.client.poll_one(name, worker="lives")
        self.assertEqual((again.task_id, again.attempt), (lost.task_id, 2))
        token = self.client.get(instance).tokens[0]
        self.assertEqual(token.last_error, "lease expired (worker unreachable)")
        self.run_refused(409, "lease for task %s is held by %s" % (again.task_id, "lives"),
                         self.client.report(lost, {"stale": 1}))
        self.assertEqual(self.client.report(again, {"fresh": 1}).applied.instance_status, "COMPLETED")
        self.assertEqual(self.client.context(instance), {"fresh": 1})

    def test_the_last_attempts_expiry_fails_the_instance(self):
        name = self.define(("task", "a", NO_RETRY))
        instance = self.client.start(name)
        self.client.poll_one(name, lease_millis=100)
        self.becomes(instance, "FAILED")
        self.assertEqual(self.client.get(instance).instance.error, "a: lease expired")

    def test_heartbeats_keep_a_lease(self):
        """Past its first end, which the same lease of a witness shows, claimed later."""
        name = self.define(("task", "a", NO_RETRY))
        instance, witness = self.client.start(name), self.client.start(name)
        claims = {}
        for _ in range(2):
            task = self.client.poll_one(name, lease_millis=8000)
            claims[task.instance_id] = task
        if claims[witness].lease_expires_at < claims[instance].lease_expires_at:
            instance, witness = witness, instance
        task = claims[instance]
        expires = task.lease_expires_at
        for _ in range(3):
            reply = self.client.call("HeartbeatTask", task_id=task.task_id, lease_owner=task.lease_owner,
                                     extend_millis=60000)
            self.assertGreaterEqual(reply.lease_expires_at, expires)
            expires = reply.lease_expires_at
        self.becomes(witness, "FAILED")
        self.assertEqual(self.client.report(task, {}).applied.instance_status, "COMPLETED")
        self.assertEqual(self.client.status(instance), "COMPLETED")

    def test_a_heartbeat_may_end_a_lease(self):
        name = self.define(("task", "a", retry(2, 1)))
        self.client.start(name)
        task = self.client.poll_one(name)
        self.client.call("HeartbeatTask", task_id=task.task_id, lease_owner=task.lease_owner, extend_millis=0)
        self.assertEqual(self.client.poll_one(name).attempt, 2)

    def test_the_default_lease_is_thirty_seconds(self):
        name = self.define("a")
        self.client.start(name)
        now = time.time() * 1000
        task = self.client.poll_one(name)
        self.assertGreaterEqual(task.lease_expires_at - now, 30000 - 1)
        self.assertLess(task.lease_expires_at - time.time() * 1000, 30000 + 1)
