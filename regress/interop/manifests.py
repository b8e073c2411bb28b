"""kubernetes-validate: the manifests of deploy/ against the schemas of Kubernetes' releases."""
import os
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


def accepted(name):
    def check(site):
        for release in RELEASES:
            said = validate(site, release, os.path.join(site.tree, "deploy", "kubernetes", "profile-%s.yaml" % name))
            contains(said, "deployment/wiggle", "service/wiggle")
    return check


def refused(site):
    path = os.path.join(site.area, "wrong.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(WRONG)
    validate(site, RELEASES[-1], path, status=1)


CHECKS = [
    ("kubernetes-validate: profile A", accepted("a")),
    ("kubernetes-validate: profile B", accepted("b")),
    ("kubernetes-validate: one that is wrong is refused", refused),
]
