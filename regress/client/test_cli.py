"""The wiggle command against a real proxy: what it prints and how it ends."""
import json
import os
import re
import subprocess
import time

import world
from harness import TREE, free_port, wait_for
from wigclient import ClientTest, fresh_name

EXAMPLE = os.path.join(TREE, "examples", "order.yaml")


def wiggle(*arguments, stdin="", server=None, timeout=90, **environment):
    env = {k: v for k, v in os.environ.items() if not k.startswith("WIGGLE_")}
    env["WIGGLE_URL"] = server or world.proxy.address
    env.update(environment)
    return subprocess.run(["wiggle", *arguments], input=stdin, text=True, env=env, timeout=timeout,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)


def shorthand(name, *steps, version=1):
    return json.dumps({"workflow": name, "version": version, "steps": list(steps)})


class CommandTest(ClientTest):
    def ends(self, status, *arguments, **more):
        done = wiggle(*arguments, **more)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def prints(self, *arguments, **more):
        """The JSON that a command prints."""
        return json.loads(self.ends(0, "--json", *arguments, **more).stdout)

    def register(self, *steps):
        name = fresh_name("cli")
        self.ends(0, "register", "-", stdin=shorthand(name, *steps))
        return name


class Files(CommandTest):
    def test_the_example_is_valid(self):
        self.assertIn("workflow order, version 1, 7 nodes: valid", self.ends(0, "validate", EXAMPLE).stdout)
        facts = self.prints("validate", EXAMPLE)
        self.assertEqual((facts["name"], facts["version"], facts["nodes"]), ("order", 1, 7))
        self.assertRegex(facts["fingerprint"], "^[0-9a-f]{64}$")

    def test_what_a_file_is_compiled_to_can_be_registered(self):
        shown = self.ends(0, "validate", "-", "--show", stdin=shorthand("w", {"task": "a"})).stdout
        self.assertEqual(json.loads(shown)["nodes"][1]["activity"], "w#a")
        self.assertEqual(self.prints("validate", "-", stdin=shown)["fingerprint"],
                         self.prints("validate", "-", stdin=shorthand("w", {"task": "a"}))["fingerprint"])

    def test_an_invalid_file_names_the_place(self):
        done = self.ends(2, "validate", "-", stdin="workflow: w\nsteps:\n- task: a\n- tsk: b\n")
        self.assertTrue(done.stderr.startswith("wiggle: -:4:3: step has no operator"), done.stderr)
        done = self.ends(2, "validate", "-", stdin="workflow: w\nsteps: [\0]\n")
        self.assertTrue(done.stderr.startswith("wiggle: -:2:9: not valid YAML: control characters"), done.stderr)
        self.assertIn("-:1:1: the document is empty", self.ends(2, "validate", "-", stdin="").stderr)
        done = self.ends(2, "register", "-", stdin="workflow: w\nsteps: [{task: a}, {task: a}]")
        self.assertIn("duplicate step name 'a'", done.stderr)
        self.assertIn("cannot open /no/such/file", self.ends(2, "validate", "/no/such/file").stderr)

    def test_registering_twice_changes_nothing_and_another_graph_is_refused(self):
        name = fresh_name("cli")
        for created in (True, False):
            self.assertEqual(self.prints("register", "-", stdin=shorthand(name, {"task": "a"})),
                             {"name": name, "version": 1, "nodes": 2, "created": created})
        self.assertEqual(self.ends(0, "register", "-", stdin=shorthand(name, {"task": "a"})).stdout,
                         "already registered: %s, version 1, 2 nodes\n" % name)
        done = self.ends(1, "register", "-", stdin=shorthand(name, {"task": "b"}))
        self.assertIn("already registered with a different graph", done.stderr)
        self.assertIn("(FAILED_PRECONDITION)", done.stderr)
        self.assertEqual(self.ends(0, "register", "-", stdin=shorthand(name, {"task": "b"}, version=2)).stdout,
                         "registered %s, version 2, 2 nodes\n" % name)


class Instances(CommandTest):
    def test_start_get_cancel(self):
        name = self.register({"task": "a"})
        context = {"a": [1, 2.5, None, True], "täxt": "\"quotes\" \\ \n \U0001f600", "big": 9007199254740991}
        started = self.prints("start", name, "--context", json.dumps(context), "--correlation-id", "mine/" + name)
        self.assertEqual(started["workflow"], name)
        shown = self.prints("get", started["instance_id"])
        self.assertEqual(shown["status"], "RUNNING")
        self.assertEqual(shown["context"], context)
        self.assertEqual([t["node_id"] for t in shown["tokens"]], ["n1"])
        listed = self.prints("list", "--correlation-id", "mine/" + name)
        self.assertEqual([i["id"] for i in listed], [started["instance_id"]])
        self.assertEqual(self.prints("cancel", started["instance_id"], "--reason", "ordered twice"),
                         {"cancelled": started["instance_id"], "status": "CANCELLED"})
        text = self.ends(0, "get", started["instance_id"]).stdout
        self.assertRegex(text, r"(?m)^status +CANCELLED$")
        self.assertRegex(text, r"(?m)^reason +ordered twice$")

    def test_cancelling_what_has_ended_says_so(self):
        name = self.register({"sleep": "1ms"})
        ended = self.prints("start", name, "--wait")["id"]
        self.assertEqual(self.ends(0, "cancel", ended).stdout, "%s had already ended: COMPLETED\n" % ended)
        self.assertEqual(self.prints("cancel", ended), {"cancelled": ended, "status": "COMPLETED"})
        running = self.prints("start", self.register({"task": "a"}))["instance_id"]
        self.assertEqual(self.ends(0, "cancel", running).stdout, "cancelled %s\n" % running)

    def test_tokens_show_failures(self):
        running = self.prints("start", self.register({"task": "a"}))["instance_id"]
        self.assertRegex(self.ends(0, "get", running).stdout,
                         r"(?m)^STEP +NODE +KIND +STATUS +TOKENS +FAILURES +DETAIL\na +n1 +TASK +READY +1 +0 *$")

    def test_tokens_bear_the_names_of_steps_and_stand_together(self):
        child = self.register({"await_signal": "go"})
        name = self.register({"fork_each": {"over": "xs", "as": "x", "name": "each", "body": [{"sleep": "1ms"}]}},
                             {"sub_workflow": {"name": "rest", "workflow": child}})
        parent = self.prints("start", name, "--context", '{"xs": [1, 2, 3]}')["instance_id"]

        def waits():
            text = self.ends(0, "get", parent).stdout
            return text if "AWAITING" in text else None
        text = wait_for(waits, 20, "the sub-workflow")
        self.assertRegex(text, r"(?m)^sleep-1ms +n3 +SLEEP +DONE +3 +0 *$")
        self.assertRegex(text, r"(?m)^each +dynfork1 +DYN_FORK +DONE +1 +0 *$")
        command = re.search(r"(?m)^rest +n\d+ +SUB_WORKFLOW +AWAITING +1 +0 +for: wiggle (list --correlation-id \S+)$", text)
        self.assertIsNotNone(command, text)
        found = self.prints(*command.group(1).split())
        self.assertEqual([i["workflow"] for i in found], [child])
        self.ends(0, "signal", found[0]["id"], "go")
        self.assertEqual(self.prints("get", parent, "--wait")["status"], "COMPLETED")

    def test_plain_start_prints_the_id_alone(self):
        name = self.register({"task": "a"})
        self.assertRegex(self.ends(0, "start", name).stdout, r"^wfi\.s\d+\.[0-9a-z]{22}\n$")

    def test_a_context_comes_from_a_file_or_standard_input(self):
        name = self.register({"task": "a"})
        path = os.path.join(world.AREA, "context.json")
        with open(path, "w", encoding="utf-8") as f:
            f.write('{"from": "file"}')
        for argument, stdin in (("@" + path, ""), ("-", '{"from": "file"}')):
            started = self.prints("start", name, "--context", argument, stdin=stdin)
            self.assertEqual(self.prints("get", started["instance_id"])["context"], {"from": "file"})

    def test_versions(self):
        name = fresh_name("cli")
        for version in (1, 2):
            self.ends(0, "register", "-", stdin=shorthand(name, {"task": "a"}, version=version))
        newest = self.prints("start", name)["instance_id"]
        older = self.prints("start", name, "--version", "1")["instance_id"]
        self.assertEqual(self.prints("get", newest)["version"], 2)
        self.assertEqual(self.prints("get", older)["version"], 1)
        self.assertIn("NOT_FOUND", self.ends(1, "start", name, "--version", "3").stderr)

    def test_list_filters_and_limits(self):
        name = self.register({"task": "a"})
        ids = [self.prints("start", name)["instance_id"] for _ in range(3)]
        self.ends(0, "cancel", ids[0])
        self.assertEqual({i["id"] for i in self.prints("list", "--workflow", name)}, set(ids))
        self.assertEqual(len(self.prints("list", "--workflow", name, "--limit", "2")), 2)
        self.assertEqual([i["id"] for i in self.prints("list", "--workflow", name, "--status", "CANCELLED")], ids[:1])
        lines = self.ends(0, "list", "--workflow", name).stdout.splitlines()
        self.assertEqual(lines[0].split(), ["ID", "WORKFLOW", "VERSION", "STATUS", "CREATED", "WHY"])
        self.assertEqual(len(lines), 4)

    def test_waiting(self):
        name = self.register({"sleep": "200ms"})
        done = self.prints("start", name, "--wait")
        self.assertEqual(done["status"], "COMPLETED")
        name = self.register({"task": "nobody takes it"})
        started = self.prints("start", name)["instance_id"]
        begun = time.monotonic()
        done = self.ends(4, "get", started, "--wait", "--timeout", "300ms")
        self.assertGreaterEqual(time.monotonic() - begun, 0.25)
        self.assertIn("is still RUNNING", done.stderr)
        self.ends(0, "cancel", started)
        self.assertEqual(json.loads(self.ends(4, "--json", "get", started, "--wait").stdout)["status"], "CANCELLED")


class Refusals(CommandTest):
    def test_usage(self):
        for arguments, text in (
                ((), "which command"),
                (("frob",), "no command 'frob'"),
                (("start",), "usage: wiggle start WORKFLOW"),
                (("start", "a", "b"), "usage: wiggle start WORKFLOW"),
                (("start", "a", "--frob"), "unknown option --frob"),
                (("start", "a", "--version"), "--version needs a value"),
                (("start", "a", "--version", "0"), "--version must be a whole number"),
                (("start", "a", "--wait=yes"), "--wait takes no value"),
                (("start", "a", "--timeout", "1s"), "--timeout goes with --wait"),
                (("start", "a", "--wait", "--timeout", "soon"), "a number with unit"),
                (("start", "a", "--context", "{"), "--context: not valid JSON"),
                (("start", "a", "--context", '{"a":"\\u0000"}'), "U+0000"),
                (("start", "a", "--context", "@/no/such/file"), "cannot open"),
                (("list", "--status", "done"), "unknown status 'done'; use RUNNING, COMPLETED"),
                (("list", "--version"), "unknown option --version"),
                (("list", "--limit", "x"), "--limit must be a whole number"),
                (("--server", "a:b:c", "list"), "host:port"),
                (("--server", "127.0.0.1:99999", "list"), "host:port"),
                (("work",), "no steps to serve"),
                (("work", "--step", "a"), "NAME=COMMAND"),
                (("work", "--step", "a=b", "--step", "a=c"), "twice"),
                (("work", "-f", "/no/such/file"), "cannot open")):
            with self.subTest(arguments=arguments):
                self.assertIn(text, self.ends(2, *arguments).stderr)

    def test_the_server_refuses(self):
        self.assertIn("workflow 'no such' not found (NOT_FOUND)", self.ends(1, "start", "no such").stderr)
        for arguments in (("get", "wfi.s0.01m446vf3rya1rekthaps4"), ("cancel", "nonsense"), ("get", "x", "--wait")):
            self.assertEqual("wiggle: instance not found: '%s' (NOT_FOUND); \"wiggle list\" shows the instances\n"
                             % arguments[1], self.ends(1, *arguments).stderr)
        self.ends(0, "list", "--status", "running")

    def test_nobody_answers(self):
        server = "127.0.0.1:%d" % free_port()
        done = self.ends(3, "list", server=server, WIGGLE_RPC_MAX_ATTEMPTS="2", WIGGLE_RPC_RETRY_DELAY_MILLIS="1")
        self.assertIn("no answer from %s: connection refused; is wiggle-proxy running there?" % server, done.stderr)
        done = self.ends(3, "list", server="no-such-host.invalid", WIGGLE_RPC_MAX_ATTEMPTS="1")
        self.assertIn("is not known", done.stderr)

    def test_an_answer_that_is_no_success_is_not_called_none(self):
        away = "wfi.s7.01m446vf3rya1rekthaps4"
        done = self.ends(3, "get", away, WIGGLE_RPC_MAX_ATTEMPTS="2", WIGGLE_RPC_RETRY_DELAY_MILLIS="1")
        self.assertEqual(done.stderr, "wiggle: shard 7 is not in this server's topology (UNAVAILABLE)\n")

    def test_another_protocol_answers(self):
        second = "127.0.0.1:%d" % world.proxy.second_port
        done = wiggle("list", server=second, WIGGLE_RPC_MAX_ATTEMPTS="1")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("no answer from %s: the connection was lost before a word of gRPC was said; "
                      "is it wiggle-proxy's port?" % second, done.stderr)

    def test_a_scheme_is_ignored(self):
        self.ends(0, "list", server="http://%s/" % world.proxy.address)
        self.ends(0, "-s", "grpc://" + world.proxy.address, "list", server="127.0.0.1:1")


class Help(CommandTest):
    def test_every_command_has_help(self):
        text = self.ends(0, "--help").stdout
        for command in ("validate", "register", "start", "get", "list", "cancel", "work", "version"):
            self.assertRegex(text, r"(?m)^  %s +[a-z]" % command)
            own = self.ends(0, command, "--help").stdout
            self.assertTrue(own.startswith("Usage: wiggle " + command), own)
            self.assertEqual(self.ends(0, "help", command).stdout, own)
        self.assertIn("Exit status:", text)

    def test_version(self):
        self.assertRegex(self.ends(0, "version").stdout, r"^wiggle \d+\.\d+")
        self.assertRegex(self.prints("version")["version"], r"^\d+\.\d+")
        self.assertEqual(self.ends(0, "--version").stdout, self.ends(0, "version").stdout)
        self.assertIn("--version", self.ends(0, "--help").stdout)
