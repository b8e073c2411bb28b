"""The scenario set with the `wiggle` command alone: register, start, work and the rest."""
import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.dirname(HERE))
from program import Skip, equal, main, scenario, wait_for  # noqa: E402

ADDRESS = os.environ["WIGGLE_ADDRESS"]
# A step is one expression of Python over the context c, printed as the next one.
STEP = "import json, sys; c = json.load(sys.stdin); print(json.dumps(%s))"
GATE = "import json, sys; c = json.load(sys.stdin); sys.exit(not (%s))"


def run(*arguments, status=0, address=ADDRESS):
    done = subprocess.run(["wiggle", *arguments, "--server", address], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=120, check=False)
    assert done.returncode == status, "wiggle %s: expected status %d, got %d: %s" % (
        " ".join(arguments), status, done.returncode, done.stderr)
    return done.stdout


def read(*arguments, **more):
    return json.loads(run(*arguments, "--json", **more))


def register(name, *steps, version=1, address=ADDRESS):
    with open(name + ".json", "w", encoding="utf-8") as f:
        json.dump({"workflow": name, "version": version, "steps": steps}, f)
    run("register", name + ".json", address=address)


def start(name, context=None, *more, address=ADDRESS):
    return run("start", name, "--context", json.dumps(context or {}), *more, address=address).strip()


def ended(instance, status, context=None, **more):
    view = read("get", instance, "--wait", "--timeout", "60s", status=0 if status == "COMPLETED" else 4)
    view = view.get("instance", view)
    equal(view["status"], status, "the status (%s)" % view.get("error"))
    if context is not None:
        equal(view["context"], context, "the context")
    for member, expected in more.items():
        equal(view.get(member), expected, member)
    return view


def python(code, expression):
    return "%s -c %s" % (shlex.quote(sys.executable), shlex.quote(code % expression))


@contextlib.contextmanager
def work(*queues, address=ADDRESS, options=(), **steps):
    """`wiggle work` with these steps: an expression, one that begins with "?" for a gate, or "!" and a command."""
    argv = ["wiggle", "work", "--server", address, "--concurrency", "8", *options]
    for queue in queues:
        argv += ["--queue", queue]
    for name, code in steps.items():
        command = code[1:] if code[0] == "!" else python(GATE, code[1:]) if code[0] == "?" else python(STEP, code)
        argv += ["--step", "%s=%s" % (name.replace("__", "#"), command)]
    worker = subprocess.Popen(argv, stdout=sys.stderr, stdin=subprocess.DEVNULL)
    try:
        yield worker
    finally:
        # A scenario may have killed it.
        if worker.poll() != -signal.SIGKILL:
            worker.terminate()
            equal(worker.wait(60), 0, "wiggle work's exit status")


def signalled(instance, name, payload):
    """Refused until the instance waits for it."""
    def accepted():
        done = subprocess.run(["wiggle", "signal", instance, name, "--payload", json.dumps(payload), "--server", ADDRESS],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
        assert done.returncode in (0, 1), done.stderr
        return done.returncode == 0
    wait_for(accepted, "the signal %s" % name)


@scenario("linear")
def linear():
    register("sh-linear", {"task": "a"}, {"effect": "see"}, {"task": "b"})
    with work("sh-linear", a="{**c, 'n': c['n'] + 1}", see="!true", b="{**c, 'n': c['n'] * 10}"):
        ended(start("sh-linear", {"n": 1, "text": "ünïcode", "list": [1, 2.5, None, {"x": True}]}), "COMPLETED",
              {"n": 20, "text": "ünïcode", "list": [1, 2.5, None, {"x": True}]})


@scenario("gate")
def gate():
    register("sh-gate", {"gate": "open"}, {"task": "after"})
    with work("sh-gate", open="?c['open']", after="{**c, 'after': True}"):
        ended(start("sh-gate", {"open": False}), "COMPLETED", {"open": False}, termination_reason="gated:open")
        ended(start("sh-gate", {"open": True}), "COMPLETED", {"open": True, "after": True})


@scenario("retry")
def retry():
    register("sh-retry", {"task": "flaky", "retry": {"max": 5, "backoff": "20ms"}})
    with work("sh-retry", flaky="""![ "$WIGGLE_ATTEMPT" -ge 3 ] || exit 1; echo '{"calls":'$WIGGLE_ATTEMPT'}'"""):
        ended(start("sh-retry"), "COMPLETED", {"calls": 3})


@scenario("permanent failure")
def permanent():
    register("sh-permanent", {"task": "refuse"})
    with work("sh-permanent", refuse="!echo called >> refused; echo card declined >&2; exit 100"):
        ended(start("sh-permanent", {"n": 1}), "FAILED", {"n": 1}, error="refuse: card declined")
    with open("refused", encoding="ascii") as f:
        equal(f.read(), "called\n", "calls of the step")


@scenario("sleep")
def sleep():
    register("sh-sleep", {"task": "a"}, {"sleep": "300ms"}, {"task": "b"})
    with work("sh-sleep", a="{'a': 1}", b="{**c, 'b': 2}"):
        ended(start("sh-sleep"), "COMPLETED", {"a": 1, "b": 2})


@scenario("fork")
def fork():
    register("sh-fork", {"fork": {"left": [{"task": "l"}], "right": [{"gate": "go"}, {"task": "r"}]}, "combine": "meet"})
    with work("sh-fork", l="{**c, 'l': 2}", go="?c['go']", r="{**c, 'r': 1}",
              meet="{'left': c['__arm__left'], 'right': c['__arm__right']}"):
        ended(start("sh-fork", {"go": True}), "COMPLETED", {"left": {"go": True, "l": 2}, "right": {"go": True, "r": 1}})
        ended(start("sh-fork", {"go": False}), "COMPLETED", {"left": {"go": False, "l": 2}, "right": {"go": False}})


@scenario("forEach")
def for_each():
    register("sh-each", {"fork_each": {"over": "items", "as": "item", "combine": "sum", "body": [{"task": "price"}]}})
    with work("sh-each", price="c * 10", sum="{'sum': sum(c['__forEach__item'])}"):
        ended(start("sh-each", {"items": [1, 2, 3]}), "COMPLETED", {"sum": 60})
        ended(start("sh-each", {"items": []}), "COMPLETED", {"items": []})


@scenario("choose")
def choose():
    register("sh-choose", {"choose": [{"when": "big", "then": [{"task": "b"}]}, {"when": "some", "then": [{"task": "s"}]},
                                      {"otherwise": {"then": [{"task": "o"}]}}]}, {"task": "end"})
    with work("sh-choose", big="?c['n'] > 100", some="?c['n'] > 0", b="{**c, 'took': 'big'}", s="{**c, 'took': 'some'}",
              o="{**c, 'took': 'none'}", end="{**c, 'end': True}"):
        for n, took in ((1000, "big"), (1, "some"), (0, "none")):
            ended(start("sh-choose", {"n": n}), "COMPLETED", {"n": n, "took": took, "end": True})


@scenario("loop")
def loop():
    register("sh-loop", {"do_while": {"while": "more", "body": [{"task": "inc"}]}})
    with work("sh-loop", inc="{'n': c['n'] + 1}", more="?c['n'] < 5"):
        ended(start("sh-loop", {"n": 0}), "COMPLETED", {"n": 5})


@scenario("signal")
def await_signal():
    register("sh-signal", {"await_signal": "paid"}, {"task": "end"})
    with work("sh-signal", end="{**c, 'seen': c['by']}"):
        instance = start("sh-signal", {"id": 1})
        signalled(instance, "paid", {"by": "card"})
        ended(instance, "COMPLETED", {"id": 1, "by": "card", "seen": "card"})


@scenario("escalation")
def escalation():
    register("sh-escalation", {"await_signal": "ack", "timeout": "200ms", "escalation": [{"task": "page"}]})
    register("sh-late", {"await_signal": "ack", "timeout": "200ms"})
    with work("sh-escalation", page="{'paged': True}"):
        ended(start("sh-escalation"), "COMPLETED", {"paged": True})
        ended(start("sh-late"), "FAILED")


@scenario("sub-workflow")
def sub_workflow():
    register("sh-child", {"gate": "fine"}, {"task": "work"})
    register("sh-parent", {"sub_workflow": "sh-child"}, {"task": "end"})
    with work("sh-child", "sh-parent", fine="!grep -q fail && exit 100; true", work="{**c, 'child': c['n'] * 2}",
              end="{**c, 'end': True}"):
        ended(start("sh-parent", {"n": 4}), "COMPLETED", {"n": 4, "child": 8, "end": True})
        ended(start("sh-parent", {"n": 4, "fail": True}), "FAILED", {"n": 4, "fail": True})


@scenario("saga")
def saga():
    register("sh-saga", {"task": "reserve", "compensable": True}, {"task": "debit", "compensable": True}, {"task": "credit"})
    with work("sh-saga", reserve="{'r': 1}", debit="{**c, 'd': 1}", credit="!exit 100",
              reserve__compensate="!cat >> undone; echo >> undone", debit__compensate="!cat >> undone; echo >> undone"):
        ended(start("sh-saga"), "COMPENSATED", {"r": 1, "d": 1})
    with open("undone", encoding="utf-8") as f:
        equal([json.loads(line) for line in f if line.strip()],
              [{"input": {"r": 1}, "result": {"r": 1, "d": 1}}, {"input": {}, "result": {"r": 1}}], "what was undone")


@scenario("schedule")
def schedule():
    register("sh-schedule", {"task": "a"})
    with work("sh-schedule", a="{**c, 'a': 1}"):
        run("schedule", "create", "sh-schedule", "--every", "1s", "--context", '{"by": "clock"}')
        mine = [s for s in read("schedule", "list") if s["workflow"] == "sh-schedule"]
        equal([s["every_millis"] for s in mine], [1000], "the schedules in the list")
        done = wait_for(lambda: read("list", "--workflow", "sh-schedule", "--status", "COMPLETED")[1:], "two instances")
        equal(ended(done[0]["id"], "COMPLETED")["context"], {"by": "clock", "a": 1}, "a scheduled instance's context")
        run("schedule", "delete", mine[0]["id"])
        equal([s for s in read("schedule", "list") if s["workflow"] == "sh-schedule"], [], "the schedules after deletion")


@scenario("events")
def events():
    def seen(*more):
        lines = run("events", "--consumer", "sh-events", "--json", *more).splitlines()
        return [e["type"] for e in map(json.loads, lines) if e["instance_id"] == instance]
    register("sh-events", {"task": "a"})
    instance = None
    seen()
    with work("sh-events", a="{'a': 1}"):
        instance = start("sh-events")
        ended(instance, "COMPLETED", {"a": 1})
    wait_for(lambda: seen() == ["wf.started", "wf.completed"], "both events")
    equal(seen("--ack"), ["wf.started", "wf.completed"], "the events before they are acknowledged")
    equal(seen(), [], "the events afterwards")
    run("events", "--consumer", "sh-events", "--forget")


@scenario("correlation")
def correlation():
    register("sh-correlation", {"await_signal": "go"})
    instance = start("sh-correlation", {}, "--correlation-id", "sh order 7")
    start("sh-correlation", {}, "--correlation-id", "sh order 8")
    equal([v["id"] for v in read("list", "--correlation-id", "sh order 7")], [instance], "what is found")


@scenario("cancel")
def cancel():
    register("sh-cancel", {"await_signal": "never"})
    instance = start("sh-cancel", {"n": 1})
    for reason in ("changed my mind", "again"):
        run("cancel", instance, "--reason", reason)
        ended(instance, "CANCELLED", {"n": 1}, termination_reason="changed my mind")
    run("cancel", "wfi.s0.nothing", status=1)


@scenario("versions")
def versions():
    register("sh-versions", {"await_signal": "go"}, {"task": "old"})
    first = start("sh-versions")
    register("sh-versions", {"await_signal": "go"}, {"task": "new"}, version=2)
    second, third = start("sh-versions"), start("sh-versions", {}, "--version", "1")
    with work("sh-versions", old="{'by': 'old'}", new="{'by': 'new'}"):
        for instance, version, by in ((first, 1, "old"), (second, 2, "new"), (third, 1, "old")):
            signalled(instance, "go", {})
            ended(instance, "COMPLETED", {"by": by}, version=version)


@scenario("worker killed")
def worker_killed():
    register("sh-killed", {"task": "a"})
    instance = start("sh-killed")
    with work("sh-killed", options=("--lease", "2s"), a="!echo $$ > holder; exec sleep 600") as worker:
        wait_for(lambda: os.path.exists("holder") and os.path.getsize("holder") > 1, "the step to be taken")
        worker.kill()
        worker.wait()
        with open("holder", encoding="ascii") as f, contextlib.suppress(ProcessLookupError):
            os.kill(int(f.read()), signal.SIGKILL)
    with work("sh-killed", a="""!echo '{"attempt":'$WIGGLE_ATTEMPT'}'"""):
        ended(instance, "COMPLETED", {"attempt": 2})


@scenario("drain")
def drain():
    count, address = 60, os.environ["WIGGLE_DRAIN_ADDRESS"]
    register("sh-drain", {"task": "a"}, {"task": "b"}, {"task": "c"}, address=address)
    step = "!echo x >> steps; sed 's/}$/,\"'$WIGGLE_STEP'\":1}/'"
    with work("sh-drain", address=address, a=step, b=step, c=step):
        instances = [start("sh-drain", {"n": n}, address=address) for n in range(count)]
        wait_for(lambda: os.path.exists("steps") and os.path.getsize("steps") >= 2 * count, "a third of the steps")
        os.kill(int(os.environ["WIGGLE_DRAIN_PID"]), signal.SIGTERM)
        for n, instance in enumerate(instances):
            ended(instance, "COMPLETED", {"n": n, "a": 1, "b": 1, "c": 1})
    return "%d instances, %d steps done twice" % (count, os.path.getsize("steps") // 2 - 3 * count)


@scenario("two languages")
def two_languages():
    raise Skip("in the columns of the other languages: `wiggle work` is their partner")


if __name__ == "__main__":
    main()
