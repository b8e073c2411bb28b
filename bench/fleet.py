#!/usr/bin/env python3
"""64 shards and 32 proxies: placement, rotation of claims and wake-ups, simulated.

    bench/fleet.py [--shards N] [--proxies N] [--seed N]

No machine here holds two thousand pairs of shard and proxy, so this counts what
the proxies' rules (placement.c, poller.c) come to: each function below is one of
the rules, and the constants are theirs. It prints figures and exits with 1 when
one is outside of its bound. Needs nothing but Python.
"""
import argparse
import heapq
import random
import sys

BURST = 16          # BURST_FIRST: polls of a subscription that go to look at a wake-up
BATCH_MS = 0.39     # what a batch costs a shard, measured
CLAIM_MS = 0.01     # what an empty claim in it adds
TOLD_MS = 0.5       # from a commit to its NOTIFY at a proxy

FAILED = []


def show(name, value, unit, bound=None):
    bad = bound is not None and value > bound
    print("%-52s %12.3f %-16s %s" % (name, value, unit, "" if bound is None else
                                     ("OVER the bound %g" if bad else "within %g") % bound))
    if bad:
        FAILED.append(name)


class Placement:
    """Smooth weighted round robin; each proxy begins anywhere in the round (these weights have no common divisor)."""

    def __init__(self, weights, rng):
        self.weights, self.total = weights, sum(weights)
        self.current = [0] * len(weights)
        for _ in range(rng.randrange(self.total)):
            self.pick()

    def pick(self):
        best = None
        for i, weight in enumerate(self.weights):
            self.current[i] += weight
            if weight > 0 and (best is None or self.current[i] > self.current[best]):
                best = i
        self.current[best] -= self.total
        return best


def placement(shards, proxies, rng):
    """Starts spread over proxies at random: how far is a shard from its share?"""
    for label, weights in (("equal weights", [1] * shards),
                           ("one shard of weight 4", [4] + [1] * (shards - 1))):
        fleet = [Placement(weights, rng) for _ in range(proxies)]
        for starts in (shards * 4, shards * 400):
            counts = [0] * shards
            for _ in range(starts):
                counts[fleet[rng.randrange(proxies)].pick()] += 1
            worst = max(abs(c - starts * w / sum(weights)) for c, w in zip(counts, weights))
            # each proxy may be off by one a shard; that they begin anywhere makes most of it cancel out
            show("placement, %s, %d starts: worst deviation" % (label, starts), worst, "instances", proxies / 2)


def rotation(shards, proxies, rng):
    """New polls begin at the next shard and go on until one has a task: is any shard asked last by all?"""
    asked = [0] * shards
    waits = []
    cursors = [rng.randrange(shards) for _ in range(proxies)]
    ready = {rng.randrange(shards) for _ in range(max(shards // 8, 1))}
    for _ in range(20000):
        proxy = rng.randrange(proxies)
        first, cursors[proxy] = cursors[proxy], (cursors[proxy] + 1) % shards
        for step in range(shards):
            slot = (first + 1 + step) % shards
            asked[slot] += 1
            if slot in ready:
                ready.remove(slot)
                waits.append(step)
                ready.add(rng.choice([other for other in range(shards) if other not in ready]))
                break
    show("rotation: claims of the most asked shard to the mean", max(asked) / (sum(asked) / shards), "times", 1.5)
    show("rotation: shards asked before a task is found, mean", sum(waits) / len(waits), "shards", shards / 4)
    show("rotation: claims of a poll that finds nothing", shards, "claims")


def wakeups(proxies, rate, seconds, divided, rng):
    """
    Tasks become ready on one shard at random moments. Each tells every proxy, whose polls
    look in one batch; a proxy that is looking does not send another. Divided
    (WIGGLE_TASK_PARTITIONING), a task is told to its owner alone, and taken by it. The
    shard does one batch at a time. (batches for each task, busy share of the shard, mean wait in ms)
    """
    events, order = [], 0

    def at(when, what, proxy=None):
        nonlocal order
        order += 1
        heapq.heappush(events, (when, order, what, proxy))

    ready, waited, batches, busy_ms, free_at = [], [], 0, 0.0, 0.0
    looking, again = [False] * proxies, [False] * proxies
    now = 0.0
    while now < seconds * 1e3:
        now += rng.expovariate(rate / 1e3)
        at(now, "ready")
    while events:
        now, _, what, proxy = heapq.heappop(events)
        if what == "ready":
            owner = rng.randrange(proxies) if divided else None
            ready.append((now, owner))
            for each in [owner] if divided else range(proxies):
                at(now + TOLD_MS * rng.uniform(0.5, 1.5), "told", each)
        elif what == "told" and looking[proxy]:
            again[proxy] = True
        elif what == "told":
            looking[proxy], again[proxy] = True, False
            cost = BATCH_MS + BURST * CLAIM_MS
            free_at = max(free_at, now) + cost
            busy_ms += cost
            batches += 1
            at(free_at, "looked", proxy)
        else:
            taken = [task for task in ready if task[1] in (None, proxy)][:BURST]
            ready = [task for task in ready if task not in taken]
            waited += [now - since for since, _ in taken]
            looking[proxy] = False
            if again[proxy] or len(taken) == BURST:
                at(now, "told", proxy)
    return batches / len(waited), busy_ms / now, sum(waited) / len(waited)


def show_wakeups(proxies, rng):
    for rate in (1, 10, 100, 1000):
        for divided in (False, True):
            batches, busy, wait = wakeups(proxies, rate, max(2, 200 // rate), divided, rng)
            name = "wake-ups%s, %d tasks/s on a shard, %d proxies" % (" divided" * divided, rate, proxies)
            show(name + ": batches", batches, "for a task", 1 if divided else proxies)
            show(name + ": busy", busy, "of a core", 1)
            show(name + ": wait", wait, "ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--proxies", type=int, default=32)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    placement(arguments.shards, arguments.proxies, rng)
    rotation(arguments.shards, arguments.proxies, rng)
    show_wakeups(arguments.proxies, rng)
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
