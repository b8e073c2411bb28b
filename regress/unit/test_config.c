/*
 * test_config.c
 *	  Settings from the environment and the flags.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config.h"

static int
clean_environment(void **state)
{
	(void) state;
	clearenv();
	return 0;
}

static enum config_outcome
load(struct wig_error *err, int argc, ...)
{
	char	   *argv[8] = {"wiggle-proxy"};
	va_list		args;

	va_start(args, argc);
	for (int i = 1; i <= argc; i++)
		argv[i] = va_arg(args, char *);
	va_end(args);
	err->message[0] = '\0';
	return config_load(argc + 1, argv, err);
}

static void
refused(struct wig_error *err, enum config_outcome outcome, const char *a, const char *b)
{
	assert_int_equal(outcome, CONFIG_REFUSED);
	if (strstr(err->message, a) == NULL || strstr(err->message, b) == NULL)
		fail_msg("\"%s\" names not both \"%s\" and \"%s\"", err->message, a, b);
}

static void
defaults(void **state)
{
	struct wig_error err;

	(void) state;
	assert_int_equal(load(&err, 0), CONFIG_RUN);
	assert_int_equal(config.port, 8080);
	assert_int_equal(config.dashboard_port, 8090);
	assert_int_equal(config.longpoll_max_ms, 20000);
	assert_int_equal(config.lease_ms, 30000);
	assert_int_equal(config.max_message_bytes, 4 * 1024 * 1024);
	assert_int_equal(config.max_streams, 1000);
	assert_int_equal(config.schema_mode, SCHEMA_APPLY);
	assert_string_equal(config.jdbc_url, "");
	assert_true(config.node_name[0] != '\0');
}

static void
environment_then_flags(void **state)
{
	struct wig_error err;

	(void) state;
	setenv("WIGGLE_PORT", "9000", 1);
	setenv("WIGGLE_LONGPOLL_MAX_MILLIS", "1500", 1);
	setenv("WIGGLE_SCHEMA_MODE", "Verify", 1);
	setenv("WIGGLE_JDBC_PASSWORD", "secret", 1);
	setenv("WIGGLE_LEASE_MILLIS", "", 1);	/* empty = not set */
	assert_int_equal(load(&err, 3, "--port=9001", "--node-name", "here"), CONFIG_RUN);
	assert_int_equal(config.port, 9001);
	assert_int_equal(config.longpoll_max_ms, 1500);
	assert_int_equal(config.schema_mode, SCHEMA_VERIFY);
	assert_int_equal(config.lease_ms, 30000);
	assert_string_equal(config.node_name, "here");
	assert_string_equal(config.jdbc_password, "secret");
}

static void
wrong_values_name_setting_value_and_range(void **state)
{
	struct wig_error err;

	(void) state;
	refused(&err, load(&err, 1, "--port=70000"), "--port", "from 0 to 65535");
	refused(&err, load(&err, 1, "--port=-1"), "--port", "-1");
	refused(&err, load(&err, 1, "--port=80x"), "--port", "'80x'");
	refused(&err, load(&err, 1, "--port="), "--port", "not a whole number");
	refused(&err, load(&err, 1, "--port=99999999999999999999"), "--port", "not a whole number");
	refused(&err, load(&err, 1, "--port"), "--port", "needs a value");
	refused(&err, load(&err, 1, "--log-level=loud"), "loud", "debug|info|warn|error");
	refused(&err, load(&err, 1, "--no-such=1"), "--no-such", "--help");
	refused(&err, load(&err, 1, "port=1"), "port", "--help");
	refused(&err, load(&err, 1, "--"), "--", "--help");
	refused(&err, load(&err, 1, "--jdbc-password=hunter2"), "WIGGLE_JDBC_PASSWORD", "visible");
	assert_null(strstr(err.message, "hunter2"));
	setenv("WIGGLE_LEASE_MILLIS", "ten", 1);
	refused(&err, load(&err, 0), "WIGGLE_LEASE_MILLIS", "'ten'");
}

static void
foreign_names_without_their_values(void **state)
{
	struct buf	names = BUF_INIT;

	(void) state;
	config_foreign(&names);
	assert_int_equal(names.len, 0);
	setenv("WIGGLE_PORT", "1", 1);
	setenv("WIGGLE_PROT", "hunter2", 1);
	setenv("WIGGLE_PORTS", "", 1);
	setenv("OTHER", "x", 1);
	config_foreign(&names);
	assert_non_null(strstr(buf_cstr(&names), "WIGGLE_PROT"));
	assert_non_null(strstr(buf_cstr(&names), "WIGGLE_PORTS"));
	assert_int_equal(names.len, strlen("WIGGLE_PROT, WIGGLE_PORTS"));
	buf_free(&names);
}

static void
bounds_that_need_each_other(void **state)
{
	struct wig_error err;

	(void) state;
	refused(&err, load(&err, 2, "--max-message-bytes=16777216", "--max-request-bytes=8388608"),
			"WIGGLE_MAX_REQUEST_BYTES", "WIGGLE_MAX_MESSAGE_BYTES");
	refused(&err, load(&err, 2, "--max-unsent-bytes=8388608", "--max-unsent-conn-bytes=16777216"),
			"WIGGLE_MAX_UNSENT_BYTES", "WIGGLE_MAX_UNSENT_CONN_BYTES");
}

static void
help_names_every_setting_once(void **state)
{
	struct wig_error err;
	struct buf	help = BUF_INIT;
	int			settings = 0;

	(void) state;
	assert_int_equal(load(&err, 1, "--help"), CONFIG_HELP);
	assert_int_equal(load(&err, 2, "--port=bad", "--version"), CONFIG_VERSION);
	config_help(&help);
	for (const char *at = buf_cstr(&help); (at = strstr(at, "\n  --")) != NULL; at++)
	{
		char		flag[64];
		const char *end = strchr(at + 5, ',');
		size_t		n = (size_t) (end - at - 3);

		snprintf(flag, sizeof(flag), "%.*s", (int) n, at + 3);
		/* each flag of the text is one that exists: the complaint is about a value */
		refused(&err, load(&err, 1, flag), flag, "needs a value");
		settings++;
	}
	assert_true(settings >= 40);
	assert_non_null(strstr(buf_cstr(&help), "WIGGLE_JDBC_PASSWORD"));
	assert_null(strstr(buf_cstr(&help), "--jdbc-password"));
	buf_free(&help);
}

/* A setting at its default is another thing than one that is given that value. */
static void
given_settings(void **state)
{
	struct wig_error err;

	(void) state;
	assert_int_equal(load(&err, 0), CONFIG_RUN);
	assert_false(config_given("jdbc-replica-fallback"));
	setenv("WIGGLE_JDBC_REPLICA_FALLBACK", "", 1);
	assert_int_equal(load(&err, 1, "--jdbc-pool-size=10"), CONFIG_RUN);
	assert_false(config_given("jdbc-replica-fallback"));
	assert_true(config_given("jdbc-pool-size"));
	setenv("WIGGLE_JDBC_REPLICA_FALLBACK", "Primary", 1);
	assert_int_equal(load(&err, 0), CONFIG_RUN);
	assert_true(config_given("jdbc-replica-fallback"));
	assert_false(config_given("jdbc-pool-size"));
	setenv("WIGGLE_JDBC_REPLICA_POOL_SIZE", "many", 1);
	refused(&err, load(&err, 0), "WIGGLE_JDBC_REPLICA_POOL_SIZE is not a whole number: 'many'", "many");
	assert_false(config_given("no-such-setting"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(defaults, clean_environment),
		cmocka_unit_test_setup(environment_then_flags, clean_environment),
		cmocka_unit_test_setup(wrong_values_name_setting_value_and_range, clean_environment),
		cmocka_unit_test_setup(foreign_names_without_their_values, clean_environment),
		cmocka_unit_test_setup(bounds_that_need_each_other, clean_environment),
		cmocka_unit_test_setup(help_names_every_setting_once, clean_environment),
		cmocka_unit_test_setup(given_settings, clean_environment),
	};

	return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
