"""Lists page by page, over two shards that have numbered instances alike."""
import json

import grpc

from connect import Http1, Http2
from harness import wait_for
from test_cli import wiggle
from test_storage import PART, OwnWorld

# As many on each shard, older than whatever else there is, with the numbers and the moment of the other's.
ALIKE = """
    select count(*) from (select wiggle.start(:'wf', correlation_id => 'alike') from generate_series(1, 5)) s;
    create temp table moved as select no as was, 1000000 + row_number() over (order by no) as no
      from wiggle.wf_instance where workflow = :'wf';
    update wiggle.wf_scope t set instance = m.no from moved m where t.instance = m.was;
    update wiggle.wf_token t set instance = m.no from moved m where t.instance = m.was;
    update wiggle.wf_ready t set instance = m.no from moved m where t.instance = m.was;
    update wiggle.wf_instance t set no = m.no, created_at = 'epoch' from moved m where t.no = m.was;
    select id from wiggle.wf_instance where workflow = :'wf' order by no desc"""


class Pages(OwnWorld):
    def setUp(self):
        super().setUp()
        self.workflow = self.define("a")
        self.ids = [shard.psql(ALIKE, wf=self.workflow).split()[1:] for shard in self.shards]
        self.all = [i for pair in zip(self.ids[1], self.ids[0]) for i in pair]
        self.assertEqual(len(self.all), 10)

    def page(self, after, limit, metadata=(), **fields):
        """The ids of a page, where the next one begins, and the shards that it lacks."""
        request, method = self.client.method("ListInstances")
        metadata += (("wiggle-after", after),) if after else ()
        reply, call = method.with_call(request(limit=limit, **fields), timeout=60, metadata=metadata)
        notes = dict(call.initial_metadata())
        return [i.id for i in reply.instances], notes.get("wiggle-next"), notes.get("wiggle-missing-shards")

    def test_every_instance_once_while_others_are_started(self):
        for fields in ({"workflow": self.workflow}, {"workflow": self.workflow, "status": "RUNNING"}, {"correlation_id": "alike"}):
            for limit in (3, 5, 1000):
                with self.subTest(fields=fields, limit=limit):
                    whole = self.page(None, 1000, **fields)[0]
                    self.assertEqual(whole[-10:], self.all)
                    pages, after = [], None
                    while not pages or after:
                        ids, after, missing = self.page(after, limit, **fields)
                        self.assertIsNone(missing)
                        self.assertEqual(after is not None, len(ids) == limit)
                        pages.append(ids)
                        self.client.start(self.workflow, correlation_id="alike" if "status" not in fields else None)
                    self.assertEqual([i for page in pages for i in page], whole)

    def test_by_json_too(self):
        for door in (Http1(self.proxy), Http2(self.proxy)):
            first = door.send("ListInstances", {"workflow": self.workflow, "limit": 4})
            self.assertEqual([i["id"] for i in first.body["instances"]], self.all[:4])
            second = door.send("ListInstances", {"workflow": self.workflow, "limit": 9}, wiggle_after=first.headers["wiggle-next"])
            self.assertEqual([i["id"] for i in second.body["instances"]], self.all[4:])
            self.assertNotIn("wiggle-next", second.headers)

    def test_what_is_no_cursor_is_refused(self):
        for wrong in ("x", "1", "1.", ".1", "0.0", "-1.0", "1.-1", "01.0", "1.0.0", "1.0x", "+1.0", "1.2147483648",
                      "9223372036854775807.0", "99999999999999999999.0", "9" * 5000):
            with self.subTest(wrong=wrong):
                with self.assertRaises(grpc.RpcError) as caught:
                    self.page(wrong, 5)
                self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
                self.assertEqual(caught.exception.details(), "wiggle-after '%s' is not what an answer had as wiggle-next; leave it"
                                 " out to begin with the newest" % wrong[:64])

    def test_a_dead_shard_is_missing_from_each_page(self):
        first, after, _ = self.page(None, 4, workflow=self.workflow)
        self.stop_hard(1)
        wait_for(lambda: not self.proxy.ready(), 60, "readiness to fall")
        with self.assertRaises(grpc.RpcError) as caught:
            self.page(after, 4, workflow=self.workflow)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)
        second, behind, missing = self.page(after, 2, PART, workflow=self.workflow)
        self.assertEqual((second, missing), (self.ids[0][2:4], "1"))
        self.assertEqual(self.page(behind, 2, PART, workflow=self.workflow), (self.ids[0][4:], None, "1"))
        done = wiggle("--json", "list", "--all", "--limit", "2", "--workflow", self.workflow, server=self.proxy.address)
        self.assertEqual([i["id"] for i in json.loads(done.stdout)], self.ids[0])
        self.assertEqual(done.stderr, "wiggle: shard 1 does not answer: what it holds is not in here\n")
        self.shards[1].start_again()
        wait_for(self.proxy.ready, 60, "readiness")
        self.assertEqual(first + self.page(after, 9, workflow=self.workflow)[0], self.all)

    def test_large_contexts_end_a_page_before_its_limit(self):
        """Numbers need several times their text on the wire; nine of the ten have 1 MB there, one has what nothing carries."""
        for i, shard in enumerate(self.shards):
            shard.psql("update wiggle.wf_scope set context = jsonb_build_object('x', (select jsonb_agg(1) from generate_series(1, 80000)))"
                       " where instance > 1000000 and instance <= 1000005")
            if i == 0:
                shard.psql("update wiggle.wf_scope set context = to_jsonb(repeat('x', 6000000)) where instance = 1000003")
        self.refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "*fewer with limit, or page by page*",
                     self.client.call, "ListInstances", workflow=self.workflow)
        pages, after = [], "begin"
        while after:
            ids, after, _ = self.page(after, 9, workflow=self.workflow)
            pages.append(ids)
        self.assertEqual([i for page in pages for i in page], self.all)
        self.assertGreater(len(pages), 3)
        for limit in (1, 6, 100):
            words = ("list", "--limit", str(limit), "--workflow", self.workflow)
            done = wiggle("--json", *words, server=self.proxy.address)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            listed = json.loads(done.stdout)
            self.assertEqual([i["id"] for i in listed], self.all[:limit])
            self.assertEqual([i["id"] for i in listed if not i["context"]], [self.ids[0][2]] if limit >= 6 else [])
            self.assertEqual(len(wiggle(*words, server=self.proxy.address).stdout.splitlines()), min(limit, 10) + 1)

    def test_the_command_line_walks_all_pages(self):
        for limit in (3, 5, 100):
            words = ("list", "--all", "--limit", str(limit), "--workflow", self.workflow)
            done = wiggle("--json", *words, server=self.proxy.address)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual([i["id"] for i in json.loads(done.stdout)], self.all)
            lines = wiggle(*words, server=self.proxy.address).stdout.splitlines()
            self.assertEqual([line.split()[0] for line in lines], ["ID"] + self.all)
        nothing = wiggle("--json", "list", "--all", "--workflow", "nobody's", server=self.proxy.address)
        self.assertEqual(nothing.stdout, "[]\n")
