"""What gRPC's ecosystem expects of any server: reflection, health, compression, statuses."""
import gzip
import os
import subprocess
import threading
import zlib

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool

import health_pb2
import reflection_pb2
import wiggle_pb2 as pb
import world
from harness import Proxy, topology, wait_for
from rawh2 import EMPTY, END_STREAM, DATA, RST_STREAM, SERVICE, Raw, frame, message, request
from wigclient import SERVICE as CONTROL_PLANE
from wigclient import Client, ClientTest, flow, fresh_name

MAX_MESSAGE = 4 * 1024 * 1024
NOT_FOUND, INVALID = 5, 3
Ask = reflection_pb2.ServerReflectionRequest
Health = health_pb2.HealthCheckResponse


class Reflection(ClientTest):
    def chat(self, *requests, version="v1"):
        call = self.client.channel.stream_stream(
            "/grpc.reflection.%s.ServerReflection/ServerReflectionInfo" % version,
            request_serializer=Ask.SerializeToString,
            response_deserializer=reflection_pb2.ServerReflectionResponse.FromString)
        return call(iter(requests), timeout=60)

    def ask(self, **question):
        answers = list(self.chat(Ask(**question)))
        self.assertEqual(len(answers), 1)
        return answers[0]

    def files(self, **question):
        blobs = self.ask(**question).file_descriptor_response.file_descriptor_proto
        return [descriptor_pb2.FileDescriptorProto.FromString(b) for b in blobs]

    def test_services(self):
        for version in ("v1", "v1alpha"):
            answer, = self.chat(Ask(host="h", list_services="*"), version=version)
            self.assertEqual((answer.valid_host, answer.original_request.list_services), ("h", "*"))
            self.assertEqual({s.name for s in answer.list_services_response.service},
                             {CONTROL_PLANE, "pg_wiggle.v1.AuthService", "pg_wiggle.v1.ShardService", "grpc.health.v1.Health",
                              "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"})

    def test_all_files_make_a_whole(self):
        pool = descriptor_pool.DescriptorPool()
        seen = set()
        for service in self.ask(list_services="").list_services_response.service:
            for file in reversed(self.files(file_containing_symbol=service.name)):
                if file.name not in seen:
                    pool.Add(file)
                seen.add(file.name)
            self.assertTrue(pool.FindServiceByName(service.name).methods)
        mine = pb.DESCRIPTOR.services_by_name["WiggleControlPlane"]
        theirs = pool.FindServiceByName(CONTROL_PLANE)
        self.assertEqual([(m.name, m.input_type.full_name, m.output_type.full_name) for m in mine.methods],
                         [(m.name, m.input_type.full_name, m.output_type.full_name) for m in theirs.methods])
        watch = pool.FindServiceByName("grpc.health.v1.Health").methods_by_name["Watch"]
        self.assertEqual(watch.output_type.full_name, "grpc.health.v1.HealthCheckResponse")

    def test_names(self):
        self.assertEqual([f.name for f in self.files(file_by_filename="wiggle.proto")],
                         ["wiggle.proto", "google/protobuf/struct.proto"])
        for symbol, name in (
                (CONTROL_PLANE, "wiggle.proto"), (CONTROL_PLANE + ".PollTasks", "wiggle.proto"),
                ("com.wiggle.proto.StepResult", "wiggle.proto"), ("com.wiggle.proto.StepResult.merge", "wiggle.proto"),
                ("com.wiggle.proto.StepResult.outcome", "wiggle.proto"),
                ("google.protobuf.Value", "google/protobuf/struct.proto"),
                ("google.protobuf.NULL_VALUE", "google/protobuf/struct.proto"),
                ("google.protobuf.NullValue", "google/protobuf/struct.proto"),
                ("grpc.health.v1.HealthCheckResponse.ServingStatus", "grpc/health/v1/health.proto"),
                ("grpc.health.v1.HealthCheckResponse.SERVING", "grpc/health/v1/health.proto"),
                ("grpc.reflection.v1alpha.ErrorResponse", "grpc/reflection/v1alpha/reflection.proto")):
            with self.subTest(symbol=symbol):
                self.assertEqual(self.files(file_containing_symbol=symbol)[0].name, name)

    def test_what_is_not_there_is_told_and_the_stream_goes_on(self):
        questions = [Ask(file_by_filename="nothing.proto"), Ask(file_containing_symbol="com.wiggle.proto.Nothing"),
                     Ask(file_containing_symbol="com.wiggle.proto"), Ask(file_containing_symbol=CONTROL_PLANE + "."),
                     Ask(file_containing_symbol="grpc.health.v1.HealthCheckResponse.ServingStatus.SERVING"),
                     Ask(all_extension_numbers_of_type=CONTROL_PLANE),
                     Ask(file_containing_extension=reflection_pb2.ExtensionRequest(containing_type="x")), Ask(),
                     Ask(list_services="")]
        answers = list(self.chat(*questions))
        self.assertEqual([a.error_response.error_code for a in answers], [NOT_FOUND] * 7 + [INVALID, 0])
        self.assertEqual([a.original_request for a in answers], questions)

    def test_a_thousand_questions_on_one_stream(self):
        answers = list(self.chat(*[Ask(host=str(i), file_containing_symbol=CONTROL_PLANE) for i in range(1000)]))
        self.assertEqual([a.valid_host for a in answers], [str(i) for i in range(1000)])

    def test_no_question_no_answer(self):
        self.assertEqual(list(self.chat()), [])

    def test_garbage_ends_the_stream_behind_the_answers(self):
        call = self.client.channel.stream_stream("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")(
            iter([Ask(list_services="").SerializeToString(), b"\xff\xff"]), timeout=60)
        self.assertIn(CONTROL_PLANE.encode(), next(call))
        self.refused(grpc.StatusCode.INVALID_ARGUMENT, "**", next, call)

    def test_questions_in_pieces_and_in_one_frame(self):
        raw = Raw(world.proxy.address)
        self.addCleanup(raw.close)
        one = message(Ask(list_services="x").SerializeToString())
        head = request(path="/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
        stream = raw.open(head)
        for byte in one:
            raw.send(frame(DATA, 0, stream, bytes([byte])))
        raw.send(frame(DATA, END_STREAM, stream))
        _, together = raw.call(head, one * 3)
        raw.wait(lambda: stream in raw.ended)
        self.assertEqual(raw.headers[stream]["grpc-status"], "0")
        self.assertEqual(together, raw.body[stream] * 3)

    def test_half_a_question(self):
        raw = Raw(world.proxy.address)
        self.addCleanup(raw.close)
        head = request(path="/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
        one = message(Ask(list_services="x").SerializeToString())
        fields, body = raw.call(head, one + one[:4])
        self.assertEqual(fields["grpc-status"], "13")
        self.assertIn(CONTROL_PLANE.encode(), body)
        self.assertEqual(raw.status(head, message(b"", length=MAX_MESSAGE + 1)), "8")

    def test_a_reader_of_nothing_does_not_pile_up_answers(self):
        raw = Raw(world.proxy.address, settings=b"\0\4\0\0\0\0")	# stream windows of nothing
        self.addCleanup(raw.close)
        before = world.proxy.rss_kb()
        stream = raw.open(request(path="/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"))
        question = message(Ask(file_containing_symbol=CONTROL_PLANE).SerializeToString())
        for _ in range(80):		# 4,000 questions, 60 MB of answers
            raw.send(frame(DATA, 0, stream, question * 50))
        self.assertEqual(self.client.call("HealthCheck").status, "UP")
        self.assertLess(world.proxy.rss_kb() - before, 40000)


class Watcher:
    """The states that a Watch tells, as they come, and how it ends."""

    def __init__(self, channel, service=""):
        self.states = []
        self.end = self.details = None
        call = channel.unary_stream("/grpc.health.v1.Health/Watch",
                                    request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
                                    response_deserializer=Health.FromString)
        self.call = call(health_pb2.HealthCheckRequest(service=service))
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        try:
            for state in self.call:
                self.states.append(state.status)
        except grpc.RpcError as end:
            self.details = dict(end.trailing_metadata() or ()).get("grpc-status-details-bin")
            self.end = end.code()

    def tells(self, *states):
        wait_for(lambda: self.states == list(states), 60, "%s, but there is %s" % (states, self.states))


def check(channel, service=""):
    call = channel.unary_unary("/grpc.health.v1.Health/Check",
                               request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
                               response_deserializer=Health.FromString)
    return call(health_pb2.HealthCheckRequest(service=service), timeout=60).status


class Probes(ClientTest):
    def test_check(self):
        for service in ("", CONTROL_PLANE):
            self.assertEqual(check(self.client.channel, service), Health.SERVING)
        self.refused(grpc.StatusCode.NOT_FOUND, "*service not found*", check, self.client.channel, "no.such.Service")

    def test_watch_tells_at_once_and_can_be_cancelled(self):
        for service, state in (("", Health.SERVING), (CONTROL_PLANE, Health.SERVING),
                               ("no.such.Service", Health.SERVICE_UNKNOWN)):
            watcher = Watcher(self.client.channel, service)
            watcher.tells(state)
            watcher.call.cancel()
            watcher.thread.join(60)
            self.assertEqual(watcher.end, grpc.StatusCode.CANCELLED)

    def test_a_deadline_ends_a_watch(self):
        raw = Raw(world.proxy.address)
        self.addCleanup(raw.close)
        fields, body = raw.call(request(path="/grpc.health.v1.Health/Watch", grpc_timeout="200m"), EMPTY)
        self.assertEqual(fields["grpc-status"], "4")
        self.assertEqual(body, message(b"\x08\x01"))

    def test_a_connection_has_so_many_watches(self):
        raw = Raw(world.proxy.address)
        self.addCleanup(raw.close)
        watch = request(path="/grpc.health.v1.Health/Watch")
        streams = [raw.open(watch, body=EMPTY) for _ in range(100)]
        raw.wait(lambda: all(s in raw.body for s in streams))
        fields, _ = raw.call(watch)
        self.assertEqual((fields["grpc-status"], fields["grpc-message"]),
                         ("8", "a connection has at most 100 calls of Watch open; end some first"))
        raw.send(frame(RST_STREAM, 0, streams[50], b"\0\0\0\x08"))
        again = raw.open(watch, body=EMPTY)
        raw.wait(lambda: again in raw.body or again in raw.ended)
        self.assertEqual(raw.body.get(again), message(b"\x08\x01"))

    def test_changes_and_the_drain_are_told(self):
        shard = world.make_shard("probed", "log_min_messages = fatal")
        self.addCleanup(shard.stop)
        proxy = Proxy(world.AREA, topology(shard), name="probed", WIGGLE_DRAIN_GRACE_MILLIS=3_600_000).start()
        self.addCleanup(proxy.stop)
        client = Client(proxy.address)
        self.addCleanup(client.close)

        def control(what):
            subprocess.run(["pg_ctl", "-D", os.path.join(shard.folder, "data"), "-m", "fast", "-w", "-s", what, "-l",
                            os.path.join(shard.folder, "log")], check=True,
                           stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        watchers = [Watcher(client.channel, s) for s in ("", CONTROL_PLANE, "other")]
        watchers[1].tells(Health.SERVING)
        control("stop")
        for watcher in watchers[:2]:
            watcher.tells(Health.SERVING, Health.NOT_SERVING)
        self.assertEqual(check(client.channel), Health.NOT_SERVING)
        control("restart")
        for watcher in watchers[:2]:
            watcher.tells(Health.SERVING, Health.NOT_SERVING, Health.SERVING)
        # A chat that nobody ends does not hold the drain up either.
        raw = Raw(proxy.address)
        self.addCleanup(raw.close)
        chat = raw.open(request(path="/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"))
        raw.send(frame(DATA, 0, chat, message(Ask(list_services="").SerializeToString())))
        raw.wait(lambda: chat in raw.body)
        self.assertEqual(proxy.stop(), 0)
        for watcher in watchers:
            watcher.thread.join(60)
            self.assertEqual(watcher.end, grpc.StatusCode.UNAVAILABLE)
            self.assertIn(b"google.rpc.RetryInfo", watcher.details)
        self.assertEqual(watchers[0].states[3:], [Health.NOT_SERVING])
        self.assertEqual(watchers[2].states, [Health.SERVICE_UNKNOWN] * 2)
        raw.wait(lambda: chat in raw.ended)
        self.assertEqual(raw.headers[chat]["grpc-status"], "14")


class Compression(ClientTest):
    def setUp(self):
        super().setUp()
        self.raw = Raw(world.proxy.address, settings=b"\0\4\0\x10\0\0")	# windows of 1 MB
        self.addCleanup(self.raw.close)

    def call(self, rpc, payload, flag=1, **fields):
        return self.raw.call(request(rpc, **fields), message(payload, flag=flag))

    def test_grpcio_with_gzip(self):
        name = self.define("a")
        client = Client(world.proxy.address, options=[("grpc.default_compression_algorithm", grpc.Compression.Gzip)])
        self.addCleanup(client.close)
        context = {"text": "again and " * 20000}
        instance = client.start(name, context)
        self.assertEqual(client.context(instance), context)
        task = client.poll_one(name)
        client.report(task, {"text": "fine " * 30000})
        self.assertEqual(self.client.context(instance), {"text": "fine " * 30000})

    def test_replies_are_gzipped_where_it_pays(self):
        name = self.define("a")
        instances = [self.client.start(name, {"text": "x" * 4000}) for _ in range(20)]
        small = pb.GetInstanceRequest(instance_id=instances[0]).SerializeToString()
        large = pb.ListInstancesRequest(workflow=name).SerializeToString()
        cases = [("GetInstance", small, "identity, deflate, gzip", None, False),
                 ("GetInstance", small, "gzip", "gzip", True), ("GetInstance", small, None, "gzip", False),
                 ("GetInstance", small, "identity", "gzip", False),
                 ("ListInstances", large, "identity,deflate,gzip", None, True),
                 ("ListInstances", large, "gzipped", None, False), ("ListInstances", large, None, None, False)]
        for rpc, payload, accepted, sent, gzipped in cases:
            with self.subTest(rpc=rpc, accepted=accepted, sent=sent):
                plain_fields, plain_body = self.call(rpc, payload, flag=0)
                fields, body = self.call(rpc, gzip.compress(payload) if sent else payload, flag=1 if sent else 0,
                                         grpc_accept_encoding=accepted, grpc_encoding=sent)
                self.assertEqual(fields.get("grpc-encoding"), "gzip" if gzipped else None)
                self.assertEqual(body[0], 1 if gzipped else 0)
                self.assertEqual(int.from_bytes(body[1:5], "big"), len(body) - 5)
                self.assertEqual(gzip.decompress(body[5:]) if gzipped else body[5:], plain_body[5:])
                self.assertNotIn("grpc-encoding", plain_fields)

    def test_a_tiny_reply_is_not_worth_it(self):
        fields, body = self.call("HealthCheck", gzip.compress(b""), grpc_encoding="gzip", grpc_accept_encoding="gzip")
        self.assertEqual((fields["grpc-status"], fields.get("grpc-encoding"), body[0]), ("0", None, 0))

    def test_an_uncompressed_message_under_gzip(self):
        fields, _ = self.raw.call(request(grpc_encoding="gzip"), EMPTY)
        self.assertEqual(fields["grpc-status"], "0")

    def test_encodings_that_are_not_there(self):
        for encoding in ("deflate", "snappy", "gzip2", ""):
            fields, _ = self.call("HealthCheck", b"x", grpc_encoding=encoding)
            self.assertEqual(fields["grpc-status"], "12", encoding)
            self.assertEqual(fields["grpc-accept-encoding"], "identity,gzip")
        fields, _ = self.call("HealthCheck", b"x", grpc_encoding="identity")
        self.assertEqual(fields["grpc-status"], "13")

    def test_what_is_no_gzip(self):
        whole = gzip.compress(b"\x0a\x01w")
        wrong_sum = whole[:-8] + b"\0\0\0\0" + whole[-4:]
        for payload in (b"", b"x", whole[:-1], whole[:5], whole + b"more", wrong_sum, zlib.compress(b"\x0a\x01w")):
            fields, _ = self.call("StartInstance", payload, grpc_encoding="gzip")
            self.assertEqual(fields["grpc-status"], "13", payload)
        self.assertEqual(self.raw.status(), "0")

    def test_bounds_hold_for_what_comes_out(self):
        name = self.define("a")
        head = b"\x0a" + bytes([len(name)]) + name.encode()
        before = world.proxy.rss_kb()
        for size, status in ((MAX_MESSAGE, "0"), (MAX_MESSAGE + 1, "8"), (300 * 1024 * 1024, "8")):
            # An unknown field of zeros brings the message to its size.
            rest = size - len(head) - 6
            squeeze = zlib.compressobj(9, zlib.DEFLATED, 31)
            payload = squeeze.compress(head + b"\x8a\x7d" + self.varint4(rest))
            for at in range(0, rest, 1 << 20):
                payload += squeeze.compress(bytes(min(1 << 20, rest - at)))
            payload += squeeze.flush()
            fields, _ = self.call("StartInstance", payload, grpc_encoding="gzip")
            self.assertEqual(fields["grpc-status"], status, fields)
        self.assertIn("WIGGLE_MAX_MESSAGE_BYTES", fields["grpc-message"])
        self.assertLess(world.proxy.rss_kb() - before, 40000)

    @staticmethod
    def varint4(n):
        return bytes([n & 127 | 128, n >> 7 & 127 | 128, n >> 14 & 127 | 128, n >> 21])


class Envelope(ClientTest):
    def test_unknown_fields_are_no_offence(self):
        for field in (b"\xf8\x7d\x01", b"\xfa\x7d\x03abc", b"\xfd\x7d\0\0\0\0", b"\xf9\x7d" + bytes(8)):
            raw = self.client.channel.unary_unary("/%s/HealthCheck" % CONTROL_PLANE,
                                                  response_deserializer=pb.HealthStatus.FromString)
            self.assertEqual(raw(field, timeout=60).status, "UP")

    def test_metadata_of_all_kinds(self):
        metadata = [("x-request-id", "1"), ("x-request-id", "2"), ("trace-bin", b"\0\1\xff"), ("authorization", "Bearer x")]
        _, method = self.client.method("HealthCheck")
        reply, call = method.with_call(pb.Empty(), metadata=metadata, timeout=60)
        self.assertEqual(reply.status, "UP")
        self.assertEqual(list(call.initial_metadata()), [])

    def test_messages_of_refusals_come_as_they_were_meant(self):
        for name in ("vollkommen unbekannt: äöü €", "100%", "tab\tand\nline", "漢字 🙂"):
            self.refused(grpc.StatusCode.NOT_FOUND, "workflow '%s' not found" % name, self.client.start, name)

    def test_details_stand_beside_refusals(self):
        def field(number, content):
            return bytes([number << 3 | 2, len(content)]) + content

        def info(reason):
            return field(3, field(1, b"type.googleapis.com/google.rpc.ErrorInfo") +
                         field(2, field(1, reason) + field(2, b"wiggle")))
        again = field(3, field(1, b"type.googleapis.com/google.rpc.RetryInfo") + field(2, field(1, b"\x08\x01")))
        for instance, code, expected in (("nothing", 5, info(b"NOT_FOUND")),
                                         ("wfi.s99.01m8mfs6nv209np4j3trex", 14, info(b"NOTHING_APPLIED") + again)):
            with self.assertRaises(grpc.RpcError) as refusal:
                self.client.get(instance)
            self.assertEqual(dict(refusal.exception.trailing_metadata())["grpc-status-details-bin"],
                             bytes([8, code]) + field(2, refusal.exception.details().encode()) + expected)
        _, method = self.client.method("HealthCheck")
        self.assertEqual(list(method.with_call(pb.Empty(), timeout=60)[1].trailing_metadata()), [])

    def test_a_refusal_is_headers_alone(self):
        raw = Raw(world.proxy.address)
        self.addCleanup(raw.close)
        stream = raw.open(request("StartInstance"), body=message(b"\x0a\x07nothing"))
        raw.wait(lambda: stream in raw.ended)
        self.assertNotIn(stream, raw.body)
        fields = raw.headers[stream]
        self.assertEqual((fields[":status"], fields["content-type"], fields["grpc-status"]),
                         ("200", "application/grpc", "5"))

    def test_timeouts_of_every_unit(self):
        raw = Raw(world.proxy.address)
        self.addCleanup(raw.close)
        for timeout in ("99999999H", "1M", "60S", "60000m", "60000000u", "99999999n"):
            self.assertEqual(raw.status(request(grpc_timeout=timeout)), "0", timeout)
        for timeout in ("123456789S", "S", "1", "1.5S", "-1S", "1s", ""):
            self.assertEqual(raw.status(request(grpc_timeout=timeout)), "3", timeout)

    def test_what_is_too_large_for_the_client_is_told_by_the_server(self):
        name = self.define("a")
        self.refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "*WIGGLE_MAX_MESSAGE_BYTES*", self.client.start, name,
                     {"text": "x" * (MAX_MESSAGE + 1)})
        self.assertEqual(self.client.call("HealthCheck").status, "UP")
