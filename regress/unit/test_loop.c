/*
 * test_loop.c
 *	  Deadlines in random order, cleared and set again; metrics' text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loop.h"
#include "metrics.h"

#define MANY 3000

struct item
{
	int			runs;
	struct deadline deadline;
};

static struct item items[MANY];
static uint64_t last_when;
static int	ran;
static int	turns;

static void
due(struct deadline *d)
{
	struct item *item = deadline_owner(d, struct item, deadline);

	assert_true(d->when <= loop_now());
	assert_true(d->when >= last_when);
	last_when = d->when;
	item->runs++;
	ran++;
}

static void
count_turn(void)
{
	turns++;
}

static void
each_runs_once_in_order(void **state)
{
	int			cleared = 0;

	(void) state;
	srand(7);
	loop_open();
	loop_turn(TURN_END, count_turn);
	last_when = 0;
	ran = 0;
	for (int i = 0; i < MANY; i++)
		deadline_set(&items[i].deadline, loop_now() + (uint64_t) (rand() % 40), due);
	for (int i = 0; i < MANY; i++)
	{
		if (rand() % 3 == 0)
			deadline_set(&items[i].deadline, loop_now() + (uint64_t) (rand() % 40), due);
		else if (rand() % 3 == 0)
		{
			deadline_clear(&items[i].deadline);
			deadline_clear(&items[i].deadline);
			items[i].runs = 1;
			cleared++;
		}
	}
	while (ran < MANY - cleared)
		uv_run(loop_get(), UV_RUN_ONCE);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(items[i].runs, 1);
	assert_true(turns > 0);
	loop_close();
}

static int	rearmed;

static void
set_again(struct deadline *d)
{
	rearmed++;
	deadline_set(d, loop_now(), set_again);
}

/* A deadline that is due again at once waits for the next turn. */
static void
no_deadline_starves_the_loop(void **state)
{
	struct deadline d = {0};

	(void) state;
	loop_open();
	deadline_set(&d, loop_now(), set_again);
	rearmed = 0;
	for (int i = 0; i < 10; i++)
	{
		int			before = rearmed;

		uv_run(loop_get(), UV_RUN_ONCE);
		assert_true(rearmed - before <= 1);
	}
	assert_true(rearmed > 0);
	deadline_clear(&d);
	loop_close();
}

static void
metrics_text(void **state)
{
	struct buf	out = BUF_INIT;
	struct metric *a = metric_counter("test_calls_total", "code=\"OK\"", "Calls.");
	struct metric *g = metric_gauge("test_open", NULL, "Open.");
	struct metric *gone = metric_gauge("test_gone", NULL, "Gone.");
	struct metric *b = metric_counter("test_calls_total", "code=\"BAD\"", "Calls.");
	struct metric *h = metric_histogram("test_seconds", "m=\"x\"", "Time.");

	(void) state;
	assert_ptr_equal(a, metric_counter("test_calls_total", "code=\"OK\"", "Calls."));
	metric_add(a, 2);
	metric_add(b, 1);
	metric_set(g, -3);
	metric_set(gone, METRIC_GONE);
	metric_observe(h, 100);
	metric_observe(h, 101);
	metric_observe(h, 61000000);
	metrics_write(&out);
	assert_non_null(strstr(buf_cstr(&out),
						   "# HELP test_calls_total Calls.\n"
						   "# TYPE test_calls_total counter\n"
						   "test_calls_total{code=\"OK\"} 2\n"
						   "test_calls_total{code=\"BAD\"} 1\n"));
	assert_non_null(strstr(buf_cstr(&out), "# TYPE test_open gauge\ntest_open -3\n"));
	assert_null(strstr(buf_cstr(&out), "\ntest_gone"));
	assert_non_null(strstr(buf_cstr(&out), "test_seconds_bucket{m=\"x\",le=\"0.0001\"} 1\n"));
	assert_non_null(strstr(buf_cstr(&out), "test_seconds_bucket{m=\"x\",le=\"0.00025\"} 2\n"));
	assert_non_null(strstr(buf_cstr(&out), "test_seconds_bucket{m=\"x\",le=\"60\"} 2\n"));
	assert_non_null(strstr(buf_cstr(&out), "test_seconds_bucket{m=\"x\",le=\"+Inf\"} 3\n"));
	assert_non_null(strstr(buf_cstr(&out), "test_seconds_sum{m=\"x\"} 61.000201\n"));
	assert_non_null(strstr(buf_cstr(&out), "test_seconds_count{m=\"x\"} 3\n"));
	buf_free(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_runs_once_in_order),
		cmocka_unit_test(no_deadline_starves_the_loop),
		cmocka_unit_test(metrics_text),
	};

	return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
