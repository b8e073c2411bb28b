/*
 * fork.c
 *	  Forks, forEach and joins: groups of scopes.
 *
 * A fork's token is settled at once and keeps its group: the first of `width`
 * consecutive scopes and how many siblings have not arrived. An arrival at the
 * join counts down in that one row, whatever the width; the last one gathers the
 * views, settles the siblings and goes on in the parent's scope, with the
 * parent's loop counts.
 */
#include "wiggle.h"

#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/json.h"

#include "drive.h"
#include "ending.h"
#include "jsontext.h"
#include "scope.h"
#include "view.h"

/* The combine behind a fork's join, or NULL. */
static const struct wig_node *
combine_of(const WigInstance *inst, const struct wig_node *fork)
{
	const struct wig_node *next =
		wig_graph_node(inst->graph, wig_graph_node(inst->graph, fork->join)->next);

	return next->narms > 0 || next->collect_key != NULL ? next : NULL;
}

/* Settle the fork's token with its group. */
static WigToken
mint_fork(WigDrive *drive, const WigArrival *at, int32 width)
{
	WigToken	token = wig_arriving(drive->work, at);

	token.staged = NULL;
	token.finished_at = drive->work->now;
	token.first_scope = wig_scope_next(drive->work->store, drive->inst->no);
	token.width = width;
	token.missing = width;
	wig_token_mint(drive->work->store, drive->inst, &token, WIG_TOKEN_DONE);
	drive->work->allowance += width;
	return token;
}

void
wig_arrive_at_fork(WigDrive *drive, const WigArrival *at)
{
	const struct wig_node *node = wig_graph_node(drive->inst->graph, at->node);
	bool		shared = combine_of(drive->inst, node) == NULL;
	WigToken	fork = mint_fork(drive, at, node->nbranches);

	for (int i = 0; i < node->nbranches; i++)
	{
		WigScope	scope = {
			.scope = fork.first_scope + i,
			.parent = at->scope,
			.kind = shared ? WIG_SCOPE_SHARED_ARM : WIG_SCOPE_ARM,
			.idx = i,
			.group = fork.n
		};

		wig_scope_insert_child(drive->work->store, drive->inst->no, &scope, NULL, 0);
		wig_drive_push(drive, (WigArrival) {node->branches[i], scope.scope, at->loops, NULL});
	}
}

/* The member of the view that a forEach runs over; false when it is absent. */
static bool
find_items(const text *view, const char *items_key, struct wig_json_member *found)
{
	struct wig_json_member member;
	StringInfoData key;
	size_t		pos = 0;
	bool		any = false;

	initStringInfo(&key);
	escape_json(&key, items_key);
	while (wig_json_next_member(VARDATA_ANY(view), VARSIZE_ANY_EXHDR(view), &pos, &member))
		if (wig_json_key_equal(member.key, member.key_len, key.data, key.len))
		{
			*found = member;	/* the last of duplicates counts */
			any = true;
		}
	return any;
}

/* Wiggle names the type that it found as Java does. */
static const char *
java_type(const struct wig_json_member *value)
{
	switch (value->value[0])
	{
		case '"':
			return "String";
		case 't':
		case 'f':
			return "Boolean";
		default:
			for (size_t i = 0; i < value->value_len; i++)
				if (strchr(".eE", value->value[i]) != NULL)
					return "Double";
			return "Long";
	}
}

static int32
count_items(const struct wig_json_member *value)
{
	struct wig_json_member member;
	const char *element;
	size_t		len;
	size_t		pos = 0;
	int32		n = 0;

	if (value->value[0] == '{')
		while (wig_json_next_member(value->value, value->value_len, &pos, &member))
			n++;
	else
		while (wig_json_next_element(value->value, value->value_len, &pos, &element, &len))
			n++;
	return n;
}

/* 0.1.1-era forEach: the element and its place lie over the shared context. */
static char *
shared_item(const struct wig_node *node, int idx, const char *element, size_t len)
{
	StringInfoData out;

	initStringInfo(&out);
	appendStringInfoChar(&out, '{');
	escape_json(&out, node->item_key);
	appendStringInfoChar(&out, ':');
	appendBinaryStringInfo(&out, element, len);
	appendStringInfoChar(&out, ',');
	escape_json(&out, psprintf("%sIndex", node->item_key));
	appendStringInfo(&out, ":%d}", idx);
	return out.data;
}

static void
push_item(WigDrive *drive, const WigArrival *at, const WigToken *fork, int idx, bool shared,
		  const struct wig_json_member *map_entry, const char *element, size_t len)
{
	const struct wig_node *node = wig_graph_node(drive->inst->graph, at->node);
	WigScope	scope = {
		.scope = fork->first_scope + idx,
		.parent = at->scope,
		.kind = shared ? WIG_SCOPE_SHARED_ITEM : WIG_SCOPE_ITEM,
		.idx = idx,
		.group = fork->n
	};

	if (map_entry != NULL)
		scope.map_key = pnstrdup(map_entry->key, map_entry->key_len);
	if (shared)
	{
		element = shared_item(node, idx, element, len);
		len = strlen(element);
	}
	else if (len == 4 && memcmp(element, "null", 4) == 0)
	{
		element = "{}";			/* an item's view is never null (Wiggle) */
		len = 2;
	}
	wig_scope_insert_child(drive->work->store, drive->inst->no, &scope, element, len);
	wig_drive_push(drive, (WigArrival) {node->branches[0], scope.scope, at->loops, NULL});
}

static void
push_items(WigDrive *drive, const WigArrival *at, const struct wig_json_member *value,
		   int32 width, bool shared)
{
	WigToken	fork = mint_fork(drive, at, width);
	struct wig_json_member member;
	const char *element;
	size_t		len;
	size_t		pos = 0;
	int			idx = 0;

	if (value->value[0] == '{')
		while (wig_json_next_member(value->value, value->value_len, &pos, &member))
			push_item(drive, at, &fork, idx++, shared, &member, member.value, member.value_len);
	else
		while (wig_json_next_element(value->value, value->value_len, &pos, &element, &len))
			push_item(drive, at, &fork, idx++, shared, NULL, element, len);
}

void
wig_arrive_at_dyn_fork(WigDrive *drive, const WigArrival *at)
{
	WigWork    *work = drive->work;
	const struct wig_node *node = wig_graph_node(drive->inst->graph, at->node);
	const struct wig_node *combine = combine_of(drive->inst, node);
	text	   *view = wig_view_read(work->store, drive->inst->no, at->scope);
	struct wig_json_member value = {0};
	bool		found = find_items(view, node->items_key, &value);
	int32		width = 0;
	WigToken	token;

	if (found && strchr("[{", value.value[0]) != NULL)
		width = count_items(&value);
	if (width > 0)
	{
		push_items(drive, at, &value, width, combine == NULL);
		return;
	}

	/* Nothing to do, or nothing that it can be done for. */
	token = wig_arriving(work, at);
	token.finished_at = work->now;
	wig_token_mint(work->store, drive->inst, &token, WIG_TOKEN_DONE);
	if (found && strchr("[{n", value.value[0]) == NULL)
		wig_fail_instance(work, drive->inst,
						  psprintf("forEach '%s': context key '%s' holds %s, not a list or map",
								   node->name ? node->name : node->id, node->items_key,
								   java_type(&value)));
	else
		wig_drive_push(drive, (WigArrival)
					   {
						   combine != NULL ? combine->next
						   : wig_graph_node(drive->inst->graph, node->join)->next,
						   at->scope, at->loops, NULL
					   });
}

/* What the siblings bring to the combine, as members to lay over its view. */
typedef struct Gathering
{
	const struct wig_node *combine;
	StringInfoData views;		/* members, or elements of the collection */
	StringInfoData steps;		/* last step names, in the same shape */
	bool		is_map;
} Gathering;

static void
append_key(StringInfo out, const char *prefix, const char *key)
{
	if (out->len > 0)
		appendStringInfoChar(out, ',');
	escape_json(out, psprintf("%s%s", prefix, key));
	appendStringInfoChar(out, ':');
}

static void
gather(Gathering *g, WigStore *store, int64 instance, const WigScope *scope)
{
	text	   *view;

	if (g->combine == NULL)
		return;
	view = wig_view_read(store, instance, scope->scope);
	if (g->combine->narms > 0)
	{
		/* Go and Python look for an arm's result under its bare name. */
		append_key(&g->views, g->combine->legacy_combine ? "" : "__arm__",
				   g->combine->arm_names[scope->idx]);
		appendBinaryStringInfo(&g->views, VARDATA_ANY(view), VARSIZE_ANY_EXHDR(view));
		return;
	}

	if (g->views.len > 0)
	{
		appendStringInfoChar(&g->views, ',');
		appendStringInfoChar(&g->steps, ',');
	}
	if (scope->map_key != NULL)
	{
		g->is_map = true;
		appendStringInfo(&g->views, "%s:", scope->map_key);
		appendStringInfo(&g->steps, "%s:", scope->map_key);
	}
	appendBinaryStringInfo(&g->views, VARDATA_ANY(view), VARSIZE_ANY_EXHDR(view));
	if (scope->last_step != NULL)
		escape_json(&g->steps, scope->last_step);
	else
		appendStringInfoString(&g->steps, "null");
}

/* More than a combine can be given (jsonb holds no more than four times as much). */
#define MAX_GATHERED	(64 * 1024 * 1024)

static bool
too_much(const Gathering *g)
{
	return g->views.len > MAX_GATHERED || g->steps.len > MAX_GATHERED;
}

static char *
staged_text(Gathering *g)
{
	StringInfoData out;
	const char *open = g->is_map ? "{" : "[";
	const char *close = g->is_map ? "}" : "]";

	if (g->combine == NULL)
		return NULL;
	if (g->combine->narms > 0)
		return psprintf("{%s}", g->views.data);
	initStringInfo(&out);
	append_key(&out, "", g->combine->collect_key);
	appendStringInfo(&out, "%s%s%s", open, g->views.data, close);
	append_key(&out, "__steps__", g->combine->collect_key);
	appendStringInfo(&out, "%s%s%s", open, g->steps.data, close);
	return psprintf("{%s}", out.data);
}

/* A sibling that waited at the join is done; its scope has served. */
static void
settle_sibling(WigWork *work, WigInstance *inst, const WigScope *scope, int32 last)
{
	WigToken	token;

	if (scope->arrived != last)
	{
		if (!wig_token_peek(work->store, inst, scope->arrived, &token))
			elog(ERROR, "token %d of instance %s vanished at a join", scope->arrived, inst->id);
		token.finished_at = work->now;
		wig_token_set_status(work->store, inst, &token, WIG_TOKEN_JOINED, WIG_TOKEN_DONE, NULL);
	}
	wig_scope_delete(work->store, inst->no, scope->scope);
}

static void
complete_join(WigDrive *drive, const WigArrival *at, const WigToken *fork, int32 parent,
			  int32 last)
{
	WigWork    *work = drive->work;
	const struct wig_node *fork_node = wig_graph_node(drive->inst->graph, fork->node);
	Gathering	g = {.combine = combine_of(drive->inst, fork_node)};
	WigScope	scope;

	initStringInfo(&g.views);
	initStringInfo(&g.steps);
	wig_store_step(work->store);
	for (int i = 0; i < fork->width; i++)
	{
		wig_scope_read(work->store, drive->inst->no, fork->first_scope + i, &scope);
		if (!too_much(&g))
			gather(&g, work->store, drive->inst->no, &scope);
		settle_sibling(work, drive->inst, &scope, last);
	}
	if (too_much(&g))
	{
		wig_fail_instance(work, drive->inst,
						  psprintf("%s: the results of %d branches are more than the %d MB that a combine is given",
								   g.combine->name, fork->width, MAX_GATHERED / (1024 * 1024)));
		return;
	}
	wig_drive_push(drive, (WigArrival)
				   {
					   wig_graph_node(drive->inst->graph, at->node)->next,
					   parent, fork->loops, staged_text(&g)
				   });
}

void
wig_arrive_at_join(WigDrive *drive, const WigArrival *at)
{
	WigWork    *work = drive->work;
	WigInstance *inst = drive->inst;
	WigToken	token = wig_arriving(work, at);
	WigToken	fork;
	WigScope	scope;

	wig_scope_read(work->store, inst->no, at->scope, &scope);
	if (scope.group == 0 || !wig_token_peek(work->store, inst, scope.group, &fork))
		elog(ERROR, "instance %s arrived at a join outside of any fork", inst->id);

	if (fork.missing > 1)
	{
		wig_token_mint(work->store, inst, &token, WIG_TOKEN_JOINED);
		wig_scope_set_arrived(work->store, inst->no, at->scope, token.n);
		wig_token_arrived(work->store, inst, &fork);
		return;
	}
	token.finished_at = work->now;
	wig_token_mint(work->store, inst, &token, WIG_TOKEN_DONE);
	wig_scope_set_arrived(work->store, inst->no, at->scope, token.n);
	wig_token_arrived(work->store, inst, &fork);
	complete_join(drive, at, &fork, scope.parent, token.n);
}
