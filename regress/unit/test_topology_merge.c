/*
 * test_topology_merge.c
 *	  A changed document against the running one: what is refused, and what keeps its place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "placement.h"
#include "topology_merge.h"

#define NOW		INT64_C(1790000000000)	/* 2026-09-21 */
#define PAST	"2026-01-01T00:00:00Z"
#define RECENT	"2026-09-01T00:00:00Z"
#define FUTURE	"2026-12-01T00:00:00Z"

#define SHARD(id, state, roles) \
	"{\"id\":" #id ",\"state\":\"" state "\",\"roles\":[" roles "],\"primary\":{\"url\":\"postgresql://h" #id "/w\"}}"
#define HOME "\"instances\",\"home\""
#define PLAIN "\"instances\""
#define GENERATION(id, from, weights) "{\"id\":" #id ",\"activeFrom\":\"" from "\",\"weights\":{" weights "}}"
#define DOCUMENT(shards, generations) "{\"shards\":[" shards "],\"generations\":[" generations "]}"

#define RUNNING DOCUMENT(SHARD(0, "active", HOME) "," SHARD(1, "draining", PLAIN) "," SHARD(2, "retired", PLAIN) "," \
						 SHARD(3, "active", PLAIN), \
						 GENERATION(1, PAST, "\"0\":1,\"1\":1") "," GENERATION(2, RECENT, "\"0\":1,\"3\":2") "," \
						 GENERATION(3, FUTURE, "\"0\":1"))

static const char *const parameters[] = {NULL};

static const char *
variable(const char *name)
{
	(void) name;
	return NULL;
}

static struct topology *
parse(const char *text)
{
	struct wig_error err = {.message = ""};
	struct topology *topology = topology_parse(text, strlen(text), variable, parameters, &err);

	if (topology == NULL)
		fail_msg("%s: %s", err.message, text);
	return topology;
}

static void
refuses(const char *text, const char *words)
{
	struct topology *running = parse(RUNNING);
	struct topology *fresh = parse(text);
	struct wig_error err = {.message = ""};

	if (topology_merge(running, fresh, NOW, NULL, &err))
		fail_msg("merged, although it should say \"%s\"", words);
	if (strstr(err.message, words) == NULL)
		fail_msg("said \"%s\" instead of \"%s\"", err.message, words);
	topology_free(fresh);
	topology_free(running);
}

static void
indexes_stay(void **state)
{
	struct topology *running = parse(RUNNING);
	struct topology *fresh = parse(DOCUMENT(SHARD(9, "active", PLAIN) "," SHARD(3, "draining", PLAIN) "," SHARD(1, "retired", PLAIN) ","
											SHARD(0, "active", HOME),
											GENERATION(1, PAST, "\"1\":1,\"0\":1,\"9\":0") "," GENERATION(2, RECENT, "\"0\":1,\"3\":2")
											"," GENERATION(5, FUTURE, "\"9\":4,\"0\":1")));
	static const int32_t ids[] = {0, 1, 2, 3, 9};
	static const enum shard_state states[] = {SHARD_ACTIVE, SHARD_RETIRED, SHARD_RETIRED, SHARD_DRAINING, SHARD_ACTIVE};
	struct wig_error err = {.message = ""};

	(void) state;
	if (!topology_merge(running, fresh, NOW, NULL, &err))
		fail_msg("%s", err.message);
	assert_int_equal(fresh->nshards, 5);
	for (int i = 0; i < 5; i++)
	{
		assert_int_equal(fresh->shards[i].id, ids[i]);
		assert_int_equal(fresh->shards[i].state, states[i]);
	}
	assert_int_equal(fresh->home, 0);
	assert_null(fresh->shards[2].url);
	assert_int_equal(fresh->generations[2].weights[0].shard, 4);
	assert_int_equal(fresh->generations[2].weights[1].shard, 0);
	assert_int_equal(fresh->generations[1].weights[1].shard, 3);
	topology_free(running);
	topology_free(fresh);
}

static void
what_may_not_change(void **state)
{
	(void) state;
#define REST SHARD(1, "draining", PLAIN) "," SHARD(2, "retired", PLAIN) "," SHARD(3, "active", PLAIN)
#define ALL SHARD(0, "active", HOME) "," REST
#define ONE GENERATION(1, PAST, "\"0\":1,\"1\":1")
#define TWO GENERATION(2, RECENT, "\"0\":1,\"3\":2")
	refuses(DOCUMENT(SHARD(0, "active", HOME) "," SHARD(1, "draining", PLAIN), ONE "," GENERATION(2, RECENT, "\"0\":1")),
			"shard 3 is not listed any more, but it is ACTIVE; only a retired shard may leave the document");
	refuses(DOCUMENT(SHARD(0, "active", HOME) "," SHARD(1, "active", PLAIN) "," SHARD(3, "active", PLAIN), ONE "," TWO),
			"shard 1 cannot go back from DRAINING to ACTIVE");
	refuses(DOCUMENT(ALL "," SHARD(4, "active", PLAIN), ONE "," GENERATION(2, RECENT, "\"0\":1,\"3\":2,\"4\":1")),
			"generation 2 has begun and cannot be changed");
	refuses(DOCUMENT(ALL, ONE "," GENERATION(2, "2026-09-02T00:00:00Z", "\"0\":1,\"3\":2")),
			"generation 2 has begun and cannot be changed");
	refuses(DOCUMENT(ALL, ONE "," GENERATION(3, FUTURE, "\"0\":1")), "generation 2 has begun and cannot be removed");
	refuses(DOCUMENT(ALL, GENERATION(0, "2025-01-01T00:00:00Z", "\"0\":1") "," ONE "," TWO),
			"generation 1 has begun and cannot be removed, nor another be put before it");
	refuses(DOCUMENT(SHARD(0, "active", PLAIN) "," SHARD(1, "draining", PLAIN) "," SHARD(3, "active", HOME), ONE "," TWO),
			"the home shard cannot move from 0 to 3 while the server runs; leave it shard 0");
	refuses(DOCUMENT(SHARD(0, "active", HOME) "," SHARD(1, "draining", PLAIN) "," SHARD(3, "active", PLAIN ",\"auth\""), ONE "," TWO),
			"the auth role cannot move from shard 0 to shard 3 while the server runs");
	refuses(DOCUMENT(SHARD(0, "active", HOME) "," SHARD(1, "draining", PLAIN) "," SHARD(2, "retired", PLAIN) ","
					 SHARD(3, "retired", PLAIN), ONE "," TWO "," GENERATION(3, FUTURE, "\"0\":1")),
			"shard 3 cannot go from ACTIVE to RETIRED at once");
	refuses(DOCUMENT(SHARD(0, "active", HOME) "," SHARD(1, "draining", "\"search\"") "," SHARD(3, "active", PLAIN),
					 GENERATION(1, PAST, "\"0\":1") "," TWO),
			"shard 1 cannot take or lose the role 'instances'");
}

/* What is still to come may be moved or taken back. */
static void
the_future_may_change(void **state)
{
	struct topology *running = parse(RUNNING);
	struct topology *fresh = parse(DOCUMENT(ALL, ONE "," TWO));
	struct topology *later = parse(DOCUMENT(ALL, ONE "," TWO "," GENERATION(3, "2027-01-01T00:00:00Z", "\"0\":5")));
	struct wig_error err = {.message = ""};

	(void) state;
	assert_true(topology_merge(running, fresh, NOW, NULL, &err));
	assert_true(topology_merge(fresh, later, NOW, NULL, &err));
	assert_false(topology_same_generation(running, &running->generations[2], later, &later->generations[2]));
	topology_free(running);
	topology_free(fresh);
	topology_free(later);
}

static bool
not_shard_3(int shard)
{
	return shard != 3;
}

static bool
nobody(int shard)
{
	(void) shard;
	return false;
}

/* A replacement does not begin to count anew, and who is left out owes nothing when it is back. */
static void
placement_goes_on(void **state)
{
	struct topology *running = parse(RUNNING);
	struct topology *fresh = parse(DOCUMENT(SHARD(9, "active", PLAIN) "," ALL, ONE "," TWO "," GENERATION(7, FUTURE, "\"9\":1")));
	struct placement *placement = placement_create(running, 0);
	struct wig_error err = {.message = ""};

	(void) state;
	assert_int_equal(placement_pick(placement, NOW, NULL), 3);
	assert_true(topology_merge(running, fresh, NOW, NULL, &err));
	placement_replace(placement, fresh);
	topology_free(running);
	assert_int_equal(placement_pick(placement, NOW, NULL), 0);
	assert_int_equal(placement_pick(placement, NOW, NULL), 3);
	for (int i = 0; i < 10; i++)
		assert_int_equal(placement_pick(placement, NOW, not_shard_3), 0);
	assert_int_equal(placement_pick(placement, NOW, nobody), -1);
	for (int i = 0; i < 4; i++)
	{
		assert_int_equal(placement_pick(placement, NOW, NULL), 3);
		assert_int_equal(placement_pick(placement, NOW, NULL), 0);
		assert_int_equal(placement_pick(placement, NOW, NULL), 3);
	}
	assert_int_equal(fresh->shards[placement_pick(placement, INT64_MAX, NULL)].id, 9);
	placement_free(placement);
	topology_free(fresh);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(indexes_stay),
		cmocka_unit_test(what_may_not_change),
		cmocka_unit_test(the_future_may_change),
		cmocka_unit_test(placement_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
