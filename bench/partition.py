"""What dividing the tasks saves the database, with 2, 4 and 8 proxies on one shard.

Two loads, each with WIGGLE_TASK_PARTITIONING off and on: tasks that come alone while
every proxy has hungry workers, so that wake-ups are what costs; and a backlog that all of
them work off, so that claims meet. Beside the figures every run is checked: each
instance has completed.
"""
import contextlib
import json
import os
import re
import subprocess
import threading

from harness import Cluster, Proxy, topology, wait_for
from shards import family, processor_s

COUNTS = (2, 4, 8)
WORKERS = 64        # of all proxies together
ALONE_PER_S = 100
ALONE_S = 10
BACKLOG = 40000

# Backends that wait for a lock of either kind, by looks every 10 ms.
SAMPLE = """
create table public.sampling ();
create or replace function public.lock_waits() returns text language plpgsql as $$
declare
    waits int := 0;
    looks int := 0;
begin
    while exists (select from public.sampling) loop
        perform pg_stat_clear_snapshot();
        waits := waits + (select count(*) from pg_stat_activity where wait_event_type in ('Lock', 'LWLock'));
        looks := looks + 1;
        perform pg_sleep(0.01);
    end loop;
    return waits::float / looks;
end $$"""


class Fleet:
    """N proxies on one shard, each with its part of the workers."""

    def __init__(self, bench, cluster, n, divided):
        self.bench, self.cluster = bench, cluster
        self.proxies = [Proxy(".", topology(cluster), name="part%d" % i, WIGGLE_NODE_NAME="part%d" % i,
                              WIGGLE_TASK_PARTITIONING=str(divided).lower()) for i in range(n)]
        self.loads = []
        self.divided = divided

    def start(self):
        for proxy in self.proxies:
            proxy.start()

    def send_workers(self):
        """They poll until serve_no_more()."""
        for proxy in self.proxies:
            self.loads.append(subprocess.Popen(
                [os.path.join(self.bench, "load"), "serve", "--server", proxy.address, "--workflow", "bench1",
                 "--connections", "2", "--workers", str(WORKERS // len(self.proxies)), "--seconds", "600"],
                stdout=subprocess.PIPE, text=True))

    def serve(self):
        self.send_workers()
        wait_for(lambda: self.metric("parked_polls") == WORKERS, 60, "parked workers")
        if self.divided:
            wait_for(lambda: sum(self.shares()) == 1000, 60, "shares of the queue")

    def serve_no_more(self):
        for load in self.loads:
            load.terminate()
            load.communicate()
        self.loads = []

    def stop(self):
        self.serve_no_more()
        for proxy in self.proxies:
            proxy.stop()

    def shares(self):
        for proxy in self.proxies:
            queues = json.loads(proxy.http("/api/cluster")[1])["queues"]
            yield sum(q["end"] - q["start"] for q in queues if q["queue"] == "bench1" and q["polled"])

    def metric(self, name):
        """The sum over the proxies."""
        return sum(float(number) for proxy in self.proxies
                   for number in re.findall(r"^wiggle_proxy_%s(?:\{.*\})? ([0-9.]+)$" % name,
                                            proxy.http("/metrics")[1], re.M))

    def snapshot(self):
        commits = float(self.cluster.psql("select xact_commit from pg_stat_database where datname = 'wiggle'"))
        return (processor_s(family(self.cluster.postmaster)), commits, self.metric("empty_claims_total"),
                self.metric("wakeups_total"), sum(processor_s([p.process.pid]) for p in self.proxies))


@contextlib.contextmanager
def lock_waits(cluster, box):
    cluster.psql("insert into public.sampling default values")
    thread = threading.Thread(target=lambda: box.append(float(cluster.psql("select public.lock_waits()"))))
    thread.start()
    try:
        yield
    finally:
        cluster.psql("delete from public.sampling")
        thread.join()


def all_done(cluster):
    return cluster.psql("select not exists (select from wiggle.wf_ready) and not exists (select from wiggle.wf_lease)") == "t"


def check(cluster, n):
    wait_for(lambda: all_done(cluster), 120, "the end of the tasks")
    counts = cluster.psql("select count(*) || ' ' || count(*) filter (where status = 'COMPLETED') from wiggle.wf_instance")
    if counts != "%d %d" % (n, n):
        raise RuntimeError("of %d instances there are %s, completed" % (n, counts))


def measure(fleet, name, n, run, result, looking=contextlib.nullcontext):
    """Run n tasks and tell what each of them cost."""
    before = fleet.snapshot()
    with looking():
        seconds = run()
    after = fleet.snapshot()
    cpu, commits, empty, woken, proxies = ((a - b) / n for a, b in zip(after, before))
    result(name + "_db_cpu", cpu * 1e6, "us/step")
    result(name + "_proxies_cpu", proxies * 1e6, "us/step")
    result(name + "_commits", commits, "per_step")
    result(name + "_empty_claims", empty, "per_step")
    result(name + "_wakeups", woken, "per_step")
    if seconds is not None:
        result(name + "_steps", n / seconds, "steps/s")


def alone(cluster):
    """Tasks that come one by one, started by sessions of their own."""
    with open("alone.sql", "w", encoding="ascii") as f:
        f.write("select wiggle.start('bench1');\n")
    subprocess.run(["pgbench", "-n", "-c", "2", "-R", str(ALONE_PER_S), "-t", str(ALONE_PER_S * ALONE_S // 2),
                    "-f", "alone.sql", cluster.conninfo()], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: all_done(cluster), 60, "the end of the tasks")


WAIT = """select percentile_disc({0}) within group (order by extract(epoch from started_at - available_at) * 1000)
    from wiggle.wf_token where started_at is not null"""


def measure_one(bench, cluster, n, divided, definition, result):
    fleet = Fleet(bench, cluster, n, divided)
    name = "partition_%d_%s" % (n, "on" if divided else "off")
    cluster.psql("create database wiggle", "postgres")
    try:
        fleet.start()
        cluster.psql("select wiggle.register(:'definition'::jsonb)", definition=definition)
        cluster.psql(SAMPLE)
        fleet.serve()
        count = ALONE_PER_S * ALONE_S
        measure(fleet, name + "_alone", count, lambda: alone(cluster), result)
        check(cluster, count)
        for share, label in ((0.5, "p50"), (0.99, "p99")):
            result(name + "_alone_wait_" + label, float(cluster.psql(WAIT.format(share))), "ms")
        fleet.serve_no_more()
        cluster.psql("select count(wiggle.start('bench1')) from generate_series(1, %d)" % BACKLOG)
        cluster.psql("checkpoint")

        def work_off():
            begin = os.times().elapsed
            fleet.send_workers()
            wait_for(lambda: all_done(cluster), 120, "the end of the backlog")
            return os.times().elapsed - begin
        waits = []
        measure(fleet, name + "_backlog", BACKLOG, work_off, result, lambda: lock_waits(cluster, waits))
        result(name + "_backlog_lock_waits", waits[0], "backends")
        check(cluster, count + BACKLOG)
    finally:
        fleet.stop()
        cluster.psql("drop database wiggle with (force)", "postgres")


def measure_all(here, binaries, result):
    with open(os.path.join(here, "one-step.json"), encoding="utf-8") as f:
        definition = f.read()
    cluster = Cluster("partition", "shared_buffers = 256MB", "max_wal_size = 4GB", "max_connections = 150")
    cluster.start()
    try:
        for n in COUNTS:
            for divided in (False, True):
                measure_one(binaries, cluster, n, divided, definition, result)
    finally:
        cluster.stop()
