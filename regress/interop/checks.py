"""What the areas of the interoperability checks have in common.

An area is a module with a list CHECKS of (name, function), a list CLIENTS of
(column, function), or both. A check takes the Site and raises AssertionError, or
Skip with the reason; it returns nothing, or a remark.

A client is a column of the closing table, "python 0.1.1" say. Its function takes
the Site and returns the command that runs its scenarios (program and arguments), or
raises Skip. The program is written in the client's language against its public API
and prints one line for each scenario of SCENARIOS as soon as it knows:

    ok NAME
    not ok NAME - why
    skip NAME - why

A scenario of the list that it does not report has failed. A name that is not in the
list is a row of its own. Its other lines, and stderr, go to AREA/COLUMN.log. In its
environment it finds

    WIGGLE_ADDRESS        host:port of a proxy over two shards
    WIGGLE_DRAIN_ADDRESS  of another proxy over the same shards,
    WIGGLE_DRAIN_PID      which the program may send one SIGTERM: it drains, and is
                          started again at the same address when it has ended
    WIGGLE_HTTP           host:port of the second port of the first one

and on PATH our `wiggle`, as the worker in another language. Its working folder is
for it to write to; it starts and ends the processes that it needs. Workflows are
named so that no other client's program names them too.
"""
import os
import re
import subprocess
import threading

# The rows of the table, and what each shows. Waits poll a condition; what is not to happen is asked for at the end.
SCENARIOS = {
    "linear": "three steps pass one context on; COMPLETED with what they made of it",
    "gate": "a gate that is false ends the instance, 'gated:NAME'; one that is true does not",
    "retry": "a step that fails twice and then does not; it was called three times",
    "permanent failure": "a failure that is not to be retried: FAILED with its message, called once",
    "sleep": "an instance waits without a worker and goes on by itself",
    "fork": "two branches, both had a turn, and what follows them (a combine where offered) sees both results",
    "forEach": "one branch for each element of a list; none for an empty list",
    "choose": "the first guard that holds, another one, and otherwise",
    "loop": "a body repeated while its condition holds",
    "signal": "a payload that is delivered while the instance waits comes into its context",
    "escalation": "a signal's time runs out: the escalation branch, or FAILED without one",
    "sub-workflow": "a child's result comes back; a child that fails fails its parent",
    "saga": "a failure undoes what was done, newest first",
    "schedule": "fires again and again until it is deleted; it is listed",
    "events": "a consumer reads an instance's events in order and acknowledges them",
    "correlation": "an instance is found again by its correlation id",
    "cancel": "an instance that waits becomes CANCELLED with its reason; cancelling again changes nothing",
    "versions": "an instance stays on the version that it started with when another is registered",
    "worker killed": "a worker process is killed while it holds a step; another one does the step again",
    "drain": "WIGGLE_DRAIN_PID gets its SIGTERM with many instances under way: all complete, by the same client",
    "two languages": "one instance's steps are done by this client's worker and by another language's",
}
LINE = re.compile(r"(ok|not ok|skip) (.+?)(?: - (.*))?")
OUTCOMES = {"ok": "ok", "not ok": "FAILED", "skip": "skipped"}
PROGRAM_SECONDS = 300


class Skip(Exception):
    """This check could not run here; the text says why."""


class Site:
    """Where the checks run: a proxy over two shards, the tools, the tree, a folder to write to."""

    def __init__(self, world, tools, tree, area):
        self.world, self.tools, self.tree, self.area = world, tools, tree, area

    @property
    def proxy(self):
        return self.world.proxy

    @property
    def address(self):
        return self.world.proxy.address

    def tool(self, name):
        path = os.path.join(self.tools, name)
        if os.path.exists(path):
            return path
        why = path + ".why"
        if os.path.exists(why):
            with open(why, encoding="utf-8", errors="replace") as f:
                raise Skip(f.read().strip() or "it could not be installed")
        raise Skip("it is not installed")

    def run(self, name, *arguments, status=0, seconds=300, stdin=""):
        """A tool's output (both streams); its exit status must be as told."""
        done = subprocess.run([self.tool(name), *arguments], input=stdin, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=seconds, check=False)
        assert done.returncode == status, "%s ended with %d:\n%s" % (name, done.returncode, done.stdout[-3000:])
        return done.stdout


def contains(text, *parts):
    for part in parts:
        assert part in text, "%r is not in:\n%s" % (part, text[-3000:])


def reported(command, environment, log):
    """(scenario, outcome, remark) of each line that a scenario program prints, as it comes."""
    missing = list(SCENARIOS)
    with open(log, "w", encoding="utf-8") as out:
        program = subprocess.Popen(command, env=dict(os.environ, **environment), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=out, text=True, errors="replace")
        watch = threading.Timer(PROGRAM_SECONDS, program.kill)
        watch.start()
        try:
            for text in program.stdout:
                line = LINE.fullmatch(text.rstrip())
                if line is None:
                    out.write(text)
                    out.flush()
                    continue
                if line[2] in missing:
                    missing.remove(line[2])
                yield line[2], OUTCOMES[line[1]], line[3] or ""
            program.wait()
        finally:
            watch.cancel()
            program.kill()
            program.wait()
    for name in missing:
        yield name, "FAILED", "the program ended with status %d and did not report it; %s" % (program.returncode, log)
