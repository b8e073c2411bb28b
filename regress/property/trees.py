"""Random workflows, kept as authoring trees.

A tree is the authoring shorthand. One that is registered as a graph (graphs.py)
may hold what only client libraries write: forks whose arms share a context,
arms that are empty or end in common steps, combines in the older encoding.
"""

OPERATORS = ("task", "effect", "gate", "sleep", "await_signal", "fork", "fork_each", "shared_fork", "shared_each",
             "choose", "do_while", "sub_workflow")
DEFAULT_BUDGET = 6              # of loops that set none: wiggle.loop_max_iterations
QUEUES = ("qa", "qb", "qc")


class Maker:
    """Builds one workflow; `children` are names of workflows made before it."""

    def __init__(self, random, name, children, as_graph, racy):
        self.random = random
        self.name = name
        self.children = children
        self.as_graph = as_graph
        self.racy = racy                # signals may come or not: once each, at the top
        self.count = 0
        self.steps = {}                 # step name -> behaviour
        self.laid = []                  # keys of elements that lie over a shared context

    def fresh(self, prefix):
        self.count += 1
        return "%s%d" % (prefix, self.count)

    def make(self, version):
        steps = self.sequence(3, self.racy)
        return {"workflow": self.name, "version": version, "defaultQueue": self.random.choice(QUEUES), "steps": steps}

    def sequence(self, depth, racy=False):
        return [step for _ in range(self.random.randint(1, 3)) for step in self.construct(depth, racy)]

    def construct(self, depth, racy):
        kinds = ["task"] * 5 + ["effect", "gate", "sleep", "signal"]
        if racy:
            kinds += ["race"] * 4
        if depth > 0:
            kinds += ["fork", "fork", "each", "each", "choose", "loop"]
            if self.as_graph:
                kinds += ["shared_fork", "shared_each"]
            if self.children:
                kinds += ["child"]
        kind = self.random.choice(kinds)
        if kind in ("fork", "choose"):
            return getattr(self, "make_" + kind)(depth, racy)
        return getattr(self, "make_" + kind)(depth)

    def behave(self, prefix, **behaviour):
        name = self.fresh(prefix)
        self.steps[name] = behaviour
        return name

    def chance(self, probability):
        return self.random.random() < probability

    def placed(self, step, retry=None):
        """Its queue and policy."""
        if self.chance(0.3):
            step["queue"] = self.random.choice(QUEUES)
        elif self.as_graph and self.chance(0.1):
            step["queue"] = None
        if retry is not None:
            step["retry"] = retry
        return step

    def policy(self, attempts):
        return {"max": attempts, "backoff": "%dms" % self.random.choice([0, 0, 1, 5, 30])}

    # ---- one construct each, as a list of steps

    def make_task(self, depth, prefix="t", **extra):
        fate = self.random.random()
        behaviour = {"fate": "ok", "emits": self.chance(0.3), "max": 6}
        if fate < 0.10:
            behaviour.update(fate="flaky", failures=self.random.randint(1, 3))
        elif fate < 0.16:
            behaviour["fate"] = "permanent"
        elif fate < 0.20:
            behaviour.update(fate="exhausts", max=2)
        step = {}
        if prefix == "t" and self.chance(0.25):
            step["compensable"] = True
            # What is undone is compared with what was done, entry by entry.
            behaviour.update(emits=True, undo=self.random.choice(["ok"] * 6 + ["flaky", "flaky", "fails", "exhausts"]))
        behaviour.update(extra)
        name = self.behave(prefix, **behaviour)
        return [{"task": name, **self.placed(step, self.policy(behaviour["max"]))}]

    def make_effect(self, depth):
        name = self.behave("f", fate="affects", emits=self.chance(0.3), max=6)
        return [{"effect": name, **self.placed({}, self.policy(6))}]

    def make_gate(self, depth, **extra):
        name = self.behave("g", fate="decides", yes=0.8, max=6, **extra)
        return [{"gate": name, **self.placed({}, self.policy(6))}]

    def make_sleep(self, depth):
        return [{"sleep": {"for": "%dms" % self.random.randint(0, 20), "name": self.fresh("z")}}]

    def make_signal(self, depth):
        fate = self.random.random()
        if fate < 0.5:
            return [{"await_signal": self.fresh("come"), **({"timeout": "1h"} if self.chance(0.5) else {})}]
        if fate < 0.6:
            return [{"await_signal": self.fresh("never"), "timeout": "5ms"}]
        return [{"await_signal": self.fresh("never"), "timeout": "5ms", "escalation": self.sequence(0)}]

    def make_race(self, depth):
        wait = {"await_signal": self.fresh("race"), "timeout": "%dms" % self.random.randint(1, 40)}
        if self.chance(0.7):
            wait["escalation"] = self.sequence(0)
        return [wait]

    def combined(self, step):
        step["combine"] = self.behave("m", fate="combines", emits=True, max=6)
        if self.as_graph and self.chance(0.4):
            step["encoding"] = "legacy"
        return self.placed(step, self.policy(6))

    def make_fork(self, depth, racy=False):
        arms = [{"name": self.fresh("arm"), "steps": self.sequence(depth - 1, racy)} for _ in range(self.random.randint(2, 3))]
        step = {"fork": arms}
        if self.as_graph:
            for arm in arms:
                if self.chance(0.15):
                    arm["steps"] = []
            if self.chance(0.3):
                step["tail"] = self.sequence(0)
        return [self.combined(step)]

    def make_each(self, depth):
        key = self.fresh("items")
        each = {"over": key, "as": self.fresh("it"), "body": self.sequence(depth - 1)}
        return self.make_task(depth, prefix="l", fate="lists", key=key) + [self.combined({"fork_each": each})]

    def make_choose(self, depth, racy=False):
        cases = [{"when": self.behave("p", fate="decides", yes=0.4), "then": self.sequence(depth - 1, racy)}
                 for _ in range(self.random.randint(1, 2))]
        if self.chance(0.5):
            cases.append({"otherwise": {"then": self.sequence(depth - 1, racy)}})
        return [{"choose": cases}]

    def make_loop(self, depth):
        loop = {"while": self.behave("w", fate="decides", yes=0.5), "body": self.sequence(depth - 1)}
        if self.chance(0.8):
            loop["maxIterations"] = self.random.randint(1, 4)
        return [{"do_while": loop}]

    def make_child(self, depth):
        child = "missing" if self.chance(0.03) else self.random.choice(self.children)
        return [{"sub_workflow": {"name": self.fresh("c"), "workflow": child}}]

    # ---- arms and elements that share their context; nothing in them fails

    def shared_task(self, item, **extra):
        behaviour = {"fate": "ok", "emits": self.chance(0.3), "max": 6, "shared": True, **extra}
        if self.chance(0.15) and not extra:
            behaviour.update(fate="flaky", failures=self.random.randint(1, 3))
        if item:
            behaviour["item"] = item
        return {"task": self.behave("s", **behaviour), **self.placed({}, self.policy(6))}

    def shared_steps(self, depth, item):
        steps = []
        for _ in range(self.random.randint(1, 3)):
            kind = self.random.choice(["task"] * 4 + ["gate", "sleep", "come"] + ["fork"] * (depth > 0) + ["each"] * (depth > 0 and not item))
            if kind == "task":
                steps.append(self.shared_task(item))
            elif kind == "gate":
                steps += self.make_gate(0, shared=True, **({"item": item} if item else {}))
            elif kind == "come":
                steps.append({"await_signal": self.fresh("come")})
            elif kind == "fork":
                steps += self.make_shared_fork(depth, item)[:-1]
            elif kind == "each":
                steps += self.make_shared_each(depth)[:-1]
            else:
                steps += self.make_sleep(0)
        return steps

    def make_shared_fork(self, depth, item=None):
        arms = [{"name": self.fresh("arm"), "steps": self.shared_steps(depth - 1, item)} for _ in range(self.random.randint(2, 3))]
        return self.settled([{"shared_fork": arms}])

    def make_shared_each(self, depth):
        key = self.fresh("items")
        lists = self.shared_task(None, fate="lists", key=key)
        item = self.fresh("it")
        self.laid += [item, item + "Index"]
        return self.settled([lists, {"shared_each": {"over": key, "as": item, "body": self.shared_steps(depth - 1, item)}}])

    def settled(self, steps):
        """Who wrote last is a matter of luck, and so is whose element came with what was
        written: the step behind the join forgets both."""
        return steps + self.make_task(0, prefix="k", fate="settles", forgets=["last"] + self.laid)
