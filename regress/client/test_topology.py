"""wiggle topology check, without and with the databases, and a topology as Kubernetes mounts it."""
import json
import os
import shutil
import subprocess

import world
from bouncer import Bouncer, with_pgbouncer
from harness import TREE, Cluster, Proxy, topology, wait_for
from test_cli import CommandTest, wiggle
from wigclient import Client, fresh_name

EXAMPLE = os.path.join(TREE, "examples", "topology.json")
CREDENTIALS = {"WIGGLE_JDBC_USER": "wiggle", "WIGGLE_JDBC_PASSWORD": "hunter2"}


def check(document, *arguments, **environment):
    """The command's end for a document on standard input."""
    text = document if isinstance(document, str) else json.dumps(document)
    return wiggle(*arguments, "topology", "check", "-", stdin=text, **environment)


def shard(number, url, *roles, state="active", **more):
    return {"id": number, "state": state, "roles": list(roles) or ["instances"],
            "primary": {"url": url, **more.pop("primary", {})}, **more}


def generation(number, since, **weights):
    return {"id": number, "activeFrom": since, "weights": {k[1:]: v for k, v in weights.items()}}


class Offline(CommandTest):
    def refuses(self, document, message, **environment):
        done = check(document, **environment)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", "wiggle: -: %s\n" % message))

    def test_the_example(self):
        for argument, stdin in ((EXAMPLE, ""), ("-", open(EXAMPLE, encoding="utf-8").read())):
            done = self.ends(0, "topology", "check", argument, stdin=stdin, **CREDENTIALS)
            self.assertIn("\n%s: valid; " % argument, done.stdout)
            self.assertNotIn("hunter2", done.stdout + done.stderr)
        done = self.ends(2, "topology", "check", EXAMPLE, WIGGLE_JDBC_USER="wiggle")
        self.assertEqual(done.stderr, "wiggle: %s: defaults password refers to ${WIGGLE_JDBC_PASSWORD}, which is not set; set it in"
                         " the environment, or correct the name\n" % EXAMPLE)

    def test_the_example_of_every_key(self):
        path = os.path.join(TREE, "examples", "topology-full.json")
        done = self.ends(0, "topology", "check", path, WIGGLE_READER_PASSWORD="hunter2", WIGGLE_S1_PASSWORD="hunter2",
                         **CREDENTIALS)
        self.assertNotIn("hunter2", done.stdout + done.stderr)

    def test_what_each_shard_is_and_takes_now_and_next(self):
        document = {
            "defaults": {"pool": 12, "replicaPool": 5, "replicaFallback": "fail"},
            "shards": [
                shard(0, "jdbc:postgresql://u:hunter2@pg-s0:5432/wiggle?ssl=true", "home", "instances",
                      replicas=[{"url": "postgresql://r1/wiggle"}, {"url": "postgresql://r2/wiggle", "pool": 2}]),
                shard(1, "postgresql://a,b:5433/wiggle", state="Draining", pool=7),
                {"id": 2, "state": "RETIRED", "roles": ["instances"]}],
            "generations": [generation(1, "2026-01-01T00:00:00Z", s0=1, s1=1, s2=1),
                            generation(2, "2026-02-01T00:00:00+01:00", s0=4),
                            generation(3, "2999-03-01T00:00:00Z", s0=3, s1=0)]}
        done = check(document)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual([line.split("  ")[0] for line in done.stdout.splitlines()], [
            "SHARD", "0", "1", "2", "", "-: valid; 3 shards, generation 2 since 2026-01-31T23:00:00.000Z"])
        rows = [" ".join(line.split()) for line in done.stdout.splitlines()[1:4]]
        self.assertEqual(rows, [
            "0 ACTIVE instances,home,auth pg-s0:5432/wiggle 12 2 (5, 2) 4 3 from 2999-03-01T00:00:00.000Z",
            "1 DRAINING instances a:5432,b:5433/wiggle 7 0 0 0 from 2999-03-01T00:00:00.000Z",
            "2 RETIRED instances 0 0 0 from 2999-03-01T00:00:00.000Z"])
        facts = json.loads(check(document, "--json").stdout)
        self.assertEqual(facts["generation"], {"id": 2, "active_from": "2026-01-31T23:00:00.000Z"})
        self.assertEqual(facts["next_generation"]["id"], 3)
        self.assertEqual(facts["shards"][0], {
            "id": 0, "state": "ACTIVE", "roles": ["instances", "home", "auth"], "primary": "pg-s0:5432/wiggle",
            "pool": 12, "replicas": [{"database": "r1:5432/wiggle", "pool": 5},
                                     {"database": "r2:5432/wiggle", "pool": 2}],
            "max_replica_lag_millis": 5000, "replica_fallback": "fail", "weight": 4, "next_weight": 3})

    def test_a_document_on_the_command_line(self):
        text = json.dumps({"shards": [shard(0, "postgresql://h/d", "home", "instances")],
                           "generations": [generation(1, "2999-01-01T00:00:00Z", s0=1)]})
        self.assertIn("the topology: valid; 1 shard, generation 1 begins 2999-01-01T00:00:00.000Z and is gone by until"
                      " then", self.ends(0, "topology", "check", " \n" + text).stdout)

    def test_what_is_wrong_is_said(self):
        one = [shard(0, "postgresql://h/d", "home", "instances")]
        now = [generation(1, "2026-01-01T00:00:00Z", s0=1)]
        self.refuses({"shards": one, "generations": [dict(now[0], activefrom=1)]},
                     "generation 1 has the unknown key 'activefrom'; did you mean 'activeFrom'?")
        self.refuses({"shards": one + [shard(1, "postgresql://i/d", state="draining")],
                      "generations": [generation(1, "2026-01-01T00:00:00Z", s0=1, s1=1),
                                      generation(2, "2999-01-01T00:00:00Z", s0=1)]},
                     "generation 1, which is in force, weighs shard 1, which is DRAINING; leave it active and set it to"
                     " draining once generation 2 has begun, at 2999-01-01T00:00:00.000Z (a document is read when it changes, and on"
                     " SIGHUP)")
        self.refuses({"shards": [shard(0, "postgresql://%zzhunter2@h/d", "home", "instances")], "generations": now},
                     "shard 0 primary url is not a valid PostgreSQL URL; write a '%' that stands for itself as %25, an IPv6 address"
                     " in brackets, and each parameter as name=value")
        self.refuses({"shards": one + [shard(1, "postgresql://i/d"), {"state": "active"}], "generations": now},
                     "a shard needs an integer id, got none in entry 3 of shards; give it a number from 0 to 999999999 that no"
                     " other has")
        self.refuses({"shards": [dict(one[0], url="postgresql://u:hunter2@h/d")], "generations": now},
                     "shard 0 has the key 'url', which is one of a shard's primary or of a replica; move it there")
        self.refuses({"shards": [dict(one[0], password=4711)], "generations": now},
                     "shard 0 password must be a string, got a number; put it in quotes, or leave it out")
        self.refuses("", "the storage topology is not valid JSON: line 1, column 0: '[' or '{' expected near end of file")
        self.refuses("{" + " " * (2 << 20) + "}", "the storage topology has more than 1048576 bytes; no more are read")
        self.assertIn("cannot open /no/such/file", self.ends(2, "topology", "check", "/no/such/file").stderr)
        self.assertIn("usage: wiggle topology check FILE", self.ends(2, "topology", "verify", EXAMPLE).stderr)
        self.assertIn("usage: wiggle topology check FILE", self.ends(2, "topology", "check").stderr)

    def test_what_libpq_takes_in_a_url(self):
        """Asked of libpq itself; what the proxy decides is refused all the same."""
        now = [generation(1, "2026-01-01T00:00:00Z", s0=1)]

        def one(parameter):
            return {"shards": [shard(0, "postgresql://h/d?" + parameter, "home", "instances")], "generations": now}
        for parameter in ("ssl_min_protocol_version=TLSv1.3", "ssl_max_protocol_version=TLSv1.3", "requirepeer=postgres",
                          "sslcompression=0", "sslsni=0"):
            done = check(one(parameter))
            self.assertEqual((done.returncode, done.stderr), (0, ""), parameter)
        self.refuses(one("replication=true"), "shard 0 primary url sets the parameter 'replication', which the proxy decides"
                     " itself; remove it")
        self.refuses(one("sslmod=prefer"), "shard 0 primary url has the unknown parameter 'sslmod' (did you mean 'sslmode'?);"
                     " remove it or correct it")

    def test_a_retired_shards_url_is_nobodys_concern(self):
        done = check({"shards": [shard(0, "postgresql://h/d", "home", "instances"), shard(1, "postgresql://%zz@h/d", state="retired")],
                      "generations": [generation(1, "2026-01-01T00:00:00Z", s0=1)]})
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_proxy_says_the_same(self):
        """
        Whatever refuses a document there does so here and in wiggle config --check, and nothing else. What the proxy judges
        by home's clock, which generation is in force, it says once home is heard, and ends with 1.
        """
        good = topology(*world.shards)
        broken = [json.dumps(good).replace('"roles"', '"rolls"', 1), json.dumps(good)[:-1] + ",}",
                  json.dumps(dict(good, generations=[])), "\ufeff" + json.dumps(good),
                  json.dumps(good).replace('"user": "wiggle"', '"user": "${NOBODY}"', 1),
                  json.dumps(good).replace("jdbc:postgresql://", "postgresql://%zz@", 1),
                  json.dumps(dict(good, shards=[good["shards"][0], dict(good["shards"][1], state="draining")],
                                  generations=[generation(1, "2026-01-01T00:00:00Z", s0=1, s1=1),
                                               generation(2, "2999-01-01T00:00:00Z", s0=1)]))]
        for text in broken:
            with self.subTest(text=text[:60]):
                done = check(text)
                self.assertEqual(done.returncode, 2, done.stdout)
                said = done.stderr.partition("wiggle: -: ")[2].strip()
                path = os.path.join(world.AREA, fresh_name("broken") + ".json")
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text)
                settings = wiggle("config", "--check", WIGGLE_STORAGE_TOPOLOGY=path)
                self.assertEqual((settings.returncode, settings.stdout, settings.stderr), (2, "", "wiggle: %s\n" % said))
                proxy = Proxy(world.AREA, {}, name=fresh_name("broken"), WIGGLE_STORAGE_TOPOLOGY=path).start(wait=False)
                self.assertEqual(proxy.process.wait(60), 1 if "2999" in text else 2, proxy.log())
                self.assertIn(said, proxy.log())
                self.assertNotIn(world.shards[0].password, proxy.log() + done.stderr)


class Connected(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.primary = world.make_shard(fresh_name("topology-primary"))
        cls.addClassCleanup(cls.primary.stop)
        cls.primary.psql("create extension wiggle; select wiggle.shard_claim(0)")
        cls.primary.psql("create database other", "postgres")
        cls.standby = cls.copy_of(cls.primary, "-R")

    @classmethod
    def copy_of(cls, primary, *options):
        copy = object.__new__(Cluster)
        copy.folder = os.path.join(os.path.abspath(world.AREA), fresh_name("topology-copy"))
        copy.host, copy.within = primary.host, primary.within
        shutil.rmtree(copy.folder, ignore_errors=True)
        os.makedirs(copy.folder)
        with open(os.path.join(copy.folder, "password"), "w", encoding="utf-8") as f:
            f.write(primary.password)
        subprocess.run(["pg_basebackup", "-c", "fast", "-D", os.path.join(copy.folder, "data"), *options,
                        "-d", primary.conninfo("postgres")], check=True, stdin=subprocess.DEVNULL)
        cls.addClassCleanup(copy.stop)
        return copy.start()

    def entry(self, cluster, database="wiggle", host="127.0.0.1"):
        return {"url": "postgresql://%s:%d/%s" % (host, cluster.port, database), "user": "wiggle",
                "password": cluster.password}

    def document(self, *shards):
        """Shards 0, 1 … of (primary, replicas…), each an entry."""
        return {"shards": [{"id": i, "state": "active", "roles": ["instances", "home"] if i == 0 else ["instances"],
                            "primary": entries[0], "replicas": list(entries[1:]), "maxReplicaLagMillis": 60000}
                           for i, entries in enumerate(shards)],
                "generations": [generation(1, "2026-01-01T00:00:00Z", s0=1)]}

    def finds(self, status, document, *problems):
        """The command ends so, and these are all problems: connection and a part of the text."""
        done = wiggle("--json", "topology", "check", "-", "--connect", stdin=json.dumps(document))
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        facts = json.loads(done.stdout)
        found = [(p["connection"], p["problem"]) for p in facts["problems"]]
        self.assertEqual([where for where, _ in found], [where for where, _ in problems], found)
        for (_, got), (_, wanted) in zip(found, problems):
            self.assertIn(wanted, got)
        for (where, _), line in zip(found, done.stderr.splitlines()):
            self.assertTrue(line.startswith("wiggle: -: %s (" % where), line)
        return facts["connections"]

    def test_shards_that_are_as_they_should_be(self):
        document = topology(*world.shards)
        first, second = self.finds(0, document)
        version = self.primary.psql("select extversion from pg_extension where extname = 'wiggle'")
        self.assertEqual((first["connection"], first["is"], first["extension"], first["shard"], first["lag_millis"]),
                         ("shard 0 primary", "writable", version, "0", None))
        self.assertEqual((second["connection"], second["shard"]), ("shard 1 primary", "1"))
        self.assertNotEqual(first["system"], second["system"])
        done = wiggle("topology", "check", "-", "--connect", stdin=json.dumps(document))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"\nCONNECTION +DATABASE +IS +POSTGRESQL +WIGGLE +SHARD +BEHIND\n"
                                      r"shard 0 primary +127\.0\.0\.1:\d+/wiggle +writable +\d+.* %s +0 *\n" % version)

    def test_a_database_without_the_extension_is_not_wrong(self):
        connections = self.finds(0, self.document((self.entry(self.primary),), (self.entry(self.primary, "other"),)))
        self.assertEqual((connections[1]["extension"], connections[1]["shard"]), (None, None))

    def test_a_database_of_another_shard(self):
        self.finds(1, topology(*reversed(world.shards)),
                   ("shard 0 primary", "the database belongs to shard 1; correct the topology"),
                   ("shard 1 primary", "the database belongs to shard 0; correct the topology"))

    def test_one_database_by_two_names(self):
        socket = self.primary.socket.replace("/", "%2F")
        self.finds(1, self.document((self.entry(self.primary),), (self.entry(self.primary, host=socket),)),
                   ("shard 1 primary", "the database belongs to shard 0"),
                   ("shard 1 primary", "this is the same database as shard 0 primary (127.0.0.1:%d/wiggle)" % self.primary.port))

    @with_pgbouncer
    def test_one_database_behind_a_pooler(self):
        pooler = "the url leads through a connection pooler, such as PgBouncer"
        for takes_options in (True, False):
            bouncer = Bouncer(self.primary, "transaction", takes_options=takes_options)
            self.addCleanup(bouncer.stop)
            more = [("shard 1 primary", "the database belongs to shard 0"),
                    ("shard 1 primary", "this is the same database as shard 0 primary (127.0.0.1:%d/wiggle)"
                     % self.primary.port)] if takes_options else []
            self.finds(1, self.document((self.entry(self.primary),), (dict(self.entry(self.primary), url=bouncer.url),)),
                       ("shard 1 primary", pooler), *more)

    def test_a_database_that_is_not_there(self):
        down = dict(self.entry(self.primary), url="postgresql://127.0.0.1:1/wiggle")
        connections = self.finds(3, self.document((self.entry(self.primary), down)),
                                 ("shard 0 replica 1", "Connection refused"))
        self.assertEqual(connections[1]["is"], "not reached")
        self.finds(1, self.document((self.entry(self.standby), down)),
                   ("shard 0 primary", "this is a standby and takes no writes"),
                   ("shard 0 replica 1", "Connection refused"))

    def test_a_wrong_password_is_not_shown(self):
        wrong = dict(self.entry(self.primary), password="hunter2")
        done = wiggle("topology", "check", "-", "--connect", stdin=json.dumps(self.document((wrong,))))
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn("password authentication failed", done.stderr)
        self.assertNotIn("hunter2", done.stdout + done.stderr)

    def test_a_role_that_may_not_use_the_extension(self):
        self.primary.psql("create role guest login password 'guest'")
        self.finds(1, self.document((dict(self.entry(self.primary), user="guest", password="guest"),)),
                   ("shard 0 primary", "permission denied"))

    def test_a_replica_and_how_far_it_is_behind(self):
        document = self.document((self.entry(self.primary), self.entry(self.standby)))
        connections = wait_for(lambda: self.caught_up(document), 60, "a standby that is not behind")
        self.assertEqual((connections[1]["is"], connections[1]["shard"], connections[1]["lag_millis"]),
                         ("standby", "0", 0))
        document["shards"][0]["maxReplicaLagMillis"] = 0
        self.standby.psql("select pg_wal_replay_pause()")
        self.addCleanup(self.standby.psql, "select pg_wal_replay_resume()")
        self.primary.psql("create table late ()")
        self.addCleanup(self.primary.psql, "drop table late")
        wait_for(lambda: self.standby.psql("select pg_last_wal_receive_lsn() > pg_last_wal_replay_lsn()") == "t",
                 60, "a standby that has received what it does not replay")
        self.finds(1, document, ("shard 0 replica 1", "ms behind, more than maxReplicaLagMillis (0), so it serves no reads"))

    def caught_up(self, document):
        done = wiggle("--json", "topology", "check", "-", "--connect", stdin=json.dumps(document))
        connections = json.loads(done.stdout)["connections"]
        return connections if connections[1]["lag_millis"] == 0 else None

    def test_replicas_that_are_none(self):
        self.finds(1, self.document((self.entry(self.primary), self.entry(world.lone), self.entry(self.standby, "postgres"))),
                   ("shard 0 replica 1", "this is no standby, so it follows nothing"),
                   ("shard 0 replica 1", "this is no copy of the primary's database (127.0.0.1:%d/wiggle)" % self.primary.port),
                   ("shard 0 replica 2", "this is no copy of the primary's database"))

    def test_of_several_hosts_the_primary_is_found(self):
        both = dict(self.entry(self.primary), url="postgresql://127.0.0.1:%d,127.0.0.1:%d/wiggle"
                    % (self.standby.port, self.primary.port))
        self.assertEqual(self.finds(0, self.document((both,)))[0]["is"], "writable")

    def test_a_restored_copy_beside_its_original(self):
        copy = self.copy_of(self.primary)
        self.finds(1, self.document((self.entry(self.primary),), (self.entry(copy),)),
                   ("shard 1 primary", "the database belongs to shard 0"),
                   ("shard 1 primary", "this and shard 0 primary (127.0.0.1:%d/wiggle) are copies of one database"
                    % self.primary.port))
        self.finds(1, self.document((self.entry(self.primary), self.entry(copy))),
                   ("shard 0 replica 1", "this is no standby, so it follows nothing"))


class Kubernetes(CommandTest):
    def test_a_config_map_with_credentials_from_secrets(self):
        """The document is a link through a link into a folder that cannot be written; the credentials are elsewhere."""
        document = topology(*world.shards)
        document["defaults"] = {"user": "${WIGGLE_JDBC_USER}", "password": "${WIGGLE_JDBC_PASSWORD}"}
        document["shards"][1]["password"] = "${WIGGLE_S1_PASSWORD}"
        for entry in document["shards"]:
            del entry["primary"]["user"], entry["primary"]["password"]
        mount = os.path.join(world.AREA, fresh_name("config-map"))
        version = os.path.join(mount, "..2026_11_29_22_00_00.1")
        shutil.rmtree(mount, ignore_errors=True)
        os.makedirs(version)
        with open(os.path.join(version, "topology.json"), "w", encoding="utf-8") as f:
            json.dump(document, f)
        os.symlink(os.path.basename(version), os.path.join(mount, "..data"))
        os.symlink(os.path.join("..data", "topology.json"), os.path.join(mount, "topology.json"))
        for path in (os.path.join(version, "topology.json"), version, mount):
            os.chmod(path, 0o555)
            self.addCleanup(os.chmod, path, 0o755)
        secrets = {"WIGGLE_JDBC_USER": "wiggle", "WIGGLE_JDBC_PASSWORD": world.shards[0].password,
                   "WIGGLE_S1_PASSWORD": world.shards[1].password}
        path = os.path.join(mount, "topology.json")
        done = wiggle("topology", "check", path, "--connect", **secrets)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        proxy = Proxy(world.AREA, {}, name=fresh_name("config-map"), WIGGLE_STORAGE_TOPOLOGY=path, **secrets)
        self.addCleanup(proxy.stop)
        client = Client(proxy.start().address)
        self.addCleanup(client.close)
        self.assertEqual(client.call("HealthCheck").status, "UP")
        for secret in (world.shards[0].password, world.shards[1].password):
            self.assertNotIn(secret, proxy.log() + done.stdout)

        del secrets["WIGGLE_S1_PASSWORD"]
        lacking = Proxy(world.AREA, {}, name=fresh_name("config-map"), WIGGLE_STORAGE_TOPOLOGY=path, **secrets)
        lacking.start(wait=False)
        self.assertEqual(lacking.process.wait(60), 2, lacking.log())
        self.assertIn("shard 1 password refers to ${WIGGLE_S1_PASSWORD}, which is not set", lacking.log())
