"""Random workflows, run by random workers while sessions are killed, against a
reference interpreter.

    run.py AREA

PROPERTY_SEED=N runs the one round of that seed: the same workflows, starts and
step outcomes. (When backends die is a matter of time, and not reproduced.)
Otherwise seeds are drawn for 40 s; PROPERTY_ROUNDS=N asks for so many rounds
instead, PROPERTY_SECONDS=N for another time.
"""
import collections
import itertools
import json
import os
import random
import signal
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "scripts"))

import pq                                                   # noqa: E402
from graphs import Compiler                                 # noqa: E402
from hands import LEASE_MILLIS, Stopped, Worker, insist     # noqa: E402
from harness import TREE, Cluster, interruptible, wait_for  # noqa: E402
from reference import Interpreter                           # noqa: E402
from steps import payload_of                                # noqa: E402
from trees import DEFAULT_BUDGET, Maker                     # noqa: E402

WORKFLOWS = 10
STARTS = 50
WORKERS = 4
CANCELS = 6
LAND_SECONDS = 60
KILLS = 40                      # in a round; afterwards what is left lands in peace
CADENCE_MILLIS = 25

# What an instance came to, whether or not it is purged afterwards.
CAPTURE = """
create table wt.ended (id text primary key, workflow text, version int, status text, reason text, error text, context text,
	parent text, correlation text);
create function wt.note_end() returns trigger language plpgsql as $$
begin
	if new.status not in ('RUNNING', 'COMPENSATING') then
		insert into wt.ended values (new.id, new.workflow, new.version, new.status, new.termination_reason, new.error,
			(select s.context::text from wiggle.wf_scope s where s.instance = new.no and s.scope = 0), new.parent_token_id, new.correlation_id);
	end if;
	return null;
end $$;
create trigger note_end after update on wiggle.wf_instance for each row when (new.updated_at >= old.updated_at) execute function wt.note_end();
"""

# Each of these must happen in a run of any length: else the test looks at less than it says.
UNCOMMON = ("asked again", "cancelled", "chained", "child cancelled", "compensated", "compensation_failed", "completed", "failed", "grouped",
            "leased back", "merged", "neglected", "refused", "refused late", "released", "scheduled", "signal in time", "signal too late",
            "told by hand", "told singly", "trimmed")
ANY_LENGTH = 20                 # rounds

End = collections.namedtuple("End", "id workflow version status reason error context parent correlation")


class Round:
    """One seed's world: its workflows and versions, and the plan of what is registered
    and started, all drawn before anything runs."""

    def __init__(self, cluster, seed):
        self.cluster = cluster
        self.seed = seed
        self.random = random.Random(seed)
        self.world = {}                 # workflow -> version -> (tree, behaviours)
        self.plan = []
        self.trims = seed % 3 == 0      # retention and trimming run meanwhile
        self.crashes = self.random.random() < 0.12      # and once the whole server crashes
        self.present = []               # (workflow, version), as registered so far
        self.roots = {}                 # instance -> (workflow, context), as planned
        self.scheduled = None           # (schedule, workflow, context, most instances)
        self.cancelled = collections.defaultdict(list)  # instance -> reasons
        self.accepted = collections.defaultdict(set)    # instance -> racing signals in time
        self.unknown = collections.defaultdict(set)     # instance -> whose answer was lost
        self.done = {}                  # (instance, step) -> [input, result] of what was reported
        self.events = {}                # seq -> entry, as a consumer acknowledged it
        self.read = {}                  # the same, as it was first read
        self.planned = threading.Event()
        self.stop = threading.Event()
        self.trouble = []
        self.kills = collections.Counter()
        self.tally = collections.Counter()              # how often things happened, see UNCOMMON

    def connection(self, application, options=""):
        return pq.Connection("%s application_name=%s options='%s'" % (self.cluster.conninfo(), application, options))

    def behaviours(self, workflow, version):
        return self.world[workflow][version][1]

    def registered(self):
        return list(self.present)

    # ---- before

    def draw(self):
        children = []
        for n in range(WORKFLOWS):
            name = "p%d_%d" % (self.seed, n)
            # What others start has the same tree in each version, so that any may be met.
            child = self.random.random() < 0.6
            self.world[name] = {}
            definition = self.draw_version(name, 1, children[-4:], None, not child)
            self.plan.append(("register", name, 1, definition))
            if child:
                children.append(name)
        for name in self.random.sample(list(self.world), 4):
            tree = self.world[name][1] if name in children else None
            definition = self.draw_version(name, 2, children[-4:], tree, name not in children)
            self.plan.insert(self.random.randrange(len(self.plan), len(self.plan) + 1), ("register", name, 2, definition))
        later = self.plan[WORKFLOWS:]
        del self.plan[WORKFLOWS:]
        starts = [self.draw_start() for _ in range(STARTS)]
        for action in later + [("schedule", *self.draw_start()[1:4])]:
            starts.insert(self.random.randrange(len(starts) // 2), action)
        self.plan += starts

    def draw_version(self, name, version, children, tree, racy):
        as_graph = self.random.random() < 0.65
        if tree is None:
            maker = Maker(self.random, name, children, as_graph, racy)
            tree = (maker.make(version), maker.steps)
        else:
            as_graph = True             # it may hold what only graphs can say
            tree = ({**tree[0], "version": version}, tree[1])
        self.world[name][version] = tree
        if not as_graph:
            return tree[0]
        mode = self.random.choice(["DEFAULT", "SERVER", "LOCAL_SYNC", "LOCAL_ASYNC", "LOCAL_ASYNC"])
        return Compiler(tree[0], self.random, mode).compile()

    def draw_start(self):
        context = self.random.choice([{}, {"a": 1, "b": {"c": None}, "d": None}, {"x": self.random.randint(0, 9)}, [1, 2], "text", 7])
        return ("start", self.random.choice(list(self.world)), context, self.random.random() < 0.2, self.random.random() * 0.02)

    # ---- while it runs

    def guarded(self, body, *arguments):
        def loop():
            try:
                body(*arguments)
            except Stopped:
                pass
            except Exception as error:              # pylint: disable=broad-except
                self.trouble.append("%s: %r" % (getattr(body, "__qualname__", body), error))
                self.stop.set()
        return threading.Thread(target=loop, daemon=True)

    def insist(self, connection, sql, *parameters, until=None):
        return insist(until or self.stop, lambda again: connection.rows(sql, *parameters))

    def follow_plan(self):
        connection = self.connection("property_starter")
        schedule = None
        for action, name, *rest in self.plan:
            if action == "register":
                self.present.append((name, rest[0]))
                self.insist(connection, "select wiggle.register($1::jsonb)", json.dumps(rest[1]))
            elif action == "schedule":
                schedule = self.begin_schedule(connection, name, rest[0])
            else:
                self.start(connection, name, *rest)
        if schedule is not None:
            self.end_schedule(connection, *schedule)
        connection.close()
        self.planned.set()

    def start(self, connection, name, context, first_version, pause):
        """A start that is repeated under the same id is one start."""
        [row] = self.insist(connection, "select wiggle.mint() as id")
        self.roots[row["id"]] = (name, context)
        self.insist(connection, "select wiggle.start($1, $2::jsonb, $3, null, $4)", name, json.dumps(context),
                    1 if first_version else None, row["id"])
        self.stop.wait(pause)

    def begin_schedule(self, connection, name, context):
        [row] = self.insist(connection, "select id, clock_timestamp() as at from wiggle.schedule($1, $2::interval, null, $3::jsonb)",
                            name, "%d ms" % CADENCE_MILLIS, json.dumps(context))
        return row["id"], name, context, row["at"]

    def end_schedule(self, connection, schedule, name, context, began):
        self.insist(connection, "select wiggle.unschedule($1)", schedule)
        [row] = self.insist(connection, "select floor(extract(epoch from clock_timestamp() - $1) * 1000 / $2) + 1 as most", began, CADENCE_MILLIS)
        self.scheduled = (schedule, name, context, int(row["most"]))

    def send_signals(self):
        connection = self.connection("property_signals")
        while not self.stop.wait(0.01):
            for row in self.insist(connection, "select instance_id, signal from wiggle.pending_signals() where signal like 'come%'"):
                try:
                    self.insist(connection, "select wiggle.signal($1, $2, $3::jsonb)", row["instance_id"], row["signal"],
                                json.dumps(payload_of(row["signal"])))
                except pq.Refused as refused:
                    if refused.sqlstate not in ("WG409", "WG404"):
                        raise
        connection.close()

    def race_signals(self):
        """In time or not: the answer says, and is lost in a crash only."""
        dice = random.Random(self.seed + 2)
        connection = self.connection("steady_signals")
        while not self.stop.wait(0.005):
            for row in self.insist(connection, "select instance_id, signal from wiggle.pending_signals() where signal like 'race%'"):
                if dice.random() < 0.7:
                    continue
                self.stop.wait(dice.choice([0, 0.01, 0.03]))
                try:
                    connection.rows("select wiggle.signal($1, $2, $3::jsonb)", row["instance_id"], row["signal"],
                                    json.dumps(payload_of(row["signal"])))
                    self.accepted[row["instance_id"]].add(row["signal"])
                    self.tally["signal in time"] += 1
                except pq.Lost:
                    self.unknown[row["instance_id"]].add(row["signal"])
                except pq.Refused as refused:
                    if refused.sqlstate not in ("WG409", "WG404"):
                        raise
                    self.tally["signal too late"] += 1
        connection.close()

    def cancel_some(self):
        dice = random.Random(self.seed + 3)
        connection = self.connection("property_canceller")
        for n in range(CANCELS):
            self.stop.wait(dice.uniform(0.01, 0.25))
            rows = self.insist(connection, "select id from wiggle.wf_instance where status = 'RUNNING' and (parent_token_id is not null) = $1"
                               " order by random() limit 1", dice.random() < 0.3)
            for row in rows:
                self.cancelled[row["id"]].append("enough %d" % n)
                try:
                    self.insist(connection, "select wiggle.cancel($1, $2)", row["id"], "enough %d" % n)
                except pq.Refused as refused:
                    if refused.sqlstate != "WG404":
                        raise
        connection.close()

    def consume(self):
        """Follow the log; what was read once stays as it was, whatever dies."""
        dice = random.Random(self.seed + 4)
        connection = self.connection("property_consumer")
        never = threading.Event()       # also what is read at the end is insisted on
        until = None
        while not (self.stop.wait(0.01) and self.trouble):
            most = dice.randint(1, 40)
            rows = self.insist(connection, "select seq, instance_id, type, payload::text from wiggle.events('property', $1, -1)", most, until=never)
            if not rows and self.stop.is_set():
                until = until or time.monotonic() + 20
                [row] = self.insist(connection, "select wiggle.event_horizon() > coalesce(max(seq), 0) as read from wiggle.wf_event", until=never)
                if row["read"] == "t":
                    break
                if time.monotonic() > until:
                    self.trouble.append("an entry of the log never becomes final")
            if not rows:
                continue
            for row in rows:
                if self.read.setdefault(int(row["seq"]), row) != row:
                    self.trouble.append("entry %s of the log was another before" % row["seq"])
            if dice.random() < 0.3:
                continue                # they come again
            self.insist(connection, "select wiggle.ack('property', $1)", rows[-1]["seq"], until=never)
            for row in rows:
                if int(row["seq"]) <= max(self.events, default=0):
                    self.trouble.append("entry %s of the log came after %d" % (row["seq"], max(self.events)))
                self.events[int(row["seq"])] = row
        if not self.trouble and set(self.read) != set(self.events):
            self.trouble.append("entries of the log that were read and are gone: %s" % sorted(set(self.read) - set(self.events)))
        connection.close()

    def watch(self):
        """Whatever moment is looked at, the tables are sound."""
        connection = self.connection("steady_watch", "-c default_transaction_isolation=serializable -c default_transaction_read_only=on")
        while not self.stop.wait(0.1):
            self.trouble += ["unsound meanwhile: " + why for why in self.unsound(connection)]
        connection.close()

    def unsound(self, connection):
        """In one snapshot; where the log is trimmed it cannot be complete."""
        rows = self.insist(connection, "select * from wt.unsound()")
        return [row["unsound"] for row in rows if not (self.trims and row["unsound"].startswith("the log of events"))]

    def kill(self):
        dice = random.Random(self.seed + 1)
        connection = self.connection("steady_killer")
        clock_at, crash_at = dice.randrange(KILLS // 3), dice.randrange(KILLS // 3)
        while sum(self.kills.values()) < KILLS and not self.stop.wait(dice.uniform(0.005, 0.06)):
            victim = "application_name like 'property_%' and pid <> pg_backend_pid()"
            if sum(self.kills.values()) == clock_at:
                victim = "backend_type = 'wiggle clock worker'"
            if self.crashes and sum(self.kills.values()) == crash_at:
                for row in self.insist(connection, "select pid from pg_stat_activity where " + victim + " limit 1"):
                    os.kill(int(row["pid"]), signal.SIGKILL)
                    self.kills["crash"] += 1
                continue
            rows = self.insist(connection, "select backend_type, pg_terminate_backend(pid) from pg_stat_activity where "
                               + victim + " order by random() limit 1")
            self.kills.update(row["backend_type"] for row in rows)
        connection.close()

    def landed(self, main):
        if self.trouble:
            return True
        if self.trims:
            self.age(main)
        [row] = self.insist(main, """select (select count(*) from wiggle.wf_instance where status in ('RUNNING', 'COMPENSATING')) as live,
                                            (select count(*) from wiggle.wf_timer) as timers""")
        return self.planned.is_set() and row["live"] == "0" and row["timers"] == "0"

    def age(self, main):
        """What has ended is soon old enough to go: a minute is the shortest that settings take."""
        for table, column, ended in (("wf_instance", "updated_at", "status not in ('RUNNING', 'COMPENSATING')"),
                                     ("wf_event", "created_at", "true")):
            self.insist(main, "update wiggle.%s set %s = %s - interval '2 min' where %s"
                        " and %s > clock_timestamp() - interval '1 min'" % (table, column, column, ended, column))
        self.insist(main, "select pg_reload_conf()")

    def set_retention(self, main):
        self.tally["trimmed"] += self.trims
        for setting in ("wiggle.retention", "wiggle.event_retention"):
            self.insist(main, "alter system set %s = %d" % (setting, 1 if self.trims else -1))
        self.insist(main, "select pg_reload_conf()")

    def run(self):
        main = self.connection("main")
        self.draw()
        # from here on nothing that the consumer has not acknowledged is trimmed
        self.insist(main, "select from wiggle.events('property', 1, -1)")
        self.set_retention(main)
        workers = [Worker(self, n) for n in range(WORKERS)]
        threads = [self.guarded(body) for body in [w.run for w in workers] + [
            self.follow_plan, self.send_signals, self.race_signals, self.cancel_some, self.consume, self.watch, self.kill]]
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
        wrong = self.trouble or Check(self, main).wrong()
        summary = main.rows("select status, count(*) from wt.ended where workflow like $1 group by 1 order by 1", "p%d\\_%%" % self.seed)
        main.close()
        return wrong, " ".join("%s %s," % (row["count"], row["status"].lower()) for row in summary)


class Check:
    """Afterwards: what every instance came to, and what the log says of it."""

    def __init__(self, round_, main):
        self.round = round_
        self.main = main
        self.ends = {}
        for row in main.rows("select * from wt.ended where workflow like $1", "p%d\\_%%" % round_.seed):
            self.ends[row["id"]] = End(row["id"], row["workflow"], int(row["version"]), row["status"], row["reason"], row["error"],
                                       json.loads(row["context"]), row["parent"], row["correlation"])
        self.log = collections.defaultdict(list)
        for _, row in sorted(round_.events.items()):
            self.log[row["instance_id"]].append((row["type"], row["payload"]))

    def wrong(self):
        return self.starts() + [why for end in self.ends.values() for why in self.instance(end)] + self.tables()

    def starts(self):
        """Each that was planned, those of the schedule, children, and no other."""
        wrong = ["%s never ended" % instance for instance in self.round.roots if instance not in self.ends]
        schedule, name, context, most = self.round.scheduled
        fired = [end for end in self.ends.values() if end.correlation == "schedule:" + schedule]
        self.round.tally["scheduled"] += len(fired)
        if len(fired) > most:
            wrong.append("a schedule fired %d times where %d were due" % (len(fired), most))
        for end in fired:
            self.round.roots[end.id] = (name, context)
        for end in self.ends.values():
            if (end.parent is None) != (end.id in self.round.roots):
                wrong.append("nobody started %s" % end.id)
            elif end.id in self.round.roots and end.workflow != self.round.roots[end.id][0]:
                wrong.append("%s runs %s" % (end.id, end.workflow))
        return wrong

    def instance(self, end):
        told = "%s of %s:%d: " % (end.id, end.workflow, end.version)
        wrong = self.lifecycle(end) + self.undoing(end)
        self.round.tally[end.status.lower()] += 1
        if end.status == "CANCELLED":
            reasons = self.round.cancelled.get(end.id, [])
            if end.reason not in reasons + (["parent instance cancelled", "parent instance failed"] if end.parent else []):
                wrong.append("cancelled for reason %s" % end.reason)
            self.round.tally["child cancelled"] += end.parent is not None and bool(reasons)
        if end.parent is None:
            wrong += self.expected(end)
        return [told + why for why in wrong]

    def lifecycle(self, end):
        """One entry a transition, and what steps emitted between them."""
        kinds = {"COMPENSATED": ["wf.compensating", "wf.compensated"],
                 "COMPENSATION_FAILED": ["wf.compensating", "wf.compensation_failed"]}.get(end.status, ["wf." + end.status.lower()])
        types = [t if t.startswith("wf.") else t[:2] for t, _ in self.log[end.id]]
        phases = [kind for kind, _ in itertools.groupby(types)]
        allowed = [["wf.started"], ["e."], [kinds[0]], ["u."], kinds[1:]]
        bare = [kind for phase in allowed for kind in phase if kind.startswith("wf.") or kind in phases]
        if phases != bare or any(types.count(kind) != 1 for kind in ["wf.started"] + kinds):
            return ["its log is %s, it ended %s" % (types, end.status)]
        return []

    def undoing(self, end):
        """Newest first, one by one, to the end or to the one that failed."""
        behaviours = self.round.behaviours(end.workflow, end.version)
        steps = [t[2:] for t, _ in self.log[end.id] if t.startswith("e.") and "undo" in behaviours[t[2:]]]
        undone = [t[2:] for t, _ in self.log[end.id] if t.startswith("u.")]
        if end.status == "COMPENSATED" and undone != steps[::-1] or undone != steps[::-1][:len(undone)]:
            return ["did %s, undid %s" % (steps, undone)]
        if end.status == "COMPENSATION_FAILED":
            seq = len(steps) - len(undone)
            if seq < 1 or "; compensator '%s' (undo seq %d) failed" % (steps[seq - 1], seq) not in end.error:
                return ["did %s, undid %s: %s" % (steps, undone, end.error)]
        if end.status in ("FAILED", "COMPENSATED", "COMPENSATION_FAILED") and (end.status == "FAILED") != (not steps):
            return ["did %s and ended %s" % (steps, end.status)]
        return []

    def disturbed(self, instance):
        """A descendant was cancelled by hand, so that this one may have failed of it."""
        return any(end.parent and end.parent.startswith("tok" + instance[3:] + "-") and
                   (end.status == "CANCELLED" and end.id in self.round.cancelled or self.disturbed(end.id)) for end in self.ends.values())

    def expected(self, end):
        name, context = self.round.roots[end.id]
        events = collections.Counter((t, json.dumps(json.loads(p), sort_keys=True)) for t, p in self.log[end.id] if t.startswith("e."))
        unknown = sorted(self.round.unknown[end.id])
        reasons = []
        for known in itertools.product((True, False), repeat=len(unknown)):
            accepted = self.round.accepted[end.id] | {s for s, in_time in zip(unknown, known) if in_time}
            expected = Interpreter(self.round.world, self.round.world[name][end.version], accepted).run(context)
            if end.status == "CANCELLED":
                why = expected.excess(events)
            else:
                why = expected.mismatch(end, events)
                if why is not None and end.error and " CANCELLED" in end.error and self.disturbed(end.id):
                    why = expected.excess(events)
            if why is None:
                return []
            reasons.append(why)
        return ["from %s: %s\n%s" % (json.dumps(context), why, json.dumps(self.round.world[name][end.version][0])) for why in reasons[:1]]

    def tables(self):
        wrong = ["unsound: " + why for why in self.round.unsound(self.main)]
        if not self.round.trims:
            for row in self.main.rows("""select e.id from wt.ended e left join wiggle.wf_instance i using (id), lateral wiggle.instance_row(i) r
                                          where e.workflow like $1 and (e.status, e.reason, e.error, e.context::jsonb)
                                                is distinct from (r.status, r.termination_reason, r.error, r.context)""", "p%d\\_%%" % self.round.seed):
                wrong.append("%s is not what it was when it ended" % row["id"])
            return wrong
        left = {}

        def gone():
            # Everything has ended and everything was read.
            self.round.age(self.main)
            [row] = self.main.rows("select " + ", ".join("(select count(*) from wiggle.%s) as %s" % (table, table) for table in (
                "wf_instance", "wf_token", "wf_scope", "wf_comp_log", "wf_ready", "wf_lease", "wf_timer", "wf_event")))
            left.update(row)
            return all(count == "0" for count in row.values())
        try:
            wait_for(gone, 60, "an empty database")
        except TimeoutError as error:
            wrong.append("%s: %s" % (error, left))
        return wrong


def helpers():
    """The invariants of the SQL tests: everything before that file's own checks."""
    with open(os.path.join(TREE, "sql", "00_helpers.sql"), encoding="utf-8") as file:
        return file.read().split("-- They can tell")[0]


def main(area):
    interruptible()
    cluster = Cluster(os.path.join(area, "cluster"), "fsync = off", "max_connections = 40", "log_min_messages = warning",
                      "wiggle.loop_max_iterations = %d" % DEFAULT_BUDGET, "wiggle.default_lease = %d" % LEASE_MILLIS,
                      "wiggle.retry_park = 20")
    cluster.start()
    passed = failed = 0
    tally = collections.Counter()
    try:
        cluster.psql("create database wiggle", "postgres")
        cluster.psql("create extension wiggle")
        cluster.psql(helpers() + CAPTURE)
        given = os.environ.get("PROPERTY_SEED")
        rounds = 1 if given else int(os.environ.get("PROPERTY_ROUNDS") or 0)
        until = time.monotonic() + float(os.environ.get("PROPERTY_SECONDS") or ("inf" if rounds else 40))
        while not failed and (not rounds or passed < rounds) and (not passed or time.monotonic() < until):
            seed = int(given) if given else int.from_bytes(os.urandom(3), "big") * 3 + passed % 3
            began = time.monotonic()
            this = Round(cluster, seed)
            wrong, summary = this.run()
            print("seed %d ... %s (%s %d killed,%s%s %.1f s)" % (
                seed, "FAILED" if wrong else "ok", summary, sum(this.kills.values()), " crashed," if this.kills["crash"] else "",
                " trimmed," if this.trims else "", time.monotonic() - began), flush=True)
            for line in wrong[:5]:
                print("  " + line[:3000])
            if wrong:
                print("  again: PROPERTY_SEED=%d make check-property" % seed)
            passed, failed = passed + (not wrong), failed + bool(wrong)
            tally += this.tally
    finally:
        cluster.stop()
    missing = [what for what in UNCOMMON if not tally[what]]
    if passed >= ANY_LENGTH and not failed and missing:
        print("FAILED: never happened: %s" % ", ".join(missing))
        failed += 1
    print("  " + ", ".join("%s %d" % (what, tally[what]) for what in sorted(tally)))
    print("property: %d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
