/*
 * test_cli.c
 *	  The command's parts that need no server: options, output, verdicts, worker files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "options.h"
#include "output.h"
#include "source.h"
#include "status.h"
#include "value.h"
#include "verdict.h"
#include "worker_config.h"

/* ---- options ---- */

static const struct option own[] = {
	{"limit", 'n', "N", "a number"},
	{"wait", 'w', NULL, "a switch"},
	{"step", 0, "TEXT", "may be repeated"},
	{NULL, 0, NULL, NULL}
};
static const struct option global[] = {
	{"json", 0, NULL, "a switch"},
	{NULL, 0, NULL, NULL}
};

static struct arguments args;
static struct wig_error err;

#define PARSE(...) \
	options_parse(own, global, (int) (sizeof((char *[]){__VA_ARGS__}) / sizeof(char *)), \
				  (char *[]){__VA_ARGS__}, &args, &err)

static void
test_options(void **state)
{
	(void) state;
	assert_true(PARSE("a", "--limit", "3", "--step=x=y", "-w", "b", "--json", "--step", "-z"));
	assert_int_equal(args.nwords, 2);
	assert_string_equal(args.words[1], "b");
	assert_string_equal(options_value(&args, "limit"), "3");
	assert_string_equal(options_value(&args, "step"), "-z");
	assert_string_equal(args.given[1].value, "x=y");
	assert_true(options_has(&args, "wait"));
	assert_true(options_has(&args, "json"));
	assert_true(PARSE("-n7", "-", "--", "--limit"));
	assert_string_equal(options_value(&args, "limit"), "7");
	assert_int_equal(args.nwords, 2);
	assert_string_equal(args.words[0], "-");
	assert_string_equal(args.words[1], "--limit");
	assert_true(PARSE("--limit="));
	assert_string_equal(options_value(&args, "limit"), "");
	assert_false(options_has(&args, "wait"));
	assert_null(options_value(&args, "step"));
}

static void
test_options_refused(void **state)
{
	(void) state;
	assert_false(PARSE("--limits", "3"));
	assert_string_equal(err.message, "unknown option --limits");
	assert_false(PARSE("-x"));
	assert_string_equal(err.message, "unknown option -x");
	assert_false(PARSE("--wait=1"));
	assert_string_equal(err.message, "--wait takes no value");
	assert_false(PARSE("a", "--limit"));
	assert_string_equal(err.message, "--limit needs a value: N");
}

static void
test_numbers_and_durations(void **state)
{
	static const struct
	{
		const char *text;
		int64_t		ms;			/* -1: refused */
	}			durations[] = {
		{"0ms", 0}, {"300ms", 300}, {"2s", 2000}, {"5 m", 300000}, {"876600h", 3155760000000},
		{"876601h", -1}, {"", -1}, {"5", -1}, {"5d", -1}, {"-5s", -1}, {"1.5s", -1}, {"s", -1},
		{"99999999999999999999ms", -1}, {"5 s ", -1}
	};
	int64_t		value = 17;

	(void) state;
	for (size_t i = 0; i < sizeof(durations) / sizeof(durations[0]); i++)
	{
		int64_t		ms = -1;

		assert_int_equal(parse_duration(durations[i].text, &ms), durations[i].ms >= 0);
		if (durations[i].ms >= 0)
			assert_int_equal(ms, durations[i].ms);
	}
	assert_true(PARSE("a"));
	assert_true(options_number(&args, "limit", 1, 9, &value, &err));
	assert_int_equal(value, 17);
	assert_true(PARSE("--limit", "9"));
	assert_true(options_number(&args, "limit", 1, 9, &value, &err));
	assert_int_equal(value, 9);
	for (int i = 0; i < 5; i++)
	{
		assert_true(PARSE("--limit", ((char *[]) {"0", "10", "x", "3x", ""})[i]));
		assert_false(options_number(&args, "limit", 1, 9, &value, &err));
		assert_int_equal(value, 9);
	}
}

static void
check_moment(const char *text, int64_t expected)
{
	static const struct option since[] = {{"since", 0, "WHEN", ""}, {NULL, 0, NULL, NULL}};
	char	   *argv[] = {"--since", (char *) text};
	int64_t		ms = -7;

	assert_true(options_parse(since, global, 2, argv, &args, &err));
	if (expected < 0)
	{
		assert_false(options_moment(&args, "since", 100000000, &ms, &err));
		assert_non_null(strstr(err.message, "--since must be a duration such as 1h, or a time in UTC"));
		return;
	}
	assert_true(options_moment(&args, "since", 100000000, &ms, &err));
	assert_int_equal(ms, expected);
}

static void
test_moments(void **state)
{
	static const char *const wrong[] = {
		"", "yesterday", "2026-13-01", "2026-02-30", "2026-10-01T", "2026-10-01T12:30:00",
		"2026-10-01T24:00:00Z", "2026-10-01T12:30:00Zx", "2026-1-1", " 2026-10-01", "1d", "-1h"
	};

	(void) state;
	setenv("TZ", "America/New_York", 1);
	check_moment("2026-10-01", INT64_C(1790812800000));
	check_moment("2026-10-01T12:30:05Z", INT64_C(1790857805000));
	check_moment("1h", 100000000 - 3600000);
	check_moment("0s", 100000000);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		check_moment(wrong[i], -1);
	unsetenv("TZ");
}

/* ---- output ---- */

static void
test_table(void **state)
{
	static const char *const headings[] = {"ID", "NAME", "WHY"};
	static const char *const first[] = {"1", "caf\xc3\xa9 longer", NULL};
	static const char *const second[] = {"22222", "x", "tab\there"};
	struct table table;
	char	   *text = NULL;
	size_t		len = 0;
	FILE	   *out = open_memstream(&text, &len);

	(void) state;
	table_start(&table, 3, headings);
	table_row(&table, first);
	table_row(&table, second);
	table_print(&table, out);
	fclose(out);
	assert_string_equal(text, "ID     NAME         WHY\n"
						"1      caf\xc3\xa9 longer  \n"
						"22222  x            tab here\n");
	free(text);
	table_free(&table);
}

static void
test_json(void **state)
{
	struct buf	out = BUF_INIT;

	(void) state;
	json_open(&out, NULL, '{');
	json_text(&out, "a\"b", "c\\d\n");
	json_text(&out, "none", NULL);
	json_open(&out, "list", '[');
	json_number(&out, NULL, -5);
	json_open(&out, NULL, '{');
	json_close(&out, '}');
	json_close(&out, ']');
	json_raw(&out, "raw", "[1]", 3);
	json_close(&out, '}');
	assert_string_equal(buf_cstr(&out),
						"{\"a\\\"b\":\"c\\\\d\\u000a\",\"none\":null,\"list\":[-5,{}],\"raw\":[1]}");
	buf_free(&out);
}

static void
check_indent(const char *json, const char *expected)
{
	struct buf	out = BUF_INIT;

	json_indent(json, strlen(json), &out);
	assert_string_equal(buf_cstr(&out), expected);
	buf_free(&out);
}

static void
test_indent(void **state)
{
	(void) state;
	check_indent("{}", "{}");
	check_indent(" [ ] ", "[]");
	check_indent("3", "3");
	check_indent("{\"a\":[1,{\"b\":\"x,{\\\"\"}],\"c\":{ }}",
				 "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"x,{\\\"\"\n    }\n  ],\n  \"c\": {}\n}");
}

static void
test_time(void **state)
{
	char		text[40];

	(void) state;
	format_time(1790856000123, text);
	assert_string_equal(text, "2026-10-01T12:00:00.123Z");
	format_time(0, text);
	assert_string_equal(text, "");
	format_time(INT64_MAX, text);
}

static void
check_message(const char *coded, const char *expected)
{
	char		out[16];

	status_message_decode(coded, strlen(coded), out, sizeof(out));
	assert_string_equal(out, expected);
}

static void
test_status(void **state)
{
	(void) state;
	check_message("", "");
	check_message("plain", "plain");
	check_message("caf%C3%A9 100%25", "caf\xc3\xa9 100%");
	check_message("a%0Ab%zz%4", "a b%zz%4");
	check_message("0123456789abcdefgh", "0123456789abcde");
	assert_string_equal(status_name(GRPC_NOT_FOUND), "NOT_FOUND");
	assert_string_equal(status_name((enum grpc_status) 99), "UNKNOWN");
	assert_int_equal(status_exit(GRPC_OK), EXIT_DONE);
	assert_int_equal(status_exit(GRPC_NOT_FOUND), EXIT_REFUSED);
	assert_int_equal(status_exit(GRPC_UNAVAILABLE), EXIT_UNREACHABLE);
}

static void
test_duration_text(void **state)
{
	static const struct
	{
		int64_t		ms;
		const char *text;
	}			cases[] = {
		{0, "0s"}, {1, "1ms"}, {1500, "1500ms"}, {90000, "90s"}, {120000, "2m"}, {5400000, "90m"}, {86400000, "24h"}
	};
	char		text[32];

	(void) state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		format_duration(cases[i].ms, text);
		assert_string_equal(text, cases[i].text);
	}
}

/* ---- workflow files ---- */

/* JSON has places too, although its reader does not tell them. */
static void
test_places_in_json(void **state)
{
	static const struct
	{
		const char *text;
		int			line;
		int			column;
		const char *message;
	}			cases[] = {
		{"{\"workflow\": \"w\",\n \"steps\": [{\"task\": \"a\"},\n  {\"tsk\": \"b\"}]}", 3, 3, "step has no operator"},
		{"{\"workflow\": \"w\",\n \"version\": 0,\n \"steps\": [{\"task\": \"a\"}]}", 2, 13, "'version' must be in"},
		{"{\"workflow\": \"w\", \"steps\": []}", 1, 28, "'steps' must not be empty"},
		{"workflow: w\nsteps:\n- task: a\n- gate: a\n", 4, 3, "duplicate step name 'a'"}
	};

	(void) state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		struct buf	text = BUF_INIT;
		struct wig_error problem = {0};

		buf_text(&text, cases[i].text);
		assert_null(source_definition(&text, &problem));
		if (problem.line != cases[i].line || problem.column != cases[i].column ||
			strstr(problem.message, cases[i].message) == NULL)
			fail_msg("%d:%d: %s", problem.line, problem.column, problem.message);
		buf_free(&text);
	}
}

/* ---- verdicts ---- */

static void
check_verdict(struct step_result result, enum step_role role, enum verdict_kind kind, const char *message)
{
	struct verdict verdict;

	if (result.last_words == NULL)
		result.last_words = "";
	if (result.output != NULL)
		result.output_len = strlen(result.output);
	verdict_judge(&result, role, 1500, &verdict);
	assert_int_equal(verdict.kind, kind);
	if (message != NULL)
		assert_string_equal(buf_cstr(&verdict.message), message);
	verdict_free(&verdict);
}

static void
test_verdicts(void **state)
{
	(void) state;
	check_verdict((struct step_result) {0}, ROLE_TASK, VERDICT_DONE, NULL);
	check_verdict((struct step_result) {.output = " \n"}, ROLE_TASK, VERDICT_DONE, NULL);
	check_verdict((struct step_result) {.output = "{\"a\":1}\n"}, ROLE_TASK, VERDICT_DONE, NULL);
	check_verdict((struct step_result) {.exit_status = 1}, ROLE_TASK, VERDICT_FAILED, "exit status 1");
	check_verdict((struct step_result) {.exit_status = 2, .last_words = "why"}, ROLE_TASK, VERDICT_FAILED, "why");
	check_verdict((struct step_result) {.exit_status = 100, .last_words = "why"}, ROLE_TASK,
				  VERDICT_FAILED_FOR_GOOD, "why");
	check_verdict((struct step_result) {.output = "nonsense"}, ROLE_GATE, VERDICT_DECIDED, NULL);
	check_verdict((struct step_result) {.exit_status = 1}, ROLE_GATE, VERDICT_DECIDED, NULL);
	check_verdict((struct step_result) {.exit_status = 2}, ROLE_GATE, VERDICT_FAILED, "exit status 2");
	check_verdict((struct step_result) {.exit_status = 100}, ROLE_GATE, VERDICT_FAILED_FOR_GOOD, "exit status 100");
	check_verdict((struct step_result) {.term_signal = 11, .last_words = "ouch"}, ROLE_GATE, VERDICT_FAILED,
				  "killed by signal 11: ouch");
	check_verdict((struct step_result) {.term_signal = 15, .timed_out = true}, ROLE_TASK, VERDICT_FAILED,
				  "not done within 1500 ms");
	check_verdict((struct step_result) {.term_signal = 15, .killed = true}, ROLE_TASK, VERDICT_FAILED,
				  "the worker was stopped");
	check_verdict((struct step_result) {.term_signal = 15, .output_too_large = true}, ROLE_TASK,
				  VERDICT_FAILED_FOR_GOOD, "more than 3145728 bytes of output");
	check_verdict((struct step_result) {.spawn_error = "no such file or directory", .program = "./ship"}, ROLE_TASK,
				  VERDICT_FAILED, "the command cannot be run: no such file or directory: ./ship");
	check_verdict((struct step_result) {.output = "hello"}, ROLE_TASK, VERDICT_FAILED_FOR_GOOD,
				  "its output is no context: the JSON text is refused at byte 1: a value is expected");
	check_verdict((struct step_result) {.exit_status = 3, .last_words = "caf\xe9 \xe2\x82\xac \xff"}, ROLE_TASK,
				  VERDICT_FAILED, "caf? \xe2\x82\xac ?");
	check_verdict((struct step_result) {.output = "{\"a\":1} x"}, ROLE_TASK, VERDICT_FAILED_FOR_GOOD, NULL);
	check_verdict((struct step_result) {.output = "refunded"}, ROLE_COMPENSATOR, VERDICT_DONE, NULL);
	check_verdict((struct step_result) {.exit_status = 1}, ROLE_COMPENSATOR, VERDICT_FAILED, "exit status 1");
}

static void
test_decisions_and_values(void **state)
{
	struct step_result result = {.output = "{\"a\":[1,2.5]}", .output_len = 13, .last_words = ""};
	struct buf	json = BUF_INIT;
	struct verdict verdict;

	(void) state;
	verdict_judge(&result, ROLE_GATE, 0, &verdict);
	assert_true(verdict.decision);
	assert_int_equal(verdict.value.len, 0);
	verdict_free(&verdict);
	verdict_judge(&result, ROLE_COMPENSATOR, 0, &verdict);
	assert_int_equal(verdict.value.len, 0);
	verdict_free(&verdict);
	verdict_judge(&result, ROLE_TASK, 0, &verdict);
	assert_true(value_to_json(verdict.value.data, verdict.value.len, &json, NULL));
	assert_string_equal(buf_cstr(&json), "{\"a\":[1,2.5]}");
	buf_free(&json);
	verdict_free(&verdict);
}

static void
test_long_last_words(void **state)
{
	char		words[3000];
	struct step_result result = {.exit_status = 3, .last_words = words};
	struct verdict verdict;

	(void) state;
	memset(words, '\xff', sizeof(words) - 1);
	words[sizeof(words) - 1] = '\0';
	verdict_judge(&result, ROLE_TASK, 0, &verdict);
	assert_true(verdict.message.len <= 1000);
	verdict_free(&verdict);
	for (size_t i = 0; i + 3 < sizeof(words); i += 3)
		memcpy(words + i, "\xe2\x82\xac", 3);
	words[2997] = '\0';
	verdict_judge(&result, ROLE_TASK, 0, &verdict);
	assert_int_equal(verdict.message.len, 999);
	verdict_free(&verdict);
}

/* ---- worker files ---- */

static bool
read_config(struct worker_config *config, const char *path, const char *yaml)
{
	struct buf	text = BUF_INIT;
	bool		done;

	worker_config_init(config);
	buf_text(&text, yaml);
	done = worker_config_read(config, path, &text, &err);
	buf_free(&text);
	return done;
}

static void
test_worker_file(void **state)
{
	struct worker_config config;
	const struct handler *handler;

	(void) state;
	assert_true(read_config(&config, "/etc/wiggle/worker.yaml",
							"worker: w1\nqueues: [a, 'b c']\nconcurrency: 8\nlease: 45s\ntimeout: 1m\ndir: steps\n"
							"steps:\n  charge: pay \"$X\"\n  order/charge: {run: [./charge, -x, '1'], timeout: 5s}\n"));
	assert_string_equal(config.worker_id, "w1");
	assert_int_equal(config.nqueues, 2);
	assert_string_equal(config.queues[1], "b c");
	assert_int_equal(config.concurrency, 8);
	assert_int_equal(config.lease_ms, 45000);
	assert_int_equal(config.timeout_ms, 60000);
	assert_string_equal(config.dir, "/etc/wiggle/steps");
	handler = worker_config_find(&config, "order", "charge");
	assert_string_equal(handler->argv[0], "./charge");
	assert_string_equal(handler->argv[2], "1");
	assert_null(handler->argv[3]);
	assert_int_equal(handler->timeout_ms, 5000);
	handler = worker_config_find(&config, "other", "charge");
	assert_string_equal(handler->argv[0], "/bin/sh");
	assert_string_equal(handler->argv[2], "pay \"$X\"");
	assert_null(worker_config_find(&config, "order", "ship"));
	worker_config_free(&config);
}

static void
test_worker_folder(void **state)
{
	static const struct
	{
		const char *path;
		const char *dir;
		const char *folder;
	}			cases[] = {
		{"worker.yaml", "", "."},
		{"worker.yaml", "dir: x\n", "./x"},
		{"a/b.yaml", "", "a"},
		{"/b.yaml", "", "/"},
		{"a/b.yaml", "dir: /x\n", "/x"}
	};

	(void) state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		struct worker_config config;
		char		yaml[64];

		snprintf(yaml, sizeof(yaml), "%ssteps: {a: b}", cases[i].dir);
		assert_true(read_config(&config, cases[i].path, yaml));
		assert_string_equal(config.dir, cases[i].folder);
		worker_config_free(&config);
	}
}

static void
test_options_go_first(void **state)
{
	struct worker_config config;
	struct buf	text = BUF_INIT;

	(void) state;
	worker_config_init(&config);
	assert_true(worker_config_step(&config, "order/charge=true", &err));
	assert_false(worker_config_step(&config, "order/charge=false", &err));
	assert_true(worker_config_step(&config, "charge=x=y", &err));
	assert_false(worker_config_step(&config, "=x", &err));
	assert_false(worker_config_step(&config, "a/=x", &err));
	buf_text(&text, "steps: {order/charge: [no], charge: [no], ship: [yes]}");
	assert_true(worker_config_read(&config, "w.yaml", &text, &err));
	assert_string_equal(worker_config_find(&config, "order", "charge")->argv[2], "true");
	assert_string_equal(worker_config_find(&config, "x", "charge")->argv[2], "x=y");
	assert_string_equal(worker_config_find(&config, "x", "ship")->argv[0], "yes");
	buf_free(&text);
	worker_config_free(&config);
}

static void
test_worker_file_places(void **state)
{
	static const struct
	{
		const char *yaml;
		int			line;
		const char *message;
	}			cases[] = {
		{"", 1, "the document is empty"},
		{"- a", 1, "a worker file is a mapping; see wiggle work --help"},
		{"steps:\n  a: b\n  c: {run: d, timeout: x}", 3, "'timeout' must be a number with unit ms, s, m or h"},
		{"steps:\n  a: [b, [c]]", 2, "an argument of 'a' must be text; quote it"},
		{"steps:\n  a: ['']", 2, "the program of 'a' is empty"},
		{"queues:\n- a\n- ''", 3, "'queues' must be text"},
		{"concurrency: 1001", 1, "'concurrency' must be between 1 and 1000"}
	};

	(void) state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		struct worker_config config;

		assert_false(read_config(&config, "w.yaml", cases[i].yaml));
		assert_string_equal(err.message, cases[i].message);
		assert_int_equal(err.line, cases[i].line);
		worker_config_free(&config);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_options_refused),
		cmocka_unit_test(test_numbers_and_durations),
		cmocka_unit_test(test_moments),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_indent),
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_duration_text),
		cmocka_unit_test(test_places_in_json),
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_decisions_and_values),
		cmocka_unit_test(test_long_last_words),
		cmocka_unit_test(test_worker_file),
		cmocka_unit_test(test_worker_folder),
		cmocka_unit_test(test_options_go_first),
		cmocka_unit_test(test_worker_file_places)
	};

	return cmocka_run_group_tests_name("cli", tests, NULL, NULL);
}
