/*
 * test_topology.c
 *	  Topology documents: what is read, what is refused and how it is said.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "topology.h"

static const char *
variable(const char *name)
{
	if (strcmp(name, "DB_USER") == 0)
		return "ada";
	if (strcmp(name, "DB_PASSWORD") == 0)
		return "s3cret${NAME}";
	if (strcmp(name, "EMPTY") == 0)
		return "";
	return NULL;
}

#define SHARD(id, state, roles, host) \
	"{\"id\":" id ",\"state\":\"" state "\",\"roles\":[" roles "],\"primary\":{\"url\":\"jdbc:postgresql://" host ":5432/wiggle\"}}"
#define HOME "\"instances\",\"home\""
#define TWO SHARD("0", "active", HOME, "a") "," SHARD("1", "ACTIVE", "\"Instances\"", "b")
#define WEIGHTS(w) "[{\"id\":1,\"activeFrom\":\"2026-10-01T00:00:00Z\",\"weights\":" w "}]"
#define DOCUMENT(shards, generations) "{\"shards\":[" shards "],\"generations\":" generations "}"

static struct topology *
parse(const char *text, struct wig_error *err)
{
	return topology_parse(text, strlen(text), variable, err);
}

/* The document is refused and the message holds the words. */
static void
refuses(const char *text, const char *words)
{
	struct wig_error err = {.message = ""};
	struct topology *topology = parse(text, &err);

	if (topology != NULL)
		fail_msg("accepted, although it should say \"%s\": %s", words, text);
	if (strstr(err.message, words) == NULL)
		fail_msg("said \"%s\" instead of \"%s\"", err.message, words);
}

static void
the_tutorial(void **state)
{
	struct wig_error err;
	struct topology *t = parse(
		"{\"defaults\":{\"user\":\"${DB_USER}\",\"password\":\"${DB_PASSWORD}\",\"pool\":16},\"shards\":["
		TWO "],\"generations\":" WEIGHTS("{\"0\":1,\"1\":3}") "}", &err);

	(void) state;
	assert_non_null(t);
	assert_int_equal(t->nshards, 2);
	assert_int_equal(t->home, 0);
	assert_false(t->single);
	assert_string_equal(t->shards[0].user, "ada");
	assert_string_equal(t->shards[1].password, "s3cret${NAME}");
	assert_int_equal(t->shards[1].pool, 16);
	assert_string_equal(t->shards[1].url, "postgresql://b:5432/wiggle");
	assert_int_equal(t->shards[0].roles, ROLE_INSTANCES | ROLE_HOME | ROLE_AUTH);
	assert_int_equal(t->shards[1].roles, ROLE_INSTANCES);
	assert_int_equal(t->generations[0].nweights, 2);
	assert_int_equal(t->generations[0].weights[1].shard, 1);
	assert_int_equal(t->generations[0].weights[1].weight, 3);
	assert_true(t->generations[0].active_from_ms == INT64_C(1790812800000));
	assert_int_equal(topology_find(t, 1), 1);
	assert_int_equal(topology_find(t, 2), -1);
	topology_free(t);
}

static void
own_settings_win_over_the_shards_and_those_over_defaults(void **state)
{
	struct wig_error err;
	struct topology *t = parse(
		"{\"defaults\":{\"user\":\"d\",\"password\":\"dp\",\"pool\":3},\"shards\":[{\"id\":7,\"state\":\"active\","
		"\"roles\":[\"home\",\"instances\"],\"user\":\"s\",\"pool\":4,\"primary\":{\"url\":\"postgresql://h/d\",\"user\":\"p\"}}],"
		"\"generations\":" WEIGHTS("{\"7\":1}") "}", &err);

	(void) state;
	assert_non_null(t);
	assert_string_equal(t->shards[0].user, "p");
	assert_string_equal(t->shards[0].password, "dp");
	assert_int_equal(t->shards[0].pool, 4);
	topology_free(t);
}

static void
structure_is_refused(void **state)
{
	(void) state;
	refuses("[]", "must be a JSON object");
	refuses("{\"shards\":[],}", "the storage topology is not valid JSON: line 1");
	refuses("\xef\xbb\xbf{}", "byte order mark");
	refuses("{}", "the topology lists no shards");
	refuses("{\"shrads\":[]}", "unknown key 'shrads'; did you mean 'shards'?");
	refuses("{\"shards\":[{}]}", "a shard needs an integer id");
	refuses("{\"shards\":[{\"id\":\"0\"}]}", "a shard needs an integer id");
	refuses("{\"shards\":[{\"id\":-3}]}", "shard ids are not negative: -3");
	refuses("{\"shards\":[{\"id\":4294967296}]}", "shard id 4294967296 is over");
	refuses("{\"shards\":[{\"id\":2}]}", "shard 2 state is missing");
	refuses("{\"shards\":[{\"id\":2,\"state\":\"on\"}]}", "shard 2 state 'on' is not one of [");
	refuses("{\"shards\":[{\"id\":2,\"state\":\"active\"}]}", "shard 2 has no roles");
	refuses("{\"shards\":[{\"id\":2,\"state\":\"active\",\"roles\":[\"homes\"]}]}", "shard 2 role 'homes' is not one of [");
	refuses("{\"shards\":[{\"id\":2,\"state\":\"active\",\"roles\":[\"home\"]}]}", "shard 2 primary needs a url");
	refuses("{\"shards\":[{\"id\":2,\"state\":\"active\",\"roles\":[\"home\"],\"replicas\":[{\"url\":\"postgresql://h/d\"}]}]}",
			"shard 2 lists replicas but has no primary");
	refuses("{\"shards\":[{\"id\":2,\"state\":\"active\",\"roles\":[\"home\"],\"primary\":{\"url\":3}}]}",
			"shard 2 primary url must be a string");
	refuses("{\"shards\":[{\"id\":2,\"state\":\"active\",\"roles\":[\"home\"],\"primary\":{\"url\":\"postgresql://h/d\",\"pol\":1}}]}",
			"shard 2 primary has the unknown key 'pol'; did you mean 'pool'?");
	refuses("{\"shards\":[{\"id\":2,\"state\":\"active\",\"roles\":[\"home\"],\"pool\":0,\"primary\":{\"url\":\"postgresql://h/d\"}}]}",
			"shard 2 pool must be a positive integer up to 1000, got 0");
	refuses("{\"shards\":[{\"id\":2,\"state\":\"active\",\"roles\":[\"home\"],\"maxReplicaLagMillis\":-1,\"primary\":{\"url\":\"postgresql://h/d\"}}]}",
			"shard 2 maxReplicaLagMillis must be a non-negative integer, got -1");
	refuses("{\"shards\":[{\"id\":2,\"state\":\"active\",\"roles\":[\"home\"],\"primary\":{\"url\":\"postgresql://${NOPE}/d\"}}]}",
			"shard 2 primary url refers to ${NOPE}, which is not set");
	refuses("{\"shards\":[{\"id\":2,\"state\":\"active\",\"roles\":[\"home\"],\"primary\":{\"url\":\"postgresql://${NO\"}}]}",
			"shard 2 primary url has a '${' without");
	refuses(DOCUMENT(SHARD("0", "active", HOME, "a") "," SHARD("0", "active", HOME, "b"), "[]"), "shard 0 is listed twice");
}

static void
shards_must_agree(void **state)
{
	(void) state;
	refuses(DOCUMENT(SHARD("0", "active", "\"instances\"", "a"), "[]"), "exactly one shard carries the home role; 0 do");
	refuses(DOCUMENT(SHARD("0", "active", HOME, "a") "," SHARD("1", "active", HOME, "b"), "[]"), "exactly one shard carries the home role; 2 do");
	refuses(DOCUMENT(SHARD("0", "draining", HOME, "a"), "[]"), "the home shard is 0; it stays ACTIVE");
	refuses(DOCUMENT(SHARD("0", "active", "\"home\"", "a"), "[]"), "no shard carries the instances role");
	refuses(DOCUMENT(SHARD("0", "active", HOME, "a") "," SHARD("1", "active", "\"instances\"", "a"), "[]"),
			"shard 0 and shard 1 have the same primary url");
}

static void
generations_are_checked(void **state)
{
	(void) state;
	refuses(DOCUMENT(TWO, "[]"), "the topology has no generations, so nothing says where to mint");
	refuses(DOCUMENT(TWO, "[{\"activeFrom\":\"2026-10-01T00:00:00Z\"}]"), "a generation needs an integer id");
	refuses(DOCUMENT(TWO, "[{\"id\":1,\"activeFrom\":\"yesterday\",\"weights\":{\"0\":1}}]"), "generation 1 needs activeFrom as an ISO-8601 instant");
	refuses(DOCUMENT(TWO, WEIGHTS("{}")), "generation 1 gives no shard a positive weight");
	refuses(DOCUMENT(TWO, WEIGHTS("{\"0\":0,\"1\":0}")), "generation 1 gives no shard a positive weight");
	refuses(DOCUMENT(TWO, WEIGHTS("{\"zero\":1}")), "generation 1 weighs 'zero', which is not a shard id");
	refuses(DOCUMENT(TWO, WEIGHTS("{\"0\":-1}")), "gives shard 0 a weight that is not a non-negative integer");
	refuses(DOCUMENT(TWO, WEIGHTS("{\"0\":0.5}")), "gives shard 0 a weight that is not a non-negative integer");
	refuses(DOCUMENT(TWO, WEIGHTS("{\"0\":1000000000}")), "gives shard 0 a weight that is not a non-negative integer");
	refuses(DOCUMENT(TWO, WEIGHTS("{\"5\":1}")), "generation 1 weighs shard 5, which is not listed");
	refuses(DOCUMENT(TWO, WEIGHTS("{\"1\":1,\"01\":1}")), "weighs shard 01 twice");
	refuses(DOCUMENT(TWO "," SHARD("2", "draining", "\"instances\"", "c"), WEIGHTS("{\"2\":1}")), "generation 1 weighs shard 2, which is DRAINING");
	refuses(DOCUMENT(TWO "," SHARD("2", "active", "\"search\"", "c"), WEIGHTS("{\"2\":1}")), "generation 1 weighs shard 2, which holds no instances");
	refuses(DOCUMENT(TWO, "[{\"id\":2,\"activeFrom\":\"2026-10-01T00:00:00Z\",\"weights\":{\"0\":1}},"
					 "{\"id\":2,\"activeFrom\":\"2026-11-01T00:00:00Z\",\"weights\":{\"0\":1}}]"),
			"generation 2 must come after generation 2 in both id and activeFrom");
	refuses(DOCUMENT(TWO, "[{\"id\":1,\"activeFrom\":\"2026-10-01T00:00:00Z\",\"weights\":{\"0\":1}},"
					 "{\"id\":2,\"activeFrom\":\"2026-10-01T00:00:00Z\",\"weights\":{\"0\":1}}]"),
			"generation 2 must come after generation 1");
}

/* A shard may drain although an older generation still names it. */
static void
history_may_name_what_drains(void **state)
{
	struct wig_error err;
	struct topology *t = parse(
		DOCUMENT(SHARD("0", "active", HOME, "a") "," SHARD("1", "draining", "\"instances\"", "b"),
				 "[{\"id\":1,\"activeFrom\":\"2026-10-01T00:00:00Z\",\"weights\":{\"0\":1,\"1\":1}},"
				 "{\"id\":2,\"activeFrom\":\"2026-11-01T00:00:00Z\",\"weights\":{\"0\":1}}]"), &err);

	(void) state;
	assert_non_null(t);
	assert_true(topology_serves(&t->shards[1]));
	topology_free(t);
}

static void
sources(void **state)
{
	struct wig_error err;
	struct topology_source source = {.url = "jdbc:postgresql://h:1/d", .variable = variable};
	struct topology *t = topology_read(&source, &err);

	(void) state;
	assert_non_null(t);
	assert_true(t->single);
	assert_int_equal(t->shards[0].id, 0);
	assert_string_equal(t->shards[0].url, "postgresql://h:1/d");
	topology_free(t);

	source.document = "{}";
	assert_null(topology_read(&source, &err));
	assert_non_null(strstr(err.message, "both WIGGLE_STORAGE_TOPOLOGY and WIGGLE_JDBC_URL are set"));
	source.document = source.url = "";
	assert_null(topology_read(&source, &err));
	assert_non_null(strstr(err.message, "no database is named"));
	source.document = "/nonexistent/topology.json";
	assert_null(topology_read(&source, &err));
	assert_non_null(strstr(err.message, "/nonexistent/topology.json"));
	source.document = "  \n{\"shards\":3}";
	assert_null(topology_read(&source, &err));
	assert_non_null(strstr(err.message, "lists no shards"));
}

static void
url(const char *given, const char *wanted)
{
	struct wig_error err = {.message = ""};
	char	   *got = topology_url(given, "url", &err);

	if (got == NULL)
		fail_msg("%s was refused: %s", given, err.message);
	assert_string_equal(got, wanted);
	free(got);
}

static void
url_refused(const char *given, const char *words)
{
	struct wig_error err = {.message = ""};

	assert_null(topology_url(given, "url", &err));
	if (strstr(err.message, words) == NULL)
		fail_msg("said \"%s\" instead of \"%s\"", err.message, words);
}

static void
urls(void **state)
{
	(void) state;
	url("jdbc:postgresql://h:5432/d", "postgresql://h:5432/d");
	url("postgresql://u:p@h/d?sslmode=require", "postgresql://u:p@h/d?sslmode=require");
	url("postgres://h/d", "postgresql://h/d");
	url("jdbc:postgresql://h/d?ssl=true&prepareThreshold=0&connectTimeout=3", "postgresql://h/d?sslmode=require&connect_timeout=3");
	url("jdbc:postgresql://h/d?reWriteBatchedInserts=true", "postgresql://h/d");
	url("postgresql:///d?host=/tmp", "postgresql:///d?host=/tmp");
	url_refused("mysql://u:secret@h/d", "must begin with postgresql:// or jdbc:postgresql://, not with mysql://");
	url_refused("h/d", "must begin with postgresql:// or jdbc:postgresql://");
	url_refused("jdbc:postgres://h/d", ", not with jdbc:postgres://");
	url_refused("postgresql://h/d?sslmod=require", "unknown parameter 'sslmod' (did you mean 'sslmode'?)");
	url_refused("jdbc:postgresql://h/d?currentSchema=x", "which the proxy decides itself");
}

static void
instants(void **state)
{
	static const struct
	{
		const char *text;
		int64_t		ms;
	}			good[] = {
		{"1970-01-01T00:00:00Z", 0},
		{"2026-10-01T00:00:00Z", INT64_C(1790812800000)},
		{"2026-10-01T00:00Z", INT64_C(1790812800000)},
		{"2026-10-01T02:00:00.5+02:00", INT64_C(1790812800500)},
		{"2028-02-29T23:59:59.123456Z", INT64_C(1835481599123)},
		{"2000-03-01T00:00:00-0130", INT64_C(951874200000)},
	};
	static const char *const bad[] = {
		"", "2026-10-01", "2026-13-01T00:00:00Z", "2026-02-29T00:00:00Z", "2026-10-01T24:00:00Z",
		"2026-10-01T00:00:00", "2026-10-01T00:00:00Zulu", "2026-10-01 00:00:00Z", "2026-10-01T00:00:60Z",
		"2026-10-01T00:00:00+1", "26-10-01T00:00:00Z", "2026-10-01T00:00:00Z                          ",
	};
	int64_t		ms;

	(void) state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
	{
		if (!topology_instant(good[i].text, &ms))
			fail_msg("%s was refused", good[i].text);
		assert_true(ms == good[i].ms);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
	{
		if (topology_instant(bad[i], &ms))
			fail_msg("%s was accepted", bad[i]);
	}
}

/* Every prefix of a good document is refused, and nothing is read past its end. */
static void
truncated_documents(void **state)
{
	static const char text[] = DOCUMENT(TWO, WEIGHTS("{\"0\":1,\"1\":1}"));
	struct wig_error err;

	(void) state;
	for (size_t len = 0; len < sizeof(text) - 1; len++)
	{
		char	   *copy = malloc(len + 1);

		memcpy(copy, text, len);
		assert_null(topology_parse(copy, len, variable, &err));
		free(copy);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_tutorial),
		cmocka_unit_test(own_settings_win_over_the_shards_and_those_over_defaults),
		cmocka_unit_test(structure_is_refused),
		cmocka_unit_test(shards_must_agree),
		cmocka_unit_test(generations_are_checked),
		cmocka_unit_test(history_may_name_what_drains),
		cmocka_unit_test(sources),
		cmocka_unit_test(urls),
		cmocka_unit_test(instants),
		cmocka_unit_test(truncated_documents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
