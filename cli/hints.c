/*
 * hints.c
 *	  What a workflow file says to no effect.
 *
 * Pure: a text in, hints out. The document's shape is the compiler's business
 * (core/flow.c); here only the names of keys are looked at.
 */
#include <stddef.h>
#include <string.h>

#include "flow_tree.h"
#include "hints.h"

typedef const struct wig_flow_value value_t;

struct seeker
{
	hint_fn		tell;
	void	   *arg;
};

/* An operator: the keys beside it, and those of the mapping that it may hold. */
struct shape
{
	const char *name;
	const char *beside[5];
	const char *within[6];		/* none: its value is no mapping of known keys */
	const char *steps;			/* the key of the list of steps in that mapping */
};

static const struct shape shapes[] = {
	{"task", {"queue", "retry", "compensable"}, {NULL}, NULL},
	{"effect", {"queue", "retry", "compensable"}, {NULL}, NULL},
	{"gate", {"queue", "retry"}, {NULL}, NULL},
	{"sleep", {NULL}, {"for", "name"}, NULL},
	{"await_signal", {"timeout", "escalation"}, {NULL}, NULL},
	{"sub_workflow", {NULL}, {"name", "workflow"}, NULL},
	{"fork", {"combine", "queue", "retry"}, {NULL}, NULL},
	{"fork_each", {"combine", "queue", "retry"}, {"over", "as", "name", "body", "combine"}, "body"},
	{"choose", {NULL}, {NULL}, NULL},
	{"do_while", {NULL}, {"while", "body", "maxIterations"}, "body"}
};

static const char *const top_keys[] = {"workflow", "version", "defaultQueue", "steps", NULL};
static const char *const retry_keys[] = {"max", "backoff", "multiplier", "maxBackoff", "jitter", NULL};
static const char *const case_keys[] = {"when", "then", NULL};
static const char *const otherwise_keys[] = {"otherwise", "then", NULL};

static void seek_steps(const struct seeker *seeker, value_t *steps);

static bool
is_among(const char *key, const char *const *keys)
{
	for (; *keys != NULL; keys++)
	{
		if (strcmp(*keys, key) == 0)
			return true;
	}
	return false;
}

static void
say(const struct seeker *seeker, const struct wig_flow_entry *entry, const char *where,
	const char *const *known)
{
	struct wig_error hint;
	struct buf	list = BUF_INIT;

	for (; *known != NULL; known++)
		buf_printf(&list, "%s%s", list.len == 0 ? "; known there: " : ", ", *known);
	wig_fail_at(&hint, entry->value->line, entry->value->column,
				"'%s' has no meaning %s%s", entry->key, where, buf_cstr(&list));
	seeker->tell(seeker->arg, &hint);
	buf_free(&list);
}

static void
seek_keys(const struct seeker *seeker, value_t *map, const char *where, const char *const *known)
{
	if (map == NULL || map->type != WIG_FLOW_MAP)
		return;
	for (const struct wig_flow_entry *e = map->first; e != NULL; e = e->next)
	{
		if (!is_among(e->key, known))
			say(seeker, e, where, known);
	}
}

/* The branches of a fork, or the cases of a choose. */
static void
seek_branches(const struct seeker *seeker, const char *op, value_t *value)
{
	for (const struct wig_flow_entry *e = value->first; e != NULL; e = e->next)
	{
		value_t    *branch = e->value;
		value_t    *otherwise;

		if (strcmp(op, "fork") == 0)
		{
			seek_steps(seeker, branch);
			continue;
		}
		if (branch->type != WIG_FLOW_MAP)
			continue;
		otherwise = wig_flow_get(branch, "otherwise");
		seek_keys(seeker, branch, "in a case of choose", otherwise == NULL ? case_keys : otherwise_keys);
		seek_steps(seeker, wig_flow_get(branch, "then"));
		if (otherwise != NULL && otherwise->type == WIG_FLOW_MAP)
		{
			seek_keys(seeker, otherwise, "in otherwise", case_keys + 1);
			seek_steps(seeker, wig_flow_get(otherwise, "then"));
		}
	}
}

static const struct shape *
shape_of(value_t *step)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
	{
		if (wig_flow_get(step, shapes[i].name) != NULL)
			return &shapes[i];
	}
	return NULL;
}

static void
seek_step(const struct seeker *seeker, value_t *step)
{
	const struct shape *shape = step->type == WIG_FLOW_MAP ? shape_of(step) : NULL;
	value_t    *value;
	struct buf	where = BUF_INIT;

	if (shape == NULL)
		return;
	value = wig_flow_get(step, shape->name);
	buf_printf(&where, "beside %s", shape->name);
	for (const struct wig_flow_entry *e = step->first; e != NULL; e = e->next)
	{
		if (strcmp(e->key, shape->name) != 0 && !is_among(e->key, shape->beside))
			say(seeker, e, buf_cstr(&where), shape->beside);
	}
	if (is_among("retry", shape->beside))
		seek_keys(seeker, wig_flow_get(step, "retry"), "in retry", retry_keys);
	if (shape->within[0] != NULL)
	{
		buf_reset(&where);
		buf_printf(&where, "in %s", shape->name);
		seek_keys(seeker, value, buf_cstr(&where), shape->within);
	}
	if (shape->steps != NULL && value->type == WIG_FLOW_MAP)
		seek_steps(seeker, wig_flow_get(value, shape->steps));
	if (strcmp(shape->name, "fork") == 0 || strcmp(shape->name, "choose") == 0)
		seek_branches(seeker, shape->name, value);
	if (strcmp(shape->name, "await_signal") == 0)
		seek_steps(seeker, wig_flow_get(step, "escalation"));
	buf_free(&where);
}

/* Depth is bounded by the reader (WIG_FLOW_MAX_DEPTH). */
static void
seek_steps(const struct seeker *seeker, value_t *steps)
{
	if (steps == NULL || steps->type != WIG_FLOW_LIST)
		return;
	for (const struct wig_flow_entry *e = steps->first; e != NULL; e = e->next)
		seek_step(seeker, e->value);
}

void
hints_find(const struct buf *text, hint_fn tell, void *arg)
{
	const struct seeker seeker = {.tell = tell, .arg = arg};
	struct wig_arena *arena = wig_arena_new();
	value_t    *root;

	if (arena == NULL)
		return;
	root = wig_flow_read_yaml((const char *) text->data, text->len, arena, NULL);
	if (root != NULL && root->type == WIG_FLOW_MAP && wig_flow_get(root, "nodes") == NULL)
	{
		seek_keys(&seeker, root, "in a workflow", top_keys);
		seek_steps(&seeker, wig_flow_get(root, "steps"));
	}
	wig_arena_free(arena);
}
