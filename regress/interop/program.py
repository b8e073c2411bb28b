"""What scenario programs in Python need (see checks.py)."""
import sys
import time
import traceback

scenarios = {}


class Skip(Exception):
    """The client has nothing for this; the text says what is missing."""


def scenario(name):
    def keep(function):
        scenarios[name] = function
        return function
    return keep


def wait_for(condition, what, seconds=60):
    until = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < until, "%s: not within %d s" % (what, seconds)
        time.sleep(0.02)


def equal(got, expected, what):
    assert got == expected, "%s: expected %r, got %r" % (what, expected, got)


def report(name, function):
    try:
        remark = function()
        print("ok %s%s" % (name, " - " + remark if remark else ""), flush=True)
    except Skip as why:
        print("skip %s - %s" % (name, why), flush=True)
    except Exception as failure:
        traceback.print_exc()
        print("not ok %s - %s" % (name, " ".join(str(failure).split()) or repr(failure)), flush=True)


def main(more=None):
    """Run all scenarios, or those that the command line names."""
    for name, function in {**scenarios, **(more or {})}.items():
        if not sys.argv[1:] or name in sys.argv[1:]:
            report(name, function)
