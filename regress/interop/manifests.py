"""kubernetes-validate: the manifests of deploy/ against the schemas of Kubernetes' releases."""
import os
import re
import subprocess
import sys

from checks import contains

RELEASES = ("1.27", "1.32", "1.37")
WRONG = """apiVersion: apps/v1
kind: Deployment
metadata: { name: wrong }
spec: { replicas: three }
"""


def validate(site, release, path, status=0):
    library = site.tool("kubernetes-validate")
    done = subprocess.run([sys.executable, "-m", "kubernetes_validate", "--strict", "-k", release, path], text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=dict(os.environ, PYTHONPATH=library), check=False)
    assert done.returncode == status, "%s, Kubernetes %s: status %d\n%s" % (path, release, done.returncode, done.stdout)
    return done.stdout


def accepted(name, *objects):
    def check(site):
        for release in RELEASES:
            contains(validate(site, release, os.path.join(site.tree, "deploy", "kubernetes", name + ".yaml")), *objects)
    return check


def accepted_with_tls(name):
    """The lines that begin with #tls in place of those that end in #plain, as docs/deploying.md has them."""
    def check(site):
        path = os.path.join(site.area, name + "-tls.yaml")
        with open(os.path.join(site.tree, "deploy", "kubernetes", name + ".yaml"), encoding="utf-8") as f:
            text = re.sub(r"^#tls ", "", re.sub(r"^.* #plain\n", "", f.read(), flags=re.M), flags=re.M)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        for release in RELEASES:
            validate(site, release, path)
    return check


def refused(site):
    path = os.path.join(site.area, "wrong.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(WRONG)
    validate(site, RELEASES[-1], path, status=1)


CHECKS = [
    ("kubernetes-validate: profile A", accepted("profile-a", "deployment/wiggle", "service/wiggle")),
    ("kubernetes-validate: profile B", accepted("profile-b", "deployment/wiggle", "service/wiggle")),
    ("kubernetes-validate: workers", accepted("worker", "configmap/wiggle-worker", "deployment/wiggle-worker")),
    ("kubernetes-validate: profile A with TLS", accepted_with_tls("profile-a")),
    ("kubernetes-validate: profile B with TLS", accepted_with_tls("profile-b")),
    ("kubernetes-validate: workers with TLS", accepted_with_tls("worker")),
    ("kubernetes-validate: the Job that updates", accepted("update", "job/wiggle-update")),
    ("kubernetes-validate: network policies", accepted("network", "networkpolicy/wiggle", "networkpolicy/wiggle-db", "networkpolicy/wiggle-worker")),
    ("kubernetes-validate: one that is wrong is refused", refused),
]
