/*
 * scope.c
 *	  Reading and writing rows of wf_scope.
 */
#include "wiggle.h"

#include "fmgr.h"
#include "utils/builtins.h"

#include "scope.h"

enum
{
	SCOPE_INSTANCE = 1,
	SCOPE_SCOPE,
	SCOPE_PARENT,
	SCOPE_IDX,
	SCOPE_GROUP,
	SCOPE_ARRIVED,
	SCOPE_KIND,
	SCOPE_MAP_KEY,
	SCOPE_LAST_STEP,
	SCOPE_CONTEXT,
	SCOPE_NATTS = SCOPE_CONTEXT
};

static TupleTableSlot *
fetch(WigStore *store, int64 instance, int32 scope)
{
	Datum		key[2] = {Int64GetDatum(instance), Int32GetDatum(scope)};
	TupleTableSlot *row = wig_store_fetch(store, WIG_INDEX_SCOPE, key, 2);

	if (row == NULL)
		elog(ERROR, "instance number " INT64_FORMAT " has no scope %d", instance, scope);
	return row;
}

void
wig_scope_insert(WigStore *store, int64 instance, int32 scope, const char *context, size_t len)
{
	Datum		values[SCOPE_NATTS] = {0};
	bool		nulls[SCOPE_NATTS];

	memset(nulls, true, sizeof(nulls));
	nulls[SCOPE_INSTANCE - 1] = nulls[SCOPE_SCOPE - 1] = false;
	nulls[SCOPE_KIND - 1] = nulls[SCOPE_CONTEXT - 1] = false;
	values[SCOPE_KIND - 1] = CharGetDatum(WIG_SCOPE_ROOT);
	values[SCOPE_INSTANCE - 1] = Int64GetDatum(instance);
	values[SCOPE_SCOPE - 1] = Int32GetDatum(scope);
	values[SCOPE_CONTEXT - 1] = PointerGetDatum(cstring_to_text_with_len(context, len));
	wig_store_insert(store, WIG_TABLE_SCOPE, SCOPE_NATTS, values, nulls);
}

void
wig_scope_insert_child(WigStore *store, int64 instance, const WigScope *scope,
					   const char *context, size_t len)
{
	Datum		values[SCOPE_NATTS] = {0};
	bool		nulls[SCOPE_NATTS] = {false};

	values[SCOPE_INSTANCE - 1] = Int64GetDatum(instance);
	values[SCOPE_SCOPE - 1] = Int32GetDatum(scope->scope);
	values[SCOPE_PARENT - 1] = Int32GetDatum(scope->parent);
	values[SCOPE_KIND - 1] = CharGetDatum(scope->kind);
	values[SCOPE_IDX - 1] = Int32GetDatum(scope->idx);
	values[SCOPE_GROUP - 1] = Int32GetDatum(scope->group);
	nulls[SCOPE_ARRIVED - 1] = true;
	nulls[SCOPE_MAP_KEY - 1] = scope->map_key == NULL;
	if (scope->map_key != NULL)
		values[SCOPE_MAP_KEY - 1] = CStringGetTextDatum(scope->map_key);
	nulls[SCOPE_LAST_STEP - 1] = true;
	nulls[SCOPE_CONTEXT - 1] = context == NULL;
	if (context != NULL)
		values[SCOPE_CONTEXT - 1] = PointerGetDatum(cstring_to_text_with_len(context, len));
	wig_store_insert(store, WIG_TABLE_SCOPE, SCOPE_NATTS, values, nulls);
}

int32
wig_scope_next(WigStore *store, int64 instance)
{
	Datum		key = Int64GetDatum(instance);
	TupleTableSlot *row = wig_store_fetch_last(store, WIG_INDEX_SCOPE, &key, 1);
	bool		isnull;

	return row == NULL ? 0 : DatumGetInt32(slot_getattr(row, SCOPE_SCOPE, &isnull)) + 1;
}

static int32
int_attr(TupleTableSlot *row, int attnum, int32 otherwise)
{
	bool		isnull;
	Datum		value = slot_getattr(row, attnum, &isnull);

	return isnull ? otherwise : DatumGetInt32(value);
}

static char *
text_attr(TupleTableSlot *row, int attnum)
{
	bool		isnull;
	Datum		value = slot_getattr(row, attnum, &isnull);

	return isnull ? NULL : TextDatumGetCString(value);
}

void
wig_scope_read(WigStore *store, int64 instance, int32 scope, WigScope *out)
{
	TupleTableSlot *row = fetch(store, instance, scope);
	bool		isnull;

	out->scope = scope;
	out->kind = DatumGetChar(slot_getattr(row, SCOPE_KIND, &isnull));
	out->parent = int_attr(row, SCOPE_PARENT, -1);
	out->idx = int_attr(row, SCOPE_IDX, 0);
	out->group = int_attr(row, SCOPE_GROUP, 0);
	out->arrived = int_attr(row, SCOPE_ARRIVED, 0);
	out->map_key = text_attr(row, SCOPE_MAP_KEY);
	out->last_step = text_attr(row, SCOPE_LAST_STEP);
}

void
wig_scope_set_arrived(WigStore *store, int64 instance, int32 scope, int32 token)
{
	Datum		values[SCOPE_NATTS] = {0};
	bool		nulls[SCOPE_NATTS] = {false};
	bool		replace[SCOPE_NATTS] = {false};

	wig_store_step(store);
	fetch(store, instance, scope);
	values[SCOPE_ARRIVED - 1] = Int32GetDatum(token);
	replace[SCOPE_ARRIVED - 1] = true;
	wig_store_update(store, WIG_TABLE_SCOPE, SCOPE_NATTS, values, nulls, replace);
}

void
wig_scope_delete(WigStore *store, int64 instance, int32 scope)
{
	fetch(store, instance, scope);
	if (!wig_store_delete(store, WIG_TABLE_SCOPE))
		elog(ERROR, "a scope was deleted without its instance's lock");
}

text *
wig_scope_context(WigStore *store, int64 instance, int32 scope)
{
	bool		isnull;
	Datum		context = slot_getattr(fetch(store, instance, scope), SCOPE_CONTEXT, &isnull);

	return isnull ? NULL : DatumGetTextPCopy(context);
}

void
wig_scope_write(WigStore *store, int64 instance, int32 scope, const char *context, size_t len,
				const char *last_step)
{
	Datum		values[SCOPE_NATTS] = {0};
	bool		nulls[SCOPE_NATTS] = {false};
	bool		replace[SCOPE_NATTS] = {false};

	fetch(store, instance, scope);
	if (context != NULL)
	{
		values[SCOPE_CONTEXT - 1] = PointerGetDatum(cstring_to_text_with_len(context, len));
		replace[SCOPE_CONTEXT - 1] = true;
	}
	if (last_step != NULL)
	{
		values[SCOPE_LAST_STEP - 1] = CStringGetTextDatum(last_step);
		replace[SCOPE_LAST_STEP - 1] = true;
	}
	wig_store_update(store, WIG_TABLE_SCOPE, SCOPE_NATTS, values, nulls, replace);
}
