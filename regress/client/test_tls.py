"""TLS on both ports: real clients, certificates of openssl's making, and their change while calls go on."""
import contextlib
import http.client
import os
import re
import signal
import socket
import ssl
import subprocess
import threading

import grpc

import world
from certs import Authority, read, write_private
from harness import Proxy, topology, wait_for
from test_cli import wiggle
from wigclient import Client, ClientTest, fresh_name, value

PASSWORD = "a secret of nobody's"
ours = theirs = server = None


def setUpModule():
    global ours, theirs, server
    ours = Authority(os.path.join(world.AREA, "ca"), "Ours")
    theirs = Authority(os.path.join(world.AREA, "other_ca"), "Theirs")
    server = ours.issue("server")


class TlsTest(ClientTest):
    def proxy(self, ready=True, **settings):
        proxy = Proxy(world.AREA, topology(world.lone), name=fresh_name("tls"), WIGGLE_STARTUP_TIMEOUT_MILLIS=60000,
                      **settings)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(proxy.log_path)   # of a former run in the same folder
        proxy.start(wait=ready)
        self.addCleanup(proxy.stop)
        return proxy

    def secure(self, proxy, credentials=None, **more):
        client = Client(proxy.address, credentials=credentials or ours.credentials(), **more)
        self.addCleanup(client.close)
        return client

    def usual(self, **more):
        """A proxy whose certificate and key are two files, as Kubernetes has them."""
        return self.proxy(WIGGLE_TLS_KEYSTORE=server.chain, WIGGLE_TLS_KEY=server.key, **more)

    def unavailable(self, client, text):
        with self.assertRaises(grpc.RpcError) as caught:
            client.call("HealthCheck")
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE, caught.exception.details())
        if text:
            self.assertIn(text, caught.exception.details())


def s_client(proxy, *arguments, port=None):
    """What openssl's client says of a handshake, and how it ended."""
    done = subprocess.run(["openssl", "s_client", "-connect", "127.0.0.1:%d" % (port or proxy.port), "-CAfile", ours.root,
                           *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=60, check=False)
    return done.returncode, done.stdout


def raw(proxy, data, port=None):
    """Everything that comes back until the server closes."""
    with socket.create_connection(("127.0.0.1", port or proxy.port), timeout=60) as s:
        s.sendall(data)
        got = b""
        with contextlib.suppress(ConnectionResetError):
            while chunk := s.recv(65536):
                got += chunk
    return got


class Calls(TlsTest):
    def test_calls_small_and_large_go_through(self):
        proxy = self.usual()
        self.assertIn("gRPC: TLS,", proxy.log())
        client = self.secure(proxy, options=[("grpc.max_receive_message_length", -1)])
        name = fresh_name()
        client.register({"name": name, "version": 1, "startNode": "a", "queues": [name], "nodes": [
            {"id": "a", "kind": "TASK", "name": "a", "activity": "a", "queue": name, "next": "e"},
            {"id": "e", "kind": "END", "name": "e", "success": True}]})
        text = "0123456789abcdef" * 131072
        started = [client.future("StartInstance", workflow=name, context=value({"text": text})) for _ in range(6)]
        ids = {f.result().instance_id for f in started}
        read_back = [client.future("GetInstance", instance_id=i) for i in ids]
        for f in read_back:
            self.assertEqual(f.result().instance.context.struct_value["text"], text)
        tasks = client.poll(name, max=6, wait=15000)
        self.assertLessEqual({t.instance_id for t in tasks}, ids)

    def test_versions_and_protocols(self):
        proxy = self.usual()
        for version, works in (("-tls1_3", True), ("-tls1_2", True), ("-tls1_1", False)):
            with self.subTest(version=version):
                status, said = s_client(proxy, version, "-alpn", "h2", "-verify_return_error", "-cipher", "ALL:@SECLEVEL=0")
                self.assertEqual("ALPN protocol: h2" in said, works, said)
                if works:
                    self.assertIn("Verify return code: 0 (ok)", said)
                    self.assertEqual(status, 0, said)
        for offered in ((), ("-alpn", "http/1.1")):
            with self.subTest(offered=offered):
                self.assertIn("alert no application protocol", s_client(proxy, *offered)[1])
        second = proxy.second_port
        self.assertIn("ALPN protocol: http/1.1", s_client(proxy, "-alpn", "h2,http/1.1", port=second)[1])
        self.assertIn("No ALPN negotiated", s_client(proxy, port=second)[1])
        self.assertIn("alert no application protocol", s_client(proxy, "-alpn", "h2", port=second)[1])

    def test_plaintext_and_tls_confused_end_with_a_line_in_the_log(self):
        proxy = self.usual()
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
        self.assertEqual(raw(proxy, preface), b"")
        self.assertIn(b"This port speaks HTTP/2 in TLS.", raw(proxy, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
        self.assertIn(b"This port speaks HTTPS.", raw(proxy, b"GET /healthz HTTP/1.1\r\n\r\n", port=proxy.second_port))
        wait_for(lambda: proxy.log().count("a plaintext client on the TLS port") == 3, what="three lines in the log")
        plain = Client(proxy.address)
        self.addCleanup(plain.close)
        self.unavailable(plain, None)
        before = world.single.log().count("a TLS client on the plaintext port")
        self.assertNotEqual(s_client(world.single, "-alpn", "h2")[0], 0)
        wait_for(lambda: world.single.log().count("a TLS client on the plaintext port") > before, what="a line in the log")
        self.assertEqual(raw(proxy, b"\x16\x03\x01\x00\x05nonsense" + b"x" * 100)[:1], b"\x15", "a TLS alert")

    def test_a_silent_client_is_cut_off_and_counts_as_a_connection(self):
        # the bound on the handshake is far below that on the HTTP/2 greeting behind it
        proxy = self.usual(WIGGLE_TLS_HANDSHAKE_MILLIS=300, WIGGLE_MAX_CONNECTIONS=2)
        before = proxy.log().count("the TLS handshake was not over in time")
        for port in (proxy.port, proxy.second_port):
            with socket.create_connection(("127.0.0.1", port), timeout=20) as s:
                self.assertEqual(s.recv(1), b"")
        self.assertEqual(proxy.log().count("the TLS handshake was not over in time"), before + 2)
        proxy = self.usual(WIGGLE_MAX_CONNECTIONS=2)
        with contextlib.ExitStack() as held:
            for _ in range(2):
                held.enter_context(socket.create_connection(("127.0.0.1", proxy.port), timeout=20))
            wait_for(lambda: "wiggle_proxy_connections 2" in proxy.http("/metrics")[1], what="two connections")
            self.assertEqual(raw(proxy, b""), b"")
        self.assertIn("WIGGLE_MAX_CONNECTIONS", proxy.log())


class ClientCertificates(TlsTest):
    def test_required(self):
        proxy = self.usual(WIGGLE_TLS_TRUSTSTORE=ours.root)
        self.assertIn("gRPC: TLS with client certificates,", proxy.log())
        self.assertEqual(self.secure(proxy, ours.credentials(ours.issue("worker"))).call("HealthCheck").status, "UP")
        wrong = theirs.issue("worker")
        self.unavailable(self.secure(proxy, grpc.ssl_channel_credentials(read(ours.root), read(wrong.key),
                                                                          read(wrong.chain))), None)
        self.unavailable(self.secure(proxy), None)
        wait_for(lambda: "peer did not return a certificate" in proxy.log(), what="the reason in the log")
        self.assertIn("the peer's certificate is refused: ", proxy.log())

    def test_optional(self):
        proxy = self.usual(WIGGLE_TLS_TRUSTSTORE=ours.root, WIGGLE_TLS_CLIENT_AUTH="optional")
        self.assertEqual(self.secure(proxy, ours.credentials(ours.issue("worker"))).call("HealthCheck").status, "UP")
        self.assertEqual(self.secure(proxy).call("HealthCheck").status, "UP")
        wrong = theirs.issue("worker")
        self.unavailable(self.secure(proxy, grpc.ssl_channel_credentials(read(ours.root), read(wrong.key),
                                                                          read(wrong.chain))), None)

    def test_second_port(self):
        proxy = self.usual(WIGGLE_TLS_TRUSTSTORE=ours.root)
        self.assertEqual(proxy.http("/healthz")[0], 200)
        worker = ours.issue("worker")
        body = b'{"text": "%s"}' % (b"x" * 1000000)
        for identity, status in ((None, 401), (worker, 200)):
            context = ssl.create_default_context(cafile=ours.root)
            if identity is not None:
                context.load_cert_chain(identity.chain, identity.key)
            connection = http.client.HTTPSConnection("localhost", proxy.second_port, timeout=60, context=context)
            for _ in range(2):
                connection.request("POST", "/com.wiggle.proto.WiggleControlPlane/ListWorkflows", b"{}",
                                   {"content-type": "application/json"})
                answer = connection.getresponse()
                text = answer.read()
                self.assertEqual(answer.status, status, text)
            connection.close()
        context = ssl.create_default_context(cafile=ours.root)
        context.load_cert_chain(worker.chain, worker.key)
        connection = http.client.HTTPSConnection("localhost", proxy.second_port, timeout=60, context=context)
        connection.request("POST", "/com.wiggle.proto.WiggleControlPlane/SearchInstances", body,
                           {"content-type": "application/json"})
        answer = connection.getresponse()
        self.assertIn(b"search is not enabled", answer.read())
        connection.close()


CALL = ("POST /com.wiggle.proto.WiggleControlPlane/%s HTTP/1.1\r\nHost: localhost\r\n"
        "Content-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s")


def posted(rpc, body="{}", close=False):
    return (CALL % (rpc, "Connection: close\r\n" if close else "", len(body), body)).encode()


def sockets(proxy):
    """The inodes of those that the process has."""
    folder, found = "/proc/%d/fd" % proxy.process.pid, set()
    for fd in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):
            found.update(re.findall(r"^socket:\[(\d+)\]", os.readlink(os.path.join(folder, fd))))
    return found


def its_end(s):
    """The inode of the other end of a connection on this machine, "0" until it is taken."""
    ends = ["%04X" % end[1] for end in (s.getpeername(), s.getsockname())]
    with open("/proc/net/tcp", encoding="ascii") as f:
        for line in f:
            fields = line.split()
            if [address.split(":")[-1] for address in fields[1:3]] == ends:
                return fields[9]
    return "0"


class Sealed:
    """A client of the second port that says goodbye, in TLS, without to wait for the server's."""

    def __init__(self, port, identity):
        context = ssl.create_default_context(cafile=ours.root)
        context.load_cert_chain(identity.chain, identity.key)
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.received, self.sealed = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.received, self.sealed, server_hostname="localhost")
        while not self._goes(self.tls.do_handshake):
            self.received.write(self.socket.recv(65536))

    def _goes(self, step, *arguments):
        """Has the step been done, or does it want to hear more?"""
        try:
            step(*arguments)
            return True
        except ssl.SSLWantReadError:
            return False
        finally:
            self.socket.sendall(self.sealed.read())

    def send(self, data):
        self._goes(self.tls.write, data)

    def goodbye(self):
        self._goes(self.tls.unwrap)

    def rest(self):
        """What comes until the server's goodbye."""
        got = b""
        while True:
            try:
                piece = self.tls.read(65536)
            except ssl.SSLWantReadError:
                data = self.socket.recv(65536)
                self.received.write(data) if data else self.received.write_eof()
                continue
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return got
            if not piece:
                return got
            got += piece


class SecondPort(TlsTest):
    """Callers of the second port, in bytes, where the order of what happens counts."""

    server = "single"

    def start(self, **more):
        return self.usual(WIGGLE_TLS_TRUSTSTORE=ours.root, **more)

    def greet(self, proxy, identity=None, s=None):
        context = ssl.create_default_context(cafile=ours.root)
        if identity is not None:
            context.load_cert_chain(identity.chain, identity.key)
        s = context.wrap_socket(s or socket.create_connection(("127.0.0.1", proxy.second_port), timeout=60),
                                server_hostname="localhost")
        self.addCleanup(s.close)
        return s

    def connects(self, proxy, port):
        """A connection that the process has taken."""
        s = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.addCleanup(s.close)
        wait_for(lambda: its_end(s) in sockets(proxy), what="the proxy to take the connection")
        return s

    def test_nobody_is_taken_for_a_client_whose_connection_ends(self):
        proxy = self.start()
        # The daemon's end of the first connection is closed, ours lingers; its number and a lower
        # one are free then, and the next pair of sockets gets both.
        lower = self.connects(proxy, proxy.port)
        strangers = [self.connects(proxy, proxy.second_port) for _ in range(3)]
        first = self.greet(proxy, ours.issue("worker"))
        first.sendall(posted("ListWorkflows", close=True))
        got = b""
        while chunk := first.recv(65536):
            got += chunk
        self.assertTrue(got.startswith(b"HTTP/1.1 200 "), got)
        end = its_end(lower)
        lower.close()
        wait_for(lambda: end not in sockets(proxy), what="its end to be closed")
        for s in strangers:
            s = self.greet(proxy, s=s)
            s.sendall(posted("ListWorkflows"))
            got = s.recv(65536)
            self.assertTrue(got.startswith(b"HTTP/1.1 401 "), "a caller without a certificate got: %s" % got)

    def test_callers_leave_while_they_are_looked_up(self):
        # The program of "make asan" tells when a call has something of a connection that is gone. For that the answer
        # must come just when the client leaves, hence so many; a call of another kind takes about as long as a lookup.
        proxy = self.start(WIGGLE_GRPC_AUTH="enforce", WIGGLE_AUTH_CACHE_MILLIS=0)
        worker = ours.issue("nobody")

        def come_and_go(client):
            for _ in range(40):
                s = self.greet(proxy, worker)
                s.sendall(posted("ListWorkflows"))
                client.call("HealthCheck")
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                s.close()
        for done in [self.in_background(come_and_go, self.secure(proxy, ours.credentials(worker))) for _ in range(8)]:
            done()
        wait_for(lambda: "wiggle_proxy_http_calls 0" in proxy.http("/metrics")[1], what="the calls' end")
        self.assertIsNone(proxy.process.poll(), proxy.log()[-4000:])

    def test_a_client_that_sends_no_more_is_answered(self):
        proxy, worker, name = self.start(), ours.issue("worker"), self.define("a")
        request = posted("StartInstance", '{"workflow":"%s"}' % name)
        for goodbye in (False, True):
            with self.subTest(goodbye=goodbye):
                s = Sealed(proxy.second_port, worker)
                self.addCleanup(s.socket.close)
                s.send(request)
                if goodbye:
                    s.goodbye()
                else:
                    s.socket.shutdown(socket.SHUT_WR)
                got = s.rest()
                self.assertTrue(got.startswith(b"HTTP/1.1 200 "), got)
                self.assertIn(self.client.poll_one(name).instance_id.encode(), got)


class Files(TlsTest):
    def ends(self, text, **settings):
        proxy = Proxy(world.AREA, topology(world.lone), name=fresh_name("tls-refused"), **settings)
        proxy.start(wait=False)
        self.assertEqual(proxy.process.wait(60), 2, proxy.log())
        self.assertIn(text, proxy.log())
        self.assertNotIn(PASSWORD, proxy.log())

    def path(self, name, data=b"", mode=0o600):
        path = os.path.join(world.AREA, fresh_name(name))
        with open(path, "wb") as f:
            f.write(data)
        os.chmod(path, mode)
        return path

    def test_one_file_of_pem_or_pkcs12(self):
        pem = server.both(self.path("both.pem"))
        p12 = server.pkcs12(self.path("server.p12"), PASSWORD)
        trust = self.path("trust.p12")
        subprocess.run(["openssl", "pkcs12", "-export", "-nokeys", "-in", ours.root, "-out", trust,
                        "-passout", "pass:" + PASSWORD], check=True)
        worker = ours.credentials(ours.issue("worker"))
        for settings in ({"WIGGLE_TLS_KEYSTORE": pem},
                         {"WIGGLE_TLS_KEYSTORE": p12, "WIGGLE_TLS_KEYSTORE_PASSWORD": PASSWORD},
                         {"WIGGLE_TLS_KEYSTORE": p12, "WIGGLE_TLS_KEYSTORE_PASSWORD": PASSWORD,
                          "WIGGLE_TLS_TRUSTSTORE": trust, "WIGGLE_TLS_TRUSTSTORE_PASSWORD": PASSWORD}):
            with self.subTest(settings=sorted(settings)):
                self.assertEqual(self.secure(self.proxy(**settings), worker).call("HealthCheck").status, "UP")

    def test_an_encrypted_key(self):
        locked = self.path("locked.key")
        subprocess.run(["openssl", "pkey", "-in", server.key, "-aes256", "-passout", "pass:" + PASSWORD, "-out", locked],
                       check=True)
        files = {"WIGGLE_TLS_KEYSTORE": server.chain, "WIGGLE_TLS_KEY": locked}
        proxy = self.proxy(WIGGLE_TLS_KEYSTORE_PASSWORD=PASSWORD, **files)
        self.assertEqual(self.secure(proxy).call("HealthCheck").status, "UP")
        self.ends("WIGGLE_TLS_KEYSTORE_PASSWORD must be its password", **files)

    def test_refusals_say_what_to_do(self):
        jks = self.path("server.jks", b"\xfe\xed\xfe\xed\0\0\0\2", 0o644)
        open_key = self.path("open.key", read(server.key), 0o644)
        p12 = server.pkcs12(self.path("server.p12"), PASSWORD)
        other = ours.issue("other")
        half = self.path("half.pem", read(server.chain)[:200])
        for text, settings in (
                ("keytool -importkeystore -srckeystore %s -destkeystore %s.p12 -deststoretype PKCS12" % (jks, jks),
                 {"WIGGLE_TLS_KEYSTORE": jks}),
                ("its mode must be 0600 or less", {"WIGGLE_TLS_KEYSTORE": server.chain, "WIGGLE_TLS_KEY": open_key}),
                ("does not open with the password in WIGGLE_TLS_KEYSTORE_PASSWORD",
                 {"WIGGLE_TLS_KEYSTORE": p12, "WIGGLE_TLS_KEYSTORE_PASSWORD": "another"}),
                ("does not belong to the first certificate", {"WIGGLE_TLS_KEYSTORE": server.chain, "WIGGLE_TLS_KEY": other.key}),
                ("if it has a file of its own, WIGGLE_TLS_KEY names it",
                 {"WIGGLE_TLS_KEYSTORE": self.path("c.pem", read(server.chain), 0o644)}),
                ("a certificate in '%s' cannot be read" % half, {"WIGGLE_TLS_KEYSTORE": half, "WIGGLE_TLS_KEY": server.key}),
                ("is neither PEM nor PKCS#12", {"WIGGLE_TLS_KEYSTORE": self.path("junk", b"junk")}),
                ("cannot open '/no/such/file'", {"WIGGLE_TLS_KEYSTORE": "/no/such/file"}),
                ("there is no certificate in '%s'" % server.key,
                 {"WIGGLE_TLS_KEYSTORE": server.chain, "WIGGLE_TLS_KEY": server.key, "WIGGLE_TLS_TRUSTSTORE": server.key}),
                ("WIGGLE_TLS_TRUSTSTORE is set, but not WIGGLE_TLS_KEYSTORE", {"WIGGLE_TLS_TRUSTSTORE": ours.root}),
                ("WIGGLE_TLS_TRUSTSTORE, which says whose certificates hold, is not set",
                 {"WIGGLE_TLS_KEYSTORE": server.chain, "WIGGLE_TLS_KEY": server.key, "WIGGLE_TLS_CLIENT_AUTH": "optional"})):
            with self.subTest(text=text):
                self.ends(text, **settings)


def served(port):
    """The serial number of the certificate that a new connection gets."""
    context = ssl.create_default_context(cafile=ours.root)
    context.set_alpn_protocols(["h2"])
    with socket.create_connection(("127.0.0.1", port), timeout=60) as s:
        with context.wrap_socket(s, server_hostname="localhost") as tls:
            return tls.getpeercert()["serialNumber"]


class Reload(TlsTest):
    def setUp(self):
        super().setUp()
        self.file = os.path.join(world.AREA, fresh_name("renewed"))
        self.first = ours.issue(fresh_name("first"))
        self.first.both(self.file)
        self.running = self.proxy(WIGGLE_TLS_KEYSTORE=self.file)

    @contextlib.contextmanager
    def load(self):
        """Calls on one connection that stays and on many that come and go; none may fail."""
        over, failures, done = threading.Event(), [], [0, 0]

        def stay():
            while not over.is_set():
                self.lasting.call("HealthCheck")
                done[0] += 1

        def come_and_go():
            while not over.is_set():
                client = Client(self.running.address, credentials=ours.credentials(),
                                options=[("grpc.use_local_subchannel_pool", 1)])
                client.call("HealthCheck")
                client.close()
                done[1] += 1

        def run(body):
            try:
                body()
            except Exception as failure:
                failures.append(failure)
        self.lasting = self.secure(self.running)
        self.lasting.call("HealthCheck")
        threads = [threading.Thread(target=run, args=(body,)) for body in (stay, come_and_go)]
        for thread in threads:
            thread.start()
        try:
            yield done
        finally:
            over.set()
            for thread in threads:
                thread.join(60)
        self.assertEqual(failures, [])

    def test_new_files_are_taken_under_load_and_old_connections_stay(self):
        second = ours.issue(fresh_name("second"))
        with self.load() as done:
            self.assertEqual(served(self.running.port), self.first.serial)
            second.both(self.file)
            wait_for(lambda: served(self.running.port) == second.serial, what="the new certificate")
            before = list(done)
            wait_for(lambda: done[0] > before[0] and done[1] > before[1], what="calls after the change")
        self.assertNotIn("ERROR", self.running.log())

    def test_broken_files_change_nothing_and_are_told(self):
        with self.load() as done:
            write_private(self.file, read(self.first.chain) + b"-----BEGIN PRIVATE KEY-----\nnonsense\n")
            wait_for(lambda: "the certificates in use stay: " in self.running.log(), what="an error in the log")
            self.assertEqual(served(self.running.port), self.first.serial)
            before = done[1]
            wait_for(lambda: done[1] > before, what="new connections after the change")
        self.assertIn("wiggle_proxy_tls_reloads_refused_total 1", self.running.http("/metrics")[1])
        self.assertIn("wiggle_proxy_tls_files_refused 1\n", self.running.http("/metrics")[1])
        ours.issue(fresh_name("mended")).both(self.file)
        wait_for(lambda: "wiggle_proxy_tls_files_refused 0\n" in self.running.http("/metrics")[1], what="files that are taken")

    def test_hangup_reads_them_at_once(self):
        told = self.running.log().count("using the certificate in")
        self.running.process.send_signal(signal.SIGHUP)
        wait_for(lambda: self.running.log().count("using the certificate in") > told, what="the certificate, read again")


class Commands(TlsTest):
    """The wiggle command."""

    def ends(self, status, proxy, *arguments, **more):
        done = wiggle("cluster", *arguments, server=proxy.address, WIGGLE_RPC_MAX_ATTEMPTS="1", **more)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stderr

    def test_tls(self):
        proxy = self.usual()
        self.ends(0, proxy, "--tls-truststore", ours.root)
        self.ends(0, proxy, WIGGLE_TLS_TRUSTSTORE=ours.root)
        self.ends(0, proxy, "--tls-truststore", ours.root, "--tls-server-name", "localhost")
        self.assertIn("hostname mismatch", self.ends(3, proxy, "--tls-truststore", ours.root, "--tls-server-name", "elsewhere"))
        self.assertIn("the peer's certificate is refused: ", self.ends(3, proxy, "--tls-truststore", theirs.root))
        self.assertIn("the peer's certificate is refused: ", self.ends(3, proxy, "--tls"))
        self.assertIn("If it speaks TLS, say --tls", self.ends(3, proxy))
        self.assertIn("does it speak TLS?", self.ends(3, world.single, "--tls"))
        self.assertIn("--tls-truststore: cannot open '/no/such/file'", self.ends(2, proxy, "--tls-truststore", "/no/such/file"))
        self.assertIn("WIGGLE_TLS is 'maybe'", self.ends(2, proxy, WIGGLE_TLS="maybe"))

    def test_a_client_certificate(self):
        proxy = self.usual(WIGGLE_TLS_TRUSTSTORE=ours.root)
        worker = ours.issue("worker")
        store = worker.pkcs12(os.path.join(world.AREA, fresh_name("worker.p12")), PASSWORD)
        trust = ("--tls-truststore", ours.root)
        self.ends(0, proxy, *trust, "--tls-keystore", worker.chain, "--tls-key", worker.key)
        self.ends(0, proxy, *trust, "--tls-keystore", store, WIGGLE_TLS_KEYSTORE_PASSWORD=PASSWORD)
        self.assertIn("certificate required", self.ends(3, proxy, *trust))
        self.assertIn("but not the certificate", self.ends(2, proxy, *trust, "--tls-key", worker.key))


class Databases(TlsTest):
    """sslmode and its files, in the URL of a database, are libpq's."""

    @classmethod
    def setUpClass(cls):
        key = os.path.join(world.AREA, "database.key")
        identity = ours.issue("database", hosts="IP:127.0.0.1")
        write_private(key, read(identity.key))
        cls.cluster = world.make_shard("sealed", "ssl = on", "ssl_cert_file = '%s'" % identity.chain,
                                       "ssl_key_file = '%s'" % key)
        cls.addClassCleanup(cls.cluster.stop)

    def through(self, cluster, parameters, ready=True, **settings):
        document = topology(cluster)
        document["shards"][0]["primary"]["url"] += "?" + parameters
        proxy = Proxy(world.AREA, document, name=fresh_name("database"), **settings)
        proxy.start(wait=ready)
        self.addCleanup(proxy.stop)
        return proxy

    def test_the_connection_is_as_the_url_says(self):
        for parameters, sealed in (("sslmode=disable", "f"), ("sslmode=require", "t"),
                                   ("sslmode=verify-full&sslrootcert=" + ours.root, "t")):
            with self.subTest(parameters=parameters):
                proxy = self.through(self.cluster, parameters)
                self.assertEqual(self.cluster.psql(
                    "select distinct ssl from pg_stat_ssl join pg_stat_activity using (pid)"
                    " where application_name ~ '^wiggle' and backend_type = 'client backend'"), sealed)
                proxy.stop()

    def test_a_database_that_cannot_prove_itself_is_not_used(self):
        for cluster, parameters, text in (
                (self.cluster, "sslmode=verify-full&sslrootcert=" + theirs.root, "certificate verify failed"),
                (world.lone, "sslmode=require", "server does not support SSL")):
            with self.subTest(parameters=parameters):
                proxy = self.through(cluster, parameters, ready=False, WIGGLE_STARTUP_TIMEOUT_MILLIS=60000)
                wait_for(lambda p=proxy, t=text: t in p.log(), what="the reason in the log")
                self.assertEqual(proxy.http("/readyz")[0], 503)
