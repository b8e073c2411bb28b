"""What the server tells about itself and its work: statistics, backlog, cluster, recorded steps."""
import grpc

import wiggle_pb2 as pb
import world
from doors import doors
from harness import Proxy, topology, wait_for
from wigclient import Client, ClientTest, flow, fresh_name, plain, run_of, step_result

NOT_FOUND = grpc.StatusCode.NOT_FOUND
START = 1_700_000_000_000


class Steps:
    def run_with_clock(self, name, *millis):
        """One instance; a run whose steps took so long by the worker's clock."""
        instance = self.client.start(name)
        task = self.client.poll_one(name)
        steps = [step_result("n%d" % (i + 1), {"s": i}, started_at=START + i, finished_at=START + i + ms)
                 for i, ms in enumerate(millis)]
        self.client.call("ReportSteps", runs=[run_of(task, *steps)])
        self.assertEqual(self.client.status(instance), "COMPLETED")
        return instance

    def stats(self, name, **more):
        reply = self.client.call("GetStepStats", workflow=name, **more)
        return reply, {n.name: n for n in reply.nodes}

    def test_percentiles_by_nearest_rank_slowest_first(self):
        name = self.define("quick", "slow", mode="LOCAL_ASYNC")
        for i in range(1, 21):
            self.run_with_clock(name, i, i * 100)
        reply, nodes = self.stats(name)
        self.assertEqual([n.name for n in reply.nodes], ["slow", "quick"])
        self.assertEqual((reply.workflow, reply.version), (name, 0), "the version that was asked for")
        quick, slow = nodes["quick"], nodes["slow"]
        self.assertEqual((quick.node_id, quick.count, quick.p50, quick.p95, quick.max), ("n1", 20, 10, 19, 20))
        self.assertEqual((slow.count, slow.p50, slow.p95, slow.max), (20, 1000, 1900, 2000))
        self.assertAlmostEqual(quick.mean_millis, 10.5)
        self.assertGreaterEqual(slow.wait_p95, 0)

    def test_bounds_and_refusals(self):
        name = self.define("a")
        self.run_with_clock(name, 5)
        self.assertEqual(self.stats(name, version=1)[0].version, 1)
        for since in (1 << 42, (1 << 63) - 1):
            self.assertEqual(list(self.stats(name, since=since)[0].nodes), [])
        for since in (-1, -1 << 63):
            self.assertEqual(len(self.stats(name, since=since)[0].nodes), 1)
        self.refused(NOT_FOUND, "workflow 'no-such-one' not found", self.stats, "no-such-one")
        self.refused(NOT_FOUND, "*not found*", self.stats, name, version=9)

    def test_steps_keep_what_they_saw_and_gave(self):
        name = fresh_name("io")
        self.client.register(flow(name, "a", ("gate", "g"), "effect"))
        instance = self.client.start(name, {"k": 1})
        self.client.report(self.client.poll_one(name), {"k": 2})
        self.client.report(self.client.poll_one(name), True)
        self.client.report(self.client.poll_one(name), None)
        io = {t.node_id: (plain(t.input) if t.HasField("input") else None,
                          plain(t.output) if t.HasField("output") else None) for t in self.client.get(instance).tokens}
        self.assertEqual(io["n1"], ({"k": 1}, {"k": 2}))
        self.assertEqual(io["n2"], ({"k": 2}, True))
        self.assertEqual(io["n4"], ({"k": 2}, None), "an effect gives nothing")

    def test_long_inputs_are_cut(self):
        name = self.define("a")
        instance = self.client.start(name, {"big": "x" * 70_000})
        self.client.report(self.client.poll_one(name), {})
        token = next(t for t in self.client.get(instance).tokens if t.node_id == "n1")
        seen = plain(token.input)
        self.assertEqual(set(seen), {"$truncated", "head"})
        self.assertGreater(seen["$truncated"], 70_000)
        self.assertEqual(len(seen["head"]), 4096)
        self.assertEqual(plain(token.output), {})

    def test_an_instance_with_more_than_an_answer_carries_is_still_answered(self):
        name = self.define(*("s%d" % i for i in range(40)), mode="LOCAL_ASYNC")
        instance = self.client.start(name)
        task = self.client.poll_one(name)
        steps = [step_result("n%d" % (i + 1), {"pad": "p" * 60_000, "i": i}) for i in range(40)]
        self.client.call("ReportSteps", runs=[run_of(task, *steps)])
        detail = self.client.get(instance)
        self.assertEqual(detail.instance.status, "COMPLETED")
        self.assertEqual(len([t for t in detail.tokens if t.kind == "TASK"]), 40)
        self.assertFalse(any(t.HasField("input") or t.HasField("output") for t in detail.tokens))

    def test_when_a_token_was_made_and_worked_on(self):
        name = self.define("a")
        instance = self.client.start(name)
        token = self.client.get(instance).tokens[0]
        self.assertGreater(token.created_at, START)
        self.assertFalse(token.HasField("started_at"))
        self.client.report(self.client.poll_one(name), {})
        token = next(t for t in self.client.get(instance).tokens if t.node_id == "n1")
        self.assertLessEqual(token.created_at, token.started_at)
        self.assertLessEqual(token.started_at, token.finished_at)


globals().update(doors(Steps))


class Merged(ClientTest):
    """Over two shards."""

    def test_statistics_of_all_shards(self):
        name = self.define("a")
        for i in range(8):
            self.client.start(name)
            task = self.client.poll_one(name)
            self.client.call("ReportSteps", runs=[run_of(task, step_result("n1", {}, started_at=START,
                                                                           finished_at=START + 100 * (i + 1)))])
        (node,) = self.client.call("GetStepStats", workflow=name).nodes
        self.assertEqual((node.count, node.max), (8, 800))
        self.assertAlmostEqual(node.mean_millis, 450)
        self.assertTrue(300 <= node.p50 <= 400 and 700 <= node.p95 <= 800, node)


class Backlog(ClientTest):
    """Slices of ready work, and whether anybody polls for them, on any proxy."""

    def setUp(self):
        super().setUp()
        self.proxies = [Proxy(world.AREA, topology(*world.shards), name="backlog-%d-%s" % (i, self.id().split(".")[-1]),
                              WIGGLE_POLLER_TTL_MILLIS=ttl).start() for i, ttl in enumerate((9000, 8000))]
        for proxy in self.proxies:
            self.addCleanup(proxy.stop)
        self.clients = [Client(p.address) for p in self.proxies]
        for client in self.clients:
            self.addCleanup(client.close)

    def slices(self, name, client=None, **more):
        reply = (client or self.clients[0]).call("GetBacklogCoverage", max=500, **more)
        return [s for s in reply.slices if s.workflow == name]

    def covered(self, name, client=None):
        (only,) = self.slices(name, client)
        return only.covered

    def test_counts_over_shards_and_the_oldest(self):
        name = self.define("a")
        ids = [self.client.start(name) for _ in range(6)]
        (only,) = self.slices(name)
        self.assertEqual((only.version, only.queue, only.ready_count, only.covered), (1, name, 6, False))
        oldest = min(self.client.get(i).tokens[0].available_at for i in ids)
        self.assertAlmostEqual(only.oldest_available_at, oldest, delta=2)
        self.assertEqual(len(self.clients[0].call("GetBacklogCoverage", max=1).slices), 1)
        reply = self.clients[0].call("GetBacklogCoverage")
        self.assertLessEqual(len(reply.slices), 100)
        counts = [s.ready_count for s in reply.slices]
        self.assertEqual(counts, sorted(counts, reverse=True))

    def test_a_poller_of_another_proxy_covers_until_it_is_gone(self):
        name = self.define("a")
        self.client.start(name)
        self.client.start(name)
        self.assertFalse(self.covered(name))
        self.assertEqual(len(self.clients[1].call("PollTasks", worker_id="w", queues=[name], max=1).tasks), 1)
        self.assertTrue(self.covered(name, self.clients[1]), "at once where it polled")
        wait_for(lambda: self.covered(name), 60, "the other proxy to hear of the poller")
        wait_for(lambda: not self.covered(name, self.clients[1]), 60, "the poller to be forgotten")
        wait_for(lambda: not self.covered(name), 60, "the other proxy to hear that it is gone")

    def test_scopes(self):
        name = fresh_name()
        for version in (1, 2):
            self.client.register(flow(name, "a" * version, version=version))
        for version in (1, 2):
            self.client.start(name, version=version)
        client = self.clients[0]
        client.call("PollTasks", worker_id="scoped", queues=["another", name + "-x"],
                    versions=[pb.WorkflowVersion(workflow=name, version=1)])
        self.assertEqual({s.version: s.covered for s in self.slices(name)}, {1: False, 2: False}, "another queue")
        held = client.call("PollTasks", worker_id="scoped", queues=[name], versions=[
            pb.WorkflowVersion(workflow=name, version=2)]).tasks
        self.client.start(name, version=2)
        self.assertEqual({s.version: s.covered for s in self.slices(name)}, {1: False, 2: True})
        self.assertEqual([t.version for t in held], [2])

    def test_a_poller_of_every_queue_covers_all_and_pollers_are_counted(self):
        name = self.define("a")
        self.client.start(name)
        before = self.clients[0].call("GetBacklogCoverage").live_pollers
        # One that nobody keeps is cancelled, and its worker no poller any more.
        poll = self.clients[0].future("PollTasks", worker_id="all-%s" % name, versions=[
            pb.WorkflowVersion(workflow="nothing", version=1)], wait_millis=1000)
        self.addCleanup(poll.cancel)
        wait_for(lambda: self.clients[0].call("GetBacklogCoverage").live_pollers > before, 60, "one more poller")
        self.assertFalse(self.covered(name))


class Cluster(ClientTest):
    def test_members_come_lead_and_leave(self):
        own = [world.make_shard("cluster-%d" % i) for i in (0, 1)]
        for shard in own:
            self.addCleanup(shard.stop)

        def proxy(name):
            started = Proxy(world.AREA, topology(*own), name="cluster-" + name, WIGGLE_NODE_NAME=name).start()
            self.addCleanup(started.stop)
            client = Client(started.address)
            self.addCleanup(client.close)
            return started, client

        def members(client, n):
            return wait_for(lambda: (lambda view: view if len(view.members) == n else None)(client.call("GetCluster")),
                            60, "%d members" % n)
        first, one = proxy("one")
        view = members(one, 1)
        (me,) = view.members
        self.assertEqual((me.id, me.name, me.alive, me.leader, view.leader), (view.self, "one", True, True, True))
        self.assertRegex(me.id, r"^node_[0-9a-hjkmnp-tv-z]{22}$")
        self.assertLessEqual(me.first_heartbeat, me.last_heartbeat)
        wait_for(lambda: one.call("HealthCheck").leader, 60, "the leader to know")
        second, two = proxy("two")
        view = members(two, 2)
        self.assertEqual([(m.name, m.leader) for m in view.members], [("one", True), ("two", False)])
        self.assertEqual((view.leader, view.self), (False, view.members[1].id))
        self.assertEqual(first.stop(), 0)
        view = members(two, 1)
        self.assertEqual([(m.name, m.leader) for m in view.members], [("two", True)])
        second.kill()
        third, three = proxy("three")
        view = members(three, 2)
        wait_for(lambda: [m.alive for m in three.call("GetCluster").members] == [False, True], 60,
                 "the killed member to be taken for dead")
        self.assertEqual([m.leader for m in three.call("GetCluster").members], [False, True])
        self.assertEqual(third.stop(), 0)

    def test_home_is_told_where_new_instances_go(self):
        kept = world.lone.psql("select count(*) from wiggle.wf_placement")
        self.assertEqual(kept, "1")
