/*
 * test_permission.c
 *	  What permissions allow, and what a header field presents.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "credential.h"
#include "permission.h"

static void
permissions(void **state)
{
	static const struct
	{
		const char *granted;
		const char *action;
		const char *scope;
		bool		allowed;
		bool		some;
	}			cases[] = {
		{"*", "read", NULL, true, true},
		{"*", "user.manage", "x", true, true},
		{"read", "read", NULL, true, true},
		{"read", "read", "order", true, true},
		{"read", "readiness", NULL, false, false},
		{"readiness", "read", NULL, false, false},
		{"read:order", "read", "order", true, true},
		{"read:order", "read", "orders", false, true},
		{"read:order", "read", "orde", false, true},
		{"read:order", "read", NULL, false, true},
		{"read:order", "instance.start", "order", false, false},
		{"read:acme.*", "read", "acme.orders", true, true},
		{"read:acme.*", "read", "acme.", true, true},
		{"read:acme.*", "read", "acme", false, true},
		{"read:acme.*", "read", "acmex.orders", false, true},
		{"read:acme.*", "read", NULL, false, true},
		{"read:acme*", "read", "acmex", false, true},
		{"read:.*", "read", "x", false, true},
		{"task.poll:a:b", "task.poll", "a:b", true, true},
		{"task.poll:a:b", "task.poll", "a", false, true},
	};

	(void) state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		const char *granted[] = {"trigger.write", cases[i].granted};
		bool		allowed = permission_allows(granted, 2, cases[i].action, cases[i].scope);
		bool		some = permission_allows_some(granted, 2, cases[i].action);

		if (allowed != cases[i].allowed || some != cases[i].some)
			fail_msg("case %zu, '%s' for '%s' on '%s': expected %d %d, got %d %d", i, cases[i].granted, cases[i].action,
					 cases[i].scope != NULL ? cases[i].scope : "(all)", cases[i].allowed, cases[i].some, allowed, some);
		assert_false(permission_allows(granted, 0, cases[i].action, cases[i].scope));
	}
}

static void
header_fields(void **state)
{
	static const struct
	{
		const char *value;
		enum credential_kind kind;
	}			cases[] = {
		{"Bearer abc", CREDENTIAL_KEY},
		{"bearer  abc ", CREDENTIAL_KEY},
		{"BEARER abc", CREDENTIAL_KEY},
		{"Bearer", CREDENTIAL_MALFORMED},
		{"Bearer ", CREDENTIAL_MALFORMED},
		{"Bearer    ", CREDENTIAL_MALFORMED},
		{"Basic abc", CREDENTIAL_MALFORMED},
		{"", CREDENTIAL_MALFORMED},
	};
	static const uint8_t abc[] = {0xba, 0x78, 0x16, 0xbf};
	struct credential first = {.kind = CREDENTIAL_NONE};
	struct credential other = {.kind = CREDENTIAL_NONE};

	(void) state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		struct credential c = {.kind = CREDENTIAL_NONE};

		credential_from_header(&c, cases[i].value, strlen(cases[i].value));
		if (c.kind != cases[i].kind)
			fail_msg("'%s': expected kind %d, got %d", cases[i].value, (int) cases[i].kind, (int) c.kind);
		if (c.kind == CREDENTIAL_KEY)
			assert_memory_equal(c.hash, abc, sizeof(abc));
	}
	credential_from_header(&first, "Bearer abc", 10);
	credential_from_subject(&first, "CN=x");
	assert_int_equal(first.kind, CREDENTIAL_KEY);
	credential_from_subject(&other, NULL);
	assert_int_equal(other.kind, CREDENTIAL_NONE);
	credential_from_subject(&other, "abc");
	assert_int_equal(other.kind, CREDENTIAL_CERTIFICATE);
	assert_memory_equal(first.hash, other.hash, CREDENTIAL_HASH);
	assert_false(credential_equal(&first, &other));
	assert_true(credential_equal(&first, &first));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(permissions),
		cmocka_unit_test(header_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
