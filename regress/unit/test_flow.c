/*
 * test_flow.c
 *	  The authoring shorthand: every operator's graph, every refusal's place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "addf.h"
#include "definition.h"
#include "flow.h"

/* The graph as one line: "id kind name next alt [branches] details", sorted by id. */
static char *
summary(const char *json)
{
	struct wig_error err;
	struct wig_definition *def = wig_definition_parse(json, strlen(json), &err);
	struct wig_text text = {0};

	if (def == NULL)
		fail_msg("%s: %s", err.message, json);
	addf(&text, "start %s", def->nodes[def->start].id);
	for (int i = 0; i < def->nnodes; i++)
	{
		const struct wig_node *n = &def->nodes[i];

		addf(&text, "; %s %s '%s'", n->id, wig_kind_name(n->kind), n->name);
		if (n->next >= 0)
			addf(&text, " >%s", def->nodes[n->next].id);
		if (n->alt >= 0)
			addf(&text, " !%s", def->nodes[n->alt].id);
		for (int k = 0; k < n->nbranches; k++)
			addf(&text, " |%s", def->nodes[n->branches[k]].id);
		if (n->expected > 0)
			addf(&text, " expects %d", n->expected);
		if (n->sleep_ms > 0)
			addf(&text, " %dms", (int) n->sleep_ms);
		if (n->reason != NULL)
			addf(&text, " reason %s", n->reason);
		if (n->items_key != NULL)
			addf(&text, " over %s as %s", n->items_key, n->item_key);
		for (int k = 0; k < n->narms; k++)
			addf(&text, " arm %s", n->arm_names[k]);
		if (n->collect_key != NULL)
			addf(&text, " collects %s", n->collect_key);
		if (n->loop_budget != 0)
			addf(&text, " budget %d", n->loop_budget);
		if (n->kind == WIG_SUB_WORKFLOW)
			addf(&text, " runs %s", n->activity);
	}
	wig_definition_free(def);
	return wig_text_take(&text);
}

static void
check_graph(const char *yaml, const char *expected)
{
	struct wig_error err;
	char	   *json = wig_flow_from_yaml(yaml, strlen(yaml), &err);
	char	   *graph;

	if (json == NULL)
		fail_msg("%d:%d: %s", err.line, err.column, err.message);
	graph = summary(json);
	assert_string_equal(graph, expected);
	free(graph);
	free(json);
}

#define HEAD "workflow: w\nsteps:\n"

static void
test_sequence(void **state)
{
	(void) state;
	check_graph(HEAD "- task: a\n- effect: b\n- task: c\n",
				"start n1; end4 END 'end'; n1 TASK 'a' >n2; n2 TASK 'b' >n3; n3 TASK 'c' >end4");
}

static void
test_gate(void **state)
{
	(void) state;
	check_graph(HEAD "- gate: in-stock\n- task: b\n",
				"start n1; end2 END 'end' reason gated:in-stock; end4 END 'end'; "
				"n1 PREDICATE 'in-stock' >n3 !end2; n3 TASK 'b' >end4");
}

static void
test_sleep(void **state)
{
	(void) state;
	check_graph(HEAD "- sleep: 300ms\n- sleep: {for: 2 h, name: nap}\n- sleep: 1s\n  name: doze\n- sleep: ' 3m '\n",
				"start n1; end5 END 'end'; n1 SLEEP 'sleep-300ms' >n2 300ms; n2 SLEEP 'nap' >n3 7200000ms; "
				"n3 SLEEP 'doze' >n4 1000ms; n4 SLEEP 'sleep-180000ms' >end5 180000ms");
}

static void
test_signal(void **state)
{
	(void) state;
	check_graph(HEAD "- await_signal: paid\n- task: a\n",
				"start n1; end3 END 'end'; n1 SIGNAL 'paid' >n2; n2 TASK 'a' >end3");
	check_graph(HEAD "- await_signal: paid\n  timeout: 5s\n  escalation:\n  - task: remind\n  - task: wait\n- task: a\n",
				"start n1; end5 END 'end'; n1 SIGNAL 'paid' >n4 !n2 5000ms; n2 TASK 'remind' >n3; "
				"n3 TASK 'wait' >n4; n4 TASK 'a' >end5");
}

static void
test_sub_workflow(void **state)
{
	(void) state;
	check_graph(HEAD "- sub_workflow: child\n- sub_workflow: {name: again, workflow: child}\n",
				"start n1; end3 END 'end'; n1 SUB_WORKFLOW 'child' >n2 runs child; "
				"n2 SUB_WORKFLOW 'again' >end3 runs child");
}

static void
test_fork(void **state)
{
	(void) state;
	check_graph(HEAD "- fork:\n    pay: [{task: charge}]\n    ship:\n    - gate: fragile\n    - task: wrap\n- task: done\n",
				"start fork1; end8 END 'end'; fork1 FORK 'fork' |n3 |n4; join2 JOIN 'join' >n6 expects 2; "
				"n3 TASK 'charge' >join2; n4 PREDICATE 'fragile' >n5 !join2; n5 TASK 'wrap' >join2; "
				"n6 TASK 'combine:pay,ship' >n7 arm pay arm ship; n7 TASK 'done' >end8");
	check_graph(HEAD "- fork: {a: [{task: a}], b: [{task: b}]}\n  combine: both\n",
				"start fork1; end6 END 'end'; fork1 FORK 'fork' |n3 |n4; join2 JOIN 'join' >n5 expects 2; "
				"n3 TASK 'a' >join2; n4 TASK 'b' >join2; n5 TASK 'both' >end6 arm a arm b");
}

/* Queue and retry beside a fork are those of a combine with a name. */
static void
test_combine_settings(void **state)
{
	static const char *const texts[] = {
		HEAD "- fork: {a: [{task: a}], b: [{task: b}]}\n  combine: c\n  queue: q\n  retry: none\n",
		HEAD "- fork_each: {over: o, as: i, combine: c, body: [{task: a}]}\n  queue: q\n  retry: none\n",
		HEAD "- fork_each: {over: o, as: i, body: [{task: a}]}\n  combine: c\n  queue: q\n  retry: none\n"
	};

	(void) state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
	{
		struct wig_error err = {0};
		char	   *json = wig_flow_from_yaml(texts[i], strlen(texts[i]), &err);
		struct wig_definition *def;
		int			found = 0;

		if (json == NULL)
			fail_msg("%s", err.message);
		def = wig_definition_parse(json, strlen(json), &err);
		assert_non_null(def);
		for (int n = 0; n < def->nnodes; n++)
		{
			if (def->nodes[n].narms == 0 && def->nodes[n].collect_key == NULL)
				continue;
			assert_string_equal(def->nodes[n].name, "c");
			assert_string_equal(def->nodes[n].queue, "q");
			assert_int_equal(def->nodes[n].retry.max_attempts, 1);
			found++;
		}
		assert_int_equal(found, 1);
		wig_definition_free(def);
		free(json);
	}
}

static void
test_compensable(void **state)
{
	static const char text[] = HEAD "- {task: a, compensable: true}\n- {task: b, compensable: false}\n- effect: c\n";
	struct wig_error err = {0};
	struct wig_definition *def;
	char	   *json = wig_flow_from_yaml(text, strlen(text), &err);

	(void) state;
	assert_non_null(json);
	def = wig_definition_parse(json, strlen(json), &err);
	assert_non_null(def);
	assert_true(def->nodes[wig_definition_node(def, "n1", 2)].compensable);
	assert_false(def->nodes[wig_definition_node(def, "n2", 2)].compensable);
	assert_false(def->nodes[wig_definition_node(def, "n3", 2)].compensable);
	wig_definition_free(def);
	free(json);
}

/* A name that is too long is refused at its place, not somewhere in the compiled graph. */
static void
test_widths(void **state)
{
	static const char *const forms[] = {
		"workflow: %s\nsteps:\n- task: a\n",
		HEAD "- task: %s\n", HEAD "- gate: %s\n", HEAD "- {sleep: {for: 1s, name: %s}}\n",
		HEAD "- await_signal: %s\n", HEAD "- sub_workflow: %s\n", HEAD "- {task: a, queue: %s}\n",
		HEAD "- fork: {a: [{task: a}], b: [{task: b}]}\n  combine: %s\n",
		HEAD "- do_while: {while: %s, body: [{task: a}]}\n"
	};
	char		name[202];

	(void) state;
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
	{
		struct wig_error err = {0};
		char		text[512];

		snprintf(text, sizeof(text), forms[i], name);
		assert_null(wig_flow_from_yaml(text, strlen(text), &err));
		if (err.line != (i == 0 ? 1 : 3) || err.column == 0 ||
			strstr(err.message, "is longer than 200 characters: 'xxx") == NULL)
			fail_msg("%d:%d %s", err.line, err.column, err.message);
	}
	memset(name, 'y', 195);
	name[195] = '\0';
	{
		struct wig_error err = {0};
		char		text[512];

		snprintf(text, sizeof(text), HEAD "- gate: %s\n", name);
		assert_null(wig_flow_from_yaml(text, strlen(text), &err));
		assert_int_equal(err.line, 3);
		assert_non_null(strstr(err.message, "reason is longer than 200 characters: 'gated:yyy"));
	}
}

static void
test_nested_fork(void **state)
{
	(void) state;
	check_graph(HEAD "- fork:\n    a:\n    - fork: {c: [{task: c}], d: [{task: d}]}\n    b: [{task: b}]\n",
				"start fork1; end10 END 'end'; fork1 FORK 'fork' |fork3 |n8; fork3 FORK 'fork' |n5 |n6; "
				"join2 JOIN 'join' >n9 expects 2; join4 JOIN 'join' >n7 expects 2; "
				"n5 TASK 'c' >join4; n6 TASK 'd' >join4; n7 TASK 'combine:c,d' >join2 arm c arm d; "
				"n8 TASK 'b' >join2; n9 TASK 'combine:a,b' >end10 arm a arm b");
}

static void
test_fork_each(void **state)
{
	(void) state;
	check_graph(HEAD "- fork_each:\n    over: lines\n    as: line\n    body: [{task: price}]\n- task: total\n",
				"start dynfork1; dynfork1 DYN_FORK 'line' >join2 |n3 over lines as line; end5 END 'end'; "
				"join2 JOIN 'join' >n4; n3 TASK 'price' >join2; n4 TASK 'total' >end5");
	check_graph(HEAD "- fork_each: {over: o, as: i, name: items, combine: sum, body: [{task: p}]}\n",
				"start dynfork1; dynfork1 DYN_FORK 'items' >join2 |n3 over o as i; end5 END 'end'; "
				"join2 JOIN 'join' >n4; n3 TASK 'p' >join2; n4 TASK 'sum' >end5 collects __forEach__items");
}

static void
test_choose(void **state)
{
	(void) state;
	check_graph(HEAD "- choose:\n  - when: big\n    then: [{task: a}]\n  - when: small\n    then: [{task: b}]\n- task: c\n",
				"start n1; end6 END 'end'; n1 PREDICATE 'big' >n3 !n2; n2 PREDICATE 'small' >n4 !n5; "
				"n3 TASK 'a' >n5; n4 TASK 'b' >n5; n5 TASK 'c' >end6");
	/* Both spellings of otherwise. */
	check_graph(HEAD "- choose:\n  - {when: big, then: [{task: a}]}\n  - otherwise: {then: [{task: b}]}\n",
				"start n1; end4 END 'end'; n1 PREDICATE 'big' >n2 !n3; n2 TASK 'a' >end4; n3 TASK 'b' >end4");
	check_graph(HEAD "- choose:\n  - {when: big, then: [{task: a}]}\n  - {otherwise: , then: [{task: b}]}\n",
				"start n1; end4 END 'end'; n1 PREDICATE 'big' >n2 !n3; n2 TASK 'a' >end4; n3 TASK 'b' >end4");
}

static void
test_do_while(void **state)
{
	(void) state;
	check_graph(HEAD "- task: a\n- do_while:\n    while: more\n    body: [{task: b}, {sleep: 1ms}]\n- task: c\n",
				"start n1; end6 END 'end'; n1 TASK 'a' >n2; n2 TASK 'b' >n3; n3 SLEEP 'sleep-1ms' >n4 1ms; "
				"n4 PREDICATE 'more' >n2 !n5 budget -1; n5 TASK 'c' >end6");
	check_graph(HEAD "- do_while: {while: more, maxIterations: 3, body: [{task: b}]}\n",
				"start n1; end3 END 'end'; n1 TASK 'b' >n2; n2 PREDICATE 'more' >n1 !end3 budget 3");
}

static void
test_queue_and_retry(void **state)
{
	const char *yaml = "workflow: w\nversion: 12\ndefaultQueue: dq\nsteps:\n"
		"- {task: a, queue: special, retry: none}\n- {task: b, retry: forever}\n"
		"- task: c\n  retry: {max: 3, backoff: 100ms, multiplier: 2.5, maxBackoff: 1m, jitter: 0.2}\n- task: d\n";
	struct wig_error err;
	char	   *json = wig_flow_from_yaml(yaml, strlen(yaml), &err);
	struct wig_definition *def;
	const struct wig_retry *retry;

	(void) state;
	assert_non_null(json);
	def = wig_definition_parse(json, strlen(json), &err);
	assert_int_equal(def->version, 12);
	assert_int_equal(def->mode, WIG_MODE_DEFAULT);
	assert_int_equal(def->nqueues, 2);
	assert_string_equal(def->queues[0], "dq");
	assert_string_equal(def->queues[1], "special");
	assert_string_equal(def->nodes[1].queue, "special");
	assert_string_equal(def->nodes[1].activity, "w#a");
	assert_int_equal(def->nodes[1].retry.max_attempts, 1);
	assert_int_equal(def->nodes[2].retry.max_attempts, INT32_MAX);
	assert_string_equal(def->nodes[2].queue, "dq");
	retry = &def->nodes[3].retry;
	assert_int_equal(retry->max_attempts, 3);
	assert_int_equal(retry->initial_ms, 100);
	assert_true(retry->multiplier == 2.5);
	assert_int_equal(retry->max_ms, 60000);
	assert_true(retry->jitter == 0.2);
	assert_true(def->nodes[4].has_retry);
	assert_int_equal(def->nodes[4].retry.max_attempts, INT32_MAX);
	wig_definition_free(def);
	free(json);
}

static void
test_json_is_the_same(void **state)
{
	const char *yaml = "workflow: w\nversion: 2\nsteps:\n- task: a\n  retry: {max: 2, backoff: 1s}\n- sleep: 5s\n";
	const char *json = "{\"workflow\":\"w\",\"version\":2,\"steps\":[{\"task\":\"a\",\"retry\":{\"max\":2,\"backoff\":\"1s\"}},"
		"{\"sleep\":\"5s\"}]}";
	struct wig_error err;
	char	   *a = wig_flow_from_yaml(yaml, strlen(yaml), &err);
	char	   *b = wig_flow_from_json(json, strlen(json), &err);

	(void) state;
	assert_non_null(a);
	assert_non_null(b);
	assert_string_equal(a, b);
	free(a);
	free(b);
}

static void
test_example(void **state)
{
	FILE	   *file = fopen(SOURCE_ROOT "/examples/order.yaml", "r");
	char		text[8192];
	size_t		len;
	struct wig_error err;
	char	   *json;

	(void) state;
	assert_non_null(file);
	len = fread(text, 1, sizeof(text), file);
	fclose(file);
	json = wig_flow_from_yaml(text, len, &err);
	if (json == NULL)
		fail_msg("%d: %s", err.line, err.message);
	for (size_t cut = 0; cut < len; cut++)
	{
		char	   *exact = malloc(cut + 1);

		memcpy(exact, text, cut);
		free(wig_flow_from_yaml(exact, cut, &err));
		free(exact);
	}
	free(json);
}

static const struct
{
	const char *yaml;
	int			line;
	const char *message;
}			refusals[] = {
	{"", 1, "the document is empty"},
	{"# nothing\n", 1, "the document is empty"},
	{"~", 1, "the document is empty"},
	{"- a", 1, "document must be a mapping, got a list"},
	{"text", 1, "document must be a mapping, got a single value"},
	{"steps: []", 1, "'workflow' is required"},
	{"workflow: ' '\nsteps: []", 1, "'workflow' is required"},
	{"workflow: w", 1, "'steps' is required"},
	{"workflow: w\nsteps: []", 2, "'steps' must not be empty"},
	{"workflow: w\nsteps: {a: b}", 2, "'steps' must be a list, got a mapping"},
	{"workflow: w\nversion: x\nsteps: [{task: a}]", 2, "'version' must be an integer"},
	{"workflow: w\nversion: '1'\nsteps: [{task: a}]", 2, "'version' must be an integer"},
	{"workflow: w\nversion: 0\nsteps: [{task: a}]", 2, "'version' must be in 1..2147483647"},
	{"workflow: w\nversion: 2147483648\nsteps: [{task: a}]", 2, "'version' must be in 1..2147483647"},
	{HEAD "- a\n", 3, "step must be a mapping, got a single value"},
	{HEAD "- tsk: a\n  queue: b\n", 3, "step has no operator (one of [await_signal, choose, do_while, effect, fork, "
	"fork_each, gate, sleep, sub_workflow, task]); keys were [tsk, queue]"},
	{HEAD "- task: a\n- {gate: b, task: c}\n", 4, "step has multiple operators [gate, task]; use exactly one per step"},
	{HEAD "- task:\n", 3, "'task' is required"},
	{HEAD "- task: [a]\n", 3, "'task' must be text, got a list"},
	{HEAD "- task: a\n- gate: a\n", 4, "duplicate step name 'a' in workflow w"},
	{HEAD "- task: a\n  retry: some\n", 4, "unknown retry preset 'some' (use none, forever, or a map)"},
	{HEAD "- task: a\n  retry: {backoff: 1s}\n", 4, "'max' must be an integer"},
	{HEAD "- task: a\n  retry: {max: 1}\n", 4, "'backoff' is required"},
	{HEAD "- task: a\n  retry: {max: 0, backoff: 1s}\n", 4, "maxAttempts must be >= 1"},
	{HEAD "- task: a\n  retry: {max: 1, backoff: 1s, multiplier: x}\n", 4, "'multiplier' must be a number"},
	{HEAD "- task: a\n  retry: {max: 1, backoff: 1s, multiplier: 0.1}\n", 4, "multiplier must be >= 1.0, got 0.1"},
	{HEAD "- task: a\n  retry: {max: 1, backoff: 1s, jitter: nan}\n", 4, "'jitter' must be a number"},
	{HEAD "- sleep: 300\n", 3, "bad duration '300' (use <number> with unit ms|s|m|h)"},
	{HEAD "- sleep: -1s\n", 3, "bad duration '-1s'"},
	{HEAD "- sleep: 1s 2\n", 3, "bad duration '1s 2'"},
	{HEAD "- sleep: 1.5s\n", 3, "bad duration '1.5s'"},
	{HEAD "- sleep: 99999999h\n", 3, "duration '99999999h' is longer than one hundred years"},
	{HEAD "- sleep: 99999999999999999999ms\n", 3, "is longer than one hundred years"},
	{HEAD "- sleep: {name: x}\n", 3, "'for' is required"},
	{HEAD "- await_signal: s\n  escalation: [{task: a}]\n", 4, "await_signal 's' escalation needs a timeout"},
	{HEAD "- fork: {a: [{task: a}]}\n", 3, "fork needs at least two branches"},
	{HEAD "- fork: {a: [{task: a}], b: []}\n", 3, "branch 'b' defines no steps"},
	{HEAD "- fork: [a]\n", 3, "fork needs at least two branches"},
	{HEAD "- fork_each: {over: a, as: b, body: []}\n", 3, "fork_each body must not be empty"},
	{HEAD "- fork_each: {as: b, body: [{task: a}]}\n", 3, "'over' is required"},
	{HEAD "- {task: a, compensable: yes}\n", 3, "'compensable' must be true or false"},
	{HEAD "- gate: a\n  compensable: true\n", 4, "gate 'a' cannot be compensable"},
	{HEAD "- fork: {a: [{task: a}], b: [{task: b}]}\n  combine: [c]\n", 4, "'combine' must be text, got a list"},
	{HEAD "- fork: {a: [{task: a}], b: [{task: b}]}\n  combine: a\n", 3, "duplicate step name 'a'"},
	{HEAD "- do_while: {while: a, body: []}\n", 3, "do_while body must not be empty"},
	{HEAD "- do_while: {while: a, maxIterations: 0, body: [{task: b}]}\n", 3, "doWhile 'a' maxIterations must be positive"},
	{HEAD "- choose: []\n", 3, "choose needs at least one case"},
	{HEAD "- choose: [{then: [{task: a}]}]\n", 3, "choose case needs 'when: <predicate>' or 'otherwise:'"},
	{HEAD "- choose: [{when: a}]\n", 3, "'case 'then'' is required"},
	{HEAD "- choose: [{otherwise: {then: [{task: a}]}}]\n", 3, "choose needs at least one guarded case"},
	{HEAD "- choose: [{otherwise: {then: [{task: a}]}}, {when: b, then: [{task: c}]}]\n", 3, "otherwise must be the last case"},
	{HEAD "- task: a\n  retyr: {max: 3, backoff: 1s}\n", 4, "unknown key 'retyr' of step 'a'; did you mean 'retry'?"},
	{HEAD "- task: a\n  note: b\n", 4, "unknown key 'note' of step 'a'"},
	{"workflow: w\ndefaultQeue: q\nsteps: [{task: a}]", 2, "unknown key 'defaultQeue'; did you mean 'defaultQueue'?"},
	{"workflow: w\nverison: 3\nsteps: [{task: a}]", 2, "unknown key 'verison'; did you mean 'version'?"},
	{"workflo: a\nsteps: [{task: a}]", 1, "unknown key 'workflo'; did you mean 'workflow'?"},
	{HEAD "- task: a\n  retry:\n    max: 1\n    backoff: 1s\n    maxBackof: 2s\n", 7,
	"unknown key 'maxBackof' of retry; did you mean 'maxBackoff'?"},
	{HEAD "- sleep: 1s\n  retry: none\n", 4, "'retry' cannot stand beside sleep; it goes with task, effect and gate"},
	{HEAD "- sub_workflow: c\n  queue: q\n", 4, "'queue' cannot stand beside sub_workflow"},
	{HEAD "- choose: [{when: a, then: [{task: b}]}]\n  queue: q\n", 4, "'queue' cannot stand beside choose"},
	{HEAD "- sleep: 1s\n  nmae: x\n", 4, "unknown key 'nmae' of a sleep step; did you mean 'name'?"},
	{HEAD "- sleep: {for: 1s, nam: x}\n", 3, "unknown key 'nam' of sleep; did you mean 'name'?"},
	{HEAD "- await_signal: s\n  timout: 1s\n", 4, "unknown key 'timout' of step 's'; did you mean 'timeout'?"},
	{HEAD "- sub_workflow: {name: a, workflw: b}\n", 3, "unknown key 'workflw' of sub_workflow; did you mean 'workflow'?"},
	{HEAD "- fork_each: {over: a, as: b, combin: c, body: [{task: d}]}\n", 3,
	"unknown key 'combin' of fork_each; did you mean 'combine'?"},
	{HEAD "- do_while: {while: a, maxIteration: 2, body: [{task: b}]}\n", 3,
	"unknown key 'maxIteration' of do_while; did you mean 'maxIterations'?"},
	{HEAD "- choose: [{when: a, than: [{task: b}], then: [{task: c}]}]\n", 3,
	"unknown key 'than' of a choose case; did you mean 'then'?"},
	{HEAD "- choose: [{when: a, then: [{task: b}]}, {otherwise: {thn: [], then: [{task: c}]}}]\n", 3,
	"unknown key 'thn' of otherwise; did you mean 'then'?"},
	{HEAD "- fork:\n    a: [{task: a}]\n    b:\n    - task: b\n      qeue: q\n", 7, "unknown key 'qeue' of step 'b'; did you mean 'queue'?"},
	{HEAD "- taks: a\n", 3, "keys were [taks]; did you mean 'task'?"},
	{HEAD "- task: a\n  task: b\n", 4, "key 'task' stands twice in one mapping"},
	{HEAD "- &x {task: a}\n- *x\n", 4, "aliases are not supported"},
	{HEAD "- {<<: {task: a}}\n", 3, "merge keys are not supported"},
	{HEAD "- task: a\n---\nworkflow: v\n", 4, "one file holds one workflow"},
	{HEAD "- task: 'a\n", 4, "not valid YAML"},
	{HEAD "- \ttask: a\n", 3, "not valid YAML"},
	{"workflow: w\nsteps:\n\t- task: a\n", 3, "a tab in the indentation"},
	{HEAD "- fork:\n  \ta: [{task: a}]\n", 4, "a tab in the indentation"},
	{HEAD "- task: ''\n", 3, "'task' is required, and here it is empty"},
	{"name: w\nsteps: [{task: a}]", 1, "unknown key 'name'; did you mean 'workflow'?"},
	{HEAD "- signal: go\n", 3, "keys were [signal]; did you mean 'await_signal'?"},
	{HEAD "- wait: 1s\n", 3, "keys were [wait]; did you mean 'sleep'?"},
	{HEAD "- sleep: 1s\n  compensable: true\n", 4, "'compensable' cannot stand beside sleep; it goes with task and effect"},
	{HEAD "- task: a\n  timeout: 1s\n", 4, "'timeout' cannot stand beside task; it goes with await_signal"},
	{HEAD "- fork: {a: [{task: a}], b: [{task: b}]}\n  queue: q\n", 4,
	"'queue' beside fork is for a combine that has a name: add 'combine: NAME'"},
	{HEAD "- fork: {a: [{task: a}], b: [{task: b}]}\n  retry: none\n", 4, "'retry' beside fork is for a combine"},
	{HEAD "- fork_each: {over: a, as: b, body: [{task: a}]}\n  queue: q\n", 4, "'queue' beside fork_each is for a combine"},
	{HEAD "- fork_each: {over: a, body: {task: z}}\n", 3, "'fork_each body' must be a list, got a mapping"},
	{HEAD "- fork:\n  - task: x\n  - task: y\n", 4, "a fork is a mapping of names to lists of steps, or a list of"},
	{HEAD "- fork:\n  - {name: a, steps: [{task: x}], queue: q}\n  - {name: b, steps: [{task: y}]}\n", 4,
	"unknown key 'queue' of a branch"},
	{HEAD "- {task: a, compensable: true}\n- task: a#compensate\n", 4,
	"step 'a#compensate' has the name of the compensator of step 'a'"},
	{HEAD "- {task: a, compensable: true}\n- gate: a#compensate\n", 4, "has the name of the compensator of step 'a'"},
	{HEAD "- task: a#compensate\n- {task: a, compensable: true}\n", 4,
	"step 'a#compensate' has the name of the compensator of step 'a'"},
	{HEAD "- task: \"a\\0b\"\n", 3, "U+0000"}
};

static void
test_refusals(void **state)
{
	(void) state;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
	{
		struct wig_error err = {0};
		char	   *json = wig_flow_from_yaml(refusals[i].yaml, strlen(refusals[i].yaml), &err);

		if (json != NULL)
			fail_msg("accepted: %s", refusals[i].yaml);
		if (strstr(err.message, refusals[i].message) == NULL || err.line != refusals[i].line)
			fail_msg("%d: '%s' instead of %d: '%s'", err.line, err.message, refusals[i].line, refusals[i].message);
	}
}

/* What libyaml cannot read as text at all; in UTF-8 its place is known. */
static void
test_unreadable_bytes(void **state)
{
	static const struct
	{
		const char *text;
		size_t		len;
		int			line;
		int			column;
		const char *message;
	}			cases[] = {
		{"a: b\nc: \xC3\xA9 \xFF\n", 13, 2, 6, "not valid YAML: invalid leading UTF-8 octet"},
		{"a: b\nc: \xC3", 9, 2, 4, "not valid YAML: incomplete UTF-8 octet sequence"},
		{"\xED\xA0\x80", 3, 1, 1, "not valid YAML: invalid Unicode character"},
		{"{\"a\":\n \"\0\"}", 11, 2, 3, "not valid YAML: control characters are not allowed"},
		{"\xFF\xFE\xFF", 3, 0, 0, "not valid YAML: incomplete UTF-16 character at byte 3"}
	};

	(void) state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		struct wig_error err = {.line = -1};

		assert_null(wig_flow_from_yaml(cases[i].text, cases[i].len, &err));
		assert_string_equal(err.message, cases[i].message);
		assert_int_equal(err.line, cases[i].line);
		assert_int_equal(err.column, cases[i].column);
	}
}

/* The place of a key that nobody knows is the key's, not its value's. */
static void
test_key_column(void **state)
{
	static const char yaml[] = "workflow: w\nsteps:\n  - task: x\n    retyr: {max: 3, backoff: 1s}\n";
	struct wig_error err = {0};

	(void) state;
	assert_null(wig_flow_from_yaml(yaml, strlen(yaml), &err));
	assert_int_equal(err.line, 4);
	assert_int_equal(err.column, 5);
	assert_string_equal(err.place, "");
}

/* JSON has no lines; the innermost step is the place. */
static void
test_place_in_json(void **state)
{
	static const struct
	{
		const char *steps;
		const char *message;
		const char *place;
	}			cases[] = {
		{"[{\"task\":\"a\"},{\"task\":\"greet\",\"retry\":{\"max\":1}}]", "'backoff' is required", "step 2 ('greet')"},
		{"[{\"taks\":\"a\"}]", "keys were [taks]; did you mean 'task'?", "step 1"},
		{"[5]", "step must be a mapping", "step 1"},
		{"[[1]]", "step must be a mapping", "step 1"},
		{"[{\"task\":\"a\"},{\"do_while\":{\"while\":\"w\",\"body\":[{\"task\":\"b\",\"x\":1}]}}]",
		"unknown key 'x' of step 'b'", "step 1 ('b')"},
		{"[]", "'steps' must not be empty", ""}
	};

	(void) state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		struct wig_error err = {0};
		char		json[512];

		snprintf(json, sizeof(json), "{\"workflow\":\"w\",\"steps\":%s}", cases[i].steps);
		assert_null(wig_flow_from_json(json, strlen(json), &err));
		if (strstr(err.message, cases[i].message) == NULL)
			fail_msg("%s: %s", json, err.message);
		assert_string_equal(err.place, cases[i].place);
	}
}

static void
test_deep_nesting(void **state)
{
	struct wig_text yaml = {0};
	struct wig_error err;

	(void) state;
	addf(&yaml, "workflow: w\nsteps: ");
	for (int i = 0; i < 1000; i++)
		addf(&yaml, "[");
	assert_null(wig_flow_from_yaml(yaml.data, yaml.len, &err));
	wig_text_free(&yaml);
	assert_string_equal(err.message, "nested too deeply");
}

static void
test_too_many_nodes(void **state)
{
	struct wig_text yaml = {0};
	struct wig_error err;

	(void) state;
	addf(&yaml, HEAD);
	for (int i = 0; i < 10000; i++)
		addf(&yaml, "- task: t%d\n", i);
	assert_null(wig_flow_from_yaml(yaml.data, yaml.len, &err));
	assert_string_equal(err.message, "the workflow has more than 10000 nodes");
	wig_text_free(&yaml);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sequence),
		cmocka_unit_test(test_gate),
		cmocka_unit_test(test_sleep),
		cmocka_unit_test(test_signal),
		cmocka_unit_test(test_sub_workflow),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_nested_fork),
		cmocka_unit_test(test_combine_settings),
		cmocka_unit_test(test_compensable),
		cmocka_unit_test(test_widths),
		cmocka_unit_test(test_fork_each),
		cmocka_unit_test(test_choose),
		cmocka_unit_test(test_do_while),
		cmocka_unit_test(test_queue_and_retry),
		cmocka_unit_test(test_json_is_the_same),
		cmocka_unit_test(test_example),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_unreadable_bytes),
		cmocka_unit_test(test_key_column),
		cmocka_unit_test(test_place_in_json),
		cmocka_unit_test(test_deep_nesting),
		cmocka_unit_test(test_too_many_nodes)
	};

	return cmocka_run_group_tests_name("flow", tests, NULL, NULL);
}
