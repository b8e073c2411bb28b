"""Calls of the control plane through grpcio, and definitions for tests.

Nothing of pg_wiggle's own code is in between: messages come from protoc and the
transport from gRPC's C core.
"""
import itertools
import threading
import time
import unittest

import grpc
from google.protobuf import json_format, struct_pb2

import wiggle_pb2 as pb
import world
from harness import wait_for

REQUESTS = {
    "HealthCheck": (pb.Empty, pb.HealthStatus),
    "ListWorkflows": (pb.Empty, pb.WorkflowNames),
    "RegisterWorkflow": (pb.WorkflowDefinition, pb.RegisterWorkflowResponse),
    "GetWorkflow": (pb.GetWorkflowRequest, pb.WorkflowDefinition),
    "StartInstance": (pb.StartInstanceRequest, pb.StartInstanceResponse),
    "ListInstances": (pb.ListInstancesRequest, pb.InstanceList),
    "GetInstance": (pb.GetInstanceRequest, pb.InstanceDetail),
    "CancelInstance": (pb.CancelInstanceRequest, pb.CancelInstanceResponse),
    "PollTasks": (pb.PollRequest, pb.TaskList),
    "ReportSteps": (pb.ReportStepsRequest, pb.ReportStepsResult),
    "CompleteTask": (pb.TaskResultRequest, pb.Ack),
    "FailTask": (pb.FailTaskRequest, pb.Ack),
    "HeartbeatTask": (pb.HeartbeatRequest, pb.HeartbeatResponse),
    "SignalInstance": (pb.SignalInstanceRequest, pb.Ack),
    "CreateSchedule": (pb.CreateScheduleRequest, pb.ScheduleView),
    "ListSchedules": (pb.Empty, pb.ScheduleList),
    "DeleteSchedule": (pb.DeleteScheduleRequest, pb.Ack),
    "PollEvents": (pb.PollEventsRequest, pb.EventList),
    "AckEvents": (pb.AckEventsRequest, pb.Ack),
    "ForgetConsumer": (pb.ForgetConsumerRequest, pb.ForgetConsumerResponse),
    "AdvanceRun": (pb.AdvanceRunRequest, pb.RunApplied),
    "AdvanceMany": (pb.AdvanceManyRequest, pb.ReportStepsResult),
    "GetStepStats": (pb.StepStatsRequest, pb.StepStats),
    "GetBacklogCoverage": (pb.BacklogCoverageRequest, pb.BacklogCoverage),
    "GetCluster": (pb.Empty, pb.ClusterView),
    "SearchInstances": (pb.SearchRequest, pb.SearchResult),
}

SERVICE = "com.wiggle.proto.WiggleControlPlane"


def value(anything):
    """A Python value as google.protobuf.Value."""
    return json_format.ParseDict(anything, struct_pb2.Value())


def plain(message):
    """A Value or Struct as Python; whole numbers as int, like clients do."""
    def tidy(x):
        if isinstance(x, float) and x.is_integer():
            return int(x)
        if isinstance(x, dict):
            return {k: tidy(v) for k, v in x.items()}
        if isinstance(x, list):
            return [tidy(v) for v in x]
        return x
    return tidy(json_format.MessageToDict(message))


class Client:
    def __init__(self, address, service=SERVICE, options=(), credentials=None):
        if credentials is None:
            self.channel = grpc.insecure_channel(address, options=list(options))
        else:
            self.channel = grpc.secure_channel(address, credentials, options=list(options))
        self.service = service

    def method(self, rpc):
        request, reply = REQUESTS[rpc]
        return request, self.channel.unary_unary(
            "/%s/%s" % (self.service, rpc), request_serializer=request.SerializeToString,
            response_deserializer=reply.FromString)

    def call(self, rpc, timeout=60, **fields):
        request, method = self.method(rpc)
        return method(request(**fields), timeout=timeout)

    def future(self, rpc, timeout=60, metadata=(), **fields):
        request, method = self.method(rpc)
        return method.future(request(**fields), timeout=timeout, metadata=metadata)

    # ---- what tests say often

    def register(self, definition, **more):
        return self.call("RegisterWorkflow", definition=json_format.ParseDict(definition, struct_pb2.Struct()), **more)

    def start(self, workflow, context=None, **more):
        if context is not None:
            more["context"] = value(context)
        return self.call("StartInstance", workflow=workflow, **more).instance_id

    def get(self, instance_id):
        return self.call("GetInstance", instance_id=instance_id)

    def status(self, instance_id):
        return self.get(instance_id).instance.status

    def context(self, instance_id):
        return plain(self.get(instance_id).instance.context)

    def poll(self, queue, worker="tester", wait=15000, max=1, **more):
        return list(self.call("PollTasks", worker_id=worker, queues=[queue], max=max, wait_millis=wait, **more).tasks)

    def poll_one(self, queue, **more):
        tasks = self.poll(queue, **more)
        assert len(tasks) == 1, "expected one task of %s, got %d" % (queue, len(tasks))
        return tasks[0]

    def report(self, task, *steps, final=True, owner=None):
        """One run; steps are (node, value) or a bare value for the task's own node."""
        results = []
        for step in steps or (None,):
            node, outcome = step if isinstance(step, tuple) else (task.node_id, step)
            result = pb.StepResult(node_id=node)
            if isinstance(outcome, bool):
                result.predicate_value = outcome
            elif outcome is not None:
                result.merge.CopyFrom(value(outcome))
            results.append(result)
        run = pb.ReportedRun(task_id=task.task_id, lease_owner=owner or task.lease_owner, steps=results, final=final)
        return self.call("ReportSteps", runs=[run]).results[0]

    def fail(self, task, message="it broke", retryable=True):
        return self.call("FailTask", task_id=task.task_id, lease_owner=task.lease_owner,
                         message=message, retryable=retryable)

    def complete(self, task, result=None):
        more = {} if result is None else {"result": value(result)}
        return self.call("CompleteTask", task_id=task.task_id, lease_owner=task.lease_owner, **more)

    def signal(self, instance_id, signal, payload=None):
        more = {} if payload is None else {"payload": value(payload)}
        return self.call("SignalInstance", instance_id=instance_id, signal=signal, **more)

    def close(self):
        self.channel.close()


def step_result(node, outcome=None, events=(), **more):
    """A StepResult; an outcome is a boolean, a context or None, events are (type, payload)."""
    result = pb.StepResult(node_id=node, **more)
    if isinstance(outcome, bool):
        result.predicate_value = outcome
    elif outcome is not None:
        result.merge.CopyFrom(value(outcome))
    for kind, payload in events:
        event = result.events.add(type=kind)
        if payload is not None:
            event.payload.CopyFrom(value(payload))
    return result


def run_of(task, *steps, final=True, owner=None):
    """A ReportedRun of StepResults, by default of the task's own node alone."""
    return pb.ReportedRun(task_id=task.task_id, lease_owner=owner or task.lease_owner,
                          steps=steps or (step_result(task.node_id, {}),), final=final)


# ------------------------------------------------------------- definitions

NO_RETRY = {"maxAttempts": 1, "initialBackoffMillis": 0, "multiplier": 1, "maxBackoffMillis": 0, "jitter": 0}


def retry(attempts, initial=1, multiplier=1, maximum=0, jitter=0):
    return {"maxAttempts": attempts, "initialBackoffMillis": initial, "multiplier": multiplier,
            "maxBackoffMillis": maximum, "jitter": jitter}


def flow(name, *steps, version=1, queue=None, mode="SERVER"):
    """A chain of steps as a whole definition, the way Wiggle's builders lay it out.

    A step is a name (a task), or a tuple: ("task", name, retry), ("gate", name),
    ("sleep", millis).
    """
    queue = queue or name
    counter = itertools.count(1)
    nodes, chain = [], []
    for step in steps:
        kind, what, *rest = step if isinstance(step, tuple) else ("task", step)
        node = {"id": "n%d" % next(counter)}
        if kind == "sleep":
            node.update(kind="SLEEP", name="sleep-%dms" % what, sleepMillis=what)
        else:
            node.update(kind="PREDICATE" if kind == "gate" else "TASK", name=what,
                        activity="%s#%s" % (name, what), queue=queue)
            if rest:
                node["retry"] = rest[0]
        nodes.append(node)
        chain.append(node)
        if kind == "gate":
            end = {"id": "end%d" % next(counter), "kind": "END", "name": "end", "success": True,
                   "reason": "gated:%s" % what}
            node["altNext"] = end["id"]
            nodes.append(end)
    last = {"id": "end%d" % next(counter), "kind": "END", "name": "end", "success": True}
    nodes.append(last)
    for node, following in zip(chain, chain[1:] + [last]):
        node["next"] = following["id"]
    return {"name": name, "version": version, "startNode": chain[0]["id"], "nodes": nodes,
            "queues": [queue], "executionMode": mode}


_names = itertools.count(1)


def fresh_name(stem="wf"):
    """A workflow (and queue) that no other test uses."""
    return "%s-%d" % (stem, next(_names))


# -------------------------------------------------------------- test base

TERMINAL = {"COMPLETED", "FAILED", "CANCELLED", "COMPENSATED", "COMPENSATION_FAILED"}


class Broken(Exception):
    """Raised by a handler: the attempt failed; retryable unless told otherwise."""

    def __init__(self, message, retryable=False):
        super().__init__(message)
        self.retryable = retryable


class ClientTest(unittest.TestCase):
    """A client of the shared proxy, and assertions on refusals."""

    server = "proxy"

    def setUp(self):
        self.client = Client(getattr(world, self.server).address)
        self.addCleanup(self.client.close)

    def shorthand(self, *steps, **more):
        """Register the authoring form; its name."""
        name = fresh_name()
        self.client.register({"workflow": name, "version": 1, "steps": list(steps), **more})
        return name

    def work(self, instance, handlers, queue=None, seconds=120):
        """Serve the instance's steps by name until it ends; its view.

        A handler takes (context, task) and returns the outcome; it may raise Broken.
        """
        queue = queue or self.client.get(instance).instance.workflow
        until = time.monotonic() + seconds
        while True:
            view = self.client.get(instance).instance
            if view.status in TERMINAL:
                return view
            self.assertLess(time.monotonic(), until, "%s is still %s" % (instance, view.status))
            for task in self.client.poll(queue, max=20, wait=200):
                try:
                    outcome = handlers[task.step_name](plain(task.context), task)
                except Broken as failure:
                    self.client.fail(task, str(failure), failure.retryable)
                    continue
                reported = self.client.report(task, outcome)
                self.assertEqual(reported.error_status, 0, reported)

    def define(self, *steps, stem="wf", **more):
        name = fresh_name(stem)
        self.client.register(flow(name, *steps, **more))
        return name

    def refused(self, code, message, call, *args, **kwargs):
        """The call is refused with this status; message is its text or a part in *stars*."""
        with self.assertRaises(grpc.RpcError) as caught:
            call(*args, **kwargs)
        self.assertEqual(caught.exception.code(), code, caught.exception.details())
        self.check_text(message, caught.exception.details())

    def run_refused(self, status, message, outcome):
        self.assertEqual(outcome.error_status, status, outcome)
        self.assertFalse(outcome.HasField("applied"))
        self.check_text(message, outcome.error)

    def check_text(self, wanted, text):
        if wanted.startswith("*") and wanted.endswith("*"):
            self.assertIn(wanted.strip("*"), text)
        else:
            self.assertEqual(wanted, text)

    def becomes(self, instance_id, status, seconds=60):
        deadline = time.monotonic() + seconds
        while True:
            got = self.client.status(instance_id)
            if got == status:
                return
            if time.monotonic() > deadline:
                self.fail("%s is %s, not %s, after %g s" % (instance_id, got, status, seconds))
            time.sleep(0.01)

    def is_woken_by(self, cluster, shard, proxy, client):
        """
        What becomes ready there by SQL is told to the proxy, which looks at once. Its own look comes every ten seconds and
        answers one of these polls at most: by that alone they take forty.
        """
        name = fresh_name("woken")
        label = 'wiggle_proxy_wakeups_total{shard="%d"}' % shard
        client.register(flow(name, "a"))
        begun = time.monotonic()
        for _ in range(5):
            heard = proxy.metric(label)
            poll = client.future("PollTasks", worker_id="w", queues=[name], max=1, wait_millis=20000)
            wait_for(lambda: proxy.metric("wiggle_proxy_parked_polls") == 1, 60, "a parked poll")
            instance = cluster.psql("select wiggle.start(:'n')", n=name)
            task, = poll.result().tasks
            self.assertEqual(task.instance_id, instance)
            wait_for(lambda n=heard: proxy.metric(label) > n, 30, "the wake-up, which the poll may have been faster than")
            self.assertEqual(client.report(task).applied.instance_status, "COMPLETED")
        self.assertLess(time.monotonic() - begun, 30)

    def in_background(self, function, *args):
        """Run in a thread; the returned function waits for its result or raises its error."""
        box = {}

        def body():
            try:
                box["result"] = function(*args)
            except Exception as failure:
                box["failure"] = failure

        thread = threading.Thread(target=body, daemon=True)
        thread.start()

        def result(seconds=60):
            thread.join(seconds)
            self.assertFalse(thread.is_alive(), "the background call hangs")
            if "failure" in box:
                raise box["failure"]
            return box["result"]
        return result
