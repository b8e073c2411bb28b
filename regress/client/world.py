"""The shards and the proxies that the tests of one module share.

`proxy` has two shards and places instances on both. `away` has the same two and
places every instance on the one that is not home, by a generation of its own. `single` has `lone` alone.
"""
import os
import shutil

from harness import Cluster, Proxy, topology

AREA = None
shards = []
lone = None
proxy = away = single = None


def make_shard(name, *settings, **more):
    cluster = Cluster(os.path.join(AREA, name), "max_connections = 60", "fsync = off", *settings, **more)
    cluster.start()
    cluster.psql("create database wiggle", "postgres")
    return cluster


def start(area):
    global AREA, lone, proxy, away, single
    AREA = area
    os.makedirs(AREA, exist_ok=True)
    shards.extend(make_shard("shard%d" % i) for i in (0, 1))
    lone = make_shard("lone")
    proxy = Proxy(AREA, topology(*shards)).start()
    away = Proxy(AREA, topology(*shards, generations=[
        {"id": 2, "activeFrom": "2026-01-01T00:00:00Z", "weights": {"0": 0, "1": 1}}]), name="away").start()
    single = Proxy(AREA, topology(lone), name="single").start()


def stop():
    """Stop everything, and keep the logs alone; the first of the proxies' exit statuses that is not 0."""
    global lone, proxy, away, single
    status = 0
    for server in (single, away, proxy):
        if server is not None:
            status = status or server.stop()
    for shard in shards + [lone]:
        if shard is not None:
            shard.stop()
            shutil.rmtree(shard.data)
    del shards[:]
    lone = proxy = away = single = None
    return status
