/*
 * test_definition.c
 *	  Definitions: what clients send is accepted and fingerprinted as agreed,
 *	  what cannot run is refused with the place named.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "addf.h"
#include "definition.h"

#define GOLDEN SOURCE_ROOT "/regress/unit/golden/fingerprints.txt"

/* The next line of the golden file, without its newline; NULL at the end. */
static char *
next_line(FILE *file)
{
	char	   *line = NULL;
	size_t		size = 0;
	ssize_t		len = getline(&line, &size, file);

	if (len <= 0)
	{
		free(line);
		return NULL;
	}
	if (line[len - 1] == '\n')
		line[len - 1] = '\0';
	return line;
}

static struct wig_definition *
parse(const char *json)
{
	struct wig_error err;
	struct wig_definition *def = wig_definition_parse(json, strlen(json), &err);

	if (def == NULL)
		fail_msg("refused: %s\n%s", err.message, json);
	return def;
}

static void
assert_fingerprint(const struct wig_definition *def, const char *expected)
{
	char		fingerprint[65];

	assert_true(wig_definition_fingerprint(def, fingerprint));
	assert_memory_equal(fingerprint, expected, 64);
	assert_int_equal(fingerprint[64], '\0');
}

/* Written and read again, in both forms, it is the same definition. */
static void
check_round_trip(const struct wig_definition *def, const char *fingerprint)
{
	char	   *stored = wig_definition_to_json(def, false);
	char	   *shown = wig_definition_to_json(def, true);
	struct wig_definition *again = parse(stored);
	struct wig_definition *echoed = parse(shown);
	char	   *stored_again = wig_definition_to_json(again, false);

	assert_fingerprint(again, fingerprint);
	assert_fingerprint(echoed, fingerprint);
	assert_string_equal(stored, stored_again);
	assert_int_equal(again->version, def->version);
	for (int i = 0; i < def->nnodes; i++)
		assert_int_equal(again->nodes[i].legacy_combine, def->nodes[i].legacy_combine);
	free(stored);
	free(stored_again);
	free(shown);
	wig_definition_free(again);
	wig_definition_free(echoed);
}

static void
test_golden(void **state)
{
	FILE	   *file = fopen(GOLDEN, "r");
	char	   *line;
	int			n = 0;

	(void) state;
	assert_non_null(file);
	while ((line = next_line(file)) != NULL)
	{
		struct wig_definition *def = parse(line + 65);
		char		fingerprint[65];

		assert_true(wig_definition_fingerprint(def, fingerprint));
		if (strncmp(fingerprint, line, 64) != 0)
			fail_msg("fingerprint %s of line %d: %s", fingerprint, n + 1, line);
		check_round_trip(def, line);
		wig_definition_free(def);
		free(line);
		n++;
	}
	fclose(file);
	assert_true(n >= 18);
}

static void
test_worked_example(void **state)
{
	FILE	   *file = fopen(GOLDEN, "r");
	char	   *line;

	(void) state;
	assert_non_null(file);
	line = next_line(file);
	fclose(file);
	assert_memory_equal(line, "84e5adf13075641c0158eb962c6ce4132d2403015e2d08a5f97ecad7d16fa47f", 64);
	free(line);
}

static void
test_truncated(void **state)
{
	FILE	   *file = fopen(GOLDEN, "r");
	struct wig_error err;
	char	   *line;

	(void) state;
	while ((line = next_line(file)) != NULL)
	{
		size_t		len = strlen(line + 65);

		for (size_t cut = 0; cut < len; cut++)
		{
			char	   *exact = malloc(cut + 1);

			memcpy(exact, line + 65, cut);
			assert_null(wig_definition_parse(exact, cut, &err));
			assert_true(err.line > 0);
			free(exact);
		}
		free(line);
	}
	fclose(file);
}

/* ---- one good definition, and what spoils it ---- */

#define TASK(id, name, next) \
	"{\"id\":\"" id "\",\"kind\":\"TASK\",\"name\":\"" name "\",\"activity\":\"w#" name "\",\"next\":\"" next "\"}"
#define END(id) "{\"id\":\"" id "\",\"kind\":\"END\",\"success\":true}"
#define WORKFLOW(start, nodes) \
	"{\"name\":\"w\",\"version\":1,\"startNode\":\"" start "\",\"nodes\":[" nodes "]}"
#define FORK(rest) \
	"{\"id\":\"f\",\"kind\":\"FORK\",\"branches\":[\"a\",\"b\"]}," rest
#define JOIN2 "{\"id\":\"j\",\"kind\":\"JOIN\",\"expected\":2,\"next\":\"e\"}"

struct refusal
{
	const char *json;
	const char *message;		/* is part of the error */
};

static void
check_refusals(const struct refusal *refusals, size_t n)
{
	for (size_t i = 0; i < n; i++)
	{
		struct wig_error err = {0};
		struct wig_definition *def = wig_definition_parse(refusals[i].json,
														  strlen(refusals[i].json), &err);

		if (def != NULL)
			fail_msg("accepted: %s", refusals[i].json);
		if (strstr(err.message, refusals[i].message) == NULL)
			fail_msg("'%s' instead of '%s'", err.message, refusals[i].message);
	}
}

#define CHECK(refusals) check_refusals(refusals, sizeof(refusals) / sizeof((refusals)[0]))

static void
test_head(void **state)
{
	static const struct refusal refusals[] = {
		{"[]", "expected JSON object, got an array"},
		{"{}", "missing field 'name'"},
		{"{\"name\":\" \"}", "workflow name is required"},
		{"{\"name\":[]}", "workflow: name must be a string, not an array"},
		{"{\"name\":\"w\"}", "workflow 'w' needs a positive version, got 0"},
		{"{\"name\":\"w\",\"version\":\"3\"}", "workflow 'w' needs a positive version, got 0"},
		{"{\"name\":\"w\",\"version\":-1}", "workflow 'w' needs a positive version, got -1"},
		{"{\"name\":\"w\",\"version\":2147483648}", "needs a version up to 2147483647, got 2147483648"},
		{"{\"name\":\"w\",\"version\":1e300}", "got 9223372036854775807"},
		{"{\"name\":\"w\",\"version\":1,\"executionMode\":\"OBSERVED\"}",
		"OBSERVED execution was removed; register the workflow as SERVER, LOCAL_SYNC or LOCAL_ASYNC"},
		{"{\"name\":\"w\",\"version\":1,\"executionMode\":\"FAST\"}", "unknown executionMode 'FAST'"},
		{"{\"name\":\"w\",\"version\":1}", "missing field 'startNode'"},
		{"{\"name\":\"w\",\"version\":1,\"startNode\":\"a\"}", "missing field 'nodes'"},
		{"{\"name\":\"w\",\"version\":1,\"startNode\":\"a\",\"nodes\":{}}", "nodes must be an array, not an object"},
		{"{\"name\":\"w\",\"version\":1,\"startNode\":\"a\",\"nodes\":[]}", "workflow defines no steps"},
		{WORKFLOW("x", END("e")), "startNode points at unknown node x"},
		{WORKFLOW("e", "3"), "nodes[0] must be an object, not a number"},
		{WORKFLOW("e", "{\"kind\":\"END\"}"), "nodes[0]: missing field 'id'"},
		{WORKFLOW("e", "{\"id\":\"e\"}"), "node 'e': missing field 'kind'"},
		{WORKFLOW("e", "{\"id\":\"e\",\"kind\":\"STOP\"}"), "node 'e': unknown kind 'STOP'"},
		{"{\"name\":\"w\",\"version\":1,\"startNode\":\"e\",\"nodes\":[" END("e") "],\"checkpoints\":[\"x\"]}",
		"checkpoints names unknown node x"},
		{"{\"name\":\"a\\u0000\"}", "U+0000"},
		{"{\"name\":5}", "workflow '5' needs a positive version"}
	};

	(void) state;
	CHECK(refusals);
}

static void
test_node_fields(void **state)
{
	static const struct refusal refusals[] = {
		{WORKFLOW("a", "{\"id\":\"a\",\"kind\":\"TASK\",\"next\":\"e\"}," END("e")), "node 'a': a TASK needs an activity"},
		{WORKFLOW("a", "{\"id\":\"a\",\"kind\":\"SUB_WORKFLOW\",\"next\":\"e\"}," END("e")),
		"a SUB_WORKFLOW needs an activity, the name of the child workflow"},
		{WORKFLOW("a", "{\"id\":\"a\",\"kind\":\"SIGNAL\",\"next\":\"e\"}," END("e")), "node 'a': a SIGNAL needs a name"},
		{WORKFLOW("a", "{\"id\":\"a\",\"kind\":\"SLEEP\"}," END("e")), "node a has no successor"},
		{WORKFLOW("a", "{\"id\":\"a\",\"kind\":\"PREDICATE\",\"activity\":\"p\",\"next\":\"e\"}," END("e")),
		"predicate a has no false branch"},
		{WORKFLOW("a", "{\"id\":\"a\",\"kind\":\"SLEEP\",\"next\":\"x\"}," END("e")), "node a points at unknown node x"},
		{WORKFLOW("a", "{\"id\":\"a\",\"kind\":\"SLEEP\",\"next\":\"e\",\"altNext\":\"y\"}," END("e")),
		"node a points at unknown node y"},
		{WORKFLOW("a", "{\"id\":\"a\",\"kind\":\"SIGNAL\",\"name\":\"s\",\"next\":\"e\",\"altNext\":\"e\"}," END("e")),
		"escalation needs a timeout"},
		{WORKFLOW("a", "{\"id\":\"a\",\"kind\":\"SLEEP\",\"next\":\"e\",\"sleepMillis\":-1}," END("e")),
		"node 'a': sleepMillis must be between 0 and 3155760000000, got -1"},
		{WORKFLOW("a", "{\"id\":\"a\",\"kind\":\"SLEEP\",\"next\":\"e\",\"sleepMillis\":3155760000001}," END("e")),
		"got 3155760000001"},
		{WORKFLOW("a", "{\"id\":\"a\",\"kind\":\"SLEEP\",\"next\":\"e\",\"sleepMillis\":9223372036854775807}," END("e")),
		"got 9223372036854775807"},
		{WORKFLOW("a", "{\"id\":\"a\",\"kind\":\"SLEEP\",\"next\":\"e\",\"loopBudget\":-2}," END("e")),
		"loopBudget must be between -1 and 2147483647, got -2"},
		{WORKFLOW("a", "{\"id\":\"a\",\"kind\":\"SLEEP\",\"next\":\"e\",\"retry\":{\"maxAttempts\":0}}," END("e")),
		"maxAttempts must be >= 1, got 0"},
		{WORKFLOW("a", "{\"id\":\"a\",\"kind\":\"SLEEP\",\"next\":\"e\",\"retry\":{\"multiplier\":0.5}}," END("e")),
		"multiplier must be >= 1.0, got 0.5"},
		{WORKFLOW("a", "{\"id\":\"a\",\"kind\":\"SLEEP\",\"next\":\"e\",\"retry\":{\"jitter\":1.5}}," END("e")),
		"jitter must be between 0 and 1, got 1.5"},
		{WORKFLOW("a", "{\"id\":\"a\",\"kind\":\"SLEEP\",\"next\":\"e\",\"retry\":{\"initialBackoffMillis\":9223372036854775807}}," END("e")),
		"initialBackoffMillis must be between 0 and 3155760000000"},
		{WORKFLOW("a", "{\"id\":\"a\",\"kind\":\"SLEEP\",\"next\":\"e\",\"retry\":\"none\"}," END("e")),
		"node 'a': retry must be an object, not a string"},
		{WORKFLOW("a", "{\"id\":\"a\",\"kind\":\"TASK\",\"activity\":\"w#a\",\"next\":\"e\",\"itemsKey\":\"[\"}," END("e")),
		"node 'a': itemsKey of a task must be JSON"},
		{WORKFLOW("a", "{\"id\":\"a\",\"kind\":\"TASK\",\"activity\":\"w#a\",\"next\":\"e\",\"itemsKey\":\"{}\"}," END("e")),
		"node 'a': itemsKey must be an array"},
		{WORKFLOW("a", TASK("a", "x", "b") "," TASK("b", "x", "e") "," END("e")), "duplicate step name 'x' in workflow w"},
		{WORKFLOW("f", "{\"id\":\"f\",\"kind\":\"FORK\",\"branches\":[\"a\"]},{\"id\":\"j\",\"kind\":\"JOIN\",\"expected\":1,\"next\":\"e\"},"
				  TASK("a", "x", "j") "," END("e")), "fork f has fewer than two branches"},
		{WORKFLOW("f", "{\"id\":\"f\",\"kind\":\"FORK\",\"branches\":[\"a\",null]}," TASK("a", "x", "e") "," END("e")),
		"node 'f': branches holds null"},
		{WORKFLOW("f", "{\"id\":\"f\",\"kind\":\"DYN_FORK\",\"itemsKey\":\"i\",\"itemKey\":\"i\",\"branches\":[]}," END("e")),
		"dynamic fork f needs exactly one branch template"},
		{WORKFLOW("f", "{\"id\":\"f\",\"kind\":\"DYN_FORK\",\"itemKey\":\"i\",\"branches\":[\"a\"]}," TASK("a", "x", "e") "," END("e")),
		"dynamic fork f is missing its items/item keys"}
	};

	(void) state;
	CHECK(refusals);
}

static void
test_graph(void **state)
{
	static const struct refusal refusals[] = {
		{WORKFLOW("a", TASK("a", "x", "e") "," TASK("b", "y", "e") "," END("e")),
		"node b cannot be reached from startNode a"},
		{WORKFLOW("a", TASK("a", "x", "a")), "no END can be reached from startNode a"},
		{WORKFLOW("a", TASK("a", "x", "a") "," END("e")), "node e cannot be reached"},
		{WORKFLOW("f", FORK(TASK("a", "x", "j") "," TASK("b", "y", "j") ",")
				  "{\"id\":\"j\",\"kind\":\"JOIN\",\"expected\":3,\"next\":\"e\"}," END("e")),
		"join j expects 3, but fork f has 2 branches"},
		{WORKFLOW("f", FORK(TASK("a", "x", "j") "," TASK("b", "y", "j") ",")
				  "{\"id\":\"j\",\"kind\":\"JOIN\",\"next\":\"e\"}," END("e")),
		"join j expects 0, but fork f has 2 branches"},
		{WORKFLOW("f", "{\"id\":\"f\",\"kind\":\"DYN_FORK\",\"itemsKey\":\"i\",\"itemKey\":\"i\",\"branches\":[\"a\"]},"
				  TASK("a", "x", "j") ",{\"id\":\"j\",\"kind\":\"JOIN\",\"expected\":1,\"next\":\"e\"}," END("e")),
		"join j expects 1, but fork f has a width known only at run time"},
		{WORKFLOW("f", FORK(TASK("a", "x", "j") "," TASK("b", "y", "b") ",") JOIN2 "," END("e")),
		"branch b of fork f never reaches its join j"},
		{WORKFLOW("f", FORK(TASK("a", "x", "j") "," TASK("b", "y", "e2") ",") JOIN2 "," END("e") "," END("e2")),
		"node e2 ends the workflow inside fork f"},
		{WORKFLOW("f", FORK(TASK("a", "x", "j") "," TASK("b", "y", "e") ",") JOIN2 "," END("e")),
		"node e"},
		{WORKFLOW("p", "{\"id\":\"p\",\"kind\":\"PREDICATE\",\"activity\":\"p\",\"next\":\"f\",\"altNext\":\"e\"},"
				  FORK(TASK("a", "x", "a") "," TASK("b", "y", "b")) "," END("e")), "no branch of fork f reaches a join"},
		{WORKFLOW("f", FORK(TASK("a", "x", "j") "," TASK("b", "y", "k") ",") JOIN2
				  ",{\"id\":\"k\",\"kind\":\"JOIN\",\"expected\":2,\"next\":\"e\"}," END("e")),
		"the branches of fork f end at two joins"},
		{WORKFLOW("j", "{\"id\":\"j\",\"kind\":\"JOIN\",\"expected\":2,\"next\":\"e\"}," END("e")),
		"join j is reached outside of any fork"},
		{WORKFLOW("p", "{\"id\":\"p\",\"kind\":\"PREDICATE\",\"activity\":\"p\",\"next\":\"f\",\"altNext\":\"a\"},"
				  FORK(TASK("a", "x", "j") "," TASK("b", "y", "j") ",") JOIN2 "," END("e")),
		"a branch leaves its fork through the fork's join only"},
		{WORKFLOW("f", FORK(TASK("a", "x", "j") "," TASK("b", "y", "j") ",")
				  "{\"id\":\"j\",\"kind\":\"JOIN\",\"expected\":2,\"next\":\"c\"},"
				  "{\"id\":\"c\",\"kind\":\"TASK\",\"activity\":\"w#c\",\"armNames\":[\"x\"],\"next\":\"e\"}," END("e")),
		"combine c names 1 arms, but fork f has 2 branches"}
	};

	(void) state;
	CHECK(refusals);
}

/* An END that fails the instance may stand in a branch: nobody waits then. */
static void
test_failing_end_in_branch(void **state)
{
	(void) state;
	wig_definition_free(parse(
		WORKFLOW("f", FORK("{\"id\":\"a\",\"kind\":\"PREDICATE\",\"activity\":\"w#a\",\"next\":\"j\",\"altNext\":\"no\"},"
						   TASK("b", "y", "j") ",") JOIN2 "," END("e") ",{\"id\":\"no\",\"kind\":\"END\",\"reason\":\"no\"}")));
}

static void
check_width(const char *field, size_t max)
{
	char		json[4096];
	char		name[400];
	struct wig_error err;

	for (size_t len = max; len <= max + 1; len++)
	{
		struct wig_definition *def;
		size_t		used = 0;

		/* Two bytes a character: widths count characters. */
		for (size_t i = 0; i < len; i++)
		{
			memcpy(name + used, i < 50 ? "\xc3\xa9" : "x", 2);
			used += i < 50 ? 2 : 1;
		}
		name[used] = '\0';
		snprintf(json, sizeof(json),
				 "{\"name\":\"%s\",\"version\":1,\"startNode\":\"%s\",\"nodes\":[{\"id\":\"%s\",\"kind\":\"TASK\","
				 "\"name\":\"%s\",\"activity\":\"%s\",\"queue\":\"%s\",\"next\":\"end\"},"
				 "{\"id\":\"end\",\"kind\":\"END\",\"reason\":\"%s\"}]}",
				 strcmp(field, "workflow: name") == 0 ? name : "w",
				 strcmp(field, "id") == 0 ? name : "n", strcmp(field, "id") == 0 ? name : "n",
				 strcmp(field, "name") == 0 ? name : "a",
				 strcmp(field, "activity") == 0 ? name : "w#a",
				 strcmp(field, "queue") == 0 ? name : "q",
				 strcmp(field, "reason") == 0 ? name : "r");
		def = wig_definition_parse(json, strlen(json), &err);
		if ((def != NULL) != (len == max))
			fail_msg("%s of %zu characters: %s", field, len, def != NULL ? "accepted" : err.message);
		if (def == NULL && strstr(err.message, "is longer than") == NULL)
			fail_msg("%s: %s", field, err.message);
		wig_definition_free(def);
	}
}

static void
test_widths(void **state)
{
	(void) state;
	check_width("workflow: name", 200);
	check_width("id", 64);
	check_width("name", 200);
	check_width("activity", 300);
	check_width("queue", 200);
	check_width("reason", 200);
}

static void
test_compiled(void **state)
{
	struct wig_definition *def = parse(
		"{\"name\":\"w\",\"version\":4,\"startNode\":\"n2\",\"queues\":[\"b\",\"a\",\"b\",null],\"checkpoints\":[\"n10\"],"
		"\"executionMode\":\"LOCAL_SYNC\",\"nodes\":["
		"{\"id\":\"n2\",\"kind\":\"PREDICATE\",\"name\":7,\"activity\":\"w#7\",\"next\":\"n10\",\"altNext\":\"end3\"},"
		"{\"id\":\"n10\",\"kind\":\"SLEEP\",\"sleepMillis\":300.9,\"next\":\"end3\",\"retry\":{}},"
		"{\"id\":\"end3\",\"kind\":\"END\"}]}");

	(void) state;
	assert_int_equal(def->nnodes, 3);
	assert_string_equal(def->nodes[0].id, "end3");
	assert_string_equal(def->nodes[1].id, "n10");
	assert_string_equal(def->nodes[2].id, "n2");
	assert_int_equal(def->start, 2);
	assert_int_equal(def->mode, WIG_MODE_LOCAL_SYNC);
	assert_int_equal(def->nqueues, 2);
	assert_string_equal(def->queues[0], "a");
	assert_string_equal(def->nodes[2].name, "7");
	assert_int_equal(def->nodes[2].next, 1);
	assert_int_equal(def->nodes[2].alt, 0);
	assert_false(def->nodes[2].has_retry);
	assert_int_equal(def->nodes[2].retry.max_attempts, INT32_MAX);
	assert_int_equal(def->nodes[1].sleep_ms, 300);
	assert_true(def->nodes[1].has_retry);
	assert_int_equal(def->nodes[1].retry.max_attempts, 1);
	assert_true(def->nodes[1].checkpoint);
	assert_false(def->nodes[0].success);
	assert_int_equal(def->nodes[0].next, -1);
	assert_int_equal(wig_definition_node(def, "n10", 3), 1);
	assert_int_equal(wig_definition_node(def, "n10x", 3), 1);
	assert_int_equal(wig_definition_node(def, "n1", 2), -1);
	assert_int_equal(wig_definition_node(def, "", 0), -1);
	wig_definition_free(def);
}

/* GetWorkflow's form carries both encodings of a combine. */
static void
test_shown_combine(void **state)
{
	struct wig_definition *def = parse(
		WORKFLOW("f", FORK(TASK("a", "x", "j") "," TASK("b", "y", "j") ",")
				 "{\"id\":\"j\",\"kind\":\"JOIN\",\"expected\":2,\"next\":\"c\"},"
				 "{\"id\":\"c\",\"kind\":\"TASK\",\"activity\":\"w#c\",\"itemsKey\":\"[\\\"x\\\",\\\"y\\\"]\",\"next\":\"e\"}," END("e")));
	char	   *shown = wig_definition_to_json(def, true);
	char	   *stored = wig_definition_to_json(def, false);

	(void) state;
	assert_non_null(strstr(shown, "\"armNames\":[\"x\",\"y\"]"));
	assert_non_null(strstr(shown, "\"itemsKey\":\"[\\\"x\\\",\\\"y\\\"]\""));
	assert_null(strstr(stored, "armNames"));
	assert_true(def->nodes[wig_definition_node(def, "c", 1)].legacy_combine);
	free(shown);
	free(stored);
	wig_definition_free(def);
}

/* Wide and long graphs cost time in proportion to their size. */
static void
test_large_graph(void **state)
{
	const int	n = 20000;
	struct wig_text json = {0};
	struct wig_error err;
	struct wig_definition *def;

	(void) state;
	addf(&json, "{\"name\":\"w\",\"version\":1,\"startNode\":\"n0\",\"nodes\":[");
	for (int i = 0; i < n; i++)
		addf(&json, "{\"id\":\"n%d\",\"kind\":\"TASK\",\"name\":\"s%d\",\"activity\":\"w#s%d\",\"next\":\"n%d\"},",
			 i, i, i, i + 1);
	addf(&json, "{\"id\":\"n%d\",\"kind\":\"END\"}]}", n);
	def = wig_definition_parse(json.data, json.len, &err);
	assert_non_null(def);
	assert_int_equal(def->nnodes, n + 1);
	wig_definition_free(def);
	wig_text_free(&json);
}

/* A message that does not fit is cut between characters. */
static void
test_long_message(void **state)
{
	struct wig_text json = {0};
	struct wig_error err;
	json_t	   *valid;

	(void) state;
	addf(&json, "{\"name\":\"w\",\"version\":1,\"executionMode\":\"");
	for (int i = 0; i < 1000; i++)
		addf(&json, "\xe2\x82\xac");
	addf(&json, "\"}");
	assert_null(wig_definition_parse(json.data, json.len, &err));
	wig_text_free(&json);
	assert_true(strlen(err.message) > 500);
	valid = json_string(err.message);
	assert_non_null(valid);
	json_decref(valid);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_worked_example),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_head),
		cmocka_unit_test(test_node_fields),
		cmocka_unit_test(test_graph),
		cmocka_unit_test(test_failing_end_in_branch),
		cmocka_unit_test(test_widths),
		cmocka_unit_test(test_compiled),
		cmocka_unit_test(test_shown_combine),
		cmocka_unit_test(test_large_graph),
		cmocka_unit_test(test_long_message)
	};

	return cmocka_run_group_tests_name("definition", tests, NULL, NULL);
}
