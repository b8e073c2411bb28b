/*
 * test_grpc_status.c
 *	  Status codes, percent-coded messages, and what header fields mean.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <openssl/evp.h>

#include "grpc_header.h"
#include "grpc_status.h"

static void
engine_codes(void **state)
{
	(void) state;
	assert_int_equal(grpc_status_from_code(0), GRPC_OK);
	assert_int_equal(grpc_status_from_code(400), GRPC_INVALID_ARGUMENT);
	assert_int_equal(grpc_status_from_code(404), GRPC_NOT_FOUND);
	assert_int_equal(grpc_status_from_code(409), GRPC_FAILED_PRECONDITION);
	assert_int_equal(grpc_status_from_code(500), GRPC_INTERNAL);
	assert_int_equal(grpc_status_from_code(-1), GRPC_INTERNAL);
}

static void
sqlstates(void **state)
{
	(void) state;
	assert_int_equal(grpc_status_from_sqlstate("WG400"), GRPC_INVALID_ARGUMENT);
	assert_int_equal(grpc_status_from_sqlstate("WG404"), GRPC_NOT_FOUND);
	assert_int_equal(grpc_status_from_sqlstate("WG409"), GRPC_FAILED_PRECONDITION);
	assert_int_equal(grpc_status_from_sqlstate("42501"), GRPC_PERMISSION_DENIED);
	assert_int_equal(grpc_status_from_sqlstate("XX000"), GRPC_INTERNAL);
	assert_int_equal(grpc_status_from_sqlstate(NULL), GRPC_INTERNAL);
}

static void
coded_is(const char *text, const char *want)
{
	char		out[256];
	size_t		n = grpc_message_encode(text, out, sizeof(out));

	assert_int_equal(n, strlen(want));
	assert_memory_equal(out, want, n);
}

static void
messages_are_percent_coded(void **state)
{
	(void) state;
	coded_is("", "");
	coded_is("plain text: ~!", "plain text: ~!");
	coded_is("100%", "100%25");
	coded_is("a\nb\tc\x7f", "a%0Ab%09c%7F");
	coded_is("caf\xc3\xa9", "caf%C3%A9");
	coded_is("\xf0\x9f\x98\x80", "%F0%9F%98%80");
}

static void
a_code_is_never_cut(void **state)
{
	char		out[16];

	(void) state;
	for (size_t cap = 0; cap < sizeof(out); cap++)
	{
		size_t		n;

		memset(out, '#', sizeof(out));
		n = grpc_message_encode("ab\xc3\xa9z", out, cap);
		assert_true(n <= cap);
		assert_memory_equal(out, "ab%C3%A9z", n);
		assert_true(n <= 2 || n == 5 || n == 8 || n == 9);
		assert_int_equal(out[n < sizeof(out) ? n : 0], n < sizeof(out) ? '#' : 'a');
	}
}

static void
content_types(void **state)
{
	static const char *const good[] = {
		"application/grpc", "application/grpc+proto", "application/grpc; charset=utf-8",
		"application/grpc+proto;v=1", "Application/gRPC"
	};
	static const char *const bad[] = {
		"", "application/json", "application/grpcx", "application/grpc-web", "application/grpc+json",
		"application/grpc+protox", "application/grp", "text/application/grpc"
	};

	(void) state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(grpc_content_type_ok(good[i], strlen(good[i])));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(grpc_content_type_ok(bad[i], strlen(bad[i])));
}

static void
timeouts(void **state)
{
	static const struct
	{
		const char *text;
		uint64_t	ms;
	}			good[] = {
		{"1H", 3600000}, {"2M", 120000}, {"3S", 3000}, {"300m", 300}, {"1u", 1}, {"1001u", 2},
		{"1n", 1}, {"99999999n", 100}, {"0m", 0}, {"99999999H", UINT64_C(359999996400000)}
	};
	static const char *const bad[] = {"", "S", "1", "123456789S", "1x", "-1S", "1 S", "1.5S", "1s"};
	uint64_t	ms;

	(void) state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
	{
		assert_true(grpc_timeout_parse(good[i].text, strlen(good[i].text), &ms));
		assert_int_equal(ms, good[i].ms);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(grpc_timeout_parse(bad[i], strlen(bad[i]), &ms));
}

static void
paths(void **state)
{
	static const char *const other[] = {
		"", "/", "/com.wiggle.proto.WiggleControlPlane", "/com.wiggle.proto.Other/HealthCheck",
		"com.wiggle.proto.WiggleControlPlane/HealthCheck", "/grpc.health.v1.Health/Check"
	};
	const char *method;
	size_t		len;

	(void) state;
	assert_true(grpc_path_split("/com.wiggle.proto.WiggleControlPlane/PollTasks", 46, &method, &len));
	assert_int_equal(len, 9);
	assert_memory_equal(method, "PollTasks", 9);
	assert_true(grpc_path_split("/dev.wiggle.proto.WiggleControlPlane/", 37, &method, &len));
	assert_int_equal(len, 0);
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
	{
		assert_false(grpc_path_split(other[i], strlen(other[i]), &method, &len));
		assert_null(method);
	}
}

/* What grpc_details writes, decoded by OpenSSL, as it stands between the fields that are not text. */
static size_t
details_of(enum grpc_status status, const char *message, uint8_t *out)
{
	struct buf	text = BUF_INIT;
	size_t		len;

	grpc_details(status, message, &text);
	assert_null(memchr(text.data, '=', text.len));
	len = text.len / 4 * 3 + (text.len % 4 > 0 ? text.len % 4 - 1 : 0);
	while (text.len % 4 != 0)
		buf_byte(&text, '=');
	assert_true(EVP_DecodeBlock(out, text.data, (int) text.len) >= (int) len);
	buf_free(&text);
	return len;
}

static void
details(void **state)
{
	/* The message's length, 0 to 2 more bytes, moves the padding that is left out. */
	static const char *const messages[] = {"", "x", "xy"};
	static const char info[] = "\x1a\x41\x0a\x28type.googleapis.com/google.rpc.ErrorInfo\x12\x15"
		"\x0a\x0bWRONG_STATE\x12\x06wiggle";
	uint8_t		out[4096];

	(void) state;
	for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++)
	{
		size_t		len = details_of(GRPC_FAILED_PRECONDITION, messages[i], out);

		assert_int_equal(len, 4 + i + sizeof(info) - 1);
		assert_memory_equal(out, ((uint8_t[]) {0x08, 9, 0x12, (uint8_t) i}), 4);
		assert_memory_equal(out + 4, messages[i], i);
		assert_memory_equal(out + 4 + i, info, sizeof(info) - 1);
	}
}

static void
details_say_when_to_try_again(void **state)
{
	static const char retry[] = "\x1a\x30\x0a\x28type.googleapis.com/google.rpc.RetryInfo\x12\x04\x0a\x02\x08\x01";
	uint8_t		out[4096];
	size_t		len = details_of(GRPC_UNAVAILABLE, "later", out);

	(void) state;
	assert_true(len > sizeof(retry));
	assert_memory_equal(out + len - (sizeof(retry) - 1), retry, sizeof(retry) - 1);
}

/* A long message needs a length of two bytes, and is not to break the message around it. */
static void
details_of_a_long_message_that_is_not_utf8(void **state)
{
	char		message[1025];
	uint8_t		out[4096];

	(void) state;
	memset(message, 'm', sizeof(message) - 1);
	message[1024] = '\0';
	message[0] = '\xff';
	assert_true(details_of(GRPC_NOT_FOUND, message, out) > 1026);
	assert_memory_equal(out, "\x08\x05\x12\x82\x08\xef\xbf\xbdm", 9);
	assert_memory_equal(out + 5 + 1026, "\x1a\x3f\x0a\x28type", 8);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(engine_codes),
		cmocka_unit_test(sqlstates),
		cmocka_unit_test(messages_are_percent_coded),
		cmocka_unit_test(a_code_is_never_cut),
		cmocka_unit_test(details),
		cmocka_unit_test(details_say_when_to_try_again),
		cmocka_unit_test(details_of_a_long_message_that_is_not_utf8),
		cmocka_unit_test(content_types),
		cmocka_unit_test(timeouts),
		cmocka_unit_test(paths),
	};

	return cmocka_run_group_tests_name("grpc_status", tests, NULL, NULL);
}
