/*
 * facts.c
 *	  What a step's command is told about its task: names and environment.
 *
 * Pure: an activation in, texts out.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "facts.h"

#define UNDO "#compensate"

typedef const Com__Wiggle__Proto__TaskActivation activation_t;

static const char *const names[FACTS_MAX] = {
	"WIGGLE_INSTANCE_ID", "WIGGLE_TASK_ID", "WIGGLE_WORKFLOW", "WIGGLE_VERSION", "WIGGLE_STEP",
	"WIGGLE_ATTEMPT", "WIGGLE_BASE_CONTEXT", "WIGGLE_ITEM_INDEX", "WIGGLE_ITEM_KEY",
	"WIGGLE_ARMS", "WIGGLE_COLLECT_KEY"
};

/* ---- the step ---- */

/*
 * A compensator comes under its whole activity, "<workflow>#<step>#compensate", an
 * ordinary step under its name alone, or under none when the server sends none.
 */
const char *
facts_step_name(activation_t *activation)
{
	size_t		len = strlen(activation->workflow);
	const char *activity = activation->activity;

	if (activation->step_name[0] != '\0' && strcmp(activation->step_name, activity) != 0)
		return activation->step_name;
	if (strncmp(activity, activation->workflow, len) != 0 || activity[len] != '#')
		return activation->step_name;
	return activity + len + 1;
}

enum step_role
facts_role(activation_t *activation)
{
	size_t		len = strlen(activation->activity);
	size_t		undo = strlen(UNDO);

	if (strcmp(activation->kind, "PREDICATE") == 0)
		return ROLE_GATE;
	if (strcmp(activation->step_name, activation->activity) == 0 && len > undo &&
		strcmp(activation->activity + len - undo, UNDO) == 0)
		return ROLE_COMPENSATOR;
	return ROLE_TASK;
}

/* ---- the environment ---- */

/* The texts of the facts; one that does not apply stays empty. */
static void
fill_texts(struct facts *facts, activation_t *a, const char *base_path)
{
	struct buf *texts = facts->texts;

	buf_printf(&texts[0], "%s=%s", names[0], a->instance_id);
	buf_printf(&texts[1], "%s=%s", names[1], a->task_id);
	buf_printf(&texts[2], "%s=%s", names[2], a->workflow);
	buf_printf(&texts[3], "%s=%d", names[3], (int) a->version);
	buf_printf(&texts[4], "%s=%s", names[4], facts_step_name(a));
	buf_printf(&texts[5], "%s=%d", names[5], (int) a->attempt);
	if (a->base_context.len > 0)
	{
		buf_printf(&texts[6], "%s=%s", names[6], base_path);
		buf_printf(&texts[7], "%s=%" PRId64, names[7], a->item_index);
	}
	if (a->base_context.len > 0 && a->item_map_key[0] != '\0')
		buf_printf(&texts[8], "%s=%s", names[8], a->item_map_key);
	for (size_t i = 0; i < a->n_arm_names; i++)
		buf_printf(&texts[9], "%s%s%s", i == 0 ? names[9] : "", i == 0 ? "=" : "\n", a->arm_names[i]);
	if (a->collect_key[0] != '\0')
		buf_printf(&texts[10], "%s=%s", names[10], a->collect_key);
}

static bool
is_fact(const char *variable)
{
	size_t		len = strcspn(variable, "=");

	for (int i = 0; i < FACTS_MAX; i++)
	{
		if (strlen(names[i]) == len && memcmp(names[i], variable, len) == 0)
			return true;
	}
	return false;
}

void
facts_make(struct facts *facts, activation_t *activation, const char *base_path,
		   char *const *inherited)
{
	size_t		n = 0;
	size_t		used = 0;

	memset(facts, 0, sizeof(*facts));
	fill_texts(facts, activation, base_path);
	while (inherited[n] != NULL)
		n++;
	facts->environment = xcalloc(n + FACTS_MAX + 1, sizeof(char *));
	for (int i = 0; i < FACTS_MAX; i++)
	{
		if (facts->texts[i].len > 0)
			facts->environment[used++] = (char *) buf_cstr(&facts->texts[i]);
	}
	for (size_t i = 0; i < n; i++)
	{
		if (!is_fact(inherited[i]))
			facts->environment[used++] = inherited[i];
	}
}

void
facts_free(struct facts *facts)
{
	for (int i = 0; i < FACTS_MAX; i++)
		buf_free(&facts->texts[i]);
	free(facts->environment);
	memset(facts, 0, sizeof(*facts));
}
