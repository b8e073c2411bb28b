"""The scenario set with wiggle-client 0.1.1, by its public API (see checks.py).

Run with wiggle-client and what it needs on PYTHONPATH.
"""
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading

import grpc
from wiggle import Branch, Case, PermanentError, Retry, WiggleClient, Worker, Workflow

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.dirname(HERE))
import readme  # noqa: E402
from program import Skip, equal, main, scenario, wait_for  # noqa: E402

ADDRESS = os.environ["WIGGLE_ADDRESS"]
QUICKLY = Retry.fixed(5, 0.05)


def ended(client, instance, status, context=None, reason=None, error=None):
    view = client.await_completion(instance, timeout_s=60, poll_interval_s=0.02)
    equal(view.status, status, "the status (%s)" % view.error)
    equal(view.termination_reason, reason, "the reason")
    if context is not None:
        equal(view.context, context, "the context")
    if error is not None:
        assert error in (view.error or ""), "the error: expected %r, got %r" % (error, view.error)
    return view


@contextlib.contextmanager
def served(*blueprints, client=None, **more):
    """A client and a worker for these workflows."""
    with contextlib.ExitStack() as stack:
        client = client or stack.enter_context(WiggleClient(ADDRESS))
        worker = Worker(client, "py-worker", concurrency=8, long_poll_wait_s=1, **more)
        for blueprint in blueprints:
            worker.register(blueprint)
        stack.enter_context(worker)
        yield client


def signalled(client, instance, name, payload):
    """A signal is refused until the instance waits for it."""
    def accepted():
        try:
            client.signal(instance, name, payload)
            return True
        except grpc.RpcError as refusal:
            if refusal.code() != grpc.StatusCode.FAILED_PRECONDITION:
                raise
            return False
    wait_for(accepted, "the signal %s" % name)


def put(**more):
    return lambda context: {**context, **more}


@scenario("linear")
def linear():
    flow = (Workflow("py-linear").step("a", lambda c: {**c, "n": c["n"] + 1, "drop": True})
            .then("b", lambda c: {k: v for k, v in c.items() if k != "drop"})
            .effect("see", lambda c: seen.append(c)).step("c", lambda c: {**c, "n": c["n"] * 10}).build())
    seen = []
    with served(flow) as client:
        equal(client.register(flow), flow.version, "the version that was registered")
        instance = client.start(flow, {"n": 1, "text": "ünïcode", "list": [1, 2.5, None, {"x": True}]})
        ended(client, instance, "COMPLETED", {"n": 20, "text": "ünïcode", "list": [1, 2.5, None, {"x": True}]})
        equal(seen[0]["n"], 2, "what the effect saw")
        assert instance in [v.id for v in client.list_instances(workflow="py-linear", status="COMPLETED")]


@scenario("gate")
def gate():
    flow = Workflow("py-gate").gate("open", lambda c: c["open"]).step("after", put(after=True)).build()
    with served(flow) as client:
        ended(client, client.start(flow, {"open": False}), "COMPLETED", {"open": False}, reason="gated:open")
        ended(client, client.start(flow, {"open": True}), "COMPLETED", {"open": True, "after": True})


@scenario("retry")
def retry():
    calls = []

    def flaky(context):
        calls.append(1)
        if len(calls) < 3:
            raise OSError("not yet")
        return {**context, "calls": len(calls)}
    flow = Workflow("py-retry").step("flaky", flaky, retry=QUICKLY).build()
    with served(flow) as client:
        ended(client, client.start(flow, {}), "COMPLETED", {"calls": 3})


@scenario("permanent failure")
def permanent():
    calls = []

    def refuse(context):
        calls.append(context)
        raise PermanentError("card declined")

    def fail(context):
        raise OSError("always")
    flow = (Workflow("py-permanent").step("refuse", refuse, retry=QUICKLY).build())
    spent = Workflow("py-spent").step("fail", fail, retry=Retry.fixed(2, 0.01)).build()
    with served(flow, spent) as client:
        ended(client, client.start(flow, {"n": 1}), "FAILED", {"n": 1}, error="refuse: card declined")
        equal(len(calls), 1, "calls of the step")
        ended(client, client.start(spent, {}), "FAILED", error="fail: OSError: always")


@scenario("sleep")
def sleep():
    flow = Workflow("py-sleep").step("a", put(a=1)).sleep("nap", millis=300).step("b", put(b=2)).build()
    with served(flow) as client:
        ended(client, client.start(flow, {}), "COMPLETED", {"a": 1, "b": 2})


@scenario("fork")
def fork():
    flow = (Workflow("py-fork")
            .fork(Branch.of("left", lambda b: b.step("l1", put(l=1)).step("l2", lambda c: {**c, "l": c["l"] + 1})),
                  Branch.of("right", lambda b: b.gate("go", lambda c: c["go"]).step("r", put(r=1))))
            .step("sum", lambda c: {**c, "sum": c["l"] + c.get("r", 0)}).build())
    with served(flow) as client:
        ended(client, client.start(flow, {"go": True}), "COMPLETED", {"go": True, "l": 2, "r": 1, "sum": 3})
        ended(client, client.start(flow, {"go": False}), "COMPLETED", {"go": False, "l": 2, "sum": 2})
    return "0.1.1 has no combine: the branches share the context"


@scenario("forEach")
def for_each():
    flow = (Workflow("py-each")
            .fork_each("each", "items", "item",
                       lambda b: b.step("price", lambda c: {**c, "p%d" % c["itemIndex"]: c["item"] * 10}))
            .step("sum", lambda c: {**c, "sum": sum(v for k, v in c.items() if k[0] == "p")}).build())
    with served(flow) as client:
        ended(client, client.start(flow, {"items": [1, 2, 3]}), "COMPLETED",
              {"items": [1, 2, 3], "p0": 10, "p1": 20, "p2": 30, "sum": 60})
        ended(client, client.start(flow, {"items": []}), "COMPLETED", {"items": [], "sum": 0})


@scenario("choose")
def choose():
    flow = (Workflow("py-choose")
            .choose(Case.when("big", lambda c: c["n"] > 100, lambda b: b.step("b", put(took="big"))),
                    Case.when("some", lambda c: c["n"] > 0, lambda b: b.step("s", put(took="some"))),
                    Case.otherwise("none", lambda b: b.step("o", put(took="none"))))
            .step("end", put(end=True)).build())
    with served(flow) as client:
        for n, took in ((1000, "big"), (1, "some"), (0, "none")):
            ended(client, client.start(flow, {"n": n}), "COMPLETED", {"n": n, "took": took, "end": True})


@scenario("loop")
def loop():
    flow = (Workflow("py-loop").do_while("more", lambda c: c["n"] < 5, lambda b: b.step("inc", lambda c: {"n": c["n"] + 1}))
            .step("end", put(end=True)).build())
    with served(flow) as client:
        ended(client, client.start(flow, {"n": 0}), "COMPLETED", {"n": 5, "end": True})


@scenario("signal")
def await_signal():
    flow = Workflow("py-signal").await_signal("paid").step("end", lambda c: {**c, "seen": c["by"]}).build()
    with served(flow) as client:
        instance = client.start(flow, {"id": 1})
        signalled(client, instance, "paid", {"by": "card"})
        ended(client, instance, "COMPLETED", {"id": 1, "by": "card", "seen": "card"})


@scenario("escalation")
def escalation():
    flow = (Workflow("py-escalation").await_signal("ack", timeout_s=0.2, escalation=lambda b: b.step("page", put(paged=True)))
            .step("end", put(end=True)).build())
    bare = Workflow("py-late").await_signal("ack", timeout_s=0.2).build()
    with served(flow, bare) as client:
        ended(client, client.start(flow, {}), "COMPLETED", {"paged": True, "end": True})
        view = client.await_completion(client.start(bare, {}), timeout_s=60)
        equal(view.status, "FAILED", "the status without an escalation")


@scenario("sub-workflow")
def sub_workflow():
    def work(context):
        if context.get("fail"):
            raise PermanentError("the child's reason")
        return {**context, "child": context["n"] * 2}
    child = Workflow("py-child").step("work", work).build()
    flow = Workflow("py-parent").sub_workflow("run", child).step("end", put(end=True)).build()
    with served(child, flow) as client:
        ended(client, client.start(flow, {"n": 4}), "COMPLETED", {"n": 4, "child": 8, "end": True})
        view = client.await_completion(client.start(flow, {"n": 4, "fail": True}), timeout_s=60)
        equal(view.status, "FAILED", "the parent of a child that fails")


@scenario("saga")
def saga():
    raise Skip("0.1.1 has no compensators")


@scenario("schedule")
def schedule():
    flow = Workflow("py-schedule").step("a", put(a=1)).build()
    with served(flow) as client:
        made = client.create_schedule("py-schedule", every_s=1, context={"by": "clock"})
        equal([s.every_millis for s in client.list_schedules() if s.id == made.id], [1000], "the schedules in the list")
        done = wait_for(lambda: [v for v in client.list_instances(workflow="py-schedule", status="COMPLETED")][1:],
                        "two instances by schedule")
        equal(done[0].context, {"by": "clock", "a": 1}, "a scheduled instance's context")
        client.delete_schedule(made.id)
        equal([s.id for s in client.list_schedules() if s.id == made.id], [], "the schedules after deletion")
        cron = client.create_schedule("py-schedule", cron="0 3 * * *")
        equal(cron.cron, "0 3 * * *", "the schedule by cron")
        client.delete_schedule(cron.id)


@scenario("events")
def events():
    raise Skip("0.1.1 has no calls for events")


def wiggle(*arguments, **more):
    done = subprocess.run(["wiggle", *arguments, "--server", ADDRESS], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60, check=False, **more)
    equal(done.returncode, 0, "wiggle %s: %s" % (arguments[0], done.stderr))
    return done.stdout


@scenario("correlation")
def correlation():
    flow = Workflow("py-correlation").step("a", put(a=1)).build()
    with served(flow) as client:
        instance = client.start(flow, {}, correlation_id="py order 7")
        client.start(flow, {}, correlation_id="py order 8")
        ended(client, instance, "COMPLETED", {"a": 1})
        found = json.loads(wiggle("list", "--correlation-id", "py order 7", "--json"))
        equal([v["id"] for v in found], [instance], "what is found")
    return "0.1.1 gives the id and cannot ask for it: asked with `wiggle list`"


@scenario("cancel")
def cancel():
    flow = Workflow("py-cancel").await_signal("never").step("a", put(a=1)).build()
    with served(flow) as client:
        instance = client.start(flow, {"n": 1})
        client.cancel(instance, "changed my mind")
        ended(client, instance, "CANCELLED", {"n": 1}, reason="changed my mind")
        client.cancel(instance, "again")
        ended(client, instance, "CANCELLED", {"n": 1}, reason="changed my mind")
        try:
            client.cancel("wfi.s0.nothing")
            raise AssertionError("an instance that is not there was cancelled")
        except grpc.RpcError as refusal:
            equal(refusal.code(), grpc.StatusCode.NOT_FOUND, "cancelling nothing")


@scenario("versions")
def versions():
    old = Workflow("py-versions", version=1).await_signal("go").step("old", put(by="old")).build()
    new = Workflow("py-versions", version=2).await_signal("go").step("new", put(by="new")).build()
    with WiggleClient(ADDRESS) as client:
        client.register(old)
        first = client.start("py-versions", {})
        with served(old, new, client=client):
            second, third = client.start("py-versions", {}), client.start("py-versions", {}, version=1)
            for instance, version, by in ((first, 1, "old"), (second, 2, "new"), (third, 1, "old")):
                signalled(client, instance, "go", {})
                equal(ended(client, instance, "COMPLETED", {"by": by}).version, version, "the version")
        changed = Workflow("py-versions", version=1).step("other", put()).build()
        try:
            client.register(changed)
            raise AssertionError("another graph took the place of a version that is there")
        except grpc.RpcError as refusal:
            equal(refusal.code(), grpc.StatusCode.FAILED_PRECONDITION, "another graph in the same version")


@scenario("worker killed")
def worker_killed():
    flow = Workflow("py-killed").step("a", put(by="the second")).build()
    with WiggleClient(ADDRESS) as client:
        client.register(flow)
        instance = client.start(flow, {})
        worker = subprocess.Popen([sys.executable, os.path.join(HERE, "holder.py"), ADDRESS, "py-killed", "a"],
                                  stdout=subprocess.PIPE, text=True)
        try:
            equal(worker.stdout.readline(), "%s\n" % instance, "what the worker took")
        finally:
            worker.kill()
            worker.wait()
        equal(client.instance(instance).status, "RUNNING", "the status when the worker is dead")
        with served(flow, client=client):
            ended(client, instance, "COMPLETED", {"by": "the second"})


@scenario("drain")
def drain():
    """A client that fails fast meets UNAVAILABLE while nobody listens; the worker waits by itself."""
    count = 300
    done, lock, half = [0], threading.Lock(), threading.Event()

    def work(context):
        with lock:
            done[0] += 1
            if done[0] == count:
                half.set()
        return {"n": context["n"] + 1}
    flow = Workflow("py-drain").step("a", work).step("b", work).step("c", work).build()

    def patient(call, *arguments):
        def answered():
            with contextlib.suppress(grpc.RpcError):
                return call(*arguments)
            return None
        return wait_for(answered, "an answer")
    with WiggleClient(os.environ["WIGGLE_DRAIN_ADDRESS"]) as client, served(flow, client=client, error_backoff_s=0.1):
        instances = [client.start(flow, {"n": i}) for i in range(count)]
        assert half.wait(60), "the worker does not get on"
        os.kill(int(os.environ["WIGGLE_DRAIN_PID"]), signal.SIGTERM)
        for i, instance in enumerate(instances):
            view = wait_for(lambda instance=instance: next((v for v in [patient(client.instance, instance)] if v.done), None),
                            "the end of an instance")
            equal((view.status, view.context), ("COMPLETED", {"n": i + 3}), "an instance")
        instance = patient(client.start, flow, {"n": 0})
        ended(client, instance, "COMPLETED", {"n": 3})
        again = done[0] - 3 * (count + 1)
    return "%d instances, %d steps done twice" % (count, again)


TWO = {"workflow": "py-two", "version": 1, "steps": [
    {"task": "first"}, {"gate": "enough", "queue": "py-two-sh"}, {"task": "shell", "queue": "py-two-sh"}, {"task": "last"}]}


@scenario("two languages")
def two_languages():
    """A workflow that neither wrote; this worker binds its steps by their names."""
    with open("two.json", "w", encoding="utf-8") as f:
        json.dump(TWO, f)
    wiggle("register", "two.json")
    with WiggleClient(ADDRESS) as client:
        worker = Worker(client, "py-two", long_poll_wait_s=1)
        worker.handle("py-two", "first", put(first="Python")).handle(
            "py-two", "last", lambda c: {**c, "last": c["first"] + ", " + c["second"]})
        shell = subprocess.Popen(["wiggle", "work", "--server", ADDRESS, "--queue", "py-two-sh", "--step", "enough=grep -q Python",
                                  "--step", r"""shell=sed 's/}$/, "second": "sh"}/'"""], stdout=sys.stderr)
        try:
            with worker:
                ended(client, client.start("py-two", {"n": 1.5}), "COMPLETED",
                      {"n": 1.5, "first": "Python", "second": "sh", "last": "Python, sh"})
        finally:
            shell.terminate()
            equal(shell.wait(60), 0, "wiggle work's exit status")


if __name__ == "__main__":
    main(readme.programs(ADDRESS))
