"""Calls without a gRPC client: JSON by HTTP/1.1 on the second port, and by curl's HTTP/2 on the first."""
import http.client
import json
import subprocess

SERVICE = "/com.wiggle.proto.WiggleControlPlane/"
JSON = "application/json"


class Refused(Exception):
    """A refusal: HTTP status, Connect's code, message."""

    def __init__(self, answer):
        self.status, self.code, self.message = answer.status, answer.body["code"], answer.body["message"]
        super().__init__("%d %s: %s" % (self.status, self.code, self.message))


class Answer:
    def __init__(self, status, headers, raw):
        self.status, self.raw = status, raw
        self.headers = {name.lower(): value for name, value in headers}
        self.body = json.loads(raw) if self.headers.get("content-type") == JSON else raw


class Door:
    def __init__(self, proxy):
        self.proxy = proxy

    def send(self, rpc, body=b"{}", kind=JSON, method="POST", path=None, timeout=60, **headers):
        """The answer to a request as it is; _ in header names is -."""
        if not isinstance(body, bytes):
            body = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        if kind is not None:
            fields["content-type"] = kind
        return self.exchange(method, path or SERVICE + rpc, body, fields, timeout)

    def call(self, rpc, request=None, **more):
        """The reply to a request, both as Python has JSON."""
        answer = self.send(rpc, {} if request is None else request, **more)
        if answer.status != 200:
            raise Refused(answer)
        return answer.body


class Http1(Door):
    def connect(self, timeout=60):
        return http.client.HTTPConnection("127.0.0.1", self.proxy.second_port, timeout=timeout)

    def exchange(self, method, path, body, headers, timeout):
        connection = self.connect(timeout)
        try:
            connection.request(method, path, body, headers, encode_chunked="transfer-encoding" in headers)
            reply = connection.getresponse()
            return Answer(reply.status, reply.getheaders(), reply.read())
        finally:
            connection.close()


class Http2(Door):
    def exchange(self, method, path, body, headers, timeout):
        command = ["curl", "-sS", "--http2-prior-knowledge", "-X", method, "--max-time", str(timeout),
                   "-D", "/dev/stderr", "--data-binary", "@-", "-H", "Expect:"]
        for name in {"content-type": None, **headers}:
            command += ["-H", "%s:%s" % (name, " " + headers[name] if name in headers else "")]
        command.append("http://%s%s" % (self.proxy.address, path))
        done = subprocess.run(command, input=body, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        first, *lines = done.stderr.decode().strip().splitlines()
        return Answer(int(first.split()[1]), [line.split(": ", 1) for line in lines if ": " in line], done.stdout)
