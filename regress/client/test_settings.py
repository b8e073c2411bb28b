"""Settings: the variables of Wiggle's own server, those that are pushed to the shards, and wiggle config."""
import json
import os
import subprocess

import world
from harness import Proxy
from wigclient import Client, ClientTest, flow, fresh_name

BARE = {k: v for k, v in os.environ.items() if not k.startswith("WIGGLE_")}

# What the Kubernetes manifests of Wiggle's own server set, beside the names of pod and database.
PROFILE_A = {"WIGGLE_NODE_NAME": "wiggle-7d4f"}
PROFILE_B = {"WIGGLE_NODE_NAME": "wiggle-7d4f", "WIGGLE_POLL_INTERVAL_MILLIS": "200", "WIGGLE_HOUSEKEEPING_BATCH": "500",
             "WIGGLE_ADAPTIVE_HOUSEKEEPING": "true", "WIGGLE_JDBC_POOL_SIZE": "10"}
# What Kubernetes adds to both, for the Service of that name; WIGGLE_PORT is in the manifests.
LINKS = {"WIGGLE_SERVICE_HOST": "10.96.0.7", "WIGGLE_SERVICE_PORT": "8080", "WIGGLE_SERVICE_PORT_GRPC": "8080",
         "WIGGLE_PORT_8080_TCP": "tcp://10.96.0.7:8080", "WIGGLE_PORT_8080_TCP_PROTO": "tcp", "WIGGLE_PORT_8080_TCP_PORT": "8080",
         "WIGGLE_PORT_8080_TCP_ADDR": "10.96.0.7"}
PUSHED = {"wiggle.clock_batch": "500", "wiggle.default_lease": "45s", "wiggle.loop_max_iterations": "77",
          "wiggle.retention": "2h", "wiggle.event_retention": "3d", "wiggle.record_step_io": "off",
          "wiggle.retry_park": "2s"}
GIVEN = {"WIGGLE_HOUSEKEEPING_BATCH": "500", "WIGGLE_LEASE_MILLIS": "45000", "WIGGLE_LOOP_MAX_ITERATIONS": "77",
         "WIGGLE_RETENTION_MILLIS": "7200000", "WIGGLE_EVENTS_RETENTION_MILLIS": "3d", "WIGGLE_RECORD_STEP_IO": "false",
         "WIGGLE_RETRY_TIMER_MIN_MILLIS": "2s"}


class SettingsTest(ClientTest):
    server = "single"

    def database(self):
        name = fresh_name("settings").replace("-", "")
        world.lone.psql("create database %s" % name, "postgres")
        self.addCleanup(world.lone.psql, "drop database %s with (force)" % name, "postgres")
        return name

    def proxy(self, database, user="wiggle", password=None, **settings):
        """As a manifest would start it: one database by its URL."""
        proxy = Proxy(world.AREA, {}, name="settings-" + database, WIGGLE_STORAGE_TOPOLOGY="",
                      WIGGLE_JDBC_URL="jdbc:postgresql://127.0.0.1:%d/%s" % (world.lone.port, database),
                      WIGGLE_JDBC_USER=user, WIGGLE_JDBC_PASSWORD=password or world.lone.password, **settings)
        self.addCleanup(lambda: proxy.process is None or proxy.stop())
        return proxy

    def serves(self, proxy):
        client = Client(proxy.address)
        self.addCleanup(client.close)
        client.register(flow("solo", "a"))
        instance = client.start("solo")
        client.report(client.poll_one("solo"), {})
        self.assertEqual(client.status(instance), "COMPLETED")

    def in_force(self, database):
        return {name: world.lone.psql("show " + name, database) for name in PUSHED}


class Manifests(SettingsTest):
    def test_profiles_start_unchanged(self):
        database = self.database()
        for profile, told in (({**PROFILE_A, **LINKS}, []), ({**PROFILE_B, **LINKS}, ["WIGGLE_POLL_INTERVAL_MILLIS", "WIGGLE_ADAPTIVE_HOUSEKEEPING"])):
            with self.subTest(profile=sorted(profile)):
                proxy = self.proxy(database, **profile).start()
                self.serves(proxy)
                self.assertEqual(proxy.stop(), 0)
                log = proxy.log()
                self.assertNotIn(" WARN ", log)
                self.assertEqual(log.count("enableServiceLinks: false"), 1, log)
                for name in told:
                    self.assertIn(" INFO  config: %s has no effect: " % name, log)
                os.unlink(proxy.log_path)
        self.assertEqual(world.lone.psql("show wiggle.clock_batch", database), "500")

    def test_what_would_be_missing_is_refused(self):
        for name, value, part in (("WIGGLE_ROLE", "console", "may only be server|cell"),
                                  ("WIGGLE_DASHBOARD_PASSWORD", "hunter2", "WIGGLE_GRPC_AUTH=enforce"),
                                  ("WIGGLE_COORDINATOR_URL", "coordinator:8099", "WIGGLE_STORAGE_TOPOLOGY"),
                                  ("WIGGLE_SEARCH_ENABLED", "true", "there is no search"),
                                  ("WIGGLE_BIND", "localhost", "must be an IPv4 or IPv6 address in numbers"),
                                  ("WIGGLE_LEASE_MILLIS", "30MB", "'MB' is no unit of it")):
            with self.subTest(name=name):
                proxy = self.proxy("postgres", **{name: value})
                proxy.start(wait=False)
                self.assertEqual(proxy.process.wait(60), 2)
                self.assertIn(name, proxy.log())
                self.assertIn(part, proxy.log())
                self.assertNotIn("hunter2", proxy.log())
                checked = subprocess.run(["wiggle", "config", "--check"], env={**BARE, name: value}, text=True,
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
                self.assertEqual((checked.returncode, checked.stdout), (2, ""))
                self.assertIn(part, checked.stderr)
                self.assertIn(checked.stderr.removeprefix("wiggle: ").strip(), proxy.log(), "the same words")
                os.unlink(proxy.log_path)


class Pushed(SettingsTest):
    def test_a_superuser_brings_them_and_a_reading_start_only_tells(self):
        database = self.database()
        proxy = self.proxy(database, **GIVEN).start()
        self.serves(proxy)
        self.assertEqual(self.in_force(database), PUSHED)
        self.assertIn("setup: shard 0: done: alter database %s set wiggle.clock_batch = '500'" % database, proxy.log())
        self.assertEqual(proxy.stop(), 0)
        done = proxy.log().count("done: alter database")
        self.assertEqual(proxy.start().stop(), 0)
        self.assertEqual(proxy.log().count("done: alter database"), done, "what is there is not set again")
        proxy.settings.update(WIGGLE_SCHEMA_MODE="verify", WIGGLE_RETENTION_MILLIS="1h")
        proxy.start()
        self.serves(proxy)
        self.assertIn("have an administrator run there: alter database %s set wiggle.retention = '3600000ms'" % database,
                      proxy.log())
        self.assertEqual(self.in_force(database), PUSHED)

    def test_a_role_that_may_not_serves_and_tells_the_statements(self):
        database, role = self.database(), fresh_name("mere").replace("-", "")
        world.lone.psql("create extension wiggle; create role %s login password 'mere'; grant wiggle_admin to %s;"
                        " alter database %s set search_path = public, wiggle" % (role, role, database), database)
        self.addCleanup(world.lone.psql, "drop role %s" % role, "postgres")
        before = self.in_force(database)
        proxy = self.proxy(database, user=role, password="mere", **GIVEN).start()
        self.serves(proxy)
        lines = [line for line in proxy.log().splitlines() if "administrator" in line]
        self.assertEqual(len(lines), 1, proxy.log())
        self.assertIn("(must be owner of database %s)" % database, lines[0])
        self.assertEqual(self.in_force(database), before)
        for statement in lines[0].split("run there: ")[1].split("; "):
            world.lone.psql(statement, database)
        self.assertEqual(self.in_force(database), PUSHED, "what the line says is what there is to do")
        self.assertEqual(proxy.stop(), 0)
        os.unlink(proxy.log_path)
        proxy.start()
        self.assertNotIn("administrator", proxy.log())


class Shown(ClientTest):
    def config(self, *arguments, **variables):
        return subprocess.run(["wiggle", "config", *arguments], env={**BARE, **variables}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)

    def test_value_and_source_of_each(self):
        path = os.path.join(world.AREA, "proxy.topology.json")
        done = self.config("--json", WIGGLE_STORAGE_TOPOLOGY=path, WIGGLE_LEASE_MILLIS="1min", WIGGLE_LOG_LEVEL="Debug",
                           WIGGLE_TLS_KEYSTORE_PASSWORD="hunter2", WIGGLE_PROT="1", WIGGLE_MEMORY_THRESHOLD="0.8")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("warning: WIGGLE_PROT is no setting, did you mean WIGGLE_PORT?", done.stderr)
        self.assertNotIn("hunter2", done.stdout + done.stderr)
        shown = {s["name"]: (s["value"], s["unit"], s["from"]) for s in json.loads(done.stdout)}
        self.assertEqual(shown["WIGGLE_STORAGE_TOPOLOGY"], (path, "", "environment"))
        self.assertEqual(shown["WIGGLE_LEASE_MILLIS"], ("60000", "ms", "environment"))
        self.assertEqual(shown["WIGGLE_LOG_LEVEL"], ("debug", "", "environment"))
        self.assertEqual(shown["WIGGLE_MEMORY_THRESHOLD"], ("0.8", "", "environment"))
        self.assertEqual(shown["WIGGLE_TLS_KEYSTORE_PASSWORD"], ("***", "", "environment"))
        self.assertEqual(shown["WIGGLE_PORT"], ("8080", "", "default"))
        self.assertEqual(shown["WIGGLE_RETENTION_MILLIS"], (None, "ms", "database"))
        text = self.config("--set", WIGGLE_STORAGE_TOPOLOGY=path, WIGGLE_PORT="9")
        self.assertEqual([line.split() for line in text.stdout.splitlines()],
                         [["SETTING", "VALUE", "FROM"], ["WIGGLE_PORT", "9", "environment"],
                          ["WIGGLE_STORAGE_TOPOLOGY", path, "environment"]])

    def test_check_refuses_what_the_start_would(self):
        path = os.path.join(world.AREA, "proxy.topology.json")
        self.assertEqual(self.config("--check", WIGGLE_STORAGE_TOPOLOGY=path).returncode, 0)
        for variables, part in (({}, "WIGGLE_STORAGE_TOPOLOGY"),
                                ({"WIGGLE_STORAGE_TOPOLOGY": path, "WIGGLE_PORT": "70000"}, "from 0 to 65535"),
                                ({"WIGGLE_STORAGE_TOPOLOGY": "/nowhere/topology.json"}, "/nowhere/topology.json"),
                                ({"WIGGLE_STORAGE_TOPOLOGY": "{}"}, "lists no shards"),
                                ({"WIGGLE_JDBC_URL": "postgresql://%zzhunter2@h/d"}, "WIGGLE_JDBC_URL is not a valid PostgreSQL URL; "),
                                ({"WIGGLE_JDBC_URL": "postgresql://h/d", "WIGGLE_JDBC_REPLICA_URLS": "postgresql://%zz@r/d"},
                                 "WIGGLE_JDBC_REPLICA_URLS, replica 1, is not a valid PostgreSQL URL; "),
                                ({"WIGGLE_STORAGE_TOPOLOGY": path, "WIGGLE_TLS_KEYSTORE": "/nowhere/tls.pem"}, "/nowhere/tls.pem")):
            with self.subTest(part=part):
                done = self.config("--check", **variables)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                self.assertIn(part, done.stderr)
