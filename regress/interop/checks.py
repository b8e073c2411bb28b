"""What the areas of the interoperability checks have in common.

An area is a module with a list CHECKS of (name, function). A function takes the
Site and raises AssertionError, or Skip with the reason; it returns nothing, or a
remark for the table.
"""
import os
import subprocess


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
