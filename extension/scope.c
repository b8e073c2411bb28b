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
	bool		nulls[SCOPE_NATTS] = {false};

	values[SCOPE_INSTANCE - 1] = Int64GetDatum(instance);
	values[SCOPE_SCOPE - 1] = Int32GetDatum(scope);
	nulls[SCOPE_PARENT - 1] = true;
	values[SCOPE_CONTEXT - 1] = PointerGetDatum(cstring_to_text_with_len(context, len));
	wig_store_insert(store, WIG_TABLE_SCOPE, SCOPE_NATTS, values, nulls);
}

text *
wig_scope_context(WigStore *store, int64 instance, int32 scope)
{
	bool		isnull;

	return DatumGetTextPCopy(slot_getattr(fetch(store, instance, scope),
										  SCOPE_CONTEXT, &isnull));
}

void
wig_scope_write(WigStore *store, int64 instance, int32 scope, const char *context, size_t len)
{
	Datum		values[SCOPE_NATTS] = {0};
	bool		nulls[SCOPE_NATTS] = {false};
	bool		replace[SCOPE_NATTS] = {false};

	fetch(store, instance, scope);
	values[SCOPE_CONTEXT - 1] = PointerGetDatum(cstring_to_text_with_len(context, len));
	replace[SCOPE_CONTEXT - 1] = true;
	wig_store_update(store, WIG_TABLE_SCOPE, SCOPE_NATTS, values, nulls, replace);
}
