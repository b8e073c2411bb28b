"""Wiggle's own Java client, of the 2.1 line (io.github.hadielmougy)."""
import os


def client(site):
    folder = site.tool("java-2.1")
    with open(os.path.join(folder, "java.path"), encoding="utf-8") as f:
        java = f.read().strip()
    return [java, "-cp", folder + os.pathsep + os.path.join(folder, "*"), "Scenarios"]


CLIENTS = [("java 2.1", client)]
