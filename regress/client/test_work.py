"""wiggle work: steps as commands, through leases, failures, signals and restarts."""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

import world
from harness import TREE, Proxy, free_port, topology, wait_for
from test_cli import CommandTest, shorthand
from wigclient import flow, fresh_name

NONE = {"retry": "none"}


class Worker:
    """One wiggle work process; its log is read while it runs."""

    def __init__(self, test, *arguments, server=None, config=None, form=(), **environment):
        self.log_path = os.path.join(world.AREA, "%s.log" % fresh_name("worker"))
        env = {k: v for k, v in os.environ.items() if not k.startswith("WIGGLE_")}
        env["WIGGLE_URL"] = server or world.proxy.address
        env.update(environment)
        if config is not None:
            path = os.path.join(world.AREA, "%s.yaml" % fresh_name("worker"))
            with open(path, "w", encoding="utf-8") as f:
                f.write(config)
            arguments = ("-f", path, *arguments)
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(["wiggle", *form, "work", *arguments], env=env, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log)
        test.addCleanup(self.clean_up)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def says(self, text, seconds=60):
        wait_for(lambda: text in self.log(), seconds, "'%s' in the worker's log:\n%s" % (text, self.log()))

    def signal(self, signum=signal.SIGTERM):
        self.process.send_signal(signum)

    def ends(self, seconds=60):
        return self.process.wait(seconds)

    def clean_up(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def alive(pid):
    """Is there such a process, and is it more than a zombie?"""
    try:
        with open("/proc/%d/stat" % pid, encoding="ascii", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):    # it may end between open and read
        return False


class WorkTest(CommandTest):
    def define(self, *steps):
        """Register steps on a queue of their own; the workflow's name is the queue's."""
        name = fresh_name("work")
        self.ends(0, "register", "-", stdin=shorthand(name, *steps))
        return name

    def serve(self, name, *steps, **more):
        arguments = ["--queue", name]
        for step in steps:
            arguments += ["--step", step]
        return Worker(self, *arguments, *more.pop("arguments", ()), **more)

    def run_one(self, name, context=None, status="COMPLETED"):
        """Start an instance and see it end in this status."""
        done = json.loads(self.ends(0 if status == "COMPLETED" else 4, "--json", "start", name, "--wait",
                                    "--timeout", "60s", "--context", "-", stdin=json.dumps(context or {})).stdout)
        self.assertEqual(done["status"], status, done)
        return done

    def file(self, name):
        path = os.path.join(world.AREA, fresh_name(name))
        return path

    def read(self, path):
        with open(path, encoding="utf-8") as f:
            return f.read()


class Steps(WorkTest):
    def test_bodies_that_share_a_context_keep_what_each_other_wrote(self):
        name = self.define({"fork_each": {"over": "xs", "as": "x", "body": [{"task": "one"}]}}, {"task": "end"})
        folder = tempfile.mkdtemp(dir=world.AREA)
        script = os.path.join(folder, "one.py")
        with open(script, "w", encoding="utf-8") as f:
            # None goes on before all have begun: each was given its context before another wrote.
            f.write("import glob, json, os, sys, time\n"
                    "c = json.load(sys.stdin)\n"
                    "open(os.path.join(os.path.dirname(__file__), 'begun-%d' % c['xIndex']), 'w').close()\n"
                    "while len(glob.glob(os.path.join(os.path.dirname(__file__), 'begun-*'))) < 3:\n"
                    "    time.sleep(0.02)\n"
                    "print(json.dumps(dict(c, **{'r%d' % c['xIndex']: c['x']})))\n")
        self.serve(name, "%s/one=exec python3 %s" % (name, script), name + "/end=cat", arguments=("-n", "3"))
        done = self.run_one(name, {"xs": [4, 5, 6]})
        self.assertEqual(done["context"], {"xs": [4, 5, 6], "r0": 4, "r1": 5, "r2": 6})

    def test_the_example(self):
        folder = os.path.join(world.AREA, fresh_name("example"))
        shutil.copytree(os.path.join(TREE, "examples"), folder)
        self.ends(0, "register", os.path.join(folder, "order.yaml"))
        worker = Worker(self, "-f", os.path.join(folder, "worker.yaml"))
        with open(os.path.join(folder, "orders.jsonl"), encoding="utf-8") as f:
            orders = [json.loads(line) for line in f]
        ids = [self.prints("start", "order", "--context", json.dumps(order))["instance_id"] for order in orders]
        for order, instance in zip(orders, ids):
            done = self.prints("get", instance, "--wait", "--timeout", "60s")
            self.assertEqual(done["status"], "COMPLETED")
            if not order["in_stock"]:
                self.assertEqual(done["termination_reason"], "gated:in-stock")
                self.assertEqual(done["context"], order)
                continue
            self.assertIsNone(done["termination_reason"])
            self.assertEqual(done["context"]["payment"], {"charged": order["total"], "key": instance})
            self.assertRegex(done["context"]["tracking"], r"^PW\d+DE$")
            self.assertEqual({k: v for k, v in done["context"].items() if k not in ("payment", "tracking")}, order)
            charge = next(t for t in done["tokens"] if t["activity"] == "order#charge")
            self.assertEqual(charge["attempt"], 2)
        worker.signal()
        self.assertEqual(worker.ends(), 0)

    def test_context_in_result_out(self):
        name = self.define({"task": "a"}, {"effect": "b"}, {"gate": "yes"}, {"gate": "no"}, {"task": "never"})
        self.serve(name, "a=sed 's/\"n\":1/\"n\":2/'", "b=cat >/dev/null", "yes=exit 0", "no=exit 1", "never=exit 100")
        done = self.run_one(name, {"n": 1, "täxt": "ü \U0001f600 \" \\ \n", "deep": {"x": [None, 1.5, {}]}})
        self.assertEqual(done["termination_reason"], "gated:no")
        self.assertEqual(done["context"], {"n": 2, "täxt": "ü \U0001f600 \" \\ \n", "deep": {"x": [None, 1.5, {}]}})

    def test_the_environment(self):
        name = self.define({"task": "show", "retry": {"max": 2, "backoff": "1ms"}})
        self.serve(name, "show=[ $WIGGLE_ATTEMPT = 2 ] || exit 7; printf '{\"env\":\"%s\"}' \"$(echo $(env | grep ^WIGGLE_ | sort))\"",
                   WIGGLE_STEP="not this", HOME="/elsewhere")
        done = self.run_one(name)
        task = done["tokens"][0]["id"]
        self.assertEqual(done["context"]["env"], " ".join([
            "WIGGLE_ATTEMPT=2", "WIGGLE_INSTANCE_ID=" + done["id"], "WIGGLE_STEP=show", "WIGGLE_TASK_ID=" + task,
            "WIGGLE_URL=" + world.proxy.address, "WIGGLE_VERSION=1", "WIGGLE_WORKFLOW=" + name]))

    def test_a_context_is_never_a_command(self):
        name = self.define({"task": "a"})
        trap = self.file("trap")
        self.serve(name, "a=cat")
        evil = {"x": "$(touch %s)`touch %s`;touch %s\n" % (trap, trap, trap), "$(touch %s)" % trap: "'\"&|"}
        self.assertEqual(self.run_one(name, evil)["context"], evil)
        self.assertFalse(os.path.exists(trap))

    def test_large_contexts_and_deaf_commands(self):
        name = self.define({"task": "deaf"}, {"task": "echo"})
        self.serve(name, "deaf=exec <&-; exit 0", "echo=cat")
        context = {"blob": "x" * 1500000, "list": list(range(20000))}
        self.assertEqual(self.run_one(name, context)["context"], context)

    def test_standard_streams_can_be_opened_by_name(self):
        name = self.define({"task": "a"})
        self.serve(name, "a=cat /dev/stdin >/dev/null && echo fine >/dev/stderr && echo '{\"out\":1}' >/dev/stdout")
        self.assertEqual(self.run_one(name, {"in": 1})["context"], {"out": 1})

    def test_the_worker_file(self):
        name = self.define({"task": "list"}, {"task": "text"}, {"task": "mine"})
        folder = os.path.join(world.AREA, fresh_name("worker-dir"))
        os.makedirs(folder)
        with open(os.path.join(folder, "say"), "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\nprintf '{\"args\":\"%s|%s\",\"pwd\":\"%s\"}' \"$1\" \"$2\" \"$PWD\"\n")
        os.chmod(os.path.join(folder, "say"), 0o755)
        self.serve(name, "mine=true", config="""
worker: by-file
concurrency: 2
timeout: 20s
dir: %s
steps:
  list: [./say, "a b", "$HOME"]
  %s/text: {run: 'test "$(pwd)" = %s', timeout: 5s}
  text: exit 100
""" % (folder, name, folder))
        done = self.run_one(name)
        self.assertEqual(done["context"], {"args": "a b|$HOME", "pwd": folder})

    def test_worker_files_are_checked(self):
        for text, message in (
                ("steps: {}", "'steps' must be a mapping"),
                ("concurency: 3\nsteps: {a: b}", "unknown key 'concurency'"),
                ("concurrency: 0\nsteps: {a: b}", "'concurrency' must be between 1 and"),
                ("lease: 10ms\nsteps: {a: b}", "'lease' must be between 1s and 24h"),
                ("lease: 10\nsteps: {a: b}", "'lease' must be a number with unit"),
                ("steps: {a: []}", "the command of 'a' must be text"),
                ("steps: {a: {timeout: 1s}}", "'a' needs 'run'"),
                ("steps: {a: {run: b, retries: 1}}", "unknown key 'retries'"),
                ("steps: {/a: b}", "must be STEP or WORKFLOW/STEP"),
                ("queues: a\nsteps: {a: b}", "'queues' must be a list"),
                ("dir: nope\nsteps: {a: b}", "the folder where commands run ('dir'), "),
                ("queues: [a]", "no steps to serve")):
            with self.subTest(text=text):
                worker = Worker(self, config=text)
                self.assertEqual(worker.ends(), 2)
                self.assertIn(message, worker.log())


class Failures(WorkTest):
    def fails(self, command, message, *arguments, retry=NONE, op="task"):
        name = self.define({op: "a", **retry})
        worker = self.serve(name, "a=" + command, arguments=arguments)
        done = self.run_one(name, {"k": 1}, status="FAILED")
        if message.endswith("**"):
            self.assertTrue(done["error"].startswith("a: " + message[:-2]), done["error"])
        else:
            self.assertEqual(done["error"], "a: " + message)
        self.assertEqual(done["context"], {"k": 1})
        worker.signal()
        self.assertEqual(worker.ends(), 0)
        return done

    def test_the_last_line_is_the_message(self):
        self.fails("echo '{\"lost\":1}'; echo first >&2; echo 'no card' >&2; echo >&2; exit 3", "no card")
        self.fails("exit 3", "exit status 3")
        self.fails("printf 'caf\\351 \\342\\202\\254' >&2; exit 3", "caf? €")

    def test_gates_fail_too(self):
        self.fails("echo hm >&2; exit 2", "hm", op="gate")

    def test_for_good(self):
        done = self.fails("echo no >&2; exit 100", "no", retry={"retry": {"max": 50, "backoff": "1ms"}})
        self.assertEqual(done["tokens"][0]["attempt"], 1)

    def test_retries_are_the_policys(self):
        done = self.fails("exit 9", "exit status 9", retry={"retry": {"max": 3, "backoff": "1ms"}})
        self.assertEqual(done["tokens"][0]["attempt"], 3)

    def test_output_that_is_no_context(self):
        self.fails("echo oops", "its output is no context: the JSON text is refused at byte 1: a value is expected",
                   retry={"retry": "forever"})
        self.fails("printf '{\"a\":\"\\377\"}'", "its output is no context: the JSON text is refused at byte 7: **")

    def test_too_much_output(self):
        self.fails("yes", "more than 3145728 bytes of output", retry={"retry": "forever"})

    def test_killed_missing_and_late(self):
        self.fails("kill -KILL $$", "killed by signal 9")
        self.fails("exec no-such-program", "/bin/sh: 1: exec: no-such-program: not found")
        self.fails("echo busy >&2; exec sleep 1000", "not done within 3000 ms: busy", "--timeout", "3s")

    def test_no_such_file(self):
        name = self.define({"task": "a", **NONE})
        self.serve(name, config="steps: {a: [./no-such-file]}")
        done = self.run_one(name, status="FAILED")
        self.assertEqual(done["error"], "a: the command cannot be run: no such file or directory: ./no-such-file")

    def test_nobody_knows_the_step(self):
        name = self.define({"task": "unknown"})
        self.serve(name, "other=true")
        done = self.run_one(name, status="FAILED")
        self.assertEqual(done["error"], "unknown: no handler registered for activity '%s#unknown'" % name)

    def test_nothing_is_left_behind(self):
        name = self.define({"task": "a"})
        pids = self.file("pids")
        self.serve(name, "a=sleep 1000 & echo $! >%s; echo $$ >>%s" % (pids, pids))
        self.run_one(name)
        for pid in map(int, self.read(pids).split()):
            wait_for(lambda pid=pid: not alive(pid), what="the end of process %d" % pid)


class Logs(WorkTest):
    """What a worker writes down, whatever names and commands say."""

    def lines(self, worker, form):
        """The log's lines after the worker's end: (source, message), none forged or broken."""
        worker.signal()
        self.assertEqual(worker.ends(), 0)
        with open(worker.log_path, "rb") as f:
            log = f.read().decode("utf-8")
        self.assertTrue(log.endswith("\n"), log)
        found = []
        for line in log[:-1].split("\n"):
            self.assertTrue(line.isprintable(), ascii(line))
            if form:
                said = json.loads(line)
                self.assertEqual(set(said), {"time", "level", "source", "message"})
                found.append((said["source"], said["message"]))
            else:
                self.assertRegex(line, r"^\d{4}-\d\d-\d\dT[\d:.]+Z (INFO |WARN ) ")
                found.append(tuple(line[31:].split(": ", 1)))
        return found

    def register(self, workflow, step):
        definition = flow(workflow, ("task", step, {"maxAttempts": 1}), queue=workflow)
        definition["nodes"][0]["activity"] = step
        self.client.register(definition)

    def test_long_names_and_failures(self):
        """Names of 800 bytes each beside 1,000 bytes of what the command said."""
        for form in ((), ("--json",)):
            with self.subTest(form=form):
                workflow = fresh_name("long") + "-"
                workflow, step = (stem + (200 - len(stem)) * "\N{SLIGHTLY SMILING FACE}" for stem in (workflow, "a"))
                self.register(workflow, step)
                worker = Worker(self, "--queue", workflow, form=form, config="steps: {%s: \"printf '%%01000d' 7 >&2; exit 3\"}" % step)
                instance = self.client.start(workflow)
                self.becomes(instance, "FAILED")
                source = "%s/%s %s" % (workflow, step, instance)
                worker.says("failed in")
                said = [message for at, message in self.lines(worker, form) if at == source]
                self.assertEqual(len(said), 2, said)
                self.assertEqual(said[0], "7".zfill(1000))
                self.assertRegex(said[1], r"^attempt 1 failed in \d+ ms: 0{900,}7?$")

    def test_names_that_would_break_a_line(self):
        """Quotes, line ends and escapes of a terminal."""
        for form in ((), ("--json",)):
            with self.subTest(form=form):
                workflow = fresh_name("rude") + '"\n2026-01-01T00:00:00.000Z INFO  worker: forged'
                step = "a\x1b[2J\\\"},\r\n{\"time\":1"
                self.register(workflow, step)
                worker = Worker(self, "--queue", workflow, form=form, config=json.dumps({"steps": {step: "printf 'a\\033[2J\\377' >&2; exit 3"}}))
                self.becomes(self.client.start(workflow), "FAILED")
                worker.says("failed in")
                sources = [at for at, _ in self.lines(worker, form)]
                if form:
                    self.assertIn(workflow + "/" + step, [" ".join(at.split(" ")[:-1]) for at in sources])
                else:
                    self.assertFalse([at for at in sources if at == "worker" or at.startswith("2026")], sources)

    def test_outputs_are_not_written_down(self):
        for command in ("cat; echo tail", "cat; exit 3", "cat"):
            name = self.define({"task": "a", **NONE})
            worker = self.serve(name, "a=" + command)
            instance = self.prints("start", name, "--context", '{"card": "4111-secret"}')["instance_id"]
            wait_for(lambda i=instance: self.prints("get", i)["status"] in ("FAILED", "COMPLETED"), 60, "the end")
            worker.says(instance)
            worker.signal()
            self.assertEqual(worker.ends(), 0)
            self.assertNotIn("4111", worker.log())


class Idle(WorkTest):
    """A worker whose polls come back empty, or that has one step running, still listens."""

    def setUp(self):
        super().setUp()
        # Longer than what a worker takes for an answer that came too soon.
        self.mine = Proxy(world.AREA, topology(*world.shards), name=fresh_name("idle"),
                          WIGGLE_LONGPOLL_MAX_MILLIS=5100).start()
        self.addCleanup(self.mine.stop)

    def metric(self, name):
        return sum(float(line.rsplit(" ", 1)[1]) for line in self.mine.http("/metrics")[1].splitlines()
                   if line.startswith(name))

    def listens(self):
        wait_for(lambda: self.metric("wiggle_proxy_parked_polls") == 1, 60, "a parked poll")

    def test_empty_polls_are_followed_by_others(self):
        name = self.define({"task": "a"})
        self.serve(name, "a=true", server=self.mine.address)
        for answered in (1, 2):
            wait_for(lambda n=answered: self.metric('wiggle_proxy_call_seconds_count{method="PollTasks"') >= n,
                     60, "%d answered polls" % answered)
            self.listens()
        self.run_one(name)

    def test_a_short_step_beside_a_long_one(self):
        name = self.define({"task": "long"})
        quick = self.define({"task": "quick"})
        begun, go = self.file("begun"), self.file("go")
        self.serve(name, "long=touch %s; until [ -e %s ]; do sleep 0.02; done" % (begun, go), "quick=true",
                   arguments=("--queue", quick), server=self.mine.address)
        long = self.prints("start", name)["instance_id"]
        wait_for(lambda: os.path.exists(begun), what="the long step's start")
        self.listens()
        self.run_one(quick)
        self.assertEqual(self.prints("get", long)["status"], "RUNNING")
        with open(go, "w", encoding="utf-8"):
            pass
        self.becomes(long, "COMPLETED")

    def test_a_failure_that_needs_no_command_is_told_at_once(self):
        """Told with the next answer to a poll, ten failures would take the 50 seconds of ten polls."""
        name = self.define({"task": "unknown"})
        self.serve(name, "other=true", server=self.mine.address)
        self.listens()
        begun = time.monotonic()
        for _ in range(10):
            self.run_one(name, status="FAILED")
        self.assertLess(time.monotonic() - begun, 40)


class Queues(WorkTest):
    """Which queues a worker takes steps of when it is given none."""

    def test_those_of_the_workflows_that_its_steps_name(self):
        mine, late, other = self.define({"task": "a"}, {"gate": "b", "queue": fresh_name("special")}), \
            fresh_name("late"), self.define({"task": "a"})
        foreign = self.prints("start", other)["instance_id"]
        worker = Worker(self, "--step", mine + "/a=true", "--step", mine + "/b=true", "--step", late + "/a=true")
        worker.says("queues of the workflows they name")
        self.run_one(mine)
        worker.says("workflow '%s' is not registered; looking again" % late)
        self.ends(0, "register", "-", stdin=shorthand(late, {"task": "a"}))
        self.run_one(late)
        worker.says("workflow '%s' is there now" % late)
        shown = self.prints("get", foreign)
        self.assertEqual((shown["status"], shown["tokens"][0]["status"]), ("RUNNING", "READY"))
        worker.signal()
        self.assertEqual(worker.ends(), 0)

    def test_steps_of_no_queue_are_found_too(self):
        name = fresh_name("bare")
        definition = flow(name, "a")
        definition["queues"] = []
        del definition["nodes"][0]["queue"]
        self.client.register(definition)
        worker = Worker(self, "--step", name + "/a=true")
        self.run_one(name)
        worker.signal()
        self.assertEqual(worker.ends(), 0)

    def test_a_server_that_is_away_is_asked_again(self):
        port = free_port()
        name = self.define({"task": "a"})
        worker = Worker(self, "--step", name + "/a=true", server="127.0.0.1:%d" % port)
        worker.says("cannot ask 127.0.0.1:%d for workflow '%s'" % (port, name))
        proxy = Proxy(world.AREA, topology(*world.shards), name=fresh_name("away"), WIGGLE_PORT=port).start()
        self.addCleanup(proxy.stop)
        self.run_one(name)

    def test_steps_of_any_workflow_mean_every_queue_and_that_is_said(self):
        # Against a port where nobody listens: every queue is everybody's here.
        worker = Worker(self, "--step", "a=true", server="127.0.0.1:%d" % free_port())
        worker.says("takes the steps of every queue")
        worker.says("queues all")
        worker.signal()
        self.assertEqual(worker.ends(), 0)


class Checks(WorkTest):
    """What a worker says of steps that do not fit together."""

    def test_a_step_that_a_workflow_does_not_have(self):
        name = self.define({"task": "valid"}, {"task": "pay", "compensable": True}, {"gate": "ship"})
        worker = Worker(self, *(word for step in ("vaild", "pay", "pay#compensate", "ship", "ship#compensate")
                                for word in ("--step", "%s/%s=true" % (name, step))))
        steps = "steps are valid, pay, pay#compensate, ship\n"
        worker.says("no step 'vaild' in %s:1 (did you mean 'valid'?); %s" % (name, steps))
        worker.says("no step 'ship#compensate' in %s:1; %s" % (name, steps))
        worker.says("no command for what this worker will be given of %s:1, which fails for good: valid\n" % name)
        self.assertEqual(worker.log().count("no step"), 2)

    def test_a_version_is_looked_at_when_it_comes(self):
        name = fresh_name("work")
        worker = Worker(self, "--step", name + "/a=true", "--step", name + "/b=true")
        worker.says("workflow '%s' is not registered" % name)
        self.ends(0, "register", "-", stdin=shorthand(name, {"task": "a"}, version=7))
        worker.says("no step 'b' in %s:7; steps are a\n" % name)

    def test_a_step_that_no_workflow_has(self):
        name = self.define({"task": "valid"}, {"task": "pay", "queue": fresh_name("elsewhere"), "compensable": True})
        odd = fresh_name("nobodys")
        worker = self.serve(name, "valid=true", odd + "=true")
        worker.says("no registered workflow has a step '%s'" % odd)
        self.assertNotIn("step 'valid'", worker.log())
        self.assertNotIn("no command for", worker.log())
        other = self.serve(name, "pay=true")
        other.says("no command for what this worker will be given of %s:1, which fails for good: valid\n" % name)


class Leases(WorkTest):
    def test_a_long_step_keeps_its_lease(self):
        name = self.define({"task": "a"})
        go = self.file("go")
        self.serve(name, "a=until [ -e %s ]; do sleep 0.02; done" % go, arguments=("--lease", "5s"))
        started = self.prints("start", name)["instance_id"]
        ends = []

        def kept():
            for shard in world.shards:
                found = shard.psql("select l.expires_at from wiggle.wf_lease l join wiggle.wf_instance i on i.no = l.instance"
                                   " where i.id = :'id'", id=started)
                if found and found not in ends:
                    ends.append(found)
            return len(ends) >= 4
        wait_for(kept, 60, "a lease that was extended three times")
        with open(go, "w", encoding="utf-8"):
            pass
        done = self.prints("get", started, "--wait", "--timeout", "60s")
        self.assertEqual((done["status"], done["tokens"][0]["attempt"]), ("COMPLETED", 0))

    def test_a_lost_lease_stops_the_command(self):
        name = self.define({"task": "a"})
        pid = self.file("pid")
        worker = self.serve(name, "a=echo $$ >%s.new; mv %s.new %s; exec sleep 1000" % (pid, pid, pid),
                            arguments=("--lease", "1s"))
        started = self.prints("start", name)["instance_id"]
        wait_for(lambda: os.path.exists(pid), what="the command's start")
        self.ends(0, "cancel", started)
        worker.says("the lease is lost")
        wait_for(lambda: not alive(int(self.read(pid))), what="the command's end")

    def test_many_at_a_time(self):
        """The first twenty steps wait for one another."""
        name = self.define({"task": "a"}, {"task": "b"})
        folder = self.file("present")
        os.mkdir(folder)
        self.serve(name, "a=touch %s/$WIGGLE_TASK_ID; until [ $(ls %s | wc -l) -ge 20 ]; do sleep 0.02; done"
                   % (folder, folder), "b=true", arguments=("--concurrency", "20"))
        for instance in [self.client.start(name) for _ in range(40)]:
            self.becomes(instance, "COMPLETED")


class Signals(WorkTest):
    def running_step(self, command=None):
        """A worker, its step that runs (until self.go() when there is no command), the command's process."""
        name = self.define({"task": "a", **NONE})
        pid, go = self.file("pid"), self.file("go")
        command = command or "until [ -e %s ]; do sleep 0.02; done; echo '{\"finished\":true}'" % go
        self.go = lambda: os.close(os.open(go, os.O_CREAT))
        worker = self.serve(name, "a=echo $$ >%s.new; mv %s.new %s; %s" % (pid, pid, pid, command))
        started = self.prints("start", name)["instance_id"]
        wait_for(lambda: os.path.exists(pid), what="the command's start")
        return worker, started, int(self.read(pid))

    def test_what_runs_is_finished(self):
        for signum in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(signum=signum):
                worker, started, _ = self.running_step()
                worker.signal(signum)
                worker.says("1 still run")
                self.go()
                self.assertEqual(worker.ends(), 0)
                done = self.prints("get", started)
                self.assertEqual((done["status"], done["context"]), ("COMPLETED", {"finished": True}))

    def test_a_second_signal_kills(self):
        worker, started, pid = self.running_step("sleep 1000")
        worker.signal()
        worker.says("1 still run")
        worker.signal()
        self.assertEqual(worker.ends(), 5)
        self.assertFalse(alive(pid))
        done = json.loads(self.ends(4, "--json", "get", started, "--wait", "--timeout", "60s").stdout)
        self.assertEqual(done["error"], "a: the worker was stopped")

    def test_idle_it_ends_at_once(self):
        worker = self.serve(self.define({"task": "a"}), "a=true")
        worker.says("a time")
        worker.signal()
        # Its poll is held for ten seconds.
        self.assertEqual(worker.ends(8), 0)

    def test_the_terminals_interrupt_does_not_reach_the_step(self):
        worker, _, pid = self.running_step()
        with open("/proc/%d/stat" % pid, encoding="ascii") as f:
            group = int(f.read().rsplit(")", 1)[1].split()[2])
        self.assertEqual(group, pid)
        self.assertNotEqual(group, os.getpgid(worker.process.pid))
        worker.signal()
        worker.says("1 still run")
        self.go()
        self.assertEqual(worker.ends(), 0)


class Restarts(WorkTest):
    """The proxy goes and comes back on the same port while a step runs."""

    def proxy(self, port):
        proxy = Proxy(world.AREA, topology(*world.shards), name="restarted", WIGGLE_PORT=port)
        proxy.start()
        self.addCleanup(lambda: proxy.process.poll() is None and proxy.stop())
        return proxy

    def restart(self, stop):
        port = free_port()
        server = "127.0.0.1:%d" % port
        first = self.proxy(port)
        name = self.define({"task": "a"}, {"task": "b"})
        go = self.file("go")
        started_file = self.file("started")
        worker = self.serve(name, "a=touch %s; until [ -e %s ]; do sleep 0.02; done; echo '{\"a\":1}'" % (started_file, go),
                            "b=echo '{\"b\":1}'", server=server, arguments=("--lease", "20s"))
        instance = self.prints("start", name)["instance_id"]
        wait_for(lambda: os.path.exists(started_file), what="the step's start")
        stop(first)
        with open(go, "w", encoding="utf-8"):
            pass
        worker.says("trying again")
        self.proxy(port)
        done = self.prints("get", instance, "--wait", "--timeout", "60s")
        self.assertEqual((done["status"], done["context"]), ("COMPLETED", {"b": 1}))
        self.assertEqual([t["attempt"] for t in done["tokens"]], [0] * len(done["tokens"]))
        worker.signal()
        self.assertEqual(worker.ends(), 0)

    def test_killed(self):
        self.restart(Proxy.kill)

    def test_stopped(self):
        self.restart(Proxy.stop)

    def test_a_worker_may_start_before_the_server(self):
        port = free_port()
        name = self.define({"task": "a"})
        worker = self.serve(name, "a=true", server="127.0.0.1:%d" % port)
        worker.says("cannot poll")
        self.proxy(port)
        self.run_one(name)
