"""The two shards and the proxy that most client tests share."""
import os

from harness import Cluster, Proxy, topology

AREA = None
shards = []
proxy = None


def make_shard(name, *settings):
    cluster = Cluster(os.path.join(AREA, name), "max_connections = 60", "fsync = off", *settings)
    cluster.start()
    cluster.psql("create database wiggle", "postgres")
    return cluster


def start(area):
    global AREA, proxy
    AREA = area
    shards.extend(make_shard("shard%d" % i) for i in (0, 1))
    proxy = Proxy(AREA, topology(*shards)).start()


def stop():
    """Stop everything; the shared proxy's exit status."""
    status = 0
    if proxy is not None:
        status = proxy.stop()
    for shard in shards:
        shard.stop()
    return status
