"""The `wiggle` command as client and worker: not published by others, but the same scenarios."""
import os


def client(site):
    return [os.environ["PYTHON"], os.path.join(site.tree, "regress", "interop", "cli", "scenarios.py")]


CLIENTS = [("wiggle", client)]
