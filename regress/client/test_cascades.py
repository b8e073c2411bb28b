"""Cancelling a parent while its children are made, and a chain of children that is deep."""
import time

import grpc

from harness import wait_for
from test_storage import OwnWorld
from wigclient import Client, fresh_name, run_of, step_result

CHILDREN = 500
DEPTH = 2000


class Cascade(OwnWorld):
    def on_both(self, sql, **variables):
        return [line for shard in self.shards for line in shard.psql(sql, **variables).splitlines()]

    def live(self):
        return sum(map(int, self.on_both("select count(*) from wiggle.wf_instance where status = 'RUNNING'")))

    def each_was_cancelled_once(self):
        """Every instance there is, with one wf.cancelled in the log, and nothing of their work is left."""
        wait_for(lambda: self.live() == 0, 120, "the end of every descendant")
        self.assertEqual(self.on_both("select distinct status from wiggle.wf_instance where status <> 'CANCELLED'"), [])
        self.assertEqual(self.on_both("""select i.id, count(e.seq) from wiggle.wf_instance i
            left join wiggle.wf_event e on e.instance_id = i.id and e.type = 'wf.cancelled'
            group by i.id having count(e.seq) <> 1"""), [])
        wait_for(lambda: self.on_both("select 1 from wiggle.wf_timer") == [], 60, "no timer")
        self.assertEqual(self.on_both("select 1 from wiggle.wf_ready union all select 1 from wiggle.wf_lease"), [])


class Wide(Cascade):
    runs = 10

    def test_a_parent_is_cancelled_while_five_hundred_children_are_made(self):
        child = self.shorthand({"await_signal": "never"})
        name = self.shorthand({"task": "go"}, {"fork_each": {
            "over": "items", "as": "item", "combine": "meet", "body": [{"sub_workflow": {"name": "sub", "workflow": child}}]}})
        for run in range(self.runs):
            instance = self.client.start(name, {"items": list(range(CHILDREN))})
            task = self.client.poll_one(name)
            report = self.client.future("ReportSteps", runs=[run_of(task, step_result(task.node_id, {
                "items": list(range(CHILDREN))}))])
            # 0 to 200 ms later, with somebody looking on.
            until = time.monotonic() + 0.2 * run / (self.runs - 1)
            while time.monotonic() < until:
                self.client.status(instance)
            cancel = self.client.future("CancelInstance", instance_id=instance)
            self.assertEqual(report.result().results[0].error_status, 0)
            self.assertEqual(cancel.result().cancelled, instance)
            children = self.on_both("select status, count(*) from wiggle.wf_instance where parent_token_id like :'stem'"
                                    " group by 1", stem=instance.replace("wfi", "tok", 1) + "-%")
            self.assertIn(sum(int(line.split("|")[1]) for line in children), (0, CHILDREN))
        self.each_was_cancelled_once()


class Deep(Cascade):
    def chain(self):
        """An instance with DEPTH - 1 instances below it, each the child of the one before; their ids.

        wiggle.max_depth is 4,000 when nothing is set, so that 2,000 is legal.
        """
        name = fresh_name("link")
        self.client.register({"workflow": name, "version": 1, "steps": [
            {"choose": [{"when": "deeper", "then": [{"sub_workflow": {"name": "next", "workflow": name}}]},
                        {"otherwise": {"then": [{"await_signal": "never"}]}}]}]})
        self.client.start(name)
        ids = []
        for depth in range(DEPTH):
            task = self.client.poll_one(name)
            ids.append(task.instance_id)
            self.assertEqual(self.client.report(task, depth < DEPTH - 1).error_status, 0)
        return ids

    def proxy_again(self):
        self.proxy.start()
        self.client.close()
        self.client = Client(self.proxy.address)

    def cancelled(self, ids):
        """How many of the chain are, which are the first ones."""
        states = [line.split("|") for line in self.on_both("select id, status from wiggle.wf_instance order by depth")]
        n = sum(status == "CANCELLED" for _, status in states)
        self.assertEqual([i for i, status in states if status == "CANCELLED"], ids[:n])
        return n

    def test_a_chain_of_two_thousand_is_cut_at_the_root_and_the_proxy_is_killed(self):
        ids = self.chain()
        shard = int(ids[0].split(".")[1][1:])
        depths = self.shards[shard].psql("select max(depth), count(*) from wiggle.wf_instance")
        self.assertEqual(depths, "%d|%d" % (DEPTH - 1, DEPTH))

        def hold(instance):
            return self.hold(shard, "select from wiggle.wf_instance where id = '%s' for update" % instance)
        middle, root = hold(ids[DEPTH // 2]), hold(ids[0])

        # Killed with the cancel on its way: nobody knows what became of it, and the client asks again.
        lost = self.client.future("CancelInstance", instance_id=ids[0])
        wait_for(lambda: int(self.shards[shard].psql("select count(*) from pg_locks where not granted")) > 0, 60,
                 "the cancel to wait for the root")
        self.proxy.kill()
        self.proxy_again()
        self.assertEqual(lost.code(), grpc.StatusCode.UNAVAILABLE)
        root()
        self.assertEqual(self.client.call("CancelInstance", instance_id=ids[0]).cancelled, ids[0])

        # Killed in the middle of the cascade, and who does its work too.
        wait_for(lambda: self.cancelled(ids) == DEPTH // 2, 120, "the upper half to be cancelled")
        self.proxy.kill()
        self.shards[shard].psql("select pg_terminate_backend(pid) from pg_stat_activity"
                                " where backend_type = 'wiggle clock worker'")
        middle()
        self.proxy_again()
        self.each_was_cancelled_once()
        self.assertEqual({self.client.status(i) for i in ids[::DEPTH // 10]}, {"CANCELLED"})
