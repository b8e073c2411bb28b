/*
 * test_bucket.c
 *	  Buckets of tasks, and their ranges.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "bucket.h"

static void
test_known_sums(void **state)
{
	(void) state;
	assert_int_equal(wig_crc32("", 0), 0);
	assert_int_equal(wig_crc32("123456789", 9), 0xcbf43926);
	assert_int_equal(wig_bucket("123456789", 9), 0xcbf43926 % 1000);
}

static void
test_sums_are_those_of_zlib(void **state)
{
	char		text[300];

	(void) state;
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char) (i * 7919 >> 3);
	for (size_t len = 0; len <= sizeof(text); len++)
		assert_int_equal(wig_crc32(text, len), crc32(0, (const Bytef *) text, (uInt) len));
}

static void
test_three_members(void **state)
{
	static const int bounds[] = {0, 334, 667, 1000};
	int			start;
	int			end;

	(void) state;
	for (int i = 0; i < 3; i++)
	{
		wig_bucket_range(i, 3, &start, &end);
		assert_int_equal(start, bounds[i]);
		assert_int_equal(end, bounds[i + 1]);
	}
}

/* No gap and no overlap; sizes differ by one at most, and the larger come first. */
static void
test_ranges_tile_the_buckets(void **state)
{
	(void) state;
	for (int members = 1; members <= 1200; members++)
	{
		int			at = 0;
		int			size_before = WIG_BUCKETS;

		for (int i = 0; i < members; i++)
		{
			int			start;
			int			end;

			wig_bucket_range(i, members, &start, &end);
			assert_int_equal(start, at);
			assert_true(end - start <= size_before);
			assert_in_range(end - start, WIG_BUCKETS / members, (WIG_BUCKETS + members - 1) / members);
			size_before = end - start;
			at = end;
		}
		assert_int_equal(at, WIG_BUCKETS);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_sums),
		cmocka_unit_test(test_sums_are_those_of_zlib),
		cmocka_unit_test(test_three_members),
		cmocka_unit_test(test_ranges_tile_the_buckets)
	};

	return cmocka_run_group_tests_name("bucket", tests, NULL, NULL);
}
