/*
 * test_connect.c
 *	  Fields and refusals of the Connect protocol.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "connect.h"

static bool
is(const char *type, enum call_format expected)
{
	enum call_format format = CALL_PROTOBUF;

	return connect_content_type(type, strlen(type), &format) && format == expected;
}

static void
content_types(void **state)
{
	static const char *const bad[] = {"", "application/jso", "application/jsonl", "application/json+x", "text/json",
	"application/proton", "application/grpc", "application/connect+json"};

	(void) state;
	assert_true(is("application/json", CALL_JSON));
	assert_true(is("Application/JSON;charset=UTF-8", CALL_JSON));
	assert_true(is("application/json ; charset=utf-8", CALL_JSON));
	assert_true(is("application/proto", CALL_PROTOBUF));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(is(bad[i], CALL_JSON) || is(bad[i], CALL_PROTOBUF));
}

static void
numbers(void **state)
{
	uint64_t	n = 7;

	(void) state;
	assert_true(connect_number("9999999999", 10, &n));
	assert_true(n == 9999999999);
	assert_true(connect_number("0", 1, &n));
	assert_true(n == 0);
	assert_false(connect_number("", 0, &n));
	assert_false(connect_number("12345678901", 11, &n));
	assert_false(connect_number("-1", 2, &n));
	assert_false(connect_number("1s", 2, &n));
}

static void
error_is(enum grpc_status status, const char *message, uint16_t http_status, const char *expected)
{
	struct buf	body = BUF_INIT;

	assert_int_equal(connect_http_status(status), http_status);
	connect_error(status, message, &body);
	assert_string_equal(buf_cstr(&body), expected);
	buf_free(&body);
}

static void
errors(void **state)
{
	(void) state;
	error_is(GRPC_NOT_FOUND, "instance not found", 404, "{\"code\":\"not_found\",\"message\":\"instance not found\"}");
	error_is(GRPC_CANCELLED, "", 499, "{\"code\":\"canceled\",\"message\":\"\"}");
	error_is(GRPC_FAILED_PRECONDITION, "a \"b\"\n\xc3\xa4", 400,
			 "{\"code\":\"failed_precondition\",\"message\":\"a \\\"b\\\"\\u000a\xc3\xa4\"}");
	error_is(GRPC_UNAVAILABLE, "cut \xe2\x82", 503,
			 "{\"code\":\"unavailable\",\"message\":\"cut \xef\xbf\xbd\xef\xbf\xbd\"}");
	for (int status = GRPC_CANCELLED; status <= GRPC_UNAUTHENTICATED; status++)
		assert_true(connect_http_status((enum grpc_status) status) >= 400);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(content_types),
		cmocka_unit_test(numbers),
		cmocka_unit_test(errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
