"""Which database is which shard: what a start, a copy, a failover and a wrong topology come to."""
import copy
import json
import os
import shutil
import signal
import subprocess

import grpc

import world
from connect import Http1
from harness import Cluster, Proxy, topology, wait_for
from relay import Relay
from test_cli import wiggle
from test_topology_reload import metric, part, reloads, written
from wigclient import Client, ClientTest, flow, fresh_name


class Databases(ClientTest):
    """Databases of one cluster as shards, and proxies that come and go."""

    def setUp(self):
        self.name = self.id().split(".")[-1][5:29]
        self.shard = world.make_shard("registry-" + self.name)
        self.addCleanup(self.shard.stop)
        self.shard.psql("create database other", "postgres")
        self.weights = []       # of generation 1, 2, ... of the documents of this test

    def document(self, *databases, **states):
        """A topology of these databases; a state of shard N is given as sN."""
        document = topology(*([self.shard] * len(databases)))
        for entry, database in zip(document["shards"], databases):
            if not isinstance(database, str):
                entry["primary"]["url"], entry["primary"]["password"] = (
                    "postgresql://127.0.0.1:%d/wiggle" % database.port, self.shard.password)
            elif database.startswith("postgresql://"):
                entry["primary"]["url"] = database
            else:
                entry["primary"]["url"] = "postgresql://127.0.0.1:%d/%s" % (self.shard.port, database)
            entry["state"] = states.get("s%d" % entry["id"], "active")
            if entry["state"] != "active":
                document["generations"][0]["weights"][str(entry["id"])] = 0
        weights = document["generations"][0]["weights"]
        if weights not in self.weights:
            self.weights.append(weights)
        document["generations"][0]["id"] = self.weights.index(weights) + 1
        return document

    def proxy_for(self, document, **settings):
        proxy = Proxy(world.AREA, document, name=fresh_name("registry"), **settings)
        self.addCleanup(proxy.stop)
        if os.path.exists(proxy.log_path):
            os.remove(proxy.log_path)  # of an earlier run
        return proxy

    def serves(self, document, **settings):
        """A proxy starts with it, and is stopped; what it said."""
        proxy = self.proxy_for(document, **settings).start()
        self.assertEqual(proxy.stop(), 0, proxy.log())
        return proxy.log()

    def refuses(self, document, *words, **settings):
        """The start ends, soon and with these words in its log."""
        proxy = self.proxy_for(document, **settings)
        proxy.start(wait=False)
        wait_for(lambda: proxy.process.poll() is not None, 60, "the end of the proxy")
        self.assertEqual(proxy.process.returncode, 1, proxy.log())
        for word in words:
            self.assertIn(word, proxy.log())

    def pause(self, cluster):
        subprocess.run(["pg_ctl", "-D", os.path.join(cluster.folder, "data"), "-m", "fast", "-w", "-s", "stop"], check=True)

    def resume(self, cluster):
        """On the port that it had."""
        subprocess.run(["pg_ctl", "-D", os.path.join(cluster.folder, "data"), "-w", "-s", "-l",
                        os.path.join(cluster.folder, "log"), "-o", "-p %d -k %s" % (cluster.port, cluster.socket), "start"],
                       check=True, stdin=subprocess.DEVNULL)

    def place(self, database="wiggle"):
        return "127.0.0.1:%d/%s" % (self.shard.port, database)


class Registry(Databases):
    def test_many_proxies_start_at_once_on_empty_databases(self):
        """Each database is made and claimed once, whoever comes first."""
        document = self.document("wiggle", "other")
        proxies = [self.proxy_for(document) for _ in range(5)]
        for proxy in proxies:
            proxy.start(wait=False)
        for proxy in proxies:
            wait_for(lambda p=proxy: p.process.poll() is not None or p.ready(), 60, "a ready proxy")
            self.assertIsNone(proxy.process.poll(), proxy.log())
        logs = "".join(proxy.log() for proxy in proxies)
        for shard in (0, 1):
            self.assertEqual(logs.count("shard %d: created the extension wiggle" % shard), 1, logs)
            self.assertEqual(logs.count("shard %d: this is the database" % shard), 1, logs)
        self.assertNotRegex(logs, "ERROR|WARN ")
        self.assertEqual(self.shard.psql("select shard_id, state, place from wiggle.shards()"),
                         "0|ACTIVE|%s\n1|ACTIVE|%s" % (self.place(), self.place("other")))
        self.assertEqual(self.shard.psql("select count(*) from wiggle.wf_shard_registry", "other"), "0")

    def test_many_proxies_verify_at_once(self):
        document = self.document("wiggle", "other")
        self.serves(document)
        identities = [self.shard.psql("select * from wf_shard", d) for d in ("wiggle", "other")]
        proxies = [self.proxy_for(document, WIGGLE_SCHEMA_MODE="verify") for _ in range(3)]
        for proxy in proxies:
            proxy.start(wait=False)
        for proxy in proxies:
            wait_for(lambda p=proxy: p.process.poll() is not None or p.ready(), 60, "a ready proxy")
            self.assertIsNone(proxy.process.poll(), proxy.log())
        self.assertEqual(identities, [self.shard.psql("select * from wf_shard", d) for d in ("wiggle", "other")])

    def test_setting_up_alone(self):
        """WIGGLE_MIGRATE_ONLY: done and gone, or the shards that could not be set up by name."""
        only = {"WIGGLE_MIGRATE_ONLY": "true", "WIGGLE_STARTUP_TIMEOUT_MILLIS": 600000}
        document = self.document("wiggle", "other")
        proxy = self.proxy_for(document, **only)
        for said in ("created the extension wiggle in", "ready in"):
            proxy.start(wait=False)
            wait_for(lambda: proxy.process.poll() is not None, 60, "the end of the proxy")
            self.assertEqual(proxy.process.returncode, 0, proxy.log())
            for place in (self.place(), self.place("other")):
                self.assertIn("%s %s" % (said, place), proxy.log())
            self.assertIn("2 shards are set up", proxy.log())
        self.assertNotIn("Wiggle server", proxy.log())
        self.assertEqual(self.shard.psql("select count(*), (select count(*) from wf_node) from wf_shard_registry"), "2|0")

        down = self.document("wiggle", "other", "missing", "postgresql://127.0.0.1:1/wiggle")
        self.shard.psql("drop extension wiggle")
        self.refuses(down, "shard 0: created the extension wiggle",
                     "shard 2 (%s) was not set up: " % self.place("missing"), 'database "missing" does not exist',
                     "shard 3 (127.0.0.1:1/wiggle) was not set up: ", "2 of 4 shards could not be set up", **dict(only, WIGGLE_STARTUP_TIMEOUT_MILLIS=8000))

    def test_databases_that_were_swapped_are_both_named(self):
        self.serves(self.document("wiggle", "other"))
        self.refuses(self.document("other", "wiggle"),
                     "shard 0 (%s): the database belongs to shard 1 (%s); correct the topology"
                     % (self.place("other"), self.place()))

    def test_one_database_under_two_addresses(self):
        self.serves(self.document("wiggle", "other"))
        relay = Relay(self.shard.port)
        self.addCleanup(relay.close)
        for port, url in ((self.shard.port, "postgresql:///wiggle?host=%s&port=%d"
                           % (self.shard.socket.replace("/", "%2F"), self.shard.port)),
                          (self.shard.port, "postgresql://localhost:%d/wiggle" % self.shard.port),
                          (relay.port, "postgresql://127.0.0.1:%d/wiggle" % relay.port)):
            with self.subTest(url=url):
                proxy = self.proxy_for(self.document("wiggle", url))
                proxy.start(wait=False)
                wait_for(lambda p=proxy: p.process.poll() is not None, 60, "the end of the proxy")
                self.assertEqual(proxy.process.returncode, 1, proxy.log())
                self.assertRegex(proxy.log(), r"ERROR setup: shard \d \(.*:(%d|%d)/wiggle\): .* shard \d \(.*:(%d|%d)/wiggle\)"
                                 % (port, self.shard.port, port, self.shard.port))

    def test_states_only_move_forward(self):
        self.serves(self.document("wiggle", "other"))
        self.serves(self.document("wiggle", "other", s1="draining"))
        self.refuses(self.document("wiggle", "other"),
                     "shard 1: it is ACTIVE in the topology, but has been DRAINING since 20",
                     "give it the state draining", "1 of 2 shards cannot be used as they are")
        self.refuses(self.document("wiggle", "other", s1="retired"),
                     "shard 1: it is RETIRED in the topology, but nobody has confirmed that it holds nothing any more",
                     'run "wiggle shards retire 1"')
        left_out = self.document("wiggle")
        self.refuses(left_out, "shard 1: it is not in the topology, but home knows it as DRAINING, last reached at %s"
                     % self.place("other"))
        self.shard.psql("select wiggle.shard_retire()", "other")
        self.serves(self.document("wiggle", "other", s1="draining"))
        self.serves(self.document("wiggle", "other", s1="retired"))
        self.serves(left_out)
        self.refuses(self.document("wiggle", "other", s1="draining"), "has been RETIRED since")
        self.shard.psql("create database fresh", "postgres")
        self.refuses(self.document("wiggle", "fresh"), "has been RETIRED since")
        self.assertEqual(self.shard.psql("select count(*) from pg_extension where extname = 'wiggle'", "fresh"), "0")
        self.assertEqual(self.shard.psql("select shard_id, state, emptied from wiggle.shards()"),
                         "0|ACTIVE|f\n1|RETIRED|t")

    def states(self):
        return self.shard.psql("select shard_id, state from wiggle.shards()").split()

    def test_a_start_that_is_refused_moves_no_state(self):
        active = self.document("wiggle", "other")
        self.serves(active)
        # refused for another shard, by its own database
        again = "localhost:%d/other" % self.shard.port
        self.refuses(self.document("wiggle", "other", "postgresql://" + again, s1="draining"), "shard 2 (%s): " % again)
        self.assertEqual(self.states()[:2], ["0|ACTIVE", "1|ACTIVE"])
        # and for another shard by home
        self.shard.psql("insert into wf_shard_registry (shard_id, state, first_seen, changed_at, identity)"
                        " values (5, 'DRAINING', now(), now(), gen_random_uuid())")
        self.refuses(self.document("wiggle", "other", s1="draining"), "shard 5: it is not in the topology")
        self.shard.psql("delete from wf_shard_registry where shard_id = 5")
        self.assertEqual(self.states()[:2], ["0|ACTIVE", "1|ACTIVE"])
        self.serves(active)

    def test_a_generation_that_has_begun_is_the_same_at_each_start(self):
        document = self.document("wiggle", "other")
        self.serves(document)
        for change, text in (({"weights": {"0": 1, "1": 3}},
                              'its weights are {"0": 1, "1": 1} on home, but {"0": 1, "1": 3} in the topology'),
                             ({"activeFrom": "2026-01-02T00:00:00Z"},
                              "its activeFrom is 2026-01-01T00:00:00.000Z on home, but 2026-01-02T00:00:00.000Z in the topology")):
            edited = copy.deepcopy(document)
            edited["generations"][0].update(change)
            with self.subTest(text=text):
                self.refuses(edited, "generation 1 has begun and cannot be changed: " + text)
        # one that has not begun may change, also by a start
        for weight in (1, 2):
            later = copy.deepcopy(document)
            later["generations"].append({"id": 2, "activeFrom": "2999-01-01T00:00:00Z", "weights": {"1": weight}})
            self.serves(later)
            self.assertEqual(self.shard.psql("select weight from wf_placement where generation = 2"), str(weight))

    def test_a_copy_of_a_shards_database_is_refused_until_it_is_adopted(self):
        self.serves(self.document("wiggle", "other"))
        self.shard.psql("alter database other is_template true", "postgres")
        clone = self.document("wiggle", "clone")
        wait_for(lambda: self.cloned(), 60, "the copy to be made")
        self.refuses(clone, "shard 1 (%s): this is a copy of the database that shard 1 is" % self.place("clone"),
                     'run "select wiggle.shard_adopt()" in it')
        self.shard.psql("select wiggle.shard_adopt()", "clone")
        self.serves(clone)
        self.refuses(self.document("wiggle", "other"),
                     "shard 1 (%s): this is not the database that home knows as this shard, which was last reached at %s"
                     % (self.place("other"), self.place("clone")))
        self.serves(clone)

    def cloned(self):
        """The clock worker of the original has to be away for a moment."""
        try:
            self.shard.psql("select pg_terminate_backend(pid) from pg_stat_activity where datname = 'other'", "postgres")
            self.shard.psql("create database clone template other", "postgres")
            return True
        except RuntimeError:
            return False

    def test_a_new_empty_database_does_not_become_a_known_shard(self):
        self.serves(self.document("wiggle", "other"))
        self.shard.psql("create database fresh", "postgres")
        fresh = self.document("wiggle", "fresh")
        self.refuses(fresh, "shard 1 (%s): this is not the database that home knows as this shard" % self.place("fresh"))
        self.shard.psql("select wiggle.shard_adopt()", "fresh")
        self.serves(fresh)

    def known(self):
        """What home's registry has, while no proxy runs; None: there is none."""
        if self.shard.psql("select to_regclass('wiggle.wf_shard_registry')") == "":
            return None
        return self.shard.psql("select jsonb_agg(to_jsonb(r) order by shard_id) from wf_shard_registry r")

    def check(self, document, *problems, **settings):
        """wiggle topology check --connect finds these and nothing else, in order, and changes nothing."""
        before = self.known()
        done = wiggle("--json", "topology", "check", "-", "--connect", stdin=json.dumps(document), **settings)
        found = [(p["connection"], p["problem"]) for p in json.loads(done.stdout)["problems"]]
        self.assertEqual([where for where, _ in found], [where for where, _ in problems], found)
        for (_, got), (_, wanted) in zip(found, problems):
            self.assertIn(wanted, got)
        self.assertEqual(done.returncode, 1 if problems else 0, done.stderr)
        self.assertEqual(self.known(), before)

    def test_a_check_finds_what_a_start_would_refuse(self):
        both = self.document("wiggle", "other")
        self.check(both)
        self.serves(both)
        self.check(both)
        self.check(self.document("wiggle"), ("shard 1", "it is not in the topology, but home knows it as ACTIVE, last reached at %s"
                                             % self.place("other")))
        self.check(self.document("wiggle", "other", s1="retired"),
                   ("shard 1", 'nobody has confirmed that it holds nothing any more; give it the state active again'))
        self.check(self.document("wiggle", "other", s1="draining"))
        self.shard.psql("update wf_shard_registry set wal = 'FFFFF/0' where shard_id = 1")
        self.check(both, ("shard 1 primary", "already written up to FFFFF/0: this is an older copy"))
        self.shard.psql("update wf_shard_registry set wal = '0/1' where shard_id = 1")
        self.serves(self.document("wiggle", "other", s1="draining"))
        self.check(both, ("shard 1 primary", "it is ACTIVE in the topology, but has been DRAINING since 20"))

        # another database in the shard's place: a new one, with and without the extension, a copy
        self.shard.psql("create database fresh", "postgres")
        known = "this is not the database that home knows as this shard, which was last reached at %s" % self.place("other")
        self.check(self.document("wiggle", "fresh", s1="draining"), ("shard 1 primary", known))
        self.shard.psql("create extension wiggle", "fresh")
        self.check(self.document("wiggle", "fresh", s1="draining"), ("shard 1 primary", known))
        self.shard.psql("select wiggle.shard_claim(1)", "fresh")
        self.check(self.document("wiggle", "fresh", s1="draining"), ("shard 1 primary", known))
        self.shard.psql("select wiggle.shard_adopt()", "fresh")
        self.check(self.document("wiggle", "fresh", s1="draining"))
        self.shard.psql("alter database other is_template true", "postgres")
        wait_for(lambda: self.cloned(), 60, "the copy to be made")
        self.check(self.document("wiggle", "clone", s1="draining"),
                   ("shard 1 primary", "this is a copy of the database that shard 1 is; correct the topology"))

    def test_a_check_knows_what_the_role_may_do(self):
        self.shard.psql("create role little login password 'little'")
        little = self.document("wiggle", "other")
        little["shards"][1]["primary"].update(user="little", password="little")
        self.check(little, ("shard 1 primary", 'the role "little" may not create the extension wiggle; as a superuser run'))
        self.serves(self.document("wiggle", "other"))
        self.shard.psql("grant wiggle_reader to little")
        self.check(little, ("shard 1 primary", 'the role "little" may not run what the proxy needs; run "grant wiggle_server to'
                                               ' little" there'))
        self.shard.psql("grant wiggle_server to little")
        self.check(little)
        little["shards"][0]["primary"].update(user="little", password="little")
        self.check(little)

    def test_a_check_knows_where_keys_are_kept(self):
        both = self.document("wiggle", "other")
        self.serves(both, WIGGLE_GRPC_AUTH="enforce")
        self.shard.psql("select wiggle.auth_put_role('kept', '{read}', 'test')")
        both["shards"][1]["roles"].append("auth")
        self.check(both)
        self.check(both, ("shard 1 primary", "the topology gives the role auth to shard 1, but the keys and roles of clients are"
                                             " kept on shard 0"), WIGGLE_GRPC_AUTH="enforce")

    def test_home_that_comes_later_is_asked_then(self):
        away = world.make_shard("registry-away-" + self.name[:12])
        self.addCleanup(away.stop)
        document = topology(self.shard, away)
        self.serves(document)
        identity = away.psql("select identity from wf_shard")
        self.pause(self.shard)
        proxy = self.proxy_for(document, WIGGLE_STARTUP_TIMEOUT_MILLIS=1000)
        proxy.start(wait=False)
        wait_for(lambda: "1 of 2 shards can be used" in proxy.log(), 60, "the other shard to serve")
        client = Client(proxy.address)
        self.addCleanup(client.close)
        self.refused(grpc.StatusCode.NOT_FOUND, "instance not found", client.get, "wfi.s1.0123456789abcdefghjkmn")
        self.assertIn("shard 1: home cannot be asked whether this is the shard's database", proxy.log())
        self.resume(self.shard)
        wait_for(proxy.ready, 60, "readiness")

        # what home says then closes the shard, when it is another one
        self.shard.psql("update wf_shard_registry set identity = gen_random_uuid(), system_id = '1' where shard_id = 1")
        self.pause(self.shard)
        again = self.proxy_for(document, WIGGLE_STARTUP_TIMEOUT_MILLIS=1000)
        again.start(wait=False)
        wait_for(lambda: "1 of 2 shards can be used" in again.log(), 60, "the other shard to serve")
        self.resume(self.shard)
        wait_for(lambda: "this is not the database that home knows as this shard" in again.log(), 60, "the refusal")
        self.assertIsNone(again.process.poll(), again.log())
        other = Client(again.address)
        self.addCleanup(other.close)
        self.refused(grpc.StatusCode.UNAVAILABLE, "*storage temporarily unavailable*", other.get,
                     "wfi.s1.0123456789abcdefghjkmn")
        self.shard.psql("update wf_shard_registry set identity = '%s' where shard_id = 1" % identity)
        wait_for(again.ready, 60, "readiness")


class HomeAway(Databases):
    """A changed document that home has to agree to, while home is away."""

    def setUp(self):
        super().setUp()
        self.away = world.make_shard("registry-there-" + self.name[:12])
        self.addCleanup(self.away.stop)
        active = topology(self.shard, self.away)
        active["generations"].append({"id": 2, "activeFrom": "2026-02-01T00:00:00Z", "weights": {"0": 1}})
        self.active = active
        self.draining = copy.deepcopy(active)
        self.draining["shards"][1]["state"] = "draining"
        self.proxy = self.proxy_for(active).start()
        self.pause(self.shard)
        written(self.proxy, self.draining)
        self.wait_for_waiting(1)

    def wait_for_waiting(self, times):
        wait_for(lambda: self.proxy.log().count("the changed document waits for home, ") == times, 60, "the document to wait")
        self.assertEqual(metric(self.proxy, "wiggle_proxy_topology_waiting"), 1)
        self.assertEqual(metric(self.proxy, "wiggle_proxy_topology_refused"), 0)
        self.assertIn("the changed document waits for home: ", part(self.proxy, "topology")[1])

    def test_it_waits_until_home_answers(self):
        # looked at again, it waits again
        self.proxy.process.send_signal(signal.SIGHUP)
        self.wait_for_waiting(2)
        self.resume(self.shard)
        wait_for(lambda: reloads(self.proxy, "applied") == 1, 60, "the document to be applied")
        self.assertEqual(self.proxy.log().count("the changed document waits for home, "), 2)
        self.assertEqual(self.proxy.log().count("home has answered about the changed document"), 1)
        self.assertEqual(metric(self.proxy, "wiggle_proxy_topology_waiting"), 0)
        self.assertEqual(part(self.proxy, "topology"), (True, "read"))
        self.assertEqual(reloads(self.proxy, "refused"), 0)
        self.assertEqual(self.shard.psql("select state from wiggle.shards() where shard_id = 1"), "DRAINING")

    def test_another_document_takes_its_place(self):
        written(self.proxy, self.active)
        wait_for(lambda: metric(self.proxy, "wiggle_proxy_topology_waiting") == 0, 60, "the former document to be read again")
        self.resume(self.shard)
        wait_for(self.proxy.ready, 60, "readiness")
        # asked in its own turn, home has heard of nothing else before
        more = copy.deepcopy(self.active)
        more["generations"].append({"id": 3, "activeFrom": "2999-02-01T00:00:00Z", "weights": {"1": 1}})
        written(self.proxy, more)
        wait_for(lambda: reloads(self.proxy, "applied") == 1, 60, "the document to be applied")
        self.assertEqual(self.shard.psql("select state from wiggle.shards() where shard_id = 1"), "ACTIVE")


class OlderCopies(Databases):
    """A data directory from before differs from the shard in nothing but how far it has come."""

    def swap(self, cluster):
        """Another data directory takes the present one's place, which is kept."""
        self.pause(cluster)
        os.rename(cluster.data, cluster.data + ".swap")
        os.rename(cluster.data + ".copy", cluster.data)
        os.rename(cluster.data + ".swap", cluster.data + ".copy")
        self.resume(cluster)

    def answers(self, client, instance):
        try:
            return client.status(instance) == "RUNNING"
        except grpc.RpcError:
            return False

    def started_on(self, client, name, shard):
        try:
            started = client.start(name)
        except grpc.RpcError:
            return None
        return started if started.startswith("wfi.%s." % shard) else None

    def test_one_is_refused_by_whoever_has_seen_the_shard_since(self):
        away = world.make_shard("registry-older-" + self.name[:12])
        self.addCleanup(away.stop)
        document = topology(self.shard, away)
        proxy = self.proxy_for(document).start()
        client = Client(proxy.address)
        self.addCleanup(client.close)
        name = fresh_name()
        client.register(flow(name, "a"))
        for cluster in (self.shard, away):
            self.pause(cluster)
            shutil.copytree(cluster.data, cluster.data + ".copy")
            self.resume(cluster)
        started = {s: wait_for(lambda s=s: self.started_on(client, name, s), 60, "an instance on " + s) for s in ("s0", "s1")}
        for cluster in (self.shard, away):  # far beyond what the copy writes by itself
            cluster.psql("create table much as select repeat('x', 1000) from generate_series(1, 20000)")
        reached = away.psql("select pg_current_wal_flush_lsn()")
        wait_for(lambda: self.shard.psql("select wal >= :'reached'::pg_lsn from wf_shard_registry where shard_id = 1",
                                         reached=reached) == "t", 60, "home to know how far the shard has come")

        self.swap(away)
        wait_for(lambda: "this is an older copy" in proxy.log(), 60, "the running proxy to refuse the copy of shard 1")
        self.refused(grpc.StatusCode.UNAVAILABLE, "*storage temporarily unavailable*", client.get, started["s1"])
        self.refuses(document, "shard 1 (127.0.0.1:%d/wiggle): its write-ahead log ends at" % away.port,
                     "had already written up to", "this is an older copy")
        self.swap(away)
        wait_for(lambda: self.answers(client, started["s1"]), 60, "the shard itself to be taken again")

        # home's registry is in its copy: what the running proxy remembers has to do
        self.swap(self.shard)
        wait_for(lambda: "shard 0 (%s): its write-ahead log ends at" % self.place() in proxy.log(), 60,
                 "the running proxy to refuse the copy of home")
        self.refused(grpc.StatusCode.UNAVAILABLE, "*storage temporarily unavailable*", client.get, started["s0"])
        self.swap(self.shard)
        wait_for(lambda: self.answers(client, started["s0"]), 60, "home itself to be taken again")


    def copy_at_another_port(self, cluster):
        """Runs beside the original, as it was when this was called."""
        folder = os.path.join(os.path.dirname(cluster.folder), fresh_name("registry-copy"))
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        other = object.__new__(Cluster)
        other.folder, other.host, other.within = folder, cluster.host, cluster.within
        self.pause(cluster)
        shutil.copytree(cluster.data, other.data)
        shutil.copy(os.path.join(cluster.folder, "password"), folder)
        self.resume(cluster)
        self.addCleanup(other.stop)
        return other.start()

    def test_of_several_hosts_the_one_that_has_written_most_is_taken(self):
        self.serves(self.document("wiggle"))
        older = self.copy_at_another_port(self.shard)
        self.shard.psql("create table much as select repeat('x', 1000) from generate_series(1, 20000)")
        hosts = "postgresql://127.0.0.1:%d,127.0.0.1:%d/wiggle"
        for ports in ((older.port, self.shard.port), (self.shard.port, older.port)):
            with self.subTest(first="older" if ports[0] == older.port else "original"):
                proxy = self.proxy_for(self.document(hosts % ports)).start()
                client = Client(proxy.address)
                self.addCleanup(client.close)
                name = fresh_name()
                client.register(flow(name, "a"))
                started = [client.start(name)]
                # a restart, during which the older one alone is there
                self.pause(self.shard)
                wait_for(lambda p=proxy: "an older copy of the database answers in the shard's place" in p.log(), 60,
                         "the copy to be refused")
                self.resume(self.shard)
                started.append(wait_for(lambda c=client, n=name: self.started_on(c, n, "s0"), 60, "a start afterwards"))
                self.assertLessEqual(set(started), set(self.shard.psql("select id from wf_instance").split()))
                self.assertEqual(older.psql("select count(*) from wf_instance"), "0")
                self.assertEqual(proxy.stop(), 0, proxy.log())


class OneSided(Databases):
    """A shard that one proxy reaches and another does not."""

    def test_lists_do_not_leave_out_a_new_shard_that_others_reach(self):
        one, two = (self.proxy_for(self.document("wiggle")).start() for _ in range(2))
        client, other = (Client(p.address) for p in (one, two))
        for c in (client, other):
            self.addCleanup(c.close)
        name = fresh_name()
        client.register(flow(name, "a"))
        more = self.document("wiggle", "other")
        more["generations"] = self.document("wiggle")["generations"]
        apart = copy.deepcopy(more)
        apart["shards"][1]["primary"]["url"] = "postgresql://127.0.0.1:1/other"
        more["generations"].append({"id": 2, "activeFrom": "2026-02-01T00:00:00Z", "weights": {"0": 1, "1": 1}})
        written(one, more)
        written(two, apart)
        wait_for(lambda: client.start(name).startswith("wfi.s1."), 60, "an instance on the new shard")

        def noticed():
            try:
                other.call("ListInstances", workflow=name)
            except grpc.RpcError as refusal:
                return refusal.code() == grpc.StatusCode.UNAVAILABLE and "storage temporarily unavailable" in refusal.details()
            return False
        wait_for(noticed, 60, "the other proxy to refuse a list without shard 1")

    def test_a_new_shard_with_a_wrong_url_is_taken_back(self):
        document = self.document("wiggle")
        proxy = self.proxy_for(document).start()
        client = Client(proxy.address)
        self.addCleanup(client.close)
        wrong = copy.deepcopy(document)
        wrong["shards"].append(copy.deepcopy(document["shards"][0]))
        wrong["shards"][1].update(id=7, roles=["instances"], primary={"url": "postgresql://127.0.0.1:1/wiggle"})
        written(proxy, wrong)
        wait_for(lambda: "shard 7: cannot connect" in proxy.log(), 60, "the new shard to be tried")
        self.assertIn("it may be taken out of the topology again", proxy.log())
        self.refused(grpc.StatusCode.UNAVAILABLE, "*shard 7*", client.register, flow(fresh_name(), "a"))
        written(proxy, document)
        wait_for(lambda: "shard 7: is retired, its connections are closed" in proxy.log(), 60, "the shard to be left")
        client.register(flow(fresh_name(), "a"))
        self.assertEqual(self.shard.psql("select shard_id from wf_shard_registry"), "0")
        self.serves(document)


class CatchingUp(Databases):
    """A shard that lacks what home has is given it before it takes new instances."""

    def client_of(self, proxy):
        client = Client(proxy.address)
        self.addCleanup(client.close)
        return client

    def defined(self, name, database="other"):
        return self.shard.psql("select count(*) from wf_definition where name = :'name'", database, name=name)

    def test_a_new_shard_has_every_definition_before_it_has_weight(self):
        one = self.proxy_for(self.document("wiggle")).start()
        client = self.client_of(one)
        names = [fresh_name() for _ in range(130)]
        for name in names:
            client.register(flow(name, "a", "b"))
        document = self.document("wiggle", "other")
        document["generations"][0]["weights"] = {"0": 0, "1": 1}
        two = [self.proxy_for(document) for _ in range(3)]
        for proxy in two:
            proxy.start(wait=False)
        for proxy in two:
            wait_for(proxy.ready, 60, "a ready proxy")
            other = self.client_of(proxy)
            for name in (names[0], names[-1]):
                self.assertRegex(other.start(name), r"^wfi\.s1\.")
        self.assertEqual(self.shard.psql("select wiggle.definition_list()"),
                         self.shard.psql("select wiggle.definition_list()", "other"))

        # the old proxy knows nothing of the new shard, whose proxies see to it
        late = fresh_name()
        client.register(flow(late, "a"))
        wait_for(lambda: self.defined(late) == "1", 60, "the definition to be passed on")

    def test_a_registration_on_home_by_sql_reaches_every_shard(self):
        self.proxy_for(self.document("wiggle", "other")).start()
        name = fresh_name()
        self.shard.psql("select wiggle.register(jsonb_build_object('workflow', :'name', 'version', 1, 'steps',"
                        " '[{\"task\":\"a\"}]'::jsonb))", name=name)
        wait_for(lambda: self.defined(name) == "1", 60, "the definition to be passed on")

    def test_a_shard_with_another_graph_takes_nothing_new(self):
        proxy = self.proxy_for(self.document("wiggle", "other")).start()
        client = self.client_of(proxy)
        name, fine = fresh_name(), fresh_name()
        client.register(flow(fine, "a"))
        held = next(i for i in (client.start(fine) for _ in range(4)) if i.startswith("wfi.s1."))
        for database, step in (("other", "x"), ("wiggle", "y")):
            self.shard.psql("select wiggle.register(jsonb_build_object('workflow', :'name', 'version', 1, 'steps',"
                            " jsonb_build_array(jsonb_build_object('task', :'step'))))", database, name=name, step=step)
        wait_for(lambda: "shard 1 takes no new instances until it has what home has" in proxy.log(), 60, "the conflict")
        self.assertEqual({client.start(fine).split(".")[1] for _ in range(4)}, {"s0"})
        self.assertEqual(client.status(held), "RUNNING")
        self.shard.psql("delete from wf_definition where name = :'name'", "other", name=name)
        wait_for(lambda: client.start(name).startswith("wfi.s1."), 60, "shard 1 to take instances again")


class Shards(Databases):
    """wiggle shards: what there is, and the end of one."""

    def wiggle(self, status, *arguments, server):
        done = wiggle(*arguments, server=server.address)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def listed(self, server):
        return json.loads(self.wiggle(0, "--json", "shards", server=server).stdout)

    def test_what_is_shown(self):
        away = world.make_shard("registry-shown-" + self.name[:12])
        self.addCleanup(away.stop)
        document = self.document("wiggle", away)
        document["shards"][1]["primary"]["password"] = away.password
        document["generations"].append({"id": 7, "activeFrom": "2999-01-01T00:00:00Z", "weights": {"0": 1, "1": 3}})
        proxy = self.proxy_for(document).start()
        client = Client(proxy.address)
        self.addCleanup(client.close)
        name = fresh_name()
        client.register(flow(name, "a"))
        for _ in range(3):
            client.start(name)
        client.call("CancelInstance", instance_id=client.start(name))
        shown = self.listed(proxy)
        self.assertEqual([shown[k] for k in ("generation", "next_generation", "next_from")], [1, 7, "2999-01-01T00:00:00.000Z"])
        first, second = shown["shards"]
        self.assertEqual({k: first[k] for k in ("id", "state", "roles", "place", "weight", "next_weight", "reachable",
                                                "takes_instances", "held_instances")},
                         {"id": 0, "state": "ACTIVE", "roles": ["instances", "home", "auth"], "place": self.place(), "weight": 1,
                          "next_weight": 1, "reachable": True, "takes_instances": True, "held_instances": 2})
        self.assertEqual((second["next_weight"], second["held_instances"]), (3, 2))
        # which shard the first one went to is left to chance
        self.assertEqual(sorted(s["live_instances"] for s in (first, second)), [1, 2])
        self.assertEqual(first["library_version"], first["extension_version"])
        self.assertGreaterEqual(first["connections"], 3)
        self.assertGreaterEqual(first["lag_millis"], 0)
        by_json = Http1(proxy).call("", path="/pg_wiggle.v1.ShardService/ListShards")
        self.assertEqual([s["place"] for s in by_json["shards"]], [s["place"] for s in shown["shards"]])

        # of very many only the newest are counted
        self.assertFalse(second["more_instances"])
        away.psql("insert into wf_instance (no, created_at, updated_at, version, depth, id, workflow, status)"
                  " select n, now(), now(), 1, 0, 'wfi.s1.' || n, 'old', 'COMPLETED' from generate_series(1, 10000) n")
        many = self.listed(proxy)["shards"][1]
        self.assertEqual((many["held_instances"], many["more_instances"], many["live_instances"]),
                         (10000, True, second["live_instances"]))
        self.assertRegex(self.wiggle(0, "shards", server=proxy).stdout,
                         r"\n1 +ACTIVE +instances +1, then 3 +%d\+ +10000\+ " % second["live_instances"])

        # one that is down is shown as such, since when and why
        self.pause(away)
        wait_for(lambda: not self.listed(proxy)["shards"][1]["reachable"], 60, "the shard to be seen as down")
        wait_for(lambda: "refused" in self.listed(proxy)["shards"][1]["problem"], 60, "the reason")
        down = self.listed(proxy)["shards"][1]
        self.assertRegex(down["changed_at"], r"^20\d\d-")
        self.assertNotIn("live_instances", down)
        text = self.wiggle(0, "shards", server=proxy).stdout
        self.assertRegex(text, r"\n1 +ACTIVE +instances +1, then 3 +\? +\? +\? +.*not since 20.*refused")
        self.assertIn("generation 1; generation 7 from 2999-01-01T00:00:00.000Z", text)

    def test_a_start_goes_elsewhere_once_its_shard_is_retired(self):
        """A proxy that still goes by a document that weighs it, as one among many may."""
        proxy = self.proxy_for(self.document("wiggle", "other")).start()
        client = Client(proxy.address)
        self.addCleanup(client.close)
        name = fresh_name()
        client.register(flow(name, "a"))
        self.shard.psql("select wiggle.shard_home(0, 'DRAINING'); select wiggle.shard_retire()", "other")
        self.assertEqual([client.start(name).split(".")[1] for _ in range(4)], ["s0"] * 4)

    def test_a_shard_is_drained_and_retired(self):
        proxy = self.proxy_for(self.document("wiggle", "other")).start()
        client = Client(proxy.address)
        self.addCleanup(client.close)
        name = fresh_name()
        client.register(flow(name, "a"))
        held = next(i for i in (client.start(name) for _ in range(4)) if i.startswith("wfi.s1."))
        self.assertIn("shard 1: it is active", self.wiggle(1, "shards", "retire", "1", server=proxy).stderr)
        self.assertEqual(proxy.stop(), 0)

        draining = self.proxy_for(self.document("wiggle", "other", s1="draining")).start()
        refused = self.wiggle(1, "shards", "retire", "1", server=draining).stderr
        self.assertRegex(refused, r"shard 1 still holds \d instance\(s\), [12] of them not ended")

        # what a schedule had minted for it is started there all the same, and counts until then
        late = "wfi.s1.0123456789abcdefghjkmn"
        self.shard.psql("delete from wf_instance", "other")
        self.shard.psql("insert into wf_outbox values (:'id', 1, :'name', null, '{}', now(), 0, 'infinity')", id=late, name=name)
        self.assertIn("1 instance(s) that schedules have begun for shard 1 wait in wf_outbox on home",
                      self.wiggle(1, "shards", "retire", "1", server=draining).stderr)
        self.shard.psql("update wf_outbox set due_at = '-infinity'; notify wiggle_outbox")
        wait_for(lambda: self.shard.psql("select count(*) from wf_outbox") == "0", 60, "the outbox to be delivered")
        self.assertEqual(self.shard.psql("select id from wf_instance", "other"), late)
        self.shard.psql("delete from wf_instance", "other")
        self.wiggle(0, "shards", "retire", "1", server=draining)
        wait_for(lambda: self.shard.psql("select emptied from wiggle.shards() where shard_id = 1") == "t", 60,
                 "home to know that the shard is empty")
        self.assertEqual(draining.stop(), 0)

        retired = self.proxy_for(self.document("wiggle", "other", s1="retired")).start()
        other = Client(retired.address)
        self.addCleanup(other.close)
        self.refused(grpc.StatusCode.NOT_FOUND, "*", other.get, held)
        self.assertEqual([s["state"] for s in self.listed(retired)["shards"]], ["ACTIVE", "RETIRED"])
        self.assertIn("shard 9: the topology lists no such shard", self.wiggle(1, "shards", "retire", "9", server=retired).stderr)
        self.assertIn("'x' is no shard id", self.wiggle(2, "shards", "retire", "x", server=retired).stderr)
