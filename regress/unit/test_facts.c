/*
 * test_facts.c
 *	  What a step's command is told: its name, its role, its environment.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "facts.h"

typedef Com__Wiggle__Proto__TaskActivation activation_t;

static activation_t
activation(const char *workflow, const char *step, const char *activity, const char *kind)
{
	activation_t a = COM__WIGGLE__PROTO__TASK_ACTIVATION__INIT;

	a.workflow = (char *) workflow;
	a.step_name = (char *) step;
	a.activity = (char *) activity;
	a.kind = (char *) kind;
	a.instance_id = (char *) "wfi.s0.x";
	a.task_id = (char *) "tok.s0.x-1";
	a.version = 3;
	a.attempt = 2;
	return a;
}

static void
test_names_and_roles(void **state)
{
	static const struct
	{
		const char *workflow;
		const char *step;
		const char *activity;
		const char *kind;
		const char *name;
		enum step_role role;
	}			cases[] = {
		{"order", "charge", "order#charge", "TASK", "charge", ROLE_TASK},
		{"order", "ok", "order#ok", "PREDICATE", "ok", ROLE_GATE},
		{"order", "", "order#charge", "TASK", "charge", ROLE_TASK},
		{"order", "combine:a,b", "order#combine:a,b", "TASK", "combine:a,b", ROLE_TASK},
		{"order", "order#charge#compensate", "order#charge#compensate", "TASK", "charge#compensate", ROLE_COMPENSATOR},
		{"a#b", "a#b#c#d#compensate", "a#b#c#d#compensate", "TASK", "c#d#compensate", ROLE_COMPENSATOR},

		/* A step that somebody called so is an ordinary one. */
		{"order", "charge#compensate", "order#charge#compensate", "TASK", "charge#compensate", ROLE_TASK},
		{"order", "", "elsewhere", "TASK", "", ROLE_TASK}
	};

	(void) state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		activation_t a = activation(cases[i].workflow, cases[i].step, cases[i].activity, cases[i].kind);

		assert_string_equal(facts_step_name(&a), cases[i].name);
		assert_int_equal(facts_role(&a), cases[i].role);
	}
}

/* The value of a variable, NULL when it is not set; it must not stand twice. */
static const char *
variable(char *const *environment, const char *name)
{
	const char *found = NULL;
	size_t		len = strlen(name);

	for (; *environment != NULL; environment++)
	{
		if (strncmp(*environment, name, len) != 0 || (*environment)[len] != '=')
			continue;
		assert_null(found);
		found = *environment + len + 1;
	}
	return found;
}

static void
test_plain_step(void **state)
{
	char	   *inherited[] = {
		"HOME=/root", "WIGGLE_STEP=outer", "WIGGLE_STEPS=mine", "WIGGLE_ITEM_KEY=outer",
		"WIGGLE_BASE_CONTEXT=/outer", "WIGGLE_ARMS=outer", "WIGGLE_URL=u", NULL
	};
	activation_t a = activation("order", "charge", "order#charge", "TASK");
	struct facts facts;

	(void) state;
	a.item_index = 7;			/* means nothing without a base */
	a.item_map_key = (char *) "k";
	facts_make(&facts, &a, "/dev/fd/3", inherited);
	assert_string_equal(variable(facts.environment, "WIGGLE_STEP"), "charge");
	assert_string_equal(variable(facts.environment, "WIGGLE_WORKFLOW"), "order");
	assert_string_equal(variable(facts.environment, "WIGGLE_VERSION"), "3");
	assert_string_equal(variable(facts.environment, "WIGGLE_ATTEMPT"), "2");
	assert_string_equal(variable(facts.environment, "WIGGLE_INSTANCE_ID"), "wfi.s0.x");
	assert_string_equal(variable(facts.environment, "WIGGLE_TASK_ID"), "tok.s0.x-1");
	assert_string_equal(variable(facts.environment, "HOME"), "/root");
	assert_string_equal(variable(facts.environment, "WIGGLE_STEPS"), "mine");
	assert_string_equal(variable(facts.environment, "WIGGLE_URL"), "u");
	assert_null(variable(facts.environment, "WIGGLE_ITEM_INDEX"));
	assert_null(variable(facts.environment, "WIGGLE_ITEM_KEY"));
	assert_null(variable(facts.environment, "WIGGLE_BASE_CONTEXT"));
	assert_null(variable(facts.environment, "WIGGLE_ARMS"));
	assert_null(variable(facts.environment, "WIGGLE_COLLECT_KEY"));
	facts_free(&facts);
}

static void
test_items_and_combines(void **state)
{
	char	   *inherited[] = {NULL};
	char	   *arms[] = {"pay", "ship it"};
	uint8_t		base[] = {0x2a, 0x00};
	activation_t a = activation("order", "price", "order#price", "TASK");
	struct facts facts;

	(void) state;
	a.base_context.data = base;
	a.base_context.len = sizeof(base);
	facts_make(&facts, &a, "/dev/fd/3", inherited);
	assert_string_equal(variable(facts.environment, "WIGGLE_BASE_CONTEXT"), "/dev/fd/3");
	assert_string_equal(variable(facts.environment, "WIGGLE_ITEM_INDEX"), "0");
	assert_null(variable(facts.environment, "WIGGLE_ITEM_KEY"));
	facts_free(&facts);

	a.item_index = 41;
	a.item_map_key = (char *) "a=b\nc";
	a.collect_key = (char *) "__forEach__lines";
	facts_make(&facts, &a, "/dev/fd/3", inherited);
	assert_string_equal(variable(facts.environment, "WIGGLE_ITEM_INDEX"), "41");
	assert_string_equal(variable(facts.environment, "WIGGLE_ITEM_KEY"), "a=b\nc");
	assert_string_equal(variable(facts.environment, "WIGGLE_COLLECT_KEY"), "__forEach__lines");
	facts_free(&facts);

	a = activation("order", "both", "order#both", "TASK");
	a.arm_names = arms;
	a.n_arm_names = 2;
	facts_make(&facts, &a, "/dev/fd/3", inherited);
	assert_string_equal(variable(facts.environment, "WIGGLE_ARMS"), "pay\nship it");
	assert_null(variable(facts.environment, "WIGGLE_BASE_CONTEXT"));
	facts_free(&facts);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_and_roles),
		cmocka_unit_test(test_plain_step),
		cmocka_unit_test(test_items_and_combines)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
