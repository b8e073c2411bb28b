#!/usr/bin/env python3
"""Make fingerprints.txt: definitions as clients send them, each with the
fingerprint that this second, independent implementation of the canonical form
computes. test_definition holds the C code against it.

    python3 regress/unit/golden/fingerprints.py > regress/unit/golden/fingerprints.txt
"""
import hashlib
import json

FOREVER = {"maxAttempts": 2147483647, "initialBackoffMillis": 1000, "multiplier": 1.0,
           "maxBackoffMillis": 60000, "jitter": 0.0}
NODE_KEYS = ["id", "kind", "activity", "queue", "next", "altNext", "reason", "itemsKey", "itemKey",
             "collectKey"]


def number(value):
    """Shortest decimal without exponent or trailing zeros."""
    if value == int(value):
        return str(int(value))
    digits = format(__import__("decimal").Decimal(repr(value)), "f")
    return digits.rstrip("0") if "." in digits else digits


def text(value):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return number(value)
    if isinstance(value, str):
        named = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
        return '"' + "".join(named.get(c) or (f"\\u{ord(c):04x}" if c < " " else c) for c in value) + '"'
    if isinstance(value, list):
        return "[" + ",".join(map(text, value)) + "]"
    keys = sorted(value, key=lambda k: k.encode("utf-16-be"))
    return "{" + ",".join(text(k) + ":" + text(value[k]) for k in keys) + "}"


def canonical_node(node):
    out = {k: node[k] for k in NODE_KEYS if node.get(k) is not None}
    out["name"] = node.get("name")
    if node["kind"] == "TASK" and "itemsKey" in out:
        keys = json.loads(out.pop("itemsKey"))
        if not node.get("armNames") and not node.get("collectKey"):
            if isinstance(keys, str):
                out["collectKey"] = keys
            else:
                out["armNames"] = keys
    if node.get("armNames"):
        out["armNames"] = node["armNames"]
    if node.get("branches"):
        out["branches"] = node["branches"]
    for key in ("sleepMillis", "expected"):
        if node.get(key, 0) > 0:
            out[key] = node[key]
    if node.get("loopBudget", 0) != 0:
        out["loopBudget"] = node["loopBudget"]
    if node.get("compensable"):
        out["compensable"] = True
    if node["kind"] == "END":
        out["success"] = node.get("success", False)
    if node.get("retry") is not None:
        defaults = {"maxAttempts": 1, "initialBackoffMillis": 0, "multiplier": 1, "maxBackoffMillis": 0,
                    "jitter": 0}
        out["retry"] = {k: node["retry"].get(k, d) for k, d in defaults.items()}
    return out


def fingerprint(definition):
    by_id = {n["id"]: n for n in definition["nodes"]}
    nodes = [canonical_node(by_id[i]) for i in sorted(by_id, key=lambda i: i.encode("utf-16-be"))]
    material = {
        "name": definition["name"], "startNode": definition["startNode"], "nodes": nodes,
        "executionMode": definition.get("executionMode") or "DEFAULT",
        "checkpoints": sorted(set(definition.get("checkpoints") or [])),
    }
    return hashlib.sha256(text(material).encode()).hexdigest()


def work(node_id, kind, name, next_id, workflow="w", **more):
    node = {"id": node_id, "kind": kind, "name": name, "activity": f"{workflow}#{name}", "queue": workflow,
            "retry": FOREVER, "next": next_id}
    node.update(more)
    return node


def end(node_id="end9", **more):
    return {"id": node_id, "kind": "END", "success": True, **more}


def definition(start, *nodes, **more):
    return {"name": "w", "version": 1, "startNode": start, "nodes": list(nodes), "queues": ["w"], **more}


DEFINITIONS = [
    # The worked example.
    {"name": "demo", "version": 7, "startNode": "n1", "queues": ["demo"], "nodes": [
        work("n1", "TASK", "a", "end2", "demo"), end("end2", name="end")]},
    # A chain whose ids do not sort as numbers do; whole doubles as clients send them.
    definition("n1", work("n1", "TASK", "a", "n2"), work("n2", "TASK", "b", "n10"),
               work("n10", "TASK", "c", "end11"), end("end11", name="end"), version=3.0),
    # Retry policies with fractions, large, small and defaulted values.
    definition("n1", work("n1", "TASK", "a", "n2", retry={
        "maxAttempts": 5, "initialBackoffMillis": 100, "multiplier": 2.5, "maxBackoffMillis": 300000,
        "jitter": 0.2}),
        work("n2", "TASK", "b", "n3", retry={"multiplier": 1e21, "jitter": 1e-7, "maxAttempts": 1e3}),
        work("n3", "TASK", "c", "n4", retry={}), work("n4", "TASK", "d", "n5", retry=None),
        work("n5", "TASK", "e", "end9", retry={"multiplier": 1.1, "jitter": 0.30000000000000004,
                                               "maxBackoffMillis": -1}), end()),
    # A gate at the top: an END with a reason.
    definition("n1", work("n1", "PREDICATE", "in stock", "n3", altNext="end2"),
               end("end2", reason="gated:in stock"), work("n3", "TASK", "ship", "end9"), end()),
    # Text that must and must not be escaped.
    definition("n1", work("n1", "TASK", "caf\u00e9 \u20ac \U0001f600 / \x7f \"q\" \\ \n\t\x01", "end9"),
               end(reason="a\u2028b")),
    # Ids that UTF-16 and UTF-8 sort differently.
    definition("\uff5e", work("\uff5e", "TASK", "a", "\U0001f600"), work("\U0001f600", "TASK", "b", "z"),
               work("z", "TASK", "c", "end9"), end()),
    # Modes and checkpoints.
    definition("n1", work("n1", "TASK", "a", "n2"), work("n2", "TASK", "b", "end9"), end(),
               executionMode="LOCAL_ASYNC", checkpoints=["n2", "n1", "n2"]),
    definition("n1", work("n1", "TASK", "a", "end9", compensable=True), end(), executionMode="SERVER"),
    # A fork with its combine in the legacy encoding, the typed one, and both.
    *[definition("fork1", {"id": "fork1", "kind": "FORK", "name": "fork1", "branches": ["n3", "n4"]},
                 {"id": "join2", "kind": "JOIN", "name": "join2", "expected": 2, "next": "n5"},
                 work("n3", "TASK", "a", "join2"), work("n4", "PREDICATE", "b", "join2", altNext="join2"),
                 work("n5", "TASK", "merge", "end9", **combine), end())
      for combine in ({"itemsKey": '["pay","ship"]'}, {"armNames": ["pay", "ship"]},
                      {"armNames": ["pay", "ship"], "itemsKey": '["pay","ship"]'})],
    # The same for a forEach, and a fork_each of old without a combine.
    *[definition("dynfork1", {"id": "dynfork1", "kind": "DYN_FORK", "name": "items", "itemsKey": "lines",
                              "itemKey": "line", "branches": ["n3"], "next": "join2"},
                 {"id": "join2", "kind": "JOIN", "name": "join2", "next": "n4"},
                 work("n3", "TASK", "price", "join2"), work("n4", "TASK", "total", "end9", **combine), end())
      for combine in ({"itemsKey": '"items"'}, {"collectKey": "__forEach__items"}, {})],
    # A fork of old without a combine; nested forks.
    definition("fork1", {"id": "fork1", "kind": "FORK", "name": None, "branches": ["n3", "fork4"]},
               {"id": "join2", "kind": "JOIN", "expected": 2, "next": "n8"}, work("n3", "TASK", "a", "join2"),
               {"id": "fork4", "kind": "FORK", "name": "fork", "branches": ["n6", "n7"]},
               {"id": "join5", "kind": "JOIN", "name": "join", "expected": 2, "next": "join2"},
               work("n6", "TASK", "b", "join5"), work("n7", "TASK", "c", "join5"),
               work("n8", "TASK", "d", "end9"), end()),
    # A loop around a sleep, a signal with an escalation, a sub-workflow.
    definition("n1", {"id": "n1", "kind": "SLEEP", "name": "sleep-300ms", "sleepMillis": 300, "next": "n2"},
               work("n2", "PREDICATE", "again", "n1", altNext="n3", loopBudget=-1),
               {"id": "n3", "kind": "SIGNAL", "name": "paid", "sleepMillis": 5000, "next": "sub5",
                "altNext": "n4"}, work("n4", "TASK", "remind", "sub5"),
               {"id": "sub5", "kind": "SUB_WORKFLOW", "name": "invoice", "activity": "invoicing", "next": "end9"},
               end()),
    # A step that creates branches, and its combine.
    definition("n1", work("n1", "TASK", "plan", "join2"), {"id": "join2", "kind": "JOIN", "name": "join", "next": "n3"},
               work("n3", "TASK", "merge", "end9", collectKey="__spawn__plan"), end()),
    # What is not part of the graph; a duplicated node of which the last stays.
    {**definition("n1", work("n1", "TASK", "gone", "end9"), work("n1", "TASK", "a", "end9", colour="red",
                                                                 sleepMillis=0, expected=0, branches=[]),
                  end(success=False, reason="no")), "queues": ["z", "a", "z"], "extra": {"x": [1]}},
]

if __name__ == "__main__":
    for d in DEFINITIONS:
        print(fingerprint(d), json.dumps(d, ensure_ascii=False, separators=(",", ":")))
