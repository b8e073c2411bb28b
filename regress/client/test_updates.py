"""Another version of the extension: the package, the server's restart, the update Job, then new proxies."""
import glob
import os
import re
import shutil
import subprocess

import grpc

import world
from harness import TREE, Proxy, topology, wait_for
from test_failover import Load
from wigclient import Client, ClientTest, flow, fresh_name

# The version that these sources are, the next one that is made of them, and a former one.
OURS = open(os.path.join(TREE, "extension", "wiggle.control"), encoding="utf-8").read().split("default_version = '")[1].split("'")[0]
NEXT = OURS + ".1"
FORMER = "0.0"

# What an update may do while everybody calls: new functions, others in place of those that all sessions have planned with.
UPDATE = """
create function wiggle.added() returns text language sql as $$ select 'added' $$;
do $$
declare
	f text;
begin
	for f in select pg_get_functiondef(p.oid) from pg_proc p where p.pronamespace = 'wiggle'::regnamespace
		and p.proname in ('batch', 'poll', 'complete', 'shard', 'shard_facts', 'instance_list') loop
		execute f;
	end loop;
end
$$;
comment on table wiggle.wf_instance is 'One more word about it.';
"""


def build(version, **scripts):
    """A folder with the extension of these sources under another version, with these scripts: NAME=SQL for wiggle--NAME.sql."""
    folder = os.path.join(world.AREA, fresh_name("extension"))
    for part in ("core", "extension", "build/obj/pg"):
        shutil.copytree(os.path.join(TREE, part), os.path.join(folder, part), copy_function=shutil.copy2)
    shutil.copy2(os.path.join(TREE, "Makefile"), folder)
    for name, text in scripts.items():
        with open(os.path.join(folder, "extension", "wiggle--%s.sql" % name), "w", encoding="utf-8") as f:
            f.write(text)
    control = os.path.join(folder, "extension", "wiggle.control")
    with open(control, encoding="utf-8") as f:
        text = f.read()
    with open(control, "w", encoding="utf-8") as f:
        f.write(re.sub(r"(?<=default_version = ').*(?=')", version, text))
    made = subprocess.run(["make", "-s", "-C", folder, "extension", "PG_CONFIG=" + os.environ["WIGGLE_PG_CONFIG"]], text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if made.returncode != 0:
        raise RuntimeError(made.stdout)
    return folder


def original():
    with open(os.path.join(TREE, "extension", "wiggle--%s.sql" % OURS), encoding="utf-8") as f:
        return f.read()


class Server:
    """An installation of PostgreSQL of its own, whose package can be another one, and a cluster that runs from it."""

    def __init__(self, name, package=None):
        self.prefix = os.path.join(world.AREA, name + "-prefix")
        shutil.copytree(os.environ["WIGGLE_PREFIX"], self.prefix, symlinks=True)
        if package is not None:
            self.install(package)
        bin_folder = os.path.join(self.prefix, os.path.relpath(os.environ["WIGGLE_PGBIN"], os.environ["WIGGLE_PREFIX"]))
        self.cluster = world.make_shard(name, within=["env", "PATH=%s:%s" % (bin_folder, os.environ["PATH"])])

    def install(self, package):
        """As package managers do it: the files are replaced, and what has the former ones open keeps those."""
        def here(pattern):
            return glob.glob(os.path.join(self.prefix, "**", pattern), recursive=True)
        (library,), (control,) = here("wiggle.so"), here("wiggle.control")
        for path in [library, *here("wiggle--*.sql"), control]:
            os.unlink(path)
        shutil.copy2(os.path.join(package, "wiggle.so"), library)
        for path in glob.glob(os.path.join(package, "extension", "wiggle*")):
            if path.endswith((".sql", ".control")):
                shutil.copy2(path, os.path.dirname(control))

    def restart(self):
        subprocess.run([*self.cluster.within, "pg_ctl", "-D", self.cluster.data, "-m", "fast", "-w", "-s", "stop"],
                       check=True, stdin=subprocess.DEVNULL)
        self.cluster.start_again()

    def stop(self):
        self.cluster.stop()
        shutil.rmtree(self.prefix)

    def versions(self):
        """Of the library that runs, and of the SQL objects."""
        return self.cluster.psql("select library || ' ' || catalog from wiggle.version()")


class Updates(ClientTest):
    def setUp(self):
        pass    # every test has servers and proxies of its own

    def install_server(self, name, package=None):
        server = Server(name, package)
        self.addCleanup(server.stop)
        return server

    def proxy(self, *clusters, wait=True, **settings):
        proxy = Proxy(world.AREA, topology(*clusters), name=fresh_name("updates"), **{"WIGGLE_SCHEMA_MODE": "verify", **settings})
        self.addCleanup(proxy.stop)
        return proxy.start(wait=wait)

    def job(self, status, *clusters):
        """deploy/kubernetes/update.yaml: what it says."""
        proxy = self.proxy(*clusters, wait=False, WIGGLE_MIGRATE_ONLY="true", WIGGLE_SCHEMA_MODE="apply")
        wait_for(lambda: proxy.process.poll() is not None, 60, "the end of the Job")
        self.assertEqual(proxy.process.returncode, status, proxy.log())
        return proxy.log()

    def refused_at(self, proxy, *words):
        """The proxy says so and lives on."""
        for word in words:
            wait_for(lambda w=word: w in proxy.log(), 60, "'%s' in the log of a proxy" % word)
        self.assertIsNone(proxy.process.poll(), proxy.log())

    def test_an_update_under_load(self):
        """Restart, update, new proxies, in this order: no call fails but those that the restarts cut off."""
        following = build(NEXT, **{"%s--%s" % (OURS, NEXT): UPDATE})
        servers = [self.install_server("updated%d" % i) for i in range(2)]
        clusters = [s.cluster for s in servers]
        self.job(0, *clusters)
        proxies = [self.proxy(*clusters) for _ in range(2)]
        client = Client(proxies[0].address)
        self.addCleanup(client.close)
        name = fresh_name()
        client.register(flow(name, "a", ("sleep", 100), "b"))
        load = Load([p.address for p in proxies], name)
        load.more(50)

        for server in servers:
            server.install(following)
        self.assertIn("version %s of wiggle is installed, but the server runs %s; restart the server, then run this again" % (NEXT, OURS),
                      self.job(1, *clusters))
        load.more(50)
        self.assertEqual(load.refused, {}, "before anything was restarted")
        self.assertEqual([s.versions() for s in servers], ["%s %s" % (OURS, OURS)] * 2)

        for server in servers:
            server.restart()
            wait_for(lambda: all(p.ready() for p in proxies), 60, "proxies that have all shards again")
        self.assertLessEqual(set(load.refused), {grpc.StatusCode.UNAVAILABLE})
        load.refused.clear()
        self.assertEqual([s.versions() for s in servers], ["%s %s" % (NEXT, OURS)] * 2)
        load.more(50)
        self.complete_more(load, clusters)
        self.proxy(*clusters)    # one that happens to start now
        said = self.job(0, *clusters)
        for cluster in clusters:
            self.assertIn("updated the extension wiggle in 127.0.0.1:%d" % cluster.port, said)
        self.assertEqual([s.versions() for s in servers], ["%s %s" % (NEXT, NEXT)] * 2)
        self.assertEqual([c.psql("select wiggle.added()") for c in clusters], ["added"] * 2)
        load.more(50)
        self.complete_more(load, clusters)
        self.assertEqual(load.refused, {}, "from the restart to the end of the update")

        for proxy in proxies:
            at = proxy.port, proxy.second_port
            self.assertEqual(proxy.stop(), 0)
            proxy.start(address=at)
            load.more(20)
        load.end(clusters)
        self.assertLessEqual(set(load.refused), {grpc.StatusCode.UNAVAILABLE})
        load.is_as_acknowledged(self, clusters)

    @staticmethod
    def complete_more(load, clusters):
        """Instances that start from now on come to their end, past their timer, on each shard."""
        since = [c.psql("select clock_timestamp()") for c in clusters]
        wait_for(lambda: all(c.psql("select count(*) > 0 from wf_instance where workflow = :'name' and status = 'COMPLETED'"
                                    " and created_at > :'since'", name=load.name, since=s) == "t" for c, s in zip(clusters, since)),
                 60, "instances that complete on each shard")

    def test_an_update_before_the_restart(self):
        """The library that runs does not know these objects: the shard is left out until it is restarted, the other serves."""
        following = build(NEXT, **{"%s--%s" % (OURS, NEXT): UPDATE})
        servers = [self.install_server("early%d" % i) for i in range(2)]
        clusters = [s.cluster for s in servers]
        self.job(0, *clusters)
        running = self.proxy(*clusters)
        servers[1].install(following)
        clusters[1].psql("alter extension wiggle update")
        self.assertEqual(servers[1].versions(), "%s %s" % (OURS, NEXT))
        says = "the loaded wiggle library is version %s, but the extension in this database is version %s" % (OURS, NEXT)
        for call in ("wiggle.start('x')", "wiggle.poll('w')", "wiggle.mint(0)", "count(*) from wiggle.transitions()",
                     "count(*) from wiggle.clock_stats()"):
            with self.assertRaises(RuntimeError) as refusal:
                clusters[1].psql("select " + call)
            self.assertIn(says, str(refusal.exception))
            self.assertIn("Restart the server after installing a new package", str(refusal.exception))
        self.assertEqual(clusters[1].psql("create table mine (n int); insert into mine values (1); select n from mine"), "1")

        starting = self.proxy(*clusters, wait=False)
        self.refused_at(starting, "shard 1 (127.0.0.1:%d/wiggle): the server runs version %s of the wiggle library, the database has version"
                        " %s of the extension; restart the server" % (clusters[1].port, OURS, NEXT))
        self.assertIn("of the extension; restart the server", self.job(1, *clusters))
        wait_for(starting.serves, 60, "a proxy that serves the other shard")
        for proxy in (running, starting):
            client = Client(proxy.address)
            self.addCleanup(client.close)
            self.refused(grpc.StatusCode.NOT_FOUND, "instance not found", client.get, "wfi.s0.0123456789abcdefghjkmn")
        servers[1].restart()
        for proxy in (running, starting):
            wait_for(proxy.ready, 60, "a proxy that has the shard")

    def test_objects_that_are_too_old(self):
        """New proxies before the server's new package: each says what it needs, and waits for it."""
        former = build(FORMER, **{FORMER: original()})
        following = build(OURS, **{"%s--%s" % (FORMER, OURS): "comment on table wiggle.wf_instance is 'Updated.'"})
        server = self.install_server("old", former)
        cluster = server.cluster
        cluster.psql("create extension wiggle; select wiggle.shard_claim(0)")
        self.assertEqual(server.versions(), "%s %s" % (FORMER, FORMER))
        proxy = self.proxy(cluster, wait=False)
        self.refused_at(proxy, "the database has version %s of the extension, and this proxy needs %s" % (FORMER, OURS))
        self.assertIn("its server has version %s of pg_wiggle, and this is %s" % (FORMER, OURS), self.job(1, cluster))
        server.install(following)
        server.restart()
        self.job(0, cluster)
        wait_for(proxy.ready, 60, "the proxy that has waited")
        self.assertEqual(proxy.log().count("and this proxy needs"), 1)

    def test_an_update_that_has_to_wait(self):
        """For a table that somebody uses: not for long at a time, and the shard serves with what it has."""
        following = build(NEXT, **{"%s--%s" % (OURS, NEXT): "lock table wiggle.wf_instance in access exclusive mode;"})
        server = self.install_server("waits")
        cluster = server.cluster
        self.job(0, cluster)
        server.install(following)
        server.restart()
        with cluster.holding("lock table wiggle.wf_instance in access share mode"):
            proxy = self.proxy(cluster, WIGGLE_SCHEMA_MODE="apply")
            self.assertIn("the extension is not updated to version %s: canceling statement due to lock timeout" % NEXT, proxy.log())
            self.assertEqual(server.versions(), "%s %s" % (NEXT, OURS))
            job = self.proxy(cluster, wait=False, WIGGLE_MIGRATE_ONLY="true", WIGGLE_SCHEMA_MODE="apply",
                             WIGGLE_STARTUP_TIMEOUT_MILLIS=1000)
            gave_up = "interrupted: canceling statement due to lock timeout; a transaction there holds what is to be changed"
            # The pauses between the attempts grow: the later ones are longer than what a shard that is away gets.
            wait_for(lambda: job.log().count(gave_up) >= 5, 120, "attempts of the Job that gave up waiting")
            self.assertIsNone(job.process.poll(), job.log())
        wait_for(lambda: job.process.poll() is not None, 60, "the end of the Job")
        self.assertEqual(job.process.returncode, 0, job.log())
        self.assertEqual(server.versions(), "%s %s" % (NEXT, NEXT))
