"""The shards and the proxies that client tests share.

`proxy` has two shards and places instances on both. `away` has the same two and
places every instance on the one that is not home. `single` has one of its own.
"""
import os

from harness import Cluster, Proxy, topology

AREA = None
shards = []
proxy = away = single = None


def make_shard(name, *settings):
    cluster = Cluster(os.path.join(AREA, name), "max_connections = 60", "fsync = off", *settings)
    cluster.start()
    cluster.psql("create database wiggle", "postgres")
    return cluster


def start(area):
    global AREA, proxy, away, single
    AREA = area
    shards.extend(make_shard("shard%d" % i) for i in (0, 1, 2))
    proxy = Proxy(AREA, topology(*shards[:2])).start()
    away = Proxy(AREA, topology(*shards[:2], generations=[
        {"id": 1, "activeFrom": "2026-01-01T00:00:00Z", "weights": {"0": 0, "1": 1}}]), name="away").start()
    single = Proxy(AREA, topology(shards[2]), name="single").start()


def stop():
    """Stop everything; the first of the shared proxies' exit statuses that is not 0."""
    status = 0
    for server in (single, away, proxy):
        if server is not None:
            status = status or server.stop()
    for shard in shards:
        shard.stop()
    return status
