"""What the modules of this suite share."""
import os
import shutil
import subprocess
import sys

import yaml

TREE = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
AREA = os.path.abspath(sys.argv[1])
# What tools.sh has unpacked lies beside the staged tree.
TOOLS = os.path.join(TREE, "..", "deploy-tools")
sys.path[:0] = [os.path.join(TREE, "scripts"), os.path.join(TREE, "regress", "client")]


def read(*path):
    with open(os.path.join(TREE, *path), encoding="utf-8") as f:
        return f.read()


def run(*argv, status=0, **more):
    done = subprocess.run(argv, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False, **more)
    assert done.returncode == status, "%s ended with %d, not %d:\n%s" % (" ".join(argv), done.returncode, status, done.stdout)
    return done.stdout


def tool(test, name):
    """The path of a program that is not a dependency; without it the test is skipped, and why is said."""
    found = shutil.which(name, path=":".join([os.environ["PATH"], "/usr/sbin", os.path.join(TOOLS, "bin")]))
    if found is None:
        why = os.path.join(TOOLS, name + ".why")
        test.skipTest("there is no %s here%s" % (name, ": " + read(why).strip() if os.path.exists(why) else ""))
    return found


def with_tls(text):
    """What a file of deploy/ is with TLS, as docs/deploying.md does it: the lines marked so, without those that they replace."""
    return subprocess.run(["sed", "-e", "s/^#tls //", "-e", "/ #plain$/d"], input=text, text=True, stdout=subprocess.PIPE,
                          check=True).stdout


def manifests(name, change=str):
    return list(yaml.safe_load_all(change(read("deploy", "kubernetes", name + ".yaml"))))


def one(documents, kind, name):
    """The object of this kind and name."""
    found = [d for d in documents if d["kind"] == kind and d["metadata"]["name"] == name]
    assert len(found) == 1, "%s %s: %d" % (kind, name, len(found))
    return found[0]
