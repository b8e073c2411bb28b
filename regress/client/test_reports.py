"""Reports: batches and their refusals, local modes, emitted events, the former calls."""
import subprocess

import grpc

import wiggle_pb2 as pb
import world
from doors import doors
from wigclient import NO_RETRY, flow, plain, run_of, step_result, value

INVALID = grpc.StatusCode.INVALID_ARGUMENT
NOT_FOUND = grpc.StatusCode.NOT_FOUND
CONFLICT = grpc.StatusCode.FAILED_PRECONDITION
UNKNOWN_TASK = "tok.s0.01m446vf3rya1rekthaps4-1"
SINGLY = " -- report this run singly"


class Batches:
    def leased(self, name, n):
        """n instances of a workflow and the task of each, in the same order."""
        ids = [self.client.start(name) for _ in range(n)]
        tasks = {}
        while len(tasks) < n:
            tasks.update((t.instance_id, t) for t in self.client.poll(name, max=n))
        return ids, [tasks[i] for i in ids]

    def batch(self, *runs):
        return list(self.client.call("ReportSteps", runs=runs).results)

    def test_independent_instances_in_one_call(self):
        name = self.define("a", mode="LOCAL_ASYNC")
        ids, tasks = self.leased(name, 3)
        results = self.batch(*(run_of(t) for t in tasks))
        self.assertEqual([r.task_id for r in results], [t.task_id for t in tasks])
        self.assertEqual([(r.error_status, r.applied.instance_status) for r in results], [(0, "COMPLETED")] * 3)
        self.assertEqual([self.client.status(i) for i in ids], ["COMPLETED"] * 3)

    def test_a_refused_run_leaves_its_mates_alone_and_can_be_reported_again(self):
        name = self.define("a", mode="LOCAL_ASYNC")
        _, tasks = self.leased(name, 3)
        unknown = pb.ReportedRun(task_id=UNKNOWN_TASK, lease_owner="x", steps=[step_result("n1")])
        results = self.batch(run_of(tasks[0]), run_of(tasks[1], owner="someone#else"), unknown, run_of(tasks[2]))
        self.assertEqual([r.error_status for r in results], [0, 409, 404, 0])
        self.run_refused(409, "lease for task %s is held by tester" % tasks[1].task_id, results[1])
        self.run_refused(404, "task not found", results[2])
        self.assertEqual(self.client.report(tasks[1], {}).applied.instance_status, "COMPLETED")

    def test_two_arms_of_one_instance_in_one_call(self):
        name = self.client.register(forked("LOCAL_ASYNC")).name
        instance = self.client.start(name)
        left, right = self.arms(name)
        first, second = self.batch(run_of(left), run_of(right))
        self.assertEqual(first.error_status, 0)
        self.run_refused(409, "another run in this batch already advances instance %s; report this run again once it"
                         " lands" % instance, second)
        self.assertEqual(self.client.report(right, {}).error_status, 0)
        self.assertEqual(self.client.poll_one(name).step_name, "combine:l,r")

    def arms(self, name):
        tasks = []
        while len(tasks) < 2:
            tasks += self.client.poll(name, max=2)
        return sorted(tasks, key=lambda t: t.step_name)

    def test_only_local_async_runs_come_in_batches(self):
        for mode, shown in (("SERVER", "SERVER"), ("LOCAL_SYNC", "LOCAL_SYNC"), ("DEFAULT", "SERVER")):
            with self.subTest(mode=mode):
                name = self.define("a", mode=mode)
                ids, tasks = self.leased(name, 2)
                for result in self.batch(*(run_of(t) for t in tasks)):
                    self.run_refused(409, "definition %s:1 runs %s; a batch takes only LOCAL_ASYNC runs%s"
                                     % (name, shown, SINGLY), result)
                self.assertEqual([self.client.status(i) for i in ids], ["RUNNING"] * 2)
                self.assertEqual(self.client.report(tasks[0], {}).applied.instance_status, "COMPLETED")

    def test_a_wrong_node_is_the_runs_own_fault(self):
        name = self.define("a", "b", mode="LOCAL_ASYNC")
        ids, tasks = self.leased(name, 2)
        good, bad = self.batch(run_of(tasks[0], step_result("n1", {}), step_result("n2", {})),
                               run_of(tasks[1], step_result("n1", {"lost": 1}), step_result("nowhere", {})))
        self.assertEqual(good.applied.instance_status, "COMPLETED")
        self.assertEqual(bad.error_status, 409)
        self.assertIn("reported step nowhere but token", bad.error)
        self.assertEqual(self.client.context(ids[1]), {}, "the run's first step is rolled back too")
        self.assertEqual(self.client.report(tasks[1], ("n1", {}), ("n2", {})).applied.instance_status, "COMPLETED")

    def test_a_child_instance_is_reported_singly(self):
        child = self.define("c", mode="LOCAL_ASYNC")
        plain_one = self.define("a", mode="LOCAL_ASYNC")
        parent = self.shorthand({"sub_workflow": {"name": "sub", "workflow": child}})
        self.client.start(parent)
        task = self.client.poll_one(child)
        _, (mate,) = self.leased(plain_one, 1)
        refused, applied = self.batch(run_of(task), run_of(mate))
        self.run_refused(409, "instance %s is a sub-workflow of another instance%s" % (task.instance_id, SINGLY), refused)
        self.assertEqual(applied.applied.instance_status, "COMPLETED")
        self.assertEqual(self.client.report(task, {}).applied.instance_status, "COMPLETED")

    def test_an_instance_that_someone_holds(self):
        name = self.define("a", mode="LOCAL_ASYNC")
        ids, tasks = self.leased(name, 2)
        shard = world.lone if self.server == "single" else world.shards[self.shard]
        locker = subprocess.Popen(["psql", "-X", "-q", "-A", "-t", "-d", shard.conninfo()], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(locker.communicate)
        locker.stdin.write("begin; select 'held' from wiggle.wf_instance where id = '%s' for update;\n" % ids[0])
        locker.stdin.flush()
        self.assertEqual(locker.stdout.readline().strip(), "held")
        held, applied = self.batch(*(run_of(t) for t in tasks))
        self.run_refused(409, "instance of task %s is held by a concurrent operation or gone%s"
                         % (tasks[0].task_id, SINGLY), held)
        self.assertEqual(applied.applied.instance_status, "COMPLETED")
        locker.stdin.write("commit;\n")
        locker.stdin.flush()
        self.assertEqual(self.client.report(tasks[0], {}).applied.instance_status, "COMPLETED")

    def test_an_instance_that_has_stopped_is_no_refusal(self):
        name = self.define("a", mode="LOCAL_ASYNC")
        ids, tasks = self.leased(name, 2)
        self.client.call("CancelInstance", instance_id=ids[0])
        results = self.batch(*(run_of(t) for t in tasks))
        self.assertEqual([r.applied.instance_status for r in results], ["CANCELLED", "COMPLETED"])

    def test_a_loop_over_its_budget_is_a_result(self):
        name = self.client.register(looping(2, "LOCAL_ASYNC")).name
        ids, tasks = self.leased(name, 2)
        steps = [step_result("n1", {}), step_result("n2", True)] * 3
        results = self.batch(*(run_of(t, *steps) for t in tasks))
        self.assertEqual([r.applied.instance_status for r in results], ["FAILED"] * 2)
        for i in ids:
            self.assertIn("loop 'again' exceeded its budget of 2 iterations", self.client.get(i).instance.error)

    def test_a_compensator_in_a_batch_is_answered_and_untouched(self):
        name = self.client.register(saga("LOCAL_ASYNC")).name
        instance = self.client.start(name)
        self.client.report(self.client.poll_one(name), {})
        self.client.fail(self.client.poll_one(name), "no", retryable=False)
        undo = self.client.poll_one(name)
        self.assertEqual(undo.step_name, name + "#a#compensate")
        _, (mate,) = self.leased(self.define("x", mode="LOCAL_ASYNC"), 1)
        untouched, applied = self.batch(run_of(undo), run_of(mate))
        self.assertEqual((untouched.error_status, untouched.applied.instance_status), (0, "COMPENSATING"))
        self.assertEqual(applied.applied.instance_status, "COMPLETED")
        self.assertEqual(self.client.status(instance), "COMPENSATING")
        self.assertEqual(self.client.report(undo, {}).applied.instance_status, "COMPENSATED")

    def test_structural_defects_refuse_the_call(self):
        run = pb.ReportedRun(task_id=UNKNOWN_TASK, lease_owner="x", steps=[step_result("n1")])
        empty = pb.ReportedRun(task_id=UNKNOWN_TASK, lease_owner="x")
        twice = "task %s appears twice in the batch" % UNKNOWN_TASK
        for rpc, none, no_step in (
                ("ReportSteps", "report requires at least one run", "report requires at least one step"),
                ("AdvanceMany", "advanceMany requires at least one run", "advance requires at least one step")):
            kind = pb.ReportedRun if rpc == "ReportSteps" else pb.AdvanceRunRequest
            for runs, text in (([], none), ([empty], no_step), ([run, run], twice)):
                runs = [kind.FromString(r.SerializeToString()) for r in runs]
                self.refused(INVALID, text, self.client.call, rpc, runs=runs)


class Former:
    """AdvanceRun, AdvanceMany, CompleteTask."""

    def test_advance_run_is_a_run_whose_refusal_is_the_calls(self):
        name = self.define("a", "b", mode="LOCAL_SYNC")
        instance = self.client.start(name)
        task = self.client.poll_one(name)

        def advance(owner, *steps, task_id=task.task_id, final=False):
            return self.client.call("AdvanceRun", task_id=task_id, lease_owner=owner, steps=steps, final=final)
        self.refused(INVALID, "advance requires at least one step", advance, task.lease_owner)
        self.refused(CONFLICT, "lease for task %s is held by tester" % task.task_id, advance, "x#y",
                     step_result("n1", {}))
        self.refused(NOT_FOUND, "task not found", advance, "x", step_result("n1", {}), task_id=UNKNOWN_TASK)
        self.refused(CONFLICT, "*reported step n2 but token*", advance, task.lease_owner, step_result("n2", {}))
        applied = advance(task.lease_owner, step_result("n1", {"a": 1}))
        self.assertEqual(applied.instance_status, "RUNNING")
        self.assertGreater(applied.lease_expires_at, 0)
        self.assertTrue(applied.next_task_id)
        last = advance(task.lease_owner, step_result("n2", {"a": 1, "b": 2}), task_id=applied.next_task_id, final=True)
        self.assertEqual((last.instance_status, last.next_task_id), ("COMPLETED", ""))
        self.assertEqual(self.client.context(instance), {"a": 1, "b": 2})

    def test_advance_run_merges_as_complete_task_does(self):
        """What Java's clients of its time send of a step is what changed."""
        for mode in ("LOCAL_SYNC", "LOCAL_ASYNC"):
            with self.subTest(mode=mode):
                name = self.define("a", "b", "c", mode=mode)
                instance = self.client.start(name, {"kept": 1, "gone": 2})
                task = self.client.poll_one(name)
                applied = self.client.call("AdvanceRun", task_id=task.task_id, lease_owner=task.lease_owner, steps=[
                    step_result("n1", {"a": 1, "gone": None}), step_result("n2", {"b": 2})])
                self.client.call("AdvanceRun", task_id=applied.next_task_id, lease_owner=task.lease_owner,
                                 steps=[step_result("n3", {"a": 3})], final=True)
                self.assertEqual(self.client.context(instance), {"kept": 1, "a": 3, "b": 2})
        name = self.client.register(forked("LOCAL_SYNC")).name
        instance = self.client.start(name, {"kept": 1})
        for _ in range(3):
            task = self.client.poll_one(name)
            self.client.call("AdvanceRun", task_id=task.task_id, lease_owner=task.lease_owner, final=True,
                             steps=[step_result(task.node_id, {"last": task.node_id})])
        self.assertEqual(self.client.context(instance), {"last": task.node_id}, "a combine's result is the whole context")

    def test_advance_many(self):
        name = self.define("a", mode="LOCAL_ASYNC")
        ids = [self.client.start(name) for _ in range(3)]
        tasks = []
        while len(tasks) < 3:
            tasks += self.client.poll(name, max=3)
        runs = [pb.AdvanceRunRequest(task_id=t.task_id, lease_owner=t.lease_owner, steps=[step_result("n1", {})])
                for t in tasks]
        runs[1].lease_owner = "w#0"
        results = self.client.call("AdvanceMany", runs=runs).results
        self.assertEqual([r.error_status for r in results], [0, 409, 0])
        self.assertEqual(results[0].applied.instance_status, "COMPLETED")
        self.assertEqual(sorted(self.client.status(i) for i in ids), ["COMPLETED", "COMPLETED", "RUNNING"])

    def test_complete_task_merges_for_tasks_and_replaces_for_combines(self):
        name = self.client.register(forked("SERVER")).name
        instance = self.client.start(name, {"kept": 1})
        for _ in range(2):
            self.client.complete(self.client.poll_one(name), {"arm": True})
        combine = self.client.poll_one(name)
        self.client.complete(combine, {"whole": True})
        self.assertEqual(self.client.context(instance), {"whole": True})
        name = self.define("a")
        instance = self.client.start(name, {"kept": 1, "gone": 2})
        self.client.complete(self.client.poll_one(name), {"new": 3, "gone": None})
        self.assertEqual(self.client.context(instance), {"kept": 1, "new": 3})

    def test_complete_task_of_a_predicate(self):
        for outcome, status in (({"value": True}, "RUNNING"), (False, "COMPLETED")):
            name = self.define(("gate", "g"), "b")
            instance = self.client.start(name)
            self.client.complete(self.client.poll_one(name), outcome)
            self.assertEqual(self.client.status(instance), status)
        name = self.define(("gate", "g"), "b")
        self.client.start(name)
        task = self.client.poll_one(name)
        for wrong in (None, {"value": "yes"}, {}, "true", 1):
            self.refused(INVALID, "predicate result must be a boolean", self.client.complete, task, wrong)

    def test_complete_task_after_a_cancel(self):
        name = self.define("a")
        instance = self.client.start(name)
        task = self.client.poll_one(name)
        self.client.call("CancelInstance", instance_id=instance)
        self.refused(CONFLICT, "task %s is CANCELLED, not RUNNING" % task.task_id, self.client.complete, task, {})
        self.refused(CONFLICT, "task %s is CANCELLED, not RUNNING" % task.task_id, self.client.fail, task)


class Local:
    """Workers that keep a run to themselves."""

    def chain(self, task, *steps, final=False):
        result = self.client.call("ReportSteps", runs=[run_of(task, *steps, final=final)]).results[0]
        self.assertEqual(result.error_status, 0, result)
        return result.applied

    def test_a_continuation_is_leased_back_and_never_polled_by_others(self):
        for mode in ("LOCAL_SYNC", "LOCAL_ASYNC"):
            with self.subTest(mode=mode):
                name = self.define("a", "b", "c", mode=mode)
                instance = self.client.start(name)
                task = self.client.poll_one(name)
                self.assertEqual(task.execution_mode, mode)
                applied = self.chain(task, step_result("n1", {"a": 1}))
                self.assertTrue(applied.next_task_id)
                self.assertEqual(self.client.poll(name, wait=0), [])
                self.assertEqual(self.client.context(instance), {"a": 1}, "each step is visible")
                task.task_id = applied.next_task_id
                applied = self.chain(task, step_result("n2", {}), step_result("n3", {}))
                self.assertEqual((applied.instance_status, applied.next_task_id), ("COMPLETED", ""))

    def test_final_hands_the_rest_back(self):
        name = self.define("a", "b", mode="LOCAL_ASYNC")
        self.client.start(name)
        applied = self.chain(self.client.poll_one(name), step_result("n1", {}), final=True)
        self.assertEqual(applied.next_task_id, "")
        self.assertEqual(self.client.poll_one(name).step_name, "b")

    def test_the_run_ends_where_the_server_has_to_act(self):
        name = self.define("a", ("sleep", 50), "b", mode="LOCAL_SYNC")
        self.client.start(name)
        applied = self.chain(self.client.poll_one(name), step_result("n1", {}), step_result("ignored", {}))
        self.assertEqual((applied.instance_status, applied.next_task_id), ("RUNNING", ""))
        self.assertEqual(self.client.poll_one(name).step_name, "b")

    def test_a_prefix_then_a_failure(self):
        name = self.define("a", ("task", "b", NO_RETRY), mode="LOCAL_ASYNC")
        instance = self.client.start(name)
        task = self.client.poll_one(name)
        task.task_id = self.chain(task, step_result("n1", {"a": 1})).next_task_id
        self.client.fail(task, "broken")
        view = self.client.get(instance).instance
        self.assertEqual((view.status, view.error, plain(view.context)), ("FAILED", "b: broken", {"a": 1}))

    def test_a_lost_reply_is_a_conflict_when_asked_again(self):
        name = self.define("a", "b", mode="LOCAL_SYNC")
        self.client.start(name)
        task = self.client.poll_one(name)
        self.chain(task, step_result("n1", {}))
        self.run_refused(409, "task %s is DONE, not RUNNING" % task.task_id, self.client.report(task, {}))


class Emitted:
    """Events that handlers emit, in all three modes."""

    def feed(self, instance):
        consumer = "feed-of-" + instance
        got, cursor = [], None
        while True:
            events = self.client.call("PollEvents", consumer=consumer, max=1000, start_from=-1).events
            if not events:
                return got
            got += [e for e in events if e.instance_id == instance]
            cursor = events[-1].cursor
            self.client.call("AckEvents", consumer=consumer, acked_cursor=cursor)

    def test_they_stand_between_started_and_completed(self):
        for mode in ("SERVER", "LOCAL_SYNC", "LOCAL_ASYNC"):
            with self.subTest(mode=mode):
                name = self.define("a", "b", mode=mode)
                instance = self.client.start(name, correlation_id="c-" + mode)
                task = self.client.poll_one(name)
                steps = [step_result("n1", {}, [("order.seen", {"n": 1}), ("order.bare", None)]),
                         step_result("n2", {}, [("order.left", {"n": 2})])]
                result = self.client.call("ReportSteps", runs=[run_of(task, *steps)]).results[0]
                self.assertEqual(result.applied.instance_status, "COMPLETED", result)
                got = self.feed(instance)
                self.assertEqual([(e.type, e.node_id) for e in got],
                                 [("wf.started", ""), ("order.seen", "n1"), ("order.bare", "n1"), ("order.left", "n2"),
                                  ("wf.completed", "")])
                self.assertEqual(plain(got[1].payload), {"n": 1})
                self.assertFalse(got[2].HasField("payload"))
                self.assertEqual({(e.workflow, e.version, e.correlation_id) for e in got}, {(name, 1, "c-" + mode)})
                self.assertEqual([e.seq for e in got], sorted(e.seq for e in got))

    def test_types_refuse_the_whole_call(self):
        name = self.define("a", mode="LOCAL_ASYNC")
        self.client.start(name)
        task = self.client.poll_one(name)
        for kind, text in (("", "*an event type is required: *"), ("  ", "*an event type is required: *"),
                           ("wf.mine", '*event type \'wf.mine\' takes the reserved "wf." prefix, *')):
            self.refused(INVALID, text, self.client.call, "ReportSteps",
                         runs=[run_of(task, step_result("n1", {}, [(kind, {})]))])
            self.refused(INVALID, text, self.client.call, "AdvanceRun", task_id=task.task_id,
                         lease_owner=task.lease_owner, steps=[step_result("n1", {}, [(kind, {})])])

    def test_payloads_refuse_the_run(self):
        name = self.define("a", mode="LOCAL_ASYNC")
        ids = [self.client.start(name) for _ in range(2)]
        tasks = []
        while len(tasks) < 2:
            tasks += self.client.poll(name, max=2)
        for payload, kind in (([1], "list"), ("x", "string"), (1, "number"), (True, "boolean")):
            result = self.client.call("ReportSteps", runs=[
                run_of(tasks[0], step_result("n1", {}, [("order.x", payload)]))]).results[0]
            self.assertEqual(result.error_status, 400)
            self.assertIn("event 'order.x' carries a %s payload; an event's payload is a JSON object" % kind, result.error)
        bad, good = self.client.call("ReportSteps", runs=[
            run_of(tasks[0], step_result("n1", {}, [("order.x", [1])])), run_of(tasks[1])]).results
        self.assertEqual((bad.error_status, good.error_status), (400, 0))
        self.assertEqual([e.type for e in self.feed(tasks[0].instance_id)], ["wf.started"])
        self.assertEqual(set(ids), {t.instance_id for t in tasks})

    def test_a_failed_attempt_leaves_none_and_the_retry_emits_its_own(self):
        name = self.define("a")
        instance = self.client.start(name)
        self.client.fail(self.client.poll_one(name), "first")
        task = self.client.poll_one(name)
        self.assertEqual(task.attempt, 2)
        self.client.call("ReportSteps", runs=[run_of(task, step_result("n1", {}, [("order.done", {})]))])
        self.assertEqual([e.type for e in self.feed(instance)], ["wf.started", "order.done", "wf.completed"])

    def test_created_branches_are_refused_clearly(self):
        name = self.define("a")
        self.client.start(name)
        task = self.client.poll_one(name)
        step = step_result("n1", {})
        step.branches.add(input=value({}), steps=[pb.BranchStep(name="x", kind="TASK")])
        result = self.client.call("ReportSteps", runs=[run_of(task, step)]).results[0]
        self.run_refused(400, "created branches are not supported yet", result)
        self.refused(INVALID, "created branches are not supported yet", self.client.call, "AdvanceRun",
                     task_id=task.task_id, lease_owner=task.lease_owner, steps=[step])
        self.assertEqual(self.client.report(task, {}).applied.instance_status, "COMPLETED")


# --------------------------------------------------------------- definitions

_count = iter(range(1, 1000))


def forked(mode):
    """Two arms l and r and their combine, as today's Java client lays them out."""
    name = "forked-%d" % next(_count)

    def task(node, step, following, **more):
        return {"id": node, "kind": "TASK", "name": step, "activity": "%s#%s" % (name, step), "queue": name,
                "next": following, **more}
    return {"name": name, "version": 1, "startNode": "fork1", "queues": [name], "executionMode": mode, "nodes": [
        {"id": "fork1", "kind": "FORK", "name": "fork", "branches": ["n3", "n4"]},
        {"id": "join2", "kind": "JOIN", "name": "join", "expected": 2, "next": "n5"},
        task("n3", "left", "join2"), task("n4", "right", "join2"),
        task("n5", "combine:l,r", "end6", armNames=["l", "r"]),
        {"id": "end6", "kind": "END", "name": "end", "success": True}]}


def looping(budget, mode):
    name = "looping-%d" % next(_count)
    return {"name": name, "version": 1, "startNode": "n1", "queues": [name], "executionMode": mode, "nodes": [
        {"id": "n1", "kind": "TASK", "name": "body", "activity": name + "#body", "queue": name, "next": "n2"},
        {"id": "n2", "kind": "PREDICATE", "name": "again", "activity": name + "#again", "queue": name, "next": "n1",
         "altNext": "end3", "loopBudget": budget},
        {"id": "end3", "kind": "END", "name": "end", "success": True}]}


def saga(mode):
    name = "saga-%d" % next(_count)
    definition = flow(name, "a", "b", mode=mode)
    definition["nodes"][0]["compensable"] = True
    return definition


for _cases in (Batches, Former, Local, Emitted):
    globals().update(doors(_cases))
