/*
 * test_grpc_frame.c
 *	  The one message of a unary call, cut into pieces in every way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "grpc_frame.h"

#define MAX 1000

static void
feed_all_at_once(struct grpc_frame *frame, const void *data, size_t len, enum grpc_frame_state want)
{
	assert_int_equal(grpc_frame_feed(frame, data, len, MAX), want);
	assert_int_equal(frame->state, want);
}

static void
whole_in_every_pair_of_pieces(void **state)
{
	static const uint8_t wire[] = {0, 0, 0, 0, 4, 'd', 'a', 't', 'a'};

	(void) state;
	for (size_t cut = 0; cut <= sizeof(wire); cut++)
	{
		struct grpc_frame frame = {0};
		enum grpc_frame_state first = grpc_frame_feed(&frame, wire, cut, MAX);

		assert_int_equal(first, cut == sizeof(wire) ? GRPC_FRAME_WHOLE : GRPC_FRAME_PARTIAL);
		assert_int_equal(grpc_frame_feed(&frame, wire + cut, sizeof(wire) - cut, MAX), GRPC_FRAME_WHOLE);
		assert_int_equal(frame.body.len, 4);
		assert_memory_equal(frame.body.data, "data", 4);
		buf_free(&frame.body);
	}
}

static void
byte_by_byte(void **state)
{
	struct grpc_frame frame = {0};
	uint8_t		wire[GRPC_PREFIX + 700];

	(void) state;
	memset(wire, 'z', sizeof(wire));
	memcpy(wire, "\0\0\0\x02\xbc", GRPC_PREFIX);
	for (size_t i = 0; i < sizeof(wire); i++)
		assert_int_equal(grpc_frame_feed(&frame, wire + i, 1, MAX),
						 i + 1 < sizeof(wire) ? GRPC_FRAME_PARTIAL : GRPC_FRAME_WHOLE);
	assert_int_equal(frame.body.len, 700);
	assert_int_equal(frame.body.data[699], 'z');
	buf_free(&frame.body);
}

static void
empty_message(void **state)
{
	struct grpc_frame frame = {0};

	(void) state;
	feed_all_at_once(&frame, "", 0, GRPC_FRAME_PARTIAL);
	feed_all_at_once(&frame, "\0\0\0\0", 4, GRPC_FRAME_PARTIAL);
	feed_all_at_once(&frame, "\0", 1, GRPC_FRAME_WHOLE);
	assert_null(frame.body.data);
	feed_all_at_once(&frame, "", 0, GRPC_FRAME_WHOLE);
	feed_all_at_once(&frame, "\0", 1, GRPC_FRAME_SECOND);
}

static void
bytes_behind_the_message(void **state)
{
	struct grpc_frame frame = {0};

	(void) state;
	feed_all_at_once(&frame, "\0\0\0\0\1ab", 7, GRPC_FRAME_SECOND);
	feed_all_at_once(&frame, "c", 1, GRPC_FRAME_SECOND);
	assert_int_equal(frame.body.len, 1);
	buf_free(&frame.body);

	memset(&frame, 0, sizeof(frame));
	feed_all_at_once(&frame, "\0\0\0\0\1a\0\0\0\0\1b", 12, GRPC_FRAME_SECOND);
	buf_free(&frame.body);
}

/* A length that no one checked never becomes an allocation. */
static void
bad_prefixes_allocate_nothing(void **state)
{
	static const struct
	{
		uint8_t		prefix[GRPC_PREFIX];
		enum grpc_frame_state want;
	}			cases[] = {
		{{0, 0xff, 0xff, 0xff, 0xff}, GRPC_FRAME_TOO_LARGE},
		{{0, 'h', 't', 't', 'p'}, GRPC_FRAME_TOO_LARGE},
		{{0, 0, 0, 0x03, 0xe9}, GRPC_FRAME_TOO_LARGE},
		{{1, 0, 0, 0, 1}, GRPC_FRAME_COMPRESSED},
		{{1, 0xff, 0xff, 0xff, 0xff}, GRPC_FRAME_COMPRESSED},
		{{2, 0, 0, 0, 1}, GRPC_FRAME_BAD_FLAG},
		{{'G', 'E', 'T', ' ', '/'}, GRPC_FRAME_BAD_FLAG},
	};

	(void) state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		struct grpc_frame frame = {0};

		feed_all_at_once(&frame, cases[i].prefix, GRPC_PREFIX, cases[i].want);
		feed_all_at_once(&frame, "more", 4, cases[i].want);
		assert_null(frame.body.data);
	}
}

static void
the_bound_itself_is_allowed(void **state)
{
	struct grpc_frame frame = {0};
	uint8_t		body[MAX] = {7};

	(void) state;
	feed_all_at_once(&frame, "\0\0\0\x03\xe8", GRPC_PREFIX, GRPC_FRAME_PARTIAL);
	/* nothing is set aside for what has not come */
	assert_int_equal(frame.body.cap, 0);
	feed_all_at_once(&frame, body, MAX - 1, GRPC_FRAME_PARTIAL);
	feed_all_at_once(&frame, body, 1, GRPC_FRAME_WHOLE);
	assert_int_equal(frame.body.len, MAX);
	buf_free(&frame.body);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_in_every_pair_of_pieces),
		cmocka_unit_test(byte_by_byte),
		cmocka_unit_test(empty_message),
		cmocka_unit_test(bytes_behind_the_message),
		cmocka_unit_test(bad_prefixes_allocate_nothing),
		cmocka_unit_test(the_bound_itself_is_allowed),
	};

	return cmocka_run_group_tests_name("grpc_frame", tests, NULL, NULL);
}
