"""The server itself: health, what is not there, starting, stopping, losing databases."""
import json
import os
import subprocess
import time

import grpc

import world
from harness import Proxy, topology, wait_for
from wigclient import Client, ClientTest, flow, fresh_name


class Surface(ClientTest):
    def test_health(self):
        reply = self.client.call("HealthCheck")
        self.assertEqual(reply.status, "UP")
        self.assertTrue(reply.node)

    def test_the_services_older_name(self):
        old = Client(world.proxy.address, service="dev.wiggle.proto.WiggleControlPlane")
        self.addCleanup(old.close)
        self.assertEqual(old.call("HealthCheck").status, "UP")

    def test_search_is_not_enabled(self):
        self.refused(grpc.StatusCode.FAILED_PRECONDITION, "search is not enabled: give a shard the search role, or set"
                     " WIGGLE_SEARCH_ENABLED=true on a single database", self.client.call, "SearchInstances", text="x")

    def test_unknown_calls_and_services_are_unimplemented(self):
        for path in ("/com.wiggle.proto.WiggleControlPlane/NoSuchCall",
                     "/com.wiggle.proto.WiggleControlPlane/ObserveRun",
                     "/com.wiggle.proto.WiggleControlPlane/ListAnomalies", "/other.Service/HealthCheck"):
            raw = self.client.channel.unary_unary(path)
            self.refused(grpc.StatusCode.UNIMPLEMENTED, "**", raw, b"", timeout=60)

    def test_garbage_is_invalid_and_harms_no_one(self):
        raw = self.client.channel.unary_unary("/com.wiggle.proto.WiggleControlPlane/StartInstance")
        self.refused(grpc.StatusCode.INVALID_ARGUMENT, "**", raw, b"\xff\xff\xff\xff", timeout=60)
        self.assertEqual(self.client.call("HealthCheck").status, "UP")

    def test_second_port(self):
        for path, status in (("/healthz", 200), ("/readyz", 200), ("/metrics", 200), ("/nowhere", 404)):
            self.assertEqual(world.proxy.http(path)[0], status, path)
        self.assertIn("# TYPE", world.proxy.http("/metrics")[1])


class Starting(ClientTest):
    """Wrong settings are refused before anything is served."""

    def ends(self, document, text, **settings):
        proxy = Proxy(world.AREA, document, name="refused", **settings)
        proxy.start(wait=False)
        status = proxy.process.wait(60)
        self.assertNotEqual(status, 0)
        self.assertIn(text, proxy.log())
        os.unlink(proxy.log_path)

    def test_wrong_topologies_name_the_field(self):
        good = topology(*world.shards)

        def changed(change):
            copy = json.loads(json.dumps(good))
            change(copy)
            return copy
        cases = [
            (changed(lambda d: d["shards"].clear()), "lists no shards"),
            (changed(lambda d: d["shards"][1].update(id=0)), "shard 0 is listed twice"),
            (changed(lambda d: d["shards"][1].update(roles=["instances", "home"])), "exactly one shard carries the home role"),
            (changed(lambda d: d["shards"][0].update(state="sleeping")), "state 'sleeping' is not one of"),
            (changed(lambda d: d["shards"][0]["primary"].pop("url")), "needs a url"),
            (changed(lambda d: d["shards"][0]["primary"].update(password="${NOT_SET_ANYWHERE}")), "${NOT_SET_ANYWHERE}"),
            (changed(lambda d: d["generations"].clear()), "has no generations"),
            (changed(lambda d: (d["shards"][1].update(state="draining"), d["generations"].append(
                {"id": 2, "activeFrom": "2999-01-01T00:00:00Z", "weights": {"0": 1}}))),
             "generation 1, which is in force, weighs shard 1, which is DRAINING"),
            (changed(lambda d: d["generations"][0].update(weights={"7": 1})), "7"),
            (changed(lambda d: d["generations"][0].update(weights={"0": 0})), "gives no shard a positive weight"),
        ]
        for document, text in cases:
            with self.subTest(text=text):
                self.ends(document, text)

    def test_two_storages_are_refused(self):
        self.ends(topology(*world.shards), "WIGGLE_JDBC_URL", WIGGLE_JDBC_URL="jdbc:postgresql://127.0.0.1:1/wiggle")

    def test_one_database_by_its_url_alone(self):
        name = "single%d" % os.getpid()
        world.shards[0].psql("create database %s" % name, "postgres")
        proxy = Proxy(world.AREA, {}, name="single", WIGGLE_STORAGE_TOPOLOGY="", WIGGLE_JDBC_USER="wiggle",
                      WIGGLE_JDBC_URL="jdbc:postgresql://127.0.0.1:%d/%s" % (world.shards[0].port, name),
                      WIGGLE_JDBC_PASSWORD=world.shards[0].password)
        proxy.start()
        self.addCleanup(proxy.stop)
        client = Client(proxy.address)
        self.addCleanup(client.close)
        client.register(flow("solo", "a"))
        instance = client.start("solo")
        client.report(client.poll_one("solo"), {})
        self.assertEqual(client.status(instance), "COMPLETED")


COMPLETED = "select count(*) from wf_instance where status = 'COMPLETED'"


class Losing(ClientTest):
    """Databases and proxies that go away while work is in flight."""

    def setUp(self):
        super().setUp()
        self.shard = world.make_shard("lost-%d" % os.getpid(), "log_min_messages = fatal")
        self.addCleanup(self.shard.stop)
        self.proxy = Proxy(world.AREA, topology(self.shard), name="losing").start()
        self.addCleanup(self.proxy.stop)
        self.mine = Client(self.proxy.address)
        self.addCleanup(self.mine.close)

    def patiently(self, call, *args, seconds=60, **kwargs):
        """Repeat while UNAVAILABLE, as every client does."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                return call(*args, **kwargs)
            except grpc.RpcError as refusal:
                if refusal.code() != grpc.StatusCode.UNAVAILABLE or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def work_through(self, name, ids, disturb):
        """A worker finishes all instances while disturb() runs beside it."""
        self.in_background_result = self.in_background(disturb)
        done = 0
        deadline = time.monotonic() + 90
        while done < len(ids):
            self.assertLess(time.monotonic(), deadline, "only %d of %d instances ended" % (done, len(ids)))
            for task in self.patiently(self.mine.poll, name, wait=500, max=10, lease_millis=3000):
                outcome = self.patiently(self.mine.report, task, {"n": 1})
                if outcome.error_status == 0 and outcome.applied.instance_status == "COMPLETED":
                    done += 1
                else:
                    self.assertIn(outcome.error_status, (0, 409), outcome)
            done = int(self.patiently_sql(COMPLETED))
        self.in_background_result()
        for instance in ids:
            self.assertEqual(self.patiently(self.mine.status, instance), "COMPLETED")

    def patiently_sql(self, sql):
        def attempt():
            try:
                return self.shard.psql(sql) or None
            except RuntimeError:
                return None
        return wait_for(attempt, 60, sql)

    def test_backends_killed_under_load_lose_and_double_nothing(self):
        name = fresh_name()
        self.mine.register(flow(name, "a", "b", "c"))
        ids = [self.mine.start(name) for _ in range(60)]

        def disturb():
            for k in range(6):
                self.shard.psql("select pg_terminate_backend(pid) from pg_stat_activity where datname = 'wiggle' "
                                "and backend_type = 'client backend' and pid <> pg_backend_pid()")
                wait_for(lambda k=k: int(self.patiently_sql(COMPLETED)) >= 10 * k, 90, "instances to end in between")
        self.work_through(name, ids, disturb)
        self.assertEqual(self.shard.psql("select count(*) from wf_instance"), "60")

    def test_a_shard_restarted_in_mid_flight_comes_back(self):
        name = fresh_name()
        self.mine.register(flow(name, "a", "b"))
        ids = [self.mine.start(name) for _ in range(20)]

        def disturb():
            subprocess.run(["pg_ctl", "-D", os.path.join(self.shard.folder, "data"), "-m", "immediate", "-w", "-s",
                            "restart", "-l", os.path.join(self.shard.folder, "log")], check=True,
                           stdin=subprocess.DEVNULL)
        self.work_through(name, ids, disturb)

    def test_calls_of_a_stopped_shard_are_unavailable_and_say_no_more(self):
        name = fresh_name()
        self.mine.register(flow(name, "a"))
        instance = self.mine.start(name)
        subprocess.run(["pg_ctl", "-D", os.path.join(self.shard.folder, "data"), "-m", "immediate", "-w", "-s", "stop"],
                       check=True)
        for call in (lambda: self.mine.start(name), lambda: self.mine.get(instance)):
            with self.assertRaises(grpc.RpcError) as caught:
                call()
            self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)
            self.assertRegex(caught.exception.details(), r"^storage temporarily unavailable \(ref [0-9a-f]{8}\)$")
        self.assertEqual(self.mine.call("HealthCheck").status, "UP")
        wait_for(lambda: not self.proxy.ready(), 60, "readiness to fall")

    def test_a_drained_proxy_answers_its_parked_polls_and_exits_cleanly(self):
        hour = 3_600_000
        proxy = Proxy(world.AREA, topology(self.shard), name="drained", WIGGLE_LONGPOLL_MAX_MILLIS=hour,
                      WIGGLE_DRAIN_GRACE_MILLIS=hour).start()
        self.addCleanup(proxy.stop)
        client = Client(proxy.address)
        self.addCleanup(client.close)
        parked = [client.future("PollTasks", worker_id="w%d" % i, queues=["nothing"], max=1, wait_millis=hour,
                                timeout=hour) for i in range(10)]
        client.call("HealthCheck")
        self.assertEqual(proxy.stop(), 0)
        for poll in parked:
            self.assertEqual(list(poll.result().tasks), [])
