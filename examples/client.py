#!/usr/bin/env python3
"""A client and a worker in Python without generated stubs.

    protoc -I proxy/proto -I /usr/include --python_out=. wiggle.proto
    PYTHONPATH=. python3 examples/client.py localhost:8080

Needs grpcio and protobuf (Debian: python3-grpcio python3-protobuf protobuf-compiler).
protoc makes the messages; a call is made by its name.
"""
import sys

import grpc
from google.protobuf import json_format, struct_pb2

import wiggle_pb2 as pb

channel = grpc.insecure_channel(sys.argv[1] if len(sys.argv) > 1 else "localhost:8080")


def call(name, request, reply):
    method = channel.unary_unary("/com.wiggle.proto.WiggleControlPlane/" + name,
                                 request_serializer=type(request).SerializeToString,
                                 response_deserializer=reply.FromString)
    return method(request, timeout=30)


def value(anything):
    return json_format.ParseDict(anything, struct_pb2.Value())


# The whole graph: clients send what `wiggle validate FILE --show` prints.
definition = struct_pb2.Struct()
json_format.ParseDict({
    "name": "hello-python", "version": 1, "startNode": "n1",
    "nodes": [{"id": "n1", "kind": "TASK", "name": "greet", "activity": "hello-python#greet",
               "queue": "hello-python", "next": "end2"},
              {"id": "end2", "kind": "END", "name": "end", "success": True}]}, definition)
call("RegisterWorkflow", pb.WorkflowDefinition(definition=definition), pb.RegisterWorkflowResponse)

started = call("StartInstance", pb.StartInstanceRequest(workflow="hello-python", context=value({"name": "ada"})),
               pb.StartInstanceResponse)

# A worker: wait up to ten seconds for a task of the queue, do it, report the next context.
tasks = call("PollTasks", pb.PollRequest(worker_id="python", queues=["hello-python"], max=1, wait_millis=10000),
             pb.TaskList).tasks
for task in tasks:
    context = json_format.MessageToDict(task.context)
    context["said"] = "hello, " + context["name"]
    step = pb.StepResult(node_id=task.node_id, merge=value(context))
    run = pb.ReportedRun(task_id=task.task_id, lease_owner=task.lease_owner, steps=[step], final=True)
    outcome = call("ReportSteps", pb.ReportStepsRequest(runs=[run]), pb.ReportStepsResult).results[0]
    if outcome.error_status != 0:
        sys.exit("the report was refused: " + outcome.error)

detail = call("GetInstance", pb.GetInstanceRequest(instance_id=started.instance_id), pb.InstanceDetail)
print(detail.instance.id, detail.instance.status, json_format.MessageToDict(detail.instance.context))
