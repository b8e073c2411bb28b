"""RegisterWorkflow, GetWorkflow, ListWorkflows."""
import grpc

import world
from wigclient import ClientTest, flow, fresh_name, plain, retry

INVALID = grpc.StatusCode.INVALID_ARGUMENT
NOT_FOUND = grpc.StatusCode.NOT_FOUND
CONFLICT = grpc.StatusCode.FAILED_PRECONDITION


class Definitions(ClientTest):
    def test_register_answers_name_version_and_nodes(self):
        name = fresh_name()
        reply = self.client.register(flow(name, "a", "b"))
        self.assertEqual((reply.name, reply.version, reply.nodes), (name, "1", 3))

    def test_register_reaches_every_shard(self):
        name = self.define("a")
        for shard in world.shards:
            self.assertEqual(shard.psql("select count(*) from wf_definition where name = :'name'", name=name), "1")

    def test_registering_the_same_graph_again_changes_nothing(self):
        definition = flow(fresh_name(), "a", ("gate", "g"), "b")
        self.client.register(definition)
        before = [s.psql("select max(registered_at) from wf_definition") for s in world.shards]
        self.client.register(definition)
        self.assertEqual(before, [s.psql("select max(registered_at) from wf_definition") for s in world.shards])

    def test_another_graph_under_the_same_version_is_refused(self):
        name = self.define("a")
        self.refused(CONFLICT, "workflow '%s:1' is already registered with a different graph; publish it under a new "
                     "version" % name, self.client.register, flow(name, "a", "b"))

    def test_a_shard_that_has_another_graph_is_named(self):
        name = fresh_name()
        world.shards[1].psql("select wiggle.register(jsonb_build_object('workflow', :'name', 'version', 1, 'steps',"
                             " '[{\"task\":\"other\"}]'::jsonb))", name=name)
        self.refused(CONFLICT, "workflow '%s:1' is already registered with a different graph; publish it under a new "
                     "version (shard 1)" % name, self.client.register, flow(name, "a"))
        self.assertEqual(world.shards[0].psql("select count(*) from wf_definition where name = :'name'", name=name), "0",
                         "a definition that one shard refuses is stored on none")

    def test_replacing_needs_the_servers_permission(self):
        name = self.define("a")
        self.refused(CONFLICT, "replacing the graph of '%s:1' was requested but this server does not allow it; set "
                     "wiggle.allow_graph_replace=on (development only) or publish a new version" % name,
                     self.client.register, flow(name, "b"), force=True)

    def test_two_registrations_of_one_graph_at_once_both_succeed(self):
        definition = flow(fresh_name(), "a", "b", "c")
        waits = [self.in_background(self.client.register, definition) for _ in range(8)]
        self.assertEqual({wait().version for wait in waits}, {"1"})

    def test_two_registrations_of_different_graphs_at_once_leave_one(self):
        name = fresh_name()
        waits = [self.in_background(self.client.register, flow(name, "step%d" % i)) for i in range(6)]
        won = 0
        for wait in waits:
            try:
                wait()
                won += 1
            except grpc.RpcError as refusal:
                self.assertEqual(refusal.code(), CONFLICT, refusal.details())
        self.assertEqual(won, 1)
        bodies = {s.psql("select fingerprint from wf_definition where name = :'name'", name=name) for s in world.shards}
        self.assertEqual(len(bodies), 1, "the shards hold different graphs")

    def test_observed_execution_is_refused(self):
        self.refused(INVALID, "OBSERVED execution was removed; register the workflow as SERVER, LOCAL_SYNC or "
                     "LOCAL_ASYNC", self.client.register, flow(fresh_name(), "a", mode="OBSERVED"))

    def test_wrong_graphs_are_refused_with_the_place_named(self):
        def change(node, **changes):
            definition = flow(fresh_name(), "a", ("gate", "g"), "b")
            definition["nodes"][node].update(changes)
            return definition
        missing_version = flow(fresh_name(), "a")
        missing_version["version"] = 0
        cases = [
            (missing_version, "needs a positive version, got 0"),
            (change(0, next="nowhere"), "nowhere"),
            (change(1, altNext="nowhere"), "nowhere"),
            (change(0, retry=retry(0)), "maxAttempts must be >= 1"),
            (change(0, retry=retry(2, multiplier=0.5)), "multiplier must be >= 1.0"),
            (change(3, name="a", activity="x#a"), "duplicate step name 'a'"),
            ({"version": 1}, "missing field 'name'"),
        ]
        for definition, text in cases:
            with self.subTest(text=text):
                self.refused(INVALID, "*%s*" % text, self.client.register, definition)

    def test_get_workflow_shows_the_highest_version_or_the_one_asked_for(self):
        name = fresh_name()
        self.client.register(flow(name, "a", version=2))
        self.client.register(flow(name, "a", "b", version=10))
        self.client.register(flow(name, "c", version=3))
        latest = plain(self.client.call("GetWorkflow", name=name).definition)
        self.assertEqual((latest["name"], latest["version"]), (name, 10))
        third = plain(self.client.call("GetWorkflow", name=name, version=3).definition)
        self.assertEqual([n["name"] for n in third["nodes"] if n["kind"] == "TASK"], ["c"])

    def test_a_fetched_graph_registers_again_as_the_same(self):
        name = self.define("a", ("gate", "g"), ("sleep", 5), ("task", "b", retry(3, 10, 2, 100, 0.5)))
        reply = self.client.call("GetWorkflow", name=name)
        self.client.call("RegisterWorkflow", definition=reply.definition)

    def test_unknown_workflows_are_not_found(self):
        self.refused(NOT_FOUND, "workflow not found", self.client.call, "GetWorkflow", name="no-such-workflow")
        name = self.define("a")
        self.refused(NOT_FOUND, "workflow not found", self.client.call, "GetWorkflow", name=name, version=9)

    def test_list_names_each_workflow_once(self):
        name = fresh_name()
        self.client.register(flow(name, "a", version=1))
        self.client.register(flow(name, "b", version=2))
        names = list(self.client.call("ListWorkflows").workflows)
        self.assertEqual(names.count(name), 1)


class Names(ClientTest):
    """A name may have 200 characters, whatever their bytes."""

    LONG = [("a", 127), ("a", 128), ("a", 200), ("ü", 64), ("ü", 200), ("€", 200), ("𝄞", 200)]
    TOO_LONG = [("a", 201), ("a", 7999), ("a", 8000), ("ü", 201), ("€", 2666), ("𝄞", 2000)]

    def named(self, letter, length):
        """A name of that length that no other test uses."""
        return fresh_name(letter).ljust(length, letter)

    def definition(self, workflow, queue):
        definition = flow(workflow, "a", queue=queue)
        definition["nodes"][0]["activity"] = "a"
        return definition

    def test_the_longest_names_work(self):
        for letter, length in self.LONG:
            with self.subTest(letter=letter, length=length):
                workflow, queue = self.named(letter, length), self.named(letter, length)
                self.client.register(self.definition(workflow, queue))
                self.assertIn(workflow, self.client.call("ListWorkflows").workflows)
                parked = self.client.future("PollTasks", worker_id="w", queues=[queue], max=1, wait_millis=15000)
                instance = world.shards[0].psql("select wiggle.start(:'name')", name=workflow)
                (task,) = parked.result().tasks
                self.assertEqual((task.instance_id, task.workflow), (instance, workflow))
                self.assertEqual(self.client.report(task, {}).applied.instance_status, "COMPLETED")
                self.assertEqual(self.client.status(self.client.start(workflow)), "RUNNING")
                self.assertEqual(len(self.client.call("ListInstances", workflow=workflow).instances), 2)
                schedule = self.client.call("CreateSchedule", workflow=workflow, every_millis=3600000)
                self.client.call("DeleteSchedule", id=schedule.id)
                text = letter * 200
                again = self.client.start(workflow, correlation_id=text)
                self.client.call("CancelInstance", instance_id=again, reason=text)
                view = self.client.get(again).instance
                self.assertEqual(view.termination_reason, text)
                self.assertIn(view, self.client.call("ListInstances", correlation_id=text).instances)

    def test_longer_ones_are_refused_and_quoted_in_part(self):
        good = self.define("a")
        for letter, length in self.TOO_LONG:
            name = self.named(letter, length)
            for call in (lambda: self.client.register(self.definition(name, good)),
                         lambda: self.client.register(self.definition(fresh_name(), name)),
                         lambda: self.client.start(name),
                         lambda: self.client.start(good, correlation_id=name),
                         lambda: self.client.poll(name, wait=0),
                         lambda: self.client.call("CreateSchedule", workflow=name, every_millis=1000),
                         lambda: self.client.signal("wfi.s0.01m446vf3rya1rekthaps4", name)):
                with self.subTest(letter=letter, length=length), self.assertRaises(grpc.RpcError) as caught:
                    call()
                self.assertEqual(caught.exception.code(), INVALID, caught.exception.details())
                self.assertIn("200", caught.exception.details())
                self.assertNotIn("\ufffd", caught.exception.details())

    def test_an_unknown_name_is_quoted_whole(self):
        for letter in "aü€𝄞":
            self.refused(NOT_FOUND, "workflow '%s' not found" % (letter * 200), self.client.start, letter * 200)
