/*
 * flow_hint.c
 *	  Words in an authoring document that stand where they mean nothing.
 */
#include <string.h>

#include "flow_impl.h"
#include "nearest.h"

/* What others call it, too far from our word to be a typo of it. */
static const struct
{
	const char *word;
	const char *ours;
}			synonyms[] = {
	{"name", "workflow"},
	{"signal", "await_signal"},
	{"wait", "sleep"},
	{"delay", "sleep"},
	{"if", "choose"},
	{"switch", "choose"},
	{"while", "do_while"},
	{"loop", "do_while"},
	{"parallel", "fork"},
	{"step", "task"},
	{"call", "sub_workflow"},
	{"workflow", "sub_workflow"},
	{"maxAttempts", "max"}
};

static const struct
{
	const char *key;
	const char *operators;
}			siblings[] = {
	{"queue", "task, effect and gate"},
	{"retry", "task, effect and gate"},
	{"compensable", "task and effect"},
	{"combine", "fork and fork_each"},
	{"timeout", "await_signal"},
	{"escalation", "await_signal"}
};

const char *
wig_flow_meant(const char *key, const char *const *known)
{
	for (size_t i = 0; i < sizeof(synonyms) / sizeof(synonyms[0]); i++)
	{
		for (int k = 0; known[k] != NULL && strcmp(synonyms[i].word, key) == 0; k++)
		{
			if (strcmp(known[k], synonyms[i].ours) == 0)
				return known[k];
		}
	}
	return wig_nearest(key, known);
}

const char *
wig_flow_goes_with(const char *key)
{
	for (size_t i = 0; i < sizeof(siblings) / sizeof(siblings[0]); i++)
	{
		if (strcmp(siblings[i].key, key) == 0)
			return siblings[i].operators;
	}
	return NULL;
}
