/*
 * test_placement.c
 *	  Where instances are minted, and where ids lead.
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
#include "router.h"

static struct topology_shard shards[] = {
	{.id = 0, .state = SHARD_ACTIVE, .roles = ROLE_INSTANCES | ROLE_HOME},
	{.id = 1, .state = SHARD_DRAINING, .roles = ROLE_INSTANCES},
	{.id = 12, .state = SHARD_RETIRED, .roles = ROLE_INSTANCES},
	{.id = 13, .state = SHARD_ACTIVE, .roles = ROLE_SEARCH},
};

static struct generation_weight first[] = {{0, 1}, {1, 1}};
static struct generation_weight second[] = {{0, 5}, {1, 0}, {2, 1}, {3, 2}};

static struct generation generations[] = {
	{.id = 1, .active_from_ms = 1000, .weights = first, .nweights = 2},
	{.id = 2, .active_from_ms = 2000, .weights = second, .nweights = 4},
};

static struct topology topology = {
	.shards = shards, .nshards = 4, .home = 0,
	.generations = generations, .ngenerations = 2,
};

static void
the_generation_in_force(void **state)
{
	(void) state;
	assert_int_equal(placement_generation(&topology, 0), 0);
	assert_int_equal(placement_generation(&topology, 1999), 0);
	assert_int_equal(placement_generation(&topology, 2000), 1);
	assert_int_equal(placement_generation(&topology, INT64_MAX), 1);
}

/* What is in force now or later must not weigh what drains; what was may. */
static void
draining_shards(void **state)
{
	struct wig_error err = {0};
	struct generation_weight last[] = {{0, 1}};
	struct generation three[] = {generations[0], generations[1], {.id = 3, .active_from_ms = 3000, .weights = last, .nweights = 1}};
	struct topology longer = topology;

	(void) state;
	longer.generations = three;
	longer.ngenerations = 3;
	assert_false(placement_check(&longer, 1500, &err));
	assert_string_equal(err.message, "generation 1, which is in force, weighs shard 1, which is DRAINING; leave it active"
						" and set it to draining once generation 2 has begun, at 1970-01-01T00:00:02.000Z (a document is read when it"
						" changes, and on SIGHUP)");
	assert_false(placement_check(&longer, 2500, &err));
	assert_non_null(strstr(err.message, "generation 2, which is in force, weighs shard 12, which is RETIRED"));
	assert_true(placement_check(&longer, 3000, &err));
	three[0].weights = last;
	three[0].nweights = 1;
	assert_false(placement_check(&longer, 0, &err));
	assert_non_null(strstr(err.message, "generation 2, which is still to come, weighs shard 12"));
}

static void
exact_shares_smoothly(void **state)
{
	struct placement *placement = placement_create(&topology, 0);
	static const int wanted[] = {0, 3, 0, 0, 2, 0, 3, 0};
	int			counts[4] = {0};

	(void) state;
	for (int i = 0; i < 800; i++)
	{
		int			shard = placement_pick(placement, 5000, NULL);

		if (i < 8)
			assert_int_equal(shard, wanted[i]);
		counts[shard]++;
	}
	assert_int_equal(counts[0], 500);
	assert_int_equal(counts[1], 0);
	assert_int_equal(counts[2], 100);
	assert_int_equal(counts[3], 200);
	placement_free(placement);
}

/* Proxies that begin elsewhere in the round go on from there, and come round exactly. */
static void
each_phase_is_the_same_round(void **state)
{
	static const int round[] = {0, 3, 0, 0, 2, 0, 3, 0};

	(void) state;
	for (uint32_t phase = 0; phase < 17; phase++)
	{
		struct placement *placement = placement_create(&topology, phase);

		for (uint32_t i = 0; i < 16; i++)
			assert_int_equal(placement_pick(placement, 5000, NULL), round[(phase + i) % 8]);
		placement_free(placement);
	}
}

/* Weights that need a million picks for a round: the beginning differs all the same, the shares hold. */
static void
phases_of_a_long_round(void **state)
{
	struct generation_weight uneven[] = {{0, 1000000}, {1, 999999}};
	struct generation only = {.id = 1, .weights = uneven, .nweights = 2};
	struct topology long_round = topology;
	int			begun[2] = {0};

	(void) state;
	long_round.generations = &only;
	long_round.ngenerations = 1;
	for (uint32_t phase = UINT32_MAX - 99; phase != 0; phase++)
	{
		struct placement *placement = placement_create(&long_round, phase);
		int			counts[2] = {0};

		begun[placement_pick(placement, 0, NULL)]++;
		for (int i = 0; i < 1000; i++)
			counts[placement_pick(placement, 0, NULL)]++;
		assert_in_range(counts[0], 499, 501);
		placement_free(placement);
	}
	assert_int_equal(begun[0], 50);
	assert_int_equal(begun[1], 50);
}

static void
a_new_generation_begins_anew(void **state)
{
	struct placement *placement = placement_create(&topology, 0);

	(void) state;
	assert_int_equal(placement_pick(placement, 1500, NULL), 0);
	assert_int_equal(placement_pick(placement, 2500, NULL), 0);
	assert_int_equal(placement_pick(placement, 2500, NULL), 3);
	assert_int_equal(placement_pick(placement, 1500, NULL), 0);
	assert_int_equal(placement_pick(placement, 1500, NULL), 1);
	placement_free(placement);
}

static enum route
find(const char *id, int *shard, int32_t *number)
{
	*shard = -1;
	return router_find(&topology, id, strlen(id), shard, number);
}

static void
ids_lead_to_shards(void **state)
{
	int			shard;
	int32_t		number;

	(void) state;
	assert_int_equal(find("wfi.s1.0123456789abcdefghjkmn", &shard, &number), ROUTE_OK);
	assert_int_equal(shard, 1);
	assert_int_equal(find("tok.s0.0123456789abcdefghjkmn-3", &shard, &number), ROUTE_OK);
	assert_int_equal(shard, 0);
	assert_int_equal(find("wfi_0123456789abcdefghjkmn", &shard, &number), ROUTE_OK);
	assert_int_equal(shard, 0);
	assert_int_equal(find("anything else", &shard, &number), ROUTE_OK);
	assert_int_equal(shard, 0);
	assert_int_equal(find("", &shard, &number), ROUTE_OK);
	assert_int_equal(find("wfi.s12.0123456789abcdefghjkmn", &shard, &number), ROUTE_RETIRED);
	assert_int_equal(number, 12);
	assert_int_equal(find("wfi.s13.0123456789abcdefghjkmn", &shard, &number), ROUTE_UNKNOWN);
	assert_int_equal(find("wfi.s99.0123456789abcdefghjkmn", &shard, &number), ROUTE_UNKNOWN);
	assert_int_equal(number, 99);
}

static uint32_t
hash(const char *id)
{
	return router_hash(id, strlen(id));
}

static void
an_instance_and_its_tasks_take_one_lane(void **state)
{
	int			even = 0;
	char		id[64];

	(void) state;
	assert_int_equal(hash("wfi.s1.0123456789abcdefghjkmn"), hash("tok.s1.0123456789abcdefghjkmn-1"));
	assert_int_equal(hash("wfi.s1.0123456789abcdefghjkmn"), hash("tok.s1.0123456789abcdefghjkmn-1234"));
	assert_int_equal(hash("wfi_0123456789abcdefghjkmn"), hash("tok_0123456789abcdefghjkmn-9"));
	assert_int_not_equal(hash("wfi_0123456789abcdefghjkmn"), hash("wfi_0123456789abcdefghjkmp"));
	for (int i = 0; i < 1000; i++)
	{
		snprintf(id, sizeof(id), "wfi.s1.01m446vf4tcd1c5v3r%04d", i);
		even += hash(id) % 2 == 0;
	}
	assert_in_range(even, 420, 580);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_generation_in_force),
		cmocka_unit_test(draining_shards),
		cmocka_unit_test(exact_shares_smoothly),
		cmocka_unit_test(each_phase_is_the_same_round),
		cmocka_unit_test(phases_of_a_long_round),
		cmocka_unit_test(a_new_generation_begins_anew),
		cmocka_unit_test(ids_lead_to_shards),
		cmocka_unit_test(an_instance_and_its_tasks_take_one_lane),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
