"""signal, schedule, events, stats, backlog and cluster of the wiggle command."""
import json
import os
import subprocess
import threading

import world
from harness import Proxy, free_port, topology, wait_for
from test_cli import CommandTest, wiggle
from test_work import WorkTest
from wigclient import fresh_name


class Signals(CommandTest):
    def waiting(self, context="{}"):
        name = self.register({"await_signal": "go"})
        return self.prints("start", name, "--context", context)["instance_id"]

    def test_payloads(self):
        for arguments, stdin, context in (
                ((), "", {"a": 1, "b": 2}),
                (("--payload", '{"b": null, "c": {"d": null}}'), "", {"a": 1, "c": {"d": None}}),
                (("-p", "-"), '{"a": "stdin"}', {"a": "stdin", "b": 2}),
                (("--payload", "null"), "", {"a": 1, "b": 2}),
                (("--payload", "7"), "", 7)):
            with self.subTest(arguments=arguments):
                instance = self.waiting('{"a": 1, "b": 2}')
                self.assertEqual(self.prints("signal", instance, "go", *arguments, stdin=stdin),
                                 {"instance_id": instance, "signal": "go"})
                done = self.prints("get", instance)
                self.assertEqual((done["status"], done["context"]), ("COMPLETED", context))

    def test_text_and_file(self):
        instance = self.waiting()
        path = os.path.join(world.AREA, fresh_name("payload"))
        with open(path, "w", encoding="utf-8") as f:
            f.write('{"from": "file"}')
        self.assertEqual(self.ends(0, "signal", instance, "go", "--payload", "@" + path).stdout,
                         "signalled %s\n" % instance)
        self.assertEqual(self.prints("get", instance)["context"], {"from": "file"})

    def test_refusals(self):
        instance = self.waiting()
        self.assertIn("instance %s is not waiting for signal 'stop' (FAILED_PRECONDITION)" % instance,
                      self.ends(1, "signal", instance, "stop").stderr)
        self.assertIn("instance not found (NOT_FOUND)",
                      self.ends(1, "signal", "wfi.s0.01m446vf3rya1rekthaps4", "go").stderr)
        self.ends(0, "cancel", instance)
        self.assertIn("instance %s is CANCELLED" % instance, self.ends(1, "signal", instance, "go").stderr)
        for arguments, text in (((instance,), "usage: wiggle signal ID NAME"),
                                ((instance, "go", "--payload", "{"), "--payload: not valid JSON")):
            self.assertIn(text, self.ends(2, "signal", *arguments).stderr)


class Schedules(CommandTest):
    def forget(self, schedule):
        wiggle("schedule", "delete", schedule["id"])

    def test_create_replace_list_delete(self):
        name = self.register({"task": "a"})
        made = self.prints("schedule", "create", name, "--every", "90m", "--context", '{"a": 1}')
        self.addCleanup(self.forget, made)
        self.assertEqual((made["workflow"], made["every_millis"], made["cron"]), (name, 5400000, None))
        self.assertRegex(made["next_fire_at"], r"^\d{4}-\d\d-\d\dT")
        again = self.prints("schedule", "create", name, "--cron", "30 6 * * 1-5")
        self.assertEqual((again["id"], again["created_at"]), (made["id"], made["created_at"]))
        self.assertEqual((again["every_millis"], again["cron"]), (None, "30 6 * * 1-5"))
        self.assertRegex(again["next_fire_at"], r"T06:30:00\.000Z$")
        self.assertIn(again, self.prints("schedule", "list"))
        lines = self.ends(0, "schedule", "list").stdout.splitlines()
        self.assertEqual(lines[0].split(), ["ID", "WORKFLOW", "CADENCE", "NEXT", "CREATED"])
        self.assertRegex("\n".join(lines), r"(?m)^%s +%s +cron 30 6 \* \* 1-5 +" % (made["id"], name))
        text = self.ends(0, "schedule", "create", name, "--every", "2h").stdout
        self.assertRegex(text, r"^%s: %s, every 2h, first at \d{4}-" % (made["id"], name))
        self.assertEqual(self.prints("schedule", "delete", made["id"]), {"deleted": made["id"]})
        self.assertIn("no such schedule: '%s'" % made["id"], self.ends(1, "schedule", "delete", made["id"]).stderr)
        self.assertNotIn(made["id"], [s["id"] for s in self.prints("schedule", "list")])

    def test_it_fires(self):
        name = self.register({"sleep": "1ms"})
        made = self.prints("schedule", "create", name, "--every", "200ms", "--context", '{"by": "clock"}')
        self.addCleanup(self.forget, made)

        def fired():
            return [i for i in self.prints("list", "--correlation-id", "schedule:" + made["id"])
                    if i["status"] == "COMPLETED"]
        done = wait_for(fired, 60, "a fire of the schedule")
        self.assertEqual((done[0]["workflow"], done[0]["context"]), (name, {"by": "clock"}))

    def test_refusals(self):
        name = self.register({"task": "a"})
        for arguments, text in (
                (("create", name), "either --every DURATION or --cron EXPR"),
                (("create", name, "--every", "1s", "--cron", "* * * * *"), "either --every DURATION or --cron EXPR"),
                (("create", name, "--every", "0s"), "--every must be at least 1ms"),
                (("create", name, "--every", "often"), "--every must be a number with unit"),
                (("create", name, "--cron", "* * * *"), "--cron: cron '* * * *' must have 5 fields"),
                (("create", name, "--cron", "61 * * * *"), "--cron: cron field '61': out of range 0-59"),
                (("create", name, "--cron", "0 0 30 2 *"), "--cron: cron '0 0 30 2 *' never fires"),
                (("create", name, "--every", "1s", "--context", "{"), "--context: not valid JSON"),
                (("create", "--every", "1s"), "usage: wiggle schedule"),
                (("delete",), "usage: wiggle schedule"),
                (("list", name), "usage: wiggle schedule"),
                (("list", "--every", "1s"), "go with schedule create"),
                (("destroy", name), "usage: wiggle schedule")):
            with self.subTest(arguments=arguments):
                self.assertIn(text, self.ends(2, "schedule", *arguments).stderr)
        self.assertIn("(NOT_FOUND)", self.ends(1, "schedule", "create", "no such", "--every", "1h").stderr)


class Events(CommandTest):
    def lines(self, *arguments, **more):
        return [json.loads(line) for line in self.ends(0, "--json", "events", *arguments, **more).stdout.splitlines()]

    def of(self, events, instance):
        return [e["type"] for e in events if e["instance_id"] == instance]

    def test_reading_does_not_move_and_acknowledging_does(self):
        consumer = fresh_name("consumer")
        self.assertEqual(self.lines("--consumer", consumer), [])
        name = self.register({"sleep": "1ms"})
        instance = self.prints("start", name, "--wait", "--correlation-id", "c/" + name)["id"]

        def seen():
            events = self.lines("--consumer", consumer)
            return events if self.of(events, instance) == ["wf.started", "wf.completed"] else None
        events = wait_for(seen, 60, "both events")
        first = next(e for e in events if e["instance_id"] == instance)
        self.assertEqual((first["workflow"], first["version"], first["correlation_id"], first["payload"], first["node_id"]),
                         (name, 1, "c/" + name, {}, None))
        self.assertRegex(first["created_at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertRegex(first["cursor"], r"^0:\d+,1:\d+$")
        self.assertEqual(self.lines("--consumer", consumer)[:len(events)], events)
        self.assertEqual(self.lines("--consumer", consumer, "--max", "1"), events[:1])
        self.assertEqual(self.lines("--consumer", consumer, "--max", "1", "--ack"), events[:1])
        self.assertEqual(self.lines("--consumer", consumer)[:len(events) - 1], events[1:])
        self.lines("--consumer", consumer, "--ack", "--max", "10000")
        self.assertNotIn(instance, [e["instance_id"] for e in self.lines("--consumer", consumer)])

    def test_a_name_can_be_forgotten(self):
        consumer = fresh_name("consumer")
        self.lines("--consumer", consumer)
        self.assertEqual(self.ends(0, "events", "--consumer", consumer, "--forget").stdout, "forgot %s\n" % consumer)
        self.assertIn("there is no consumer '%s'" % consumer,
                      self.ends(1, "events", "--consumer", consumer, "--forget").stderr)
        self.lines("--consumer", consumer)
        self.assertEqual(self.prints("events", "--consumer", consumer, "--forget"), {"forgotten": consumer})
        for more in (["--follow"], ["--ack"], ["--max", "1"], ["--from", "now"]):
            self.assertIn("--forget goes with --consumer alone",
                          self.ends(2, "events", "--consumer", consumer, "--forget", *more).stderr)

    def test_from_the_start(self):
        name = self.register({"sleep": "1ms"})
        instance = self.prints("start", name, "--wait")["id"]
        consumer, seen = fresh_name("consumer"), []

        def both():
            seen.extend(self.lines("--consumer", consumer, "--from", "start", "--ack", "--max", "100000"))
            return self.of(seen, instance) == ["wf.started", "wf.completed"]
        wait_for(both, 60, "the events from the start")

    def test_more_than_one_answer_holds(self):
        consumer = fresh_name("consumer")
        self.lines("--consumer", consumer)
        name = self.register({"sleep": "1ms"})
        world.shards[0].psql("select count(wiggle.start(:'name')) from generate_series(1, 600)", name=name)
        wait_for(lambda: len(self.lines("--consumer", consumer, "--max", "1000")) == 1000, 60, "a full answer")
        self.assertIn("--max over 1000 needs --ack or --follow",
                      self.ends(2, "events", "--consumer", consumer, "--max", "1001").stderr)
        seen = set()

        def all_of_them():
            seen.update(event["cursor"] for event in self.lines("--consumer", consumer, "--max", "1200", "--ack"))
            return len(seen) == 1200
        wait_for(all_of_them, 60, "twelve hundred entries")

    def test_text(self):
        consumer = fresh_name("consumer")
        self.lines("--consumer", consumer)
        name = self.register({"task": "a"})
        instance = self.prints("start", name)["instance_id"]
        self.ends(0, "cancel", instance, "--reason", "not needed")

        def both():
            text = self.ends(0, "events", "--consumer", consumer).stdout
            return text if "wf.cancelled" in text else None
        text = wait_for(both, 60, "the event of the cancel")
        self.assertRegex(text, r"(?m)^\d{4}-\S+Z +wf\.started +%s +%s" % (name, instance))
        self.assertRegex(text, r"(?m)^\d{4}-\S+Z +wf\.cancelled +%s +%s +\{.*\"not needed\".*\}$" % (name, instance))

    def follow(self, consumer, server):
        """A follower, and the list to which its events are added."""
        env = {k: v for k, v in os.environ.items() if not k.startswith("WIGGLE_")}
        env["WIGGLE_URL"] = server
        env["WIGGLE_RPC_MAX_ATTEMPTS"] = "2"
        follower = subprocess.Popen(["wiggle", "--json", "events", "--consumer", consumer, "--follow"], env=env,
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        seen = []

        def read():
            for line in follower.stdout:
                seen.append(json.loads(line))
        reader = threading.Thread(target=read, daemon=True)
        reader.start()

        def end():
            follower.kill()
            follower.wait()
            reader.join()
            follower.stdout.close()
        self.addCleanup(end)
        return follower, seen

    def one_instance(self, seen, name):
        instance = self.prints("start", name, "--wait")["id"]
        wait_for(lambda: self.of(seen, instance) == ["wf.started", "wf.completed"], 60, "followed events")
        return instance

    def test_follow(self):
        consumer = fresh_name("consumer")
        self.lines("--consumer", consumer)
        follower, seen = self.follow(consumer, world.proxy.address)
        name = self.register({"sleep": "1ms"})
        for _ in range(3):
            instance = self.one_instance(seen, name)
            # What was printed is acknowledged.
            wait_for(lambda: instance not in [e["instance_id"] for e in self.lines("--consumer", consumer)], 60,
                     "the acknowledgement")
        self.assertEqual(len({(e["shard"], e["seq"]) for e in seen}), len(seen))
        self.assertIsNone(follower.poll())

    def test_follow_rides_out_a_restart(self):
        consumer = fresh_name("consumer")
        self.lines("--consumer", consumer)
        name = self.register({"sleep": "1ms"})
        port = free_port()
        stem = fresh_name("followed")
        first = Proxy(world.AREA, topology(*world.shards), stem, WIGGLE_PORT=port).start()
        self.addCleanup(lambda: first.process.poll() is None and first.kill())
        follower, seen = self.follow(consumer, "127.0.0.1:%d" % port)
        self.one_instance(seen, name)
        first.kill()
        between = self.prints("start", name, "--wait")["id"]
        second = Proxy(world.AREA, topology(*world.shards), stem + "-again", WIGGLE_PORT=port).start()
        self.addCleanup(lambda: second.process.poll() is None and second.stop())
        self.one_instance(seen, name)
        self.assertEqual(self.of(seen, between), ["wf.started", "wf.completed"])
        self.assertIsNone(follower.poll())

    def test_follow_to_a_maximum_and_a_closed_output(self):
        name = self.register({"sleep": "1ms"})
        for _ in range(3):
            self.prints("start", name, "--wait")
        self.assertEqual(len(self.lines("--consumer", fresh_name("consumer"), "--from", "start", "--follow", "--max", "3")), 3)
        consumer = fresh_name("consumer")
        before = wait_for(lambda: self.lines("--consumer", consumer, "--from", "start"), 60, "any event")
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run(["wiggle", "--server", world.proxy.address, "events", "--consumer", consumer, "--follow"],
                                  stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot write the output", done.stderr)
        # What could not be printed was not acknowledged.
        self.assertEqual(self.lines("--consumer", consumer)[:len(before)], before)

    def test_refusals(self):
        for arguments, text in (((), "events needs --consumer NAME"),
                                (("--consumer", "c", "--from", "yesterday"), "--from must be start, now or"),
                                (("--consumer", "c", "--max", "0"), "--max must be a whole number")):
            self.assertIn(text, self.ends(2, "events", *arguments).stderr)
        self.assertIn("a consumer name is required", self.ends(1, "events", "--consumer", "").stderr)


class Looking(WorkTest):
    def test_stats(self):
        name = self.define({"task": "quick"}, {"task": "slow"})
        self.serve(name, "quick=true", "slow=sleep 1")
        for _ in range(3):
            self.run_one(name)
        stats = self.prints("stats", name)
        self.assertEqual(stats["workflow"], name)
        nodes = {n["name"]: n for n in stats["nodes"]}
        self.assertEqual({n: nodes[n]["count"] for n in nodes}, {"slow": 3, "quick": 3})
        slow = nodes["slow"]
        self.assertGreaterEqual(slow["p50"], 1000)
        self.assertLessEqual(slow["p50"], slow["p95"])
        self.assertLessEqual(slow["p95"], slow["max"])
        self.assertGreaterEqual(slow["mean_millis"], 1000)
        lines = self.ends(0, "stats", name, "--since", "1h", "--version", "1").stdout.splitlines()
        self.assertEqual(lines[0].split(), ["STEP", "COUNT", "MEAN", "P50", "P95", "MAX", "WAIT", "P50", "WAIT", "P95"])
        self.assertEqual(sorted(line.split()[:2] for line in lines[1:]), [["quick", "3"], ["slow", "3"]])
        self.assertEqual(self.prints("stats", name, "--since", "2100-01-01")["nodes"], [])
        self.assertIn("workflow 'no such' not found", self.ends(1, "stats", "no such").stderr)
        self.assertIn("workflow '%s:9' not found" % name, self.ends(1, "stats", name, "--version", "9").stderr)
        self.assertIn("--since must be a duration", self.ends(2, "stats", name, "--since", "now").stderr)

    def test_backlog(self):
        name = self.define({"task": "a"})
        ids = [self.prints("start", name)["instance_id"] for _ in range(3)]

        def mine():
            return next((s for s in self.prints("backlog", "--max", "500")["slices"] if s["queue"] == name), None)
        slice_ = wait_for(mine, 60, "the backlog")
        self.assertEqual((slice_["workflow"], slice_["version"], slice_["ready_count"], slice_["covered"]), (name, 1, 3, False))
        text = self.ends(0, "backlog", "--max", "500").stdout
        self.assertRegex(text, r"(?m)^%s +1 +%s +3 +\d{4}-\S+Z +no$" % (name, name))
        self.assertRegex(text, r"pollers in the last minute: \d+\n$")
        for instance in ids:
            self.ends(0, "cancel", instance)
        self.assertIn("--max must be a whole number", self.ends(2, "backlog", "--max", "501").stderr)

    def test_cluster(self):
        other = Proxy(world.AREA, topology(*world.shards[:2]), fresh_name("cluster"), WIGGLE_NODE_NAME="other").start()
        self.addCleanup(lambda: other.process.poll() is None and other.kill())

        def view():
            cluster = self.prints("cluster")
            return cluster if "other" in [m["name"] for m in cluster["members"] if m["alive"]] else None
        cluster = wait_for(view, 60, "the other proxy among the members")
        self.assertGreaterEqual(len(cluster["members"]), 2)
        self.assertRegex(cluster["members"][0]["last_heartbeat"], r"^\d{4}-")
        text = self.ends(0, "cluster").stdout
        self.assertRegex(text, r"(?m)^\* +\S+ +")
        self.assertRegex(text, r"(?m)^ +other +")
        self.assertEqual(other.stop(), 0)
        wait_for(lambda: "other" not in [m["name"] for m in self.prints("cluster")["members"] if m["alive"]], 60,
                 "the other proxy to have left")


class MoreHelp(CommandTest):
    def test_every_new_command_has_help(self):
        text = self.ends(0, "--help").stdout
        for command in ("signal", "schedule", "events", "stats", "backlog", "cluster"):
            self.assertRegex(text, r"(?m)^  %s +[a-z]" % command)
            own = self.ends(0, command, "--help").stdout
            self.assertTrue(own.startswith("Usage: wiggle " + command), own)
            self.assertIn("Example", own)
        self.assertIn("#compensate", wiggle("work", "--help").stdout)
