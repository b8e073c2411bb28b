"""grpc_health_probe, as Kubernetes and load balancers ask."""
from checks import contains
from harness import Proxy, topology, wait_for

SERVICE = "com.wiggle.proto.WiggleControlPlane"


def serving(site):
    for more in ((), ("-service", SERVICE)):
        contains(site.run("grpc-health-probe", "-addr", site.address, *more), "status: SERVING")


def unknown(site):
    contains(site.run("grpc-health-probe", "-addr", site.address, "-service", "no.such", status=3), "NotFound")


def not_serving(site):
    shard = site.world.make_shard("unserved", "log_min_messages = fatal")
    proxy = Proxy(site.area, topology(shard), name="unserved").start()
    try:
        shard.stop()
        wait_for(lambda: not proxy.ready(), 60, "readiness to fall")
        contains(site.run("grpc-health-probe", "-addr", proxy.address, status=4), "NOT_SERVING")
    finally:
        proxy.stop()


CHECKS = [
    ("grpc_health_probe: serving", serving),
    ("grpc_health_probe: a service that is not here", unknown),
    ("grpc_health_probe: a shard is lost", not_serving),
]
