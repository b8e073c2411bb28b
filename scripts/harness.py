"""Private clusters and proxies for the client tests and the benchmark.

Runs as the unprivileged user in the staged tree: scripts/cluster.sh and the
private installation on PATH do the work. Nothing here sleeps for a fixed time;
waits poll a condition and have a deadline.
"""
import atexit
import contextlib
import json
import os
import random
import signal
import socket
import ssl
import subprocess
import time
import urllib.request

TREE = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))


def wait_for(condition, seconds=60.0, what="the condition"):
    """Poll until condition() is true and return its value."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise TimeoutError("%s did not come true within %g s" % (what, seconds))
        time.sleep(0.01)


_ports = set()


def free_port():
    """
    A port that nobody holds, below those that the kernel gives to connections. It stays free until its proxy listens,
    which may be long after: clusters have the ports below (lib.sh), the second of two runs at once the odd ones.
    """
    while True:
        port = random.randrange(26000, 32000, 2) + int(os.environ.get("WIGGLE_TEST_RUN", "0")) % 2
        if port in _ports:
            continue
        _ports.add(port)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


def unverified():
    """TLS to a proxy of ours, whose certificate is none of the caller's concern."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


_started = []


def interruptible():
    """Let the signals that end a run do so as Ctrl-C does: cleaned up. A shell's background begins with SIGINT ignored."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)


@atexit.register
def end_what_is_left():
    """An interrupted test cleans up nothing."""
    for server in reversed(_started):
        server.end()


class Cluster:
    """One PostgreSQL cluster with the extension's library preloaded.

    `host` is where proxies reach it; `within` is put before its commands, to run it in another network.
    """

    def __init__(self, folder, *settings, host="127.0.0.1", within=()):
        self.folder, self.host, self.within = os.path.abspath(folder), host, list(within)
        self._shell("cluster_init", *settings)

    def _shell(self, function, *arguments):
        script = ("root=$1; . $root/scripts/lib.sh; . $root/scripts/cluster.sh; "
                  "function=$2; shift 2; $function \"$@\"")
        subprocess.run([*self.within, "sh", "-ec", script, "sh", TREE, function, self.folder, *arguments],
                       check=True, stdin=subprocess.DEVNULL)

    def start(self):
        _started.append(self)
        self._shell("cluster_start")
        return self

    def stop(self):
        self._shell("cluster_stop")

    end = stop

    @property
    def data(self):
        return os.path.join(self.folder, "data")

    def start_again(self):
        """Start on the same port, with what was there, once the last one's processes have gone."""
        argv = [*self.within, "pg_ctl", "-D", self.data, "-l", os.path.join(self.folder, "log"), "-w", "-s",
                "-o", "-p %d -k %s" % (self.port, self.socket), "start"]
        wait_for(lambda: subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, check=False).returncode == 0, 60,
                 "a restart of " + self.folder)
        return self

    def processes(self):
        """The postmaster's process id, then its children's."""
        pid = self.postmaster
        with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as f:
            return [pid] + [int(child) for child in f.read().split()]

    def kill(self):
        """SIGKILL for the postmaster and all that it has started."""
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _file(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as f:
            return f.read().strip()

    @property
    def port(self):
        return int(self._file("port"))

    @property
    def password(self):
        return self._file("password")

    @property
    def postmaster(self):
        return int(self._file("data/postmaster.pid").split()[0])

    @property
    def socket(self):
        return os.readlink(os.path.join(self.folder, "socket"))

    def conninfo(self, database="wiggle"):
        return "host=%s port=%d user=wiggle dbname=%s" % (self.socket, self.port, database)

    def psql(self, sql, database="wiggle", **variables):
        """Run SQL (with :'name' variables) and return the unaligned output."""
        argv = ["psql", "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-d", self.conninfo(database)]
        for name, value in variables.items():
            argv += ["-v", "%s=%s" % (name, value)]
        done = subprocess.run(argv, input=sql, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if done.returncode != 0:
            raise RuntimeError("psql: %s" % done.stderr.strip())
        return done.stdout.strip()

    @contextlib.contextmanager
    def holding(self, sql, database="wiggle"):
        """In this block a transaction that has run the statement, as to take a lock, is open."""
        session = subprocess.Popen(["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", self.conninfo(database)],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            session.stdin.write("begin;\n%s;\nselect 'held';\n" % sql)
            session.stdin.flush()
            if session.stdout.readline() != "held\n":
                raise RuntimeError("psql ended at: %s" % sql)
            yield
        finally:
            session.communicate()

    def log(self):
        return self._file("log")


class Standby(Cluster):
    """A streaming standby of a running cluster; start() it."""

    def __init__(self, folder, primary):
        self.folder, self.host, self.within = os.path.abspath(folder), primary.host, primary.within
        self._shell("cluster_copy", primary.folder)

    def promote(self):
        subprocess.run(["pg_ctl", "-D", self.data, "-w", "-s", "promote"], check=True, stdin=subprocess.DEVNULL)


def topology(*clusters, generations=None):
    """The tutorial's document for these clusters; the first one is home."""
    shards = [{"id": i, "state": "active", "roles": ["instances", "home"] if i == 0 else ["instances"],
               "primary": {"url": "jdbc:postgresql://%s:%d/wiggle" % (c.host, c.port),
                           "user": "wiggle", "password": c.password}} for i, c in enumerate(clusters)]
    return {"shards": shards,
            "generations": generations or [{"id": 1, "activeFrom": "2026-01-01T00:00:00Z",
                                            "weights": {str(i): 1 for i in range(len(clusters))}}]}


class Waiting:
    """From here on a proxy has nothing to do but to wait. One that spins uses all of the time, this one may use a fifth."""

    def __init__(self, proxy):
        self.proxy, self.since, self.used = proxy, time.monotonic(), proxy.cpu_seconds()

    def lasts(self, seconds):
        """Let it wait until so much time has gone since then."""
        wait_for(lambda: time.monotonic() >= self.since + seconds, 2 * seconds, "%g s" % seconds)

    def is_quiet(self, test):
        passed, used = time.monotonic() - self.since, self.proxy.cpu_seconds() - self.used
        test.assertLess(used, passed / 5, "processor time of %s in %.1f s" % (self.proxy.name, passed))


class Proxy:
    """One wiggle-proxy process; its log is FOLDER/NAME.log. `host` and `within` as with clusters."""

    def __init__(self, folder, document, name="proxy", host="127.0.0.1", within=(), **settings):
        self.host, self.within = host, list(within)
        self.folder, self.name, self.settings = os.path.abspath(folder), name, settings
        self.document = document
        self.process = None
        self.port = self.second_port = None

    @property
    def address(self):
        return "%s:%d" % (self.host, self.port)

    @property
    def log_path(self):
        return os.path.join(self.folder, self.name + ".log")

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def start(self, wait=True, address=None):
        """At free ports, or at the pair of address: those of a proxy that has ended."""
        topology_path = os.path.join(self.folder, self.name + ".topology.json")
        with open(topology_path, "w", encoding="utf-8") as f:
            json.dump(self.document, f, indent=2)
        for _ in range(3):
            self.port, self.second_port = address or (free_port(), free_port())
            env = {k: v for k, v in os.environ.items() if not k.startswith("WIGGLE_")}
            env.update(WIGGLE_STORAGE_TOPOLOGY=topology_path, WIGGLE_BIND=self.host,
                       WIGGLE_PORT=str(self.port), WIGGLE_DASHBOARD_PORT=str(self.second_port))
            env.update({k: str(v) for k, v in self.settings.items()})
            _started.append(self)
            with open(self.log_path, "ab") as log:
                self.process = subprocess.Popen([*self.within, "wiggle-proxy"], env=env, stdin=subprocess.DEVNULL,
                                                stdout=log, stderr=log)
            if not wait or self._comes_up():
                return self
        raise RuntimeError("wiggle-proxy did not come up:\n" + self.log()[-4000:])

    def _comes_up(self):
        wait_for(lambda: self.process.poll() is not None or self.ready(), 60, "a ready proxy")
        return self.process.poll() is None

    def http(self, path, timeout=5):
        """(status, text) of the second port, None when nobody answers."""
        tls = "WIGGLE_TLS_KEYSTORE" in self.settings
        request = "%s://%s:%d%s" % ("https" if tls else "http", self.host, self.second_port, path)
        try:
            with urllib.request.urlopen(request, timeout=timeout, context=unverified() if tls else None) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read().decode()
        except OSError:
            return None

    def serves(self):
        """What a probe of /readyz finds: home, and one shard at least."""
        answer = self.http("/readyz")
        return answer is not None and answer[0] == 200

    def ready(self):
        """Every part of it is there, which /readyz does not ask for."""
        answer = self.http("/readyz")
        if answer is None:
            return False
        body = json.loads(answer[1])
        return not body["draining"] and all(part["ready"] for part in body["parts"])

    def metric(self, name):
        """The sum over all labels, or of one when the name bears them."""
        return sum(float(line.rsplit(" ", 1)[1]) for line in self.http("/metrics", timeout=60)[1].splitlines()
                   if line.startswith((name + " ", name + "{")))

    def cpu_seconds(self):
        """Processor time that the process has used."""
        with open("/proc/%d/stat" % self.process.pid, encoding="ascii", errors="replace") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_kb(self):
        with open("/proc/%d/status" % self.process.pid, encoding="ascii") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))

    def end(self):
        if self.process is not None and self.process.poll() is None:
            self.kill()

    def stop(self, seconds=60):
        """SIGTERM and wait; the exit status."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
        return self.process.returncode

    def kill(self):
        self.process.kill()
        self.process.wait()

    @contextlib.contextmanager
    def standing_still(self):
        """The process does not run in this block: what is sent to it waits and comes all at once."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)
