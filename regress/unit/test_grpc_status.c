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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(engine_codes),
		cmocka_unit_test(sqlstates),
		cmocka_unit_test(messages_are_percent_coded),
		cmocka_unit_test(a_code_is_never_cut),
		cmocka_unit_test(content_types),
		cmocka_unit_test(timeouts),
		cmocka_unit_test(paths),
	};

	return cmocka_run_group_tests_name("grpc_status", tests, NULL, NULL);
}
