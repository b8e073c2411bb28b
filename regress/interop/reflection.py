"""grpcurl, which knows no protocol but what the server tells it."""
import json
import os

from checks import contains

SERVICE = "com.wiggle.proto.WiggleControlPlane"


def lists(site):
    services = site.run("grpcurl", "-plaintext", site.address, "list").split()
    assert services == [SERVICE, "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
                        "grpc.reflection.v1alpha.ServerReflection", "pg_wiggle.v1.AuthService",
                        "pg_wiggle.v1.ShardService"], services
    methods = site.run("grpcurl", "-plaintext", site.address, "list", SERVICE).split()
    assert len(methods) == 26 and SERVICE + ".PollTasks" in methods, methods


def describes(site):
    text = site.run("grpcurl", "-plaintext", site.address, "describe")
    contains(text, "service WiggleControlPlane", "rpc PollTasks ( .com.wiggle.proto.PollRequest )",
             "rpc Watch ( .grpc.health.v1.HealthCheckRequest ) returns ( stream")
    text = site.run("grpcurl", "-plaintext", site.address, "describe", "com.wiggle.proto.StepResult")
    contains(text, "oneof outcome", ".google.protobuf.Value merge = 2")
    site.run("grpcurl", "-plaintext", site.address, "describe", "com.wiggle.proto.Nothing", status=1)


def exports(site):
    """The files alone are enough to make the call again without the server's help."""
    out = site.area + "/wiggle.protoset"
    site.run("grpcurl", "-plaintext", "-protoset-out", out, site.address, "describe", SERVICE)
    reply = site.run("grpcurl", "-plaintext", "-protoset", out, site.address, SERVICE + "/HealthCheck")
    assert json.loads(reply)["status"] == "UP"


def calls(site):
    def call(rpc, body, status=0, *more):
        return site.run("grpcurl", "-plaintext", *more, "-d", json.dumps(body), site.address, "%s/%s" % (SERVICE, rpc),
                        status=status)
    flow = {"workflow": "curled", "version": 1, "steps": [{"task": "a"}]}
    call("RegisterWorkflow", {"definition": flow})
    instance = json.loads(call("StartInstance", {"workflow": "curled", "context": {"n": 1}}))["instanceId"]
    task = json.loads(call("PollTasks", {"workerId": "w", "queues": ["curled"], "waitMillis": 10000}))["tasks"][0]
    assert task["context"] == {"n": 1}, task
    call("ReportSteps", {"runs": [{"taskId": task["taskId"], "leaseOwner": task["leaseOwner"], "final": True,
                                   "steps": [{"nodeId": task["nodeId"], "merge": {"n": 2}}]}]})
    view = json.loads(call("GetInstance", {"instanceId": instance}))["instance"]
    assert (view["status"], view["context"]) == ("COMPLETED", {"n": 2}), view
    # grpcurl ends with 64 + the status code.
    contains(call("GetInstance", {"instanceId": "nothing"}, 64 + 5), "NotFound")
    contains(call("StartInstance", {"workflow": "ünbekannt"}, 64 + 5), "workflow 'ünbekannt' not found")
    contains(call("PollTasks", {"workerId": "w", "waitMillis": 20000}, 64 + 4, "-max-time", "0.3"), "DeadlineExceeded")


def older_package(site):
    with open(os.path.join(site.tree, "proxy", "proto", "wiggle.proto"), encoding="utf-8") as f:
        text = f.read().replace("package com.wiggle.proto;", "package dev.wiggle.proto;")
    with open("older.proto", "w", encoding="utf-8") as f:
        f.write(text)
    reply = site.run("grpcurl", "-plaintext", "-import-path", ".", "-proto", "older.proto", site.address,
                     "dev.wiggle.proto.WiggleControlPlane/HealthCheck")
    assert json.loads(reply)["status"] == "UP"


CHECKS = [
    ("grpcurl list", lists),
    ("grpcurl describe", describes),
    ("grpcurl exports the protocol and uses it", exports),
    ("grpcurl runs a workflow and meets refusals", calls),
    ("grpcurl calls the service's older name", older_package),
]
