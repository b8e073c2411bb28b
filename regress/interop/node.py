"""Node's grpc-js with the protocol's file: there is no client of Wiggle's for Node."""
import os
import shutil

from checks import Skip


def client(site):
    modules = site.tool("node")
    python, why = "", ""
    try:
        python = site.tool("wiggle-client")
    except Skip as reason:
        why = "wiggle-client: " + str(reason)
    return ["env", "NODE_PATH=" + os.path.join(modules, "node_modules"), "PYTHON_CLIENT=" + python, "PYTHON_CLIENT_WHY=" + why,
            "WIGGLE_PROTO=" + os.path.join(site.tree, "proxy", "proto"),
            shutil.which("node"), os.path.join(site.tree, "regress", "interop", "node", "scenarios.js")]


CLIENTS = [("grpc-js 1.14", client)]
