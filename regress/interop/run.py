#!/usr/bin/python3
"""Published clients and tools against a proxy over two shards: "make interop".

run.py TOOLS [area ...]: TOOLS is what tools.sh filled. Each area is a module
here with its CHECKS (see checks.py). Prints a line for each check and closes
with "N passed, N failed, N skipped"; a check that cannot run is skipped and says
why, never counted as passed.
"""
import importlib
import os
import subprocess
import sys
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.abspath(os.path.join(HERE, "..", ".."))
sys.path[:0] = [HERE, os.path.join(TREE, "regress", "client"), os.path.join(TREE, "scripts")]

AREAS = ["reflection", "probe", "grpcio", "load", "http2"]

from checks import Site, Skip  # noqa: E402
import world  # noqa: E402


def one(site, function):
    """(outcome, remark)"""
    try:
        return "ok", function(site) or ""
    except Skip as why:
        return "skipped", str(why)
    except (AssertionError, OSError, subprocess.SubprocessError) as failure:
        return "FAILED", str(failure)
    except Exception:
        return "FAILED", traceback.format_exc()


def main():
    tools, areas = os.path.abspath(sys.argv[1]), sys.argv[2:] or AREAS
    count = {"ok": 0, "FAILED": 0, "skipped": 0}
    world.start(os.getcwd())
    try:
        site = Site(world, tools, TREE, os.getcwd())
        for area in areas:
            for name, function in importlib.import_module(area).CHECKS:
                outcome, remark = one(site, function)
                count[outcome] += 1
                print("%-12s %-52s %s%s" % (area, name, outcome, ": " + remark if remark else ""), flush=True)
    finally:
        status = world.stop()
    if status != 0:
        print("a proxy ended with status %s" % status)
        count["FAILED"] += 1
    print("\n%(ok)d passed, %(FAILED)d failed, %(skipped)d skipped" % count)
    sys.exit(1 if count["FAILED"] or not count["ok"] else 0)


if __name__ == "__main__":
    main()
