/*
 * test_retry.c
 *	  Backoff: the arithmetic at its edges.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "definition.h"

static int64_t
backoff(struct wig_retry retry, int64_t failures)
{
	return wig_retry_backoff(&retry, failures, 0.5);
}

static void
test_plain(void **state)
{
	const struct wig_retry exponential = {
		.max_attempts = 10, .initial_ms = 100, .multiplier = 2, .max_ms = 1000
	};

	(void) state;
	assert_int_equal(backoff(exponential, 1), 100);
	assert_int_equal(backoff(exponential, 2), 200);
	assert_int_equal(backoff(exponential, 4), 800);
	assert_int_equal(backoff(exponential, 5), 1000);
	assert_int_equal(backoff(exponential, INT64_MAX), 1000);
	assert_int_equal(backoff(wig_retry_forever, 1), 1000);
	assert_int_equal(backoff(wig_retry_forever, 1000000), 1000);
}

static void
test_none(void **state)
{
	(void) state;
	assert_int_equal(backoff((struct wig_retry) {.multiplier = 1}, 1), 0);
	assert_int_equal(backoff((struct wig_retry) {.multiplier = 2, .max_ms = 5, .initial_ms = -1}, 9), 0);
}

static void
test_truncation(void **state)
{
	(void) state;
	assert_int_equal(backoff((struct wig_retry) {.initial_ms = 1, .multiplier = 1.5}, 2), 1);
	assert_int_equal(backoff((struct wig_retry) {.initial_ms = 1, .multiplier = 1.5}, 3), 2);
}

static void
test_overflow(void **state)
{
	static const struct wig_retry policies[] = {
		{.initial_ms = 1000, .multiplier = 2},
		{.initial_ms = 1000, .multiplier = 1e308},
		{.initial_ms = INT64_MAX, .multiplier = 1},
		{.initial_ms = INT64_MAX, .multiplier = 1e308, .max_ms = INT64_MAX},
		{.initial_ms = 1000, .multiplier = 2, .jitter = 1.0}
	};
	static const int64_t failures[] = {1, 31, 32, 33, 63, 64, 65, 1023, 1024, 5000, INT64_MAX};

	(void) state;
	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++)
	{
		int64_t		before = 0;

		for (size_t k = 0; k < sizeof(failures) / sizeof(failures[0]); k++)
		{
			int64_t		delay = wig_retry_backoff(&policies[i], failures[k], 0.5);

			assert_true(delay >= before);
			assert_true(delay <= WIG_MAX_DELAY_MS);
			before = delay;
		}
		assert_true(before == WIG_MAX_DELAY_MS || policies[i].multiplier == 1);
	}
}

static void
test_jitter(void **state)
{
	const struct wig_retry retry = {.initial_ms = 1000, .multiplier = 1, .jitter = 0.2};
	const struct wig_retry full = {.initial_ms = 1000, .multiplier = 1, .jitter = 1.0};

	(void) state;
	assert_int_equal(wig_retry_backoff(&retry, 1, 0.0), 800);
	assert_int_equal(wig_retry_backoff(&retry, 1, 0.5), 1000);
	assert_true(wig_retry_backoff(&retry, 1, 0.999999) <= 1200);
	assert_true(wig_retry_backoff(&retry, 1, 0.999999) >= 1199);
	assert_int_equal(wig_retry_backoff(&full, 1, 0.0), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_truncation),
		cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_jitter)
	};

	return cmocka_run_group_tests_name("retry", tests, NULL, NULL);
}
