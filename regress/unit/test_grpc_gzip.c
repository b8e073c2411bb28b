/*
 * test_grpc_gzip.c
 *	  Messages in gzip: round trips, bounds and what is none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "grpc_gzip.h"

#define LARGE	(3 << 20)

static void
there_and_back(void **state)
{
	static const size_t sizes[] = {100, 511, 512, 513, 4096, 100000, LARGE};
	uint8_t    *data = malloc(LARGE);

	(void) state;
	for (size_t i = 0; i < LARGE; i++)
		data[i] = (uint8_t) (i / 7 % 11);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
	{
		struct buf	gzip = BUF_INIT;
		struct buf	plain = BUF_INIT;

		buf_text(&gzip, "head");
		assert_true(grpc_gzip(data, sizes[i], &gzip));
		assert_true(gzip.len < 4 + sizes[i]);
		assert_memory_equal(gzip.data, "head", 4);
		assert_int_equal(grpc_gunzip(gzip.data + 4, gzip.len - 4, sizes[i], &plain), GUNZIP_DONE);
		assert_int_equal(plain.len, sizes[i]);
		assert_memory_equal(plain.data, data, sizes[i]);
		buf_free(&plain);
		assert_int_equal(grpc_gunzip(gzip.data + 4, gzip.len - 4, sizes[i] - 1, &plain), GUNZIP_TOO_LARGE);
		assert_null(plain.data);
		for (size_t cut = 0; cut < gzip.len - 4; cut += 1 + cut / 3)
		{
			assert_int_equal(grpc_gunzip(gzip.data + 4, cut, LARGE, &plain), GUNZIP_MALFORMED);
			assert_null(plain.data);
		}
		buf_byte(&gzip, 0);
		assert_int_equal(grpc_gunzip(gzip.data + 4, gzip.len - 4, LARGE, &plain), GUNZIP_MALFORMED);
		buf_free(&gzip);
	}
	free(data);
}

static void
what_does_not_shrink(void **state)
{
	struct buf	out = BUF_INIT;
	uint8_t		noise[300];
	uint32_t	seed = 1;

	(void) state;
	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (uint8_t) ((seed = seed * 1103515245 + 12345) >> 16);
	buf_text(&out, "head");
	assert_false(grpc_gzip(noise, sizeof(noise), &out));
	assert_int_equal(out.len, 4);
	assert_false(grpc_gzip((const uint8_t *) "", 0, &out));
	assert_int_equal(out.len, 4);
	buf_free(&out);
}

static void
who_accepts_it(void **state)
{
	static const char *const yes[] = {"gzip", "identity,gzip", "identity, deflate, gzip", "gzip , x", " gzip"};
	static const char *const no[] = {"", "identity", "gzipped", "xgzip", "x,,", ",", "gz ip", "GZIP"};

	(void) state;
	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		assert_true(grpc_gzip_accepted(yes[i], strlen(yes[i])));
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		assert_false(grpc_gzip_accepted(no[i], strlen(no[i])));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_and_back),
		cmocka_unit_test(what_does_not_shrink),
		cmocka_unit_test(who_accepts_it),
	};

	return cmocka_run_group_tests_name("grpc_gzip", tests, NULL, NULL);
}
