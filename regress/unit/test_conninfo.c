/*
 * test_conninfo.c
 *	  What libpq itself says of URLs and of the parameters that it takes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "conninfo.h"

#define HINT "; write a '%' that stands for itself as %25, an IPv6 address in brackets, and each parameter as name=value"

static bool
knows(const char *name)
{
	for (const char *const *known = conninfo_parameters(); *known != NULL; known++)
	{
		if (strcmp(*known, name) == 0)
			return true;
	}
	return false;
}

static void
parameters(void **state)
{
	(void) state;
	assert_true(knows("sslmode"));
	assert_true(knows("ssl_min_protocol_version"));
	assert_true(knows("ssl_max_protocol_version"));
	assert_true(knows("requirepeer"));
	assert_true(knows("user"));
	assert_false(knows("sslmod"));
	assert_false(knows("replication"));

	/* newer than the oldest libpq that will do: as the one in use has it */
	assert_true(knows("require_auth") == (PQlibVersion() >= 160000));
	assert_true(knows("sslcertmode") == (PQlibVersion() >= 160000));
}

static void
refuses(struct topology *topology, const char *message)
{
	struct wig_error err = {.message = "accepted"};

	assert_false(conninfo_check(topology, &err));
	assert_string_equal(err.message, message);
}

static void
urls(void **state)
{
	struct topology_replica replicas[] = {{.url = (char *) "postgresql://r/d"}, {.url = (char *) "postgresql://[::1/hunter2"}};
	struct topology_shard shards[] = {
		{.id = 0, .roles = ROLE_HOME, .url = (char *) "postgresql://h/d"},
		{.id = 7, .roles = ROLE_INSTANCES, .state = SHARD_RETIRED, .url = (char *) "postgresql://%zzhunter2@h/d"},
	};
	struct topology topology = {.shards = shards, .nshards = 2};
	struct wig_error err;

	(void) state;
	/* nobody connects to a retired one */
	assert_true(conninfo_check(&topology, &err));
	shards[1].state = SHARD_DRAINING;
	refuses(&topology, "shard 7 primary url is not a valid PostgreSQL URL" HINT);
	shards[0].replicas = replicas;
	shards[0].nreplicas = 2;
	refuses(&topology, "shard 0 replica 2 url is not a valid PostgreSQL URL" HINT);
	topology.single = true;
	topology.nshards = 1;
	refuses(&topology, "WIGGLE_JDBC_REPLICA_URLS, replica 2, is not a valid PostgreSQL URL" HINT);
	shards[0].url = (char *) "postgresql://%zz@h/d";
	refuses(&topology, "WIGGLE_JDBC_URL is not a valid PostgreSQL URL" HINT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parameters),
		cmocka_unit_test(urls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
