"""Graphs over the wire: forks, forEach, choices, loops, children, sagas, and what workers see of them."""
import grpc

from doors import doors
from wigclient import Broken, flow, fresh_name, plain

NONE = "none"


def same(context, _):
    return context


def add(**more):
    return lambda context, _: {**context, **more}


class Forks:
    def test_disjoint_writes_meet_in_the_combine(self):
        name = self.shorthand({"fork": {"fast": [{"task": "f"}], "slow": [{"task": "s"}]}, "combine": "meet"},
                              {"task": "after"})
        instance = self.client.start(name, {"base": 1})
        seen = []

        def combine(context, task):
            seen.append((context, list(task.arm_names), task.collect_key))
            return {**context["__arm__slow"], **context["__arm__fast"]}
        view = self.work(instance, {"s": add(s=1), "f": add(f=2), "meet": combine, "after": add(after=3)})
        self.assertEqual((view.status, plain(view.context)), ("COMPLETED", {"base": 1, "s": 1, "f": 2, "after": 3}))
        self.assertEqual(seen, [({"base": 1, "__arm__slow": {"base": 1, "s": 1}, "__arm__fast": {"base": 1, "f": 2}},
                                 ["fast", "slow"], "")])

    def test_an_arm_sees_neither_its_sibling_nor_writes_to_the_shared_context(self):
        name = self.shorthand({"fork": {"l": [{"task": "l1"}, {"task": "l2"}], "r": [{"task": "r1"}]}})
        instance = self.client.start(name, {"base": 1})
        self.client.report(self.arm(name, "l1"), {"base": 2, "left": 1})
        self.assertEqual(self.client.context(instance), {"base": 1})
        tasks = {t.step_name: plain(t.context) for t in self.leftover + self.poll_all(name, 2 - len(self.leftover))}
        self.assertEqual(tasks, {"l2": {"base": 2, "left": 1}, "r1": {"base": 1}})

    def poll_all(self, name, n):
        tasks = []
        while len(tasks) < n:
            tasks += self.client.poll(name, max=n)
        return tasks

    def arm(self, name, step):
        """The task of this step; the other one of the two stays in self.leftover."""
        tasks = self.poll_all(name, 2)
        self.leftover = [t for t in tasks if t.step_name != step]
        return next(t for t in tasks if t.step_name == step)

    def test_what_the_combine_leaves_out_is_gone(self):
        name = self.shorthand({"fork": {"a": [{"task": "a1"}], "b": [{"task": "b1"}]}})
        view = self.work(self.client.start(name, {"old": 1}),
                         {"a1": same, "b1": same, "combine:a,b": lambda c, t: {"only": True}})
        self.assertEqual(plain(view.context), {"only": True})

    def test_a_join_of_three_goes_on_once(self):
        arms = {k: [{"task": k + "1"}] for k in "abc"}
        name = self.shorthand({"fork": arms}, {"task": "next"})
        counted = []
        view = self.work(self.client.start(name), {"a1": same, "b1": same, "c1": same, "combine:a,b,c": add(x=1),
                                                   "next": lambda c, t: counted.append(1) or c})
        self.assertEqual((view.status, len(counted)), ("COMPLETED", 1))

    def test_nested_forks_come_back_to_the_outer_join(self):
        inner = {"fork": {"x": [{"task": "x1"}], "y": [{"task": "y1"}]}, "combine": "inner"}
        name = self.shorthand({"fork": {"l": [inner, {"task": "l2"}], "r": [{"task": "r1"}]}, "combine": "outer"})
        bases = {}

        def joins(*arms):
            def combine(context, task):
                bases[task.step_name] = plain(task.base_context) if task.HasField("base_context") else NONE
                merged = {k: v for k, v in context.items() if not k.startswith("__arm__")}
                for arm in arms:
                    merged.update(context["__arm__" + arm])
                return merged
            return combine
        view = self.work(self.client.start(name, {"s": 0}), {
            "x1": add(x=1), "y1": add(y=1), "inner": joins("x", "y"), "l2": add(l=1), "r1": add(r=1),
            "outer": joins("l", "r")})
        self.assertEqual(plain(view.context), {"s": 0, "x": 1, "y": 1, "l": 1, "r": 1})
        self.assertEqual(bases, {"inner": {"s": 0}, "outer": NONE}, "a combine within an arm has the arm's context as base")

    def test_a_false_gate_in_an_arm_strands_nobody(self):
        name = self.shorthand({"fork": {"g": [{"gate": "ok"}, {"task": "never"}], "o": [{"task": "other"}]}})
        view = self.work(self.client.start(name), {"ok": lambda c, t: False, "other": add(o=1),
                                                   "combine:g,o": lambda c, t: {**c["__arm__g"], **c["__arm__o"]}})
        self.assertEqual((view.status, plain(view.context)), ("COMPLETED", {"o": 1}))

    def test_a_legacy_combine_finds_bare_arm_names_and_is_shown_in_both_encodings(self):
        name = self.client.register(legacy_fork()).name
        nodes = {n["id"]: n for n in plain(self.client.call("GetWorkflow", name=name).definition)["nodes"]}
        self.assertEqual((nodes["n5"]["armNames"], nodes["n5"]["itemsKey"]), (["l", "r"], '["l","r"]'))
        instance = self.client.start(name, {"b": 0})
        for _ in range(2):
            task = self.client.poll_one(name)
            self.client.complete(task, {task.step_name: 1})
        combine = self.client.poll_one(name)
        self.assertEqual(plain(combine.context), {"b": 0, "l": {"b": 0, "left": 1}, "r": {"b": 0, "right": 1}})
        self.client.complete(combine, {"done": True})
        self.assertEqual(self.client.context(instance), {"done": True})

    def test_a_legacy_combine_in_a_body_has_no_base(self):
        definition = legacy_fork()
        definition["nodes"] += [
            {"id": "each7", "kind": "DYN_FORK", "name": "all", "itemsKey": "items", "itemKey": "item",
             "branches": ["fork1"], "next": "join8"},
            {"id": "join8", "kind": "JOIN", "name": "join8", "next": "n9"},
            {"id": "n9", "kind": "TASK", "name": "list", "activity": definition["name"] + "#list",
             "queue": definition["name"], "itemsKey": '"all"', "next": "end6"}]
        next(n for n in definition["nodes"] if n["id"] == "n5")["next"] = "join8"
        definition["startNode"] = "each7"
        bases = {}

        def note(value):
            def handler(context, task):
                bases[task.step_name] = plain(task.base_context) if task.HasField("base_context") else NONE
                return value(context)
            return handler
        view = self.work(self.client.start(self.client.register(definition).name, {"items": [{"n": 1}]}), {
            "left": note(lambda c: c["n"]), "right": note(lambda c: -c["n"]),
            "both": note(lambda c: [c["l"], c["r"]]),
            "list": note(lambda c: {"all": c["all"]})})
        self.assertEqual(plain(view.context), {"all": [[1, -1]]})
        self.assertEqual(bases, {"left": {"items": [{"n": 1}]}, "right": {"items": [{"n": 1}]}, "both": NONE, "list": NONE})

    def test_a_fork_without_a_combine_writes_the_last_of_each_key(self):
        definition = legacy_fork()
        definition["nodes"] = [n for n in definition["nodes"] if n["id"] != "n5"]
        next(n for n in definition["nodes"] if n["id"] == "join2")["next"] = "end6"
        name = self.client.register(definition).name
        instance = self.client.start(name, {"b": 0})
        for _ in range(2):
            task = self.client.poll_one(name)
            self.client.complete(task, {task.step_name: 1})
        view = self.client.get(instance).instance
        self.assertEqual((view.status, plain(view.context)), ("COMPLETED", {"b": 0, "left": 1, "right": 1}))


class ForEach:
    def each(self, body, combine="collect"):
        return self.shorthand({"fork_each": {"over": "items", "as": "item", "name": "all", "body": body,
                                             "combine": combine}}, {"task": "after"})

    def test_items_of_a_list_in_order(self):
        name = self.each([{"task": "one"}])
        seen = {}

        def one(context, task):
            seen[task.item_index] = (context, plain(task.base_context), task.item_map_key)
            return {"was": context, "at": task.item_index}

        def collect(context, task):
            self.assertEqual((task.collect_key, list(task.arm_names)), ("__forEach__all", []))
            return {"all": context["__forEach__all"]}
        start = {"items": [{"k": 1}, "text", 7]}
        view = self.work(self.client.start(name, start), {"one": one, "collect": collect, "after": same})
        self.assertEqual(plain(view.context), {"all": [{"was": {"k": 1}, "at": 0}, {"was": "text", "at": 1},
                                                       {"was": 7, "at": 2}]})
        self.assertEqual(seen, {0: ({"k": 1}, start, ""), 1: ("text", start, ""), 2: (7, start, "")})

    def test_items_of_a_map_by_their_keys(self):
        name = self.each([{"task": "one"}])
        keys = []

        def one(context, task):
            keys.append(task.item_map_key)
            return {"v": context}
        view = self.work(self.client.start(name, {"items": {"x": 1, "y": 2}}),
                         {"one": one, "collect": lambda c, t: c["__forEach__all"], "after": same})
        self.assertEqual(plain(view.context), {"x": {"v": 1}, "y": {"v": 2}})
        self.assertEqual(sorted(keys), ["x", "y"])

    def test_nothing_to_do_skips_the_combine(self):
        for context in ({"items": []}, {"items": {}}, {"items": None}, {}):
            name = self.each([{"task": "one"}])
            view = self.work(self.client.start(name, context), {"after": add(after=1)})
            self.assertEqual((view.status, plain(view.context)), ("COMPLETED", {**{k: v for k, v in context.items() if v is not None}, "after": 1}))

    def test_what_is_no_collection_fails_the_instance(self):
        for context, kind in (("x", "String"), (1, "Long"), (1.5, "Double"), (True, "Boolean")):
            name = self.each([{"task": "one"}])
            view = self.client.get(self.client.start(name, {"items": context})).instance
            self.assertEqual((view.status, view.error),
                             ("FAILED", "forEach 'all': context key 'items' holds %s, not a list or map" % kind))

    def test_a_fork_in_a_for_each_in_a_loop(self):
        body = [{"fork": {"l": [{"task": "left"}], "r": [{"task": "right"}]}, "combine": "both"}]
        name = self.shorthand({"do_while": {"while": "again", "body": [
            {"fork_each": {"over": "items", "as": "item", "name": "each", "body": body, "combine": "collect"}}]}})
        rounds, bases = [], set()

        def left(context, task):
            bases.add((repr(plain(task.base_context)), task.item_index))
            return {"l": context["n"]}

        def collect(context, task):
            return {"items": [{"n": e["n"] + 1} for e in context["__forEach__each"]]}

        def again(context, task):
            rounds.append(context["items"])
            return len(rounds) < 3
        view = self.work(self.client.start(name, {"items": [{"n": 1}, {"n": 10}]}), {
            "left": left, "right": lambda c, t: {"r": c["n"]},
            "both": lambda c, t: {"n": max(c["__arm__l"]["l"], c["__arm__r"]["r"])}, "collect": collect, "again": again})
        self.assertEqual((view.status, plain(view.context)), ("COMPLETED", {"items": [{"n": 4}, {"n": 13}]}))
        self.assertEqual(bases, {(repr({"items": [{"n": a}, {"n": a + 9}]}), i) for a in (1, 2, 3) for i in (0, 1)})

    def test_a_thousand_items(self):
        name = self.each([{"task": "one"}])
        view = self.work(self.client.start(name, {"items": list(range(1000))}), {
            "one": lambda c, t: {"n": c * 2}, "collect": lambda c, t: {"sum": sum(e["n"] for e in c["__forEach__all"])},
            "after": same})
        self.assertEqual(plain(view.context), {"sum": 999000})
        detail = self.client.get(view.id)
        self.assertEqual({t.status for t in detail.tokens}, {"DONE"})

    def test_an_item_that_fails_fails_the_instance(self):
        name = self.each([{"task": "one", "retry": NONE}])

        def one(context, task):
            if context == 2:
                raise Broken("two is bad")
            return {}
        view = self.work(self.client.start(name, {"items": [1, 2, 3]}), {"one": one})
        self.assertEqual((view.status, view.error), ("FAILED", "one: two is bad"))
        self.assertFalse({t.status for t in self.client.get(view.id).tokens} & {"READY", "RUNNING", "WAITING", "AWAITING"})


class Choices:
    def choice(self):
        return self.shorthand({"choose": [{"when": "g1", "then": [{"task": "t1"}]}, {"when": "g2", "then": [{"task": "t2"}]},
                                          {"otherwise": {"then": [{"task": "t3"}]}}]}, {"task": "after"})

    def test_the_first_true_guard_wins(self):
        for first, second, taken in ((True, True, "t1"), (False, True, "t2"), (False, False, "t3")):
            name = self.choice()
            ran = []
            handlers = {k: (lambda c, t: ran.append(t.step_name) or {}) for k in ("t1", "t2", "t3", "after")}
            view = self.work(self.client.start(name), {"g1": lambda c, t, v=first: v, "g2": lambda c, t, v=second: v, **handlers})
            self.assertEqual((view.status, ran), ("COMPLETED", [taken, "after"]))

    def test_no_match_goes_on(self):
        name = self.shorthand({"choose": [{"when": "g", "then": [{"task": "t"}]}]}, {"task": "after"})
        view = self.work(self.client.start(name), {"g": lambda c, t: False, "after": add(x=1)})
        self.assertEqual(plain(view.context), {"x": 1})

    def test_a_loop_has_a_budget(self):
        name = self.shorthand({"do_while": {"while": "again", "body": [{"task": "body"}], "maxIterations": 3}})
        bodies = []
        view = self.work(self.client.start(name), {"body": lambda c, t: bodies.append(1) or c, "again": lambda c, t: True})
        self.assertEqual((view.status, len(bodies)), ("FAILED", 4))
        self.assertIn("loop 'again' exceeded its budget of 3 iterations", view.error)

    def test_a_predicate_reported_with_a_context_is_refused(self):
        name = self.define(("gate", "g"))
        self.client.start(name)
        task = self.client.poll_one(name)
        self.run_refused(400, "predicate result must be a boolean", self.client.report(task, {"x": 1}))
        self.run_refused(400, "predicate result must be a boolean", self.client.report(task, None))
        self.assertEqual(self.client.report(task, True).error_status, 0)

    def test_forty_levels_of_forks(self):
        name = self.client.register(deep_forks(40)).name
        handlers = {"deepest": add(deep=1)}
        for level in range(40):
            handlers["side-%d" % level] = same
            handlers["c-%d" % level] = lambda c, t: {**c["__arm__a"], "n": c["__arm__a"].get("n", 0) + 1}
        view = self.work(self.client.start(name), handlers)
        self.assertEqual((view.status, plain(view.context)), ("COMPLETED", {"deep": 1, "n": 40}))


class Children:
    def child_of(self, *steps, retry=None):
        child = self.define(*steps, stem="child")
        return child, self.shorthand({"task": "before"}, {"sub_workflow": {"name": "sub", "workflow": child}}, {"task": "after"})

    def children(self, parent):
        token = next(t for t in self.client.get(parent).tokens if t.kind == "SUB_WORKFLOW")
        found = self.client.call("ListInstances", correlation_id="sub:" + token.id).instances
        return [i.id for i in found]

    def test_a_child_gets_the_context_and_its_result_merges_back(self):
        child, name = self.child_of("c")
        instance = self.client.start(name, {"k": 1})
        self.client.report(self.client.poll_one(name), {"k": 1, "b": 2})
        task = self.client.poll_one(child)
        self.assertEqual(plain(task.context), {"k": 1, "b": 2})
        waiting = [t for t in self.client.get(instance).tokens if t.status == "AWAITING"]
        self.assertEqual([(t.kind, t.activity) for t in waiting], [("SUB_WORKFLOW", child)])
        self.client.report(task, {"c": 3})
        after = self.client.poll_one(name)
        self.assertEqual((after.step_name, plain(after.context)), ("after", {"k": 1, "b": 2, "c": 3}))
        shard = "wfi.s%d." % self.shard
        self.assertTrue(instance.startswith(shard) and task.instance_id.startswith(shard))

    def test_a_childs_failure_is_its_parents(self):
        child, name = self.child_of(("task", "c", {"maxAttempts": 1, "initialBackoffMillis": 0, "multiplier": 1,
                                                   "maxBackoffMillis": 0, "jitter": 0}))
        instance = self.client.start(name)
        self.client.report(self.client.poll_one(name), {})
        self.client.fail(self.client.poll_one(child), "no luck")
        view = self.client.get(instance).instance
        self.assertEqual((view.status, view.error), ("FAILED", "sub-workflow '%s' FAILED: c: no luck" % child))

    def test_a_child_that_nobody_registered(self):
        missing = fresh_name("missing")
        name = self.shorthand({"sub_workflow": {"name": "sub", "workflow": missing}})
        view = self.client.get(self.client.start(name)).instance
        self.assertEqual((view.status, view.error),
                         ("FAILED", "sub-workflow '%s': workflow '%s' not found" % (missing, missing)))

    def test_cancelling_the_parent_cancels_the_child(self):
        child, name = self.child_of("c")
        instance = self.client.start(name)
        self.client.report(self.client.poll_one(name), {})
        (kid,) = self.children(instance)
        self.client.call("CancelInstance", instance_id=instance)
        self.becomes(kid, "CANCELLED")
        self.assertEqual(self.client.get(kid).instance.termination_reason, "parent instance cancelled")
        self.assertEqual(self.client.poll(child, wait=0), [])

    def test_cancelling_the_child_fails_the_parent(self):
        _, name = self.child_of("c")
        instance = self.client.start(name)
        self.client.report(self.client.poll_one(name), {})
        (kid,) = self.children(instance)
        self.client.call("CancelInstance", instance_id=kid, reason="enough")
        self.becomes(instance, "FAILED")
        self.assertIn("CANCELLED", self.client.get(instance).instance.error)

    def test_children_of_a_failed_parent_are_cancelled(self):
        child = self.define("c", stem="child")
        name = self.shorthand({"fork": {"s": [{"sub_workflow": {"name": "sub", "workflow": child}}],
                                        "f": [{"task": "f", "retry": NONE}]}})
        instance = self.client.start(name)
        (kid,) = self.children(instance)
        self.client.fail(self.client.poll_one(name), "dead")
        self.assertEqual(self.client.status(instance), "FAILED")
        self.becomes(kid, "CANCELLED")

    def test_a_child_in_an_arm_merges_into_that_arm_alone(self):
        child = self.define("c", stem="child")
        name = self.shorthand({"fork": {"s": [{"sub_workflow": {"name": "sub", "workflow": child}}], "o": [{"task": "o"}]}})
        instance = self.client.start(name, {"k": 1})
        self.client.report(self.client.poll_one(child), {"c": 2})
        self.client.report(self.client.poll_one(name), {"o": 3})
        combine = self.client.poll_one(name)
        self.assertEqual(plain(combine.context), {"k": 1, "__arm__s": {"k": 1, "c": 2}, "__arm__o": {"o": 3}})
        self.assertEqual(combine.instance_id, instance)


class Sagas:
    def saga(self, **more):
        name = fresh_name("saga")
        definition = flow(name, "a", "b", ("task", "c", {"maxAttempts": 1, "initialBackoffMillis": 0, "multiplier": 1,
                                                         "maxBackoffMillis": 0, "jitter": 0}), **more)
        definition["nodes"][0]["compensable"] = definition["nodes"][1]["compensable"] = True
        return definition

    def fail_at_c(self, name, context=None):
        instance = self.client.start(name, context)
        self.client.report(self.client.poll_one(name), {"a": 1})
        self.client.report(self.client.poll_one(name), {"a": 1, "b": 2})
        self.client.fail(self.client.poll_one(name), "c broke")
        return instance

    def test_undone_newest_first_with_input_and_result(self):
        name = self.client.register(self.saga()).name
        instance = self.fail_at_c(name, {"s": 0})
        self.assertEqual(self.client.status(instance), "COMPENSATING")
        for step, given, result in (("b", {"a": 1}, {"a": 1, "b": 2}), ("a", {"s": 0}, {"a": 1})):
            task = self.client.poll_one(name)
            activity = "%s#%s#compensate" % (name, step)
            self.assertEqual((task.step_name, task.activity, task.kind, task.execution_mode),
                             (activity, activity, "TASK", "SERVER"))
            self.assertEqual(plain(task.context), {"input": given, "result": result})
            self.assertFalse(task.HasField("base_context"))
            outcome = self.client.report(task, {"ignored": True})
        self.assertEqual(outcome.applied.instance_status, "COMPENSATED")
        view = self.client.get(instance).instance
        self.assertEqual((view.status, view.error, plain(view.context)), ("COMPENSATED", "c: c broke", {"a": 1, "b": 2}))

    def test_a_compensator_that_gives_up(self):
        definition = self.saga()
        definition["nodes"][1]["retry"] = {"maxAttempts": 2, "initialBackoffMillis": 1, "multiplier": 1,
                                           "maxBackoffMillis": 0, "jitter": 0}
        name = self.client.register(definition).name
        instance = self.fail_at_c(name)
        for attempt in (1, 2):
            task = self.client.poll_one(name)
            self.assertEqual(task.attempt, attempt)
            self.client.fail(task, "cannot undo")
        view = self.client.get(instance).instance
        self.assertEqual(view.status, "COMPENSATION_FAILED")
        self.assertEqual(view.error, "c: c broke; compensator 'b' (undo seq 2) failed: cannot undo")

    def test_nothing_recorded_is_a_plain_failure(self):
        name = self.client.register(self.saga()).name
        instance = self.client.start(name)
        self.client.fail(self.client.poll_one(name), "a broke", retryable=False)
        self.assertEqual(self.client.status(instance), "FAILED")

    def test_cancelling_never_compensates_and_compensating_is_not_cancelled(self):
        name = self.client.register(self.saga()).name
        instance = self.client.start(name)
        self.client.report(self.client.poll_one(name), {"a": 1})
        self.client.call("CancelInstance", instance_id=instance)
        self.assertEqual(self.client.status(instance), "CANCELLED")
        name = self.client.register(self.saga()).name
        instance = self.fail_at_c(name)
        self.client.call("CancelInstance", instance_id=instance)
        self.assertEqual(self.client.status(instance), "COMPENSATING")
        self.refused(grpc.StatusCode.FAILED_PRECONDITION, "instance %s is COMPENSATING" % instance, self.client.signal,
                     instance, "s")

    def test_a_worker_lost_in_the_middle_of_the_pass(self):
        name = self.client.register(self.saga()).name
        instance = self.fail_at_c(name)
        self.client.poll_one(name, lease_millis=100)
        again = self.client.poll_one(name)
        self.assertEqual((again.step_name, again.attempt), (name + "#b#compensate", 2))
        self.client.report(again, None)
        self.client.report(self.client.poll_one(name), None)
        self.assertEqual(self.client.status(instance), "COMPENSATED")

    def test_a_childs_saga_ends_before_its_parent_hears(self):
        child = self.client.register(self.saga()).name
        name = self.shorthand({"sub_workflow": {"name": "sub", "workflow": child}})
        parent = self.client.start(name)
        self.client.report(self.client.poll_one(child), {"a": 1})
        self.client.report(self.client.poll_one(child), {"b": 2})
        self.client.fail(self.client.poll_one(child), "c broke")
        self.assertEqual(self.client.status(parent), "RUNNING")
        self.client.report(self.client.poll_one(child), None)
        self.assertEqual(self.client.status(parent), "RUNNING")
        self.client.report(self.client.poll_one(child), None)
        view = self.client.get(parent).instance
        self.assertEqual((view.status, view.error), ("FAILED", "sub-workflow '%s' COMPENSATED: c: c broke" % child))

    def test_an_arm_records_its_own_view(self):
        name = self.client.register(branch_saga()).name
        instance = self.client.start(name, {"s": 0})
        tasks = {}
        while len(tasks) < 2:
            tasks.update((t.step_name, t) for t in self.client.poll(name, max=2))
        self.client.report(tasks["left"], {"left": 1})
        self.client.fail(tasks["right"], "no", retryable=False)
        undo = self.client.poll_one(name)
        self.assertEqual(plain(undo.context), {"input": {"s": 0}, "result": {"left": 1}})
        self.client.complete(undo)
        self.assertEqual(self.client.status(instance), "COMPENSATED")


# --------------------------------------------------------------- definitions

def fork_nodes(name, combine):
    def task(node, step, following, **more):
        return {"id": node, "kind": "TASK", "name": step, "activity": "%s#%s" % (name, step), "queue": name,
                "next": following, **more}
    return [{"id": "fork1", "kind": "FORK", "name": "fork1", "branches": ["n3", "n4"]},
            {"id": "join2", "kind": "JOIN", "name": "join2", "expected": 2, "next": "n5"},
            task("n3", "left", "join2"), task("n4", "right", "join2"), task("n5", "both", "end6", **combine),
            {"id": "end6", "kind": "END", "success": True}]


def legacy_fork():
    """A combine in the encoding of the Go and Python clients; their END has no name."""
    name = fresh_name("legacy")
    return {"name": name, "version": 1, "startNode": "fork1", "queues": [name], "executionMode": "SERVER",
            "nodes": fork_nodes(name, {"itemsKey": '["l","r"]'})}


def deep_forks(levels):
    """A fork whose arm a is a fork whose arm a is a fork, and so on."""
    name = fresh_name("deep")

    def task(node, step, following, **more):
        return {"id": node, "kind": "TASK", "name": step, "activity": "%s#%s" % (name, step), "queue": name,
                "next": following, **more}
    nodes = [task("deepest", "deepest", "join0"), {"id": "end", "kind": "END", "success": True}]
    for level in range(levels):
        inner = "fork%d" % (level - 1) if level > 0 else "deepest"
        nodes += [{"id": "fork%d" % level, "kind": "FORK", "branches": [inner, "s%d" % level]},
                  task("s%d" % level, "side-%d" % level, "join%d" % level),
                  {"id": "join%d" % level, "kind": "JOIN", "expected": 2, "next": "c%d" % level},
                  task("c%d" % level, "c-%d" % level, "join%d" % (level + 1) if level + 1 < levels else "end",
                       armNames=["a", "b"])]
    return {"name": name, "version": 1, "startNode": "fork%d" % (levels - 1), "queues": [name],
            "executionMode": "SERVER", "nodes": nodes}


def branch_saga():
    definition = legacy_fork()
    definition["nodes"][2]["compensable"] = True
    return definition


for _cases in (Forks, ForEach, Choices, Children, Sagas):
    globals().update(doors(_cases))
