"""SignalInstance: delivery, refusals, deadlines."""
import grpc

from doors import doors
from wigclient import ClientTest, plain

INVALID = grpc.StatusCode.INVALID_ARGUMENT
NOT_FOUND = grpc.StatusCode.NOT_FOUND
CONFLICT = grpc.StatusCode.FAILED_PRECONDITION


class Signals:
    def waiting(self, context=None, **more):
        name = self.shorthand({"await_signal": "approved", **more}, {"task": "after"})
        return name, self.client.start(name, context)

    def test_a_wait_and_its_signal(self):
        name, instance = self.waiting({"k": 1, "gone": 2})
        detail = self.client.get(instance)
        self.assertEqual(detail.instance.status, "RUNNING")
        self.assertEqual([(t.kind, t.status, t.activity) for t in detail.tokens], [("SIGNAL", "AWAITING", "approved")])
        self.assertTrue(self.client.signal(instance, "approved", {"by": "me", "gone": None}).ok)
        self.assertEqual(plain(self.client.poll_one(name).context), {"k": 1, "by": "me"})

    def test_payloads_of_other_kinds(self):
        for payload, expected in ((None, {"k": 1}), ([1, 2], [1, 2]), ("text", "text")):
            name, instance = self.waiting({"k": 1})
            self.client.signal(instance, "approved", payload)
            self.assertEqual(plain(self.client.poll_one(name).context), expected)

    def test_refusals(self):
        name, instance = self.waiting()
        self.refused(CONFLICT, "instance %s is not waiting for signal 'unexpected'" % instance, self.client.signal,
                     instance, "unexpected")
        self.refused(NOT_FOUND, "instance not found", self.client.signal, "wfi.s%d.01m446vf3rya1rekthaps4" % self.shard, "x")
        self.refused(INVALID, "*signal*", self.client.signal, instance, "s" * 201)
        self.client.signal(instance, "approved")
        self.refused(CONFLICT, "instance %s is not waiting for signal 'approved'" % instance, self.client.signal,
                     instance, "approved")
        self.client.report(self.client.poll_one(name), {})
        self.refused(CONFLICT, "instance %s is COMPLETED" % instance, self.client.signal, instance, "approved")

    def test_nothing_is_kept_for_later(self):
        name = self.shorthand({"task": "before"}, {"await_signal": "go"})
        instance = self.client.start(name)
        self.refused(CONFLICT, "*is not waiting for signal 'go'*", self.client.signal, instance, "go")
        self.client.report(self.client.poll_one(name), {})
        self.assertEqual(self.client.status(instance), "RUNNING")
        self.client.signal(instance, "go")
        self.assertEqual(self.client.status(instance), "COMPLETED")

    def test_a_deadline_without_escalation_fails(self):
        _, instance = self.waiting(timeout="100ms")
        self.becomes(instance, "FAILED")
        self.assertEqual(self.client.get(instance).instance.error, "signal 'approved' timed out")

    def test_a_deadline_with_escalation_rejoins(self):
        name, instance = self.waiting({"k": 1}, timeout="100ms", escalation=[{"task": "escalate"}])
        task = self.client.poll_one(name)
        self.assertEqual(task.step_name, "escalate")
        self.refused(CONFLICT, "*is not waiting*", self.client.signal, instance, "approved")
        self.client.report(task, {"late": True})
        self.assertEqual(self.client.poll_one(name).step_name, "after")

    def test_a_wait_in_an_arm(self):
        name = self.shorthand({"fork": {"a": [{"await_signal": "go"}, {"task": "a1"}],
                                        "b": [{"task": "b1"}]}})
        instance = self.client.start(name)
        self.client.signal(instance, "go", {"n": 1})
        tasks = {}
        while len(tasks) < 2:
            tasks.update((t.step_name, plain(t.context)) for t in self.client.poll(name, max=2))
        self.assertEqual(tasks, {"a1": {"n": 1}, "b1": {}})

    def test_a_cancelled_wait(self):
        _, instance = self.waiting()
        self.client.call("CancelInstance", instance_id=instance)
        self.refused(CONFLICT, "instance %s is CANCELLED" % instance, self.client.signal, instance, "approved")


globals().update(doors(Signals))


class Unreachable(ClientTest):
    def test_a_shard_that_no_topology_names_is_unavailable(self):
        self.refused(grpc.StatusCode.UNAVAILABLE, "**", self.client.signal, "wfi.s7.01m446vf3rya1rekthaps4", "x")
