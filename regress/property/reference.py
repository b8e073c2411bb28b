"""The reference interpreter.

It walks the authoring tree recursively and shares nothing with the engine: neither
nodes nor tokens nor scopes. Where siblings run at once and one fails, what the
others got done is a matter of time: it then says what must and what may have
happened.
"""
import collections
import copy
import json
import re

import steps as deeds
from steps import drop_nulls
from trees import DEFAULT_BUDGET, OPERATORS


class Gated(Exception):
    """A gate said no: its arm, or the workflow, is over."""


class Failed(Exception):
    def __init__(self, errors):
        super().__init__(errors)
        self.errors = errors            # patterns, one of which is the error


class Frame:
    """Where one thread of control works: its context, and the element around it."""

    def __init__(self, view, item=None, root=False):
        self.view = view
        self.item = item                # [context around, index, key] of the innermost element
        self.root = root
        self.last = None                # the worker step that came last

    @property
    def seen(self):
        return self.view


class Laid:
    """An element of a forEach without combine: it lies over the shared context."""

    def __init__(self, under, over):
        self.under, self.over = under, over
        self.item, self.root = under.item, under.root

    @property
    def view(self):
        return self.under.view

    @view.setter
    def view(self, view):
        self.under.view = view

    @property
    def last(self):
        return self.under.last

    @last.setter
    def last(self, step):
        self.under.last = step

    @property
    def seen(self):
        return overlay(self.under.seen, self.over)


class Trace:
    """What certainly and what perhaps happened."""

    def __init__(self):
        self.must = collections.Counter()
        self.may = collections.Counter()
        self.undo = []                  # (step, how undoing it ends), certainly to be undone
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


def merge(view, document):
    if document is None:
        return view
    if not isinstance(document, dict):
        return document
    merged = {**view, **document} if isinstance(view, dict) else dict(document)
    return {k: v for k, v in merged.items() if not (k in document and document[k] is None)}


def overlay(view, staged):
    return {**view, **staged} if isinstance(view, dict) else dict(staged)


def children_of(collected):
    """Elements of a list or map as (key or None, element), or None for anything else."""
    if isinstance(collected, dict):
        return list(collected.items())
    if isinstance(collected, list):
        return [(None, element) for element in collected]
    return None


class Interpreter:
    """One instance. `world` maps workflow names to what is made of them; `accepted` are
    the racing signals that were in time."""

    def __init__(self, world, made, accepted=()):
        self.world = world
        self.tree, self.behaviours = made
        self.accepted = accepted

    def run(self, context):
        """The expectation of an instance that starts with this context."""
        trace = Trace()
        frame = Frame(context, root=True)
        try:
            self.sequence(self.tree["steps"], frame, trace, {})
        except Gated as gated:
            return Expectation({"COMPLETED"}, "gated:%s" % gated, None, frame.view, trace)
        except Failed as failed:
            return self.fail(failed.errors, frame, trace)
        return Expectation({"COMPLETED"}, None, None, frame.view, trace)

    def fail(self, errors, frame, trace):
        broken = sorted({step for step, how in trace.undo if how in ("fails", "exhausts")})
        maybe_broken = sorted({step for step, how in trace.maybe_undo if how in ("fails", "exhausts")})
        statuses = set() if trace.undo else {"FAILED"}
        if broken or maybe_broken:
            statuses.add("COMPENSATION_FAILED")
        if (trace.undo or trace.maybe_undo) and not broken:
            statuses.add("COMPENSATED")
        patterns = list(errors)
        if "COMPENSATION_FAILED" in statuses:
            patterns += [e + r"; compensator '" + s + r"' \(undo seq \d+\) failed: cannot undo"
                         for e in errors for s in broken + maybe_broken]
        return Expectation(statuses, None, patterns, frame.view, trace)

    def sequence(self, steps, frame, trace, loops):
        for step in steps:
            [operator] = [o for o in OPERATORS if o in step]
            getattr(self, "do_" + operator)(step, frame, trace, loops)

    def attempt(self, name, context, base, trace):
        behaviour = self.behaviours[name]
        for attempt in range(1, behaviour.get("max", 1) + 1):
            outcome = deeds.perform(behaviour, name, context, attempt, base)
            if outcome.ok:
                trace.emit(outcome.events)
                return outcome.value
            if not outcome.retryable:
                break
        raise Failed([re.escape("%s: %s" % (name, outcome.message))])

    def do_task(self, step, frame, trace, loops, operator="task"):
        name = step[operator]
        value = self.attempt(name, frame.seen, frame.item, trace)
        if step.get("compensable"):
            trace.undo.append((name, self.behaviours[name]["undo"]))
        if self.behaviours[name].get("shared"):
            frame.view = merge(frame.view, deeds.without(value, ["last"]))
        elif value is not None:
            frame.view = drop_nulls(value)
        frame.last = name

    def do_effect(self, step, frame, trace, loops):
        self.do_task(step, frame, trace, loops, "effect")

    def do_gate(self, step, frame, trace, loops):
        if not self.attempt(step["gate"], frame.seen, frame.item, trace):
            raise Gated(step["gate"])

    def do_sleep(self, step, frame, trace, loops):
        pass

    def do_await_signal(self, step, frame, trace, loops):
        name = step["await_signal"]
        if name.startswith("come") or name in self.accepted:
            frame.view = merge(frame.view, deeds.payload_of(name))
        elif "escalation" in step:
            self.sequence(step["escalation"], frame, trace, loops)
        else:
            raise Failed([re.escape("signal '%s' timed out" % name)])

    def parallel(self, branches, trace, loops):
        """Run (steps, frame) pairs side by side to their ends, or to Failed."""
        failures = []
        traces = []
        for steps, frame in branches:
            own = Trace()
            try:
                self.sequence(steps, frame, own, dict(loops))
            except Gated:
                pass
            except Failed as failed:
                failures.append((failed, own))
            traces.append(own)
        # One that is bound to fail got as far as it did; with several, who knows.
        sole = failures[0][1] if len(failures) == 1 else None
        for own in traces:
            trace.absorb(own, not failures or own is sole)
        if failures:
            raise Failed([error for failed, _ in failures for error in failed.errors])

    def combine(self, step, frame, staged, trace):
        base = None
        if step.get("encoding") == "legacy":
            pass
        elif frame.item is not None:
            base = [frame.view] + frame.item[1:]
        elif not frame.root:
            base = [frame.view, 0, None]
        value = self.attempt(step["combine"], overlay(frame.view, staged), base, trace)
        frame.last = step["combine"]
        if value is not None:
            frame.view = drop_nulls(value)

    def do_fork(self, step, frame, trace, loops):
        arms = [(arm["steps"] + step.get("tail", []), Frame(copy.deepcopy(frame.view), frame.item)) for arm in step["fork"]]
        self.parallel(arms, trace, loops)
        prefix = "" if step.get("encoding") == "legacy" else "__arm__"
        self.combine(step, frame, {prefix + arm["name"]: f.view for arm, (_, f) in zip(step["fork"], arms)}, trace)

    def elements(self, each, frame):
        found = frame.seen.get(each["over"]) if isinstance(frame.seen, dict) else None
        if found is None:
            return []
        elements = children_of(found)
        if elements is None:
            raise Failed([re.escape("forEach '%s': context key '%s' holds String, not a list or map" % (each["as"], each["over"]))])
        return elements

    def do_fork_each(self, step, frame, trace, loops):
        each = step["fork_each"]
        elements = self.elements(each, frame)
        if not elements:
            return
        frames = [Frame({} if element is None else copy.deepcopy(element), [copy.deepcopy(frame.view), index, key])
                  for index, (key, element) in enumerate(elements)]
        self.parallel([(each["body"], f) for f in frames], trace, loops)
        collect = each["as"] if step.get("encoding") == "legacy" else "__forEach__" + each["as"]
        views, lasts = [f.view for f in frames], [f.last for f in frames]
        if elements[0][0] is not None:
            keys = [key for key, _ in elements]
            views, lasts = dict(zip(keys, views)), dict(zip(keys, lasts))
        self.combine(step, frame, {collect: views, "__steps__" + collect: lasts}, trace)

    def shared(self, branches, trace, loops):
        for steps, frame in branches:
            try:
                self.sequence(steps, frame, trace, dict(loops))
            except Gated:
                pass

    def do_shared_fork(self, step, frame, trace, loops):
        self.shared([(arm["steps"], frame) for arm in step["shared_fork"]], trace, loops)

    def do_shared_each(self, step, frame, trace, loops):
        each = step["shared_each"]
        elements = self.elements(each, frame)
        self.shared([(each["body"], Laid(frame, {each["as"]: element, each["as"] + "Index": index}))
                     for index, (_, element) in enumerate(elements)], trace, loops)

    def do_choose(self, step, frame, trace, loops):
        for case in step["choose"]:
            if "otherwise" in case:
                self.sequence(case["otherwise"]["then"], frame, trace, loops)
            elif self.attempt(case["when"], frame.seen, frame.item, trace):
                self.sequence(case["then"], frame, trace, loops)
                return

    def do_do_while(self, step, frame, trace, loops):
        loop = step["do_while"]
        guard = loop["while"]
        budget = loop.get("maxIterations", DEFAULT_BUDGET)
        while True:
            self.sequence(loop["body"], frame, trace, loops)
            if not self.attempt(guard, frame.seen, frame.item, trace):
                return
            loops[guard] = loops.get(guard, 0) + 1
            if loops[guard] > budget:
                raise Failed([re.escape("loop '%s' exceeded its budget of %d iterations" % (guard, budget)) + r" \(.*\)"])

    def do_sub_workflow(self, step, frame, trace, loops):
        child = step["sub_workflow"]["workflow"]
        if child not in self.world:
            raise Failed(["sub-workflow '%s': workflow '%s' not found" % (child, child)])
        # Each version of a workflow that others start has the same tree.
        expected = Interpreter(self.world, self.world[child][1]).run(copy.deepcopy(frame.seen))
        if expected.statuses != {"COMPLETED"}:
            raise Failed(["sub-workflow '%s' (%s): %s" % (child, "|".join(sorted(expected.statuses)), error) for error in expected.errors])
        frame.view = merge(frame.view, expected.context)


class Expectation:
    def __init__(self, statuses, reason, errors, context, trace):
        self.statuses = statuses
        self.reason = reason
        self.errors = errors
        self.context = context
        self.trace = trace

    def mismatch(self, end, events):
        """Why this end of an instance cannot have come of this, or None."""
        if end.status not in self.statuses:
            return "status %s, not one of %s" % (end.status, sorted(self.statuses))
        if end.reason != self.reason:
            return "reason %s, not %s" % (end.reason, self.reason)
        if self.errors is None and end.error is not None:
            return "error %s" % end.error
        if self.errors is not None and not any(re.fullmatch(e, end.error or "") for e in self.errors):
            return "error %s is none of %s" % (end.error, self.errors)
        if end.context != self.context:
            return "context %s, not %s" % (json.dumps(end.context), json.dumps(self.context))
        if self.trace.must - events:
            return "events %s, must %s" % (dict(events), dict(self.trace.must))
        return self.excess(events)

    def excess(self, events):
        """What happened that never may have, or None."""
        if events - self.trace.may:
            return "events %s, may %s" % (dict(events), dict(self.trace.may))
        return None
