/*
 * test_ids.c
 *	  Ids: what is written, what is recognised, what is not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ids.h"

#define PART "01m446vf3rya1rekthaps4"

static void
test_part(void **state)
{
	char		part[WIG_PART_LEN + 1] = {0};

	(void) state;
	wig_part_encode(part, 0, 0);
	assert_string_equal(part, "0000000000000000000000");
	wig_part_encode(part, UINT64_MAX, UINT64_MAX);
	assert_string_equal(part, "zzzzzzzzzzzzzzzzzzzzzz");
	wig_part_encode(part, 1, 31);
	assert_string_equal(part, "000000000100000000000z");
	wig_part_encode(part, (UINT64_C(1) << 50) + 32, UINT64_C(1) << 60);
	assert_string_equal(part, "0000000010000000000000");
}

static void
test_parts_sort_by_time(void **state)
{
	char		earlier[WIG_PART_LEN];
	char		later[WIG_PART_LEN];
	uint64_t	ms = 1;

	(void) state;
	for (int i = 0; i < 49; i++, ms = ms * 2 + (uint64_t) (i % 3 == 0))
	{
		wig_part_encode(earlier, ms, UINT64_MAX);
		wig_part_encode(later, ms + 1, 0);
		assert_true(memcmp(earlier, later, WIG_PART_LEN) < 0);
	}
}

static const struct
{
	const char *prefix;
	int32_t		shard;
	const char *last;
	const char *id;				/* NULL: refused */
}			formats[] = {
	{"wfi", WIG_NO_SHARD, PART, "wfi_" PART},
	{"wfi", 0, PART, "wfi.s0." PART},
	{"wfi", 7, PART, "wfi.s7." PART},
	{"sched", 12, "x", "sched.s12.x"},
	{"n", 999999999, "x", "n.s999999999.x"},
	{"tok", 10, "a-b_c", "tok.s10.a-b_c"},
	{"wfi", 1000000000, "x", NULL},
	{"wfi", -2, "x", NULL},
	{"", 0, "x", NULL},
	{"Wfi", 0, "x", NULL},
	{"w1", 0, "x", NULL},
	{"w_i", WIG_NO_SHARD, "x", NULL},
	{"wfi", 0, "", NULL},
	{"wfi", WIG_NO_SHARD, "", NULL},
	{"wfi", 0, "a.b", NULL},
	{"wfi", WIG_NO_SHARD, "a.b", NULL}
};

static void
test_format(void **state)
{
	char		id[WIG_ID_MAX + 1];

	(void) state;
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
	{
		int			len = wig_id_format(id, formats[i].prefix, formats[i].shard,
										formats[i].last, strlen(formats[i].last));

		if (formats[i].id == NULL)
			assert_int_equal(len, -1);
		else
		{
			assert_int_equal(len, (int) strlen(formats[i].id));
			assert_string_equal(id, formats[i].id);
			assert_int_equal(wig_id_shard(id, strlen(id)), formats[i].shard);
		}
	}
}

static void
test_longest_id(void **state)
{
	char		id[WIG_ID_MAX + 1];
	char		last[WIG_ID_MAX + 1];

	(void) state;
	memset(last, 'a', sizeof(last));
	assert_int_equal(wig_id_format(id, "wfi", 0, last, WIG_ID_MAX - 7), WIG_ID_MAX);
	assert_int_equal(wig_id_shard(id, WIG_ID_MAX), 0);
	assert_int_equal(wig_id_format(id, "wfi", 0, last, WIG_ID_MAX - 6), -1);
	assert_int_equal(wig_id_format(id, "wfi", WIG_NO_SHARD, last, WIG_ID_MAX - 4), WIG_ID_MAX);
	assert_int_equal(wig_id_format(id, "wfi", WIG_NO_SHARD, last, WIG_ID_MAX - 3), -1);
}

static const struct
{
	const char *id;
	int32_t		shard;
}			shards[] = {
	{"wfi.s0." PART, 0},
	{"wfi.s1." PART, 1},
	{"tok.s31." PART "-4", 31},
	{"sched.s123456789.x", 123456789},
	{"a.s0.b", 0},
	{"wfi_" PART, WIG_NO_SHARD},
	{"orders.e0.s0.x", WIG_NO_SHARD},
	{"wfi.s03.x", WIG_NO_SHARD},
	{"wfi.s00.x", WIG_NO_SHARD},
	{"wfi.s1234567890.x", WIG_NO_SHARD},
	{"WFI.s0.x", WIG_NO_SHARD},
	{"wfi.S0.x", WIG_NO_SHARD},
	{"wfi.s.x", WIG_NO_SHARD},
	{"wfi.s-1.x", WIG_NO_SHARD},
	{"wfi.s0.", WIG_NO_SHARD},
	{"wfi.s0", WIG_NO_SHARD},
	{"wfi.s0.a.b", WIG_NO_SHARD},
	{".s0.x", WIG_NO_SHARD},
	{"w1.s0.x", WIG_NO_SHARD},
	{"", WIG_NO_SHARD},
	{"wfi", WIG_NO_SHARD},
	{" wfi.s0.x", WIG_NO_SHARD}
};

static void
test_shard(void **state)
{
	char		over[WIG_ID_MAX + 2];

	(void) state;
	for (size_t i = 0; i < sizeof(shards) / sizeof(shards[0]); i++)
		assert_int_equal(wig_id_shard(shards[i].id, strlen(shards[i].id)), shards[i].shard);
	memset(over, 'a', sizeof(over));
	memcpy(over, "wfi.s5.", 7);
	assert_int_equal(wig_id_shard(over, WIG_ID_MAX), 5);
	assert_int_equal(wig_id_shard(over, WIG_ID_MAX + 1), WIG_NO_SHARD);
}

static void
test_instance_id(void **state)
{
	static const char *const wrong[] = {
		"", "wfi", "wfi_", "wfi_short", "wfi." PART, "wfi.s0." PART "a",
		"wfi.s0.01m446vf3rya1rekthaps", "tok.s0." PART, "wfi.s0.01m446vf3rya1rekthapsi",
		"wfi.s0.01m446vf3rya1rekthapsI", "wfi_01M446vf3rya1rekthaps4", "wfi.s01." PART,
		"wfix.s0." PART, "wfi-" PART
	};
	int32_t		shard;

	(void) state;
	assert_true(wig_instance_id_valid("wfi.s3." PART, 7 + WIG_PART_LEN, &shard));
	assert_int_equal(shard, 3);
	assert_true(wig_instance_id_valid("wfi_" PART, 4 + WIG_PART_LEN, &shard));
	assert_int_equal(shard, WIG_NO_SHARD);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(wig_instance_id_valid(wrong[i], strlen(wrong[i]), &shard));
}

static void
check_task(const char *instance, int32_t n, const char *expected)
{
	char		task[WIG_ID_MAX + 1];
	char		back[WIG_ID_MAX + 1];
	int32_t		m;

	assert_int_equal(wig_task_id_format(task, instance, strlen(instance), n),
					 (int) strlen(expected));
	assert_string_equal(task, expected);
	assert_true(wig_task_id_parse(task, strlen(task), back, &m));
	assert_string_equal(back, instance);
	assert_int_equal(m, n);
	assert_int_equal(wig_id_shard(task, strlen(task)), wig_id_shard(instance, strlen(instance)));
}

static void
test_task_id(void **state)
{
	static const char *const wrong[] = {
		"", "tok", "tok_" PART, "tok_" PART "-", "tok_" PART "-0", "tok_" PART "-01",
		"tok_" PART "-2147483648", "tok_" PART "--1", "tok_" PART "-1x", "tok.s0." PART "_1",
		"wfi.s0." PART "-1", "tok.s00." PART "-1", "tok.s0.x-1", "tok_" PART "- 1"
	};
	char		out[WIG_ID_MAX + 1];
	int32_t		n;

	(void) state;
	check_task("wfi.s0." PART, 1, "tok.s0." PART "-1");
	check_task("wfi_" PART, 1, "tok_" PART "-1");
	check_task("wfi.s999999999." PART, INT32_MAX, "tok.s999999999." PART "-2147483647");
	assert_int_equal(wig_task_id_format(out, "wfi.s0." PART, 7 + WIG_PART_LEN, 0), -1);
	assert_int_equal(wig_task_id_format(out, "wfi.s0." PART, 7 + WIG_PART_LEN, -5), -1);
	assert_int_equal(wig_task_id_format(out, "tok.s0." PART, 7 + WIG_PART_LEN, 1), -1);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(wig_task_id_parse(wrong[i], strlen(wrong[i]), out, &n));
}

/* Cut anywhere, an id is either refused or still whole by accident of form. */
static void
test_truncated_task_id(void **state)
{
	static const char id[] = "tok.s12." PART "-345";
	char		out[WIG_ID_MAX + 1];
	int32_t		n;

	(void) state;
	for (size_t len = 0; len < sizeof(id) - 1; len++)
		assert_int_equal(wig_task_id_parse(id, len, out, &n), len > sizeof(id) - 1 - 3);
}

static void
test_nonce(void **state)
{
	static const uint64_t nonces[] = {0, 1, 31, 32, UINT64_MAX, UINT64_C(0x123456789ABCDEF0)};
	static const char *const wrong[] = {
		"", "#", "worker", "worker#", "worker#0123", "worker-0000000000000",
		"worker#000000000000i", "worker#g000000000000", "0000000000000"
	};
	char		owner[64] = "a#b#";
	uint64_t	back;

	(void) state;
	for (size_t i = 0; i < sizeof(nonces) / sizeof(nonces[0]); i++)
	{
		wig_nonce_encode(owner + 4, nonces[i]);
		assert_true(wig_nonce_decode(owner, 4 + WIG_NONCE_LEN, &back));
		assert_true(back == nonces[i]);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(wig_nonce_decode(wrong[i], strlen(wrong[i]), &back));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_part),
		cmocka_unit_test(test_parts_sort_by_time),
		cmocka_unit_test(test_format),
		cmocka_unit_test(test_longest_id),
		cmocka_unit_test(test_shard),
		cmocka_unit_test(test_instance_id),
		cmocka_unit_test(test_task_id),
		cmocka_unit_test(test_truncated_task_id),
		cmocka_unit_test(test_nonce)
	};

	return cmocka_run_group_tests_name("ids", tests, NULL, NULL);
}
