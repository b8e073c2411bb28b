"""Workers: they poll, work and tell, each in a way of its own, and insist on answers."""
import json
import random

import pq
import steps as deeds
from trees import QUEUES

LEASE_MILLIS = 120000

POLL = """select task_id, lease_owner, instance_id, workflow, version, node_id, step_name, kind, attempt, mode, context,
	base_context, item_index, item_map_key
  from wiggle.batch(null, null, null, null, null,
	row(array[$1], array[$2::int], array[$3::int8], $4::int[], $5::text[], $6::int[], $7::text[], $8::int[])::wiggle.batch_polls) where op = 't'"""
REPORT = """select op, item, code, message, status, task_id from wiggle.batch(null,
	row($1::text[], $2::text[], $3::int[], $4::int[], $5::text[], $6::int[], $7::text[], $8::int8[], $8::int8[])::wiggle.batch_runs,
	row($9::text[], $10::text[], $11::text[], $12::bool[], $13::int[])::wiggle.batch_fails, null, null, null,
	row($14::int[], $15::text[], $16::text[])::wiggle.batch_events)"""
BEAT = "select code, message from wiggle.batch(null, null, null, row(array[$1], array[$2], array[$3::int8])::wiggle.batch_beats, null, null)"
RELEASE = "select code, message from wiggle.batch(null, null, null, null, row(array[$1], array[$2])::wiggle.batch_releases, null)"
FINAL, COMPLETE, ASKED_AGAIN, GROUPED = 1, 2, 4, 8
NOTHING, MERGE, PREDICATE = 0, 1, 2


class Stopped(Exception):
    """The round is over; an answer that is still missing concerns nobody."""


def array(values):
    """A PostgreSQL array literal."""
    def element(v):
        if v is None:
            return "NULL"
        return '"%s"' % str(v).replace("\\", "\\\\").replace('"', '\\"')
    return "{%s}" % ",".join(element(v) for v in values)


def insist(stop, action):
    """Repeat until an answer arrives; `action(again)` learns that one was lost."""
    again = False
    while True:
        try:
            return action(again)
        except pq.Lost:
            again = True
            if stop.wait(0.01):
                raise Stopped from None
        except pq.Refused as refused:
            # The whole statement was undone: as it was, once more.
            if refused.sqlstate not in ("40P01", "40001"):
                raise


class Job:
    """One leased task, and what its worker did and has yet to tell."""

    def __init__(self, worker, row):
        self.worker = worker
        self.round = worker.round
        self.task_id, self.owner = row["task_id"], row["lease_owner"]
        self.instance, self.workflow, self.version = row["instance_id"], row["workflow"], int(row["version"])
        self.graph = worker.graph(self.workflow, self.version)
        self.node = row["node_id"]
        self.undoes = row["step_name"].endswith("#compensate")
        self.context = json.loads(row["context"])
        self.base = None
        if row["base_context"] is not None:
            self.base = [json.loads(row["base_context"]), int(row["item_index"]), row["item_map_key"]]
        self.attempt = int(row["attempt"])
        self.local = row["mode"].startswith("LOCAL") and not self.undoes
        self.grouped_ok = row["mode"] == "LOCAL_ASYNC"
        self.careless = False           # its lease may be gone: refusals are no surprise
        self.singly = False
        self.steps = []                 # (node, context before, outcome value, events)
        self.failure = None
        self.final = True
        self.following = None           # where the worker means to go on

    def behaviour(self):
        return self.round.behaviours(self.workflow, self.version)[self.graph[self.node]["name"]]

    def may_be_neglected(self):
        """An attempt more or less makes no difference."""
        return self.attempt == 1 and self.behaviour().get("max", 1) >= 2

    def perform(self):
        name = self.graph[self.node]["name"]
        behaviour = self.behaviour()
        if not self.undoes:
            return deeds.perform(behaviour, name, self.context, self.attempt, self.base)
        done = [deeds.digest(self.context["input"]), deeds.digest(self.context["result"])]
        if done not in self.round.done.get((self.instance, name), []):
            self.round.trouble.append("%s undoes what was not done: %s" % (self.task_id, json.dumps(self.context)))
        return deeds.undo(behaviour, name, self.attempt)

    def work(self):
        """Until something must be told, be it a run of steps, a failure, or both."""
        self.steps, self.failure, self.final, self.following = [], None, True, None
        dice = self.worker.dice
        while True:
            node = self.graph[self.node]
            outcome = self.perform()
            if not outcome.ok:
                # Behind steps of its own a failure needs the task that these lease back.
                if self.local or not self.steps:
                    self.failure = outcome
                    self.final = False
                return
            before = self.context
            self.steps.append((self.node, before, outcome.value, outcome.events))
            shut = node["kind"] == "PREDICATE" and not outcome.value
            following = node.get("altNext") if shut else node.get("next")
            if node["kind"] == "TASK" and outcome.value is not None:
                self.context = deeds.drop_nulls(outcome.value)
            if node.get("compensable") and not self.undoes:
                self.round.done.setdefault((self.instance, node["name"]), []).append(
                    [deeds.digest(before), deeds.digest(self.context)])
            if not self.may_chain(node, following) or dice.random() > (0.8 if self.local else 0.1):
                return
            if self.local and (node.get("checkpoint") or node.get("compensable") or len(self.steps) >= 8 or dice.random() < 0.3):
                self.final, self.following = False, following
                return
            self.node, self.attempt = following, 1

    def may_chain(self, node, following):
        """The worker knows what the next step will see: nobody else writes into it."""
        following = self.graph[following]
        return not (self.undoes or "armNames" in node or "collectKey" in node or following["kind"] not in ("TASK", "PREDICATE") or
                    any(self.round.behaviours(self.workflow, self.version)[n["name"]].get("shared") for n in (node, following)))

    def went_on(self, task_id):
        """The next task is leased already; True when there is something to tell of it."""
        self.task_id, self.careless, self.singly = task_id, False, False
        if self.failure is not None:
            self.steps = []
            return True
        self.node, self.attempt = self.following, 1
        self.work()
        return True

    def complete_value(self):
        """What a client of CompleteTask sends: of an object, what changed."""
        node, before, value, _ = self.steps[0]
        if self.graph[node]["kind"] == "PREDICATE":
            return json.dumps(self.worker.dice.choice([value, {"value": value}]))
        combines = "armNames" in self.graph[node] or "collectKey" in self.graph[node]
        if self.behaviour().get("shared") or self.undoes or combines or not isinstance(value, dict) or not isinstance(before, dict):
            return json.dumps(value)
        value = deeds.drop_nulls(value)
        return json.dumps({**{k: None for k in before if k not in value},
                           **{k: v for k, v in value.items() if k not in before or before[k] != v}})


class Worker:
    def __init__(self, round_, number):
        self.round = round_
        self.number = number
        self.dice = random.Random(round_.seed * 100 + number)
        self.connection = round_.connection("property_worker", "-c wiggle.record_step_io=off" if number == 2 else "")
        self.graphs = {}
        self.polls = 0

    def insist(self, action):
        return insist(self.round.stop, action)

    def graph(self, workflow, version):
        if (workflow, version) not in self.graphs:
            [row] = self.insist(lambda again: self.connection.rows("select wiggle.definition($1, $2) as d", workflow, version))
            definition = json.loads(row["d"])
            nodes = {node["id"]: node for node in definition["nodes"]}
            for checkpoint in definition.get("checkpoints", []):
                nodes[checkpoint]["checkpoint"] = True
            self.graphs[workflow, version] = nodes
        return self.graphs[workflow, version]

    def run(self):
        while not self.round.stop.is_set():
            jobs = self.poll()
            if not jobs:
                self.round.stop.wait(0.005)
            together = [job for job in jobs if not self.disposed(job)]
            if self.dice.random() < 0.5:
                together = [[job] for job in together]
            else:
                together = [together]
            for jobs in together:
                for job in jobs:
                    job.work()
                while jobs:
                    jobs = self.tell(jobs)
        self.connection.close()

    def wishes(self):
        """The queues and versions of a poll; the first worker takes everything."""
        if self.number == 0:
            return [], []
        queues = list(QUEUES) if self.number != 1 else self.dice.sample(QUEUES, self.dice.randint(1, 2))
        versions = []
        if self.number == 3:
            versions = [pair for pair in self.round.registered() if self.dice.random() < 0.5]
        return queues, versions

    def poll(self):
        self.polls += 1
        owner = "w%d#%s" % (self.number, ("%d%04d" % (self.number, self.polls)).rjust(13, "0"))
        queues, versions = self.wishes()
        try:
            rows = self.connection.rows(POLL, owner, self.dice.randint(1, 4), LEASE_MILLIS, array([0] * len(queues)), array(queues),
                                        array([0] * len(versions)), array(v[0] for v in versions), array(v[1] for v in versions))
        except pq.Lost:
            # Whatever was claimed in vain is given back, its attempt unspent.
            self.insist(lambda again: self.connection.rows("select wiggle.release_owners($1::text[])", array([owner])))
            return []
        jobs = [Job(self, row) for row in rows]
        for job in jobs:
            queue = job.graph[job.node].get("queue")
            if queues and queue not in queues or versions and (job.workflow, job.version) not in versions:
                self.round.trouble.append("%s of %s:%d in queue %s was not asked for" % (job.task_id, job.workflow, job.version, queue))
        return jobs

    def disposed(self, job):
        """Some tasks are not worked on, or too late, as workers that hang or die would have it."""
        way = self.dice.random()
        if way < 0.04:
            self.knock(job, RELEASE, job.task_id, job.owner)
            self.round.tally["released"] += 1
            return True
        if way < 0.08:
            self.knock(job, BEAT, job.task_id, job.owner, LEASE_MILLIS + 1000)
        elif way < 0.14 and job.may_be_neglected():
            self.knock(job, BEAT, job.task_id, job.owner, self.dice.randint(0, 20))
            job.careless = True
            if self.dice.random() < 0.5:
                self.round.tally["neglected"] += 1
                return True
            self.round.stop.wait(self.dice.random() * 0.03)
        return False

    def knock(self, job, statement, *parameters):
        answers, again = self.insist(lambda again: (self.connection.rows(statement, *parameters), again))
        self.judge(job, answers[0]["code"], answers[0]["message"], again)

    def judge(self, job, code, message, again):
        """True when it was applied; a refusal must have a reason."""
        if code == "0":
            return True
        # An instance that has ended meanwhile cancels what was leased, and may be purged.
        if not (job.careless or again or " is CANCELLED, not RUNNING" in message or (self.round.trims and code == "404")):
            self.round.trouble.append("%s %s (%s)" % (code, message, job.task_id))
        self.round.tally["refused late" if job.careless else "refused again" if again else "refused"] += 1
        return False

    def tell(self, jobs):
        """Tell what was done; those that have more to tell."""
        alone = [job for job in jobs if job.singly]
        if alone and len(jobs) > 1:
            return [left for job in jobs for left in self.tell_all([job])]
        if len(jobs) == 1 and len(jobs[0].steps) < 2 and self.dice.random() < 0.15 and self.tell_by_hand(jobs[0]):
            return []
        return self.tell_all(jobs)

    def tell_by_hand(self, job):
        """Through the functions for people, which are not asked again; False when they do not fit."""
        if job.failure is None and (job.behaviour().get("shared") or not job.final):
            return False
        if job.steps and job.failure is not None:
            return False
        if job.failure is not None:
            call = ("select wiggle.fail($1, $2, $3, $4)", job.task_id, job.owner, job.failure.message, job.failure.retryable)
        else:
            node, _, value, events = job.steps[0]
            decides = job.graph[node]["kind"] == "PREDICATE"
            if events:
                step = {"node_id": node, "events": [{"type": t, "payload": p} for t, p in events]}
                if value is not None:
                    step["predicate_value" if decides else "merge"] = value
                run = {"task_id": job.task_id, "lease_owner": job.owner, "final": True, "steps": [step]}
                call = ("select error_status, error from wiggle.report($1)", json.dumps([run]))
            elif decides:
                call = ("select wiggle.decide($1, $2, $3)", job.task_id, job.owner, "true" if value else "false")
            else:
                call = ("select wiggle.complete($1, $2, $3)", job.task_id, job.owner, None if value is None else json.dumps(value))

        def ask(again):
            try:
                return self.connection.rows(*call), again
            except pq.Refused as refused:
                if not refused.sqlstate.startswith("WG"):
                    raise
                return [{"error_status": refused.sqlstate[2:], "error": str(refused)}], again

        [answer], again = self.insist(ask)
        self.round.tally["told by hand"] += 1
        self.judge(job, answer.get("error_status", "0"), answer.get("error"), again)
        return True

    def tell_all(self, jobs):
        runs = [job for job in jobs if job.steps]
        fails = [job for job in jobs if not job.steps]
        # A group holds reports of whole contexts, never what merges.
        shared = any(job.behaviour().get("shared") for job in runs)
        grouped = GROUPED if len(runs) > 1 and not shared and self.dice.random() < 0.4 else 0
        modes, columns, events = [], ([], [], [], []), []
        for number, job in enumerate(runs):
            complete = len(job.steps) == 1 and job.failure is None and job.final and not job.undoes and not grouped and (
                job.behaviour().get("shared") or self.dice.random() < 0.2)
            modes.append((COMPLETE if complete else 0) | (FINAL if job.final else 0) | grouped)
            for node, _, value, emitted in job.steps:
                events += [(len(columns[0]), t, json.dumps(p)) for t, p in emitted]
                kind = NOTHING if value is None else MERGE if complete or job.graph[node]["kind"] == "TASK" else PREDICATE
                text = None if value is None else job.complete_value() if complete else json.dumps(value)
                for column, entry in zip(columns, (number, None if complete else node, kind, text)):
                    column.append(entry)

        def ask(again):
            mode = ASKED_AGAIN if again else 0
            return self.connection.rows(
                REPORT, array(job.task_id for job in runs), array(job.owner for job in runs), array(m | mode for m in modes),
                *[array(column) for column in columns], array([0] * len(columns[0])),
                array(job.task_id for job in fails), array(job.owner for job in fails), array(job.failure.message for job in fails),
                array("t" if job.failure.retryable else "f" for job in fails), array([mode] * len(fails)),
                array(e[0] for e in events), array(e[1] for e in events), array(e[2] for e in events)), again

        answers, again = self.insist(ask)
        self.round.tally["asked again"] += again
        self.round.tally["merged"] += sum(mode & COMPLETE != 0 for mode in modes)
        self.round.tally["chained"] += sum(len(job.steps) > 1 for job in runs)
        left = []
        for answer in answers:
            job = (runs if answer["op"] == "r" else fails)[int(answer["item"])]
            if grouped and answer["op"] == "r" and (job.undoes or "report this run singly" in (answer["message"] or "")):
                job.singly = True
                left.append(job)
                self.round.tally["told singly"] += 1
            elif self.judge(job, answer["code"], answer["message"], again) and answer["op"] == "r":
                left += self.follow(job, answer)
                self.round.tally["grouped"] += grouped != 0
        return left

    def follow(self, job, answer):
        wants = job.failure is not None or job.following is not None
        if answer["task_id"] is not None:
            self.round.tally["leased back"] += 1
            if not wants or not job.local:
                self.round.trouble.append("%s was leased back unasked" % answer["task_id"])
            return [job] if job.went_on(answer["task_id"]) else []
        if wants and answer["status"] == "RUNNING":
            self.round.trouble.append("nothing was leased back behind %s" % job.task_id)
        return []
