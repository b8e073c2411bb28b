"""What a shard costs, with 1, 2, 4 and 8 of them on one machine.

The machine's cores are shared by all, so steps/s say little about what shards add;
processor time and bytes for each step do. Each shard is a cluster of its own.
Beside the figures every run is checked: no instance is missing, none is unfinished,
and each shard got its share.
"""
import json
import os
import subprocess
import time

from harness import Cluster, Proxy, topology, wait_for

COUNTS = (1, 2, 4, 8)
TICK = os.sysconf("SC_CLK_TCK")
IDLE_S = 10


def processor_s(pids):
    """Seconds of processor time that these processes have had, those that are gone left out."""
    total = 0
    for pid in pids:
        try:
            with open("/proc/%d/stat" % pid, encoding="utf-8") as f:
                fields = f.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        total += int(fields[11]) + int(fields[12]) + int(fields[13]) + int(fields[14])
    return total / TICK


def family(pid):
    """A process and its children."""
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as f:
        return [pid] + [int(child) for child in f.read().split()]


class Fleet:
    """N shards and a proxy."""

    def __init__(self, n):
        self.clusters = [Cluster("fleet%d" % i, "shared_buffers = 64MB", "max_connections = 40") for i in range(n)]
        self.proxy = None

    def start(self, definition):
        for cluster in self.clusters:
            cluster.start()
            cluster.psql("create database wiggle", "postgres")
        self.proxy = Proxy(".", topology(*self.clusters), name="fleet").start()
        for cluster in self.clusters:
            cluster.psql("select wiggle.register(:'definition'::jsonb)", definition=definition)
            cluster.psql("checkpoint")

    def stop(self):
        if self.proxy is not None:
            self.proxy.stop()
        for cluster in self.clusters:
            cluster.stop()

    def snapshot(self):
        """For each shard (processor s, WAL bytes, commits), and the proxy's processor s."""
        rows = []
        for cluster in self.clusters:
            wal, commits = cluster.psql(
                "select pg_current_wal_insert_lsn() - '0/0'::pg_lsn || ' ' || xact_commit"
                " from pg_stat_database where datname = 'wiggle'").split()
            rows.append((processor_s(family(cluster.postmaster)), float(wal), float(commits)))
        return rows, processor_s([self.proxy.process.pid])

    def check(self):
        """Every instance has ended well, and the shards have equal shares."""
        counts = []
        for cluster in self.clusters:
            wait_for(lambda c=cluster: c.psql("select not exists (select from wiggle.wf_instance"
                                              " where status <> 'COMPLETED')") == "t", 60, "completed instances")
            counts.append(int(cluster.psql("select count(*) from wiggle.wf_instance")))
        if max(counts) - min(counts) > 1:
            raise RuntimeError("the shards' shares differ: %s" % counts)
        return sum(counts)

    def connections(self):
        return [int(c.psql("select count(*) from pg_stat_activity where application_name like 'wiggle-proxy%'"))
                for c in self.clusters]


def measure(bench, n, definition, result):
    fleet = Fleet(n)
    try:
        fleet.start(definition)
        before, proxy_before = fleet.snapshot()
        time.sleep(IDLE_S)
        after, proxy_after = fleet.snapshot()
        name = "shards_%d" % n
        result(name + "_idle_home_commits", (after[0][2] - before[0][2]) / IDLE_S, "per_s")
        if n > 1:
            result(name + "_idle_other_commits", sum(a[2] - b[2] for a, b in zip(after[1:], before[1:])) / IDLE_S / (n - 1),
                   "per_s")
        result(name + "_idle_proxy_cpu", (proxy_after - proxy_before) / IDLE_S * 1e3, "ms_per_s")

        load = subprocess.run(
            [os.path.join(bench, "load"), "throughput", "--server", fleet.proxy.address, "--workflow", "bench8",
             "--connections", "4", "--workers", "64", "--seconds", "10"], stdout=subprocess.PIPE, text=True, check=True)
        report = json.loads(load.stdout.splitlines()[-1])
        steps = fleet.check() * 8
        before, proxy_before = after, proxy_after
        after, proxy_after = fleet.snapshot()
        used = [[a[k] - b[k] for a, b in zip(after, before)] for k in range(3)]
        result(name + "_steps", report["steps_per_s"], "steps/s")
        result(name + "_db_cpu", sum(used[0]) / steps * 1e6, "us/step")
        result(name + "_proxy_cpu", (proxy_after - proxy_before) / steps * 1e6, "us/step")
        result(name + "_wal", sum(used[1]) / steps, "B/step")
        result(name + "_commits", sum(used[2]) / steps, "per_step")
        if n > 1:
            result(name + "_home_wal_share", used[1][0] / (sum(used[1]) / n), "of_mean")
        result(name + "_connections", max(fleet.connections()), "per_shard")
        result(name + "_proxy_rss", fleet.proxy.rss_kb() / 1024, "MB")
    finally:
        fleet.stop()


def measure_all(here, binaries, result):
    with open(os.path.join(here, "eight-steps.json"), encoding="utf-8") as f:
        definition = f.read()
    for n in COUNTS:
        measure(binaries, n, definition, result)
