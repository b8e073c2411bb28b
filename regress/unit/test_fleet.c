/*
 * test_fleet.c
 *	  Lists of members, and what they make of this proxy's shares.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../proxy/fleet.c"

static int	beats;

/* uv's loop is not run here: the clock is what the test says. */
static uint64_t now;

uint64_t
loop_now(void)
{
	return now;
}

static void
count_beat(void)
{
	beats++;
}

struct listed
{
	const char *id;
	bool		partition;
	bool		member;
	const char *polls;
};

static void
list(const struct listed *all, int n, const char *self)
{
	fleet_list_begin();
	for (int i = 0; i < n; i++)
	{
		struct fleet_node node = {.id = (char *) all[i].id, .name = (char *) "name",
		.partition = all[i].partition, .member = all[i].member};

		fleet_list_add(&node, all[i].polls);
	}
	fleet_list_end(self);
}

static enum fleet_state
state_for(const char *queue)
{
	return fleet_divides(&queue, 1);
}

#define Q(names)	"[{\"queues\":[" names "],\"versions\":[]}]"
#define ALL			"[{\"queues\":[],\"versions\":[]}]"

static const struct listed three[] = {
	{"node_c", true, true, Q("\"x\",\"y\"")},
	{"node_a", true, true, Q("\"x\"")},
	{"node_d", false, false, ALL},
	{"node_b", true, true, "[{\"queues\":[\"y\"],\"versions\":[]},{\"queues\":[\"x\",\"y\",\"x\"],\"versions\":[[\"w\",1]]}]"},
	{"node_e", true, false, Q("\"x\"")},
};
#define THREE (int) (sizeof(three) / sizeof(three[0]))

static void
check_share(const char *queue, bool polled, int start, int end)
{
	int			got_start;
	int			got_end;

	assert_int_equal(fleet_share(queue, &got_start, &got_end), polled);
	assert_int_equal(got_start, start);
	assert_int_equal(got_end, end);
}

static void
test_off(void **state)
{
	(void) state;
	fleet_start(false, count_beat);
	list(three, THREE, "node_a");
	assert_int_equal(state_for("x"), FLEET_OFF);
	assert_int_equal(beats, 0);
}

static void
test_nothing_heard(void **state)
{
	(void) state;
	listed = false;
	fleet_start(true, count_beat);
	assert_int_equal(fleet_state(), FLEET_UNREGISTERED);
	assert_int_equal(fleet_age_ms(), -1);
	assert_true(fleet_takes("x", (int[]) {7}, 1));
}

/* By ids, whatever the order of the list; those who are no members have nothing. */
static void
test_members_in_order(void **state)
{
	const struct fleet_node *all;
	int			n;

	(void) state;
	fleet_start(true, count_beat);
	list(three, THREE, "node_b");
	all = fleet_nodes(&n);
	assert_int_equal(n, THREE);
	for (int i = 0; i < n; i++)
	{
		static const int starts[] = {0, 334, 667, 0, 0};
		static const int ends[] = {334, 667, 1000, 0, 0};

		assert_int_equal(all[i].id[5], 'a' + i);
		assert_int_equal(all[i].start, starts[i]);
		assert_int_equal(all[i].end, ends[i]);
	}
	assert_int_equal(fleet_state(), FLEET_DIVIDES);
}

/* A queue is split among those who poll it. */
static void
test_shares_by_queue(void **state)
{
	(void) state;
	fleet_start(true, count_beat);
	list(three, THREE, "node_b");
	check_share("x", true, 334, 667);
	check_share("y", true, 0, 500);
	check_share("z", false, 0, 0);
	list(three, THREE, "node_c");
	check_share("y", true, 500, 1000);
	list(three, THREE, "node_a");
	check_share("x", true, 0, 334);
	check_share("y", false, 0, 0);
	assert_true(fleet_takes("x", (int[]) {999, 333}, 2));
	assert_false(fleet_takes("x", (int[]) {999, 334}, 2));
	/* what it has no share of is everybody's */
	assert_true(fleet_takes("y", (int[]) {999}, 1));
}

static void
test_unknown_queue_wants_a_beat(void **state)
{
	const char *both[] = {"x", "y"};

	(void) state;
	fleet_start(true, count_beat);
	list(three, THREE, "node_a");
	beats = 0;
	assert_int_equal(state_for("x"), FLEET_DIVIDES);
	assert_int_equal(beats, 0);
	assert_int_equal(state_for("y"), FLEET_UNPOLLED);
	assert_int_equal(beats, 1);
	assert_int_equal(fleet_divides(both, 2), FLEET_DIVIDES);
	assert_int_equal(beats, 2);
	assert_int_equal(fleet_divides(NULL, 0), FLEET_UNPOLLED);
}

static void
test_a_poll_of_every_queue(void **state)
{
	static const struct listed some[] = {
		{"node_a", true, true, ALL}, {"node_b", true, true, Q("\"x\"")}, {"node_c", true, true, ALL}};

	(void) state;
	fleet_start(true, count_beat);
	list(some, 3, "node_c");
	assert_int_equal(fleet_divides(NULL, 0), FLEET_DIVIDES);
	check_share("x", true, 667, 1000);
	check_share("anything", true, 500, 1000);
	check_share(NULL, true, 500, 1000);
	list(some, 3, "node_b");
	check_share("x", true, 334, 667);
	check_share(NULL, false, 0, 0);
}

static void
test_why_not(void **state)
{
	(void) state;
	fleet_start(true, count_beat);
	list(three, THREE, "node_x");
	assert_int_equal(state_for("x"), FLEET_ABSENT);
	list(three, THREE, "node_e");
	assert_int_equal(state_for("x"), FLEET_ABSENT);
	list(three, THREE, "node_d");
	assert_int_equal(state_for("x"), FLEET_NAME_TAKEN);
	list(NULL, 0, "node_a");
	assert_int_equal(state_for("x"), FLEET_NOBODY);
	list(three, THREE, "node_a");
	now += 60000;
	assert_int_equal(state_for("x"), FLEET_DIVIDES);
	now++;
	assert_int_equal(state_for("x"), FLEET_STALE);
	assert_int_equal(fleet_age_ms(), 60001);
	list(three, THREE, "node_a");
	assert_int_equal(state_for("x"), FLEET_DIVIDES);
}

static void
test_what_cannot_be_read_polls_nothing(void **state)
{
	static const struct listed odd[] = {
		{"node_a", true, true, "not JSON"}, {"node_b", true, true, "[{\"queues\":[7,\"x\"]},{\"queues\":\"x\"},3]"}};

	(void) state;
	fleet_start(true, count_beat);
	list(odd, 2, "node_b");
	check_share("x", true, 0, 1000);
	check_share(NULL, false, 0, 0);
	assert_int_equal(fleet_state(), FLEET_DIVIDES);
	fleet_list_begin();
	fleet_list_end("node_b");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_heard),
		cmocka_unit_test(test_off),
		cmocka_unit_test(test_members_in_order),
		cmocka_unit_test(test_shares_by_queue),
		cmocka_unit_test(test_unknown_queue_wants_a_beat),
		cmocka_unit_test(test_a_poll_of_every_queue),
		cmocka_unit_test(test_why_not),
		cmocka_unit_test(test_what_cannot_be_read_polls_nothing)
	};

	return cmocka_run_group_tests_name("fleet", tests, NULL, NULL);
}
