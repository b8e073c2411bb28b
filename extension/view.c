/*
 * view.c
 *	  Resolving scopes into views, and contexts for workers.
 */
#include "wiggle.h"

#include "lib/stringinfo.h"
#include "nodes/pg_list.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"

#include "jsontext.h"
#include "scope.h"
#include "view.h"

static bool
is_shared(const WigScope *scope)
{
	return scope->kind == WIG_SCOPE_SHARED_ARM || scope->kind == WIG_SCOPE_SHARED_ITEM;
}

static text *
lay_over(text *base, const char *overlay, size_t overlay_len)
{
	size_t		base_len = VARSIZE_ANY_EXHDR(base);
	text	   *out = palloc(VARHDRSZ + base_len + overlay_len + 2);
	size_t		len = wig_json_overlay(VARDATA_ANY(base), base_len, overlay, overlay_len,
									   VARDATA(out));

	SET_VARSIZE(out, VARHDRSZ + len);
	return out;
}

text *
wig_view_read(WigStore *store, int64 instance, int32 scope)
{
	text	   *own = wig_scope_context(store, instance, scope);
	text	   *overlays = NULL;

	/* Up to the first scope that has a view; shared items lie over it. */
	while (scope != WIG_ROOT_SCOPE)
	{
		WigScope	here;

		wig_scope_read(store, instance, scope, &here);
		if (own != NULL && here.kind != WIG_SCOPE_SHARED_ITEM)
			break;
		if (own != NULL)
			overlays = overlays == NULL ? own
				: lay_over(own, VARDATA_ANY(overlays), VARSIZE_ANY_EXHDR(overlays));
		scope = here.parent;
		own = wig_scope_context(store, instance, scope);
	}
	if (overlays == NULL)
		return own;
	return lay_over(own, VARDATA_ANY(overlays), VARSIZE_ANY_EXHDR(overlays));
}

bool
wig_view_shared(WigStore *store, int64 instance, int32 scope)
{
	WigScope	here;

	if (scope == WIG_ROOT_SCOPE)
		return false;
	wig_scope_read(store, instance, scope, &here);
	return is_shared(&here);
}

/*
 * Where a scope's writes go: itself, or what the shared branches around it share.
 * Adds the elements that are laid over that view on the way, when asked.
 */
static int32
written_scope(WigStore *store, int64 instance, int32 scope, List **elements)
{
	while (scope != WIG_ROOT_SCOPE)
	{
		WigScope	here;

		wig_scope_read(store, instance, scope, &here);
		if (!is_shared(&here))
			break;
		if (elements != NULL && here.kind == WIG_SCOPE_SHARED_ITEM)
			*elements = lappend(*elements, wig_scope_context(store, instance, scope));
		scope = here.parent;
	}
	return scope;
}

static bool
has_key(List *objects, const struct wig_json_member *wanted)
{
	ListCell   *lc;

	foreach(lc, objects)
	{
		text	   *object = lfirst(lc);
		struct wig_json_member member;
		size_t		pos = 0;

		while (wig_json_next_member(VARDATA_ANY(object), VARSIZE_ANY_EXHDR(object), &pos, &member))
			if (wig_json_key_equal(member.key, member.key_len, wanted->key, wanted->key_len))
				return true;
	}
	return false;
}

static void
without_keys(const char *object, size_t len, List *others, StringInfo out)
{
	struct wig_json_member member;
	size_t		pos = 0;

	appendStringInfoChar(out, '{');
	while (wig_json_next_member(object, len, &pos, &member))
	{
		if (has_key(others, &member))
			continue;
		if (out->len > 1)
			appendStringInfoChar(out, ',');
		appendBinaryStringInfo(out, member.key, (int) member.key_len);
		appendStringInfoChar(out, ':');
		appendBinaryStringInfo(out, member.value, (int) member.value_len);
	}
	appendStringInfoChar(out, '}');
}

char *
wig_view_merged(WigStore *store, int64 instance, int32 scope, const char *object, size_t len,
				bool whole, size_t *merged_len)
{
	List	   *elements = NIL;
	text	   *view = wig_view_read(store, instance,
									 written_scope(store, instance, scope, whole ? &elements : NULL));
	char	   *out;

	if (elements != NIL)
	{
		StringInfoData rest;

		initStringInfo(&rest);
		without_keys(object, len, elements, &rest);
		object = rest.data;
		len = rest.len;
	}
	out = palloc(VARSIZE_ANY_EXHDR(view) + len + 2);
	*merged_len = wig_json_merge(VARDATA_ANY(view), VARSIZE_ANY_EXHDR(view), object, len, out);
	return out;
}

void
wig_view_write(WigStore *store, int64 instance, int32 scope, const char *context,
			   size_t len, const char *last_step)
{
	scope = written_scope(store, instance, scope, NULL);
	if (scope == WIG_ROOT_SCOPE)
		last_step = NULL;		/* only a join asks for it */
	if (context != NULL || last_step != NULL)
		wig_scope_write(store, instance, scope, context, len, last_step);
}

void
wig_view_merge(WigStore *store, int64 instance, int32 scope, const char *document, size_t len)
{
	struct wig_json_info info;

	if (document == NULL || !wig_json_check(document, len, &info, NULL) ||
		info.type == WIG_JSON_NULL)
		return;
	document += info.start;
	len = info.length;
	if (info.type == WIG_JSON_OBJECT)
		document = wig_view_merged(store, instance, scope, document, len, false, &len);
	wig_view_write(store, instance, scope, document, len, NULL);
}

text *
wig_view_dispatched(WigStore *store, const WigToken *token)
{
	text	   *view;

	if (token->comp_seq != 0)
		return cstring_to_text(token->staged);
	view = wig_view_read(store, token->instance, token->scope);
	if (token->staged == NULL)
		return view;
	return lay_over(view, token->staged, strlen(token->staged));
}

/* A raw JSON string as the text that it denotes. */
static char *
plain_text(const char *raw)
{
	Datum		jsonb = DirectFunctionCall1(jsonb_in, CStringGetDatum(raw));
	JsonbValue	v;

	if (!JsonbExtractScalar(&DatumGetJsonbP(jsonb)->root, &v) || v.type != jbvString)
		elog(ERROR, "a map key is not a JSON string");
	return pnstrdup(v.val.string.val, v.val.string.len);
}

bool
wig_view_base(WigStore *store, const WigInstance *inst, const WigToken *token, WigBase *base)
{
	const struct wig_node *node = wig_graph_node(inst->graph, token->node);
	bool		combine = node->narms > 0 || node->collect_key != NULL;
	int32		scope = token->scope;

	base->item_index = 0;
	base->map_key = NULL;
	if (token->comp_seq != 0 || scope == WIG_ROOT_SCOPE)
		return false;
	/* Go takes what has a base for a step of a body, which a combine is not, and refuses it. */
	if (node->legacy_combine)
		return false;

	while (scope != WIG_ROOT_SCOPE)
	{
		WigScope	here;

		wig_scope_read(store, token->instance, scope, &here);
		if (here.kind == WIG_SCOPE_ITEM)
		{
			base->item_index = here.idx;
			base->map_key = here.map_key ? plain_text(here.map_key) : NULL;
			base->context = wig_view_read(store, token->instance,
										  combine ? token->scope : here.parent);
			return true;
		}
		scope = here.parent;
	}

	if (!combine)
		return false;
	base->context = wig_view_read(store, token->instance, token->scope);
	return true;
}
