"""The proxy and clients that are not quite gRPC, broken, or hostile.

After each offence a well-behaved client on another connection is served.
"""
import os
import resource
import socket
import struct
import time
import unittest

import world
from harness import Proxy, topology, wait_for
from rawh2 import (CONTINUATION, DATA, EMPTY, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, HEADERS, NO_ERROR,
                   PING, PREFACE, PRIORITY, PROTOCOL_ERROR, RST_STREAM, SERVICE, SETTINGS, Raw, frame, literal,
                   message, request)
from wigclient import Client, flow, fresh_name

OK, CANCELLED, INVALID, DEADLINE, EXHAUSTED, UNIMPLEMENTED, INTERNAL = "0", "1", "3", "4", "8", "12", "13"
MAX_MESSAGE = 4 * 1024 * 1024
HOUR = 3_600_000


def varint(n):
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)


def poll_message(queue, wait=20000):
    """PollRequest{worker_id: raw, queues: [queue], max: 1, wait_millis: wait}"""
    raw = b"\x0a\x03raw\x12" + varint(len(queue)) + queue.encode() + b"\x18\x01\x28" + varint(wait)
    return message(raw)


class WireTest(unittest.TestCase):
    def setUp(self):
        self.proxy = world.proxy

    def connect(self, **options):
        raw = Raw(self.proxy.address, **options)
        self.addCleanup(raw.close)
        return raw

    def own_proxy(self, **settings):
        self.proxy = Proxy(world.AREA, topology(*world.shards), name=self.id().split(".")[-1], **settings).start()
        self.addCleanup(self.proxy.stop)

    def others_are_served(self):
        fields, body = self.connect().call()
        self.assertEqual(fields.get("grpc-status"), OK)
        self.assertIn(b"UP", body)


class Envelope(WireTest):
    def test_reply_has_what_clients_need_and_no_more(self):
        fields, body = self.connect().call()
        self.assertEqual(fields, {":status": "200", "content-type": "application/grpc", "grpc-status": "0"})
        self.assertEqual(body[0], 0)
        self.assertEqual(int.from_bytes(body[1:5], "big"), len(body) - 5)

    def test_content_types(self):
        for kind in ("application/grpc", "application/grpc+proto", "application/grpc;x=y"):
            with self.subTest(kind=kind):
                self.assertEqual(self.connect().status(request(content_type=kind)), OK)
        for kind in (None, "application/grpcx", "application/grpc-web", "application/grpc+json"):
            with self.subTest(kind=kind):
                fields, _ = self.connect().call(request(content_type=kind))
                self.assertEqual(fields[":status"], "415")
                self.assertEqual(fields["content-type"], "application/grpc")
                self.assertEqual(fields["grpc-status"], INVALID)

    def test_other_methods_than_post(self):
        raw = self.connect()
        for method in ("GET", "PUT", "OPTIONS"):
            fields, _ = raw.call(request(method=method))
            self.assertEqual((fields[":status"], fields["grpc-status"]), ("405", UNIMPLEMENTED))
        self.assertEqual(raw.status(), OK)

    def test_te_is_not_insisted_on(self):
        self.assertEqual(self.connect().status(request(te=None)), OK)

    def test_paths(self):
        raw = self.connect()
        for path in ("/", "/x", SERVICE, SERVICE + "NoSuchCall", "/grpc.health.v1.Health/Nothing", "/" + "x" * 10000):
            with self.subTest(path=path[:60]):
                self.assertEqual(raw.status(request(path=path)), UNIMPLEMENTED)
        self.assertEqual(raw.status(), OK)

    def test_http1_gets_an_answer_that_a_person_can_read(self):
        raw = self.connect(greet=False)
        raw.socket.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = b""
        while True:
            data = raw.socket.recv(65536)
            if not data:
                break
            answer += data
        head, body = answer.split(b"\r\n\r\n", 1)
        self.assertTrue(head.startswith(b"HTTP/1.1 505 "))
        self.assertIn(b"Content-Length: %d" % len(body), head)
        self.assertIn(b"gRPC", body)

    def test_tls_on_the_plaintext_port(self):
        raw = self.connect(greet=False)
        raw.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 500)
        self.assertTrue(raw.wait_closed())
        self.others_are_served()

    def test_timeout_on_the_server(self):
        raw = self.connect()
        self.assertEqual(raw.status(request("PollTasks", grpc_timeout="200m"), poll_message("nobody")), DEADLINE)
        self.assertEqual(raw.status(request(grpc_timeout="soon")), INVALID)
        self.assertEqual(raw.status(request(grpc_timeout="100S")), OK)


class Framing(WireTest):
    def refused(self, body, status):
        raw = self.connect()
        fields, _ = raw.call(body=body)
        self.assertEqual(fields.get("grpc-status"), status, fields)
        self.assertEqual(raw.status(), OK)	# the connection lives
        return fields

    def test_headers_alone(self):
        raw = self.connect()
        stream = raw.open(end=True)
        raw.wait(lambda: stream in raw.ended)
        self.assertEqual(raw.headers[stream]["grpc-status"], INTERNAL)

    def test_half_close_without_a_message(self):
        self.refused(b"", INTERNAL)

    def test_truncated(self):
        self.refused(b"\0\0\0", INTERNAL)
        self.refused(message(b"abc", length=4), INTERNAL)

    def test_two_messages(self):
        self.refused(EMPTY + EMPTY, INTERNAL)

    def test_not_a_prefix(self):
        self.refused(b"\0http" + b"x" * 10, EXHAUSTED)
        self.refused(message(b"", flag=2), INTERNAL)
        self.refused(b"\0\xff\xff\xff\xff", EXHAUSTED)

    def test_compressed(self):
        self.refused(message(b"x", flag=1), INTERNAL)	# but the header fields name no encoding

    def test_too_large_is_told_at_once_and_the_rest_is_not_wanted(self):
        raw = self.connect()
        stream = raw.open()
        raw.send(frame(DATA, 0, stream, message(b"x" * 100, length=MAX_MESSAGE + 1)))
        raw.wait(lambda: stream in raw.resets)
        self.assertIn(stream, raw.ended)
        self.assertEqual(raw.headers[stream]["grpc-status"], EXHAUSTED)
        self.assertEqual(raw.resets[stream], NO_ERROR)
        raw.send(frame(DATA, 0, stream, b"y" * 10000))
        self.assertEqual(raw.status(), OK)

    def test_a_message_in_single_bytes(self):
        raw = self.connect()
        stream = raw.open()
        for byte in EMPTY:
            raw.send(frame(DATA, 0, stream, bytes([byte])))
        raw.send(frame(DATA, END_STREAM, stream))
        raw.wait(lambda: stream in raw.ended)
        self.assertEqual(raw.headers[stream]["grpc-status"], OK)

    def test_claimed_lengths_cost_no_memory(self):
        before = self.proxy.rss_kb()
        raw = self.connect()
        for _ in range(900):
            stream = raw.open()
            raw.send(frame(DATA, 0, stream, message(b"x", length=MAX_MESSAGE)))
        self.others_are_served()
        self.assertLess(self.proxy.rss_kb() - before, 20000)


class Sizes(WireTest):
    """Requests about the limit; one that is over it is refused alone, on its stream."""

    def setUp(self):
        super().setUp()
        client = Client(self.proxy.address)
        self.addCleanup(client.close)
        self.name = fresh_name("size")
        client.register(flow(self.name, "a"))

    def start_request(self, size):
        """A StartInstanceRequest of so many bytes, for the most part a string in the context."""
        head = b"\x0a" + varint(len(self.name)) + self.name.encode()
        text = size - len(head) - 1 - 4 - 1 - 4		# two tags and two lengths of four bytes
        out = head + b"\x12" + varint(text + 5) + b"\x1a" + varint(text) + b"x" * text
        self.assertEqual(len(out), size)
        return message(out)

    def test_requests_about_four_mebibytes(self):
        raw = self.connect()
        poll = raw.open(request("PollTasks"), body=poll_message("nobody"))
        for size, status in ((MAX_MESSAGE - 1, OK), (MAX_MESSAGE, OK), (MAX_MESSAGE + 1, EXHAUSTED),
                             (16 * MAX_MESSAGE, EXHAUSTED)):
            with self.subTest(size=size):
                before = self.proxy.rss_kb()
                fields, _ = raw.call(request("StartInstance"), self.start_request(size))
                self.assertEqual(fields.get("grpc-status"), status, fields)
                if size > 2 * MAX_MESSAGE:
                    self.assertLess(self.proxy.rss_kb() - before, 20000, "it is not kept")
        self.assertEqual(raw.goaways, [])
        self.assertNotIn(poll, raw.ended)
        self.assertEqual(raw.status(), OK)


class Keepalive(WireTest):
    def test_pings_are_answered_idle_and_during_a_poll(self):
        raw = self.connect()
        stream = raw.open(request("PollTasks"), body=poll_message("nobody"))
        for i in range(200):
            raw.send(frame(PING, 0, 0, struct.pack(">Q", i)))
            raw.wait(lambda i=i: len(raw.pongs) == i + 1)
        self.assertEqual(raw.goaways, [])
        self.assertNotIn(stream, raw.ended)

    def test_a_wait_ends_before_whatever_is_between_loses_patience(self):
        """Relays reset streams that are quiet for long; an hour is asked for, and the server's bound holds."""
        self.own_proxy(WIGGLE_LONGPOLL_MAX_MILLIS=200)
        fields, body = self.connect().call(request("PollTasks"), poll_message("nobody", HOUR))
        self.assertEqual(fields["grpc-status"], OK)
        self.assertEqual(body, EMPTY)

    def test_a_ping_for_each_reply_is_no_flood(self):
        raw = self.connect()
        for _ in range(3000):
            raw.send(frame(PING, 0, 0, b"bandwidt"))
            self.assertEqual(raw.status(), OK)
        self.assertEqual(raw.goaways, [])

    def test_a_ping_flood_ends_in_enhance_your_calm(self):
        raw = self.connect()
        for _ in range(1000):	# more than are allowed in a quarter of an hour
            if raw.closed:
                break
            raw.send(frame(PING, 0, 0, b"12345678") * 100)
        self.assertTrue(raw.wait_closed())
        self.assertEqual(raw.goaways[-1][1], ENHANCE_YOUR_CALM)
        self.others_are_served()

    def test_a_thousand_polls_leave_room_for_a_call(self):
        raw = self.connect()
        for _ in range(999):
            raw.open(request("PollTasks"), body=poll_message("nobody"))
        self.assertEqual(raw.status(), OK)
        self.assertEqual(len(raw.ended), 1, "no poll had to end for it")

    def test_calls_sent_before_the_servers_settings_arrive(self):
        raw = self.connect(greet=False)
        out = PREFACE + frame(SETTINGS)
        for i in range(300):
            out += frame(HEADERS, END_HEADERS, 2 * i + 1, request()) + frame(DATA, END_STREAM, 2 * i + 1, EMPTY)
        raw.send(out)
        raw.wait(lambda: len(raw.ended) == 300)
        self.assertEqual({h["grpc-status"] for h in raw.headers.values()}, {OK})

    def test_cancelling_a_thousand_polls_harms_no_call(self):
        raw = self.connect()
        for _ in range(3):
            polls = [raw.open(request("PollTasks"), body=poll_message("nobody")) for _ in range(900)]
            raw.send(b"".join(frame(RST_STREAM, 0, s, struct.pack(">I", 8)) for s in polls))
            self.assertEqual(raw.status(), OK)
        self.assertEqual(raw.goaways, [])


class Floods(WireTest):
    def closed(self, raw):
        self.assertTrue(raw.wait_closed())
        self.others_are_served()

    def test_continuations_without_an_end(self):
        for frames in (20, 100000):		# eight are allowed
            raw = self.connect()
            raw.send(frame(HEADERS, 0, 1, b"\x82"))
            raw.send(frame(CONTINUATION, 0, 1) * frames)
            self.closed(raw)

    def test_large_metadata(self):
        raw = self.connect()
        self.assertEqual(raw.status(request() + literal("x-big", "y" * 8000)), OK)
        stream = raw.open(request() + literal("x-big", "y" * 8000) + literal("x-more", "y" * 8000), body=EMPTY)
        raw.wait(lambda: stream in raw.ended)
        self.assertEqual(raw.headers[stream]["grpc-status"], EXHAUSTED)
        self.assertEqual(raw.status(), OK)

    def send_block(self, raw, block):
        """A request whose header block takes as many frames as it needs: (grpc-status, reset with) of its stream."""
        stream, raw.next_stream = raw.next_stream, raw.next_stream + 2
        pieces = [block[i:i + 16384] for i in range(0, len(block), 16384)]
        raw.send(b"".join(frame(HEADERS if i == 0 else CONTINUATION, END_HEADERS if i == len(pieces) - 1 else 0, stream, piece)
                          for i, piece in enumerate(pieces)) + frame(DATA, END_STREAM, stream, EMPTY))
        raw.wait(lambda: stream in raw.ended or stream in raw.resets or raw.closed)
        return raw.headers.get(stream, {}).get("grpc-status"), raw.resets.get(stream)

    def test_ten_thousand_small_fields(self):
        """Each costs 34 bytes: what is too much ends its own stream, and the tables of both sides stay in step."""
        raw = self.connect()
        for fields, status in ((400, OK), (1000, EXHAUSTED), (3000, None), (10000, None)):
            with self.subTest(fields=fields):
                got, reset = self.send_block(raw, request() + literal("a", "b") * fields)
                self.assertEqual(got, status)
                self.assertEqual(reset is not None, status is None)
                self.assertEqual(raw.status(request() + literal("x-%d" % fields, "kept", index=True)), OK)
        self.assertEqual(raw.goaways, [])
        self.others_are_served()

    def test_metadata_in_eight_full_continuations(self):
        memory = self.proxy.rss_kb()
        raw = self.connect()
        block = request()
        while len(block) < 8 * 16384:
            block += literal("x-more", "y" * 4000)
        block += literal("x-last", "y" * (9 * 16384 - len(block) - 11))
        self.assertEqual(len(block), 9 * 16384)
        status, _ = self.send_block(raw, block)
        self.assertNotEqual(status, OK)
        self.others_are_served()
        self.assertLess(self.proxy.rss_kb() - memory, 20000)

    def test_a_megabyte_of_metadata(self):
        """More frames than are allowed: of fields that are short each, and of one that never ends."""
        for block in (b"".join(literal("x-%d" % i, "y" * 4000) for i in range(260)), literal("x-big", "y" * (1 << 20))):
            raw = self.connect()
            status, _ = self.send_block(raw, request() + block)
            self.assertNotEqual(status, OK)
            self.closed(raw)

    def test_a_header_bomb(self):
        """A field of 4,000 bytes, entered in the table once and named 16,000 times."""
        memory = self.proxy.rss_kb()
        raw = self.connect()
        self.assertEqual(raw.status(request() + literal("x-bomb", "b" * 3900, index=True)), OK)
        stream = raw.open(request() + b"\xbe" * 16000, body=EMPTY)
        raw.wait(lambda: stream in raw.resets or stream in raw.ended or raw.closed)
        self.assertNotEqual(raw.headers.get(stream, {}).get("grpc-status"), OK)
        self.others_are_served()
        self.assertLess(self.proxy.rss_kb() - memory, 20000)

    def test_a_huge_header_table(self):
        raw = self.connect(settings=struct.pack(">HI", 1, 1 << 31))
        for _ in range(100):
            self.assertEqual(raw.status(), OK)

    def test_broken_requests(self):
        for block in (request() + literal("X-Upper", "x"), request() + literal(":path", "/twice"),
                      request(path=None), request(method=None), request(path=""), literal("late", "x") + request()):
            raw = self.connect()
            stream = raw.open(block, body=EMPTY)
            raw.wait(lambda raw=raw, stream=stream: stream in raw.resets or stream in raw.ended or raw.closed)
            self.assertNotEqual(raw.headers.get(stream, {}).get("grpc-status"), OK)
        raw = self.connect()
        raw.send(frame(HEADERS, 0, 1, request()) + frame(CONTINUATION, END_HEADERS, 3, b""))
        self.closed(raw)
        self.assertEqual(raw.goaways[-1][1], PROTOCOL_ERROR)

    def test_garbage_behind_the_greeting(self):
        raw = self.connect()
        raw.send(os.urandom(100000))
        self.closed(raw)

    def test_empty_frames(self):
        raw = self.connect()
        stream = raw.open()
        raw.send(frame(DATA, 0, stream) * 5000)
        self.closed(raw)
        raw = self.connect()
        raw.send(frame(PRIORITY, 0, 3, b"\0\0\0\0\1") * 5000)
        self.closed(raw)
        raw = self.connect()
        raw.send(frame(SETTINGS) * 5000)
        self.closed(raw)

    def test_rapid_reset(self):
        self.own_proxy(WIGGLE_MAX_RESETS_BURST=500, WIGGLE_MAX_RESETS_RATE=100)
        raw = self.connect()
        for _ in range(2000):
            if raw.closed:
                break
            stream = raw.open(request("PollTasks"), body=poll_message("nobody"))
            raw.send(frame(RST_STREAM, 0, stream, struct.pack(">I", 8)))
        self.closed(raw)
        self.assertTrue(raw.goaways)


class Bounds(WireTest):
    def test_connections(self):
        self.own_proxy(WIGGLE_MAX_CONNECTIONS=3)
        held = [self.connect() for _ in range(3)]
        for raw in held:
            self.assertEqual(raw.status(), OK)
        self.assertTrue(self.connect().wait_closed())
        held.pop().close()

        def served():
            raw = Raw(self.proxy.address)
            try:
                return raw.status() == OK
            finally:
                raw.close()
        wait_for(served, 60, "room for a connection")

    def test_a_reader_that_takes_nothing_is_cut_off(self):
        self.own_proxy(WIGGLE_STALLED_WRITE_MILLIS=500)
        raw = self.connect(settings=struct.pack(">HI", 4, 0))	# stream windows of nothing
        begin = time.monotonic()
        for _ in range(100):
            raw.open(body=EMPTY)
        self.assertTrue(raw.wait_closed())
        self.assertGreater(time.monotonic() - begin, 0.3)
        self.others_are_served()

    def test_a_reader_of_no_socket_costs_bounded_memory(self):
        self.own_proxy(WIGGLE_STALLED_WRITE_MILLIS=1000)
        self.others_are_served()
        before = self.proxy.rss_kb()
        raw = self.connect(receive_buffer=4096)
        one = b"".join(frame(HEADERS, END_HEADERS, 2 * i + 1, request()) + frame(DATA, END_STREAM, 2 * i + 1, EMPTY)
                       for i in range(50000))
        raw.send_deaf(one, 3)
        self.assertLess(self.proxy.rss_kb() - before, 30000)
        self.others_are_served()
        raw.socket.settimeout(60)
        try:
            while raw.socket.recv(65536):
                pass
        except socket.timeout:
            self.fail("still connected")
        except OSError:
            pass

    def test_idle_connections_are_left_alone(self):
        self.own_proxy(WIGGLE_STALLED_WRITE_MILLIS=300)
        raw = self.connect()
        self.assertEqual(raw.status(), OK)
        poll = raw.open(request("PollTasks"), body=poll_message("nobody", 2000))
        raw.wait(lambda: poll in raw.ended)
        self.assertEqual(raw.headers[poll]["grpc-status"], OK)
        self.assertEqual(raw.status(), OK)


class SmallStack(WireTest):
    """Nothing that a client sends makes the proxy recurse deeper than a megabyte of stack."""

    def setUp(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
        resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_STACK, (soft, hard))
        self.own_proxy()

    @staticmethod
    def nested(levels, inner, *tags):
        """levels times the length-delimited fields of tags (innermost first) around inner."""
        heads, size = [inner], len(inner)
        for _ in range(levels):
            for tag in tags:
                heads.append(tag + varint(size) if isinstance(tag, bytes) else tag(size))
                size += len(heads[-1])
        return b"".join(reversed(heads))

    def test_values_and_messages_within_each_other(self):
        raw = self.connect()
        lists = self.nested(100000, b"\x08\x00", b"\x0a", b"\x32")
        objects = self.nested(100000, b"\x08\x00", b"\x12", lambda n: b"\x0a" + varint(n + 3) + b"\x0a\x01a", b"\x2a")
        steps = self.nested(300000, b"", b"\x4a")
        cases = [("StartInstance", b"\x0a\x01w" + self.nested(1, lists, b"\x12")),
                 ("StartInstance", b"\x0a\x01w" + self.nested(1, objects, b"\x12")),
                 ("RegisterWorkflow", self.nested(1, objects[objects.index(b"\x0a"):], b"\x0a")),
                 ("ReportSteps", self.nested(1, steps, b"\x1a", b"\x42", b"\x1a", b"\x0a"))]
        for rpc, body in cases:
            self.assertLess(len(body), MAX_MESSAGE)
            self.assertEqual(raw.status(request(rpc), message(body)), INVALID, rpc)
        self.assertEqual(raw.status(), OK)


class Ending(WireTest):
    def test_the_steps_of_a_drain(self):
        self.own_proxy(WIGGLE_LONGPOLL_MAX_MILLIS=HOUR, WIGGLE_DRAIN_GRACE_MILLIS=HOUR)
        raw = self.connect()
        self.assertEqual(raw.status(), OK)
        poll = raw.open(request("PollTasks"), body=poll_message("nobody", HOUR))
        self.assertEqual(raw.status(), OK)
        self.proxy.process.terminate()
        self.assertTrue(raw.wait_closed())
        self.assertEqual(raw.goaways[0], (0x7fffffff, NO_ERROR))
        self.assertEqual(raw.goaways[-1][1], NO_ERROR)
        self.assertLess(raw.goaways[-1][0], 0x7fffffff)
        self.assertEqual(raw.headers[poll]["grpc-status"], OK)
        self.assertEqual(self.proxy.process.wait(60), 0)

    def test_a_second_signal_does_not_wait(self):
        self.own_proxy(WIGGLE_DRAIN_GRACE_MILLIS=HOUR)
        raw = self.connect()
        raw.open()				# a request that never ends
        self.assertEqual(raw.status(), OK)
        self.proxy.process.terminate()
        wait_for(lambda: '"draining":true' in self.proxy.http("/api/cluster")[1], 60, "the drain to begin")
        self.assertIsNone(self.proxy.process.poll())
        self.proxy.process.terminate()
        self.assertEqual(self.proxy.process.wait(60), 1)

    def test_the_grace_period_ends(self):
        self.own_proxy(WIGGLE_DRAIN_GRACE_MILLIS=300)
        raw = self.connect()
        raw.open()
        self.assertEqual(raw.status(), OK)
        self.proxy.process.terminate()
        self.assertEqual(self.proxy.process.wait(60), 1)
        self.assertIn("grace period", self.proxy.log())
