"""StartInstance, GetInstance, ListInstances, CancelInstance."""
import re

import grpc
from google.protobuf import struct_pb2

import world
from wigclient import ClientTest, flow, fresh_name, value

INVALID = grpc.StatusCode.INVALID_ARGUMENT
NOT_FOUND = grpc.StatusCode.NOT_FOUND

ID = re.compile(r"wfi\.s[01]\.[0-9a-hjkmnp-tv-z]{22}$")


class Start(ClientTest):
    def test_ids_name_their_shard_and_shards_share_by_weight(self):
        name = self.define("a")
        ids = [self.client.start(name) for _ in range(20)]
        for instance in ids:
            self.assertRegex(instance, ID)
        for shard in (0, 1):
            mine = [i for i in ids if i.startswith("wfi.s%d." % shard)]
            self.assertEqual(len(mine), 10)
            kept = world.shards[shard].psql("select count(*) from wf_instance where id = any (string_to_array(:'ids', ','))",
                                            ids=",".join(ids))
            self.assertEqual(kept, "10")

    def test_the_reply_names_the_workflow(self):
        name = self.define("a")
        self.assertEqual(self.client.call("StartInstance", workflow=name).workflow, name)

    def test_context_defaults_to_an_empty_object(self):
        name = self.define("a")
        self.assertEqual(self.client.context(self.client.start(name)), {})
        nothing = self.client.call("StartInstance", workflow=name, context=value(None)).instance_id
        self.assertEqual(self.client.context(nothing), {})

    def test_any_json_value_is_kept_as_it_is(self):
        name = self.define("a")
        for context in ({"a": None, "b": [1, 2.5, {"c": "d"}]}, [1, 2], "text", 42, True,
                        {"max": 2 ** 53, "small": 1e-7, "uni": "\u00e9\u4e2d\U0001f600", "empty": {}, "": 1}):
            with self.subTest(context=context):
                self.assertEqual(self.client.context(self.client.start(name, context)), context)

    def test_latest_is_the_highest_version(self):
        name = fresh_name()
        self.client.register(flow(name, "new", version=7))
        self.client.register(flow(name, "old", version=5))
        self.assertEqual(self.client.get(self.client.start(name)).instance.version, 7)
        self.assertEqual(self.client.get(self.client.start(name, version=5)).instance.version, 5)

    def test_unknown_workflows_are_not_found(self):
        self.refused(NOT_FOUND, "workflow 'no-such-workflow' not found", self.client.start, "no-such-workflow")
        name = self.define("a")
        self.refused(NOT_FOUND, "*not found*", self.client.start, name, version=99)

    def test_what_the_columns_bound_is_refused_at_the_door(self):
        name = self.define("a")
        self.client.start(name, correlation_id="c" * 200)
        self.refused(INVALID, "*correlation*", self.client.start, name, correlation_id="c" * 201)

    def test_values_that_json_cannot_hold_are_refused(self):
        name = self.define("a")
        for wrong in (struct_pb2.Value(number_value=float("nan")), struct_pb2.Value(number_value=float("inf")),
                      value({"a": {"b": "zero\x00byte"}}), value({"key\x00": 1})):
            self.refused(INVALID, "**", self.client.call, "StartInstance", workflow=name, context=wrong)

    def test_nesting_is_bounded_and_the_deepest_accepted_comes_back(self):
        name = self.define("a")

        def nested(depth):
            inner = "x"
            for _ in range(depth):
                inner = {"d": inner}
            return inner
        instance = self.client.start(name, nested(32))
        self.assertEqual(self.client.context(instance), nested(32))
        self.assertEqual(self.client.status(instance), "RUNNING")
        request = bytes(b"\x0a") + bytes([len(name)]) + name.encode()
        deep = b"\x1a\x01x"
        for _ in range(60):
            entry = b"\x0a\x01d\x12" + varint(len(deep)) + deep
            fields = b"\x0a" + varint(len(entry)) + entry
            deep = b"\x2a" + varint(len(fields)) + fields
        raw = self.client.channel.unary_unary("/com.wiggle.proto.WiggleControlPlane/StartInstance")
        self.refused(INVALID, "**", raw, request + b"\x12" + varint(len(deep)) + deep, timeout=60)

    def test_messages_up_to_4_mib(self):
        name = self.define("a")
        big = "x" * (3 << 20)
        self.assertEqual(self.client.context(self.client.start(name, {"big": big})), {"big": big})
        parked = self.client.future("PollTasks", worker_id="w", queues=[fresh_name("nobody")], wait_millis=15000)
        for size in (5 << 20, 64 << 20):
            self.refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "**", self.client.start, name, {"big": "x" * size})
        self.assertFalse(parked.done(), "another call on the connection")
        self.assertTrue(self.client.start(name), "the connection still serves")
        parked.cancel()


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


class Get(ClientTest):
    def test_an_instance_and_its_tokens(self):
        name = self.define("a", "b")
        instance = self.client.start(name, {"k": 1})
        detail = self.client.get(instance)
        view = detail.instance
        self.assertEqual((view.id, view.workflow, view.version, view.status), (instance, name, 1, "RUNNING"))
        self.assertFalse(view.HasField("termination_reason"))
        self.assertFalse(view.HasField("error"))
        self.assertGreater(view.created_at, 1_700_000_000_000)
        self.assertEqual([(t.node_id, t.status, t.attempt) for t in detail.tokens], [("n1", "READY", 0)])
        self.assertEqual(detail.tokens[0].activity, name + "#a")

    def test_unknown_instances_are_not_found(self):
        for unknown in ("wfi.s0.01m446vf3rya1rekthaps4", "wfi.s1.01m446vf3rya1rekthaps4", "wfi_01m446vf3rya1rekthaps4",
                        "no-instance", ""):
            with self.subTest(id=unknown):
                self.refused(NOT_FOUND, "instance not found", self.client.get, unknown)

    def test_a_shard_that_no_topology_names_is_unavailable(self):
        self.refused(grpc.StatusCode.UNAVAILABLE, "**", self.client.get, "wfi.s7.01m446vf3rya1rekthaps4")


class List(ClientTest):
    def ids(self, **filters):
        return [i.id for i in self.client.call("ListInstances", **filters).instances]

    def test_newest_first_over_both_shards(self):
        name = self.define("a")
        started = [self.client.start(name) for _ in range(8)]
        listed = self.client.call("ListInstances", workflow=name).instances
        self.assertEqual({i.id for i in listed}, set(started))
        times = [i.created_at for i in listed]
        self.assertEqual(times, sorted(times, reverse=True))
        self.assertEqual(len(self.ids(workflow=name, limit=3)), 3)
        self.assertEqual(self.ids(workflow=name, limit=3), [i.id for i in listed][:3])

    def test_limit_defaults_to_50(self):
        name = self.define("a")
        for _ in range(55):
            self.client.start(name)
        self.assertEqual(len(self.ids(workflow=name)), 50)
        self.assertEqual(len(self.ids(workflow=name, limit=-1)), 50)
        self.assertEqual(len(self.ids(workflow=name, limit=100)), 55)

    def test_by_status_in_any_case(self):
        name = self.define("a")
        ended, running = self.client.start(name), self.client.start(name)
        self.client.call("CancelInstance", instance_id=ended)
        self.assertEqual(self.ids(workflow=name, status="cancelled"), [ended])
        self.assertEqual(self.ids(workflow=name, status="RUNNING"), [running])
        self.refused(INVALID, "*NONSENSE*", self.client.call, "ListInstances", status="nonsense")

    def test_a_correlation_id_overrides_the_other_filters(self):
        name, correlation = self.define("a"), fresh_name("order")
        ids = [self.client.start(name, correlation_id=correlation) for _ in range(3)]
        found = self.ids(correlation_id=correlation, workflow="another", status="FAILED")
        self.assertEqual(set(found), set(ids))
        self.assertEqual(len(self.ids(correlation_id=correlation, limit=2)), 2)
        self.assertEqual(self.ids(correlation_id=""), [])


class Cancel(ClientTest):
    def test_cancelling_a_running_instance(self):
        name = self.define("a")
        instance = self.client.start(name)
        self.assertEqual(self.client.call("CancelInstance", instance_id=instance).cancelled, instance)
        view = self.client.get(instance)
        self.assertEqual((view.instance.status, view.instance.termination_reason), ("CANCELLED", "cancelled via API"))
        self.assertEqual([t.status for t in view.tokens], ["CANCELLED"])
        self.assertEqual(self.client.poll(name, wait=0), [])

    def test_the_reason_is_kept_and_only_the_first_cancel_counts(self):
        instance = self.client.start(self.define("a"))
        self.client.call("CancelInstance", instance_id=instance, reason="duplicate order")
        self.client.call("CancelInstance", instance_id=instance, reason="again")
        self.assertEqual(self.client.get(instance).instance.termination_reason, "duplicate order")
        self.refused(INVALID, "*reason*", self.client.call, "CancelInstance", instance_id=instance, reason="r" * 201)

    def test_unknown_instances_are_not_found(self):
        self.refused(NOT_FOUND, "instance not found", self.client.call, "CancelInstance",
                     instance_id="wfi.s1.01m446vf3rya1rekthaps4")

    def test_a_completed_instance_stays_completed(self):
        name = self.define("a")
        instance = self.client.start(name)
        self.client.report(self.client.poll_one(name), {})
        self.client.call("CancelInstance", instance_id=instance)
        self.assertEqual(self.client.status(instance), "COMPLETED")
