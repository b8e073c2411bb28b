"""Random workflows, run by random workers while their backends are killed, against
a reference interpreter.

    run.py AREA

PROPERTY_SEED=N runs the one round of that seed: the same workflows, contexts and
step outcomes. (When backends die is a matter of time, and not reproduced.)
PROPERTY_ROUNDS and PROPERTY_SECONDS bound a run without a seed.
"""
import collections
import json
import os
import random
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "scripts"))

import model                                                # noqa: E402
import pq                                                   # noqa: E402
from harness import TREE, Cluster, wait_for                 # noqa: E402

WORKFLOWS = 10
INSTANCES = 60
WORKERS = 4
LEASE_MILLIS = 120000
LAND_SECONDS = 60
KILLS = 60                      # in a round; afterwards what is left lands in peace
# Clock workers die in the first rounds only: each comes back twice as late as the one before.
CLOCK_KILL_ROUNDS = 3

POLL = """select task_id, lease_owner, instance_id, workflow, node_id, step_name, kind, attempt, context
  from wiggle.batch(null, null, null, null, null,
	row(array[$1], array[$2::int], array[$3::int8], null, null, null, null, null)::wiggle.batch_polls) where op = 't'"""
REPORT = """select op, item, code, message, status from wiggle.batch(null,
	row($1::text[], $2::text[], $3::int[], $4::int[], $5::text[], $6::int[], $7::text[], $8::int8[], $8::int8[])::wiggle.batch_runs,
	row($9::text[], $10::text[], $11::text[], $12::bool[], $13::int[])::wiggle.batch_fails, null, null, null,
	row($14::int[], $15::text[], $16::text[])::wiggle.batch_events)"""
FINAL, ASKED_AGAIN = 1, 4
RUN_PREDICATE, RUN_MERGE, RUN_NOTHING = 2, 1, 0


class Stopped(Exception):
    """The round is over; an answer that is still missing concerns nobody."""


def array(values):
    """A PostgreSQL array literal."""
    def element(v):
        if v is None:
            return "NULL"
        return '"%s"' % str(v).replace("\\", "\\\\").replace('"', '\\"')
    return "{%s}" % ",".join(element(v) for v in values)


class Round:
    def __init__(self, cluster, seed, kill_clock):
        self.cluster = cluster
        self.clock_kill_at = random.randrange(8) if kill_clock else None
        self.seed = seed
        self.random = random.Random(seed)
        self.world = {}
        self.roots = {}
        self.stop = threading.Event()
        self.trouble = []
        self.kills = collections.Counter()
        self.lost = 0

    def connection(self, application):
        return pq.Connection(self.cluster.conninfo() + " application_name=" + application)

    # ---- before

    def prepare(self, main):
        for n in range(WORKFLOWS):
            name = "p%d_%d" % (self.seed, n)
            maker = model.Maker(self.random, name, list(self.world)[-4:])
            tree = maker.make()
            self.world[name] = (tree, maker.steps)
            main.rows("select wiggle.register($1::jsonb)", json.dumps(tree))
        for _ in range(INSTANCES):
            name = self.random.choice(list(self.world))
            context = self.random.choice([{}, {"a": 1, "b": {"c": None}}, {"x": self.random.randint(0, 9)}, [1, 2], "text", 7])
            [row] = main.rows("select wiggle.start($1, $2::jsonb) as id", name, json.dumps(context))
            self.roots[row["id"]] = (name, context)

    # ---- while it runs

    def guarded(self, body, *arguments):
        def loop():
            try:
                body(*arguments)
            except Stopped:
                pass
            except Exception as error:              # pylint: disable=broad-except
                self.trouble.append("%s: %r" % (body.__name__, error))
                self.stop.set()
        return threading.Thread(target=loop, daemon=True)

    def insist(self, connection, action):
        """Repeat until an answer arrives; `action(again)` learns that one was lost."""
        again = False
        while True:
            try:
                return action(again)
            except pq.Lost:
                self.lost += 1
                again = True
                if self.stop.wait(0.01):
                    raise Stopped from None
            except pq.Refused as refused:
                # The whole statement was undone: as it was, once more.
                if refused.sqlstate not in ("40P01", "40001"):
                    raise

    def work(self, number):
        dice = random.Random(self.seed * 100 + number)
        connection = self.connection("property_worker")
        polls = 0
        while not self.stop.is_set():
            polls += 1
            owner = "w%d#%s" % (number, ("%d%04d" % (number, polls)).rjust(13, "0"))
            try:
                tasks = connection.rows(POLL, owner, dice.randint(1, 4), LEASE_MILLIS)
            except pq.Lost:
                # Whatever was claimed in vain is given back, its attempt unspent.
                self.insist(connection, lambda again: connection.rows("select wiggle.release_owners($1::text[])", array([owner])))
                continue
            if not tasks:
                self.stop.wait(0.005)
            elif dice.random() < 0.5:
                self.report(connection, tasks)
            else:
                for task in tasks:
                    self.report(connection, [task])
        connection.close()

    def outcome(self, task):
        tree, behaviours = self.world[task["workflow"]]
        activity = task["step_name"]
        context = json.loads(task["context"])
        if activity.endswith("#compensate"):
            step = activity[len(task["workflow"]) + 1:-len("#compensate")]
            if behaviours[step]["undo_fails"]:
                return model.Outcome(False, None, "cannot undo", False, [])
            return model.Outcome(True, {"ignored": True}, None, None, [])
        return model.perform(behaviours[activity], activity, context, int(task["attempt"]))

    def report(self, connection, tasks):
        runs, fails, events = [], [], []
        for task in tasks:
            outcome = self.outcome(task)
            if not outcome.ok:
                fails.append((task["task_id"], task["lease_owner"], outcome.message, outcome.retryable))
                continue
            kind = RUN_PREDICATE if task["kind"] == "PREDICATE" else RUN_NOTHING if outcome.value is None else RUN_MERGE
            value = None if outcome.value is None else json.dumps(outcome.value)
            events += [(len(runs), t, json.dumps(p)) for t, p in outcome.events]
            runs.append((task["task_id"], task["lease_owner"], task["node_id"], kind, value))

        def ask(again):
            mode = ASKED_AGAIN if again else 0
            n = len(runs)
            column = lambda rows, c: array([row[c] for row in rows])
            answers = connection.rows(
                REPORT, column(runs, 0), column(runs, 1), array([FINAL | mode] * n), array(range(n)), column(runs, 2),
                column(runs, 3), column(runs, 4), array([0] * n), column(fails, 0), column(fails, 1), column(fails, 2),
                array(["t" if f[3] else "f" for f in fails]), array([mode] * len(fails)),
                column(events, 0), column(events, 1), column(events, 2))
            return answers, again

        answers, again = self.insist(connection, ask)
        for answer in answers:
            # An instance that has ended meanwhile cancels what was leased.
            if answer["code"] != "0" and not (answer["message"].endswith("is CANCELLED, not RUNNING") or again):
                told = (runs if answer["op"] == "r" else fails)[int(answer["item"])]
                self.trouble.append("%s %s (%s)" % (answer["code"], answer["message"], told[0]))

    def send_signals(self):
        connection = self.connection("property_signals")
        while not self.stop.wait(0.01):
            try:
                for row in connection.rows("select instance_id, signal from wiggle.pending_signals() where signal like 'come%'"):
                    try:
                        connection.rows("select wiggle.signal($1, $2, $3::jsonb)", row["instance_id"], row["signal"],
                                        json.dumps(model.payload_of(row["signal"])))
                    except pq.Refused as refused:
                        if refused.sqlstate != "WG409":
                            raise
            except pq.Lost:
                self.lost += 1
        connection.close()

    def kill(self):
        dice = random.Random(self.seed + 1)
        connection = self.connection("property_killer")
        while sum(self.kills.values()) < KILLS and not self.stop.wait(dice.uniform(0.005, 0.06)):
            victim = ("backend_type = 'wiggle clock worker'" if sum(self.kills.values()) == self.clock_kill_at else
                      "application_name like 'property_%' and pid <> pg_backend_pid()")
            rows = connection.rows("select backend_type, pg_terminate_backend(pid) from pg_stat_activity where "
                                   + victim + " order by random() limit 1")
            self.kills.update(row["backend_type"] for row in rows)
        connection.close()

    def landed(self, main):
        [row] = main.rows("""select (select count(*) from wiggle.wf_instance where status in ('RUNNING', 'COMPENSATING')) as live,
                                    (select count(*) from wiggle.wf_timer) as timers""")
        return self.trouble or (row["live"] == "0" and row["timers"] == "0")

    # ---- afterwards

    def check(self, main):
        wrong = ["unsound: " + row["unsound"] for row in main.rows("select * from wt.unsound()")]
        events = collections.defaultdict(collections.Counter)
        for row in main.rows("select instance_id, type, payload::text from wiggle.wf_event where type like 'e.%'"):
            payload = json.dumps(json.loads(row["payload"]), sort_keys=True)
            events[row["instance_id"]][(row["type"], payload)] += 1
        for instance, (name, context) in self.roots.items():
            [row] = main.rows("select status, termination_reason, error, context::text from wiggle.instance($1)", instance)
            expected = model.Interpreter(self.world, name).run(context)
            why = expected.mismatch(row["status"], row["termination_reason"], row["error"], json.loads(row["context"]), events[instance])
            if why is not None:
                wrong.append("%s of %s from %s: %s\n%s" % (instance, name, json.dumps(context), why, json.dumps(self.world[name][0])))
        return wrong

    def run(self):
        main = self.connection("main")
        self.prepare(main)
        threads = [self.guarded(self.work, n) for n in range(WORKERS)] + [self.guarded(self.send_signals), self.guarded(self.kill)]
        for thread in threads:
            thread.start()
        try:
            wait_for(lambda: self.landed(main), LAND_SECONDS, "the end of every instance")
        except TimeoutError as error:
            self.trouble.append(str(error))
            self.trouble += ["%(workflow)s %(id)s: %(tokens)s" % row for row in main.rows(
                """select i.workflow, i.id, (select string_agg(t.node_id || ' ' || t.kind || ' ' || t.status, ', ') from wiggle.tokens(i.id) t
                     where t.status not in ('DONE', 'CANCELLED')) as tokens
                     from wiggle.wf_instance i where i.status in ('RUNNING', 'COMPENSATING')""")]
        finally:
            self.stop.set()
            for thread in threads:
                thread.join()
        wrong = self.trouble or self.check(main)
        summary = main.rows("select status, count(*) from wiggle.wf_instance where workflow like $1 group by 1 order by 1", "p%d\\_%%" % self.seed)
        main.close()
        return wrong, " ".join("%s %s," % (row["count"], row["status"].lower()) for row in summary)


def helpers():
    """The invariants of the SQL tests: everything before that file's own checks."""
    with open(os.path.join(TREE, "sql", "00_helpers.sql"), encoding="utf-8") as file:
        return file.read().split("-- They can tell")[0]


def main(area):
    cluster = Cluster(os.path.join(area, "cluster"), "fsync = off", "max_connections = 40", "log_min_messages = warning",
                      "wiggle.retention = -1", "wiggle.event_retention = -1")
    cluster.start()
    passed = failed = 0
    try:
        cluster.psql("create database wiggle", "postgres")
        cluster.psql("create extension wiggle")
        cluster.psql(helpers())
        given = os.environ.get("PROPERTY_SEED")
        rounds = 1 if given else int(os.environ.get("PROPERTY_ROUNDS") or "25")
        until = time.monotonic() + float(os.environ.get("PROPERTY_SECONDS") or "40")
        for number in range(rounds):
            seed = int(given) if given else int.from_bytes(os.urandom(4), "big") >> 1
            began = time.monotonic()
            this = Round(cluster, seed, number < CLOCK_KILL_ROUNDS)
            wrong, summary = this.run()
            print("seed %d ... %s (%s %d killed, %d answers lost, %.1f s)" % (
                seed, "FAILED" if wrong else "ok", summary, sum(this.kills.values()), this.lost, time.monotonic() - began), flush=True)
            for line in wrong[:20]:
                print("  " + line)
            passed, failed = passed + (not wrong), failed + bool(wrong)
            if wrong:
                print("  again: PROPERTY_SEED=%d make check-property" % seed)
                break
            if time.monotonic() > until:
                break
    finally:
        cluster.stop()
    print("property: %d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
