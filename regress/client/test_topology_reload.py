"""Growing and shrinking while calls go on: the topology document changes under running proxies."""
import copy
import datetime
import glob
import json
import os
import shutil
import signal
import subprocess
import threading
import time

import grpc

import world
from harness import Proxy, topology, wait_for
from wigclient import Client, ClientTest, flow, fresh_name, run_of

LONG_AGO = "2026-01-01T00:00:00Z"


def written(proxy, document):
    """Put the document where the proxy finds it, the way an editor does."""
    path = os.path.join(proxy.folder, proxy.name + ".topology.json")
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.write(document if isinstance(document, str) else json.dumps(document))
    os.rename(path + ".new", path)
    if not isinstance(document, str):
        proxy.document = document


def metric(proxy, name):
    for line in proxy.http("/metrics")[1].splitlines():
        if line.startswith(name + " "):
            return int(line.rsplit(" ", 1)[1])
    return 0


def reloads(proxy, outcome):
    return metric(proxy, 'wiggle_proxy_topology_reloads_total{outcome="%s"}' % outcome)


def part(proxy, name):
    """What a part of /readyz says: (ready, detail), None when there is no such part."""
    parts = json.loads(proxy.http("/readyz")[1])["parts"]
    return next(((p["ready"], p["detail"]) for p in parts if p["name"] == name), None)


def shard_of(instance):
    return int(instance.split(".")[1][1:])


class Load:
    """Starts, polls, reports and lists through several proxies until it is stopped; every call must succeed."""

    def __init__(self, proxies, workflow):
        self.workflow, self.started, self.errors = workflow, [], []
        self.over, self.starting = threading.Event(), threading.Event()
        self.starting.set()
        self.busy = threading.Semaphore(len(proxies))
        self.threads = []
        for proxy in proxies:
            for job in (self.start_some, self.work, self.work, self.look):
                thread = threading.Thread(target=self.run, args=(job, proxy), daemon=True)
                thread.start()
                self.threads.append(thread)

    def run(self, job, proxy):
        client = Client(proxy.address)
        while not self.over.is_set():
            try:
                job(client)
            except Exception as failure:  # pylint: disable=broad-except
                self.errors.append("%s through %s: %r" % (job.__name__, proxy.name, failure))
        client.close()

    def start_some(self, client):
        self.starting.wait()
        with self.busy:
            self.started.append(client.start(self.workflow, {"n": len(self.started)}))

    def work(self, client):
        for task in client.poll(self.workflow, max=20, wait=500):
            outcome = client.call("ReportSteps", runs=[run_of(task)]).results[0]
            if outcome.error_status:
                raise AssertionError("a report was refused: %s" % outcome.error)

    def look(self, client):
        client.call("ListInstances", workflow=self.workflow, limit=3)
        client.call("GetBacklogCoverage")
        time.sleep(0.05)

    def pause(self):
        """No start is on its way when this returns."""
        self.starting.clear()
        count = len(self.threads) // 4
        for _ in range(count):
            self.busy.acquire()
        for _ in range(count):
            self.busy.release()

    def go_on(self):
        self.starting.set()

    def stop(self):
        self.over.set()
        self.starting.set()
        for thread in self.threads:
            thread.join(60)


class ReloadTest(ClientTest):
    """Databases, and proxies that go by one document each of its own."""

    def setUp(self):
        self.stem = self.id().split(".")[-1][5:25]

    def make_shards(self, count, *settings):
        shards = [world.make_shard("%s-%d" % (self.stem, i), *settings) for i in range(count)]
        for shard in shards:
            self.addCleanup(shard.stop)
        return shards

    def start_proxy(self, document, suffix="", **settings):
        proxy = Proxy(world.AREA, document, name=self.stem + suffix, **settings)
        if os.path.exists(proxy.log_path):
            os.unlink(proxy.log_path)       # an earlier run's, which would say that all has happened
        proxy.start()
        self.addCleanup(proxy.stop)
        return proxy

    def connect(self, proxy):
        client = Client(proxy.address)
        self.addCleanup(client.close)
        return client

    def load(self, proxies, workflow):
        load = Load(proxies, workflow)
        self.addCleanup(load.stop)
        return load

    def roll_out(self, document, *proxies):
        """Every proxy goes by it; nobody is told but by the file."""
        for proxy in proxies:
            before = reloads(proxy, "applied")
            written(proxy, document)
            wait_for(lambda p=proxy, n=before: reloads(p, "applied") > n, 60, "the document to be applied by " + proxy.name)

    def is_refused(self, proxy, document, text):
        """The running proxy refuses it for this reason, and goes on by the one it has."""
        before, kept = reloads(proxy, "refused"), proxy.document
        written(proxy, document)
        proxy.process.send_signal(signal.SIGHUP)
        wait_for(lambda: reloads(proxy, "refused") > before, 60, "a refusal that says " + text)
        self.assertTrue(proxy.ready())
        self.assertIn(text, part(proxy, "topology")[1])
        self.assertEqual(metric(proxy, "wiggle_proxy_topology_refused"), 1)
        written(proxy, kept)
        wait_for(lambda: metric(proxy, "wiggle_proxy_topology_refused") == 0, 60, "the former document to be read again")

    def shares(self, client, workflow, count):
        """How many of so many starts, one after the other, went to each shard."""
        counts = {}
        for _ in range(count):
            shard = shard_of(client.start(workflow))
            counts[shard] = counts.get(shard, 0) + 1
        return counts

    def exact_shares(self, client, workflow, expected):
        """Weighted round robin is exact; only a shard that stalls for a second is passed over meanwhile."""
        seen = []

        def exact():
            seen.append(self.shares(client, workflow, sum(expected.values())))
            return seen[-1] == expected or len(seen) == 5
        wait_for(exact, 120, "shares to be counted")
        self.assertEqual(seen[-1], expected)


def generation(number, active_from, **weights):
    return {"id": number, "activeFrom": active_from, "weights": {k[1:]: w for k, w in weights.items()}}


def home_time(home, seconds=0):
    """An instant of the home shard's clock, as a document writes it."""
    return home.psql("select to_char((now() + interval '%s s') at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')" % seconds)


def has_come(home, instant):
    return home.psql("select clock_timestamp() > :'at'::timestamptz", at=instant) == "t"


class GrowAndShrink(ReloadTest):
    def test_a_shard_comes_and_another_goes_under_load(self):
        """The tutorial's "Add a shard" and "Removing a shard", through two proxies that are never restarted."""
        shards = self.make_shards(3, "wiggle.test_clock = on")
        home = shards[0]
        document = topology(*shards[:2])
        proxies = [self.start_proxy(document, "-%d" % i) for i in range(2)]
        clients = [self.connect(proxy) for proxy in proxies]
        name = fresh_name("grow")
        self.define_on(clients[0], name)
        load = self.load(proxies, name)
        wait_for(lambda: {shard_of(i) for i in load.started} == {0, 1}, 60, "starts on both shards")

        # 1. the shard, with no weight
        document = copy.deepcopy(document)
        document["shards"].append(topology(*shards)["shards"][2])
        self.roll_out(document, *proxies)
        for proxy in proxies:
            wait_for(lambda p=proxy: part(p, "shard 2") is not None and part(p, "shard 2")[0], 60, "shard 2 to be connected")
        self.assertEqual(shards[2].psql("select shard_id from wiggle.shard()"), "2")
        self.assertEqual(clients[1].call("ListInstances", workflow="none").instances[:], [])

        # 2. the definitions
        self.define_on(clients[1], name)
        self.assertEqual(shards[2].psql("select count(*) from wiggle.wf_definition where name = :'name'", name=name), "1")
        load.pause()
        for client in clients:
            self.exact_shares(client, name, {0: 20, 1: 20})
        load.go_on()

        # 3. weight, from a time on
        begins = home_time(home, 15)
        document = copy.deepcopy(document)
        document["generations"].append(generation(2, begins, s0=1, s1=1, s2=2))
        self.roll_out(document, *proxies)
        self.assertFalse(has_come(home, begins), "the machine is too slow for this test")
        self.assertEqual(shards[2].psql("select count(*) from wiggle.wf_instance"), "0")
        self.assertEqual(home.psql("select max(generation) from wiggle.wf_placement"), "2")
        wait_for(lambda: 2 in {shard_of(i) for i in load.started[-50:]}, 60, "starts on shard 2")
        self.assertEqual(shards[2].psql("select min(created_at) > :'at'::timestamptz - interval '500 ms' from wiggle.wf_instance",
                                        at=begins), "t")
        wait_for(lambda: all("generation 2 is in force" in p.log() for p in proxies), 60, "generation 2 on both")
        load.pause()
        for client in clients:
            self.exact_shares(client, name, {0: 20, 1: 20, 2: 40})
        load.go_on()

        # shard 1 goes: first by a generation without it, and not before
        begins = home_time(home, 15)
        document = copy.deepcopy(document)
        document["generations"].append(generation(3, begins, s0=1, s2=2))
        self.roll_out(document, *proxies)
        draining = copy.deepcopy(document)
        draining["shards"][1]["state"] = "draining"
        self.is_refused(proxies[0], draining, "generation 2, which is in force, weighs shard 1, which is DRAINING")
        wait_for(lambda: all("generation 3 is in force" in p.log() for p in proxies), 60, "generation 3 on both")
        self.roll_out(draining, *proxies)
        load.pause()
        for client in clients:
            self.exact_shares(client, name, {0: 20, 2: 40})
        load.go_on()
        retired = copy.deepcopy(draining)
        retired["shards"][1]["state"] = "retired"
        self.is_refused(proxies[0], retired, "shard 1: it is RETIRED in the topology, but nobody has confirmed that it holds nothing")
        self.assertIn("shard 1 still holds", self.retire(proxies[0], 1, 1).stderr)

        # what it holds ends, is purged, and the shard with it
        wait_for(lambda: shards[1].psql("select count(*) from wiggle.wf_instance where status <> 'COMPLETED'") == "0", 60,
                 "the instances of shard 1 to end")
        gone = sorted(shards[1].psql("select id from wiggle.wf_instance").split())
        shards[1].psql("select wiggle.test_set_clock(now() + interval '3 days')")
        wait_for(lambda: shards[1].psql("select count(*) from wiggle.wf_instance") == "0", 60, "shard 1 to be purged")
        self.retire(proxies[1], 1, 0)
        self.roll_out(retired, *proxies)
        for proxy in proxies:
            wait_for(lambda p=proxy: part(p, "shard 1") == (True, "retired"), 60, "shard 1 to be left")
        wait_for(lambda: shards[1].psql("select count(*) from pg_stat_activity where application_name like 'wiggle-proxy%'") == "0",
                 60, "connections to shard 1 to be closed")
        shards[1].psql("drop database wiggle", "postgres")
        shards[1].stop()
        for client in clients:
            with self.assertRaises(grpc.RpcError) as caught:
                client.get(gone[0])
            self.assertEqual((caught.exception.code(), caught.exception.details()),
                             (grpc.StatusCode.NOT_FOUND, "instance not found: shard 1 is retired"))
        self.define_on(clients[0], name)
        seen = len(load.started)
        wait_for(lambda: len(load.started) > seen + 20, 60, "starts after shard 1 is gone")

        load.stop()
        self.assertEqual(load.errors, [])
        self.everything_is_there(load, clients[0], [shards[0], shards[2]], gone)
        for proxy in proxies:
            self.assertTrue(proxy.ready())
        fresh = self.start_proxy(retired, "-after")
        self.exact_shares(self.connect(fresh), name, {0: 20, 2: 40})

    def retire(self, proxy, shard, status):
        done = subprocess.run(["wiggle", "--server", proxy.address, "shards", "retire", str(shard)], check=False, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def define_on(self, client, name):
        client.register(flow(name, "a", "b"))

    def everything_is_there(self, load, client, shards, gone):
        """Each start that was acknowledged is found where its id says, and ends."""
        name = load.workflow
        while any(s.psql("select count(*) from wiggle.wf_instance where status = 'RUNNING'") != "0" for s in shards):
            for task in client.poll(name, max=50, wait=0):
                client.report(task)
        held = {}
        for number, shard in ((0, shards[0]), (2, shards[1])):
            held[number] = dict(line.split("|") for line in shard.psql("select id, status from wiggle.wf_instance").split())
            self.assertEqual({shard_of(i) for i in held[number]}, {number}, "an instance on a shard that its id does not name")
        self.assertEqual(len(load.started), len(set(load.started)))
        for instance in load.started:
            if shard_of(instance) == 1:
                self.assertIn(instance, gone)
            else:
                self.assertEqual(held[shard_of(instance)].get(instance), "COMPLETED", instance)


class Refusals(ReloadTest):
    def changed(self, change):
        document = copy.deepcopy(self.proxy.document)
        change(document)
        return document

    def test_what_is_wrong_is_refused_and_the_former_document_stays(self):
        shards = self.make_shards(2)
        document = topology(*shards)
        document["generations"].append(generation(2, "2026-02-01T00:00:00Z", s0=1, s1=3))
        self.proxy = self.start_proxy(document)
        client = self.connect(self.proxy)
        name = fresh_name("kept")
        client.register(flow(name, "a"))
        password = shards[0].password

        def change(text, function):
            with self.subTest(text=text):
                self.is_refused(self.proxy, self.changed(function), text)

        self.is_refused(self.proxy, "{ broken", "the storage topology is not valid JSON: line 1")
        change("shard 1 is not listed any more, but it is ACTIVE", lambda d: (
            d["shards"].pop(), [g["weights"].pop("1") for g in d["generations"]]))
        change("the home shard cannot move from 0 to 1 while the server runs", lambda d: (
            d["shards"][0].update(roles=["instances"]), d["shards"][1].update(roles=["instances", "home"])))
        change("generation 1 has begun and cannot be removed", lambda d: d["generations"].pop(0))
        change("generation 2 has begun and cannot be removed", lambda d: d["generations"].pop())
        change("generation 1 has begun and cannot be changed", lambda d: d["generations"][0]["weights"].update({"1": 2}))
        change("generation 2 has begun and cannot be changed",
               lambda d: d["generations"][1].update(activeFrom="2026-02-02T00:00:00Z"))
        change("shard 1 cannot go from ACTIVE to RETIRED at once", lambda d: (
            d["shards"][1].update(state="retired"), d["generations"].append(generation(3, home_time(shards[0], -1), s0=1))))
        change("shard 1 cannot take or lose the role 'instances' while the server runs", lambda d: (
            d["shards"][1].update(roles=["search"]),
            [g["weights"].pop("1") for g in d["generations"]]))
        change("shard 1 primary url", lambda d: d["shards"][1]["primary"].update(url="http://somewhere"))
        log = self.proxy.log()
        self.assertNotIn(password, log)
        self.assertIn("the changed document is refused as a whole, and the former one stays in force: ", log)
        self.exact_shares(client, name, {0: 10, 1: 30})

        # a state does not go back
        document = self.changed(lambda d: (d["generations"].append(generation(3, home_time(shards[0], -1), s0=1)),
                                           d["shards"][1].update(state="draining")))
        self.roll_out(document, self.proxy)
        change("shard 1 cannot go back from DRAINING to ACTIVE", lambda d: d["shards"][1].update(state="active"))

        # gone altogether is no reason to stop
        os.unlink(os.path.join(self.proxy.folder, self.proxy.name + ".topology.json"))
        wait_for(lambda: "cannot be looked at" in self.proxy.log(), 60, "the loss of the document to be told")
        self.exact_shares(client, name, {0: 10})

    def test_what_is_refused_moves_nothing_on_home(self):
        """Home's registry changes with a document that is good as a whole, or not at all; a fresh proxy starts as before."""
        shards = self.make_shards(3)
        document = topology(*shards)
        document["generations"].append(generation(2, "2026-02-01T00:00:00Z", s0=1, s1=1))
        document["shards"][2]["state"] = "draining"
        self.proxy = self.start_proxy(document)

        def states():
            return shards[0].psql("select shard_id, state from wiggle.shards()").split()
        self.assertEqual(states(), ["0|ACTIVE", "1|ACTIVE", "2|DRAINING"])

        def drain(document):
            document["generations"].append(generation(3, "2026-03-01T00:00:00Z", s0=1))
            document["shards"][1]["state"] = "draining"
        # home refuses another shard's state
        self.is_refused(self.proxy, self.changed(lambda d: (drain(d), d["shards"][2].update(state="retired"))),
                        "shard 2: it is RETIRED in the topology, but nobody has confirmed")
        # the proxy refuses another shard's url, which only libpq can judge
        self.is_refused(self.proxy, self.changed(lambda d: (drain(d), d["shards"][2]["primary"].update(url="postgresql://%zz@h/d"))),
                        "shard 2 primary url is not a valid PostgreSQL URL")
        self.assertEqual(states(), ["0|ACTIVE", "1|ACTIVE", "2|DRAINING"])
        self.assertEqual(shards[0].psql("select max(generation) from wiggle.wf_placement"), "2")
        self.start_proxy(document, "-fresh")

        # what home knows to have begun, other proxies know as well
        ahead = self.changed(lambda d: d["generations"].append(generation(3, "2026-03-01T00:00:00Z", s0=1, s1=2)))
        self.start_proxy(ahead, "-ahead")
        self.is_refused(self.proxy, self.changed(drain), "generation 3 has begun and cannot be changed: its weights are"
                        ' {"0": 1, "1": 2} on home, but {"0": 1} in the topology')
        self.assertEqual(states(), ["0|ACTIVE", "1|ACTIVE", "2|DRAINING"])
        self.roll_out(ahead, self.proxy)

    def test_replica_settings_are_changes(self):
        proxy = self.start_proxy(topology(*self.make_shards(1)))
        document = copy.deepcopy(proxy.document)
        document["shards"][0]["maxReplicaLagMillis"] = 100
        self.roll_out(document, proxy)
        wait_for(lambda: "read again, with 1 change(s)" in proxy.log(), 60, "the change to be told")
        self.assertIn("shard 0: its maxReplicaLagMillis is 100, was 5000", proxy.log())
        document["shards"][0]["replicaFallback"] = "fail"
        self.roll_out(document, proxy)
        self.assertIn("shard 0: its replicaFallback is 'fail', was 'primary'", proxy.log())

    def test_the_environment_is_not_read_again(self):
        proxy = self.start_proxy(topology(world.lone), WIGGLE_STORAGE_TOPOLOGY=json.dumps(topology(world.lone)))
        proxy.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "SIGHUP: nothing to read again" in proxy.log(), 60, "an answer to SIGHUP")
        self.assertEqual(self.connect(proxy).call("HealthCheck").status, "UP")

    def test_a_database_of_another_shard_is_not_used(self):
        """A url that leads to another shard's database is found out before any call goes there."""
        shards = self.make_shards(3)
        proxy = self.start_proxy(topology(*shards[:2]))
        client = self.connect(proxy)
        name = fresh_name("wrong")
        client.register(flow(name, "a"))
        shards[2].psql("create extension wiggle; select wiggle.shard_claim(7)")
        load = self.load([proxy], name)
        document = copy.deepcopy(proxy.document)
        document["shards"][1]["primary"] = topology(*shards)["shards"][2]["primary"]
        self.roll_out(document, proxy)
        wait_for(lambda: "the database belongs to shard 7" in proxy.log(), 60, "the other database to be refused")
        seen = len(load.started)
        wait_for(lambda: {shard_of(i) for i in load.started[seen:]} == {0, 1}, 60, "starts on both shards all the same")
        load.stop()
        self.assertEqual(load.errors, [])
        self.assertEqual(shards[2].psql("select count(*) from wiggle.wf_instance"), "0")


class Noticed(ReloadTest):
    def test_a_config_map_that_is_swapped(self):
        """A mounted ConfigMap: the file is a link into a folder that is a link, and only that one is replaced."""
        shards = self.make_shards(2)
        folder = os.path.join(world.AREA, self.stem)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(os.path.join(folder, "..1"))
        document = topology(*shards)
        with open(os.path.join(folder, "..1", "topology.json"), "w", encoding="utf-8") as f:
            json.dump(document, f)
        os.symlink("..1", os.path.join(folder, "..data"))
        os.symlink("..data/topology.json", os.path.join(folder, "topology.json"))
        proxy = self.start_proxy(document, WIGGLE_STORAGE_TOPOLOGY=os.path.join(folder, "topology.json"))
        client = self.connect(proxy)
        name = fresh_name("swapped")
        client.register(flow(name, "a"))
        self.exact_shares(client, name, {0: 10, 1: 10})

        document["generations"].append(generation(2, home_time(shards[0], -1), s0=1, s1=4))
        os.makedirs(os.path.join(folder, "..2"))
        with open(os.path.join(folder, "..2", "topology.json"), "w", encoding="utf-8") as f:
            json.dump(document, f)
        os.symlink("..2", os.path.join(folder, "..data_tmp"))
        os.rename(os.path.join(folder, "..data_tmp"), os.path.join(folder, "..data"))
        wait_for(lambda: reloads(proxy, "applied") == 1, 60, "the swap to be noticed")
        self.exact_shares(client, name, {0: 8, 1: 32})

    def test_a_proxy_with_a_wrong_clock_changes_with_the_others(self):
        """Generations begin by home's clock: an hour ahead or behind makes no difference."""
        library = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")
        self.assertTrue(library, "libfaketime is not installed (scripts/deps check)")
        shards = self.make_shards(2)
        document = topology(*shards, generations=[generation(1, LONG_AGO, s0=1, s1=0)])
        fake = {"LD_PRELOAD": library[0], "FAKETIME_DONT_FAKE_MONOTONIC": "1", "ASAN_OPTIONS": "verify_asan_link_order=0"}
        proxies = [self.start_proxy(document, "-0"), self.start_proxy(document, "-1", FAKETIME="+1h", **fake),
                   self.start_proxy(document, "-2", FAKETIME="-1h", **fake)]
        for proxy, word in zip(proxies[1:], ("ahead of", "behind")):
            wait_for(lambda p=proxy: "clock: this host's clock is " in p.log(), 60, "the skew to be told")
            self.assertRegex(proxy.log(), r"this host's clock is 3\d{6} ms %s home's" % word)
        clients = [self.connect(proxy) for proxy in proxies]
        name = fresh_name("skewed")
        clients[0].register(flow(name, "a"))
        begins = home_time(shards[0], 15)
        document = copy.deepcopy(document)
        document["generations"].append(generation(2, begins, s0=0, s1=1))
        self.roll_out(document, *proxies)
        ids = [[] for _ in clients]

        def all_have_changed():
            for client, mine in zip(clients, ids):
                mine.append(client.start(name))
            return all(shard_of(mine[-1]) == 1 for mine in ids)
        wait_for(all_have_changed, 120, "each proxy to mint by generation 2")
        began = datetime.datetime.fromisoformat(begins.replace("Z", "+00:00")).timestamp()
        for mine in ids:
            by_shard = [shard_of(i) for i in mine]
            self.assertEqual(by_shard, sorted(by_shard), "a proxy went back to a generation")
            self.assertEqual(by_shard[0], 0, "generation 2 was in force before its time")
        for shard, early, late in ((0, 3600, 60), (1, 1, 3600)):
            for at in shards[shard].psql("select extract(epoch from created_at) from wiggle.wf_instance").split():
                self.assertGreater(float(at), began - early)
                self.assertLess(float(at), began + late)


    def test_a_start_with_a_wrong_clock_is_judged_by_homes(self):
        """Whether a shard may drain already, and which generation `wiggle shards` calls the present one."""
        library = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")
        self.assertTrue(library, "libfaketime is not installed (scripts/deps check)")
        fake = {"LD_PRELOAD": library[0], "FAKETIME_DONT_FAKE_MONOTONIC": "1", "ASAN_OPTIONS": "verify_asan_link_order=0"}
        shards = self.make_shards(2)
        self.start_proxy(topology(*shards)).stop()

        # by the proxy's clock generation 3 has begun, by home's it has not
        document = topology(*shards)
        document["generations"] += [generation(2, home_time(shards[0], -1800), s0=1, s1=1),
                                    generation(3, home_time(shards[0], 1800), s0=1)]
        document["shards"][1]["state"] = "draining"
        fast = Proxy(world.AREA, document, name=self.stem + "-fast", FAKETIME="+1h", **fake)
        fast.start(wait=False)
        self.addCleanup(fast.stop)
        wait_for(lambda: fast.process.poll() is not None, 60, "the start to be refused")
        self.assertEqual(fast.process.returncode, 1, fast.log())
        self.assertRegex(fast.log(), "generation 2, which is in force, weighs shard 1, which is DRAINING; leave it active and set"
                         " it to draining once generation 3 has begun, at 20")
        self.assertEqual(shards[0].psql("select state from wiggle.shards() where shard_id = 1"), "ACTIVE")

        # and the other way round
        document["generations"][2]["activeFrom"] = home_time(shards[0], -900)
        slow = self.start_proxy(document, "-slow", FAKETIME="-1h", **fake)
        shown = subprocess.run(["wiggle", "--server", slow.address, "--json", "shards"], check=True, text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout
        self.assertEqual(json.loads(shown)["generation"], 3)


class Credentials(ReloadTest):
    def users(self, shard):
        return set(shard.psql("select distinct usename from pg_stat_activity where application_name like 'wiggle-proxy%'").split())

    def with_role(self, document, user, password):
        document = copy.deepcopy(document)
        for shard in document["shards"]:
            shard["primary"].update(user=user, password=password)
        return document

    def test_they_are_rotated_under_load(self):
        shards = self.make_shards(2)
        for shard in shards:
            shard.psql("create role next superuser login password 'first-secret'")
        old = topology(*shards)
        proxies = [self.start_proxy(old, "-%d" % i) for i in range(2)]
        name = fresh_name("rotated")
        self.connect(proxies[0]).register(flow(name, "a", "b"))
        load = self.load(proxies, name)
        wait_for(lambda: len(load.started) > 50, 60, "a load")

        # a wrong password harms nobody
        self.roll_out(self.with_role(old, "next", "not-the-secret"), *proxies)
        for proxy in proxies:
            wait_for(lambda p=proxy: p.log().count("password authentication failed for user \"next\"") >= 2, 60,
                     "the wrong password to be told")
        seen = len(load.started)
        wait_for(lambda: len(load.started) > seen + 100, 60, "the load to go on")
        for shard in shards:
            self.assertEqual(self.users(shard), {"wiggle"})

        self.roll_out(self.with_role(old, "next", "first-secret"), *proxies)
        for shard in shards:
            wait_for(lambda s=shard: self.users(s) == {"next"}, 60, "the new role to be used alone")
            shard.psql("alter role next password 'second-secret'")
        seen = len(load.started)
        wait_for(lambda: len(load.started) > seen + 100, 60, "the load to go on")
        self.roll_out(self.with_role(old, "next", "second-secret"), *proxies)
        self.roll_out(old, *proxies)
        for shard in shards:
            wait_for(lambda s=shard: self.users(s) == {"wiggle"}, 60, "the first role to be used alone again")

        # pools grow and shrink on the way
        small = copy.deepcopy(old)
        small["defaults"] = {"pool": 3}
        self.roll_out(small, *proxies)
        for shard in shards:
            wait_for(lambda s=shard: int(s.psql("select count(*) from pg_stat_activity where application_name like 'wiggle-proxy%'"))
                     <= 3 * len(proxies), 60, "connections to be within the pool")
        self.roll_out(old, *proxies)
        seen = len(load.started)
        wait_for(lambda: len(load.started) > seen + 100, 60, "the load to go on")
        load.stop()
        self.assertEqual(load.errors, [])
        for proxy in proxies:
            self.assertTrue(proxy.ready())
            self.assertNotRegex(proxy.log(), "first-secret|second-secret|not-the-secret")
