"""Trees as the definitions that client libraries send: node ids of their own
making, either encoding of combines, forks without one, modes, checkpoints."""
import json
import re

from trees import OPERATORS


def millis(duration):
    amount, unit = re.fullmatch(r"(\d+)(ms|s|m|h)", duration).groups()
    return int(amount) * {"ms": 1, "s": 1000, "m": 60000, "h": 3600000}[unit]


class Compiler:
    """Nodes are made from the end to the start: each construct is told what follows it."""

    def __init__(self, tree, random, mode):
        self.tree = tree
        self.random = random
        self.mode = mode
        self.nodes = []
        self.shape = random.choice(["n%d", "n%d", "n%d", 'a"b\\%d', "\u00fc%d"])

    def compile(self):
        start = self.sequence(self.tree["steps"], self.node("END", success=True), None)
        queues = sorted({n["queue"] for n in self.nodes if n.get("queue")})
        self.random.shuffle(self.nodes)
        definition = {"name": self.tree["workflow"], "version": self.tree["version"], "startNode": start, "nodes": self.nodes,
                      "queues": queues, "executionMode": self.mode}
        if self.mode == "LOCAL_ASYNC":
            definition["checkpoints"] = [n["id"] for n in self.nodes if n["kind"] == "TASK" and self.random.random() < 0.3]
        return definition

    def node(self, kind, **fields):
        node = {"id": self.shape % (len(self.nodes) + 1), "kind": kind, **{k: v for k, v in fields.items() if v is not None}}
        self.nodes.append(node)
        return node["id"]

    def sequence(self, steps, following, join):
        for step in reversed(steps):
            [operator] = [o for o in OPERATORS if o in step]
            following = getattr(self, "put_" + operator)(step, following, join)
        return following

    def worked(self, kind, name, step, following, **fields):
        retry = step.get("retry")
        if retry is not None:
            retry = {"maxAttempts": retry["max"], "initialBackoffMillis": millis(retry["backoff"]), "multiplier": 1.0,
                     "maxBackoffMillis": 0, "jitter": 0.0}
        return self.node(kind, name=name, activity="%s#%s" % (self.tree["workflow"], name), retry=retry, next=following,
                         queue=step.get("queue", self.tree["defaultQueue"]), **fields)

    def put_task(self, step, following, join):
        return self.worked("TASK", step["task"], step, following, compensable=step.get("compensable"))

    def put_effect(self, step, following, join):
        return self.worked("TASK", step["effect"], step, following)

    def put_gate(self, step, following, join):
        shut = join or self.node("END", success=True, reason="gated:" + step["gate"])
        return self.worked("PREDICATE", step["gate"], step, following, altNext=shut)

    def put_sleep(self, step, following, join):
        return self.node("SLEEP", name=step["sleep"]["name"], sleepMillis=millis(step["sleep"]["for"]), next=following)

    def put_await_signal(self, step, following, join):
        escalation = self.sequence(step["escalation"], following, join) if "escalation" in step else None
        return self.node("SIGNAL", name=step["await_signal"], next=following, altNext=escalation,
                         sleepMillis=millis(step["timeout"]) if "timeout" in step else None)

    def put_sub_workflow(self, step, following, join):
        return self.node("SUB_WORKFLOW", name=step["sub_workflow"]["name"], activity=step["sub_workflow"]["workflow"], next=following)

    def put_choose(self, step, following, join):
        otherwise = following
        for case in reversed(step["choose"]):
            if "otherwise" in case:
                otherwise = self.sequence(case["otherwise"]["then"], following, join)
            else:
                otherwise = self.worked("PREDICATE", case["when"], case, self.sequence(case["then"], following, join), altNext=otherwise)
        return otherwise

    def put_do_while(self, step, following, join):
        loop = step["do_while"]
        guard = self.worked("PREDICATE", loop["while"], loop, None, altNext=following, loopBudget=loop.get("maxIterations", -1))
        [node] = [n for n in self.nodes if n["id"] == guard]
        node["next"] = self.sequence(loop["body"], guard, join)
        return node["next"]

    # A combine as the newer clients write it, or as the older ones do.
    def arms_combine(self, step, names, following):
        keys = {"itemsKey": json.dumps(names)} if step.get("encoding") == "legacy" else {"armNames": names}
        return self.worked("TASK", step["combine"], step, following, **keys)

    def each_combine(self, step, name, following):
        keys = {"itemsKey": json.dumps(name)} if step.get("encoding") == "legacy" else {"collectKey": "__forEach__" + name}
        return self.worked("TASK", step["combine"], step, following, **keys)

    def put_fork(self, step, following, join):
        arms = step["fork"]
        own = self.node("JOIN", expected=len(arms), next=self.arms_combine(step, [arm["name"] for arm in arms], following))
        tail = self.sequence(step.get("tail", []), own, own)
        return self.node("FORK", branches=[self.sequence(arm["steps"], tail, own) for arm in arms])

    def put_shared_fork(self, step, following, join):
        own = self.node("JOIN", expected=len(step["shared_fork"]), next=following)
        return self.node("FORK", branches=[self.sequence(arm["steps"], own, own) for arm in step["shared_fork"]])

    def each(self, each, behind):
        own = self.node("JOIN", next=behind)
        noted = own if self.random.random() < 0.5 else None     # some builders note the join as its successor
        return self.node("DYN_FORK", name=each["as"], itemsKey=each["over"], itemKey=each["as"], next=noted,
                         branches=[self.sequence(each["body"], own, own)])

    def put_fork_each(self, step, following, join):
        return self.each(step["fork_each"], self.each_combine(step, step["fork_each"]["as"], following))

    def put_shared_each(self, step, following, join):
        return self.each(step["shared_each"], following)
