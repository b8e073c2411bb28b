"""wiggle-client, Wiggle's own Python client, of the one version that PyPI has."""
import os


def client(site):
    packages = site.tool("wiggle-client")
    return ["env", "PYTHONPATH=" + packages, os.environ["PYTHON"],
            os.path.join(site.tree, "regress", "interop", "python", "scenarios.py")]


CLIENTS = [("python 0.1.1", client)]
