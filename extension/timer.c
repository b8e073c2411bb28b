/*
 * timer.c
 *	  Reading and writing rows of wf_timer.
 */
#include "wiggle.h"

#include "access/genam.h"
#include "access/relscan.h"
#include "access/skey.h"
#include "access/tableam.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "clock.h"
#include "compat.h"
#include "timer.h"
#include "wake.h"

enum
{
	TIMER_DUE_AT = 1,
	TIMER_INSTANCE,
	TIMER_N,
	TIMER_NATTS = TIMER_N
};

void
wig_timer_insert(WigStore *store, TimestampTz due_at, int64 instance, int32 n)
{
	Datum		values[TIMER_NATTS];
	bool		nulls[TIMER_NATTS] = {false};

	values[TIMER_DUE_AT - 1] = TimestampTzGetDatum(due_at);
	values[TIMER_INSTANCE - 1] = Int64GetDatum(instance);
	values[TIMER_N - 1] = Int32GetDatum(n);
	wig_store_insert(store, WIG_TABLE_TIMER, TIMER_NATTS, values, nulls);
	wig_wake_at(WIG_DEADLINE_TIMER, due_at);
}

bool
wig_timer_delete(WigStore *store, TimestampTz due_at, int64 instance, int32 n)
{
	Datum		key[3] = {TimestampTzGetDatum(due_at), Int64GetDatum(instance), Int32GetDatum(n)};

	if (wig_store_fetch(store, WIG_INDEX_TIMER, key, 3) == NULL)
		return false;
	return wig_store_delete(store, WIG_TABLE_TIMER);
}

int
wig_timer_scan_due(WigStore *store, TimestampTz from, TimestampTz now, int max,
				   WigTimer *due, TimestampTz *next)
{
	Relation	heap = wig_store_heap(store, WIG_TABLE_TIMER);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	TupleTableSlot *row = table_slot_create(heap, NULL);
	IndexScanDesc scan;
	ScanKeyData key;
	int			n = 0;

	/* The caller passes the dead entries of fired timers by starting at `from`. */
	ScanKeyInit(&key, 1, BTGreaterEqualStrategyNumber, F_TIMESTAMPTZ_GE,
				TimestampTzGetDatum(from));
	scan = wig_index_beginscan(heap, wig_store_index(store, WIG_INDEX_TIMER), snapshot, 1);
	index_rescan(scan, &key, 1, NULL, 0);

	*next = WIG_NEVER;
	while (index_getnext_slot(scan, ForwardScanDirection, row))
	{
		bool		isnull;
		TimestampTz at = DatumGetTimestampTz(slot_getattr(row, TIMER_DUE_AT, &isnull));

		if (at > now || n == max)
		{
			*next = at;
			break;
		}
		due[n].due_at = at;
		due[n].instance = DatumGetInt64(slot_getattr(row, TIMER_INSTANCE, &isnull));
		due[n++].n = DatumGetInt32(slot_getattr(row, TIMER_N, &isnull));
	}
	index_endscan(scan);
	ExecDropSingleTupleTableSlot(row);
	UnregisterSnapshot(snapshot);
	return n;
}
