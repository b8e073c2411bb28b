"""WIGGLE_TASK_PARTITIONING: who takes which share of a queue, and that no task waits for it."""
import json
import re
import subprocess
import threading
import zlib

import world
from harness import Proxy, topology, wait_for
from wigclient import Client, ClientTest

THIRDS = [[0, 334], [334, 667], [667, 1000]]
HALVES = [[0, 500], [500, 1000]]
LONG = 600000   # ms: longer than these tests take


class Partitioning(ClientTest):
    """Members of a cluster of their own on `lone`, which a server that does not divide the tasks serves too."""

    server = "single"

    def member(self, name, **more):
        proxy = Proxy(world.AREA, topology(world.lone), name="part-" + name, WIGGLE_TASK_PARTITIONING="true",
                      WIGGLE_NODE_NAME=name, **more).start()
        self.addCleanup(world.lone.psql, "delete from wiggle.wf_node where name = :'name'", name=name)
        self.addCleanup(proxy.stop)
        client = Client(proxy.address)
        self.addCleanup(client.close)
        proxy.client = client
        return proxy

    def members(self, *names, **more):
        """Started, and each knows all of them."""
        started = [self.member(name, **more) for name in names]
        for proxy in started:
            wait_for(lambda p=proxy: sorted(self.ranges(p)) == sorted(names), 60, "a list of %s" % (names,))
        return started

    def page(self, proxy):
        return json.loads(proxy.http("/api/cluster")[1])

    def ranges(self, proxy):
        return {m["name"]: [m["start"], m["end"]] for m in self.page(proxy)["members"] if m["partitioned"]}

    def shows(self, proxy, ranges):
        """The proxy's page shows these ranges, in order of the members' ids."""
        def shown():
            members = [m for m in self.page(proxy)["members"] if m["partitioned"]]
            self.last = [[m["start"], m["end"]] for m in members]
            return self.last == ranges and [m["id"] for m in members] == sorted(m["id"] for m in members)
        self.last = None
        wait_for(shown, 60, "ranges %s" % ranges)

    def share(self, proxy, queue):
        """The proxy's share of a queue, None when its workers do not poll it as far as home knows."""
        entry = next((q for q in self.page(proxy)["queues"] if q["queue"] == queue), None)
        return [entry["start"], entry["end"]] if entry and entry["polled"] else None

    def has_share(self, proxy, queue, share):
        wait_for(lambda: self.share(proxy, queue) == share, 60, "a share of %s: %s" % (queue, share))

    def metric(self, proxy, name):
        found = re.search(r"^%s ([0-9.]+)$" % re.escape(name), proxy.http("/metrics")[1], re.M)
        self.assertTrue(found, "%s is not among the metrics" % name)
        return float(found.group(1))

    def park(self, proxy, queue, wait=20000, client=None):
        return (client or proxy.client).future("PollTasks", worker_id="w", queues=[queue], max=1, wait_millis=wait,
                                               timeout=60 + wait / 1000)

    def age(self, name):
        world.lone.psql("update wiggle.wf_node set last_heartbeat = last_heartbeat - interval '61 s' where name = :'name'",
                        name=name)

    def test_members_share_the_buckets_evenly_as_they_come_and_go(self):
        first, second, third = self.members("m1", "m2", "m3")
        for proxy in (first, second, third):
            self.shows(proxy, THIRDS)
            page = self.page(proxy)
            self.assertEqual(page["partitioning"]["active"], True, page["partitioning"])
            self.assertEqual(page["partitioning"]["reason"], None)
            mine = [m for m in page["members"] if m["self"]]
            self.assertEqual([m["name"] for m in mine], [page["node"]])
            self.assertEqual(mine[0]["id"], page["self"])
            self.assertEqual(sorted(m["share"] for m in page["members"] if m["partitioned"]), [0.333, 0.333, 0.334])
            # those of a server that does not divide the tasks are nobody's
            self.assertEqual([m["partitioned"] for m in page["members"] if m["name"] not in ("m1", "m2", "m3")],
                             [False] * (len(page["members"]) - 3))
            gauges = [self.metric(proxy, "wiggle_proxy_partition_range_%s" % end) for end in ("start", "end")]
            self.assertEqual(gauges, [mine[0]["start"], mine[0]["end"]])
            for timer in ("heartbeat", "read"):
                self.assertGreater(self.metric(proxy, "wiggle_proxy_member_%s_seconds_count" % timer), 0)
        self.assertEqual(third.stop(), 0)
        self.assertEqual(world.lone.psql("select count(*) from wiggle.wf_node where name = 'm3'"), "0")
        self.shows(first, HALVES)
        self.shows(second, HALVES)
        fourth = self.member("m4")
        for proxy in (first, second, fourth):
            self.shows(proxy, THIRDS)
        # A crash: the row stays until it is 60 s old.
        fourth.kill()
        self.assertEqual(len(self.ranges(first)), 3)
        self.age("m4")
        for proxy in (first, second):
            self.shows(proxy, HALVES)

    def test_a_member_without_pollers_has_no_share(self):
        first, second = self.members("w1", "w2")
        name = self.define("a")
        parked = self.park(first, name)
        self.has_share(first, name, [0, 1000])
        self.assertEqual(self.share(second, name), None)
        self.assertEqual(self.ranges(second)["w2"][1] - self.ranges(second)["w2"][0], 500)
        other = self.park(second, name)
        order = sorted((self.page(p)["self"], p) for p in (first, second))
        for (_, proxy), half in zip(order, HALVES):
            self.has_share(proxy, name, half)
        for _ in range(2):
            self.client.start(name)
        tasks = [t.instance_id for p in (parked, other) for t in p.result().tasks]
        self.assertEqual(len(set(tasks)), 2, "both tasks are taken, though both may be in one share")
        # Who polls every queue shares those that others name and those that nobody does.
        polls = [first.client.future("PollTasks", worker_id="all", max=1, wait_millis=20000),
                 self.park(second, name + "-more")]
        for (_, proxy), half in zip(order, HALVES):
            self.has_share(proxy, name + "-more", half)
        for poll in polls:
            poll.cancel()

    def workers(self, proxy):
        """By member's name, as the proxy's page has them."""
        return {m["name"]: m["workers"] for m in self.page(proxy)["members"]}

    def test_a_poll_that_nobody_waits_for_gives_its_share_up(self):
        """Who was answered stays on the roster for an hour here."""
        proxies = self.members("g1", "g2", WIGGLE_POLLER_TTL_MILLIS=3600000, WIGGLE_LONGPOLL_MAX_MILLIS=LONG)
        first, second = proxies
        name = self.define("a")
        staying = self.park(first, name, LONG)
        order = [p for _, p in sorted((self.page(p)["self"], p) for p in proxies)]

        def halves():
            for proxy, half in zip(order, HALVES):
                self.has_share(proxy, name, half)

        def alone():
            self.has_share(first, name, [0, 1000])
            wait_for(lambda: self.workers(first)["g2"] == 0, 60, "no worker of the other")
        # one of a worker's two streams, then the other
        streams = [self.park(second, name, LONG) for _ in range(2)]
        halves()
        beats = self.metric(second, "wiggle_proxy_member_heartbeat_seconds_count")
        streams[0].cancel()
        wait_for(lambda: self.metric(second, "wiggle_proxy_member_heartbeat_seconds_count") >= beats + 2, 60, "two heartbeats")
        halves()
        streams[1].cancel()
        alone()
        # the whole connection
        client = Client(second.address, options=[("grpc.use_local_subchannel_pool", 1)])
        parked = self.park(second, name, LONG, client)
        halves()
        self.assertFalse(parked.done())
        client.close()
        alone()
        # one that was answered comes again
        self.park(second, name, wait=0).result()
        halves()
        beats = self.metric(second, "wiggle_proxy_member_heartbeat_seconds_count")
        wait_for(lambda: self.metric(second, "wiggle_proxy_member_heartbeat_seconds_count") >= beats + 2, 60, "two heartbeats")
        halves()
        staying.cancel()

    def test_tasks_of_a_share_that_nobody_serves_are_taken_by_others(self):
        first, second = self.members("c1", "c2")
        name = self.define("a")
        gone = self.park(second, name)
        self.park(first, name, wait=0).result()
        order = sorted((self.page(p)["self"], p) for p in (first, second))
        for (_, proxy), half in zip(order, HALVES):
            self.has_share(proxy, name, half)
        lost = next(half for (_, proxy), half in zip(order, HALVES) if proxy is second)
        second.kill()
        gone.cancel()
        taken = 0
        while taken < 5:
            parked = self.park(first, name)
            instance = self.client.start(name)
            bucket = world.lone.psql("select bucket from wiggle.wf_ready where queue = :'name'", name=name)
            self.assertEqual([t.instance_id for t in parked.result().tasks], [instance])
            taken += bucket != "" and lost[0] <= int(bucket) < lost[1]
        # a poll that does not wait could not be told: it looks everywhere at once
        while taken < 8:
            instance = world.lone.psql("select wiggle.start(:'name')", name=name)
            bucket = int(world.lone.psql("select bucket from wiggle.wf_ready where queue = :'name'", name=name))
            self.assertEqual([t.instance_id for t in first.client.poll(name, wait=0)], [instance])
            taken += lost[0] <= bucket < lost[1]
        self.assertEqual(self.share(first, name), [0, 500] if lost == [500, 1000] else [500, 1000])
        self.assertGreater(self.metric(first, "wiggle_proxy_partition_beyond_total"), 0)
        self.assertGreater(self.metric(first, "wiggle_proxy_partitioned_claims_total"), 0)

    def listener(self, queue):
        """A session that listens; the function it returns waits for what is told of the queue."""
        session = subprocess.Popen(["psql", "-X", "-A", "-t", "-q", "-d", world.lone.conninfo()], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(session.communicate)
        self.addCleanup(session.kill)

        def tick(statement="select 'tick'"):
            """What has been told until the statement was answered: psql prints it behind an answer."""
            session.stdin.write(statement + ";\n")
            session.stdin.flush()
            found = []
            for line in session.stdout:
                if line == "tick\n":
                    return found
                found += re.findall(r'"wiggle_ready" with payload "(.*%s.*)" received' % queue, line)
            self.fail("the session has ended")
        heard = tick("listen wiggle_ready; select 'tick'")

        def told():
            if not heard:
                heard.extend(wait_for(tick, 60, "news of " + queue))
            return json.loads(heard.pop(0))
        return told

    def test_a_shard_tells_whose_tasks_became_ready_and_what_was_left(self):
        first, second = self.members("t1", "t2")
        name = self.define("a")
        for proxy in (first, second):
            self.park(proxy, name, wait=0).result()
        wait_for(lambda: sorted(self.share(p, name) or [] for p in (first, second)) == HALVES, 60, "shares")
        told = self.listener(name)
        # A look in its share tells the shard that the tasks are divided.
        first.client.poll(name, wait=300)
        instance = self.client.start(name)
        task = "%s-1" % instance.replace("wfi", "tok")
        bucket = zlib.crc32(task.encode()) % 1000
        self.assertEqual(told(), [[name, bucket]])
        # Nobody waits for it: it is told to all.
        self.assertEqual(told(), [[name]])
        self.assertEqual([t.task_id for t in first.client.poll(name)], [task])

    def test_every_task_is_done_once_though_shares_overlap(self):
        """`single` looks in whole queues: its share overlaps with everybody's."""
        servers = self.members("o1", "o2") + [world.single]
        name = self.define("a", "b")
        total = 2 * 150
        seen, refused, lock, stop = [], [], threading.Lock(), threading.Event()

        def work(server, number):
            client = Client(server.address, options=[("grpc.use_local_subchannel_pool", 1)])
            while not stop.is_set():
                for task in client.poll(name, worker="w%d" % number, wait=1000, max=1 + number % 3):
                    reported = client.report(task, {})
                    with lock:
                        seen.append(task.task_id)
                        if reported.error_status:
                            refused.append(reported)
                        if len(seen) >= total:
                            stop.set()
            client.close()
        waits = [self.in_background(work, server, n) for n, server in enumerate(servers * 3)]
        world.lone.psql("select count(wiggle.start(:'name')) from generate_series(1, 50)", name=name)
        ids = [self.client.start(name) for _ in range(100)]
        for wait in waits:
            wait(120)
        self.assertEqual((len(seen), len(set(seen)), refused), (total, total, []))
        self.assertEqual({self.client.status(i) for i in ids}, {"COMPLETED"})
        self.assertEqual(world.lone.psql("select count(*) from wiggle.wf_ready where queue = :'name'", name=name), "0")

    def test_why_a_server_takes_from_whole_queues(self):
        def reason(proxy):
            said = self.page(proxy)["partitioning"]
            self.assertEqual(said["active"], said["reason"] is None, said)
            return said["reason"]

        def fallbacks(proxy, label):
            return self.metric(proxy, 'wiggle_proxy_partition_fallbacks_total{reason="%s"}' % label)

        name = self.define("a")
        self.assertEqual(reason(world.single), "WIGGLE_TASK_PARTITIONING is false")
        self.client.poll(name, wait=0)
        self.assertGreater(fallbacks(world.single, "off"), 0)
        proxy, = self.members("f1")
        proxy.client.poll(name, wait=0)
        self.assertEqual(fallbacks(proxy, "unpolled"), 1)
        self.has_share(proxy, name, [0, 1000])
        # Its heartbeats change nothing for a while.
        world.lone.psql("create function wiggle.wt_ignore() returns trigger language plpgsql as"
                        " $$ begin if new.name = 'ghost' then return new; end if; return null; end $$;"
                        "create trigger wt_ignore before insert or update on wiggle.wf_node"
                        " for each row execute function wiggle.wt_ignore()")
        self.addCleanup(world.lone.psql, "drop function if exists wiggle.wt_ignore() cascade")
        for label, change in (
                ("no_members", "delete from wiggle.wf_node"),
                ("absent", "insert into wiggle.wf_node values ('node_ghost', 'ghost', now(), now() + interval '50 s', 0, '[]', true)")):
            world.lone.psql(change + "; notify wiggle_members")
            wait_for(lambda: reason(proxy) is not None and "live member" in reason(proxy) and
                     len(self.page(proxy)["members"]) == (label == "absent"), 60, label)
            instance = self.client.start(name)
            before = fallbacks(proxy, label)
            self.assertEqual(proxy.client.poll_one(name).instance_id, instance)
            self.assertGreater(fallbacks(proxy, label), before)
            self.assertEqual(self.metric(proxy, "wiggle_proxy_partition_range_end"), 0)
        world.lone.psql("drop function wiggle.wt_ignore() cascade; delete from wiggle.wf_node where name = 'ghost';"
                        "notify wiggle_members")
        self.shows(proxy, [[0, 1000]])
        wait_for(lambda: reason(proxy) is None, 60, "a share")

    def test_a_live_name_is_refused_and_a_dead_one_is_taken_over(self):
        first, = self.members("twin")
        second = Proxy(world.AREA, topology(world.lone), name="part-twin-2", WIGGLE_TASK_PARTITIONING="true",
                       WIGGLE_NODE_NAME="twin").start(wait=False)
        self.addCleanup(second.stop)
        self.assertEqual(second.process.wait(60), 1)
        holder = self.page(first)["self"]
        self.assertIn("another live server, %s, bears the name 'twin'" % holder, second.log())
        self.assertIn("WIGGLE_NODE_NAME", second.log())
        self.shows(first, [[0, 1000]])
        # Without partitioning a name may be anybody's.
        third = Proxy(world.AREA, topology(world.lone), name="part-twin-3", WIGGLE_NODE_NAME="twin").start()
        self.addCleanup(third.stop)
        # The same process again, after a crash: it serves at once, and has its share when the row is old.
        first.kill()
        again = self.member("twin")
        self.assertEqual(self.page(again)["partitioning"]["reason"],
                         "another member bears this server's WIGGLE_NODE_NAME")
        name = self.define("a")
        instance = self.client.start(name)
        self.assertEqual(again.client.poll_one(name).instance_id, instance)
        world.lone.psql("update wiggle.wf_node set last_heartbeat = last_heartbeat - interval '61 s' where id = :'id'", id=holder)
        self.shows(again, [[0, 1000]])
        wait_for(lambda: "this one takes its share" in again.log(), 60, "the log to say so")
        self.assertEqual(third.stop(), 0)
