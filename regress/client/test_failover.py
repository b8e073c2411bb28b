"""A shard whose primary dies under load and whose standby is promoted."""
import collections
import subprocess
import threading
import time

import grpc

import world
from harness import Proxy, Standby, topology, wait_for
from wigclient import Client, ClientTest, flow, fresh_name, run_of, step_result

NOTHING_KNOWN = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL, grpc.StatusCode.DEADLINE_EXCEEDED)


class Load:
    """Clients that start instances, and workers that write into each step's result who has done it.

    `started` holds the acknowledged starts, `reported` the acknowledged reports as (instance, step) -> value
    of tasks that had been given out once, `given` how often each task was given out, `again` the tasks that came
    once more after their report had been acknowledged, `refused` how many calls ended with which status.
    """

    options = [("grpc.use_local_subchannel_pool", 1)]

    def __init__(self, addresses, name, starters=2, workers=4, lease=5000):
        self.lease = lease
        self.given = collections.Counter()
        self.name = name
        self.addresses = addresses
        self.lock = threading.Lock()
        self.pause = threading.Event()
        self.refused, self.last_refusal = collections.Counter(), None
        self.going = threading.Event()
        self.going.set()
        self.started, self.reported, self.done, self.again, self.failures = [], {}, set(), [], []
        self.starting = self.working = True
        self.threads = [threading.Thread(target=self.guarded, args=(body, addresses[i % len(addresses)], i), daemon=True)
                        for body, n in ((self.starter, starters), (self.worker, workers)) for i in range(n)]
        for thread in self.threads:
            thread.start()

    def guarded(self, body, address, number):
        client = Client(address, options=self.options)
        # gRPC's core reads while somebody waits: with all calls refused at once a server's greeting would be read by nobody.
        client.channel.subscribe(lambda _: None)
        try:
            body(client, number)
        except Exception as failure:    # told by whoever waits for the load
            self.failures.append(failure)
        finally:
            client.close()

    def attempt(self, call, *args, **more):
        """The answer, None when nothing is known or nothing was applied."""
        try:
            return call(*args, **more)
        except grpc.RpcError as refusal:
            if refusal.code() not in NOTHING_KNOWN:
                raise
            with self.lock:
                self.refused[refusal.code()] += 1
                self.last_refusal = refusal.details()
            self.pause.wait(0.02)    # as clients do
            return None

    def starter(self, client, _):
        while self.going.wait() and self.starting:
            instance = self.attempt(client.start, self.name, {}, timeout=60)
            if instance is not None:
                with self.lock:
                    self.started.append(instance)

    def worker(self, client, number):
        count = 0
        while self.going.wait() and self.working:
            tasks = self.attempt(client.poll, self.name, worker="w%d" % number, max=8, wait=500, timeout=60,
                                 lease_millis=self.lease) or ()
            with self.lock:
                self.given.update(task.task_id for task in tasks)
                self.again += [task.task_id for task in tasks if task.task_id in self.done]
            for task in tasks:
                count += 1
                self.report(client, task, "%d-%d" % (number, count))

    def report(self, client, task, who):
        answer = None
        while answer is None and self.working:
            answer = self.attempt(client.call, "ReportSteps",
                                  runs=[run_of(task, step_result(task.node_id, {**self.context(task), task.step_name: who}))])
        if answer is None or answer.results[0].error_status:
            return
        with self.lock:
            self.done.add(task.task_id)
            # An ended instance answers every report with its status. Of a task given out twice, when its lease had
            # run out, that may be a report of the other worker's.
            if self.given[task.task_id] == 1:
                self.reported[task.instance_id, task.step_name] = who

    @staticmethod
    def context(task):
        return {key: value.string_value for key, value in task.context.struct_value.fields.items()}

    def count(self):
        if self.failures:
            raise self.failures[0]
        return len(self.started)

    def more(self, n):
        """Wait for so many further acknowledged starts."""
        before = self.count()
        try:
            wait_for(lambda: self.count() >= before + n, 120)
        except TimeoutError as late:
            raise TimeoutError("%d more acknowledged starts did not come; refused: %s, the last for: %s"
                               % (n, dict(self.refused), self.last_refusal)) from late

    def rest(self):
        """No further calls until `going` is set again."""
        self.going.clear()

    def end(self, shards):
        """No more starts; the workers go on until every instance on these shards has ended."""
        running = "select count(*) from wf_instance where workflow = :'name' and status = 'RUNNING'"
        self.starting = False
        try:
            wait_for(lambda: all(s.psql(running, name=self.name) == "0" for s in shards), 120, "the end of all instances")
        finally:
            self.working = False
            for thread in self.threads:
                thread.join(120)
        self.count()

    def is_as_acknowledged(self, test, shards):
        """Nothing is lost, nothing undone, nothing done once more. The steps are called a and b."""
        rows = [line.split("|") for shard in shards for line in shard.psql(
            "select i.id, i.status, v.context->>'a', v.context->>'b' from wf_instance i, wiggle.instance(i.id) v"
            " where i.workflow = :'name'", name=self.name).splitlines()]
        found = {row[0]: row[1:] for row in rows}
        test.assertEqual([i for i in self.started if i not in found], [], "acknowledged starts that are lost")
        test.assertEqual({row[0] for row in found.values()}, {"COMPLETED"})
        test.assertEqual([(key, who, found[key[0]]) for key, who in self.reported.items()
                          if found[key[0]][1 + "ab".index(key[1])] != who], [], "reports that are not as acknowledged")
        test.assertEqual(self.again, [], "tasks that came again after their acknowledged report")


class Failover(ClientTest):
    def setUp(self):
        self.first = world.make_shard("failover-a", "wal_log_hints = on", "wal_keep_size = '1GB'")
        self.addCleanup(self.first.stop)
        self.other = world.make_shard("failover-other")
        self.addCleanup(self.other.stop)
        self.second = Standby(self.first.folder[:-1] + "b", self.first).start()
        self.addCleanup(self.second.stop)
        self.first.psql("alter system set synchronous_standby_names = '*'", "postgres")
        self.first.psql("select pg_reload_conf()", "postgres")
        self.streams(self.first, "sync")
        self.proxies = [self.start_proxy(i) for i in range(2)]
        self.client = Client(self.proxies[0].address)
        self.addCleanup(self.client.close)

    def streams(self, primary, state):
        wait_for(lambda: primary.psql("select sync_state from pg_stat_replication where state = 'streaming'",
                                      "postgres") == state, 60, "a %s standby" % state)

    def start_proxy(self, number):
        document = topology(self.first, self.other)
        url = "postgresql://127.0.0.1:%d,127.0.0.1:%d/wiggle?target_session_attrs=read-write"
        if number % 2:
            url = "jdbc:" + url.replace("target_session_attrs=read-write", "targetServerType=primary")
        document["shards"][0]["primary"]["url"] = url % (self.first.port, self.second.port)
        proxy = Proxy(world.AREA, document, name="failover-%d" % number)
        self.addCleanup(proxy.stop)
        return proxy.start()

    def reconnect(self, primary):
        """Cut the proxies' sessions: each looks for the primary anew."""
        primary.psql("select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'wiggle-proxy%'")

    def test_a_primary_killed_under_load(self):
        name, tick = fresh_name(), fresh_name("tick")
        self.client.register(flow(name, "a", ("sleep", 200), "b"))
        self.client.register(flow(tick, ("sleep", 1)))
        wait_for(lambda: self.first.psql("select count(*) from wiggle.wf_placement") != "0", 60, "the placement")
        first_fire = self.client.call("CreateSchedule", workflow=tick, every_millis=1000).next_fire_at
        load = Load([p.address for p in self.proxies], name)
        load.more(200)

        self.first.kill()
        self.second.promote()
        promoted = time.time()
        load.more(200)
        wait_for(lambda: self.second.psql("select count(*) from wf_instance where workflow = :'n' and created_at >"
                                          " to_timestamp(:at)", n=name, at=promoted) != "0", 60,
                 "instances in the new primary")
        wait_for(lambda: self.second.psql("select next_fire_at > to_timestamp(:at) from wf_schedule", at=promoted + 1) == "t",
                 60, "the schedule to go on")
        shards = (self.second, self.other)
        load.end(shards)
        load.is_as_acknowledged(self, shards)

        # a due time has one instance at most
        stopped_at = int(self.second.psql("with s as (select id, next_fire_at from wf_schedule for update) update wf_schedule w"
                                          " set next_fire_at = 'infinity' from s where s.id = w.id"
                                          " returning (extract(epoch from s.next_fire_at) * 1000)::bigint"))
        wait_for(lambda: self.second.psql("select count(*) from wiggle.wf_outbox") == "0", 60, "an empty outbox")
        fired = sum(int(s.psql("select count(*) from wf_instance where workflow = :'n'", n=tick)) for s in shards)
        self.assertLessEqual(fired, (stopped_at - first_fire) // 1000)
        self.assertGreater(fired, 0)

        self.former_primary_comes_back(name, shards)

    def former_primary_comes_back(self, name, shards):
        with open(self.first.data + "/postgresql.auto.conf", "a", encoding="utf-8") as f:
            f.write("synchronous_standby_names = ''\n")
        self.first.start_again()
        self.assertEqual(self.first.psql("select pg_is_in_recovery()"), "f", "writable, as it was")
        count = "select count(*) from wf_instance where workflow = '%s'" % name
        before = self.first.psql(count)
        new = self.start_proxy(2)
        self.former_one_alone_is_there(self.proxies + [new])
        for proxy in self.proxies + [new]:
            self.serves_from_new(proxy, name)
        self.assertEqual(self.first.psql(count), before, "nothing more is in the former primary")
        self.assertEqual(self.first.psql("select count(*) from pg_stat_activity where application_name like"
                                         " 'wiggle-proxy%' and query ~ 'wiggle[.]batch'"), "0")

        # as a standby it is welcome
        subprocess.run(["pg_ctl", "-D", self.first.data, "-m", "fast", "-w", "-s", "stop"], check=True)
        # pg_rewind looks for the timeline in the source's control file, where a checkpoint puts it
        self.second.psql("checkpoint")
        subprocess.run(["pg_rewind", "-D", self.first.data, "--source-server", self.second.conninfo("postgres"), "-R",
                        "--no-sync"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.first.start_again()
        self.streams(self.second, "async")
        self.reconnect(self.second)
        for proxy in self.proxies + [new]:
            self.serves_from_new(proxy, name)
        wait_for(lambda: self.first.psql(count) == self.second.psql(count), 60, "the standby to have it all")
        self.assertEqual(self.first.psql("select pg_is_in_recovery()"), "t")

    def former_one_alone_is_there(self, proxies):
        """For the while of a restart of the new one."""
        subprocess.run(["pg_ctl", "-D", self.second.data, "-m", "fast", "-w", "-s", "stop"], check=True)
        for proxy in proxies:
            wait_for(lambda p=proxy: "on timeline 1, but the shard has moved on to timeline 2: a former primary" in p.log(), 60,
                     "the former primary to be refused")
        self.second.start_again()

    def serves_from_new(self, proxy, name):
        """Instances that this proxy starts on the shard are in its new primary."""
        client = Client(proxy.address)
        self.addCleanup(client.close)
        landed = []

        def starts():
            try:
                landed.append(client.start(name, {}))
            except grpc.RpcError as refusal:
                self.assertIn(refusal.code(), NOTHING_KNOWN)
            return sum(i.startswith("wfi.s0.") for i in landed) >= 3
        wait_for(starts, 60, "three starts on shard 0")
        there = self.second.psql("select id from wf_instance").split()
        self.assertEqual([i for i in landed if i.startswith("wfi.s0.") and i not in there], [])


class LogicalReplica(ClientTest):
    def setUp(self):
        self.original = world.make_shard("copied-from", "wal_level = logical")
        self.addCleanup(self.original.stop)
        self.copy = world.make_shard("copied-to")
        self.addCleanup(self.copy.stop)

    def proxy_for(self, shard, name):
        proxy = Proxy(world.AREA, topology(shard), name=name)
        self.addCleanup(proxy.stop)
        return proxy

    def client_of(self, proxy):
        client = Client(proxy.start().address)
        self.addCleanup(client.close)
        return client

    def test_it_is_served_only_when_its_subscription_is_gone(self):
        proxy = self.proxy_for(self.original, "copied-original")
        self.client = self.client_of(proxy)
        name = self.define("a")
        instance = self.client.start(name)
        self.original.psql("create publication everything for all tables")
        self.copy.psql("create extension wiggle")
        self.copy.psql("create subscription copied connection '%s' publication everything" % self.original.conninfo())
        wait_for(lambda: self.copy.psql("select id from wiggle.wf_instance") == instance
                 and self.copy.psql("select shard_id from wiggle.shard()") == "0", 60, "the copy")

        refused = self.proxy_for(self.copy, "copied-refused").start(wait=False)
        self.assertNotEqual(refused.process.wait(60), 0)
        self.assertIn("this is a copy of the database that shard 0 is", refused.log())

        self.assertEqual(proxy.stop(), 0)
        last = self.original.psql("select count(*), max(seq) from wiggle.wf_event")
        wait_for(lambda: self.copy.psql("select count(*), max(seq) from wiggle.wf_event") == last, 60, "the rest")
        self.copy.psql("drop subscription copied")
        self.copy.psql("select wiggle.shard_adopt()")
        self.client = self.client_of(self.proxy_for(self.copy, "copied-taken"))
        other = self.client.start(name)
        tasks = [self.client.poll_one(name) for _ in range(2)]
        self.assertEqual([t.instance_id for t in tasks], [instance, other])
        for task in tasks:
            self.assertEqual(self.client.report(task).applied.instance_status, "COMPLETED")
        self.assertEqual(self.original.psql("select count(*), max(seq) from wiggle.wf_event"), last)
