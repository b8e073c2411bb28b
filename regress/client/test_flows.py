"""Every kind of flow end to end: examples/flows with their own worker files, then what
commands are told within scopes, combines and compensators."""
import json
import os

from harness import TREE
from test_cli import EXAMPLE, wiggle
from test_work import WorkTest, Worker

FLOWS = os.path.join(TREE, "examples", "flows")


class Examples(WorkTest):
    def serve_example(self, name, *more):
        for file in (*more, name):
            self.ends(0, "register", os.path.join(FLOWS, file + ".yaml"))
        return Worker(self, "-f", os.path.join(FLOWS, name + ".worker.yaml"))

    def test_all_are_valid_and_have_a_worker(self):
        files = sorted(os.listdir(FLOWS))
        flows = [f for f in files if not f.endswith(".worker.yaml")]
        self.assertGreaterEqual(len(flows), 7)
        for file in flows:
            self.ends(0, "validate", os.path.join(FLOWS, file))
            if not file.endswith(".child.yaml"):
                self.assertIn(file.replace(".yaml", ".worker.yaml"), files)

    def test_fork(self):
        worker = self.serve_example("fork")
        done = self.run_one("checkout", {"order": 17})
        self.assertEqual(set(done["context"]), {"order", "payment", "shelf"})
        self.assertEqual((done["context"]["order"], done["context"]["shelf"]), (17, "B7"))
        self.assertRegex(done["context"]["payment"], r"^P-\d+$")
        worker.says("confirmed " + done["id"])
        done = self.run_one("checkout", {"order": 18, "sold_out": True})
        self.assertEqual(set(done["context"]), {"order", "payment"})

    def test_fork_each(self):
        self.serve_example("fork_each")
        lines = [{"price": 5, "count": 3}, {"price": 8, "count": 1}, {"price": 100, "count": 2}]
        done = self.run_one("invoice", {"currency": "EUR", "lines": lines})
        self.assertEqual(done["context"], {"total": 223, "lines": 3})
        done = self.run_one("invoice", {"currency": "EUR", "lines": {"pen": lines[0], "ink": lines[1]}})
        self.assertEqual(done["context"], {"total": 23, "lines": 2})
        # Nothing to do for nothing: the combine does not run either.
        done = self.run_one("invoice", {"currency": "EUR", "lines": []})
        self.assertEqual(done["context"], {"currency": "EUR", "lines": []})
        done = self.run_one("invoice", {"lines": 7}, status="FAILED")
        self.assertIn("forEach 'line': context key 'lines' holds", done["error"])

    def test_choose(self):
        worker = self.serve_example("choose")
        for context, decision in (({"amount": 900}, "inspect"), ({"amount": 10, "repeated": True}, "ask back"),
                                  ({"amount": 10}, "accepted"), ({"amount": 500, "repeated": True}, "inspect")):
            done = self.run_one("claim", context)
            self.assertEqual(done["context"], {**context, "decision": decision})
            worker.says("answered: " + decision)

    def test_do_while(self):
        self.serve_example("do_while")
        done = self.run_one("import", {"pages": 4, "page": 0})
        self.assertEqual(done["context"], {"pages": 4, "page": 4, "imported": True})
        done = self.run_one("import", {"pages": 99, "page": 0}, status="FAILED")
        self.assertIn("loop 'more-pages' exceeded its budget of 10 iterations", done["error"])

    def test_await_signal(self):
        worker = self.serve_example("await_signal")
        asked = self.prints("start", "leave", "--context", '{"days": 3}')["instance_id"]
        token = self.prints("get", asked)["tokens"][0]
        self.assertEqual((token["kind"], token["status"], token["activity"]), ("SIGNAL", "AWAITING", "approved"))
        self.assertRegex(self.ends(0, "get", asked).stdout, r"approved +n1 +SIGNAL +AWAITING +1 +0 +deadline \d{4}-")
        self.prints("signal", asked, "approved", "--payload", '{"by": "ada", "days": 2}')
        done = self.prints("get", asked, "--wait", "--timeout", "60s")
        self.assertEqual(done["context"], {"days": 2, "by": "ada"})
        worker.says("approved by ada")
        # Nobody answers.
        done = self.run_one("leave", {"days": 3})
        self.assertEqual(done["context"], {"days": 3, "by": "rule"})
        worker.says("approved by rule")

    def test_sub_workflow(self):
        self.serve_example("sub_workflow", "sub_workflow.child")
        done = self.run_one("trip", {"city": "Graz"})
        self.assertEqual(done["context"], {"city": "Graz", "train": "EC 151", "room": 12, "booked": True, "packed": True})
        lodging = next(t for t in done["tokens"] if t["kind"] == "SUB_WORKFLOW")
        child = self.prints("list", "--correlation-id", "sub:" + lodging["id"])
        self.assertEqual([(c["workflow"], c["status"]) for c in child], [("hotel", "COMPLETED")])
        done = self.run_one("trip", {"city": "Nowhere"}, status="FAILED")
        self.assertEqual(done["error"], "sub-workflow 'hotel' FAILED: find-room: there is no hotel")

    def test_saga(self):
        worker = self.serve_example("saga")
        self.assertEqual(self.run_one("transfer", {"amount": 40})["context"],
                         {"amount": 40, "reservation": "R1", "debited": True})
        done = self.run_one("transfer", {"amount": 400}, status="COMPENSATED")
        self.assertEqual(done["error"], "credit: over the limit")
        log = worker.log()
        self.assertLess(0, log.index("gave the money back"))
        self.assertLess(log.index("gave the money back"), log.index("released R1"))
        self.assertEqual(sorted(t["activity"] for t in done["tokens"] if t["activity"].endswith("#compensate")),
                         ["transfer#debit#compensate", "transfer#reserve-credit#compensate"])


class Scopes(WorkTest):
    # One line of JSON with what the command was told.
    TELL = r"""printf '{"env":"%s","in":%s,"base":%s}' """ \
           r""""$(env -0 | grep -zE '^WIGGLE_(ITEM|BASE|ARMS|COLLECT)' | sort -z | tr '\n\0' '| ')" "$(cat)" """ \
           r""""$([ -z "$WIGGLE_BASE_CONTEXT" ] && echo 0 || cat "$WIGGLE_BASE_CONTEXT")" """

    def test_items_of_a_list(self):
        name = self.define({"fork_each": {"over": "xs", "as": "x", "body": [{"task": "tell"}], "combine": "keep"}})
        self.serve(name, "tell=" + self.TELL, "keep=cat", WIGGLE_ITEM_KEY="outer", WIGGLE_ARMS="outer")
        base = {"xs": [5, "b", {"c": None}, []], "more": 1.5}
        done = self.run_one(name, base)
        told = done["context"]["__forEach__x"]
        self.assertEqual([t["in"] for t in told], [5, "b", {"c": None}, []])
        self.assertEqual([t["base"] for t in told], [base] * 4)
        self.assertEqual([t["env"] for t in told],
                         ["WIGGLE_BASE_CONTEXT=/dev/fd/3 WIGGLE_ITEM_INDEX=%d " % i for i in range(4)])

    def test_items_of_a_mapping(self):
        name = self.define({"fork_each": {"over": "xs", "as": "x", "body": [{"task": "tell"}], "combine": "keep"}})
        self.serve(name, "tell=" + self.TELL, "keep=cat")
        done = self.run_one(name, {"xs": {"one": 1, "a b": 2}})
        told = done["context"]["__forEach__x"]
        self.assertEqual(set(told), {"one", "a b"})
        self.assertIn("WIGGLE_ITEM_KEY=a b ", told["a b"]["env"])
        self.assertEqual(told["a b"]["in"], 2)

    def test_a_large_base_need_not_be_read(self):
        name = self.define({"fork_each": {"over": "xs", "as": "x", "body": [{"task": "deaf"}, {"task": "twice"}],
                                          "combine": "sum"}})
        self.serve(name, "deaf=exit 0",
                   "twice=a=$(wc -c <\"$WIGGLE_BASE_CONTEXT\"); b=$(cat <&3 | wc -c); "
                   "echo \"{\\\"a\\\":$a,\\\"b\\\":$b}\"", "sum=cat")
        done = self.run_one(name, {"xs": [1, 2], "blob": "x" * 300000})
        for told in done["context"]["__forEach__x"]:
            self.assertEqual(told["a"], told["b"])
            self.assertGreater(told["a"], 300000)

    def test_combine_of_a_fork(self):
        name = self.define({"fork": {"a": [{"task": "left"}], "b": [{"task": "right"}]}}, {"task": "last"})
        self.serve(name, "left=echo '{\"l\":1}'", "right=echo '{\"r\":2}'", "combine:a,b=" + self.TELL, "last=cat")
        done = self.run_one(name, {"k": 0})
        self.assertEqual(done["context"], {"env": "WIGGLE_ARMS=a|b ", "base": 0,
                                           "in": {"k": 0, "__arm__a": {"l": 1}, "__arm__b": {"r": 2}}})

    def test_a_combine_that_prints_nothing_keeps_the_context(self):
        name = self.define({"fork": {"a": [{"task": "left"}], "b": [{"task": "right"}]}, "combine": "both"})
        self.serve(name, "left=echo '{\"l\":1}'", "right=echo '{\"r\":2}'", "both=cat >/dev/null")
        self.assertEqual(self.run_one(name, {"k": 0})["context"], {"k": 0})

    def test_a_combine_within_an_item(self):
        name = self.define({"fork_each": {"over": "xs", "as": "x", "combine": "keep", "body": [
            {"fork": {"a": [{"task": "left"}], "b": [{"task": "right"}]}, "combine": "inner"}]}})
        self.serve(name, "left=echo '{\"l\":1}'", "right=echo '{\"r\":2}'", "inner=" + self.TELL, "keep=cat")
        told = self.run_one(name, {"xs": [{"v": 7}]})["context"]["__forEach__x"][0]
        self.assertEqual(told["in"], {"v": 7, "__arm__a": {"l": 1}, "__arm__b": {"r": 2}})
        self.assertEqual(told["base"], {"v": 7})

    def test_without_a_combine_the_context_is_shared(self):
        name = self.define({"fork_each": {"over": "xs", "as": "x", "body": [{"task": "add"}]}}, {"task": "last"})
        self.serve(name, "add=c=$(cat); n() { printf %s \"$c\" | sed -n 's/.*\"'$1'\":\\([0-9]*\\).*/\\1/p'; }; "
                   "printf %s \"$c\" | sed 's/}$/,\"got'$(n xIndex)'\":'$(n x)'}/'", "last=cat",
                   arguments=("--concurrency", "1"))
        done = self.run_one(name, {"xs": [7, 8, 9]})
        self.assertEqual({k: v for k, v in done["context"].items() if k.startswith("got")}, {"got0": 7, "got1": 8, "got2": 9})

    def test_nested_items_and_gates(self):
        name = self.define({"fork_each": {"over": "rows", "as": "row", "combine": "rows-done", "body": [
            {"gate": "wanted"},
            {"fork_each": {"over": "cells", "as": "cell", "body": [{"task": "double"}], "combine": "cells-done"}}]}})
        self.serve(name, "wanted=! grep -q skip", "double=read n; echo $((n * 2))",
                   "cells-done=sed 's/.*\"__forEach__cell\":\\(\\[[0-9,]*\\]\\).*/{\"out\":\\1}/'", "rows-done=cat")
        done = self.run_one(name, {"rows": [{"cells": [1, 2, 3]}, {"skip": 1, "cells": [4]}, {"cells": [5]}]})
        self.assertEqual(done["context"]["__forEach__row"],
                         [{"out": [2, 4, 6]}, {"skip": 1, "cells": [4]}, {"out": [10]}])


class Compensators(WorkTest):
    def test_what_they_are_told_and_what_they_say(self):
        name = self.define({"task": "a", "compensable": True}, {"task": "b", "retry": "none"})
        told = self.file("told")
        self.serve(name, "a=echo '{\"after\":1}'", "b=exit 100",
                   "a#compensate=(env | grep -E '^WIGGLE_(STEP|ATTEMPT)=' | sort; cat) >%s; echo this is no JSON" % told)
        done = self.run_one(name, {"before": 1}, status="COMPENSATED")
        self.assertEqual(done["error"], "b: exit status 100")
        self.assertEqual(done["context"], {"after": 1})
        lines = self.read(told).splitlines()
        self.assertEqual(lines[:2], ["WIGGLE_ATTEMPT=1", "WIGGLE_STEP=a#compensate"])
        self.assertEqual(json.loads(lines[2]), {"input": {"before": 1}, "result": {"after": 1}})

    def test_of_one_workflow_and_retried(self):
        name = self.define({"task": "a", "compensable": True, "retry": {"max": 3, "backoff": "1ms"}},
                           {"task": "b", "retry": "none"})
        self.serve(name, "a=cat", "b=exit 1", "%s/a#compensate=[ $WIGGLE_ATTEMPT = 3 ]" % name, "a#compensate=exit 100")
        self.run_one(name, {}, status="COMPENSATED")

    def test_that_fail_for_good(self):
        name = self.define({"task": "a", "compensable": True}, {"task": "b", "retry": "none"})
        self.serve(name, "a=cat", "b=echo no >&2; exit 1", "a#compensate=echo stuck >&2; exit 100")
        done = self.run_one(name, {}, status="COMPENSATION_FAILED")
        self.assertEqual(done["error"], "b: no; compensator 'a' (undo seq 1) failed: stuck")


class Files(WorkTest):
    def test_mistakes_are_told_with_line_and_column(self):
        head = "workflow: w\nsteps:\n"
        for text, place, message in (
                ("- task: a\n- fork:\n    x: [{task: b}]\n", "5:5", "fork needs at least two branches"),
                ("- fork:\n    x: [{task: b}]\n    y: [{task: b}]\n", "5:9", "duplicate step name 'b'"),
                ("- fork:\n    x: [{task: b}]\n    y: [{task: c}]\n  combine: b\n", "3:3", "duplicate step name 'b'"),
                ("- choose:\n  - when: a\n    then: [{task: b}]\n  - otherwise: {}\n", "6:16", "'case 'then'' is required"),
                ("- await_signal: s\n  timeout: soon\n", "4:12", "bad duration 'soon'"),
                ("- do_while:\n    while: w\n    body: []\n", "5:11", "do_while body must not be empty"),
                ("- fork_each: {over: a, as: b}\n", "3:14", "'fork_each body' is required"),
                ("- sub_workflow: {name: a}\n", "3:17", "'workflow' is required"),
                ("- gate: a\n  compensable: true\n", "4:16", "cannot be compensable")):
            with self.subTest(text=text):
                done = wiggle("validate", "-", stdin=head + text)
                self.assertEqual(done.returncode, 2)
                self.assertTrue(done.stderr.startswith("wiggle: -:%s: " % place), done.stderr)
                self.assertIn(message, done.stderr)

    def test_every_example_is_valid(self):
        for file in os.listdir(FLOWS):
            if not file.endswith(".worker.yaml"):
                self.assertEqual(self.ends(0, "validate", os.path.join(FLOWS, file)).stderr, "")

    def test_json_has_places_too(self):
        done = wiggle("validate", "-", stdin='{"workflow": "w",\n "steps": [{"task": "a"},\n  {"tsk": "b"}]}')
        self.assertTrue(done.stderr.startswith("wiggle: -:3:3: step has no operator"), done.stderr)
        self.assertEqual(wiggle("validate", EXAMPLE).returncode, 0)
