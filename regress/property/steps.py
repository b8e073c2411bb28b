"""What the steps of random workflows do.

An outcome is a pure function of the step's name, its context, the context around
it and, where the step is flaky, the attempt. The workers ask, and so does the
reference interpreter.
"""
import collections
import hashlib
import json

Outcome = collections.namedtuple("Outcome", "ok value message retryable events")


def digest(*parts):
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")


def done(value, events=()):
    return Outcome(True, value, None, None, list(events))


def failed(message, retryable):
    return Outcome(False, None, message, retryable, [])


def drop_nulls(value):
    return {k: v for k, v in value.items() if v is not None} if isinstance(value, dict) else value


def without(context, keys):
    return {k: v for k, v in context.items() if k not in keys} if isinstance(context, dict) else context


def keep_small(context):
    """What a step keeps of its context: few keys, so that loops do not grow it."""
    if not isinstance(context, dict):
        return {"was": digest(context) % 1000}
    return {key: context[key] for key in sorted(context)[:5]}


def collection(roll, sound):
    elements = [roll % 5, {"k": roll % 3}, None, "text", [1]]
    size = roll // 7 % 5
    if roll % 11 == 0 and not sound:
        return "no collection"
    if roll % 3 == 0:
        return {"key%d" % i: elements[i] for i in range(size)}
    return elements[:size]


def perform(behaviour, step, context, attempt, base=None):
    """One attempt. `base` is None, or the context around, the index and the key."""
    fate = behaviour["fate"]
    if behaviour.get("shared"):
        return perform_shared(behaviour, step, context, attempt)
    if fate == "settles":
        context = without(context, behaviour["forgets"])
    roll = digest(step, context, base)
    if fate == "flaky" and attempt <= behaviour["failures"]:
        return failed("flaky %d" % attempt, True)
    if fate == "permanent" and roll % 3 == 0:
        return failed("permanent %d" % (roll % 100), False)
    if fate == "exhausts" and roll % 3 == 0:
        return failed("exhausted %d" % attempt, True)
    if fate == "decides":
        return done(roll % 1000 < behaviour["yes"] * 1000)
    events = [("e." + step, {"roll": roll % 10})] if behaviour.get("emits") else []
    if fate == "combines":
        return done({step: roll % 1000, "none": None}, events)
    if fate == "lists":
        return done({**keep_small(context), behaviour["key"]: collection(roll, False)}, events)
    if fate == "settles":
        return done({**keep_small(context), step: roll % 1000}, events)
    if fate == "affects" or roll % 5 == 0:
        return done(None, events)
    if roll % 17 == 0:
        return done([roll % 7, None], events)
    return done({**keep_small(context), step: roll % 1000, "nothing": None, "deep": {"none": None}}, events)


def perform_shared(behaviour, step, context, attempt):
    """Where siblings write into one context, when is a matter of luck: such a step
    looks at its own element only, and returns just what it changes."""
    place = []
    if "item" in behaviour:
        place = [context[behaviour["item"]], context[behaviour["item"] + "Index"]]
    roll = digest(step, place)
    if behaviour["fate"] == "flaky" and attempt <= behaviour["failures"]:
        return failed("flaky %d" % attempt, True)
    if behaviour["fate"] == "decides":
        return done(roll % 1000 < behaviour["yes"] * 1000)
    events = [("e." + step, {"roll": roll % 10})] if behaviour.get("emits") else []
    if behaviour["fate"] == "lists":
        return done({behaviour["key"]: collection(roll, True)}, events)
    return done({shared_key(step, place): roll % 1000, "last": step, "nothing": None}, events)


def shared_key(step, place):
    return "%s_%d" % (step, place[1]) if place else step


def undo(behaviour, step, attempt):
    """One attempt of a step's compensator."""
    fate = behaviour["undo"]
    if fate in ("fails", "exhausts") or (fate == "flaky" and attempt == 1):
        return failed("cannot undo", fate != "fails")
    return done({"ignored": True}, [("u." + step, {})])


def payload_of(signal):
    return {signal: digest(signal) % 100, "nothing": None}
