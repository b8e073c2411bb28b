/*
 * flow.c
 *	  Compile an authoring document's steps into a definition.
 *
 * Steps are laid out one after another. What a step leaves open, edges without
 * a target, is wired to whatever comes next: the following step, the enclosing
 * join or the final END. A node takes its number when it is created, and nodes
 * are created in a fixed order, because ids are part of the fingerprint.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "definition_impl.h"
#include "flow_impl.h"
#include "textbuf.h"

static bool compile_steps(struct compiler *c, struct stream *s, value_t *steps);

/* ---- operators: each lays out one step ---- */

static bool
compile_work(struct compiler *c, struct stream *s, value_t *step, const char *op)
{
	const char *name = wig_flow_need_text(c, step, op);
	const struct wig_retry *retry;
	const char *queue;
	bool		compensable;
	struct draft *node;

	if (name == NULL || !wig_flow_optional_text(c, step, "queue", &queue) ||
		(retry = wig_flow_parse_retry(c, step)) == NULL ||
		!wig_flow_optional_bool(c, step, "compensable", &compensable))
		return false;
	if (compensable && strcmp(op, "gate") == 0)
		return FAIL(c, wig_flow_get(step, "compensable"),
					"gate '%s' cannot be compensable: it changes nothing", name);
	node = wig_flow_new_work(c, step, strcmp(op, "gate") == 0 ? WIG_PREDICATE : WIG_TASK, name,
							 queue, retry);
	if (node == NULL)
		return false;
	node->compensable = compensable;
	if (compensable && !wig_flow_check_undo(c, step, node))
		return false;
	wig_flow_attach(s, node);
	if (node->kind == WIG_PREDICATE)
	{
		node->alt = s->join;
		if (node->alt == NULL)
		{
			node->alt = wig_flow_new_node(c, step, WIG_END, "end");
			if (node->alt == NULL ||
				(node->alt->reason = wig_flow_concat(c, "gated", ":", name)) == NULL ||
				!wig_flow_check_width(c, step, "reason", node->alt->reason, WIG_MAX_NAME))
				return false;
		}
	}
	return wig_flow_open_edge(c, s, &node->next);
}

static bool
compile_sleep(struct compiler *c, struct stream *s, value_t *step, const char *op)
{
	static const char *const keys[] = {"for", "name", NULL};
	value_t    *value = wig_flow_get(step, op);
	const char *name = NULL;
	int64_t		ms;
	struct draft *node;

	if (value->type == WIG_FLOW_MAP)
	{
		if (!wig_flow_check_keys(c, value, keys, " of sleep") ||
			!wig_flow_need_duration(c, value, "for", &ms) || !wig_flow_optional_text(c, value, "name", &name))
			return false;
	}
	else if (!wig_flow_need_duration(c, step, op, &ms))
		return false;
	if (name == NULL && !wig_flow_optional_text(c, step, "name", &name))
		return false;
	if (name == NULL)
	{
		char		millis[24];

		snprintf(millis, sizeof(millis), "%" PRId64, ms);
		name = wig_flow_concat(c, "sleep-", millis, "ms");
	}
	node = name == NULL ? NULL : wig_flow_new_node(c, step, WIG_SLEEP, name);
	if (node == NULL)
		return false;
	node->sleep_ms = ms;
	wig_flow_attach(s, node);
	return wig_flow_open_edge(c, s, &node->next);
}

static bool
compile_signal(struct compiler *c, struct stream *s, value_t *step, const char *op)
{
	const char *name = wig_flow_need_text(c, step, op);
	value_t    *escalation = wig_flow_get(step, "escalation");
	struct stream branch = {.join = s->join};
	int64_t		timeout = 0;
	struct draft *node;

	if (name == NULL)
		return false;
	if (wig_flow_get(step, "timeout") != NULL && !wig_flow_need_duration(c, step, "timeout", &timeout))
		return false;
	if (escalation != NULL && timeout == 0)
		return FAIL(c, escalation, "await_signal '%s' escalation needs a timeout", name);
	node = wig_flow_new_node(c, step, WIG_SIGNAL, name);
	if (node == NULL)
		return false;
	node->sleep_ms = timeout;
	wig_flow_attach(s, node);
	if (escalation != NULL)
	{
		value_t    *steps = wig_flow_need_list(c, step, "escalation", "escalation");

		if (steps == NULL || !compile_steps(c, &branch, steps))
			return false;
		if (branch.start == NULL)
			return FAIL(c, steps, "escalation branch of '%s' defines no steps", name);
		node->alt = branch.start;
	}
	wig_flow_absorb(s, &branch);
	return wig_flow_open_edge(c, s, &node->next);
}

static bool
compile_sub_workflow(struct compiler *c, struct stream *s, value_t *step, const char *op)
{
	static const char *const keys[] = {"name", "workflow", NULL};
	value_t    *value = wig_flow_get(step, op);
	const char *name;
	const char *child;
	struct draft *node;

	if (value->type == WIG_FLOW_MAP)
	{
		if (!wig_flow_check_keys(c, value, keys, " of sub_workflow"))
			return false;
		name = wig_flow_need_text(c, value, "name");
		child = name == NULL ? NULL : wig_flow_need_text(c, value, "workflow");
	}
	else
		name = child = wig_flow_need_text(c, step, op);
	if (child == NULL)
		return false;
	node = wig_flow_new_node(c, step, WIG_SUB_WORKFLOW, name);
	if (node == NULL)
		return false;
	node->activity = child;
	wig_flow_attach(s, node);
	return wig_flow_open_edge(c, s, &node->next);
}

/* A branch from its steps to the join; NULL when it is refused. */
static struct draft *
compile_branch(struct compiler *c, value_t *steps, const char *name, struct draft *join)
{
	struct stream branch = {.join = join};

	if (!compile_steps(c, &branch, steps))
		return NULL;
	if (branch.start == NULL)
	{
		FAIL(c, steps, "branch '%s' defines no steps", name);
		return NULL;
	}
	wig_flow_wire_open(&branch, join);
	return branch.start;
}

/*
 * Queue and retry beside a fork or fork_each are those of its combine. One that has
 * no name of its own is Wiggle's own shorthand, in which they would be ignored.
 */
static bool
check_combine(struct compiler *c, value_t *step, const char *op, const char *given)
{
	for (const struct wig_flow_entry *e = step->first; e != NULL && given == NULL; e = e->next)
	{
		if (e->value->type != WIG_FLOW_NULL &&
			(strcmp(e->key, "queue") == 0 || strcmp(e->key, "retry") == 0))
			return wig_fail_at(c->err, e->line, e->column,
							   "'%s' beside %s is for a combine that has a name: add 'combine: NAME'",
							   e->key, op);
	}
	return true;
}

/* The step that merges what the branches of a fork or the items of a fork_each came to. */
static struct draft *
new_combine(struct compiler *c, value_t *step, const char *given, const char *derived)
{
	const struct wig_retry *retry = &wig_retry_forever;
	const char *queue = NULL;

	if (given != NULL && (!wig_flow_optional_text(c, step, "queue", &queue) ||
						  (retry = wig_flow_parse_retry(c, step)) == NULL))
		return NULL;
	return wig_flow_new_work(c, step, WIG_TASK, given != NULL ? given : derived, queue, retry);
}

/* Behind a join: the step that merges, and whatever it leaves open. */
static bool
append_combine(struct compiler *c, struct stream *s, struct draft *join, struct draft *combine)
{
	if (combine == NULL)
		return false;
	join->next = combine;
	return wig_flow_open_edge(c, s, &combine->next);
}

/*
 * The name and the steps of a branch. Branches are a mapping, or, where the order
 * of keys does not survive (jsonb sorts them), a list of {name, steps}.
 */
static value_t *
branch_steps(struct compiler *c, value_t *branches, const struct wig_flow_entry *entry,
			 const char **name)
{
	static const char *const keys[] = {"name", "steps", NULL};

	if (branches->type == WIG_FLOW_MAP)
	{
		*name = entry->key;
		return wig_flow_need_list(c, branches, entry->key, entry->key);
	}
	if (!wig_flow_need_map(c, entry->value, "a branch"))
		return NULL;
	if (wig_flow_get(entry->value, "name") == NULL && wig_flow_get(entry->value, "steps") == NULL)
	{
		FAIL(c, entry->value, "a fork is a mapping of names to lists of steps, or a list of"
			 " {name: NAME, steps: [steps]}");
		return NULL;
	}
	if (!wig_flow_check_keys(c, entry->value, keys, " of a branch") ||
		(*name = wig_flow_need_text(c, entry->value, "name")) == NULL)
		return NULL;
	return wig_flow_need_list(c, entry->value, "steps", *name);
}

static bool
compile_fork(struct compiler *c, struct stream *s, value_t *step, const char *op)
{
	value_t    *value = wig_flow_get(step, op);
	const char *combine_name = "combine:";
	const char *given;
	struct draft *fork;
	struct draft *join;
	struct draft *combine;

	if ((value->type != WIG_FLOW_LIST && !wig_flow_need_map(c, value, "fork")) ||
		!wig_flow_optional_text(c, step, "combine", &given) || !check_combine(c, step, op, given))
		return false;
	if (value->n < 2)
		return FAIL(c, value, "fork needs at least two branches");
	fork = wig_flow_new_node(c, step, WIG_FORK, "fork");
	join = fork == NULL ? NULL : wig_flow_new_node(c, step, WIG_JOIN, "join");
	if (join == NULL)
		return false;
	wig_flow_attach(s, fork);
	join->expected = value->n;
	fork->branches = wig_flow_allocate(c, (size_t) value->n * sizeof(*fork->branches));
	fork->arm_names = wig_flow_allocate(c, (size_t) value->n * sizeof(*fork->arm_names));
	if (fork->branches == NULL || fork->arm_names == NULL)
		return false;
	for (const struct wig_flow_entry *entry = value->first; entry != NULL; entry = entry->next)
	{
		const char *name = NULL;
		value_t    *steps = branch_steps(c, value, entry, &name);
		struct draft *start = steps == NULL ? NULL : compile_branch(c, steps, name, join);

		if (start == NULL)
			return false;
		fork->arm_names[fork->nbranches] = name;
		combine_name = wig_flow_concat(c, combine_name, fork->nbranches == 0 ? "" : ",", name);
		if (combine_name == NULL)
			return false;
		fork->branches[fork->nbranches++] = start;
	}
	combine = new_combine(c, step, given, combine_name);
	if (combine != NULL)
	{
		combine->arm_names = fork->arm_names;
		combine->narms = fork->nbranches;
	}
	return append_combine(c, s, join, combine);
}

/* The combine of a fork_each that names one; Wiggle's own shorthand has none. */
static struct draft *
new_collect(struct compiler *c, value_t *step, const char *name, const char *fork_name)
{
	struct draft *combine = new_combine(c, step, name, NULL);

	if (combine == NULL)
		return NULL;
	combine->collect_key = wig_flow_concat(c, "__forEach__", "", fork_name);
	return combine->collect_key == NULL ? NULL : combine;
}

static bool
compile_fork_each(struct compiler *c, struct stream *s, value_t *step, const char *op)
{
	static const char *const keys[] = {"over", "as", "name", "body", "combine", NULL};
	value_t    *value = wig_flow_get(step, op);
	const char *over;
	const char *as;
	const char *name;
	const char *combine;
	value_t    *body;
	struct draft *fork;
	struct draft *join;

	if (!wig_flow_need_map(c, value, "fork_each") ||
		!wig_flow_check_keys(c, value, keys, " of fork_each") ||
		(over = wig_flow_need_text(c, value, "over")) == NULL ||
		(body = wig_flow_need_list(c, value, "body", "fork_each body")) == NULL ||
		(as = wig_flow_need_text(c, value, "as")) == NULL ||
		!wig_flow_optional_text(c, value, "name", &name) ||
		!wig_flow_optional_text(c, wig_flow_get(value, "combine") != NULL ? value : step,
								"combine", &combine) ||
		!check_combine(c, step, op, combine))
		return false;
	if (body->n == 0)
		return FAIL(c, body, "fork_each body must not be empty");
	if (name == NULL)
		name = as;
	fork = wig_flow_new_node(c, step, WIG_DYN_FORK, name);
	join = fork == NULL ? NULL : wig_flow_new_node(c, step, WIG_JOIN, "join");
	if (join == NULL)
		return false;
	wig_flow_attach(s, fork);
	fork->items_key = over;
	fork->item_key = as;
	fork->next = join;
	fork->branches = wig_flow_allocate(c, sizeof(*fork->branches));
	if (fork->branches == NULL ||
		(fork->branches[0] = compile_branch(c, body, name, join)) == NULL)
		return false;
	fork->nbranches = 1;
	if (combine == NULL)
		return wig_flow_open_edge(c, s, &join->next);
	return append_combine(c, s, join, new_collect(c, step, combine, name));
}

/* One case's steps, or those of otherwise, entered from a guard's edge. */
static bool
compile_case(struct compiler *c, struct stream *s, value_t *owner, struct draft **edge)
{
	value_t    *steps = wig_flow_need_list(c, owner, "then", "case 'then'");
	struct stream branch = {.join = s->join};

	if (steps == NULL || !compile_steps(c, &branch, steps))
		return false;
	if (branch.start == NULL)
		return FAIL(c, steps, "a choose case defines no steps");
	*edge = branch.start;
	wig_flow_absorb(s, &branch);
	return true;
}

/* The guards of a choose in order; *otherwise is its last case without one. */
static bool
compile_guards(struct compiler *c, value_t *cases, struct draft **guards, int *n,
			   value_t **otherwise)
{
	static const char *const guarded_keys[] = {"when", "then", NULL};
	static const char *const last_keys[] = {"otherwise", "then", NULL};

	*n = 0;
	*otherwise = NULL;
	for (const struct wig_flow_entry *entry = cases->first; entry != NULL; entry = entry->next)
	{
		value_t    *item = entry->value;
		const char *name;

		if (!wig_flow_need_map(c, item, "choose case"))
			return false;
		if (wig_flow_get(item, "when") == NULL)
		{
			*otherwise = wig_flow_get(item, "otherwise");
			if (*otherwise == NULL)
				return FAIL(c, item, "choose case needs 'when: <predicate>' or 'otherwise:'");
			if (entry->next != NULL)
				return FAIL(c, item, "otherwise must be the last case");
			if (*n == 0)
				return FAIL(c, item, "choose needs at least one guarded case");
			if (!wig_flow_check_keys(c, item, last_keys, " of a choose case"))
				return false;
			if ((*otherwise)->type != WIG_FLOW_MAP)
				*otherwise = item;
			return wig_flow_check_keys(c, *otherwise, &last_keys[*otherwise == item ? 0 : 1],
									   " of otherwise");
		}
		if (!wig_flow_check_keys(c, item, guarded_keys, " of a choose case"))
			return false;
		name = wig_flow_need_text(c, item, "when");
		guards[*n] = name == NULL ? NULL
			: wig_flow_new_work(c, item, WIG_PREDICATE, name, NULL, &wig_retry_forever);
		if (guards[*n] == NULL)
			return false;
		if (*n > 0)
			guards[*n - 1]->alt = guards[*n];
		(*n)++;
	}
	return true;
}

static bool
compile_choose(struct compiler *c, struct stream *s, value_t *step, const char *op)
{
	value_t    *cases = wig_flow_need_list(c, step, op, op);
	const struct wig_flow_entry *entry;
	value_t    *otherwise;
	struct draft **guards;
	int			n;

	if (cases == NULL)
		return false;
	if (cases->n == 0)
		return FAIL(c, cases, "choose needs at least one case");
	guards = wig_flow_allocate(c, (size_t) cases->n * sizeof(*guards));
	if (guards == NULL || !compile_guards(c, cases, guards, &n, &otherwise))
		return false;
	wig_flow_attach(s, guards[0]);
	entry = cases->first;
	for (int i = 0; i < n; i++, entry = entry->next)
	{
		if (!compile_case(c, s, entry->value, &guards[i]->next))
			return false;
	}
	if (otherwise != NULL)
		return compile_case(c, s, otherwise, &guards[n - 1]->alt);
	return wig_flow_open_edge(c, s, &guards[n - 1]->alt);
}

static bool
compile_do_while(struct compiler *c, struct stream *s, value_t *step, const char *op)
{
	static const char *const keys[] = {"while", "body", "maxIterations", NULL};
	value_t    *value = wig_flow_get(step, op);
	struct stream loop = {.join = s->join};
	const char *name;
	value_t    *body;
	int64_t		budget = -1;
	struct draft *guard;

	if (!wig_flow_need_map(c, value, "do_while") ||
		!wig_flow_check_keys(c, value, keys, " of do_while") ||
		(name = wig_flow_need_text(c, value, "while")) == NULL ||
		(body = wig_flow_need_list(c, value, "body", "do_while body")) == NULL)
		return false;
	if (body->n == 0)
		return FAIL(c, body, "do_while body must not be empty");
	if (wig_flow_get(value, "maxIterations") != NULL)
	{
		if (!wig_flow_need_integer(c, value, "maxIterations", &budget))
			return false;
		if (budget < 1 || budget > INT32_MAX)
			return FAIL(c, value, "doWhile '%s' maxIterations must be positive", name);
	}
	if (!compile_steps(c, &loop, body))
		return false;
	guard = wig_flow_new_work(c, step, WIG_PREDICATE, name, NULL, &wig_retry_forever);
	if (guard == NULL)
		return false;
	guard->loop_budget = (int) budget;
	guard->next = loop.start;
	wig_flow_attach(s, loop.start);
	wig_flow_wire_open(&loop, guard);
	return wig_flow_open_edge(c, s, &guard->alt);
}

/* ---- steps ---- */

#define MAX_SIBLINGS 4

struct operator
{
	const char *name;
	bool		(*compile) (struct compiler *c, struct stream *s, value_t *step, const char *op);
	const char *siblings[MAX_SIBLINGS + 1]; /* keys that may stand beside it */
};

/* Sorted by name: that is how the list is shown. */
static const struct operator operators[] = {
	{"await_signal", compile_signal, {"timeout", "escalation"}},
	{"choose", compile_choose, {NULL}},
	{"do_while", compile_do_while, {NULL}},
	{"effect", compile_work, {"queue", "retry", "compensable"}},
	{"fork", compile_fork, {"combine", "queue", "retry"}},
	{"fork_each", compile_fork_each, {"combine", "queue", "retry"}},
	{"gate", compile_work, {"queue", "retry", "compensable"}},
	{"sleep", compile_sleep, {"name"}},
	{"sub_workflow", compile_sub_workflow, {NULL}},
	{"task", compile_work, {"queue", "retry", "compensable"}}
};

#define NOPERATORS ((int) (sizeof(operators) / sizeof(operators[0])))

static const struct operator *
find_operator(const char *name)
{
	for (int i = 0; i < NOPERATORS; i++)
	{
		if (strcmp(operators[i].name, name) == 0)
			return &operators[i];
	}
	return NULL;
}

/* The keys of a step, or only those that are operators, for a message. */
static void
list_keys(value_t *step, bool only_operators, struct wig_text *out)
{
	for (const struct wig_flow_entry *entry = step->first; entry != NULL; entry = entry->next)
	{
		if (only_operators && find_operator(entry->key) == NULL)
			continue;
		if (out->len > 0)
			wig_text_puts(out, ", ");
		wig_text_puts(out, entry->key);
	}
	wig_text_put(out, "", 1);
}

/* The operator that one of the keys was probably meant to be. */
static const char *
meant_operator(value_t *step)
{
	const char *names[NOPERATORS + 1] = {NULL};
	const char *near = NULL;

	for (int i = 0; i < NOPERATORS; i++)
		names[i] = operators[i].name;
	for (const struct wig_flow_entry *e = step->first; e != NULL && near == NULL; e = e->next)
		near = wig_flow_meant(e->key, names);
	return near;
}

static bool
refuse_operators(struct compiler *c, value_t *step, int found)
{
	const char *near = found > 0 ? NULL : meant_operator(step);
	struct wig_text keys = {0};

	list_keys(step, found > 0, &keys);
	if (keys.failed)
		wig_fail(c->err, "out of memory");
	else if (found == 0)
		FAIL(c, step, "step has no operator (one of [await_signal, choose, do_while, effect, fork, "
			 "fork_each, gate, sleep, sub_workflow, task]); keys were [%.120s]%s%s%s", keys.data,
			 near == NULL ? "" : "; did you mean '", near == NULL ? "" : near,
			 near == NULL ? "" : "'?");
	else
		FAIL(c, step, "step has multiple operators [%s]; use exactly one per step", keys.data);
	wig_text_free(&keys);
	return false;
}

/* A step by its operator's text, or by the operator alone. */
static void
describe_step(value_t *step, const char *op, char *out, size_t size)
{
	value_t    *value = wig_flow_get(step, op);
	bool		named = value != NULL && value->type == WIG_FLOW_SCALAR && strcmp(op, "sleep") != 0;

	snprintf(out, size, named ? " of step '%.80s'" : " of a %s step", named ? value->text : op);
}

/* What belongs beside other operators is a misunderstanding, not a typo. */
static bool
check_siblings(struct compiler *c, value_t *step, const struct operator *op)
{
	const char *known[MAX_SIBLINGS + 2] = {op->name};
	char		of[100];

	for (int i = 0; op->siblings[i] != NULL; i++)
		known[i + 1] = op->siblings[i];
	for (const struct wig_flow_entry *e = step->first; e != NULL; e = e->next)
	{
		const char *others = wig_flow_goes_with(e->key);

		for (int i = 0; op->siblings[i] != NULL && others != NULL; i++)
		{
			if (strcmp(op->siblings[i], e->key) == 0)
				others = NULL;
		}
		if (others != NULL)
			return wig_fail_at(c->err, e->line, e->column, "'%s' cannot stand beside %s; it goes with %s",
							   e->key, op->name, others);
	}
	describe_step(step, op->name, of, sizeof(of));
	return wig_flow_check_keys(c, step, known, of);
}

static bool
compile_step(struct compiler *c, struct stream *s, value_t *step)
{
	const struct operator *op = NULL;
	int			found = 0;

	if (!wig_flow_need_map(c, step, "step"))
		return false;
	for (const struct wig_flow_entry *entry = step->first; entry != NULL; entry = entry->next)
	{
		const struct operator *candidate = find_operator(entry->key);

		if (candidate != NULL)
		{
			op = candidate;
			found++;
		}
	}
	if (found != 1)
		return refuse_operators(c, step, found);
	return check_siblings(c, step, op) && op->compile(c, s, step, op->name);
}

/* JSON has no lines: say which step it was, the innermost one. */
static bool
fail_in_step(struct compiler *c, value_t *step, int number)
{
	const char *name = "";

	if (c->err == NULL || c->err->line > 0 || c->err->place[0] != '\0')
		return false;
	for (const struct wig_flow_entry *e = step->first; e != NULL; e = e->next)
	{
		if (e->key != NULL && find_operator(e->key) != NULL && strcmp(e->key, "sleep") != 0 &&
			e->value->type == WIG_FLOW_SCALAR)
			name = e->value->text;
	}
	snprintf(c->err->place, sizeof(c->err->place), name[0] == '\0' ? "step %d" : "step %d ('%.60s')",
			 number, name);
	return false;
}

static bool
compile_steps(struct compiler *c, struct stream *s, value_t *steps)
{
	int			number = 0;

	for (const struct wig_flow_entry *entry = steps->first; entry != NULL; entry = entry->next)
	{
		number++;
		if (!compile_step(c, s, entry->value))
			return fail_in_step(c, entry->value, number);
	}
	return true;
}

/* Check what was built like any other definition, and give its normal form. */
static char *
normalise(char *json, struct wig_error *err)
{
	struct wig_definition *def;
	char	   *result;

	if (json == NULL)
	{
		wig_fail(err, "out of memory");
		return NULL;
	}
	def = wig_definition_parse(json, strlen(json), err);
	free(json);
	if (def == NULL)
		return NULL;
	result = wig_definition_to_json(def, false);
	wig_definition_free(def);
	if (result == NULL)
		wig_fail(err, "out of memory");
	return result;
}

static bool
compile_head(struct compiler *c, value_t *root, int64_t *version)
{
	static const char *const keys[] = {"workflow", "version", "defaultQueue", "steps", NULL};
	value_t    *steps;

	if (!wig_flow_need_map(c, root, "document") || !wig_flow_check_keys(c, root, keys, ""))
		return false;
	c->workflow = wig_flow_need_text(c, root, "workflow");
	if (c->workflow == NULL ||
		!wig_flow_check_width(c, wig_flow_get(root, "workflow"), "workflow name", c->workflow,
							  WIG_MAX_NAME) ||
		!wig_flow_optional_text(c, root, "defaultQueue", &c->default_queue))
		return false;
	if (c->default_queue == NULL)
		c->default_queue = c->workflow;
	*version = 1;
	if (wig_flow_get(root, "version") != NULL)
	{
		if (!wig_flow_need_integer(c, root, "version", version))
			return false;
		if (*version < 1 || *version > INT32_MAX)
			return FAIL(c, wig_flow_get(root, "version"), "'version' must be in 1..2147483647");
	}
	steps = wig_flow_need_list(c, root, "steps", "steps");
	if (steps == NULL)
		return false;
	return steps->n > 0 || FAIL(c, steps, "'steps' must not be empty");
}

char *
wig_flow_compile(const struct wig_flow_value *root, struct wig_arena *arena,
				 struct wig_error *err)
{
	struct compiler c = {.arena = arena, .err = err};
	struct stream s = {0};
	struct draft *end;
	int64_t		version;

	if (root == NULL)
	{
		wig_fail(err, "the document is empty");
		return NULL;
	}
	if (!compile_head(&c, root, &version) ||
		!compile_steps(&c, &s, wig_flow_get(root, "steps")))
		return NULL;
	end = wig_flow_new_node(&c, root, WIG_END, "end");
	if (end == NULL)
		return NULL;
	wig_flow_wire_open(&s, end);
	return normalise(wig_flow_write(&c, s.start, version), err);
}
