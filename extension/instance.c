/*
 * instance.c
 *	  Reading, locking and changing rows of wf_instance.
 */
#include "wiggle.h"

#include "access/genam.h"
#include "access/relscan.h"
#include "access/skey.h"
#include "access/tableam.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "instance.h"

enum
{
	INSTANCE_NO = 1,
	INSTANCE_CREATED_AT,
	INSTANCE_UPDATED_AT,
	INSTANCE_VERSION,
	INSTANCE_DEPTH,
	INSTANCE_ID,
	INSTANCE_WORKFLOW,
	INSTANCE_STATUS,
	INSTANCE_CORRELATION_ID,
	INSTANCE_PARENT_TOKEN_ID,
	INSTANCE_TERMINATION_REASON,
	INSTANCE_ERROR,
	INSTANCE_NATTS = INSTANCE_ERROR
};

static char *
text_attr(TupleTableSlot *row, int attnum)
{
	bool		isnull;
	Datum		value = slot_getattr(row, attnum, &isnull);

	return isnull ? NULL : TextDatumGetCString(value);
}

/* A missing definition is reported at this level; inst->graph is NULL then. */
static void
read_row(WigStore *store, TupleTableSlot *row, int level, WigInstance *inst)
{
	bool		isnull;
	char	   *status = text_attr(row, INSTANCE_STATUS);

	memset(inst, 0, sizeof(*inst));
	inst->no = DatumGetInt64(slot_getattr(row, INSTANCE_NO, &isnull));
	inst->created_at = DatumGetTimestampTz(slot_getattr(row, INSTANCE_CREATED_AT, &isnull));
	inst->version = DatumGetInt32(slot_getattr(row, INSTANCE_VERSION, &isnull));
	inst->id = text_attr(row, INSTANCE_ID);
	inst->workflow = text_attr(row, INSTANCE_WORKFLOW);
	inst->correlation_id = text_attr(row, INSTANCE_CORRELATION_ID);
	inst->parent_token_id = text_attr(row, INSTANCE_PARENT_TOKEN_ID);
	inst->error = text_attr(row, INSTANCE_ERROR);
	inst->depth = DatumGetInt32(slot_getattr(row, INSTANCE_DEPTH, &isnull));
	if (!wig_instance_status_from_name(status, &inst->status))
		elog(ERROR, "instance %s has the unknown status \"%s\"", inst->id, status);
	inst->graph = wig_graph_get(store, inst->workflow, inst->version);
	if (inst->graph == NULL)
		ereport(level,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("instance %s runs workflow '%s' version %d, which is not in wf_definition",
						inst->id, inst->workflow, inst->version),
				 errhint("Register that version again.")));
}

/*
 * The row, or NULL. An update that is not HOT leaves two index entries, and a scan
 * with SnapshotSelf can meet the new version before the other session commits and
 * the old one after: it then sees neither. A scan begun after that commit sees the
 * new one; a row would have to move during every one of these scans to be missed.
 */
static TupleTableSlot *
find_row(WigStore *store, WigIndex index, Datum key)
{
	TupleTableSlot *row = NULL;

	for (int scans = 0; row == NULL && scans < 3; scans++)
		row = wig_store_fetch(store, index, &key, 1);
	return row;
}

static bool
lock_row(WigStore *store, TupleTableSlot *row, bool skip_locked, WigInstance *inst, bool *busy)
{
	WigLockResult result;

	if (busy != NULL)
		*busy = false;
	if (row == NULL)
		return false;
	result = wig_store_lock(store, WIG_TABLE_INSTANCE,
							skip_locked ? LockWaitSkip : LockWaitBlock);
	if (result == WIG_LOCK_BUSY)
		*busy = true;
	if (result != WIG_LOCKED)
		return false;
	read_row(store, row, ERROR, inst);
	return true;
}

bool
wig_instance_lock(WigStore *store, const char *id, bool skip_locked,
				  WigInstance *inst, bool *busy)
{
	Datum		key = CStringGetTextDatum(id);

	return lock_row(store, find_row(store, WIG_INDEX_INSTANCE_ID, key),
					skip_locked, inst, busy);
}

bool
wig_instance_lock_no(WigStore *store, int64 no, bool skip_locked,
					 WigInstance *inst, bool *busy)
{
	Datum		key = Int64GetDatum(no);

	return lock_row(store, find_row(store, WIG_INDEX_INSTANCE_NO, key),
					skip_locked, inst, busy);
}

bool
wig_instance_read(WigStore *store, int64 no, WigInstance *inst)
{
	Datum		key = Int64GetDatum(no);
	TupleTableSlot *row = find_row(store, WIG_INDEX_INSTANCE_NO, key);

	if (row == NULL)
		return false;
	read_row(store, row, WARNING, inst);
	return inst->graph != NULL;
}

bool
wig_instance_exists(WigStore *store, const char *id, WigInstance *inst)
{
	Datum		key = CStringGetTextDatum(id);
	TupleTableSlot *row = find_row(store, WIG_INDEX_INSTANCE_ID, key);

	if (row == NULL)
		return false;
	read_row(store, row, ERROR, inst);
	return true;
}

static bool
any_row(WigStore *store, Snapshot snapshot, ScanKey key, int nkeys)
{
	Relation	heap = wig_store_heap(store, WIG_TABLE_INSTANCE);
	TupleTableSlot *row = table_slot_create(heap, NULL);
	IndexScanDesc scan = wig_index_beginscan(heap, wig_store_index(store, WIG_INDEX_INSTANCE_NO), snapshot, nkeys);
	bool		found;

	index_rescan(scan, key, nkeys, NULL, 0);
	found = index_getnext_slot(scan, ForwardScanDirection, row);
	index_endscan(scan);
	ExecDropSingleTupleTableSlot(row);
	return found;
}

bool
wig_instance_gone(WigStore *store, int64 no)
{
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	ScanKeyData key;
	bool		gone;

	ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(no));
	gone = !any_row(store, snapshot, &key, 1) && any_row(store, snapshot, NULL, 0);
	UnregisterSnapshot(snapshot);
	return gone;
}

bool
wig_instance_of_parent(WigStore *store, const char *token_id, WigInstance *inst)
{
	Datum		key = CStringGetTextDatum(token_id);
	TupleTableSlot *row = find_row(store, WIG_INDEX_INSTANCE_PARENT, key);

	if (row == NULL)
		return false;
	read_row(store, row, ERROR, inst);
	return true;
}

bool
wig_instance_insert(WigStore *store, const WigInstance *inst)
{
	Datum		values[INSTANCE_NATTS] = {0};
	bool		nulls[INSTANCE_NATTS] = {false};

	values[INSTANCE_NO - 1] = Int64GetDatum(inst->no);
	values[INSTANCE_CREATED_AT - 1] = TimestampTzGetDatum(inst->created_at);
	values[INSTANCE_UPDATED_AT - 1] = TimestampTzGetDatum(inst->created_at);
	values[INSTANCE_VERSION - 1] = Int32GetDatum(inst->version);
	values[INSTANCE_ID - 1] = CStringGetTextDatum(inst->id);
	values[INSTANCE_WORKFLOW - 1] = CStringGetTextDatum(inst->workflow);
	values[INSTANCE_STATUS - 1] =
		CStringGetTextDatum(wig_instance_status_name(WIG_INSTANCE_RUNNING));
	nulls[INSTANCE_CORRELATION_ID - 1] = inst->correlation_id == NULL;
	if (inst->correlation_id != NULL)
		values[INSTANCE_CORRELATION_ID - 1] = CStringGetTextDatum(inst->correlation_id);
	values[INSTANCE_DEPTH - 1] = Int32GetDatum(inst->depth);
	nulls[INSTANCE_PARENT_TOKEN_ID - 1] = inst->parent_token_id == NULL;
	if (inst->parent_token_id != NULL)
		values[INSTANCE_PARENT_TOKEN_ID - 1] = CStringGetTextDatum(inst->parent_token_id);
	nulls[INSTANCE_TERMINATION_REASON - 1] = true;
	nulls[INSTANCE_ERROR - 1] = true;
	return wig_store_insert_new(store, WIG_TABLE_INSTANCE, WIG_INDEX_INSTANCE_ID, INSTANCE_NATTS,
								values, nulls);
}

void
wig_instance_set_status(WigStore *store, WigInstance *inst, WigInstanceStatus status,
						const char *reason, const char *error, TimestampTz now)
{
	Datum		values[INSTANCE_NATTS] = {0};
	bool		nulls[INSTANCE_NATTS] = {false};
	bool		replace[INSTANCE_NATTS] = {false};
	Datum		key = Int64GetDatum(inst->no);

	if (!wig_instance_may(inst->status, status))
		elog(ERROR, "instance %s cannot become %s from %s", inst->id,
			 wig_instance_status_name(status), wig_instance_status_name(inst->status));

	/* Other instances may have passed through the slot since this one was locked. */
	wig_store_step(store);
	if (find_row(store, WIG_INDEX_INSTANCE_NO, key) == NULL)
		elog(ERROR, "instance %s vanished under its lock", inst->id);

	values[INSTANCE_STATUS - 1] = CStringGetTextDatum(wig_instance_status_name(status));
	replace[INSTANCE_STATUS - 1] = true;
	values[INSTANCE_UPDATED_AT - 1] = TimestampTzGetDatum(now);
	replace[INSTANCE_UPDATED_AT - 1] = true;
	if (reason != NULL)
	{
		values[INSTANCE_TERMINATION_REASON - 1] = CStringGetTextDatum(reason);
		replace[INSTANCE_TERMINATION_REASON - 1] = true;
	}
	if (error != NULL)
	{
		values[INSTANCE_ERROR - 1] = CStringGetTextDatum(error);
		replace[INSTANCE_ERROR - 1] = true;
		inst->error = pstrdup(error);
	}
	wig_store_update(store, WIG_TABLE_INSTANCE, INSTANCE_NATTS, values, nulls, replace);
	inst->status = status;
}

int64
wig_instance_last_no(WigStore *store)
{
	TupleTableSlot *row = wig_store_fetch_last(store, WIG_INDEX_INSTANCE_NO, NULL, 0);
	bool		isnull;

	return row == NULL ? 0 : DatumGetInt64(slot_getattr(row, INSTANCE_NO, &isnull));
}
