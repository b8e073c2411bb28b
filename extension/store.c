/*
 * store.c
 *	  Direct access to the hot tables; see store.h for the rules.
 */
#include "wiggle.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/relscan.h"
#include "access/skey.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_collation.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "storage/lmgr.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "store.h"
#include "wake.h"

#define MAX_KEYS 3

static const char *const table_names[WIG_NTABLES] = {
	[WIG_TABLE_INSTANCE] = "wf_instance",
	[WIG_TABLE_SCOPE] = "wf_scope",
	[WIG_TABLE_TOKEN] = "wf_token",
	[WIG_TABLE_READY] = "wf_ready",
	[WIG_TABLE_LEASE] = "wf_lease",
	[WIG_TABLE_TIMER] = "wf_timer",
	[WIG_TABLE_DEFINITION] = "wf_definition",
	[WIG_TABLE_EVENT] = "wf_event",
	[WIG_TABLE_COMP_LOG] = "wf_comp_log",
};

static const struct
{
	const char *name;
	WigTable	table;
	RegProcedure equal[MAX_KEYS];	/* per index column */
}			indexes[WIG_NINDEXES] = {
	[WIG_INDEX_INSTANCE_NO] = {"wf_instance_pkey", WIG_TABLE_INSTANCE, {F_INT8EQ}},
	[WIG_INDEX_INSTANCE_ID] = {"wf_instance_id_key", WIG_TABLE_INSTANCE, {F_TEXTEQ}},
	[WIG_INDEX_SCOPE] = {"wf_scope_pkey", WIG_TABLE_SCOPE, {F_INT8EQ, F_INT4EQ}},
	[WIG_INDEX_TOKEN] = {"wf_token_pkey", WIG_TABLE_TOKEN, {F_INT8EQ, F_INT4EQ}},
	[WIG_INDEX_READY] = {"wf_ready_pkey", WIG_TABLE_READY, {F_TEXTEQ, F_INT8EQ, F_INT4EQ}},
	[WIG_INDEX_LEASE] = {"wf_lease_pkey", WIG_TABLE_LEASE, {F_INT8EQ, F_INT4EQ}},
	[WIG_INDEX_TIMER] = {"wf_timer_pkey", WIG_TABLE_TIMER, {F_TIMESTAMPTZ_EQ, F_INT8EQ, F_INT4EQ}},
	[WIG_INDEX_DEFINITION] = {"wf_definition_pkey", WIG_TABLE_DEFINITION, {F_TEXTEQ, F_INT4EQ}},
	[WIG_INDEX_INSTANCE_PARENT] = {"wf_instance_parent", WIG_TABLE_INSTANCE, {F_TEXTEQ}},
	[WIG_INDEX_EVENT] = {"wf_event_pkey", WIG_TABLE_EVENT, {F_INT8EQ}},
	[WIG_INDEX_COMP_LOG] = {"wf_comp_log_pkey", WIG_TABLE_COMP_LOG, {F_INT8EQ, F_INT4EQ}},
};

typedef struct OpenTable
{
	Relation	rel;			/* NULL: not opened yet */
	ResultRelInfo *result;
	TupleTableSlot *row;		/* the last row fetched */
	TupleTableSlot *scratch;	/* the row being written */
} OpenTable;

typedef struct OpenIndex
{
	Relation	rel;
	IndexScanDesc scan;
} OpenIndex;

struct WigStore
{
	EState	   *estate;
	EPQState	epq;
	OpenTable	tables[WIG_NTABLES];
	OpenIndex	indexes[WIG_NINDEXES];
	bool		writing;
	bool		dirty;			/* written since the last step */
};

static Oid
table_oid(WigTable table)
{
	Oid			schema = get_namespace_oid(WIG_SCHEMA, false);
	Oid			oid = get_relname_relid(table_names[table], schema);

	if (!OidIsValid(oid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("table %s.%s does not exist", WIG_SCHEMA, table_names[table]),
				 errhint("Drop and create the extension wiggle again.")));
	return oid;
}

WigStore *
wig_store_open(bool writing)
{
	WigStore   *store = palloc0(sizeof(WigStore));
	List	   *rtes = NIL;

	/* What this transaction did before must be visible to, and writable by, us. */
	if (writing)
	{
		CommandCounterIncrement();
		wig_wake_writing();
	}

	store->writing = writing;
	store->estate = CreateExecutorState();
	for (int i = 0; i < WIG_NTABLES; i++)
	{
		RangeTblEntry *rte = makeNode(RangeTblEntry);

		rte->rtekind = RTE_RELATION;
		rte->relid = table_oid(i);
		rte->relkind = RELKIND_RELATION;
		/* Definitions are only read here: a start must not wait for a registration. */
		rte->rellockmode = writing && i != WIG_TABLE_DEFINITION ? RowExclusiveLock
			: AccessShareLock;
		rtes = lappend(rtes, rte);
	}
	wig_init_range_table(store->estate, rtes);
	store->estate->es_output_cid = GetCurrentCommandId(writing);
	store->estate->es_snapshot = ActiveSnapshotSet() ? GetActiveSnapshot() : InvalidSnapshot;
	wig_eval_plan_qual_init(&store->epq, store->estate);
	if (writing)
		AfterTriggerBeginQuery();
	return store;
}

static OpenTable *
open_table(WigStore *store, WigTable table)
{
	OpenTable  *t = &store->tables[table];

	if (t->rel == NULL)
	{
		RangeTblEntry *rte = list_nth(store->estate->es_range_table, table);
		MemoryContext old = MemoryContextSwitchTo(store->estate->es_query_cxt);

		t->rel = table_open(rte->relid, rte->rellockmode);
		t->result = makeNode(ResultRelInfo);
		InitResultRelInfo(t->result, t->rel, table + 1, NULL, 0);
		ExecOpenIndices(t->result, table == WIG_TABLE_INSTANCE);
		/* Where AFTER triggers look for it, and where its indexes are closed. */
		store->estate->es_opened_result_relations =
			lappend(store->estate->es_opened_result_relations, t->result);
		t->row = table_slot_create(t->rel, NULL);
		t->scratch = MakeSingleTupleTableSlot(RelationGetDescr(t->rel), &TTSOpsVirtual);
		MemoryContextSwitchTo(old);
	}
	return t;
}

static OpenIndex *
open_index(WigStore *store, WigIndex index)
{
	OpenIndex  *x = &store->indexes[index];

	if (x->rel == NULL)
	{
		OpenTable  *t = open_table(store, indexes[index].table);

		for (int i = 0; i < t->result->ri_NumIndices; i++)
			if (strcmp(RelationGetRelationName(t->result->ri_IndexRelationDescs[i]),
					   indexes[index].name) == 0)
				x->rel = t->result->ri_IndexRelationDescs[i];
		if (x->rel == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_OBJECT),
					 errmsg("index %s.%s does not exist", WIG_SCHEMA, indexes[index].name),
					 errhint("Create it again as in the extension's script.")));
	}
	return x;
}

void
wig_store_step(WigStore *store)
{
	if (!store->dirty)
		return;
	store->dirty = false;
	CommandCounterIncrement();
	store->estate->es_output_cid = GetCurrentCommandId(true);
	ResetPerTupleExprContext(store->estate);
}

void
wig_store_close(WigStore *store)
{
	for (int i = 0; i < WIG_NINDEXES; i++)
		if (store->indexes[i].scan != NULL)
			index_endscan(store->indexes[i].scan);

	if (store->writing)
	{
		CommandCounterIncrement();
		AfterTriggerEndQuery(store->estate);
	}
	EvalPlanQualEnd(&store->epq);
	ExecCloseResultRelations(store->estate);
	ExecResetTupleTable(store->estate->es_tupleTable, false);
	for (int i = 0; i < WIG_NTABLES; i++)
	{
		OpenTable  *t = &store->tables[i];

		if (t->rel == NULL)
			continue;
		ExecDropSingleTupleTableSlot(t->row);
		ExecDropSingleTupleTableSlot(t->scratch);
		table_close(t->rel, NoLock);
	}
	FreeExecutorState(store->estate);
	pfree(store);
}

/* Position the index's scan on a key; made on first use and kept. */
static IndexScanDesc
position(WigStore *store, WigIndex index, const Datum *key, int nkeys)
{
	OpenIndex  *x = open_index(store, index);
	ScanKeyData keys[MAX_KEYS];

	for (int i = 0; i < nkeys; i++)
		ScanKeyEntryInitialize(&keys[i], 0, i + 1, BTEqualStrategyNumber, InvalidOid,
							   C_COLLATION_OID, indexes[index].equal[i], key[i]);

	/* The number of keys is fixed when a scan begins. */
	if (x->scan != NULL && x->scan->numberOfKeys != nkeys)
	{
		index_endscan(x->scan);
		x->scan = NULL;
	}
	if (x->scan == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(store->estate->es_query_cxt);

		x->scan = wig_index_beginscan(store->tables[indexes[index].table].rel, x->rel,
									  SnapshotSelf, nkeys);
		MemoryContextSwitchTo(old);
	}
	index_rescan(x->scan, keys, nkeys, NULL, 0);
	return x->scan;
}

/* Scans keep what they allocate on the way, whatever context the caller is in. */
static TupleTableSlot *
get_next(WigStore *store, IndexScanDesc scan, ScanDirection direction, WigTable table)
{
	TupleTableSlot *row = store->tables[table].row;
	MemoryContext old = MemoryContextSwitchTo(store->estate->es_query_cxt);
	bool		found = index_getnext_slot(scan, direction, row);

	MemoryContextSwitchTo(old);
	return found ? row : NULL;
}

TupleTableSlot *
wig_store_fetch(WigStore *store, WigIndex index, const Datum *key, int nkeys)
{
	return get_next(store, position(store, index, key, nkeys), ForwardScanDirection,
					indexes[index].table);
}

TupleTableSlot *
wig_store_fetch_last(WigStore *store, WigIndex index, const Datum *key, int nkeys)
{
	return get_next(store, position(store, index, key, nkeys), BackwardScanDirection,
					indexes[index].table);
}

void
wig_store_walk(WigStore *store, WigIndex index, const Datum *key, int nkeys)
{
	(void) position(store, index, key, nkeys);
}

TupleTableSlot *
wig_store_next(WigStore *store, WigIndex index)
{
	return get_next(store, store->indexes[index].scan, ForwardScanDirection,
					indexes[index].table);
}

WigLockResult
wig_store_lock(WigStore *store, WigTable table, LockWaitPolicy wait)
{
	OpenTable  *t = open_table(store, table);
	ItemPointerData tid = t->row->tts_tid;
	TM_FailureData failure;
	TM_Result	result;

	store->dirty = true;
	result = table_tuple_lock(t->rel, &tid, SnapshotSelf, t->row,
							  GetCurrentCommandId(true), LockTupleNoKeyExclusive, wait,
							  TUPLE_LOCK_FLAG_FIND_LAST_VERSION, &failure);
	switch (result)
	{
		case TM_Ok:
			return WIG_LOCKED;
		case TM_WouldBlock:
			return WIG_LOCK_BUSY;
		case TM_Deleted:
		case TM_Updated:
			return WIG_LOCK_GONE;
		default:
			elog(ERROR, "unexpected result %d of a row lock on %s", result, table_names[table]);
	}
	return WIG_LOCK_GONE;		/* keep the compiler quiet */
}

static void
check_columns(const OpenTable *t, int natts)
{
	int			present = RelationGetDescr(t->rel)->natts;

	if (present != natts)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table %s.%s has %d columns, the wiggle library knows %d", WIG_SCHEMA,
						RelationGetRelationName(t->rel), present, natts),
				 errhint("Columns of the engine's tables cannot be added or dropped; keep yours in a table of your own.")));
}

static void
fill_scratch(OpenTable *t, int natts, const Datum *values, const bool *nulls)
{
	ExecClearTuple(t->scratch);
	memcpy(t->scratch->tts_values, values, natts * sizeof(Datum));
	memcpy(t->scratch->tts_isnull, nulls, natts * sizeof(bool));
	ExecStoreVirtualTuple(t->scratch);
}

void
wig_store_insert(WigStore *store, WigTable table, int natts, const Datum *values,
				 const bool *nulls)
{
	OpenTable  *t = open_table(store, table);

	check_columns(t, natts);
	fill_scratch(t, natts, values, nulls);
	ExecSimpleRelationInsert(t->result, store->estate, t->scratch);
	store->dirty = true;
}

/*
 * As INSERT … ON CONFLICT DO NOTHING does it: look, insert tentatively, and take
 * it back when somebody else's row came in between; each look waits for whoever
 * is inserting the same key.
 */
static bool
insert_tentatively(WigStore *store, OpenTable *t, List *arbiters, List **recheck)
{
	ItemPointerData present;
	bool		conflict = false;

	for (;;)
	{
		uint32		token;

		if (!wig_check_index_constraints(t->result, t->scratch, store->estate, &present, arbiters))
			return false;
		token = SpeculativeInsertionLockAcquire(GetCurrentTransactionId());
		table_tuple_insert_speculative(t->rel, t->scratch, GetCurrentCommandId(true), 0, NULL, token);
		*recheck = wig_insert_index_tuples(t->result, t->scratch, store->estate, &conflict, arbiters);
		table_tuple_complete_speculative(t->rel, t->scratch, token, !conflict);
		SpeculativeInsertionLockRelease(GetCurrentTransactionId());
		if (!conflict)
			return true;
		list_free(*recheck);
	}
}

bool
wig_store_insert_new(WigStore *store, WigTable table, WigIndex index, int natts,
					 const Datum *values, const bool *nulls)
{
	OpenTable  *t = open_table(store, table);
	List	   *arbiters = list_make1_oid(RelationGetRelid(open_index(store, index)->rel));
	List	   *recheck = NIL;

	check_columns(t, natts);
	fill_scratch(t, natts, values, nulls);
	t->scratch->tts_tableOid = RelationGetRelid(t->rel);
	store->dirty = true;
	if (t->rel->trigdesc != NULL && t->rel->trigdesc->trig_insert_before_row &&
		!ExecBRInsertTriggers(store->estate, t->result, t->scratch))
		return false;
	if (!insert_tentatively(store, t, arbiters, &recheck))
		return false;
	ExecARInsertTriggers(store->estate, t->result, t->scratch, recheck, NULL);
	return true;
}

void
wig_store_update(WigStore *store, WigTable table, int natts, const Datum *values,
				 const bool *nulls, const bool *replace)
{
	OpenTable  *t = open_table(store, table);

	check_columns(t, natts);
	slot_getallattrs(t->row);
	ExecClearTuple(t->scratch);
	for (int i = 0; i < natts; i++)
	{
		t->scratch->tts_values[i] = replace[i] ? values[i] : t->row->tts_values[i];
		t->scratch->tts_isnull[i] = replace[i] ? nulls[i] : t->row->tts_isnull[i];
	}
	ExecStoreVirtualTuple(t->scratch);
	ExecSimpleRelationUpdate(t->result, store->estate, &store->epq, t->row, t->scratch);
	store->dirty = true;
}

/* With row triggers a delete must go through the executor; the lock says first
 * whether it will succeed. */
static bool
delete_with_triggers(WigStore *store, OpenTable *t, ItemPointer tid,
					 TupleTableSlot *row, LockWaitPolicy wait)
{
	TM_FailureData failure;

	if (table_tuple_lock(t->rel, tid, SnapshotSelf, row, GetCurrentCommandId(true),
						 LockTupleExclusive, wait, 0, &failure) != TM_Ok)
		return false;
	EvalPlanQualSetSlot(&store->epq, row);
	ExecSimpleRelationDelete(t->result, store->estate, &store->epq, row);
	return true;
}

static bool
delete_row(WigStore *store, WigTable table, ItemPointer tid, TupleTableSlot *row, bool wait)
{
	OpenTable  *t = open_table(store, table);
	TM_FailureData failure;
	ItemPointerData target = *tid;

	store->dirty = true;
	CheckCmdReplicaIdentity(t->rel, CMD_DELETE);
	if (t->rel->trigdesc != NULL &&
		(t->rel->trigdesc->trig_delete_before_row || t->rel->trigdesc->trig_delete_after_row))
		return delete_with_triggers(store, t, &target, row,
									wait ? LockWaitBlock : LockWaitSkip);

	switch (table_tuple_delete(t->rel, &target, GetCurrentCommandId(true), SnapshotSelf,
							   InvalidSnapshot, wait, &failure, false))
	{
		case TM_Ok:
			return true;
		case TM_BeingModified:
		case TM_Deleted:
		case TM_Updated:
		case TM_SelfModified:
		case TM_Invisible:		/* by an earlier command of ours */
			return false;
		default:
			elog(ERROR, "unexpected result of a delete on %s", table_names[table]);
	}
	return false;				/* keep the compiler quiet */
}

bool
wig_store_delete(WigStore *store, WigTable table)
{
	OpenTable  *t = open_table(store, table);

	return delete_row(store, table, &t->row->tts_tid, t->row, true);
}

bool
wig_store_take(WigStore *store, WigTable table, ItemPointer tid, TupleTableSlot *row)
{
	return delete_row(store, table, tid, row, false);
}

Relation
wig_store_heap(WigStore *store, WigTable table)
{
	return open_table(store, table)->rel;
}

Relation
wig_store_index(WigStore *store, WigIndex index)
{
	return open_index(store, index)->rel;
}
