"""HTTP/2 by hand: frames as bytes, so that a test can be as rude as it likes.

Header blocks are written as literals; those of replies are read by nghttp2's
decompressor. Nothing here knows gRPC beyond the five bytes before a message.
"""
import ctypes
import ctypes.util
import select
import socket
import struct
import time

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS = 1, 1, 4
NO_ERROR, PROTOCOL_ERROR, REFUSED_STREAM, ENHANCE_YOUR_CALM = 0, 1, 7, 11

SERVICE = "/com.wiggle.proto.WiggleControlPlane/"
EMPTY = b"\0\0\0\0\0"


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def integer(value, bits, first=0):
    limit = (1 << bits) - 1
    if value < limit:
        return bytes([first | value])
    out = [first | limit]
    value -= limit
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + [value])


def literal(name, value, index=False):
    """One header field; with index it also enters the receiver's table."""
    out = b"\x40" if index else b"\x00"
    for text in (name, value):
        raw = text if isinstance(text, bytes) else text.encode()
        out += integer(len(raw), 7) + raw
    return out


def message(payload, flag=0, length=None):
    return struct.pack(">BI", flag, len(payload) if length is None else length) + payload


def request(rpc="HealthCheck", **changes):
    """The usual header fields; a change to None leaves one out, _ in names is -."""
    fields = {":method": "POST", ":scheme": "http", ":path": SERVICE + rpc, ":authority": "test",
              "te": "trailers", "content-type": "application/grpc"}
    for name, value in changes.items():
        name = name.replace("_", "-")
        fields[":" + name if ":" + name in fields else name] = value
    return b"".join(literal(n, v) for n, v in fields.items() if v is not None)


class _Nv(ctypes.Structure):
    _fields_ = [("name", ctypes.c_void_p), ("value", ctypes.c_void_p), ("namelen", ctypes.c_size_t),
                ("valuelen", ctypes.c_size_t), ("flags", ctypes.c_uint8)]


class Inflater:
    lib = ctypes.CDLL(ctypes.util.find_library("nghttp2"))

    def __init__(self):
        self.handle = ctypes.c_void_p()
        assert self.lib.nghttp2_hd_inflate_new(ctypes.byref(self.handle)) == 0
        self.lib.nghttp2_hd_inflate_hd2.restype = ctypes.c_ssize_t

    def __call__(self, block):
        fields, at = {}, 0
        raw = ctypes.create_string_buffer(block, len(block))
        base = ctypes.addressof(raw)
        while True:
            nv, flags = _Nv(), ctypes.c_int(0)
            n = self.lib.nghttp2_hd_inflate_hd2(self.handle, ctypes.byref(nv), ctypes.byref(flags),
                                                ctypes.c_void_p(base + at), ctypes.c_size_t(len(block) - at), 1)
            assert n >= 0, "the server's header block cannot be read: %d" % n
            at += n
            if flags.value & 2:
                name = ctypes.string_at(nv.name, nv.namelen).decode()
                fields[name] = ctypes.string_at(nv.value, nv.valuelen).decode()
            if flags.value & 1:
                self.lib.nghttp2_hd_inflate_end_headers(self.handle)
                return fields
            assert n > 0 or flags.value & 2


class Raw:
    """One connection. What came is kept per stream and in lists."""

    def __init__(self, address, greet=True, settings=b"", receive_buffer=None):
        host, port = address.rsplit(":", 1)
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.connect((host, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.inflate = Inflater()
        self.buffer = b""
        self.headers, self.body, self.ended, self.resets = {}, {}, set(), {}
        self.pongs, self.goaways, self.settings = [], [], 0
        self.window, self.first_window, self.granted = 65535, 65535, {}
        self.closed = False
        self.next_stream = 1
        if greet:
            self.send(PREFACE + frame(SETTINGS, payload=settings))

    def close(self):
        self.socket.close()

    def send(self, data):
        """Write all, reading meanwhile; a server that has hung up is noted, not raised."""
        view = memoryview(data)
        while view and not self.closed:
            readable, writable, _ = select.select([self.socket], [self.socket], [], 60)
            assert readable or writable, "the server neither reads nor writes"
            if readable:
                self._receive()
            if writable and not self.closed:
                try:
                    view = view[self.socket.send(view[:65536]):]
                except OSError:
                    while not self.closed:	# what it said before it hung up
                        self._receive()

    def send_deaf(self, data, seconds=5):
        """Write without reading anything; returns what was taken."""
        sent, deadline = 0, time.monotonic() + seconds
        while sent < len(data) and time.monotonic() < deadline:
            if not select.select([], [self.socket], [], 0.05)[1]:
                continue
            try:
                sent += self.socket.send(data[sent:sent + 65536])
            except OSError:
                break
        return sent

    def open(self, block=None, end=False, body=None, stream=None):
        """A whole request or its beginning; returns the stream."""
        stream = self.next_stream if stream is None else stream
        self.next_stream = max(self.next_stream, stream + 2)
        out = frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream, request() if block is None else block)
        if body is not None and len(body) <= 16384:
            out += frame(DATA, END_STREAM, stream, body)
            self.window -= len(body)
        self.send(out)
        if body is not None and len(body) > 16384:
            self._upload(stream, body)
        return stream

    def _upload(self, stream, body):
        """A long body in frames, within the windows; stops when the server answers early."""
        sent = 0

        def room():
            return min(self.window, self.first_window + self.granted.get(stream, 0) - sent)
        while sent < len(body) and stream not in self.ended:
            self.wait(lambda: room() > 0 or stream in self.ended)
            piece = body[sent:sent + min(room(), 16384)]
            sent += len(piece)
            self.window -= len(piece)
            self.send(frame(DATA, END_STREAM if sent == len(body) else 0, stream, piece))

    def call(self, block=None, body=EMPTY, seconds=60):
        """A request and its reply: (header fields with the trailers', body)."""
        stream = self.open(block, body=body)
        self.wait(lambda: stream in self.ended or stream in self.resets, seconds)
        return self.headers.get(stream, {}), self.body.get(stream, b"")

    def status(self, block=None, body=EMPTY, seconds=60):
        fields, _ = self.call(block, body, seconds)
        return fields.get("grpc-status")

    def wait(self, condition, seconds=60):
        """Read until the condition holds or the server hangs up; True when it holds."""
        deadline = time.monotonic() + seconds
        while not condition():
            left = deadline - time.monotonic()
            if self.closed:
                return condition()
            assert left > 0, "not within %g s" % seconds
            if select.select([self.socket], [], [], left)[0]:
                self._receive()
        return True

    def wait_closed(self, seconds=60):
        self.wait(lambda: self.closed, seconds)
        return self.closed

    def _receive(self):
        try:
            data = self.socket.recv(262144)
        except OSError:
            data = b""
        if not data:
            self.closed = True
            return
        self.buffer += data
        while len(self.buffer) >= 9:
            size = int.from_bytes(self.buffer[:3], "big")
            if len(self.buffer) < 9 + size:
                break
            kind, flags, stream = struct.unpack(">BBI", self.buffer[3:9])
            payload, self.buffer = self.buffer[9:9 + size], self.buffer[9 + size:]
            self._frame(kind, flags, stream & 0x7fffffff, payload)

    def _frame(self, kind, flags, stream, payload):
        if kind == HEADERS:
            self.headers.setdefault(stream, {}).update(self.inflate(payload))
        elif kind == DATA:
            self.body[stream] = self.body.get(stream, b"") + payload
            if payload:
                credit = struct.pack(">I", len(payload))
                self.send(frame(WINDOW_UPDATE, 0, 0, credit))
        elif kind == RST_STREAM:
            self.resets[stream] = int.from_bytes(payload, "big")
        elif kind == GOAWAY:
            self.goaways.append((int.from_bytes(payload[:4], "big"), int.from_bytes(payload[4:8], "big")))
        elif kind == PING and flags & ACK:
            self.pongs.append(payload)
        elif kind == PING:
            self.send(frame(PING, ACK, 0, payload))
        elif kind == WINDOW_UPDATE and stream == 0:
            self.window += int.from_bytes(payload, "big")
        elif kind == WINDOW_UPDATE:
            self.granted[stream] = self.granted.get(stream, 0) + int.from_bytes(payload, "big")
        elif kind == SETTINGS and not flags & ACK:
            self.settings += 1
            for i in range(0, len(payload), 6):
                key, number = struct.unpack(">HI", payload[i:i + 6])
                if key == 4:
                    self.first_window = number
            self.send(frame(SETTINGS, ACK))
        if kind in (HEADERS, DATA) and flags & END_STREAM:
            self.ended.add(stream)
