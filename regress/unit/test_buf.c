/*
 * test_buf.c
 *	  The byte buffer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "buf.h"

static void
grows_and_keeps_content(void **state)
{
	struct buf	b = BUF_INIT;

	(void) state;
	for (int i = 0; i < 100000; i++)
		buf_byte(&b, (uint8_t) i);
	assert_int_equal(b.len, 100000);
	for (int i = 0; i < 100000; i++)
		assert_int_equal(b.data[i], (uint8_t) i);
	buf_reset(&b);
	assert_int_equal(b.len, 0);
	assert_true(b.cap >= 100000);
	buf_free(&b);
	assert_null(b.data);
	assert_int_equal(b.cap, 0);
}

static void
integers_are_big_endian(void **state)
{
	static const uint8_t want[] = {0x12, 0x34, 1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7, 8};
	struct buf	b = BUF_INIT;

	(void) state;
	buf_u16(&b, 0x1234);
	buf_u32(&b, 0x01020304);
	buf_u64(&b, UINT64_C(0x0102030405060708));
	assert_int_equal(b.len, sizeof(want));
	assert_memory_equal(b.data, want, sizeof(want));
	buf_free(&b);
}

static void
printf_of_every_length(void **state)
{
	char		text[300];

	(void) state;
	for (int n = 0; n < (int) sizeof(text) - 1; n++)
	{
		struct buf	b = BUF_INIT;

		memset(text, 'x', (size_t) n);
		text[n] = '\0';
		buf_printf(&b, "%s", text);
		buf_printf(&b, "<%d>", n);
		assert_int_equal(strncmp(buf_cstr(&b), text, (size_t) n), 0);
		assert_int_equal(atoi(buf_cstr(&b) + n + 1), n);
		assert_int_equal(b.len, strlen((char *) b.data));
		buf_free(&b);
	}
}

static void
nothing_appended_needs_no_memory(void **state)
{
	struct buf	b = BUF_INIT;

	(void) state;
	buf_append(&b, NULL, 0);
	assert_null(b.data);
	assert_string_equal(buf_cstr(&b), "");
	assert_int_equal(b.len, 0);
	buf_free(&b);
}

static void
detach_hands_over(void **state)
{
	struct buf	b = BUF_INIT;
	size_t		len;
	uint8_t    *data;

	(void) state;
	buf_text(&b, "abc");
	data = buf_detach(&b, &len);
	assert_int_equal(len, 3);
	assert_memory_equal(data, "abc", 3);
	assert_null(b.data);
	buf_text(&b, "again");
	assert_int_equal(b.len, 5);
	buf_free(&b);
	free(data);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grows_and_keeps_content),
		cmocka_unit_test(integers_are_big_endian),
		cmocka_unit_test(printf_of_every_length),
		cmocka_unit_test(nothing_appended_needs_no_memory),
		cmocka_unit_test(detach_hands_over),
	};

	return cmocka_run_group_tests_name("buf", tests, NULL, NULL);
}
