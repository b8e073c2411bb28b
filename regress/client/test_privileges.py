"""The databases' side of security: the role that docs/shards.md gives the proxy is enough, and no more than that."""
import os
import re
import subprocess

import pg_wiggle_auth_pb2 as auth_pb
import world
from harness import TREE, Proxy, Standby, topology, wait_for
from test_auth import Keyed
from wigclient import ClientTest, flow, fresh_name

# What a careful administrator does to a database that others use as well.
HARDENED = """
revoke create, usage on schema public from public;
alter default privileges revoke execute on functions from public;
alter role wiggle_proxy set row_security = off;
do $$
declare t regclass;
begin
	for t in select c.oid from pg_class c where c.relnamespace = 'wiggle'::regnamespace and c.relkind = 'r' loop
		execute format('alter table %s enable row level security, force row level security', t);
	end loop;
end $$;
"""


def script(shard):
    """The page's own, for this shard."""
    with open(os.path.join(TREE, "docs", "shards.md"), encoding="utf-8") as f:
        page = f.read().split("## The role that the proxy connects as")[1]
    text = re.search(r"```sql\n(.*?)```", page, re.S).group(1)
    return (text.replace("'…'", "'secret'").replace("wiggle0", "wiggle")
            .replace("shard_claim(0)", "shard_claim(%d)" % shard))


class LeastRole(ClientTest):
    @classmethod
    def setUpClass(cls):
        cls.shards = [world.make_shard("least-%d" % i) for i in (0, 1)]
        for i, shard in enumerate(cls.shards):
            cls.addClassCleanup(shard.stop)
            shard.psql(script(i))
        cls.shards[1].psql(HARDENED)
        standby = Standby(os.path.join(world.AREA, "least-replica"), cls.shards[0]).start()
        cls.addClassCleanup(standby.stop)
        document = topology(*cls.shards)
        for shard in document["shards"]:
            shard["primary"].update(user="wiggle_proxy", password="secret")
        document["shards"][0]["replicas"] = [dict(document["shards"][0]["primary"], url="jdbc:postgresql://127.0.0.1:%d/wiggle"
                                                  % standby.port)]
        cls.proxy = Proxy(world.AREA, document, name="least", WIGGLE_SCHEMA_MODE="verify", WIGGLE_GRPC_AUTH="enforce").start()
        cls.addClassCleanup(cls.proxy.stop)
        cls.admin = cls.shards[0].psql("select wiggle.auth_create_key('me', 'admin')")

    def setUp(self):
        self.client = Keyed(self.proxy, self.admin)
        self.addCleanup(self.client.close)

    def sql(self, role, sql, shard=0, database="wiggle"):
        """(status, both outputs) of a session of this role, with its password."""
        cluster = self.shards[shard]
        done = subprocess.run(
            ["psql", "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose", "-c", sql,
             "host=127.0.0.1 port=%d user=%s password=secret dbname=%s" % (cluster.port, role, database)],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return done.returncode, done.stdout.strip()

    def denied(self, role, sql, shard=0, database="wiggle"):
        status, said = self.sql(role, sql, shard, database)
        self.assertNotEqual(status, 0, "%s may run %s" % (role, sql))
        self.assertRegex(said, "42501|permission denied", sql)

    def carry(self):
        """Some of everything that clients do, on both shards."""
        call, name, consumer = self.client.call, fresh_name("least"), fresh_name("consumer")
        call("PollEvents", consumer=consumer)
        self.client.register(flow(name, "a", "b"))
        ids = [self.client.start(name, {"n": 1}, correlation_id="c") for _ in range(6)]
        self.assertEqual({i.split(".")[1] for i in ids}, {"s0", "s1"})
        done = set()
        while len(done) < 4:
            for task in self.client.poll(name, max=4):
                call("HeartbeatTask", task_id=task.task_id, lease_owner=task.lease_owner, extend_millis=60000)
                if task.instance_id in ids[:2]:
                    self.client.fail(task, retryable=False)
                elif self.client.report(task, {"n": 2}).applied.instance_status == "COMPLETED":
                    done.add(task.instance_id)
        for instance, status in zip(ids, ["FAILED"] * 2 + ["COMPLETED"] * 4):
            self.assertEqual(self.client.status(instance), status)
        waits = fresh_name("waits")
        self.client.register({"workflow": waits, "version": 1, "steps": [{"await_signal": "go"}, {"sleep": "10ms"}]})
        first, second, third = (self.client.start(waits) for _ in range(3))
        for instance in (first, second):
            self.client.signal(instance, "go")
            self.becomes(instance, "COMPLETED")
        call("CancelInstance", instance_id=third)
        events = []
        while len(events) < 18:    # a start and an end of each
            got = call("PollEvents", consumer=consumer, max=50, wait_millis=5000).events
            events += got
            call("AckEvents", consumer=consumer, acked_cursor=got[-1].cursor)
        self.assertEqual({e.instance_id for e in events}, {*ids, first, second, third})
        call("ForgetConsumer", consumer=consumer)
        return name

    def test_everything_that_clients_do(self):
        name = self.carry()
        call = self.client.call
        schedule = call("CreateSchedule", workflow=name, every_millis=50)
        wait_for(lambda: all(s.psql("select count(*) from wf_instance where workflow = '%s' and status = 'RUNNING'" % name) != "0"
                             for s in self.shards), 60, "fires on home and, by way of the outbox, on the other shard")
        self.assertEqual([s.id for s in call("ListSchedules").schedules], [schedule.id])
        call("DeleteSchedule", id=schedule.id)
        wait_for(lambda: self.replica_reads(call, name) > 0, 60, "a list that the replica gives")
        self.assertEqual(call("GetStepStats", workflow=name).nodes[0].count, 6 - 2)
        call("GetBacklogCoverage")
        self.assertEqual(len(call("GetCluster").members), 1)
        self.assertEqual(call("GetWorkflow", name=name).definition["name"], name)
        self.assertIn(name, call("ListWorkflows").workflows)
        self.client.raw("/pg_wiggle.v1.ShardService/ListShards")
        self.client.manage("PutRole", name="worker", permissions=["task.poll"])
        key = self.client.manage("CreateKey", id="w1", role="worker").key
        self.assertEqual(self.code(Keyed(self.proxy, key), "ListWorkflows"), "PERMISSION_DENIED")
        self.client.manage("RevokeCredential", id="w1")
        self.client.manage("DropRole", name="worker")
        self.client.manage("ListCredentials")
        self.assertEqual(self.proxy.log().count("permission denied for"), 0, self.proxy.log())

    def replica_reads(self, call, name):
        call("ListInstances", workflow=name)
        found = re.findall(r"^wiggle_proxy_replica_reads_total\{.*\} (\d+)$", self.proxy.http("/metrics")[1], re.M)
        return sum(int(n) for n in found)

    def code(self, client, rpc):
        self.addCleanup(client.close)
        try:
            client.call(rpc)
        except Exception as refusal:    # pylint: disable=broad-except
            return refusal.code().name
        return "OK"

    def test_no_more_than_that(self):
        for sql in ("select wiggle.shard_adopt()", "select wiggle.shard_write_off(1)", "select wiggle.shard_auth(1)",
                    "select wiggle.shard_disown(1)", "select wiggle.test_set_clock(now())",
                    "select count(*) from wiggle.wf_instance", "delete from wiggle.wf_definition",
                    "insert into wiggle.wf_beat default values",
                    "select * from wiggle.wf_auth_credential", "create table wiggle.mine ()", "create temporary table mine ()",
                    "create role another", "set role wiggle_admin", "select pg_read_file('PG_VERSION')"):
            self.denied("wiggle_proxy", sql)
        for sql in ("select wiggle.start('x')", "select wiggle.poll('w')", "delete from wiggle.wf_instance",
                    "select * from wiggle.wf_auth_credential", "select wiggle.cancel('wfi.s0.x')"):
            self.denied("dashboard", sql)
        status, said = self.sql("wiggle_proxy", "drop extension wiggle")
        self.assertEqual((status, "must be owner of extension wiggle" in said), (1, True), said)
        for sql in ("select count(*) from wiggle.wf_instance", "select count(*) from wiggle.stuck",
                    "select count(*) from wiggle.schedules()", "select shard_id from wiggle.shard()"):
            self.assertEqual(self.sql("dashboard", sql)[0], 0, sql)

    def test_each_grant_is_missed_with_a_word(self):
        """Taken away under a proxy that starts: it says which one, and waits until it is given."""
        home = self.shards[0]
        for take, give, text in (
                ("revoke wiggle_server from wiggle_proxy", "grant wiggle_server to wiggle_proxy",
                 "permission denied for schema wiggle; grant wiggle_server to the proxy's role there"),
                ("revoke connect on database wiggle from wiggle_proxy", "grant connect on database wiggle to wiggle_proxy",
                 'permission denied for database "wiggle"'),
                ("alter role wiggle_proxy nologin", "alter role wiggle_proxy login",
                 'role "wiggle_proxy" is not permitted to log in')):
            with self.subTest(take=take):
                proxy = Proxy(world.AREA, dict(self.proxy.document), name=fresh_name("missing"), WIGGLE_SCHEMA_MODE="verify",
                              WIGGLE_STARTUP_TIMEOUT_MILLIS=300)
                home.psql(take)
                try:
                    proxy.start(wait=False)
                    wait_for(lambda p=proxy, t=text: t in p.log(), 60, "'%s' in the log of a proxy" % text)
                    home.psql(give)
                    wait_for(proxy.ready, 60, "a proxy that is let in again")
                    self.assertEqual(proxy.stop(), 0)
                finally:
                    home.psql(give)
                    if proxy.process.poll() is None:
                        proxy.kill()

    def test_an_owner_of_a_database_is_told_why(self):
        home = self.shards[0]
        home.psql("create role owner login password 'secret'", "postgres")
        home.psql("create database owned owner owner", "postgres")
        status, said = self.sql("owner", "create extension wiggle", database="owned")
        self.assertEqual(status, 1, said)
        self.assertIn('permission denied to create extension "wiggle"', said)
        self.assertIn("Must be superuser", said)
        # a tenant of the same cluster, with the same kind of role, does not get into this database
        home.psql("create extension wiggle; grant wiggle_server, wiggle_reader to owner", "owned")
        self.assertEqual(self.sql("owner", "select count(*) from wiggle.wf_instance", database="owned"), (0, "0"))
        self.denied("owner", "select count(*) from wiggle.wf_instance")

    def test_applications_call_it_in_every_way(self):
        home, name = self.shards[0], fresh_name("called")
        self.client.register(flow(name, "a"))
        home.psql("create role app login password 'secret'; create role clerk login password 'secret';"
                  "grant wiggle_client to app; grant connect on database wiggle to app, clerk;"
                  "create schema shop authorization app; grant usage on schema shop to clerk")
        self.assertEqual(self.sql("app", """
            create table shop.orders (n int);
            grant insert on shop.orders to clerk;
            create function shop.place(n int) returns text language sql security definer as $$select wiggle.start('%s')$$;
            grant execute on function shop.place(int) to clerk;
            create function shop.on_order() returns trigger language plpgsql as
            $$begin perform wiggle.start('%s'); return new; end$$;
            create trigger on_order after insert on shop.orders for each row execute function shop.on_order()""" % (name, name))[0], 0)
        self.assertEqual(self.sql("clerk", "select shop.place(1)")[0], 0)
        self.denied("clerk", "select wiggle.start('%s')" % name)
        self.denied("clerk", "insert into shop.orders values (1)")    # a trigger runs as who inserts
        self.assertEqual(self.sql("app", "insert into shop.orders values (1), (2)"), (0, ""))
        self.assertEqual(self.sql("app", "begin; insert into shop.orders values (3); rollback"), (0, ""))
        home.psql("begin; set local role app; select wiggle.start('%s'); commit" % name)
        home.psql("create role monitor login password 'secret' in role pg_read_all_data; grant connect on database wiggle to monitor")
        self.assertEqual(self.sql("monitor", "select count(*) from wiggle.wf_instance where workflow = '%s'" % name), (0, "4"))
        self.denied("monitor", "select wiggle.start('%s')" % name)
