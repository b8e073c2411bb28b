/*
 * test_target.c
 *	  The order in which the places of a database are tried.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "link.h"
#include "target.h"

static struct target *target;

static int
begin(void **state)
{
	struct wig_error err;

	(void) state;
	target = target_create("shard 0 primary", "postgresql://a,b/d", "u", "p", SESSION_WRITES, &err);
	return target == NULL;
}

static int
end(void **state)
{
	(void) state;
	target_free(target);
	return 0;
}

/* "1" is an address of the first host, "2" and "3" are those of the second. */
static struct target_place
place(char address)
{
	struct target_place place = {.host = &target->hosts[address > '1']};

	place.address[0] = address;
	return place;
}

static void
good(char address)
{
	struct target_place is = place(address);

	target_prefer(target, &is);
}

static void
bad(char address)
{
	struct target_place is = place(address);

	target_defer(target, &is);
}

/* In whatever order they were resolved. */
static void
order(const char *resolved, const char *expected)
{
	struct target_list list = {.n = 0};
	char		found[8] = "";

	for (const char *p = resolved; *p != '\0'; p++)
		target_list_add(&list, place(*p).host, (char[]) {*p, '\0'});
	target_list_sort(target, &list);
	for (int i = 0; i < list.n; i++)
		found[i] = list.places[i].address[0];
	assert_string_equal(found, expected);
	target_list_free(&list);
}

static void
test_nothing_is_known(void **state)
{
	(void) state;
	order("123", "123");
	order("132", "132");
	order("", "");
}

static void
test_the_last_good_one_comes_first(void **state)
{
	(void) state;
	good('3');
	order("123", "312");
	good('2');
	order("123", "231");
	good('3');
	order("123", "321");
}

/* Each gets its turn, whichever comes first by itself. */
static void
test_the_last_bad_one_comes_last(void **state)
{
	(void) state;
	bad('1');
	order("123", "231");
	bad('2');
	order("213", "312");
	bad('3');
	order("321", "123");
	bad('1');
	order("123", "231");
}

static void
test_there_and_back(void **state)
{
	(void) state;
	good('1');
	bad('1');
	good('2');
	order("123", "231");
	bad('2');
	good('1');
	order("123", "132");
}

/* The same address under another host is another place. */
static void
test_hosts_are_told_apart(void **state)
{
	struct target_list list = {.n = 0};

	(void) state;
	bad('1');
	target_list_add(&list, &target->hosts[0], "1");
	target_list_add(&list, &target->hosts[1], "1");
	target_list_sort(target, &list);
	assert_ptr_equal(list.places[0].host, &target->hosts[1]);
	target_list_free(&list);
}

/* A name that has had other addresses again and again. */
static void
test_what_was_long_ago_is_forgotten(void **state)
{
	(void) state;
	bad('1');
	for (int i = 0; i < 1000; i++)
	{
		struct target_place passing = place('2');

		snprintf(passing.address, sizeof(passing.address), "10.0.%d.%d", i / 256, i % 256);
		target_defer(target, &passing);
		good('3');
	}
	order("123", "312");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_nothing_is_known, begin, end),
		cmocka_unit_test_setup_teardown(test_the_last_good_one_comes_first, begin, end),
		cmocka_unit_test_setup_teardown(test_the_last_bad_one_comes_last, begin, end),
		cmocka_unit_test_setup_teardown(test_there_and_back, begin, end),
		cmocka_unit_test_setup_teardown(test_hosts_are_told_apart, begin, end),
		cmocka_unit_test_setup_teardown(test_what_was_long_ago_is_forgotten, begin, end)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
