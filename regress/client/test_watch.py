"""What operators see: /metrics, the dashboard and alerts made of them, the log, the warning of queues that wait."""
import copy
import json
import os
import re
import signal
import subprocess
import urllib.request

import grpc

import world
from certs import Authority
from harness import TREE, Proxy, topology, wait_for
from wigclient import SERVICE, Client, ClientTest, flow, fresh_name, pb, retry, step_result, value

NAME = re.compile(r"\bwiggle_(?:proxy|shard)_[a-z_]+\b")
SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (-?[0-9.e+]+|[0-9.]+e[-+][0-9]+)')
MARK = "s3kr1t"


class Watched(ClientTest):
    """A proxy of its own on a database of its own, which looks at it ten times a second."""

    server = "single"

    @classmethod
    def setUpClass(cls):
        cls.database = fresh_name("watch").replace("-", "")
        world.lone.psql("create database " + cls.database, "postgres")
        document = topology(world.lone)
        document["shards"][0]["primary"].update(
            url="jdbc:postgresql://127.0.0.1:%d/%s" % (world.lone.port, cls.database))
        cls.proxy = Proxy(world.AREA, document, name=cls.database, WIGGLE_QUEUE_LAG_CHECK_INTERVAL_MILLIS="100ms",
                          WIGGLE_QUEUE_LAG_WARN_MILLIS="300", WIGGLE_LOG_LEVEL="debug", WIGGLE_LOG_FORMAT="json",
                          WIGGLE_GRPC_AUTH="log").start()

    @classmethod
    def tearDownClass(cls):
        status = cls.proxy.stop()
        world.lone.psql("drop database %s with (force)" % cls.database, "postgres")
        assert status == 0, "the proxy ended with %s" % status

    def setUp(self):
        self.client = Client(self.proxy.address)
        self.addCleanup(self.client.close)

    def metrics(self, proxy=None):
        """{(name, labels): value}; every line is one of the format's."""
        status, text = (proxy or self.proxy).http("/metrics")
        self.assertEqual(status, 200)
        found = {}
        for line in text.splitlines():
            if line.startswith("#"):
                self.assertRegex(line, r"^# (HELP [a-z_]+ .+|TYPE [a-z_]+ (counter|gauge|histogram))$")
                continue
            match = SAMPLE.fullmatch(line)
            self.assertIsNotNone(match, line)
            self.assertNotIn((match[1], match[2]), found, "told twice")
            found[match[1], match[2]] = float(match[3])
        return found

    def lines(self):
        return [json.loads(line) for line in self.proxy.log().splitlines()]

    def told(self, part):
        return [line for line in self.lines() if part in line["message"]]


class Metrics(Watched):
    def test_calls_shards_queues_and_the_clock_worker(self):
        name = self.define("a")
        quoted = fresh_name('q"\\')
        self.client.register(flow(quoted, "a"))
        self.client.start(quoted)
        for _ in range(3):
            self.client.start(name)
        self.client.poll_one(name)
        with self.assertRaises(grpc.RpcError):
            self.client.get("wfi.s0.01m446vf3rya1rekthaps4")
        ready = ("wiggle_shard_queue_ready_tasks", 'shard="0",queue="%s"' % name)
        wait_for(lambda: self.metrics().get(ready) == 2, 60, "two ready tasks")
        found = self.metrics()
        self.assertEqual(found["wiggle_shard_queue_ready_tasks",
                               'shard="0",queue="%s"' % quoted.replace("\\", "\\\\").replace('"', '\\"')], 1)
        self.assertGreater(found["wiggle_shard_queue_oldest_seconds", ready[1]], 0)
        self.assertGreaterEqual(found["wiggle_proxy_calls_total", 'method="StartInstance",code="OK"'], 4)
        self.assertEqual(found["wiggle_proxy_calls_total", 'method="GetInstance",code="NOT_FOUND"'], 1)
        self.assertGreaterEqual(found["wiggle_proxy_call_seconds_count", 'method="StartInstance"'], 4)
        self.assertEqual(found["wiggle_proxy_calls_total", 'method="GetInstance",code="INTERNAL"'], 0, "from the start on")
        self.assertEqual(found["wiggle_shard_up", 'shard="0"'], 1)
        self.assertEqual(found["wiggle_shard_clock_running", 'shard="0"'], 1)
        for duty in ("timers", "leases", "schedules", "retention"):
            self.assertGreater(found["wiggle_shard_clock_passes_total", 'shard="0",duty="%s"' % duty], 0, duty)
        self.assertEqual(found["wiggle_shard_clock_errors_total", 'shard="0"'], 0)
        self.assertEqual(found["wiggle_shard_outbox_instances", 'shard="0"'], 0)
        for table in ("wf_ready", "wf_lease", "wf_timer", "wf_token", "wf_instance", "wf_scope"):
            self.assertIn(("wiggle_shard_table_dead_rows", 'shard="0",table="%s"' % table), found)
        wait_for(lambda: self.metrics()["wiggle_proxy_workers", None] >= 1, 60, "a worker that has polled")

    def test_it_says_what_readyz_says(self):
        self.assertEqual(self.metrics()["wiggle_proxy_ready", None], 1)
        document = copy.deepcopy(self.proxy.document)
        document["shards"][0]["primary"]["url"] = "jdbc:postgresql://127.0.0.1:1/wiggle"
        away = Proxy(world.AREA, document, name=self.database + "_away").start(wait=False)
        self.addCleanup(away.stop)
        wait_for(lambda: away.http("/readyz"), 60, "the second port")
        self.assertEqual(away.http("/readyz")[0], 503)
        self.assertEqual(self.metrics(away)["wiggle_proxy_ready", None], 0)

    def test_an_old_snapshot_is_seen(self):
        holder = subprocess.Popen(["psql", "-X", "-q", "-A", "-t", "-d", world.lone.conninfo(self.database)],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(holder.communicate, "rollback;\n")
        holder.stdin.write("begin isolation level repeatable read; select 'held';\n")
        holder.stdin.flush()
        self.assertEqual(holder.stdout.readline(), "held\n")
        wait_for(lambda: self.metrics()["wiggle_shard_oldest_snapshot_seconds", 'shard="0"'] > 1, 60, "its age")

    def with_more(self):
        """One with TLS and with a replica, which have metrics of their own."""
        document = copy.deepcopy(self.proxy.document)
        primary = document["shards"][0]["primary"]
        document["shards"][0]["replicas"] = [{**primary, "url": primary["url"].replace("127.0.0.1", "localhost")}]
        server = Authority(os.path.join(world.AREA, "watch_ca"), "Watch").issue("server")
        proxy = Proxy(world.AREA, document, name=self.database + "_more", WIGGLE_TLS_KEYSTORE=server.chain,
                      WIGGLE_TLS_KEY=server.key).start()
        self.addCleanup(proxy.stop)
        return proxy

    def test_dashboard_and_alerts_use_what_there_is(self):
        self.client.start(self.define("a"))
        wait_for(lambda: any(n == "wiggle_shard_queue_ready_tasks" for n, _ in self.metrics()), 60, "a queue")
        proxies = (self.proxy, self.with_more())
        there = {re.sub("_(bucket|sum|count)$", "", name) for proxy in proxies for name, _ in self.metrics(proxy)}
        with open(os.path.join(TREE, "deploy", "grafana", "wiggle.json"), encoding="utf-8") as f:
            board = json.load(f)
        expressions = [t["expr"] for p in board["panels"] for t in p.get("targets", [])]
        self.assertGreater(len(expressions), 20)
        with open(os.path.join(TREE, "deploy", "prometheus", "wiggle-rules.yml"), encoding="utf-8") as f:
            alerts = re.findall(r"^        expr: (.+)$", f.read(), re.M)
        self.assertGreater(len(alerts), 8)
        for expression in expressions + alerts:
            used = {re.sub("_(bucket|sum|count)$", "", name) for name in NAME.findall(expression)}
            self.assertTrue(used, expression)
            self.assertEqual(used - there, set(), expression)
        with open(os.path.join(TREE, "docs", "configuration.md"), encoding="utf-8") as f:
            documented = {name: set(re.findall(r"\w+", labels)) for name, labels in re.findall(
                r"^\| `(wiggle_\w+)` \| \w+ \| ([^|]*) \|", f.read(), re.M)}
        self.assertEqual(there - set(documented), set(), "metrics without a line in docs/configuration.md")
        for proxy in proxies:
            for name, labels in self.metrics(proxy):
                family = re.sub("_(bucket|sum|count)$", "", name)
                names = set(re.findall(r'(?:^|,)([a-z_]+)="', re.sub(r'"(?:[^"\\]|\\.)*"', '""', labels or ""))) - {"le"}
                self.assertEqual(names, documented[family], "labels of %s" % name)

    def test_a_shard_that_says_nothing_does_not_hold_the_scrape(self):
        pids = [int(pid) for pid in world.lone.psql(
            "select pid from pg_stat_activity where datname = :'d' and application_name like 'wiggle-proxy%'", "postgres",
            d=self.database).split()]
        self.assertTrue(pids)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            def silent():
                found = self.metrics()    # answered within the 5 s of http(), while the question waits for 20 s
                return found["wiggle_shard_up", 'shard="0"'] == 0 and not any(n.startswith("wiggle_shard_queue") for n, _ in found)
            wait_for(silent, 60, "a shard that is not shown")
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
        wait_for(lambda: self.metrics()["wiggle_shard_up", 'shard="0"'] == 1, 60, "the shard again")


class Log(Watched):
    def test_a_queue_that_waits_is_told_once_and_when_it_is_over(self):
        name = self.define("a")
        instance = self.client.start(name)
        late = "the oldest ready task of queue '%s' has waited for" % name
        wait_for(lambda: self.told(late), 60, "the warning")
        oldest = ("wiggle_shard_queue_oldest_seconds", 'shard="0",queue="%s"' % name)
        wait_for(lambda: self.metrics().get(oldest, 0) > 1.5, 60, "further looks")
        self.assertEqual(len(self.told(late)), 1)
        self.assertEqual(self.told(late)[0]["level"], "warn")
        self.assertIn("no worker polls it", self.told(late)[0]["message"])
        self.client.report(self.client.poll_one(name), {})
        self.assertEqual(self.client.status(instance), "COMPLETED")
        over = "no task of queue '%s' waits for so long any more" % name
        wait_for(lambda: self.told(over), 60, "that it is over")
        self.assertEqual((len(self.told(late)), len(self.told(over))), (1, 1))

    def test_workers_that_are_too_slow_are_told_from_none(self):
        name = self.define("a")
        self.client.poll(name, wait=0)
        wait_for(lambda: name in world.lone.psql("select polls from wiggle.wf_node", self.database), 60, "its poll on home")
        self.client.start(name)
        late = "the oldest ready task of queue '%s' has waited for" % name
        wait_for(lambda: self.told(late), 60, "the warning")
        self.assertIn("workers poll it", self.told(late)[0]["message"])

    def test_no_payload_and_no_secret_is_logged(self):
        name = fresh_name()
        self.client.register(flow(name, ("task", "a", retry(2)), "b"))
        secret = {"card": MARK, "nested": [{"x": MARK}]}
        instance = self.client.start(name, secret, correlation_id="c-1")
        task = self.client.poll_one(name)
        self.client.fail(task, "it broke: " + MARK)
        task = self.client.poll_one(name)
        run = pb.ReportedRun(task_id=task.task_id, lease_owner=task.lease_owner, final=True, steps=[
            step_result(task.node_id, secret, events=[("paid", secret)])])
        self.client.call("ReportSteps", runs=[run])
        self.client.complete(self.client.poll_one(name), secret)
        self.assertEqual(self.client.status(instance), "COMPLETED")
        waits = self.shorthand({"await_signal": "go"})
        self.client.signal(self.client.start(waits, secret), "go", secret)
        self.client.call("CreateSchedule", workflow=name, every_millis=3600000, context=value(secret))
        self.client.call("PollEvents", consumer="c", max=100, start_from=-1)

        # What is refused, by the door and by the database, and who is.
        deep = MARK
        for _ in range(60):
            deep = [deep]
        for call in (lambda: self.client.start(name, {"deep": deep}), lambda: self.client.start(MARK + "-no-such", secret),
                     lambda: self.client.signal(instance, "go", secret)):
            with self.assertRaises(grpc.RpcError):
                call()
        raw = self.client.channel.unary_unary("/%s/StartInstance" % SERVICE)
        with self.assertRaises(grpc.RpcError):
            raw(MARK.encode() + b"\xff\xff", timeout=60)
        request, listing = self.client.method("ListWorkflows")
        listing(request(), metadata=(("authorization", "Bearer wgl_" + MARK),), timeout=60)
        wait_for(lambda: self.told("enforce would refuse ListWorkflows: the API key is not known"), 60, "the key that is not known")
        world.lone.psql("alter table wiggle.wf_scope add constraint mean check (context::text not like '%poison%')", self.database)
        self.addCleanup(world.lone.psql, "alter table wiggle.wf_scope drop constraint mean", self.database)
        with self.assertRaises(grpc.RpcError):
            self.client.start(name, {"poison": MARK})
        wait_for(lambda: self.told("wf_scope"), 60, "what the database refused")
        posted = urllib.request.Request("http://127.0.0.1:%d/%s/StartInstance" % (self.proxy.second_port, SERVICE),
                                        json.dumps({"workflow": name, "context": secret}).encode(),
                                        {"Content-Type": "application/json"})
        with urllib.request.urlopen(posted, timeout=60) as reply:
            self.assertEqual(reply.status, 200)

        lines = self.lines()
        self.assertTrue(any(line["level"] == "debug" for line in lines), "debug is on")
        for line in lines:
            self.assertEqual(set(line) - {"shard", "sqlstate", "ref"}, {"time", "level", "source", "message"}, line)
            self.assertRegex(line["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
            self.assertIn(line["level"], ("debug", "info", "warn", "error"))
        log = self.proxy.log().replace(MARK + "-no-such", "")    # a name is none
        self.assertNotIn(MARK, log)
        self.assertNotIn(world.lone.password, log)
        self.assertNotIn("poison\\", log)    # a row of the table, in the database's detail
