"""JSON without a gRPC client: Connect's unary protocol on both ports."""
import contextlib
import http.client
import json
import re
import resource
import signal
import socket
import threading

import grpc
from google.protobuf import json_format

import world
import wiggle_pb2 as pb
from connect import JSON, SERVICE, Answer, Http1, Http2, Refused
from harness import Proxy, topology, wait_for
from rawh2 import EMPTY, Raw
from wigclient import REQUESTS, Client, ClientTest, flow, fresh_name, retry

PROTO = "application/proto"
MIB = 1 << 20

# Values that differ from run to run, and Connect's HTTP status of the codes that are met.
VARYING = re.compile(r'"((?:\w+At|leaseExpiresAt|seq|cursor|leaseOwner|shard)"): ("[^"]*"|[-\d.e]+)')
IDS = re.compile(r"\b[a-z]+\.s\d+\.\w+")
STATUS = {"invalid_argument": 400, "not_found": 404, "failed_precondition": 400, "resource_exhausted": 429}


class ByGrpc:
    """The calls of a Door, by gRPC and protobuf's own JSON mapping."""

    def __init__(self, client):
        self.client = client

    def call(self, rpc, request=None):
        kind, method = self.client.method(rpc)
        try:
            reply = method(json_format.ParseDict(request or {}, kind()), timeout=60)
        except grpc.RpcError as error:
            answer = type("", (), {})()
            answer.body = {"code": error.code().name.lower(), "message": error.details()}
            answer.status = STATUS[answer.body["code"]]
            raise Refused(answer) from None
        return json_format.MessageToDict(reply)


def tidy(anything, name):
    """As text in which names, identifiers and times of two runs are the same."""
    text = json.dumps(anything, sort_keys=True).replace(name, "NAME")
    ids = {}
    text = IDS.sub(lambda m: ids.setdefault(m.group(), "id%d" % len(ids)), text)
    text = VARYING.sub(r'"\1: "varies"', text)
    return re.sub(r"(\d)\.0\b", r"\1", text)


class Script:
    """Every RPC once or more, through one door; what was answered is kept."""

    def __init__(self, door, name):
        self.door, self.name, self.answers = door, name, []

    def call(self, rpc, request=None, keep=lambda reply: reply):
        try:
            reply = self.door.call(rpc, request)
            self.answers.append((rpc, keep(reply)))
            return reply
        except Refused as refusal:
            self.answers.append((rpc, [refusal.status, refusal.code, refusal.message]))
            return None

    def mine(self, member, key):
        return lambda reply: [x for x in reply.get(member, []) if x.get(key) == self.name]

    def poll(self):
        reply = self.call("PollTasks", {"workerId": "json", "queues": [self.name], "max": 1, "leaseMillis": "60000",
                                        "waitMillis": 15000, "versions": [{"workflow": self.name, "version": 1}]})
        task = reply["tasks"][0]
        return task, {"taskId": task["taskId"], "leaseOwner": task["leaseOwner"]}

    def server(self):
        self.call("HealthCheck", keep=lambda reply: {**reply, "leader": True})
        self.call("GetCluster", keep=lambda reply: sorted(reply))
        self.call("SearchInstances", {"text": "x"})

    def definitions(self):
        definition = flow(self.name, ("task", "a", retry(3)), "b", ("gate", "c"))
        self.call("RegisterWorkflow", {"definition": definition, "force": False})
        self.call("RegisterWorkflow", {"definition": {"name": self.name}})
        self.call("GetWorkflow", {"name": self.name})
        self.call("GetWorkflow", {"name": self.name, "version": 1})
        self.call("GetWorkflow", {"name": self.name, "version": 2})
        self.call("ListWorkflows", keep=lambda reply: self.name in reply["workflows"])

    def start(self, **more):
        return self.call("StartInstance", {"workflow": self.name, **more})["instanceId"]

    def work(self):
        instance = self.start(context={"n": 1, "list": [1, None, {"ü": "\u2028\"\\\n\x01"}]}, correlationId="", version=1)
        self.call("GetInstance", {"instanceId": instance})
        self.call("GetBacklogCoverage", {"max": 500}, keep=self.mine("slices", "workflow"))
        _, lease = self.poll()
        self.call("HeartbeatTask", {**lease, "extendMillis": "60000"})
        self.call("FailTask", {**lease, "message": "näh", "retryable": True})
        _, lease = self.poll()
        self.call("CompleteTask", {**lease, "result": {"a": [True, False, 1.5, 1e15, 1e-7], "n": None}})
        self.call("CompleteTask", {**lease, "result": {}})
        task, lease = self.poll()
        self.call("ReportSteps", {"runs": [{**lease, "final": True, "steps": [
            {"nodeId": task["nodeId"], "merge": {"b": 1}, "startedAt": "1", "finishedAt": 2,
             "events": [{"type": "seen", "payload": {"x": 1}}]}]}]})
        task, lease = self.poll()
        self.call("AdvanceRun", {**lease, "steps": [{"nodeId": task["nodeId"], "predicateValue": False}], "final": True})
        self.call("GetInstance", {"instanceId": instance})
        self.call("GetStepStats", {"workflow": self.name, "version": 1, "since": "0", "sample": 10},
                  keep=lambda reply: sorted(
            [node["nodeId"], node["name"], node["count"]] for node in reply["nodes"]))

    def others(self):
        instance = self.start(correlationId=self.name)
        task, lease = self.poll()
        self.call("AdvanceMany", {"runs": [{**lease, "steps": [{"nodeId": task["nodeId"]}], "final": True}]})
        self.call("SignalInstance", {"instanceId": instance, "signal": "go", "payload": 1})
        self.call("CancelInstance", {"instanceId": instance, "reason": "enough"})
        self.call("ListInstances", {"correlationId": self.name, "limit": 3})
        self.call("ListInstances", {"workflow": self.name, "status": "gone"})
        self.call("GetInstance", {"instanceId": "wfi.s0.01m446vf3rya1rekthaps4"})

    def signals(self):
        waiting = self.name + "-s"
        self.call("RegisterWorkflow", {"definition": {"workflow": waiting, "version": 1,
                                                      "steps": [{"await_signal": "go"}]}})
        instance = self.call("StartInstance", {"workflow": waiting})["instanceId"]
        self.call("SignalInstance", {"instanceId": instance, "signal": "go", "payload": {"ok": True}})
        self.call("GetInstance", {"instanceId": instance})

    def schedules(self):
        schedule = self.call("CreateSchedule", {"workflow": self.name, "everyMillis": "3600000", "context": [1]})
        self.call("ListSchedules", keep=self.mine("schedules", "workflow"))
        self.call("DeleteSchedule", {"id": schedule["id"]})
        schedule = self.call("CreateSchedule", {"workflow": self.name, "cron": "0 0 1 1 *"})
        self.call("DeleteSchedule", {"id": schedule["id"]})
        self.call("CreateSchedule", {"workflow": self.name})

    def events(self):
        consumer = "c-" + self.name
        seen = {"consumer": consumer, "max": 1000, "waitMillis": 0, "startFrom": "-1"}
        feed = []

        def arrived():
            feed[:] = self.mine("events", "workflow")(self.door.call("PollEvents", seen))
            return len(feed) >= 5
        wait_for(arrived, 60, "the events")
        self.answers.append(("PollEvents", feed[:5]))
        self.call("AckEvents", {"consumer": consumer, "ackedCursor": feed[0]["cursor"]})
        self.call("AckEvents", {"consumer": consumer, "ackedCursor": "nonsense"})
        self.call("PollEvents", {"consumer": "  "})
        self.call("ForgetConsumer", {"consumer": consumer})

    def run(self):
        # From now on: what others have left in the log may be more than an answer holds.
        self.door.call("PollEvents", {"consumer": "c-" + self.name, "max": 1, "waitMillis": 0})
        for part in (self.server, self.definitions, self.work, self.others, self.signals, self.schedules, self.events):
            part()
        return [(rpc, tidy(answer, self.name)) for rpc, answer in self.answers]


class Calls:
    """Tests of both doors."""

    def metric(self, name):
        text = world.proxy.http("/metrics")[1]
        return int(re.search(r"^%s (\d+)$" % name, text, re.M).group(1))

    def refuses(self, code, text, rpc, body, **more):
        answer = self.door.send(rpc, body, **more)
        self.assertEqual((answer.status, answer.headers["content-type"], answer.body.get("code")),
                         (STATUS[code], JSON, code), answer.raw)
        self.assertRegex(answer.body["message"], text)

    def test_every_call_answers_as_by_grpc(self):
        # one database: the events of two would come in an order of their own
        by_json = Script(self.kind(world.single), fresh_name("conn")).run()
        client = Client(world.single.address)
        self.addCleanup(client.close)
        by_grpc = Script(ByGrpc(client), fresh_name("conn")).run()
        self.assertEqual({rpc for rpc, _ in by_json}, set(REQUESTS))
        self.assertEqual(len(by_json), len(by_grpc))
        for mine, theirs in zip(by_json, by_grpc):
            self.assertEqual(mine, theirs)

    def test_protobuf_bodies(self):
        name = fresh_name()
        self.client.register(flow(name, "a"))
        request = pb.StartInstanceRequest(workflow=name)
        answer = self.door.send("StartInstance", request.SerializeToString(), kind=PROTO)
        self.assertEqual((answer.status, answer.headers["content-type"]), (200, PROTO))
        instance = pb.StartInstanceResponse.FromString(answer.raw).instance_id
        self.assertEqual(self.client.status(instance), "RUNNING")
        answer = self.door.send("ListSchedules", b"", kind=PROTO)
        self.assertEqual(answer.status, 200)
        pb.ScheduleList.FromString(answer.raw)
        self.refuses("invalid_argument", "not a well-formed StartInstanceRequest", "StartInstance", b"\xff\xff", kind=PROTO)
        self.refuses("invalid_argument", "StartInstanceRequest.context is not a well-formed", "StartInstance",
                     b"\x0a" + bytes([len(name)]) + name.encode() + b"\x12\x03\x00{}", kind=PROTO)

    def test_numbers_keep_their_digits(self):
        name = fresh_name()
        self.client.register(flow(name, "a"))
        context = '{"odd": 9007199254740993, "long": 123456789012345678901234567890, "exact": 0.10000000000000000000001}'
        answer = self.door.send("StartInstance", '{"workflow":"%s","context":%s}' % (name, context))
        instance = answer.body["instanceId"]
        self.assertIn(context, self.door.send("GetInstance", {"instanceId": instance}).raw.decode())
        answer = self.door.send("PollTasks", {"queues": [name], "waitMillis": 15000, "workerId": "w"})
        self.assertIn(context, answer.raw.decode())
        task = answer.body["tasks"][0]
        self.door.send("ReportSteps", '{"runs":[{"taskId":"%s","leaseOwner":"%s","final":true,"steps":[{"nodeId":"%s",'
                       '"merge":%s}]}]}' % (task["taskId"], task["leaseOwner"], task["nodeId"], context))
        self.assertIn('"status":"COMPLETED"', self.door.send("GetInstance", {"instanceId": instance}).raw.decode())
        self.assertIn(context, self.door.send("GetInstance", {"instanceId": instance}).raw.decode())

    def test_names_and_numbers_are_read_in_every_form(self):
        name = fresh_name()
        self.client.register(flow(name, "a"))
        for request in ({"workflow": name, "correlation_id": "x"}, {"workflow": name, "correlationId": "x"},
                        {"workflow": name, "unknown": [{"x": {}}], "version": "1"},
                        '{"\\u0077orkflow": "%s", "context": null, "version": null}' % name,
                        ' {\n"workflow" :\t"%s" , "version":1.0 } \r\n' % name,
                        {"workflow": name, "version": "1e0"}):
            with self.subTest(request=request):
                self.assertEqual(self.door.call("StartInstance", request)["workflow"], name)

    def test_what_does_not_fit_is_refused_and_named(self):
        for text, rpc, body in (
                ("not valid JSON at byte 1: the text is empty", "StartInstance", b""),
                ("not valid JSON at byte 2", "StartInstance", b"{"),
                ("not valid JSON at byte 4", "StartInstance", b"{} x"),
                ("invalid UTF-8", "StartInstance", b'{"workflow":"\xff"}'),
                ("U\\+0000", "StartInstance", '{"workflow":"\\u0000"}'),
                ("surrogate", "StartInstance", '{"workflow":"\\ud800"}'),
                ("not a JSON object", "StartInstance", b"[]"),
                ("not a JSON object", "StartInstance", b"null"),
                ("StartInstanceRequest.workflow is a string", "StartInstance", {"workflow": 1}),
                ("StartInstanceRequest.version is a whole number of 32 bits", "StartInstance", {"version": 2 ** 31}),
                ("StartInstanceRequest.version is a whole number", "StartInstance", {"version": 1.5}),
                ("StartInstanceRequest.version is a whole number", "StartInstance", {"version": ""}),
                ("StartInstanceRequest.version is a whole number", "StartInstance", {"version": "0x1"}),
                ("StartInstanceRequest.version is a whole number", "StartInstance", {"version": True}),
                ("PollRequest.lease_millis is a whole number of 64 bits", "PollTasks", {"leaseMillis": str(2 ** 63)}),
                ("PollRequest.lease_millis is a whole number of 64 bits", "PollTasks", {"leaseMillis": 1e19}),
                ("PollRequest.queues is an array", "PollTasks", {"queues": "q"}),
                ("PollRequest.queues is a string", "PollTasks", {"queues": [["q"]]}),
                ("PollRequest.queues holds a null", "PollTasks", {"queues": [None]}),
                ("PollRequest.versions is an object", "PollTasks", {"versions": [1]}),
                ("WorkflowVersion.version is a whole number", "PollTasks", {"versions": [{"version": []}]}),
                ("ReportedRun.final is true or false", "ReportSteps", {"runs": [{"final": "true"}]}),
                ("correlation_id is given twice", "StartInstance", {"correlation_id": "a", "correlationId": "b"}),
                ("cron is given twice, or beside another one", "CreateSchedule", {"everyMillis": 1, "cron": "x"}),
                ("predicate_value is given twice, or", "ReportSteps",
                 {"runs": [{"steps": [{"merge": None, "predicateValue": True}]}]})):
            with self.subTest(text=text, body=body):
                self.refuses("invalid_argument", text, rpc, body)

    def test_a_context_nests_as_deep_as_by_grpc(self):
        name = fresh_name()
        self.client.register(flow(name, "a"))

        def nested(levels):
            return '{"workflow":"%s","context":%s1%s}' % (name, '{"x":' * levels, "}" * levels)
        self.door.call("StartInstance", json.loads(nested(32)))
        self.refuses("invalid_argument", "StartInstanceRequest.context: .*nested too deeply", "StartInstance", nested(33))
        self.refuses("invalid_argument", "nested too deeply: at most 64", "StartInstance", '{"unknown":' * 65 + "1" + "}" * 65)
        steps = '{"branches":[{"steps":[' + '{"escalation":[' * 200 + "]}" * 200 + "]}]}"
        self.refuses("invalid_argument", "nested too deeply", "ReportSteps", '{"runs":[{"steps":[%s]}]}' % steps)

    def test_large_requests(self):
        name = fresh_name()
        self.client.register(flow(name, "a"))
        context = {"text": "x" * (3 * MIB)}
        instance = self.door.call("StartInstance", {"workflow": name, "context": context})["instanceId"]
        self.assertEqual(self.door.call("GetInstance", {"instanceId": instance})["instance"]["context"], context)
        self.refuses("resource_exhausted", "WIGGLE_MAX_MESSAGE_BYTES", "StartInstance", {"context": "x" * 4 * MIB})
        self.refuses("resource_exhausted", "WIGGLE_MAX_MESSAGE_BYTES", "StartInstance",
                     {"context": "x" * (4 * MIB + MIB // 2)}, transfer_encoding="chunked")

    def test_content_types(self):
        for kind in ("application/json; charset=utf-8", "Application/JSON"):
            self.assertEqual(self.door.send("HealthCheck", kind=kind).status, 200)
        for kind in ("application/x-www-form-urlencoded", "text/plain", "application/jsonx", "application/connect+json"):
            answer = self.door.send("HealthCheck", kind=kind)
            self.assertEqual((answer.status, answer.headers["content-type"]), (415, JSON))
            self.assertIn("application/json", answer.headers["accept-post"])
            self.assertIn("application/json", answer.body["message"])

    def test_other_methods(self):
        for method in ("GET", "PUT", "OPTIONS", "DELETE"):
            answer = self.door.send("HealthCheck", method=method)
            self.assertEqual((answer.status, answer.headers.get("allow")), (405, "POST"))

    def test_unknown_calls(self):
        for path in (SERVICE + "NoSuchCall", SERVICE, SERVICE + "HealthCheck/x"):
            answer = self.door.send(None, path=path)
            self.assertEqual((answer.status, answer.body["code"]), (404, "unimplemented"))

    def test_the_older_name(self):
        self.assertEqual(self.door.send(None, path=SERVICE.replace("com.", "dev.") + "HealthCheck").body["status"], "UP")

    def test_headers_of_the_protocol(self):
        self.assertEqual(self.door.call("HealthCheck", connect_protocol_version="1")["status"], "UP")
        self.refuses("invalid_argument", "connect-protocol-version", "HealthCheck", {}, connect_protocol_version="2")
        self.refuses("invalid_argument", "connect-timeout-ms", "HealthCheck", {}, connect_timeout_ms="soon")
        answer = self.door.send("PollTasks", {"queues": [fresh_name()], "waitMillis": 20000}, connect_timeout_ms="200")
        self.assertEqual((answer.status, answer.body["code"]), (504, "deadline_exceeded"))
        answer = self.door.send("HealthCheck", content_encoding="gzip")
        self.assertEqual((answer.status, answer.body["code"]), (501, "unimplemented"))

    def test_a_waiting_poll_is_woken_by_a_start(self):
        name = fresh_name()
        self.client.register(flow(name, "a"))
        parked = self.metric("wiggle_proxy_parked_polls")
        got = []
        thread = threading.Thread(target=lambda: got.append(self.door.call(
            "PollTasks", {"queues": [name], "waitMillis": 20000, "workerId": "w"})))
        thread.start()
        wait_for(lambda: self.metric("wiggle_proxy_parked_polls") > parked, 60, "a parked poll")
        instance = self.client.start(name)
        thread.join(60)
        self.assertEqual([task["instanceId"] for task in got[0]["tasks"]], [instance])

    def test_a_poll_that_finds_nothing(self):
        self.assertEqual(self.door.call("PollTasks", {"queues": [fresh_name()], "waitMillis": "50"}), {})


class ByHttp1(Calls, ClientTest):
    kind = Http1

    def setUp(self):
        super().setUp()
        self.door = Http1(world.proxy)

    def test_grpc_is_told_where_it_belongs(self):
        answer = self.door.send("HealthCheck", b"\0\0\0\0\0", kind="application/grpc")
        self.assertEqual(answer.status, 415)
        self.assertIn("own port", answer.body["message"])

    def test_calls_on_one_connection(self):
        connection = self.door.connect()
        self.addCleanup(connection.close)
        connection.request("POST", SERVICE + "HealthCheck", b"{}", {"content-type": JSON})
        sock = connection.sock
        for _ in range(3):
            reply = connection.getresponse()
            self.assertEqual((reply.status, json.loads(reply.read())["status"]), (200, "UP"))
            self.assertIs(connection.sock, sock)
            connection.request("POST", SERVICE + "PollTasks", b'{"waitMillis":20,"queues":["none"]}', {"content-type": JSON})
            reply = connection.getresponse()
            self.assertEqual((reply.read(), connection.sock), (b"{}", sock), reply.getheaders())
            connection.request("POST", SERVICE + "HealthCheck", b"{}", {"Content-Type": JSON})

    def poll_and_vanish(self, name):
        """A poll's socket, once the poll is parked."""
        body = json.dumps({"queues": [name], "waitMillis": 20000, "workerId": "gone", "leaseMillis": 3600000})
        parked = self.metric("wiggle_proxy_parked_polls")
        raw = socket.create_connection(("127.0.0.1", world.proxy.second_port))
        self.addCleanup(raw.close)
        raw.sendall(("POST %sPollTasks HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s"
                     % (SERVICE, JSON, len(body), body)).encode())
        wait_for(lambda: self.metric("wiggle_proxy_parked_polls") > parked, 60, "a parked poll")
        return raw, parked

    def test_a_client_that_leaves_takes_its_poll_along(self):
        name = fresh_name()
        self.client.register(flow(name, "a"))
        for reset in (False, True):
            raw, parked = self.poll_and_vanish(name)
            if reset:
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            raw.close()
            wait_for(lambda: self.metric("wiggle_proxy_parked_polls") == parked, 15, "the poll's end")
            instance = self.client.start(name)
            self.assertEqual(self.client.poll_one(name).instance_id, instance)

    def test_what_was_claimed_for_a_client_that_left_is_given_back(self):
        name = fresh_name()
        self.client.register(flow(name, "a"))
        for _ in range(5):
            raw, _ = self.poll_and_vanish(name)
            with world.proxy.standing_still():
                start = self.client.future("StartInstance", workflow=name)
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                raw.close()
            task = self.client.poll_one(name)
            self.assertEqual(task.instance_id, start.result().instance_id)
            self.client.report(task, {})

    def half_closed(self, rpc, body, ready=lambda: True):
        """The answer to a request behind which the client closes its sending half, once ready."""
        text = json.dumps(body)
        with socket.create_connection(("127.0.0.1", world.proxy.second_port), timeout=60) as raw:
            raw.sendall(("POST %s%s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s"
                         % (SERVICE, rpc, JSON, len(text), text)).encode())
            wait_for(ready, 60, "the moment to close")
            raw.shutdown(socket.SHUT_WR)
            reply = http.client.HTTPResponse(raw)
            reply.begin()
            return Answer(reply.status, reply.getheaders(), reply.read())

    def test_a_client_that_sends_no_more_is_answered(self):
        name = fresh_name()
        self.client.register(flow(name, "a"))
        answer = self.half_closed("HealthCheck", {})
        self.assertEqual((answer.status, answer.body["status"]), (200, "UP"))
        answer = self.half_closed("StartInstance", {"workflow": name})
        self.assertEqual(answer.status, 200, answer.raw)
        self.assertEqual(self.client.poll_one(name).instance_id, answer.body["instanceId"])
        # A poll would be handed tasks that perhaps nobody takes.
        parked = self.metric("wiggle_proxy_parked_polls")
        answer = self.half_closed("PollTasks", {"queues": [fresh_name()], "waitMillis": 20000},
                                  lambda: self.metric("wiggle_proxy_parked_polls") > parked)
        self.assertEqual((answer.status, answer.body["code"]), (499, "canceled"), answer.raw)
        self.assertEqual(self.metric("wiggle_proxy_parked_polls"), parked)

    def test_a_client_that_sends_no_more_and_then_leaves(self):
        held = self.metric("wiggle_proxy_http_calls")
        name = fresh_name()
        self.client.register(flow(name, "a"))
        with contextlib.ExitStack() as held_up:
            for shard in world.shards:
                held_up.enter_context(shard.holding("lock table wiggle.wf_instance in exclusive mode"))
            body = json.dumps({"workflow": name})
            raw = socket.create_connection(("127.0.0.1", world.proxy.second_port), timeout=60)
            self.addCleanup(raw.close)
            raw.sendall(("POST %sStartInstance HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s"
                         % (SERVICE, JSON, len(body), body)).encode())
            wait_for(lambda: self.metric("wiggle_proxy_http_calls") == held + 1, 60, "the call")
            raw.shutdown(socket.SHUT_WR)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            raw.close()
            wait_for(lambda: self.metric("wiggle_proxy_http_calls") == held, 60, "the call's end, before its answer")

    def test_a_client_that_leaves_within_its_request(self):
        raw = socket.create_connection(("127.0.0.1", world.proxy.second_port))
        raw.sendall(("POST %sHealthCheck HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: 99\r\n\r\n{"
                     % (SERVICE, JSON)).encode())
        wait_for(lambda: self.metric("wiggle_proxy_http_calls") > 0, 60, "the call")
        raw.close()
        wait_for(lambda: self.metric("wiggle_proxy_http_calls") == 0, 60, "its end")

    def test_more_calls_than_are_taken(self):
        resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        proxy = Proxy(world.AREA, topology(*world.shards), name="connect-many").start()
        self.addCleanup(proxy.stop)
        body = b'{"queues":["none"],"waitMillis":20000}'
        head = ("POST %sPollTasks HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n"
                % (SERVICE, JSON, len(body))).encode()
        polls = []
        for _ in range(1024):
            polls.append(socket.create_connection(("127.0.0.1", proxy.second_port)))
            polls[-1].sendall(head + body)
        wait_for(lambda: "wiggle_proxy_http_calls 1024" in proxy.http("/metrics")[1], 60, "all calls")
        answer = Http1(proxy).send("HealthCheck")
        self.assertEqual((answer.status, answer.body["code"]), (429, "resource_exhausted"))
        for poll in polls:
            poll.close()
        wait_for(lambda: Http1(proxy).send("HealthCheck").status == 200, 60, "room")

    def test_a_drain_answers_waiting_polls(self):
        proxy = Proxy(world.AREA, topology(*world.shards), name="connect-drain").start()
        self.addCleanup(proxy.stop)
        door, got = Http1(proxy), []
        thread = threading.Thread(target=lambda: got.append(door.send("PollTasks", {"queues": ["x"], "waitMillis": 20000})))
        thread.start()
        wait_for(lambda: "wiggle_proxy_parked_polls 1" in proxy.http("/metrics")[1], 60, "a parked poll")
        held = Raw(proxy.address)
        self.addCleanup(held.close)
        held.open()                     # a call that has not come as a whole holds the drain up
        wait_for(lambda: "wiggle_proxy_streams 2" in proxy.http("/metrics")[1], 60, "the call")
        proxy.process.send_signal(signal.SIGTERM)
        thread.join(60)
        answer = door.send("HealthCheck")
        self.assertEqual((answer.status, answer.body["code"]), (503, "unavailable"), answer.raw)
        held.close()
        self.assertEqual(proxy.process.wait(60), 0)
        self.assertEqual((got[0].status, got[0].body, got[0].headers.get("connection")), (200, {}, "close"))


class ByHttp2(Calls, ClientTest):
    kind = Http2

    def setUp(self):
        super().setUp()
        self.door = Http2(world.proxy)

    def test_services_of_grpc_itself_are_for_grpc_alone(self):
        streams = self.metric("wiggle_proxy_streams")
        for path in ("/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch",
                     "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                     "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"):
            for kind, body in ((JSON, b"{}"), (JSON, b""), (PROTO, b""), (PROTO, EMPTY), (PROTO, EMPTY * 2)):
                with self.subTest(path=path, kind=kind, body=body):
                    answer = self.door.send(None, body, kind=kind, path=path)
                    self.assertEqual((answer.status, answer.headers["content-type"], answer.body["code"]),
                                     (404, JSON, "unimplemented"))
                    self.assertIn("for gRPC alone", answer.body["message"])
            self.assertEqual(self.door.send(None, kind="text/plain", path=path).status, 415)
            self.assertEqual(self.door.send(None, method="GET", path=path).status, 405)
        wait_for(lambda: self.metric("wiggle_proxy_streams") <= streams, 60, "the streams' end")

    def test_what_grpc_says_of_compression_means_nothing_here(self):
        name = fresh_name()
        self.client.register(flow(name, "a"))
        context = {"text": "x" * 200000}
        instance = self.door.call("StartInstance", {"workflow": name, "context": context})["instanceId"]
        for fields in ({"grpc_accept_encoding": "gzip"}, {"grpc_accept_encoding": "gzip", "grpc_encoding": "gzip"}):
            answer = self.door.send("GetInstance", {"instanceId": instance}, **fields)
            self.assertEqual((answer.status, answer.body["instance"]["context"]), (200, context))
            self.assertNotIn("grpc-encoding", answer.headers)
