/*
 * flow_node.c
 *	  Nodes in the making, and the edges that streams leave open.
 */
#include <stdio.h>
#include <string.h>

#include "definition_impl.h"
#include "flow_impl.h"

#define MAX_NODES	10000
#define UNDO_SUFFIX	"#compensate"

static bool
name_is_taken(const struct compiler *c, const char *name)
{
	for (const struct draft *node = c->first; node != NULL; node = node->later)
	{
		if (node->kind != WIG_SLEEP && node->kind != WIG_FORK && node->kind != WIG_JOIN &&
			node->kind != WIG_END && strcmp(node->name, name) == 0)
			return true;
	}
	return false;
}

const char *
wig_flow_concat(struct compiler *c, const char *a, const char *separator, const char *b)
{
	size_t		size = strlen(a) + strlen(separator) + strlen(b) + 1;
	char	   *text = wig_flow_allocate(c, size);

	if (text != NULL)
		snprintf(text, size, "%s%s%s", a, separator, b);
	return text;
}

struct draft *
wig_flow_new_node(struct compiler *c, value_t *where, enum wig_kind kind, const char *name)
{
	static const char *const prefixes[] = {
		[WIG_TASK] = "n", [WIG_PREDICATE] = "n", [WIG_SLEEP] = "n", [WIG_SIGNAL] = "n",
		[WIG_SUB_WORKFLOW] = "n", [WIG_FORK] = "fork", [WIG_DYN_FORK] = "dynfork",
		[WIG_JOIN] = "join", [WIG_END] = "end"
	};
	bool		addressed = kind != WIG_SLEEP && kind != WIG_FORK && kind != WIG_JOIN &&
		kind != WIG_END;
	struct draft *node;

	if (c->nnodes >= MAX_NODES)
	{
		FAIL(c, where, "the workflow has more than %d nodes", MAX_NODES);
		return NULL;
	}
	if (!wig_flow_check_width(c, where, "name", name, WIG_MAX_NAME))
		return NULL;
	if (addressed && name_is_taken(c, name))
	{
		FAIL(c, where, "duplicate step name '%s' in workflow %s", name, c->workflow);
		return NULL;
	}
	node = wig_flow_allocate(c, sizeof(*node));
	if (node == NULL)
		return NULL;
	snprintf(node->id, sizeof(node->id), "%s%d", prefixes[kind], ++c->nnodes);
	node->kind = kind;
	node->name = name;
	if (c->last == NULL)
		c->first = node;
	else
		c->last->later = node;
	c->last = node;
	return node;
}

/* Is `name` what the compensator of the node is called? */
static bool
undoes(const char *name, const struct draft *node)
{
	size_t		len = strlen(node->name);

	return node->compensable && strncmp(name, node->name, len) == 0 &&
		strcmp(name + len, UNDO_SUFFIX) == 0;
}

bool
wig_flow_check_undo(struct compiler *c, value_t *where, const struct draft *node)
{
	for (const struct draft *other = c->first; other != NULL; other = other->later)
	{
		if (undoes(node->name, other) || undoes(other->name, node))
			return FAIL(c, where, "step '%s' has the name of the compensator of step '%s'",
						other->compensable ? node->name : other->name,
						other->compensable ? other->name : node->name);
	}
	return true;
}

struct draft *
wig_flow_new_work(struct compiler *c, value_t *where, enum wig_kind kind, const char *name,
				  const char *queue, const struct wig_retry *retry)
{
	struct draft *node = wig_flow_new_node(c, where, kind, name);

	if (node == NULL)
		return NULL;
	node->activity = wig_flow_concat(c, c->workflow, "#", name);
	node->queue = queue == NULL ? c->default_queue : queue;
	node->retry = retry;
	if (node->activity == NULL || !wig_flow_check_undo(c, where, node) ||
		!wig_flow_check_width(c, where, "workflow and step name", node->activity, WIG_MAX_ACTIVITY) ||
		!wig_flow_check_width(c, where, "queue", node->queue, WIG_MAX_NAME))
		return NULL;
	return node;
}

bool
wig_flow_open_edge(struct compiler *c, struct stream *s, struct draft **edge)
{
	struct open_end *end = wig_flow_allocate(c, sizeof(*end));

	if (end == NULL)
		return false;
	end->edge = edge;
	end->next = s->open;
	s->open = end;
	return true;
}

void
wig_flow_absorb(struct stream *s, struct stream *other)
{
	struct open_end **tail = &s->open;

	while (*tail != NULL)
		tail = &(*tail)->next;
	*tail = other->open;
	other->open = NULL;
}

void
wig_flow_wire_open(struct stream *s, struct draft *target)
{
	for (; s->open != NULL; s->open = s->open->next)
		*s->open->edge = target;
}

void
wig_flow_attach(struct stream *s, struct draft *node)
{
	if (s->start == NULL)
		s->start = node;
	wig_flow_wire_open(s, node);
}
