/*
 * comp_log.c
 *	  Reading and writing rows of wf_comp_log.
 */
#include "wiggle.h"

#include "utils/builtins.h"

#include "comp_log.h"

enum
{
	COMP_INSTANCE = 1,
	COMP_SEQ,
	COMP_COMPENSATED,
	COMP_NODE,
	COMP_INPUT,
	COMP_RESULT,
	COMP_NATTS = COMP_RESULT
};

static TupleTableSlot *
fetch(WigStore *store, const WigInstance *inst, int32 seq)
{
	Datum		key[2] = {Int64GetDatum(inst->no), Int32GetDatum(seq)};

	if (seq == 0)
		return wig_store_fetch_last(store, WIG_INDEX_COMP_LOG, key, 1);
	return wig_store_fetch(store, WIG_INDEX_COMP_LOG, key, 2);
}

void
wig_comp_log_append(WigStore *store, const WigInstance *inst, int node,
					const text *input, const text *result)
{
	TupleTableSlot *newest = fetch(store, inst, 0);
	Datum		values[COMP_NATTS];
	bool		nulls[COMP_NATTS] = {false};
	bool		isnull;
	int32		seq = 1;

	if (newest != NULL)
		seq = DatumGetInt32(slot_getattr(newest, COMP_SEQ, &isnull)) + 1;
	values[COMP_INSTANCE - 1] = Int64GetDatum(inst->no);
	values[COMP_SEQ - 1] = Int32GetDatum(seq);
	values[COMP_COMPENSATED - 1] = BoolGetDatum(false);
	values[COMP_NODE - 1] = CStringGetTextDatum(wig_graph_node(inst->graph, node)->id);
	values[COMP_INPUT - 1] = PointerGetDatum(input);
	values[COMP_RESULT - 1] = PointerGetDatum(result);
	wig_store_insert(store, WIG_TABLE_COMP_LOG, COMP_NATTS, values, nulls);
}

bool
wig_comp_log_read(WigStore *store, const WigInstance *inst, int32 seq, WigCompEntry *entry)
{
	TupleTableSlot *row = fetch(store, inst, seq);
	bool		isnull;
	char	   *node;

	if (row == NULL)
		return false;
	entry->seq = DatumGetInt32(slot_getattr(row, COMP_SEQ, &isnull));
	node = TextDatumGetCString(slot_getattr(row, COMP_NODE, &isnull));
	entry->node = wig_definition_node(inst->graph->def, node, strlen(node));
	if (entry->node < 0)
		elog(ERROR, "the log of instance %s names node \"%s\", which its definition lacks",
			 inst->id, node);
	entry->input = TextDatumGetCString(slot_getattr(row, COMP_INPUT, &isnull));
	entry->result = TextDatumGetCString(slot_getattr(row, COMP_RESULT, &isnull));
	return true;
}

void
wig_comp_log_set_compensated(WigStore *store, const WigInstance *inst, int32 seq)
{
	Datum		values[COMP_NATTS] = {0};
	bool		nulls[COMP_NATTS] = {false};
	bool		replace[COMP_NATTS] = {false};

	if (fetch(store, inst, seq) == NULL)
		elog(ERROR, "the log of instance %s has no entry %d", inst->id, seq);
	values[COMP_COMPENSATED - 1] = BoolGetDatum(true);
	replace[COMP_COMPENSATED - 1] = true;
	wig_store_update(store, WIG_TABLE_COMP_LOG, COMP_NATTS, values, nulls, replace);
}
