"""A url that leads through PgBouncer: refused, whatever its mode, and by name where the database has another entry."""
import os
import subprocess

import grpc

from bouncer import Bouncer, with_pgbouncer
from harness import wait_for
from relay import Relay
from test_registry import Databases
from test_topology_reload import written
from wigclient import Client, flow, fresh_name

POOLER = "the url leads through a connection pooler, such as PgBouncer"
SETUP_LOCK = 7420398115703004   # proxies that set one database up wait for one another


@with_pgbouncer
class Poolers(Databases):
    def bouncer(self, *more, **options):
        bouncer = Bouncer(self.shard, *more, **options)
        self.addCleanup(bouncer.stop)
        return bouncer

    def same(self, one, other):
        """What is said of two shards, each a number and a place."""
        return "shard %d (%s): this is the same database as shard %d (%s)" % (*one, *other)

    def test_a_start_ends_and_leaves_the_database_alone(self):
        for mode, takes_options in (("session", True), ("transaction", True), ("statement", True), ("session", False)):
            with self.subTest(mode=mode, takes_options=takes_options):
                bouncer = self.bouncer(mode, takes_options=takes_options)
                # what a shard that cannot be reached is waited for is not waited for here
                self.refuses(self.document(bouncer.url), "shard 0 (%s): %s" % (bouncer.place, POOLER),
                             WIGGLE_STARTUP_TIMEOUT_MILLIS=600000)
                self.assertEqual(self.shard.psql("select count(*) from pg_extension where extname = 'wiggle'"), "0")
                self.assertEqual(self.shard.psql("select count(*) from pg_locks where locktype = 'advisory'"), "0")

    def test_one_database_under_two_entries(self):
        """By a running proxy, which knows the other one already."""
        bouncer = self.bouncer("transaction")
        document = self.document("wiggle")
        proxy = self.proxy_for(document).start()
        written(proxy, dict(self.document("wiggle", bouncer.url), generations=document["generations"]))
        wait_for(lambda: self.same((1, bouncer.place), (0, self.place())) in proxy.log(), 60, "both to be named")
        wait_for(lambda: "shard 1 (%s): %s" % (bouncer.place, POOLER) in proxy.log(), 60, "the refusal")
        written(proxy, document)
        wait_for(lambda: "shard 1: is retired" in proxy.log(), 60, "the entry to be gone")

    def test_sql_of_an_application_goes_through(self):
        bouncer = self.bouncer("transaction")
        proxy = self.proxy_for(self.document("wiggle")).start()
        client = Client(proxy.address)
        self.addCleanup(client.close)
        name = fresh_name()
        client.register(flow(name, "a"))
        poll = client.future("PollTasks", worker_id="w", queues=[name], max=1, wait_millis=30000)
        done = subprocess.run(["psql", "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-v", "name=" + name, "-U", "wiggle",
                               bouncer.url], input="begin; select wiggle.start(:'name'); commit;", text=True, check=True,
                              stdout=subprocess.PIPE, env={**os.environ, "PGPASSWORD": bouncer.password})
        self.assertEqual([t.instance_id for t in poll.result().tasks], [done.stdout.strip()])

    def test_the_entry_that_is_refused_comes_first(self):
        bouncer = self.bouncer()
        proxy = self.proxy_for(self.document("wiggle", bouncer.url), WIGGLE_MIGRATE_ONLY="true")
        with self.shard.holding("do $$ begin perform pg_advisory_xact_lock(%d); end $$" % SETUP_LOCK):
            proxy.start(wait=False)
            wait_for(lambda: "shard 1 (%s): %s" % (bouncer.place, POOLER) in proxy.log(), 60, "the refusal")
            self.assertNotIn("the same database", proxy.log())
        self.assertEqual(proxy.process.wait(60), 1, proxy.log())
        self.assertIn(self.same((0, self.place()), (1, bouncer.place)), proxy.log())

    def test_of_several_hosts_the_server_is_taken(self):
        bouncer = self.bouncer(name="wiggle")
        self.serves(self.document("postgresql://127.0.0.1:%d,127.0.0.1:%d/wiggle" % (bouncer.port, self.shard.port)))
        self.serves(self.document("postgresql://127.0.0.1:%d,127.0.0.1:%d/wiggle" % (self.shard.port, bouncer.port)))

    def test_a_replica(self):
        bouncer = self.bouncer()
        document = self.document("wiggle")
        document["shards"][0]["replicas"] = [{"url": bouncer.url, "user": "wiggle", "password": bouncer.password}]
        proxy = self.proxy_for(document).start()
        wait_for(lambda: "cannot connect to replica %s, trying again: %s" % (bouncer.place, POOLER) in proxy.log(), 60,
                 "the refusal")

    def test_one_that_comes_into_the_way_later(self):
        """No session of a running proxy goes through it."""
        bouncer = self.bouncer(name="wiggle")
        relay = Relay(self.shard.port)
        self.addCleanup(relay.close)
        proxy = self.proxy_for(self.document("postgresql://127.0.0.1:%d/wiggle" % relay.port)).start()
        client = Client(proxy.address)
        self.addCleanup(client.close)
        name = fresh_name()
        client.register(flow(name, "a"))
        relay.target = bouncer.port
        cut = "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'wiggle-proxy%'"
        self.shard.psql(cut)
        wait_for(lambda: "shard 0: cannot connect to 127.0.0.1:%d/wiggle: %s" % (relay.port, POOLER) in proxy.log(), 60,
                 "the refusal")
        self.refused(grpc.StatusCode.UNAVAILABLE, "*storage temporarily unavailable*", client.start, name)
        self.assertEqual(self.shard.psql("select count(*) from wf_instance"), "0")
        relay.target = self.shard.port
        wait_for(proxy.ready, 60, "the server to be taken again")
        self.assertRegex(client.start(name), r"^wfi\.s0\.")
