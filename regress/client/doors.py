"""The two doors of a proxy that a case is run at: see world.py."""
from wigclient import ClientTest


class OneShard(ClientTest):
    """One database, which is home and holds every instance."""

    server = "single"
    shard = 0


class Away(ClientTest):
    """Two shards, and every instance on the one that is not home."""

    server = "away"
    shard = 1


def doors(cases):
    """Run a class of cases (no TestCase itself) at both doors."""
    module = {}
    for door in (OneShard, Away):
        name = cases.__name__ + door.__name__
        module[name] = type(name, (cases, door), {"__module__": cases.__module__, "__doc__": cases.__doc__})
    return module
