/*
 * test_nearest.c
 *	  Which known word a mistyped one is taken for, and when none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nearest.h"

static void
likeness(void **state)
{
	static const char *const words[] = {"id", "user", "pool", "state", "password", "replicaFallback", NULL};

	(void) state;
	assert_string_equal(wig_nearest("pol", words), "pool");
	assert_string_equal(wig_nearest("usre", words), "user");
	assert_string_equal(wig_nearest("ids", words), "id");
	assert_string_equal(wig_nearest("STAT", words), "state");
	assert_string_equal(wig_nearest("passwrod", words), "password");
	assert_string_equal(wig_nearest("replcaFalback", words), "replicaFallback");
	assert_null(wig_nearest("url", words));
	assert_null(wig_nearest("x", words));
	assert_null(wig_nearest("", words));
	assert_null(wig_nearest("pass", words));
	assert_null(wig_nearest("fallback", words));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(likeness),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
