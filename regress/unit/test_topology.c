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

/* As if libpq knew these alone. */
static const char *const parameters[] = {
	"application_name", "connect_timeout", "host", "options", "password", "require_auth", "ssl_min_protocol_version",
	"sslmode", "load_balance_hosts", "oauth_issuer", "user", NULL
};

#define SHARD(id, state, roles, host) \
	"{\"id\":" id ",\"state\":\"" state "\",\"roles\":[" roles "],\"primary\":{\"url\":\"jdbc:postgresql://" host ":5432/wiggle\"}}"
#define HOME "\"instances\",\"home\""
#define TWO SHARD("0", "active", HOME, "a") "," SHARD("1", "ACTIVE", "\"Instances\"", "b")
#define WEIGHTS(w) "[{\"id\":1,\"activeFrom\":\"2026-10-01T00:00:00Z\",\"weights\":" w "}]"
#define DOCUMENT(shards, generations) "{\"shards\":[" shards "],\"generations\":" generations "}"

static struct topology *
parse(const char *text, struct wig_error *err)
{
	return topology_parse(text, strlen(text), variable, parameters, err);
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

/* One shard with this text behind its roles, so that the rest of the document is beside the point. */
#define IN_SHARD(text) "{\"shards\":[{\"id\":2,\"state\":\"active\",\"roles\":[\"home\"]," text "}]}"
#define PRIMARY(text) IN_SHARD("\"primary\":{\"url\":\"postgresql://h/d\"" text "}")
#define IN_REPLICA(text) IN_SHARD("\"primary\":{\"url\":\"postgresql://h/d\"},\"replicas\":[" text "]")
#define WITH_URL(text) IN_SHARD("\"primary\":{\"url\":\"" text "\"}")
#define GENERATION(text) DOCUMENT(TWO, "[{\"id\":1," text "}]")

/* Each is refused with exactly this message. */
static const struct
{
	const char *document;
	const char *message;
}			refusals[] = {
	/* the text */
	{"[]", "the storage topology must be a JSON object like {\"shards\": [...], \"generations\": [...]}, got an array"},
	{"", "the storage topology is not valid JSON: line 1, column 0: '[' or '{' expected near end of file"},
	{"{\"shards\":[],}", "the storage topology is not valid JSON: line 1, column 14: string or '}' expected"},
	{"{\"password\":\"hunter2\" \"x\"}", "the storage topology is not valid JSON: line 1, column 25: '}' expected"},
	{"{\"password\" \"hunter2\"}", "the storage topology is not valid JSON: line 1, column 21: ':' expected"},
	{"{\"password\": hunter2}", "the storage topology is not valid JSON: line 1, column 19: invalid token"},
	{"{\"shards\":[],\"shards\":[]}", "the storage topology is not valid JSON: line 1, column 21: duplicate object key"},
	{"\xef\xbb\xbf{}", "the storage topology is not valid JSON: it begins with a byte order mark; remove it"},
	{"{} {}", "the storage topology is not valid JSON: line 1, column 4: end of file expected"},

	/* its parts */
	{"{}", "the topology lists no shards; give each database an entry in the array shards"},
	{"{\"shards\":[]}", "the topology lists no shards; give each database an entry in the array shards"},
	{"{\"shards\":{}}", "shards must be an array of objects, got an object"},
	{"{\"shrads\":[]}", "the storage topology has the unknown key 'shrads'; did you mean 'shards'?"},
	{"{\"comment\":1}", "the storage topology has the unknown key 'comment'; remove it"},
	{"{\"sh\\nards\":1}", "the storage topology has the unknown key 'sh\\nards'; did you mean 'shards'?"},
	{"{\"defaults\":[]}", "defaults must be an object like {\"pool\": 12}, got an array"},
	{"{\"defaults\":{\"url\":\"x\"}}", "defaults has the key 'url', which is one of a shard's primary or of a replica; move it there"},
	{"{\"defaults\":{\"pool\":0}}", "defaults pool must be a positive integer up to 1000, got 0"},
	{"{\"defaults\":{\"replicapool\":8}}", "defaults has the unknown key 'replicapool'; did you mean 'replicaPool'?"},
	{"{\"defaults\":{\"replicaPool\":\"8\"}}", "defaults replicaPool must be a positive integer up to 1000, got '8'"},
	{"{\"defaults\":{\"password\":\"${NOPE}\"}}", "defaults password refers to ${NOPE}, which is not set; set it in the environment, or correct the name"},

	/* a shard */
	{"{\"shards\":[3]}", "a shard needs an integer id, but entry 1 of shards is a number; write it as an object with id, state, roles and primary"},
	{"{\"shards\":[\"postgresql://u:hunter2@h/d\"]}", "a shard needs an integer id, but entry 1 of shards is a string; write it as an object with id, state, roles and primary"},
	{"{\"shards\":\"postgresql://u:hunter2@h/d\"}", "shards must be an array of objects, got a string"},
	{"{\"shards\":[{}]}", "a shard needs an integer id, got none in entry 1 of shards; give it a number from 0 to 999999999 that no other has"},
	{DOCUMENT(TWO ",{\"state\":\"active\"}", "[]"), "a shard needs an integer id, got none in entry 3 of shards; give it a number from 0 to 999999999 that no other has"},
	{"{\"shards\":[{\"id\":\"0\"}]}", "a shard needs an integer id, got '0' in entry 1 of shards; give it a number from 0 to 999999999 that no other has"},
	{"{\"shards\":[{\"id\":1.5}]}", "a shard needs an integer id, got 1.5 in entry 1 of shards; give it a number from 0 to 999999999 that no other has"},
	{"{\"shards\":[{\"id\":-3}]}", "shard ids are not negative: -3, in entry 1 of shards; take one from 0 to 999999999"},
	{"{\"shards\":[{\"id\":4294967296}]}", "shard ids go up to 999999999: 4294967296, in entry 1 of shards; take a smaller one"},
	{"{\"shards\":[{\"id\":2,\"stat\":\"active\"}]}", "shard 2 has the unknown key 'stat'; did you mean 'state'?"},
	{"{\"shards\":[{\"id\":2}]}", "shard 2 state is missing; it is one of [ACTIVE, DRAINING, RETIRED]"},
	{"{\"shards\":[{\"id\":2,\"state\":\"on\"}]}", "shard 2 state 'on' is not one of [ACTIVE, DRAINING, RETIRED]"},
	{"{\"shards\":[{\"id\":2,\"state\":true}]}", "shard 2 state true is not one of [ACTIVE, DRAINING, RETIRED]"},
	{"{\"shards\":[{\"id\":2,\"state\":\"active\"}]}", "shard 2 has no roles; give it some of [instances, home, auth, search]"},
	{"{\"shards\":[{\"id\":2,\"state\":\"active\",\"roles\":[]}]}", "shard 2 has no roles; give it some of [instances, home, auth, search]"},
	{"{\"shards\":[{\"id\":2,\"state\":\"active\",\"roles\":\"home\"}]}", "shard 2 roles must be an array like [\"instances\"], got 'home'"},
	{"{\"shards\":[{\"id\":2,\"state\":\"active\",\"roles\":[\"homes\"]}]}", "shard 2 role 'homes' is not one of [instances, home, auth, search]"},
	{"{\"shards\":[{\"id\":2,\"state\":\"active\",\"roles\":[{}]}]}", "shard 2 role an object is not one of [instances, home, auth, search]"},

	/* its settings */
	{IN_SHARD("\"user\":3"), "shard 2 user must be a string, got 3; put it in quotes, or leave it out"},
	{IN_SHARD("\"password\":null"), "shard 2 password must be a string, got null; put it in quotes, or leave it out"},
	{IN_SHARD("\"password\":4711"), "shard 2 password must be a string, got a number; put it in quotes, or leave it out"},
	{IN_SHARD("\"url\":\"postgresql://u:hunter2@h/d\""), "shard 2 has the key 'url', which is one of a shard's primary or of a replica; move it there"},
	{IN_SHARD("\"weights\":{}"), "shard 2 has the key 'weights', which is one of a generation; move it there"},
	{IN_SHARD("\"ulr\":\"x\""), "shard 2 has the unknown key 'ulr'; remove it"},
	{IN_SHARD("\"password\":\"a\\u0000b\""), "the storage topology is not valid JSON: line 1, column 74: \\u0000 is not allowed without JSON_ALLOW_NUL"},
	{IN_SHARD("\"pool\":0"), "shard 2 pool must be a positive integer up to 1000, got 0"},
	{IN_SHARD("\"pool\":1001"), "shard 2 pool must be a positive integer up to 1000, got 1001"},
	{IN_SHARD("\"pool\":2.5"), "shard 2 pool must be a positive integer up to 1000, got 2.5"},
	{IN_SHARD("\"pool\":\"${DB_USER}\""), "shard 2 pool must be a positive integer up to 1000, got '${DB_USER}'"},
	{IN_SHARD("\"replicaPool\":-1"), "shard 2 replicaPool must be a positive integer up to 1000, got -1"},
	{IN_SHARD("\"maxReplicaLagMillis\":-1"), "shard 2 maxReplicaLagMillis must be a non-negative integer up to 2147483647, got -1"},
	{IN_SHARD("\"maxReplicaLagMillis\":\"5s\""), "shard 2 maxReplicaLagMillis must be a non-negative integer up to 2147483647, got '5s'"},
	{IN_SHARD("\"replicaFallback\":\"standby\""), "shard 2 replicaFallback 'standby' is not one of [primary, fail]"},

	/* its primary */
	{"{\"shards\":[{\"id\":2,\"state\":\"active\",\"roles\":[\"home\"]}]}", "shard 2 primary needs a url, like {\"url\": \"postgresql://host:5432/database\"}"},
	{IN_SHARD("\"primary\":{}"), "shard 2 primary needs a url, like \"postgresql://host:5432/database\""},
	{WITH_URL(" "), "shard 2 primary needs a url, like \"postgresql://host:5432/database\""},
	{WITH_URL("${EMPTY}"), "shard 2 primary needs a url, like \"postgresql://host:5432/database\""},
	{IN_SHARD("\"primary\":{\"url\":3}"), "shard 2 primary url must be a string, got 3; put it in quotes, or leave it out"},
	{PRIMARY(",\"pol\":1"), "shard 2 primary has the unknown key 'pol'; did you mean 'pool'?"},
	{PRIMARY(",\"pool\":[]"), "shard 2 primary pool must be a positive integer up to 1000, got an array"},
	{PRIMARY(",\"replicaPool\":1"), "shard 2 primary has the key 'replicaPool', which is one of the shard or of defaults; move it there"},
	{PRIMARY(",\"maxReplicaLagMillis\":1"), "shard 2 primary has the key 'maxReplicaLagMillis', which is one of the shard or of defaults; move it there"},
	{PRIMARY(",\"user\":\"${NOPE}\""), "shard 2 primary user refers to ${NOPE}, which is not set; set it in the environment, or correct the name"},
	{WITH_URL("postgresql://${NOPE}/d"), "shard 2 primary url refers to ${NOPE}, which is not set; set it in the environment, or correct the name"},
	{WITH_URL("postgresql://${NO"), "shard 2 primary url has a '${' without a variable's name and a '}' behind it; a '${' that stands for itself goes into a variable"},
	{PRIMARY(",\"password\":\"hun${ter 2}\""), "shard 2 primary password has a '${' without a variable's name and a '}' behind it; a '${' that stands for itself goes into a variable"},
	{WITH_URL("h/d"), "shard 2 primary url must begin with postgresql:// or jdbc:postgresql://"},
	{WITH_URL("jdbc:mysql://u:hunter2@h/d"), "shard 2 primary url must begin with postgresql:// or jdbc:postgresql://, not with jdbc:mysql://"},
	{WITH_URL("u:hunter2://h"), "shard 2 primary url must begin with postgresql:// or jdbc:postgresql://"},
	{WITH_URL("postgresql://h/d?sslmod=require"), "shard 2 primary url has the unknown parameter 'sslmod' (did you mean 'sslmode'?); remove it or correct it"},
	{WITH_URL("postgresql://h/d?password=hun&ter2"), "shard 2 primary url has an unknown parameter, or a password in which '?', '&', '@', '/' or ':' are not written as %3F, %26, %40, %2F, %3A; better use the keys user and password"},
	{WITH_URL("postgresql://u:hun?ter2@h/d"), "shard 2 primary url has an unknown parameter, or a password in which '?', '&', '@', '/' or ':' are not written as %3F, %26, %40, %2F, %3A; better use the keys user and password"},
	{WITH_URL("postgresql://u:hun/ter2@h/d"), "shard 2 primary url has a user or password in which '@' or '/' is not written as %40 or %2F; better use the keys user and password"},
	{WITH_URL("jdbc:postgresql://u:hun@ter2@h:1/d"), "shard 2 primary url has a user or password in which '@' or '/' is not written as %40 or %2F; better use the keys user and password"},
	{WITH_URL("postgresql://u@x:hunter2@h?sslmode=require"), "shard 2 primary url has a user or password in which '@' or '/' is not written as %40 or %2F; better use the keys user and password"},
	{WITH_URL("postgresql://h/d?target_session_attrs=any"), "shard 2 primary url sets the parameter 'target_session_attrs', which the proxy decides itself; remove it"},

	/* its replicas */
	{IN_SHARD("\"replicas\":[{\"url\":\"postgresql://h/d\"}]"), "shard 2 lists replicas but has no primary; give it one, or remove the replicas"},
	{IN_SHARD("\"replicas\":{}"), "shard 2 replicas must be an array of objects with a url, got an object"},
	{IN_REPLICA("{\"url\":\"postgresql://r/d\"},3"), "shard 2 replica 2 must be an object with a url, got a number"},
	{IN_REPLICA("{}"), "shard 2 replica 1 needs a url, like \"postgresql://host:5432/database\""},
	{IN_REPLICA("{\"url\":\"postgresql://${NOPE}/d\"}"), "shard 2 replica 1 url refers to ${NOPE}, which is not set; set it in the environment, or correct the name"},
	{IN_REPLICA("{\"url\":\"http://r/d\"}"), "shard 2 replica 1 url must begin with postgresql:// or jdbc:postgresql://, not with http://"},
	{IN_REPLICA("{\"url\":\"postgresql://r/d\",\"pool\":0}"), "shard 2 replica 1 pool must be a positive integer up to 1000, got 0"},
	{IN_REPLICA("{\"url\":\"postgresql://r/d\",\"passwrod\":\"hunter2\"}"), "shard 2 replica 1 has the unknown key 'passwrod'; did you mean 'password'?"},
	{IN_REPLICA("{\"url\":\"postgresql://r/d\",\"replicaFallback\":\"fail\"}"), "shard 2 replica 1 has the key 'replicaFallback', which is one of the shard or of defaults; move it there"},
	{IN_REPLICA("1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17"), "shard 2 lists 17 replicas; up to 16 are used: remove some"},

	/* the shards together */
	{DOCUMENT(SHARD("0", "active", HOME, "a") "," SHARD("0", "active", HOME, "b"), "[]"), "shard 0 is listed twice, as entries 1 and 2 of shards; give one of them another id, or remove it"},
	{DOCUMENT(SHARD("0", "active", "\"instances\"", "a"), "[]"), "exactly one shard carries the home role; 0 do: add \"home\" to the roles of the one that keeps schedules and the list of shards"},
	{DOCUMENT(SHARD("0", "active", HOME, "a") "," SHARD("1", "active", HOME, "b"), "[]"), "exactly one shard carries the home role; 2 do, shard 1 the last of them: take \"home\" from the roles of all but one"},
	{DOCUMENT(SHARD("0", "active", HOME ",\"auth\"", "a") "," SHARD("1", "active", "\"auth\"", "b"), "[]"), "exactly one shard carries the auth role; 2 do, shard 1 the last of them: take \"auth\" from the roles of all but one"},
	{DOCUMENT(SHARD("0", "active", HOME, "a") "," SHARD("1", "draining", "\"instances\",\"auth\"", "b"), "[]"), "the auth role is shard 1's, which keeps the keys and roles of clients; it stays ACTIVE, but its state is DRAINING: give the role to another shard first"},
	{DOCUMENT(SHARD("0", "active", HOME, "a") "," SHARD("1", "retired", "\"instances\",\"auth\"", "b"), "[]"), "the auth role is shard 1's, which keeps the keys and roles of clients; it stays ACTIVE, but its state is RETIRED: give the role to another shard first"},
	{DOCUMENT(SHARD("7", "draining", HOME, "a"), "[]"), "the home shard is 7; it stays ACTIVE, but its state is DRAINING: set it to active"},
	{DOCUMENT(SHARD("0", "active", "\"home\"", "a"), "[]"), "no shard carries the instances role; add \"instances\" to the roles of each that is to hold instances and is not retired"},
	{DOCUMENT(SHARD("0", "active", "\"home\"", "a") "," SHARD("1", "retired", "\"instances\"", "b"), "[]"), "no shard carries the instances role; add \"instances\" to the roles of each that is to hold instances and is not retired"},
	{DOCUMENT(SHARD("0", "active", HOME, "a") "," SHARD("1", "active", "\"instances\"", "a"), "[]"),
	"shard 0 primary and shard 1 primary have the same url; each needs a database of its own"},
	{IN_SHARD("\"primary\":{\"url\":\"postgresql://h/d\"},\"replicas\":[{\"url\":\"postgresql://r/d\"},{\"url\":\"jdbc:postgresql://h/d\"}]},"
			  "{\"id\":3,\"state\":\"active\",\"roles\":[\"instances\"],\"primary\":{\"url\":\"postgresql://i/d\"}"),
	"shard 2 primary and shard 2 replica 2 have the same url; each needs a database of its own"},

	/* generations */
	{DOCUMENT(TWO, "[]"), "the topology has no generations, so nothing says where to mint; add \"generations\": [{\"id\": 1, \"activeFrom\": \"2026-10-01T00:00:00Z\", \"weights\": {\"0\": 1}}]"},
	{"{\"shards\":[" TWO "]}", "the topology has no generations, so nothing says where to mint; add \"generations\": [{\"id\": 1, \"activeFrom\": \"2026-10-01T00:00:00Z\", \"weights\": {\"0\": 1}}]"},
	{DOCUMENT(TWO, "{}"), "generations must be an array of objects, got an object"},
	{DOCUMENT(TWO, "[{\"activeFrom\":\"2026-10-01T00:00:00Z\"}]"), "a generation needs an integer id, got none in entry 1 of generations; give it a number greater than the one before has"},
	{DOCUMENT(TWO, "[[]]"), "a generation needs an integer id, but entry 1 of generations is an array; write it as an object with id, activeFrom and weights"},
	{GENERATION("\"state\":\"active\""), "generation 1 has the key 'state', which is one of a shard; move it there"},
	{DOCUMENT(TWO, "[{\"id\":\"1\"}]"), "a generation needs an integer id, got '1' in entry 1 of generations; give it a number greater than the one before has"},
	{GENERATION("\"activefrom\":\"2026-10-01T00:00:00Z\""), "generation 1 has the unknown key 'activefrom'; did you mean 'activeFrom'?"},
	{GENERATION("\"weights\":{}"), "generation 1 needs activeFrom as an ISO-8601 instant, like \"2026-10-01T00:00:00Z\""},
	{GENERATION("\"activeFrom\":\"2026-10-01\""), "generation 1 needs activeFrom as an ISO-8601 instant, like \"2026-10-01T00:00:00Z\", got '2026-10-01'"},
	{GENERATION("\"activeFrom\":1790812800"), "generation 1 needs activeFrom as an ISO-8601 instant, like \"2026-10-01T00:00:00Z\", got 1790812800"},
	{GENERATION("\"activeFrom\":\"2026-10-01T00:00:00Z\""), "generation 1 gives no shard a positive weight, so nothing could be minted; give one at least a weight from 1 to 1000000"},
	{DOCUMENT(TWO, WEIGHTS("[]")), "generation 1 weights must be an object like {\"0\": 1}, got an array"},
	{DOCUMENT(TWO, WEIGHTS("{}")), "generation 1 gives no shard a positive weight, so nothing could be minted; give one at least a weight from 1 to 1000000"},
	{DOCUMENT(TWO, WEIGHTS("{\"0\":0,\"1\":0}")), "generation 1 gives no shard a positive weight, so nothing could be minted; give one at least a weight from 1 to 1000000"},
	{DOCUMENT(TWO, WEIGHTS("{\"zero\":1}")), "generation 1 weighs 'zero', which is not a shard id; write one that is listed under shards"},
	{DOCUMENT(TWO, WEIGHTS("{\"0\":-1}")), "generation 1 gives shard 0 a weight that is not a non-negative integer up to 1000000, got -1"},
	{DOCUMENT(TWO, WEIGHTS("{\"0\":0.5}")), "generation 1 gives shard 0 a weight that is not a non-negative integer up to 1000000, got 0.5"},
	{DOCUMENT(TWO, WEIGHTS("{\"0\":1000000000}")), "generation 1 gives shard 0 a weight that is not a non-negative integer up to 1000000, got 1000000000"},
	{DOCUMENT(TWO, WEIGHTS("{\"0\":\"1\"}")), "generation 1 gives shard 0 a weight that is not a non-negative integer up to 1000000, got '1'"},
	{DOCUMENT(TWO, WEIGHTS("{\"5\":1}")), "generation 1 weighs shard 5, which is not listed; list it under shards, or remove the weight"},
	{DOCUMENT(TWO, WEIGHTS("{\"1\":1,\"01\":1}")), "generation 1 weighs shard 1 twice; remove one of the two"},
	{DOCUMENT(TWO "," SHARD("2", "active", "\"search\"", "c"), WEIGHTS("{\"2\":1}")),
	"generation 1 weighs shard 2, which holds no instances; give it the role instances, or remove the weight"},
	{DOCUMENT(TWO "," SHARD("2", "draining", "\"instances\"", "c"), WEIGHTS("{\"2\":1}")),
	"generation 1 weighs shard 2, which is DRAINING; append a generation without it"},
	{DOCUMENT(TWO "," SHARD("2", "retired", "\"instances\"", "c"), WEIGHTS("{\"2\":1}")),
	"generation 1 weighs shard 2, which is RETIRED; append a generation without it"},
	{DOCUMENT(TWO, "[{\"id\":2,\"activeFrom\":\"2026-10-01T00:00:00Z\",\"weights\":{\"0\":1}},"
	 "{\"id\":2,\"activeFrom\":\"2026-11-01T00:00:00Z\",\"weights\":{\"0\":1}}]"),
	"generation 2 must come after generation 2 in both id and activeFrom; give the later one an id greater than 2"},
	{DOCUMENT(TWO, "[{\"id\":1,\"activeFrom\":\"2026-10-01T00:00:00Z\",\"weights\":{\"0\":1}},"
	 "{\"id\":2,\"activeFrom\":\"2026-10-01T00:00:00Z\",\"weights\":{\"0\":1}}]"),
	"generation 2 must come after generation 1 in both id and activeFrom, but begins at '2026-10-01T00:00:00Z' and that one at '2026-10-01T00:00:00Z'; give it a later activeFrom"},
};

static void
every_refusal_says_exactly(void **state)
{
	int			wrong = 0;

	(void) state;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
	{
		struct wig_error err = {.message = "accepted"};
		struct topology *topology = parse(refusals[i].document, &err);

		if (topology == NULL && strcmp(err.message, refusals[i].message) == 0)
			continue;
		print_error("%s\n  expected: %s\n       got: %s\n", refusals[i].document, refusals[i].message,
					err.message);
		topology_free(topology);
		wrong++;
	}
	if (wrong > 0)
		fail_msg("%d refusals are not as expected", wrong);
}

/* What a test of one field cannot say: many shards, many bytes. */
static void
sizes_are_bounded(void **state)
{
	struct wig_error err;
	char	   *text = malloc(TOPOLOGY_MAX_BYTES + 2);
	size_t		used = 0;

	(void) state;
	memset(text, ' ', TOPOLOGY_MAX_BYTES + 1);
	text[0] = '{';
	text[TOPOLOGY_MAX_BYTES] = '}';
	assert_null(topology_parse(text, TOPOLOGY_MAX_BYTES + 1, variable, parameters, &err));
	assert_string_equal(err.message, "the storage topology has more than 1048576 bytes; no more are read");
	text[TOPOLOGY_MAX_BYTES - 1] = '}';
	assert_null(topology_parse(text, TOPOLOGY_MAX_BYTES, variable, parameters, &err));
	assert_string_equal(err.message, "the topology lists no shards; give each database an entry in the array shards");

	used = (size_t) snprintf(text, 100, "{\"shards\":[");
	for (int i = 0; i <= TOPOLOGY_MAX_SHARDS; i++)
		used += (size_t) snprintf(text + used, 200, "%s{\"id\":%d,\"state\":\"active\",\"roles\":[\"%s\"],\"primary\":"
								  "{\"url\":\"postgresql://h%d/d\"}}", i > 0 ? "," : "", i,
								  i == 0 ? "home" : "instances", i);
	used += (size_t) snprintf(text + used, 100, "],\"generations\":" WEIGHTS("{\"1\":1}") "}");
	assert_null(topology_parse(text, used, variable, parameters, &err));
	assert_string_equal(err.message, "the topology lists 65 shards that are not retired; up to 64 are served");
	free(text);
}

static void
replicas(void **state)
{
	struct wig_error err;
	struct topology *t = parse(
		"{\"defaults\":{\"user\":\"d\",\"password\":\"dp\",\"replicaPool\":3,\"replicaFallback\":\"FAIL\"},\"shards\":["
		"{\"id\":0,\"state\":\"Active\",\"roles\":[\"HOME\",\"instances\"],\"user\":\"s\",\"replicaPool\":4,"
		"\"primary\":{\"url\":\"postgresql://a/d\",\"user\":\"p\",\"pool\":7},\"replicas\":["
		"{\"url\":\"jdbc:postgresql://r1/d\"},{\"url\":\"postgresql://${DB_USER}/d\",\"pool\":9,\"replicaPool\":8,\"user\":\"r\"},"
		"{\"url\":\"postgresql://r3/d\",\"replicaPool\":8,\"password\":\"${DB_PASSWORD}\"}]},"
		"{\"id\":1,\"state\":\"active\",\"roles\":[\"instances\"],\"maxReplicaLagMillis\":0,\"replicaFallback\":\"primary\","
		"\"pool\":6,\"primary\":{\"url\":\"postgresql://b/d\"},\"replicas\":[{\"url\":\"postgresql://r4/d\"}]}],"
		"\"generations\":" WEIGHTS("{\"0\":1}") "}", &err);
	const struct topology_shard *shard;

	(void) state;
	if (t == NULL)
		fail_msg("refused: %s", err.message);
	shard = &t->shards[0];
	assert_string_equal(shard->user, "p");
	assert_int_equal(shard->pool, 7);
	assert_int_equal(shard->nreplicas, 3);
	assert_true(shard->max_replica_lag_ms == 5000);
	assert_int_equal(shard->replica_fallback, FALLBACK_FAIL);
	assert_string_equal(shard->replicas[0].url, "postgresql://r1/d");
	assert_string_equal(shard->replicas[0].user, "s");
	assert_string_equal(shard->replicas[0].password, "dp");
	assert_int_equal(shard->replicas[0].pool, 4);
	assert_string_equal(shard->replicas[1].url, "postgresql://ada/d");
	assert_string_equal(shard->replicas[1].user, "r");
	assert_int_equal(shard->replicas[1].pool, 9);
	assert_string_equal(shard->replicas[2].password, "s3cret${NAME}");
	assert_int_equal(shard->replicas[2].pool, 8);

	/* a shard's pool is its primary's, not its replicas' */
	shard = &t->shards[1];
	assert_int_equal(shard->pool, 6);
	assert_int_equal(shard->replicas[0].pool, 3);
	assert_string_equal(shard->replicas[0].user, "d");
	assert_true(shard->max_replica_lag_ms == 0);
	assert_int_equal(shard->replica_fallback, FALLBACK_PRIMARY);
	topology_free(t);
}

/* A decommissioned database needs no entry for how it was reached. */
static void
a_retired_shard_needs_no_primary(void **state)
{
	struct wig_error err;
	struct topology *t = parse(DOCUMENT(TWO ",{\"id\":2,\"state\":\"retired\",\"roles\":[\"instances\"]}",
										WEIGHTS("{\"0\":1,\"2\":0}")), &err);

	(void) state;
	if (t == NULL)
		fail_msg("refused: %s", err.message);
	assert_null(t->shards[2].url);
	assert_false(topology_serves(&t->shards[2]));
	topology_free(t);
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

/* Roles and credentials may have a shard to themselves: it is connected to, and weighs nothing. */
static void
the_role_auth_may_be_alone(void **state)
{
	struct wig_error err = {.message = ""};
	struct topology *t = parse(DOCUMENT(SHARD("0", "active", HOME, "a") "," SHARD("1", "active", "\"auth\"", "b") ","
										SHARD("2", "active", "\"search\"", "c"), WEIGHTS("{\"0\":1}")), &err);

	(void) state;
	if (t == NULL)
		fail_msg("refused: %s", err.message);
	assert_true(topology_serves(&t->shards[1]));
	assert_false(topology_serves(&t->shards[2]));
	assert_int_equal(t->shards[0].roles & ROLE_AUTH, 0);
	topology_free(t);
}

static void
url(const char *given, const char *wanted)
{
	struct wig_error err = {.message = ""};
	char	   *got = topology_url(given, "url", parameters, &err);

	if (got == NULL)
		fail_msg("%s was refused: %s", given, err.message);
	assert_string_equal(got, wanted);
	free(got);
}

static void
url_refused(const char *given, const char *words)
{
	struct wig_error err = {.message = ""};

	assert_null(topology_url(given, "url", parameters, &err));
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
	url("jdbc:postgresql://h/d?ssl=true&prepareThreshold=0&connectTimeout=3", "postgresql://h/d?sslmode=verify-full&connect_timeout=3");
	url("jdbc:postgresql://h/d?ssl", "postgresql://h/d?sslmode=verify-full");
	url("jdbc:postgresql://h/d?ssl=false", "postgresql://h/d?sslmode=prefer");
	url("jdbc:postgresql://h/d?sslmode=verify-ca&ssl=true", "postgresql://h/d?sslmode=verify-ca");
	url("jdbc:postgresql://h/d?ssl=false&sslmode=verify-full", "postgresql://h/d?sslmode=verify-full");
	url_refused("jdbc:postgresql://h/d?ssl=on", "the parameter ssl, which is true or false");
	url("jdbc:postgresql://h/d?reWriteBatchedInserts=true", "postgresql://h/d");
	url("jdbc:postgresql://a:1,b:2/d?targetServerType=primary", "postgresql://a:1,b:2/d");
	url("postgresql://a:1,b:2/d?target_session_attrs=read-write&sslmode=require", "postgresql://a:1,b:2/d?sslmode=require");
	url("postgresql://a:1,b:2/d?target_session_attrs=primary", "postgresql://a:1,b:2/d");
	url("postgresql:///d?host=/tmp", "postgresql:///d?host=/tmp");
	url_refused("mysql://u:secret@h/d", "must begin with postgresql:// or jdbc:postgresql://, not with mysql://");
	url_refused("h/d", "must begin with postgresql:// or jdbc:postgresql://");
	url_refused("jdbc:postgres://h/d", ", not with jdbc:postgres://");
	url_refused("postgresql://h/d?sslmod=require", "unknown parameter 'sslmod' (did you mean 'sslmode'?)");
	url_refused("jdbc:postgresql://h/d?currentSchema=x", "which the proxy decides itself");

	/* what libpq takes, whatever it is, but for what the proxy cannot do with */
	url("postgresql://u:p@h/d?ssl_min_protocol_version=TLSv1.3&require_auth=scram-sha-256",
		"postgresql://u:p@h/d?ssl_min_protocol_version=TLSv1.3&require_auth=scram-sha-256");
	url_refused("postgresql://h/d?sslcertmode=require", "has the unknown parameter 'sslcertmode'; remove it or correct it");
	url_refused("postgresql://h/d?options=-c%20x", "sets the parameter 'options', which the proxy decides itself; remove it");
	url_refused("postgresql://a,b/d?load_balance_hosts=random", "takes the one that has written most; remove it");
	url_refused("postgresql://h/d?oauth_issuer=x", "sets the parameter 'oauth_issuer', but no person is there to log in; remove it");
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
		assert_null(topology_parse(copy, len, variable, parameters, &err));
		free(copy);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_tutorial),
		cmocka_unit_test(own_settings_win_over_the_shards_and_those_over_defaults),
		cmocka_unit_test(every_refusal_says_exactly),
		cmocka_unit_test(sizes_are_bounded),
		cmocka_unit_test(replicas),
		cmocka_unit_test(a_retired_shard_needs_no_primary),
		cmocka_unit_test(history_may_name_what_drains),
		cmocka_unit_test(the_role_auth_may_be_alone),
		cmocka_unit_test(urls),
		cmocka_unit_test(instants),
		cmocka_unit_test(truncated_documents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
