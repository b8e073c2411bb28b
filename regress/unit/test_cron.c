/*
 * test_cron.c
 *	  Cron expressions: what is refused, and when the others fire.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "cron.h"

/* "2026-01-04 10:15" as seconds, by the C library's own calendar. */
static int64_t
seconds(const char *text)
{
	struct tm	tm = {0};
	int			second = 0;

	assert_true(sscanf(text, "%d-%d-%d %d:%d:%d", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
					   &tm.tm_hour, &tm.tm_min, &second) >= 5);
	tm.tm_year -= 1900;
	tm.tm_mon--;
	tm.tm_sec = second;
	return timegm(&tm);
}

static void
expect_fires(const char *expr, const char *after, const char *const *fires)
{
	struct wig_cron cron;
	struct wig_error err = {0};
	int64_t		now = seconds(after);

	if (!wig_cron_parse(expr, &cron, &err))
		fail_msg("%s: %s", expr, err.message);
	for (; *fires != NULL; fires++)
	{
		int64_t		next;
		char		shown[32];
		time_t		shown_time;

		if (!wig_cron_next(&cron, now, &next, &err))
			fail_msg("%s: %s", expr, err.message);
		shown_time = next;
		strftime(shown, sizeof(shown), "%Y-%m-%d %H:%M", gmtime(&shown_time));
		assert_string_equal(shown, *fires);
		assert_true(next > now && next % 60 == 0);
		now = next;
	}
}

#define FIRES(expr, after, ...) \
	expect_fires(expr, after, (const char *const[]) {__VA_ARGS__, NULL})

static void
expect_refusal(const char *expr, const char *message)
{
	struct wig_cron cron;
	struct wig_error err = {0};

	if (wig_cron_parse(expr, &cron, &err))
		fail_msg("'%s' was accepted", expr);
	assert_string_equal(err.message, message);
}

static void
test_sunday_is_0_and_7(void **state)
{
	(void) state;
	FIRES("15 10,12 * * 1,7", "2026-01-01 00:00", "2026-01-04 10:15", "2026-01-04 12:15",
		  "2026-01-05 10:15", "2026-01-05 12:15");
	FIRES("0 1 * * 7", "2026-01-01 00:00", "2026-01-04 01:00", "2026-01-11 01:00",
		  "2026-01-18 01:00", "2026-01-25 01:00");
	FIRES("0 1 * * 0", "2026-01-01 00:00", "2026-01-04 01:00", "2026-01-11 01:00");
	FIRES("0 0 * * 5-7", "2026-01-01 00:00", "2026-01-02 00:00", "2026-01-03 00:00",
		  "2026-01-04 00:00", "2026-01-09 00:00");
	FIRES("0 0 * * 5-7/2", "2026-01-01 00:00", "2026-01-02 00:00", "2026-01-04 00:00",
		  "2026-01-09 00:00", "2026-01-11 00:00");
	FIRES("0 0 * * 6-7/2", "2026-01-01 00:00", "2026-01-03 00:00", "2026-01-10 00:00",
		  "2026-01-17 00:00");
	FIRES("0 0 * * 5/2", "2026-01-01 00:00", "2026-01-02 00:00", "2026-01-04 00:00",
		  "2026-01-09 00:00");
	expect_refusal("0 0 * * 8", "cron field '8': out of range 0-7");
	expect_refusal("0 0 * * 7-1", "cron field '7-1': out of range 0-7");
}

static void
test_leap_days(void **state)
{
	(void) state;
	FIRES("0 9 29 2 *", "2028-02-29 09:00", "2032-02-29 09:00", "2036-02-29 09:00");
	FIRES("0 0 29 2 *", "2097-01-01 00:00", "2104-02-29 00:00");
	FIRES("0 0 29 2 *", "2096-02-29 00:00", "2104-02-29 00:00");
	FIRES("0 0 29 2 *", "2396-02-28 23:59", "2396-02-29 00:00", "2400-02-29 00:00");
	FIRES("0 2 29 2 0", "2027-12-31 00:00", "2028-02-06 02:00", "2028-02-13 02:00",
		  "2028-02-20 02:00", "2028-02-27 02:00", "2028-02-29 02:00", "2029-02-04 02:00");
	FIRES("59 23 31 12 *", "2099-12-31 23:59", "2100-12-31 23:59");
	FIRES("0 0 1 3 *", "2100-02-28 00:00", "2100-03-01 00:00");
}

/* Every slot of UTC fires once, on the days when New York and Berlin change. */
static void
test_no_clock_change(void **state)
{
	static const char *const days[] = {"2026-03-08", "2026-11-01", "2026-03-29", "2026-10-25"};

	(void) state;
	setenv("TZ", "America/New_York", 1);
	tzset();
	for (size_t i = 0; i < sizeof(days) / sizeof(days[0]); i++)
	{
		struct wig_cron cron;
		struct wig_error err;
		char		text[32];
		int64_t		start;
		int64_t		now;
		int64_t		next;

		snprintf(text, sizeof(text), "%s 00:00", days[i]);
		start = now = seconds(text);
		assert_true(wig_cron_parse("30 1,2 * * *", &cron, &err));
		assert_true(wig_cron_next(&cron, now, &next, &err));
		assert_int_equal(next, start + 90 * 60);
		assert_true(wig_cron_next(&cron, next, &next, &err));
		assert_int_equal(next, start + 150 * 60);
		assert_true(wig_cron_next(&cron, next, &next, &err));
		assert_int_equal(next, start + 86400 + 90 * 60);

		assert_true(wig_cron_parse("*/15 * * * *", &cron, &err));
		for (int slot = 1; slot <= 96; slot++)
		{
			assert_true(wig_cron_next(&cron, now, &now, &err));
			assert_int_equal(now, start + slot * 900);
		}
	}
	unsetenv("TZ");
	tzset();
}

static void
test_lists_ranges_steps(void **state)
{
	(void) state;
	FIRES("* * * * *", "2026-05-05 05:05:59", "2026-05-05 05:06", "2026-05-05 05:07");
	FIRES("* * * * *", "2026-12-31 23:59", "2027-01-01 00:00");
	FIRES("1,30,15 9 * * *", "2026-01-01 00:00", "2026-01-01 09:01", "2026-01-01 09:15",
		  "2026-01-01 09:30", "2026-01-02 09:01");
	FIRES("10-12 0 * * *", "2026-01-01 00:00", "2026-01-01 00:10", "2026-01-01 00:11",
		  "2026-01-01 00:12", "2026-01-02 00:10");
	FIRES("*/20 * * * *", "2026-01-01 00:00", "2026-01-01 00:20", "2026-01-01 00:40",
		  "2026-01-01 01:00");
	FIRES("50/5 * * * *", "2026-01-01 00:00", "2026-01-01 00:50", "2026-01-01 00:55",
		  "2026-01-01 01:50");
	FIRES("*/2147483647 0 * * *", "2026-01-01 00:00", "2026-01-02 00:00");
	FIRES("5,, 0 * * *", "2026-01-01 00:00", "2026-01-01 00:05", "2026-01-02 00:05");
	FIRES(" \t0  0\t1 1,7\n* ", "2026-01-01 00:00", "2026-07-01 00:00", "2027-01-01 00:00");
	FIRES("0 0 31 * *", "2026-01-31 00:00", "2026-03-31 00:00", "2026-05-31 00:00");
	FIRES("0 0 30 4-6 *", "2026-01-01 00:00", "2026-04-30 00:00", "2026-05-30 00:00",
		  "2026-06-30 00:00", "2027-04-30 00:00");
}

/* Only a bare star leaves a day field out of the question. */
static void
test_day_or_weekday(void **state)
{
	(void) state;
	FIRES("0 0 13 * 5", "2026-02-01 00:00", "2026-02-06 00:00", "2026-02-13 00:00",
		  "2026-02-20 00:00", "2026-02-27 00:00", "2026-03-06 00:00", "2026-03-13 00:00");
	FIRES("0 0 13 * *", "2026-02-01 00:00", "2026-02-13 00:00", "2026-03-13 00:00");
	FIRES("0 0 * * 5", "2026-02-01 00:00", "2026-02-06 00:00", "2026-02-13 00:00");
	FIRES("0 0 */1 * 5", "2026-02-01 00:00", "2026-02-02 00:00", "2026-02-03 00:00");
	FIRES("0 0 13 * */1", "2026-02-01 00:00", "2026-02-02 00:00", "2026-02-03 00:00");
	FIRES("0 0 */10 * 0", "2026-02-01 00:00", "2026-02-08 00:00", "2026-02-11 00:00",
		  "2026-02-15 00:00");
}

static void
test_before_1970(void **state)
{
	struct wig_cron cron;
	struct wig_error err;
	int64_t		next;

	(void) state;
	FIRES("0 0 * * 4", "1969-12-31 23:59:59", "1970-01-01 00:00", "1970-01-08 00:00");
	FIRES("30 12 29 2 *", "1900-01-01 00:00", "1904-02-29 12:30");
	FIRES("* * * * *", "1969-12-31 23:58:01", "1969-12-31 23:59");
	assert_true(wig_cron_parse("* * * * *", &cron, &err));
	assert_true(wig_cron_next(&cron, -1, &next, &err));
	assert_int_equal(next, 0);
	assert_true(wig_cron_next(&cron, 0, &next, &err));
	assert_int_equal(next, 60);
	assert_false(wig_cron_next(&cron, INT64_MAX, &next, &err));
	assert_false(wig_cron_next(&cron, INT64_MIN, &next, &err));
}

static void
test_never_fires(void **state)
{
	static const char *const never[] = {"0 0 30 2 *", "0 0 31 4,6,9,11 *", "* * 31 2 *"};
	struct wig_cron cron;
	struct wig_error err;
	char		expected[200];
	int64_t		next = 7;

	(void) state;
	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
	{
		assert_true(wig_cron_parse(never[i], &cron, &err));
		assert_false(wig_cron_next(&cron, seconds("2026-01-01 00:00"), &next, &err));
		snprintf(expected, sizeof(expected), "cron '%s' never fires", never[i]);
		assert_string_equal(err.message, expected);
		assert_int_equal(next, 7);
	}
	/* A weekday beside it is enough. */
	FIRES("0 0 30 2 1", "2026-01-01 00:00", "2026-02-02 00:00");
}

static void
test_refusals(void **state)
{
	char		text[400];

	(void) state;
	expect_refusal(NULL, "cron expression is required");
	expect_refusal("", "cron expression is required");
	expect_refusal(" \t\n", "cron expression is required");
	expect_refusal("* * * *", "cron '* * * *' must have 5 fields "
				   "(minute hour day-of-month month day-of-week)");
	expect_refusal("* * * * * *", "cron '* * * * * *' must have 5 fields "
				   "(minute hour day-of-month month day-of-week)");
	expect_refusal("@daily", "cron '@daily' must have 5 fields "
				   "(minute hour day-of-month month day-of-week)");
	expect_refusal("60 * * * *", "cron field '60': out of range 0-59");
	expect_refusal("-5 * * * *", "cron field '-5': out of range 0-59");
	expect_refusal("* 24 * * *", "cron field '24': out of range 0-23");
	expect_refusal("* 0-24 * * *", "cron field '0-24': out of range 0-23");
	expect_refusal("* * 0 * *", "cron field '0': out of range 1-31");
	expect_refusal("* * 32 * *", "cron field '32': out of range 1-31");
	expect_refusal("* * * 0 *", "cron field '0': out of range 1-12");
	expect_refusal("* * * 13/2 *", "cron field '13/2': out of range 1-12");
	expect_refusal("5-3 * * * *", "cron field '5-3': out of range 0-59");
	expect_refusal("*/0 * * * *", "cron field '*/0': step must be >= 1");
	expect_refusal("1-5/-2 * * * *", "cron field '1-5/-2': step must be >= 1");
	expect_refusal("*/x * * * *", "cron field '*/x': 'x' is not a number");
	expect_refusal("*/ * * * *", "cron field '*/': '' is not a number");
	expect_refusal("1/2/3 * * * *", "cron field '1/2/3': '2/3' is not a number");
	expect_refusal("1-2-3 * * * *", "cron field '1-2-3': '2-3' is not a number");
	expect_refusal("1- * * * *", "cron field '1-': '' is not a number");
	expect_refusal("1,,2 * * * *", "cron field '1,,2': '' is not a number");
	expect_refusal(",1 * * * *", "cron field ',1': '' is not a number");
	expect_refusal(", * * * *", "cron field ',': '' is not a number");
	expect_refusal("- * * * *", "cron field '-': '-' is not a number");
	expect_refusal("** * * * *", "cron field '**': '**' is not a number");
	expect_refusal("99999999999999999999 * * * *",
				   "cron field '99999999999999999999': '99999999999999999999' is not a number");
	expect_refusal("* * * JAN *", "cron field 'JAN': 'JAN' is not a number");
	expect_refusal("* * ? * *", "cron field '?': '?' is not a number");
	expect_refusal("* * L * *", "cron field 'L': 'L' is not a number");

	memset(text, '1', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	expect_refusal(text, "cron expression is 399 bytes long, at most 120 are allowed");
}

/* Does the expression fire at this moment? By the rules alone, minute by minute. */
static bool
fires_at(const struct wig_cron *cron, int64_t at)
{
	time_t		when = at;
	struct tm	tm;
	bool		day;
	bool		weekday;

	gmtime_r(&when, &tm);
	day = cron->days >> tm.tm_mday & 1;
	weekday = cron->weekdays >> tm.tm_wday & 1;
	return (cron->minutes >> tm.tm_min & 1) && (cron->hours >> tm.tm_hour & 1) &&
		(cron->months >> (tm.tm_mon + 1) & 1) &&
		(!cron->any_day && !cron->any_weekday ? day || weekday : day && weekday);
}

/* Against a walk over every minute, for random expressions and moments. */
static void
test_against_walk(void **state)
{
	unsigned	seed = 20260101;

	(void) state;
	for (int round = 0; round < 300; round++)
	{
		struct wig_cron cron;
		struct wig_error err;
		char		expr[80];
		int64_t		after = (int64_t) (rand_r(&seed) % 4000000000u) - 1000000000;
		int64_t		next;
		int64_t		walk;

		snprintf(expr, sizeof(expr), "%d/%d %d-%d %s%d * %s%d", rand_r(&seed) % 60,
				 1 + rand_r(&seed) % 40, rand_r(&seed) % 12, 12 + rand_r(&seed) % 12,
				 rand_r(&seed) % 2 ? "*/" : "", 1 + rand_r(&seed) % 28,
				 rand_r(&seed) % 2 ? "*/" : "", 1 + rand_r(&seed) % 7);
		if (!wig_cron_parse(expr, &cron, &err))
			fail_msg("%s: %s", expr, err.message);
		assert_true(wig_cron_next(&cron, after, &next, &err));
		walk = after - ((after % 60) + 60) % 60 + 60;
		while (!fires_at(&cron, walk))
			walk += 60;
		if (walk != next)
			fail_msg("%s after %lld: %lld, not %lld", expr, (long long) after,
					 (long long) next, (long long) walk);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sunday_is_0_and_7),
		cmocka_unit_test(test_leap_days),
		cmocka_unit_test(test_no_clock_change),
		cmocka_unit_test(test_lists_ranges_steps),
		cmocka_unit_test(test_day_or_weekday),
		cmocka_unit_test(test_before_1970),
		cmocka_unit_test(test_never_fires),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_against_walk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
