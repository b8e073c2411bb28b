/*
 * mint.c
 *	  New ids and new instances.
 */
#include "wiggle.h"

#include "access/table.h"
#include "access/tableam.h"
#include "catalog/namespace.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "clock.h"
#include "event.h"
#include "ids.h"
#include "mint.h"
#include "scope.h"
#include "shmem.h"

static int64
highest_number(void *store)
{
	return wig_instance_last_no(store);
}

int32
wig_shard_id(void)
{
	Oid			relid = get_relname_relid("wf_shard", get_namespace_oid(WIG_SCHEMA, false));
	Relation	rel;
	TupleTableSlot *row;
	TableScanDesc scan;
	Snapshot	snapshot;
	int32		shard = WIG_NO_SHARD;

	if (!OidIsValid(relid))
		elog(ERROR, "table wiggle.wf_shard does not exist");
	rel = table_open(relid, AccessShareLock);
	row = table_slot_create(rel, NULL);
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	scan = table_beginscan(rel, snapshot, 0, NULL);
	if (table_scan_getnextslot(scan, ForwardScanDirection, row))
	{
		bool		isnull;

		shard = DatumGetInt32(slot_getattr(row, 1, &isnull));
	}
	table_endscan(scan);
	UnregisterSnapshot(snapshot);
	ExecDropSingleTupleTableSlot(row);
	table_close(rel, AccessShareLock);
	return shard;
}

char *
wig_mint_id(int32 shard)
{
	char		part[WIG_PART_LEN];
	char		id[WIG_ID_MAX + 1];
	uint64		rnd;

	if (!pg_strong_random(&rnd, sizeof(rnd)))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate a random id")));
	wig_part_encode(part, (uint64_t) wig_to_millis(wig_now()), rnd);
	if (wig_id_format(id, "wfi", shard, part, WIG_PART_LEN) < 0)
		elog(ERROR, "could not format an instance id");
	return pstrdup(id);
}

bool
wig_instance_new(WigWork *work, WigInstance *inst, const char *context, size_t len)
{
	inst->no = wig_next_no(highest_number, work->store, work->now);
	inst->workflow = pstrdup(inst->graph->def->name);
	inst->version = inst->graph->def->version;
	inst->status = WIG_INSTANCE_RUNNING;
	inst->created_at = work->now;
	if (!wig_instance_insert(work->store, inst))
		return false;
	wig_scope_insert(work->store, inst->no, WIG_ROOT_SCOPE, context, len);
	wig_event_lifecycle(work, inst, WIG_EVENT_STARTED, NULL, NULL);
	return true;
}
