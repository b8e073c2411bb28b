/*
 * definition_check.c
 *	  Does the graph as a whole hang together?
 *
 * Each node lies in one scope: outside of every fork (-1) or inside a fork,
 * whose index is then the scope's name. A fork's branches enter its scope, a
 * join leaves it. A graph in which a node is reached in two scopes, or a fork
 * has no join or two, cannot run: some token would wait for ever.
 */
#include <stdlib.h>
#include <string.h>

#include "definition_impl.h"

#define NOT_REACHED		(-2)
#define NO_FORK			(-1)
#define NO_NODE			(-1)

struct walk
{
	const struct wig_definition *def;
	struct wig_error *err;
	int		   *scope;			/* by node: the fork it lies in */
	int		   *join_of;		/* by fork: where its branches meet */
	int		   *queue;			/* nodes reached and not yet looked at */
	int			queued;
};

/* What a kind cannot do without. */
struct obligation
{
	bool		next;
	bool		activity;
	bool		name;
};

static const struct obligation obligations[] = {
	[WIG_TASK] = {.next = true, .activity = true},
	[WIG_PREDICATE] = {.next = true, .activity = true},
	[WIG_SLEEP] = {.next = true},
	[WIG_SIGNAL] = {.next = true, .name = true},
	[WIG_SUB_WORKFLOW] = {.next = true, .activity = true},
	[WIG_FORK] = {.next = false},
	[WIG_DYN_FORK] = {.next = false},
	[WIG_JOIN] = {.next = true},
	[WIG_END] = {.next = false}
};

static bool
is_missing(const char *text)
{
	return text == NULL || text[strspn(text, " \t\r\n")] == '\0';
}

static bool
check_node(const struct wig_node *node, struct wig_error *err)
{
	const struct obligation *must = &obligations[node->kind];
	const char *kind = wig_kind_name(node->kind);

	if (must->next && node->next < 0)
		return wig_fail(err, "node %s has no successor", node->id);
	if (must->activity && is_missing(node->activity))
		return wig_fail(err, "node '%s': a %s needs an activity%s", node->id, kind,
						node->kind == WIG_SUB_WORKFLOW ? ", the name of the child workflow" : "");
	if (must->name && is_missing(node->name))
		return wig_fail(err, "node '%s': a %s needs a name", node->id, kind);

	switch (node->kind)
	{
		case WIG_PREDICATE:
			if (node->alt < 0)
				return wig_fail(err, "predicate %s has no false branch", node->id);
			break;
		case WIG_SIGNAL:
			if (node->alt >= 0 && node->sleep_ms == 0)
				return wig_fail(err, "node '%s': escalation needs a timeout: altNext is set and "
								"sleepMillis is not", node->id);
			break;
		case WIG_FORK:
			if (node->nbranches < 2)
				return wig_fail(err, "fork %s has fewer than two branches", node->id);
			break;
		case WIG_DYN_FORK:
			if (node->nbranches != 1)
				return wig_fail(err, "dynamic fork %s needs exactly one branch template", node->id);
			if (is_missing(node->items_key) || is_missing(node->item_key))
				return wig_fail(err, "dynamic fork %s is missing its items/item keys", node->id);
			break;
		default:
			break;
	}
	return true;
}

/* Names by which people and workers address a node; the others may repeat. */
static bool
has_step_name(const struct wig_node *node)
{
	switch (node->kind)
	{
		case WIG_TASK:
		case WIG_PREDICATE:
		case WIG_SIGNAL:
		case WIG_SUB_WORKFLOW:
		case WIG_DYN_FORK:
			return node->name != NULL;
		default:
			return false;
	}
}

static int
compare_strings(const void *a, const void *b)
{
	return strcmp(*(const char *const *) a, *(const char *const *) b);
}

static bool
check_step_names(const struct wig_definition *def, struct wig_error *err)
{
	const char **names = malloc((size_t) def->nnodes * sizeof(*names));
	int			n = 0;
	bool		unique = true;

	if (names == NULL)
		return wig_fail(err, "out of memory");
	for (int i = 0; i < def->nnodes; i++)
	{
		if (has_step_name(&def->nodes[i]))
			names[n++] = def->nodes[i].name;
	}
	if (n > 1)
		qsort(names, (size_t) n, sizeof(*names), compare_strings);
	for (int i = 1; i < n && unique; i++)
	{
		if (strcmp(names[i - 1], names[i]) == 0)
			unique = wig_fail(err, "duplicate step name '%s' in workflow %s", names[i], def->name);
	}
	free(names);
	return unique;
}

/*
 * The join of a step that creates branches while it runs: no fork node leads to
 * it, the step itself does, and a combine with a key of its own follows.
 */
static bool
is_spawn_join(const struct wig_definition *def, const struct wig_node *node)
{
	const struct wig_node *next;

	if (node->kind != WIG_JOIN || node->expected != 0)
		return false;
	next = &def->nodes[node->next];
	return next->kind == WIG_TASK && next->collect_key != NULL &&
		strncmp(next->collect_key, WIG_SPAWN_PREFIX, strlen(WIG_SPAWN_PREFIX)) == 0;
}

static const char *
scope_name(const struct wig_definition *def, int scope)
{
	return scope < 0 ? "(none)" : def->nodes[scope].id;
}

/* The node to is reached in this scope. */
static bool
reach(struct walk *w, int to, int scope)
{
	if (to < 0 || w->scope[to] == scope)
		return true;
	if (w->scope[to] != NOT_REACHED)
		return wig_fail(w->err, "node %s is reached inside fork %s and inside fork %s; a branch "
						"leaves its fork through the fork's join only", w->def->nodes[to].id,
						scope_name(w->def, w->scope[to]), scope_name(w->def, scope));
	w->scope[to] = scope;
	w->queue[w->queued++] = to;
	return true;
}

/* The arms that a combine behind a join waits for must be the fork's. */
static bool
check_combine(struct walk *w, const struct wig_node *fork, const struct wig_node *combine)
{
	if (combine->kind != WIG_TASK || (combine->narms == 0 && combine->collect_key == NULL))
		return true;
	if (fork->kind == WIG_DYN_FORK)
		return combine->collect_key != NULL ||
			wig_fail(w->err, "combine %s follows dynamic fork %s: it needs a collectKey, not "
					 "armNames", combine->id, fork->id);
	if (combine->narms == 0)
		return wig_fail(w->err, "combine %s follows fork %s: it needs armNames, not a collectKey",
						combine->id, fork->id);
	return combine->narms == fork->nbranches ||
		wig_fail(w->err, "combine %s names %d arms, but fork %s has %d branches", combine->id,
				 combine->narms, fork->id, fork->nbranches);
}

static bool
visit_join(struct walk *w, int at)
{
	const struct wig_definition *def = w->def;
	const struct wig_node *node = &def->nodes[at];
	int			scope = w->scope[at];
	const struct wig_node *fork;
	int			width;

	if (is_spawn_join(def, node))
		return reach(w, node->next, scope);
	if (scope == NO_FORK)
		return wig_fail(w->err, "join %s is reached outside of any fork", node->id);
	fork = &def->nodes[scope];
	width = fork->kind == WIG_DYN_FORK ? 0 : fork->nbranches;
	if (w->join_of[scope] != NO_NODE)
		return wig_fail(w->err, "the branches of fork %s end at two joins, %s and %s", fork->id,
						def->nodes[w->join_of[scope]].id, node->id);
	if (node->expected != width)
		return wig_fail(w->err, "join %s expects %d, but fork %s has %s%d branches", node->id,
						node->expected, fork->id,
						width == 0 ? "a width known only at run time, written as " : "", width);
	w->join_of[scope] = at;
	return check_combine(w, fork, &def->nodes[node->next]) &&
		reach(w, node->next, w->scope[scope]);
}

static bool
visit_fork(struct walk *w, int at)
{
	const struct wig_node *node = &w->def->nodes[at];

	for (int i = 0; i < node->nbranches; i++)
	{
		if (!reach(w, node->branches[i], at))
			return false;
	}

	/* Builders note the join of a dynamic fork as its successor. */
	if (node->next >= 0 &&
		!reach(w, node->next, w->def->nodes[node->next].kind == WIG_JOIN ? at : w->scope[at]))
		return false;
	return reach(w, node->alt, w->scope[at]);
}

static bool
visit(struct walk *w, int at)
{
	const struct wig_node *node = &w->def->nodes[at];

	switch (node->kind)
	{
		case WIG_FORK:
		case WIG_DYN_FORK:
			return visit_fork(w, at);
		case WIG_JOIN:
			return visit_join(w, at);
		case WIG_END:
			if (node->success && w->scope[at] != NO_FORK)
				return wig_fail(w->err, "node %s ends the workflow inside fork %s, whose join "
								"would wait for that branch for ever; lead it to the join",
								node->id, w->def->nodes[w->scope[at]].id);
			return true;
		default:
			return reach(w, node->next, w->scope[at]) && reach(w, node->alt, w->scope[at]);
	}
}

static bool
walk_from_start(struct walk *w)
{
	const struct wig_definition *def = w->def;

	for (int i = 0; i < def->nnodes; i++)
	{
		w->scope[i] = NOT_REACHED;
		w->join_of[i] = NO_NODE;
	}
	if (!reach(w, def->start, NO_FORK))
		return false;
	for (int i = 0; i < w->queued; i++)
	{
		if (!visit(w, w->queue[i]))
			return false;
	}
	for (int i = 0; i < def->nnodes; i++)
	{
		const struct wig_node *node = &def->nodes[i];

		if (w->scope[i] == NOT_REACHED)
			return wig_fail(w->err, "node %s cannot be reached from startNode %s", node->id,
							def->nodes[def->start].id);
		if ((node->kind == WIG_FORK || node->kind == WIG_DYN_FORK) && w->join_of[i] == NO_NODE)
			return wig_fail(w->err, "no branch of fork %s reaches a join", node->id);
	}
	return true;
}

/*
 * Where a token goes from a node without leaving the node's scope: at most two
 * places. A fork is crossed in one step, from it to what follows its join.
 */
static int
steps_within_scope(const struct walk *w, int at, int out[2])
{
	const struct wig_node *node = &w->def->nodes[at];
	int			next = node->next;
	int			n = 0;

	if (node->kind == WIG_END || (node->kind == WIG_JOIN && !is_spawn_join(w->def, node)))
		return 0;
	if (node->kind == WIG_FORK || node->kind == WIG_DYN_FORK)
		next = w->def->nodes[w->join_of[at]].next;
	if (next >= 0)
		out[n++] = next;
	if (node->alt >= 0)
		out[n++] = node->alt;
	return n;
}

/* Nodes that lead to a node, without leaving its scope, as chains of edges. */
struct edges
{
	int		   *head;			/* by node: its first edge, or -1 */
	int		   *next;			/* by edge: edge 2 * i + k starts at node i */
};

static void
collect_edges(const struct walk *w, struct edges *edges)
{
	for (int i = 0; i < w->def->nnodes; i++)
		edges->head[i] = -1;
	for (int i = 0; i < w->def->nnodes; i++)
	{
		int			to[2];
		int			n = steps_within_scope(w, i, to);

		for (int k = 0; k < n; k++)
		{
			edges->next[2 * i + k] = edges->head[to[k]];
			edges->head[to[k]] = 2 * i + k;
		}
	}
}

/*
 * Mark the nodes from which the end of their scope can be reached: an END
 * outside of every fork, inside one its join. Works backwards from those.
 */
static void
mark_finishing(struct walk *w, const struct edges *edges, bool *finishes)
{
	const struct wig_definition *def = w->def;

	w->queued = 0;
	for (int i = 0; i < def->nnodes; i++)
	{
		const struct wig_node *node = &def->nodes[i];

		finishes[i] = w->scope[i] == NO_FORK ? node->kind == WIG_END
			: w->join_of[w->scope[i]] == i;
		if (finishes[i])
			w->queue[w->queued++] = i;
	}
	for (int i = 0; i < w->queued; i++)
	{
		for (int edge = edges->head[w->queue[i]]; edge >= 0; edge = edges->next[edge])
		{
			if (!finishes[edge / 2])
			{
				finishes[edge / 2] = true;
				w->queue[w->queued++] = edge / 2;
			}
		}
	}
}

static bool
check_finishing(const struct walk *w, const bool *finishes)
{
	const struct wig_definition *def = w->def;

	if (!finishes[def->start])
		return wig_fail(w->err, "no END can be reached from startNode %s",
						def->nodes[def->start].id);
	for (int i = 0; i < def->nnodes; i++)
	{
		const struct wig_node *node = &def->nodes[i];

		if (node->kind != WIG_FORK && node->kind != WIG_DYN_FORK)
			continue;
		for (int k = 0; k < node->nbranches; k++)
		{
			if (!finishes[node->branches[k]])
				return wig_fail(w->err, "branch %s of fork %s never reaches its join %s",
								def->nodes[node->branches[k]].id, node->id,
								def->nodes[w->join_of[i]].id);
		}
	}
	return true;
}

static bool
check_flow(const struct wig_definition *def, struct wig_error *err)
{
	size_t		n = (size_t) def->nnodes;
	int		   *numbers = malloc(6 * n * sizeof(int));
	bool	   *finishes = malloc(n * sizeof(bool));
	struct walk w = {.def = def, .err = err};
	struct edges edges;
	bool		done;

	if (numbers == NULL || finishes == NULL)
		done = wig_fail(err, "out of memory");
	else
	{
		w.scope = numbers;
		w.join_of = numbers + n;
		w.queue = numbers + 2 * n;
		edges.head = numbers + 3 * n;
		edges.next = numbers + 4 * n;
		done = walk_from_start(&w);
		if (done)
		{
			collect_edges(&w, &edges);
			mark_finishing(&w, &edges, finishes);
			done = check_finishing(&w, finishes);
			for (size_t i = 0; i < n; i++)
				def->nodes[i].join = w.join_of[i];
		}
	}
	free(numbers);
	free(finishes);
	return done;
}

bool
wig_definition_check(const struct wig_definition *def, struct wig_error *err)
{
	for (int i = 0; i < def->nnodes; i++)
	{
		if (!check_node(&def->nodes[i], err))
			return false;
	}
	return check_step_names(def, err) && check_flow(def, err);
}
