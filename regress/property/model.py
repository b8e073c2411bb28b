"""Random workflows, what their steps do, and a reference interpreter.

A workflow is kept as its authoring tree. What a step does is a pure function of
its name, its context and, where it is flaky, its attempt. The interpreter walks the
tree recursively and shares nothing with the engine: neither nodes nor tokens nor scopes.
Where siblings run at once and one fails, what the others got done is a matter of time:
the interpreter then says what must and what may have happened.
"""
import collections
import copy
import hashlib
import json
import re


def digest(*parts):
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")


# ------------------------------------------------------------- random workflows

class Maker:
    """Builds one workflow; `children` are names of workflows made before it."""

    def __init__(self, random, name, children):
        self.random = random
        self.name = name
        self.children = children
        self.count = 0
        self.steps = {}                 # step name -> behaviour

    def fresh(self, prefix):
        self.count += 1
        return "%s%d" % (prefix, self.count)

    def make(self):
        steps = self.sequence(3)
        return {"workflow": self.name, "version": 1, "steps": steps}

    def sequence(self, depth):
        return [step for _ in range(self.random.randint(1, 3)) for step in self.construct(depth)]

    def construct(self, depth):
        kinds = ["task"] * 5 + ["gate", "sleep", "signal"]
        if depth > 0:
            kinds += ["fork", "fork", "each", "each", "choose", "loop"]
            if self.children:
                kinds += ["child"]
        return getattr(self, "make_" + self.random.choice(kinds))(depth)

    def behave(self, prefix, **behaviour):
        name = self.fresh(prefix)
        self.steps[name] = behaviour
        return name

    def make_task(self, depth, prefix="t", **extra):
        fate = self.random.random()
        behaviour = {"fate": "ok", "emits": self.random.random() < 0.3}
        retry = {"max": 6, "backoff": "%dms" % self.random.choice([0, 0, 1, 5])}
        if fate < 0.10:
            behaviour.update(fate="flaky", failures=self.random.randint(1, 3))
        elif fate < 0.16:
            behaviour["fate"] = "permanent"
        elif fate < 0.20:
            behaviour["fate"] = "exhausts"
            retry["max"] = 2
        step = {"retry": retry}
        if prefix == "t" and self.random.random() < 0.25:
            step["compensable"] = True
            behaviour["undo_fails"] = self.random.random() < 0.15
        behaviour.update(extra)
        step["task"] = self.behave(prefix, **behaviour)
        return [step]

    def make_gate(self, depth):
        return [{"gate": self.behave("g", fate="decides", yes=0.8)}]

    def make_sleep(self, depth):
        return [{"sleep": {"for": "%dms" % self.random.randint(0, 20), "name": self.fresh("z")}}]

    def make_signal(self, depth):
        fate = self.random.random()
        if fate < 0.5:
            return [{"await_signal": self.fresh("come"), "timeout": "1h"}]
        if fate < 0.6:
            return [{"await_signal": self.fresh("never"), "timeout": "5ms"}]
        return [{"await_signal": self.fresh("never"), "timeout": "5ms", "escalation": self.sequence(0)}]

    def make_fork(self, depth):
        arms = [{"name": self.fresh("arm"), "steps": self.sequence(depth - 1)}
                for _ in range(self.random.randint(2, 3))]
        return [{"fork": arms, "combine": self.behave("m", fate="combines"), "retry": {"max": 6, "backoff": "0ms"}}]

    def make_each(self, depth):
        key = self.fresh("items")
        return self.make_task(depth, prefix="l", fate="lists", key=key) + [
            {"fork_each": {"over": key, "as": self.fresh("it"), "body": self.sequence(depth - 1)},
             "combine": self.behave("m", fate="combines"), "retry": {"max": 6, "backoff": "0ms"}}]

    def make_choose(self, depth):
        cases = [{"when": self.behave("p", fate="decides", yes=0.4), "then": self.sequence(depth - 1)}
                 for _ in range(self.random.randint(1, 2))]
        if self.random.random() < 0.5:
            cases.append({"otherwise": {"then": self.sequence(depth - 1)}})
        return [{"choose": cases}]

    def make_loop(self, depth):
        return [{"do_while": {"while": self.behave("w", fate="decides", yes=0.5), "maxIterations": self.random.randint(1, 4),
                              "body": self.sequence(depth - 1)}}]

    def make_child(self, depth):
        return [{"sub_workflow": {"name": self.fresh("c"), "workflow": self.random.choice(self.children)}}]


# -------------------------------------------------------------- what steps do

Outcome = collections.namedtuple("Outcome", "ok value message retryable events")


def keep_small(context):
    """What a step keeps of its context: few keys, so that loops do not grow it."""
    if not isinstance(context, dict):
        return {"was": digest(context) % 1000}
    return {key: context[key] for key in sorted(context)[:5]}


def perform(behaviour, step, context, attempt):
    """The outcome of one attempt: the workers ask it, and the interpreter does."""
    fate = behaviour["fate"]
    if fate == "combines" and isinstance(context, dict):
        # Which step each sibling ended with is staged too; that is tested elsewhere.
        context = {k: v for k, v in context.items() if not k.startswith("__steps__")}
    roll = digest(step, context)
    if fate == "flaky" and attempt <= behaviour["failures"]:
        return Outcome(False, None, "flaky %d" % attempt, True, [])
    if fate == "permanent" and roll % 3 == 0:
        return Outcome(False, None, "permanent %d" % (roll % 100), False, [])
    if fate == "exhausts" and roll % 3 == 0:
        return Outcome(False, None, "exhausted %d" % attempt, True, [])
    if fate == "decides":
        return Outcome(True, roll % 1000 < behaviour["yes"] * 1000, None, None, [])
    if fate == "combines":
        return Outcome(True, {step: roll % 1000, "none": None}, None, None, [])
    events = [("e." + step, {"roll": roll % 10})] if behaviour.get("emits") else []
    if fate == "lists":
        return Outcome(True, {**keep_small(context), behaviour["key"]: collection(roll)}, None, None, events)
    if roll % 5 == 0:
        return Outcome(True, None, None, None, events)
    if roll % 17 == 0:
        return Outcome(True, [roll % 7, None], None, None, events)
    return Outcome(True, {**keep_small(context), step: roll % 1000, "nothing": None, "deep": {"none": None}},
                   None, None, events)


def collection(roll):
    elements = [roll % 5, {"k": roll % 3}, None, "text", [1]]
    size = roll // 7 % 5
    if roll % 11 == 0:
        return "no collection"
    if roll % 3 == 0:
        return {"key%d" % i: elements[i] for i in range(size)}
    return elements[:size]


def max_attempts(step):
    return step["retry"]["max"]


# ------------------------------------------------------- reference interpreter

class Gated(Exception):
    """A gate said no: its arm, or the workflow, is over; `view` is where it stood."""

    def __init__(self, name, view):
        super().__init__(name)
        self.name = name
        self.view = view


class Failed(Exception):
    def __init__(self, errors):
        super().__init__(errors)
        self.errors = errors            # patterns, one of which is the error


class Trace:
    """What certainly and what perhaps happened."""

    def __init__(self):
        self.must = collections.Counter()
        self.may = collections.Counter()
        self.undo = []                  # (step, undo_fails), certainly to be undone
        self.maybe_undo = []

    def emit(self, events):
        for event_type, payload in events:
            entry = (event_type, json.dumps(payload, sort_keys=True))
            self.must[entry] += 1
            self.may[entry] += 1

    def absorb(self, other, certain):
        self.may += other.may
        if certain:
            self.must += other.must
        (self.undo if certain else self.maybe_undo).extend(other.undo)
        self.maybe_undo.extend(other.maybe_undo)


def drop_nulls(value):
    return {k: v for k, v in value.items() if v is not None} if isinstance(value, dict) else value


def merge(view, document):
    if document is None:
        return view
    if not isinstance(document, dict):
        return document
    merged = {**view, **document} if isinstance(view, dict) else dict(document)
    return {k: v for k, v in merged.items() if not (k in document and document[k] is None)}


def overlay(view, staged):
    return {**view, **staged} if isinstance(view, dict) else dict(staged)


class Interpreter:
    """One instance. `world` maps workflow names to (tree, behaviours)."""

    def __init__(self, world, name):
        self.world = world
        self.tree, self.behaviours = world[name]
        self.name = name
        self.root = None

    def run(self, context):
        """The expectation of an instance that starts with this context."""
        trace = Trace()
        reason = None
        self.root = context
        try:
            self.sequence(self.tree["steps"], context, trace, {}, True)
        except Gated as gated:
            reason = "gated:" + gated.name
        except Failed as failed:
            return self.fail(failed.errors, trace)
        return Expectation({"COMPLETED"}, reason, None, self.root, trace)

    def fail(self, errors, trace):
        broken = [step for step, undo_fails in trace.undo if undo_fails]
        maybe_broken = [step for step, undo_fails in trace.maybe_undo if undo_fails]
        statuses = set()
        if not trace.undo:
            statuses.add("FAILED")
        if trace.undo or trace.maybe_undo:
            if broken or maybe_broken:
                statuses.add("COMPENSATION_FAILED")
            if not broken:
                statuses.add("COMPENSATED")
        patterns = list(errors)
        if "COMPENSATION_FAILED" in statuses:
            patterns += [e + r"; compensator '" + s + r"' \(undo seq \d+\) failed: cannot undo"
                         for e in errors for s in sorted(set(broken + maybe_broken))]
        if not trace.undo and not trace.maybe_undo:
            statuses = {"FAILED"}
        return Expectation(statuses, None, patterns, self.root, trace)

    def sequence(self, steps, view, trace, loops, at_root):
        for step in steps:
            view = self.step(step, view, trace, loops, at_root)
            if at_root:
                self.root = view
        return view

    def step(self, step, view, trace, loops, at_root):
        for operator in ("task", "gate", "sleep", "await_signal", "fork", "fork_each", "choose", "do_while", "sub_workflow"):
            if operator in step:
                return getattr(self, "do_" + operator)(step, view, trace, loops, at_root)
        raise ValueError(step)

    def attempt(self, name, context, attempts, trace):
        for attempt in range(1, attempts + 1):
            outcome = perform(self.behaviours[name], name, context, attempt)
            if outcome.ok:
                trace.emit(outcome.events)
                return outcome.value
            if not outcome.retryable:
                break
        raise Failed([re.escape("%s: %s" % (name, outcome.message))])

    def do_task(self, step, view, trace, loops, at_root):
        value = self.attempt(step["task"], view, max_attempts(step), trace)
        if step.get("compensable"):
            trace.undo.append((step["task"], self.behaviours[step["task"]]["undo_fails"]))
        return view if value is None else drop_nulls(value)

    def do_gate(self, step, view, trace, loops, at_root):
        if not self.attempt(step["gate"], view, 1, trace):
            raise Gated(step["gate"], view)
        return view

    def do_sleep(self, step, view, trace, loops, at_root):
        return view

    def do_await_signal(self, step, view, trace, loops, at_root):
        name = step["await_signal"]
        if name.startswith("come"):
            return merge(view, payload_of(name))
        if "escalation" not in step:
            raise Failed([re.escape("signal '%s' timed out" % name)])
        return self.sequence(step["escalation"], view, trace, loops, at_root)

    def parallel(self, branches, trace, loops):
        """Run (steps, view) pairs side by side; their views, or Failed."""
        results = []
        failures = []
        for steps, view in branches:
            own = Trace()
            try:
                view = self.sequence(steps, view, own, dict(loops), False)
            except Gated as gated:
                view = gated.view
            except Failed as failed:
                failures.append((failed, own))
            results.append((view, own))
        if not failures:
            for _, own in results:
                trace.absorb(own, True)
            return [view for view, _ in results]
        # The one that is bound to fail got as far as it did; with several, who knows.
        sole = failures[0][1] if len(failures) == 1 else None
        for _, own in results:
            trace.absorb(own, own is sole)
        raise Failed([error for failed, _ in failures for error in failed.errors])

    def combine(self, step, view, staged, trace):
        value = self.attempt(step["combine"], overlay(view, staged), max_attempts(step), trace)
        return view if value is None else drop_nulls(value)

    def do_fork(self, step, view, trace, loops, at_root):
        views = self.parallel([(arm["steps"], copy.deepcopy(view)) for arm in step["fork"]], trace, loops)
        staged = {"__arm__" + arm["name"]: v for arm, v in zip(step["fork"], views)}
        return self.combine(step, view, staged, trace)

    def do_fork_each(self, step, view, trace, loops, at_root):
        spec = step["fork_each"]
        items = view.get(spec["over"]) if isinstance(view, dict) else None
        if items is None or items in ([], {}):
            return view
        if not isinstance(items, (list, dict)):
            raise Failed([re.escape("forEach '%s': context key '%s' holds String, not a list or map" % (spec["as"], spec["over"]))])
        keys = sorted(items, key=lambda k: (len(k.encode()), k.encode())) if isinstance(items, dict) else None
        elements = [items[k] for k in keys] if keys else items
        views = self.parallel([(spec["body"], {} if e is None else copy.deepcopy(e)) for e in elements], trace, loops)
        staged = {"__forEach__" + spec["as"]: dict(zip(keys, views)) if keys else views}
        return self.combine(step, view, staged, trace)

    def do_choose(self, step, view, trace, loops, at_root):
        for case in step["choose"]:
            if "otherwise" in case:
                return self.sequence(case["otherwise"]["then"], view, trace, loops, at_root)
            if self.attempt(case["when"], view, 1, trace):
                return self.sequence(case["then"], view, trace, loops, at_root)
        return view

    def do_do_while(self, step, view, trace, loops, at_root):
        spec = step["do_while"]
        guard = spec["while"]
        while True:
            view = self.sequence(spec["body"], view, trace, loops, at_root)
            if not self.attempt(guard, view, 1, trace):
                return view
            loops[guard] = loops.get(guard, 0) + 1
            if loops[guard] > spec["maxIterations"]:
                raise Failed([re.escape("loop '%s' exceeded its budget of %d iterations" % (guard, spec["maxIterations"])) + r" \(.*\)"])

    def do_sub_workflow(self, step, view, trace, loops, at_root):
        child = step["sub_workflow"]["workflow"]
        expected = Interpreter(self.world, child).run(copy.deepcopy(view))
        if expected.statuses == {"COMPLETED"}:
            return merge(view, expected.context)
        raise Failed(["sub-workflow '%s' (%s): %s" % (child, "|".join(sorted(expected.statuses)), error) for error in expected.errors])


def payload_of(signal):
    return {signal: digest(signal) % 100, "nothing": None}


class Expectation:
    def __init__(self, statuses, reason, errors, context, trace):
        self.statuses = statuses
        self.reason = reason
        self.errors = errors
        self.context = context
        self.trace = trace

    def mismatch(self, status, reason, error, context, events):
        """Why what is there cannot have come of this, or None."""
        if status not in self.statuses:
            return "status %s, not one of %s" % (status, sorted(self.statuses))
        if reason != self.reason:
            return "reason %s, not %s" % (reason, self.reason)
        if self.errors is None and error is not None:
            return "error %s" % error
        if self.errors is not None and not any(re.fullmatch(e, error or "") for e in self.errors):
            return "error %s is none of %s" % (error, self.errors)
        if context != self.context:
            return "context %s, not %s" % (json.dumps(context), json.dumps(self.context))
        if self.trace.must - events or events - self.trace.may:
            return "events %s, must %s, may %s" % (dict(events), dict(self.trace.must), dict(self.trace.may))
        return None
