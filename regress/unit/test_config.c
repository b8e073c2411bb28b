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
#include "setting.h"

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
	refused(&err, load(&err, 1, "--bind=localhost"), "WIGGLE_BIND is 'localhost'", "in numbers");
	refused(&err, load(&err, 1, "--dashboard-bind=300.1.1.1"), "WIGGLE_DASHBOARD_BIND is '300.1.1.1'", "in numbers");
	refused(&err, load(&err, 1, "--port=8090"), "WIGGLE_PORT and WIGGLE_DASHBOARD_PORT", "8090");
	refused(&err, load(&err, 3, "--port=8090", "--bind=127.0.0.1", "--dashboard-bind=127.0.0.1"), "WIGGLE_PORT", "both 8090");
	assert_int_equal(load(&err, 3, "--port=8090", "--bind=127.0.0.1", "--dashboard-bind=127.0.0.2"), CONFIG_RUN);
	assert_int_equal(load(&err, 2, "--port=0", "--dashboard-port=0"), CONFIG_RUN);
	assert_int_equal(load(&err, 2, "--dashboard-port=-1", "--dashboard-bind=none"), CONFIG_RUN);
	refused(&err, load(&err, 1, "--node-name=proxy-\xff"), "WIGGLE_NODE_NAME", "UTF-8");
	assert_int_equal(load(&err, 1, "--node-name=proxy-\xc3\xbc"), CONFIG_RUN);
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
note(bool known, const char *text, void *arg)
{
	buf_printf(arg, "%s%s\n", known ? "" : "! ", text);
}

static const char *
notes(struct buf *out)
{
	buf_reset(out);
	config_foreign(note, out);
	return buf_cstr(out);
}

static void
names(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", part, text);
}

static void
foreign_names_without_their_values(void **state)
{
	struct buf	out = BUF_INIT;

	(void) state;
	assert_string_equal(notes(&out), "");
	setenv("WIGGLE_PORT", "1", 1);
	setenv("WIGGLE_URL", "hunter2", 1);
	setenv("WIGGLE_RPC_MAX_ATTEMPTS", "9", 1);
	setenv("WIGGLE_ROLE", "server", 1);
	setenv("WIGGLE_LOG_FILE", "", 1);
	setenv("OTHER", "x", 1);
	assert_string_equal(notes(&out), "");
	setenv("WIGGLE_PROT", "hunter2", 1);
	setenv("WIGGLE_FLUX_CAPACITOR", "", 1);
	setenv("WIGGLE_POLL_INTERVAL_MILLIS", "hunter2", 1);
	notes(&out);
	names(buf_cstr(&out), "! WIGGLE_PROT is no setting, did you mean WIGGLE_PORT?");
	names(buf_cstr(&out), "! WIGGLE_FLUX_CAPACITOR is no setting");
	names(buf_cstr(&out), "\nWIGGLE_POLL_INTERVAL_MILLIS has no effect: ");
	assert_null(strstr(buf_cstr(&out), "hunter2"));
	buf_free(&out);
}

/* What Kubernetes tells of Services called wiggle, wiggle-coord and wiggle-dashboard. */
static void
service_links(void **state)
{
	static const char *const links[] = {
		"WIGGLE_SERVICE_HOST", "WIGGLE_SERVICE_PORT", "WIGGLE_SERVICE_PORT_GRPC", "WIGGLE_PORT_8080_TCP",
		"WIGGLE_PORT_8080_TCP_PROTO", "WIGGLE_PORT_8080_TCP_PORT", "WIGGLE_PORT_8080_TCP_ADDR", "WIGGLE_COORD_SERVICE_HOST",
		"WIGGLE_COORD_PORT_53_UDP", "WIGGLE_DB0_RW_PORT_5432_TCP_ADDR"
	};
	static const char *const others[] = {
		"WIGGLE_PORT", "WIGGLE_SERVICE", "WIGGLE_PORT_TCP", "WIGGLE_PORT_8080_TCPX", "WIGGLE_PORT_8080", "WIGGLE_URL",
		"WIGGLE_SERVICE_HOSTS", "OTHER_SERVICE_HOST", "PORT"
	};
	struct buf	out = BUF_INIT;
	struct wig_error err;

	(void) state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(setting_is_link(others[i], strlen(others[i]), "10.96.0.7"));
	assert_false(setting_is_link("WIGGLE_URL", 10, "tcp://10.96.0.7:8080"));
	assert_false(setting_is_link("OTHER_PORT", 10, "tcp://10.96.0.7:8080"));
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		setenv(links[i], "10.96.0.7", 1);
	assert_int_equal(load(&err, 0), CONFIG_RUN);
	notes(&out);
	names(buf_cstr(&out), "_");
	names(buf_cstr(&out), " and 9 more are what Kubernetes tells pods of its Services, and have no effect; with enableServiceLinks: false");
	assert_null(strchr(buf_cstr(&out), '!'));
	setenv("WIGGLE_PORT", "tcp://10.96.0.7:8080", 1);
	setenv("WIGGLE_DASHBOARD_PORT", "tcp://10.96.0.8:80", 1);
	assert_int_equal(load(&err, 0), CONFIG_RUN);
	assert_int_equal(config.port, 8080);
	assert_int_equal(config.dashboard_port, 8090);
	names(notes(&out), "WIGGLE_");
	names(buf_cstr(&out), "PORT and 11 more are");
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		unsetenv(links[i]);
	unsetenv("WIGGLE_DASHBOARD_PORT");
	assert_string_equal(notes(&out), "WIGGLE_PORT is what Kubernetes tells pods of its Services, and has no effect; with "
						"enableServiceLinks: false in the pod's spec it does not\n");
	unsetenv("WIGGLE_PORT");
	buf_free(&out);
}

/* Each of the table: refused with the reason, or accepted with it, or not told at all. */
static void
variables_of_wiggles_own_server(void **state)
{
	struct buf	out = BUF_INIT;
	struct wig_error err;

	(void) state;
	for (size_t i = 0; i < nforeigns; i++)
	{
		const struct foreign *foreign = &foreigns[i];
		size_t		len = strlen(foreign->name);
		char		name[SETTING_NAME_MAX];

		snprintf(name, sizeof(name), "%.*s%s", (int) len - (foreign->name[len - 1] == '*'), foreign->name,
				 foreign->name[len - 1] == '*' ? "X" : "");
		assert_false(setting_is(name, strlen(name)));
		setenv(name, "hunter2", 1);
		if (foreign->fate == FOREIGN_REFUSED)
			refused(&err, load(&err, 0), name, foreign->why);
		else
			assert_int_equal(load(&err, 0), CONFIG_RUN);
		assert_true(foreign->accepts != NULL || strstr(err.message, "hunter2") == NULL);
		notes(&out);
		if (foreign->fate == FOREIGN_IGNORED)
			names(buf_cstr(&out), foreign->why);
		else
			assert_string_equal(buf_cstr(&out), "");
		if (foreign->accepts != NULL)
		{
			snprintf(name + sizeof(name) / 2, sizeof(name) / 2, "%.*s", (int) strcspn(foreign->accepts, "|"),
					 foreign->accepts);
			setenv(name, name + sizeof(name) / 2, 1);
			assert_int_equal(load(&err, 0), CONFIG_RUN);
		}
		unsetenv(name);
	}
	buf_free(&out);
}

static void
units(void **state)
{
	static const struct
	{
		const char *flag;
		int64_t    *slot;
		int64_t		value;
	}			good[] = {
		{"--lease-millis=45000", &config.lease_ms, 45000},
		{"--lease-millis=45000ms", &config.lease_ms, 45000},
		{"--lease-millis=45s", &config.lease_ms, 45000},
		{"--lease-millis=2 min", &config.lease_ms, 120000},
		{"--retention-millis=2h", &config.retention_ms, 7200000},
		{"--events-retention-millis=30d", &config.events_retention_ms, INT64_C(2592000000)},
		{"--max-message-bytes=64kB", &config.max_message_bytes, 65536},
		{"--max-message-bytes=16mb", &config.max_message_bytes, 16777216},
		{"--max-request-bytes=1GB", &config.max_request_bytes, 1073741824},
		{"--max-message-bytes=2048B", &config.max_message_bytes, 2048},
		{"--memory-threshold=0.75", &config.memory_threshold, 750},
		{"--log-level=WARNING", &config.log_level, LOG_LEVEL_WARN},
	};
	struct wig_error err;

	(void) state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
	{
		if (load(&err, 1, good[i].flag) != CONFIG_RUN || *good[i].slot != good[i].value)
			fail_msg("%s gave %lld, not %lld: %s", good[i].flag, (long long) *good[i].slot,
					 (long long) good[i].value, err.message);
	}
	refused(&err, load(&err, 1, "--lease-millis=1MB"), "'MB' is no unit", "ms, s, min, h, d");
	refused(&err, load(&err, 1, "--max-message-bytes=4s"), "'s' is no unit", "B, kB, MB, GB");
	refused(&err, load(&err, 1, "--port=8080ms"), "--port", "not a whole number");
	refused(&err, load(&err, 1, "--lease-millis=2d"), "172800000", "from 100 to 86400000 ms");
	refused(&err, load(&err, 1, "--lease-millis=9223372036854775807d"), "--lease-millis", "not a whole number");
	refused(&err, load(&err, 1, "--lease-millis=s"), "--lease-millis", "not a whole number");
	refused(&err, load(&err, 1, "--memory-threshold=0"), "--memory-threshold", "from 0.01 to 1");
	refused(&err, load(&err, 1, "--memory-threshold=1.5"), "--memory-threshold", "from 0.01 to 1");
	refused(&err, load(&err, 1, "--memory-threshold=nan"), "--memory-threshold", "from 0.01 to 1");
}

/* Only what is given goes to the databases, as PostgreSQL takes it. */
static void
pushed_settings(void **state)
{
	struct buf	out = BUF_INIT;
	struct wig_error err;

	(void) state;
	assert_int_equal(load(&err, 1, "--port=1"), CONFIG_RUN);
	assert_false(config_pushed(&out));
	setenv("WIGGLE_HOUSEKEEPING_BATCH", "500", 1);
	setenv("WIGGLE_RECORD_STEP_IO", "FALSE", 1);
	assert_int_equal(load(&err, 1, "--retention-millis=2h"), CONFIG_RUN);
	buf_reset(&out);
	assert_true(config_pushed(&out));
	assert_string_equal(buf_cstr(&out), "{\"wiggle.clock_batch\":\"500\",\"wiggle.retention\":\"7200000ms\","
						"\"wiggle.record_step_io\":\"false\"}");
	refused(&err, load(&err, 1, "--retention-millis=1000"), "--retention-millis", "from 60000");
	buf_free(&out);
}

static void
values_without_secrets(void **state)
{
	static const char *const secrets[][3] = {
		{"WIGGLE_JDBC_URL", "postgresql://u:hunter2@h:5432/db?sslmode=require", "postgresql://u:***@h:5432/db?sslmode=require"},
		{"WIGGLE_JDBC_URL", "jdbc:postgresql://h/db?user=u&password=hunter2&x=1", "jdbc:postgresql://h/db?user=u&password=***&x=1"},
		{"WIGGLE_JDBC_URL", "postgresql://u:hunt/hunter2,x@h/db", "postgresql://u:***@h/db"},
		{"WIGGLE_JDBC_URL", "jdbc:postgresql://h/db?PASSWORD=a,hunter2", "jdbc:postgresql://h/db?password=***"},
		{"WIGGLE_JDBC_URL", "jdbc:postgresql://h/db", "jdbc:postgresql://h/db"},
		{"WIGGLE_JDBC_REPLICA_URLS", "postgresql://u:hunter2@a/d,postgresql://u:hunter2@b/d", "postgresql://u:***@a/d,postgresql://u:***@b/d"},
		{"WIGGLE_JDBC_PASSWORD", "hunter2", "***"},
		{"WIGGLE_STORAGE_TOPOLOGY", " {\"password\":\"hunter2\"}", "(a document of 23 bytes)"},
		{"WIGGLE_STORAGE_TOPOLOGY", "/etc/wiggle/topology.json", "/etc/wiggle/topology.json"},
	};
	struct buf	out = BUF_INIT;
	struct wig_error err;

	(void) state;
	for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++)
	{
		setenv(secrets[i][0], secrets[i][1], 1);
		assert_int_equal(load(&err, 0), CONFIG_RUN);
		for (size_t s = 0; s < nsettings; s++)
		{
			char		name[SETTING_NAME_MAX];

			setting_variable(&settings[s], name);
			buf_reset(&out);
			config_value(&settings[s], &out);
			assert_null(strstr(buf_cstr(&out), "hunter2"));
			if (strcmp(name, secrets[i][0]) == 0)
				assert_string_equal(buf_cstr(&out), secrets[i][2]);
		}
		unsetenv(secrets[i][0]);
	}
	buf_free(&out);
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
		cmocka_unit_test_setup(service_links, clean_environment),
		cmocka_unit_test_setup(variables_of_wiggles_own_server, clean_environment),
		cmocka_unit_test_setup(units, clean_environment),
		cmocka_unit_test_setup(pushed_settings, clean_environment),
		cmocka_unit_test_setup(values_without_secrets, clean_environment),
		cmocka_unit_test_setup(bounds_that_need_each_other, clean_environment),
		cmocka_unit_test_setup(help_names_every_setting_once, clean_environment),
		cmocka_unit_test_setup(given_settings, clean_environment),
	};

	return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
