/*
 * test_event_cursor.c
 *	  Places in the event logs, their text, and whom a roster's polls cover.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "event_cursor.h"
#include "loop.h"
#include "roster.h"

static void
same_text(const char *text, const char *expected)
{
	struct event_cursor cursor;
	struct wig_error err = {.message = ""};
	struct buf	out = BUF_INIT;

	assert_true(cursor_parse(text, &cursor, &err));
	cursor_write(&cursor, &out);
	assert_string_equal(buf_cstr(&out), expected);
	buf_free(&out);
}

static void
texts_come_back_in_order_of_shards(void **state)
{
	(void) state;
	same_text("0:12", "0:12");
	same_text("0:12,3:40", "0:12,3:40");
	same_text("3:40,0:12", "0:12,3:40");
	same_text("7:0", "7:0");
	same_text("999999999:9223372036854775807", "999999999:9223372036854775807");
}

static void
what_is_no_cursor_is_named(void **state)
{
	static const char *const wrong[] = {
		"", " ", "0", "0:", ":1", "0:1,", ",0:1", "0:1,,1:1", "0:-1", "-1:1", "+0:1", "0:1 ", " 0:1", "0 :1", "0:1;1:1",
		"0:1,0:1", "x:1", "0:x", "0:1:2", "0:1.5", "1000000000:1", "0:9223372036854775808", "0:1\n"
	};

	(void) state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
	{
		struct event_cursor cursor;
		struct wig_error err = {.message = ""};
		char		text[256];

		snprintf(text, sizeof(text), "not an event cursor: '%s'; ack with the cursor of the last event you handled",
				 wrong[i]);
		assert_false(cursor_parse(wrong[i], &cursor, &err));
		assert_string_equal(err.message, text);
	}
}

static void
the_number_of_shards_is_bounded(void **state)
{
	struct event_cursor cursor;
	struct wig_error err = {.message = ""};
	struct buf	text = BUF_INIT;

	(void) state;
	for (int i = 0; i < CURSOR_MAX_SHARDS; i++)
		buf_printf(&text, "%s%d:1", i > 0 ? "," : "", i);
	assert_true(cursor_parse(buf_cstr(&text), &cursor, &err));
	buf_printf(&text, ",%d:1", CURSOR_MAX_SHARDS);
	assert_false(cursor_parse(buf_cstr(&text), &cursor, &err));
	buf_free(&text);
}

static void
places_are_set_and_read(void **state)
{
	struct event_cursor cursor = {.n = 0};
	struct buf	shards = BUF_INIT;
	struct buf	seqs = BUF_INIT;

	(void) state;
	cursor_arrays(&cursor, &shards, &seqs);
	assert_string_equal((const char *) shards.data, "{}");
	assert_string_equal((const char *) seqs.data, "{}");
	assert_int_equal(cursor_get(&cursor, 0), -1);
	cursor_set(&cursor, 5, 50);
	cursor_set(&cursor, 1, 10);
	cursor_set(&cursor, 3, 30);
	cursor_set(&cursor, 3, 31);
	assert_int_equal(cursor.n, 3);
	assert_int_equal(cursor_get(&cursor, 3), 31);
	assert_int_equal(cursor_get(&cursor, 2), -1);
	cursor_arrays(&cursor, &shards, &seqs);
	assert_string_equal((const char *) shards.data, "{1,3,5}");
	assert_string_equal((const char *) seqs.data, "{10,31,50}");
	buf_free(&shards);
	buf_free(&seqs);
}

static bool
covers(const char *polls, const char *queue)
{
	json_t	   *array = json_loads(polls, JSON_DECODE_ANY, NULL);
	bool		covered = roster_covers(array, "order", 3, queue);

	json_decref(array);
	return covered;
}

static void
polls_cover_by_queue_and_version(void **state)
{
	(void) state;
	assert_false(covers("[]", "q"));
	assert_true(covers("[{\"queues\":[],\"versions\":[]}]", "q"));
	assert_true(covers("[{\"queues\":[],\"versions\":[]}]", ""));
	assert_true(covers("[{\"queues\":[\"p\",\"q\"],\"versions\":[]}]", "q"));
	assert_false(covers("[{\"queues\":[\"p\",\"q\"],\"versions\":[]}]", ""));
	assert_false(covers("[{\"queues\":[\"p\"],\"versions\":[]}]", "q"));
	assert_true(covers("[{\"queues\":[\"q\"],\"versions\":[[\"order\",2],[\"order\",3]]}]", "q"));
	assert_false(covers("[{\"queues\":[\"q\"],\"versions\":[[\"order\",2],[\"mail\",3]]}]", "q"));
	assert_true(covers("[{\"queues\":[\"p\"],\"versions\":[]},{\"queues\":[\"q\"],\"versions\":[]}]", "q"));
}

/* A worker that has begun to poll for more is counted once, and covers both for a while. */
static void
workers_are_counted_by_their_ids(void **state)
{
	static const char *const queues[] = {"child", "parent"};
	struct subscription *both;
	struct subscription *one;
	json_t	   *polls;

	(void) state;
	loop_open();
	one = subscription_get(queues, 1, NULL, 0);
	both = subscription_get(queues, 2, NULL, 0);
	assert_int_equal(roster_count(), 0);
	roster_note("a", one, 60000);
	roster_note("a", both, 60000);
	roster_note("b", both, 60000);
	roster_note("a", both, 60000);
	assert_int_equal(roster_count(), 2);
	polls = roster_polls();
	assert_int_equal(json_array_size(polls), 2);
	json_decref(polls);
	subscription_unref(one);
	subscription_unref(both);
	loop_close();
}

static int	told;				/* how often less() was called */

static void
less(void)
{
	told++;
}

/* A worker that does not wait any more is off the roster at once; one that was answered is not. */
static void
pollers_go_with_the_last_poll_that_nobody_answers(void **state)
{
	static const char *const queues[] = {"left"};
	struct subscription *left = subscription_get(queues, 1, NULL, 0);
	int			before;

	(void) state;
	loop_open();
	roster_watch(less);
	before = roster_count();
	roster_note("one", left, 60000);
	roster_note("one", left, 60000);
	roster_note("two", left, 60000);
	assert_int_equal(left->pollers, 2);
	roster_end("one#nonce", 3, left, false);
	assert_int_equal(roster_count(), before + 2);
	roster_end("one#nonce", 3, left, false);
	assert_int_equal(roster_count(), before + 1);
	assert_int_equal(told, 0);
	roster_end("tw", 2, left, false);
	roster_end("two", 3, left, true);
	assert_int_equal(roster_count(), before + 1);
	roster_note("two", left, 60000);
	roster_end("two", 3, left, false);
	assert_int_equal(roster_count(), before);
	assert_int_equal(left->pollers, 0);
	assert_int_equal(told, 1);
	roster_end("two", 3, left, false);
	assert_int_equal(told, 1);
	roster_watch(NULL);
	subscription_unref(left);
	loop_close();
}

static void
what_cannot_be_read_covers_nothing(void **state)
{
	(void) state;
	assert_false(covers("[{}]", "q"));
	assert_false(covers("[{\"queues\":[]}]", "q"));
	assert_false(covers("[{\"queues\":{},\"versions\":[]}]", "q"));
	assert_false(covers("[{\"queues\":[1],\"versions\":[]}]", "q"));
	assert_false(covers("[{\"queues\":[],\"versions\":[\"order\",[],[3,\"order\"]]}]", "q"));
	assert_false(covers("{\"queues\":[],\"versions\":[]}", "q"));
	assert_false(covers("[null,1,[]]", "q"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_come_back_in_order_of_shards),
		cmocka_unit_test(what_is_no_cursor_is_named),
		cmocka_unit_test(the_number_of_shards_is_bounded),
		cmocka_unit_test(places_are_set_and_read),
		cmocka_unit_test(polls_cover_by_queue_and_version),
		cmocka_unit_test(workers_are_counted_by_their_ids),
		cmocka_unit_test(pollers_go_with_the_last_poll_that_nobody_answers),
		cmocka_unit_test(what_cannot_be_read_covers_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
