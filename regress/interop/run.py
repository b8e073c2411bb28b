#!/usr/bin/python3
"""Published clients and tools against a proxy over two shards: "make interop".

run.py TOOLS [area ...]: TOOLS is what tools.sh filled. Each area is a module
here with its CHECKS and CLIENTS (see checks.py). Prints a line for each check
and each client's scenario, then the table of scenarios by clients, and closes with
"N passed, N failed, N skipped"; what cannot run is skipped and says why, never
counted as passed.
"""
import importlib
import os
import subprocess
import sys
import threading
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.abspath(os.path.join(HERE, "..", ".."))
sys.path[:0] = [HERE, os.path.join(TREE, "regress", "client"), os.path.join(TREE, "scripts")]

AREAS = ["reflection", "probe", "grpcio", "load", "http2", "manifests", "python", "node", "go", "java", "cli"]

from checks import SCENARIOS, Site, Skip, reported  # noqa: E402
from harness import Proxy, interruptible, topology  # noqa: E402
import world  # noqa: E402


class Results:
    def __init__(self):
        self.count = {"ok": 0, "FAILED": 0, "skipped": 0}
        self.table = {}

    def add(self, area, name, outcome, remark):
        self.count[outcome] += 1
        print("%-12s %-52s %s%s" % (area, name, outcome, ": " + remark if remark else ""), flush=True)

    def scenario(self, column, name, outcome, remark):
        self.table.setdefault(column, {})[name] = outcome
        self.add(column, name, outcome, remark)

    def print_table(self):
        rows = list(dict.fromkeys([*SCENARIOS, *(name for column in self.table.values() for name in column)]))
        width = max(map(len, rows))
        print("\n%-*s  %s" % (width, "", "  ".join(self.table)))
        for row in rows:
            print("%-*s  %s" % (width, row, "  ".join("%-*s" % (len(column), outcomes.get(row, ""))
                                                      for column, outcomes in self.table.items())))


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


class Drained:
    """A proxy that is started again at its address when it has ended after a SIGTERM."""

    def __init__(self, site, name):
        self.proxy = Proxy(site.area, topology(*site.world.shards), name=name).start()
        self.problem, self.leaving = None, False
        self.thread = threading.Thread(target=self.again, daemon=True)
        self.thread.start()

    def again(self):
        status = self.proxy.process.wait()
        if self.leaving:
            return
        if status != 0:
            self.problem = "the drained proxy ended with status %d" % status
        self.proxy.start(address=(self.proxy.port, self.proxy.second_port))

    def stop(self):
        self.leaving = True
        if self.proxy.process.poll() is not None:
            self.thread.join()
        return self.problem or (self.proxy.stop() and "the proxy ended badly")


def client(site, column, function, results):
    try:
        command = function(site)
    except Skip as why:
        for name in SCENARIOS:
            results.scenario(column, name, "skipped", str(why))
        return
    stem = column.replace(" ", "-")
    drained = Drained(site, "drained-" + stem)
    try:
        environment = {"WIGGLE_ADDRESS": site.address, "WIGGLE_HTTP": "127.0.0.1:%d" % site.proxy.second_port,
                       "WIGGLE_DRAIN_ADDRESS": drained.proxy.address,
                       "WIGGLE_DRAIN_PID": str(drained.proxy.process.pid)}
        for scenario in reported(command, environment, os.path.join(site.area, stem + ".log")):
            results.scenario(column, *scenario)
    finally:
        problem = drained.stop()
    if problem:
        results.add(column, "the proxy that drains", "FAILED", problem)


def main():
    interruptible()
    tools, areas = os.path.abspath(sys.argv[1]), sys.argv[2:] or AREAS
    results = Results()
    world.start(os.getcwd())
    try:
        site = Site(world, tools, TREE, os.getcwd())
        for area in areas:
            module = importlib.import_module(area)
            for name, function in getattr(module, "CHECKS", []):
                results.add(area, name, *one(site, function))
            for column, function in getattr(module, "CLIENTS", []):
                client(site, column, function, results)
    finally:
        status = world.stop()
    if status != 0:
        results.add("proxy", "the end", "FAILED", "a proxy ended with status %s" % status)
    if results.table:
        results.print_table()
    print("\n%(ok)d passed, %(FAILED)d failed, %(skipped)d skipped" % results.count)
    sys.exit(1 if results.count["FAILED"] or not results.count["ok"] else 0)


if __name__ == "__main__":
    main()
