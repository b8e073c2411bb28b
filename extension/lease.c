/*
 * lease.c
 *	  Reading and writing rows of wf_lease.
 */
#include "wiggle.h"

#include "access/tableam.h"
#include "utils/builtins.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "clock.h"
#include "lease.h"
#include "wake.h"

enum
{
	LEASE_INSTANCE = 1,
	LEASE_EXPIRES_AT,
	LEASE_CLAIMED_AT,
	LEASE_N,
	LEASE_OWNER,
	LEASE_NATTS = LEASE_OWNER
};

void
wig_lease_insert(WigStore *store, int64 instance, int32 n, const char *owner,
				 TimestampTz claimed_at, TimestampTz expires_at)
{
	Datum		values[LEASE_NATTS] = {0};
	bool		nulls[LEASE_NATTS] = {false};

	values[LEASE_INSTANCE - 1] = Int64GetDatum(instance);
	values[LEASE_EXPIRES_AT - 1] = TimestampTzGetDatum(expires_at);
	values[LEASE_CLAIMED_AT - 1] = TimestampTzGetDatum(claimed_at);
	values[LEASE_N - 1] = Int32GetDatum(n);
	values[LEASE_OWNER - 1] = CStringGetTextDatum(owner);
	wig_store_insert(store, WIG_TABLE_LEASE, LEASE_NATTS, values, nulls);
	wig_wake_at(WIG_DEADLINE_LEASE, expires_at);
}

bool
wig_lease_read(WigStore *store, int64 instance, int32 n, WigLease *lease)
{
	Datum		key[2] = {Int64GetDatum(instance), Int32GetDatum(n)};
	TupleTableSlot *row = wig_store_fetch(store, WIG_INDEX_LEASE, key, 2);
	bool		isnull;

	if (row == NULL)
		return false;
	lease->expires_at = DatumGetTimestampTz(slot_getattr(row, LEASE_EXPIRES_AT, &isnull));
	lease->claimed_at = DatumGetTimestampTz(slot_getattr(row, LEASE_CLAIMED_AT, &isnull));
	text_to_cstring_buffer(DatumGetTextPP(slot_getattr(row, LEASE_OWNER, &isnull)),
						   lease->owner, sizeof(lease->owner));
	return true;
}

void
wig_lease_delete(WigStore *store)
{
	if (!wig_store_delete(store, WIG_TABLE_LEASE))
		elog(ERROR, "a lease was deleted without its instance's lock");
}

void
wig_lease_extend(WigStore *store, TimestampTz expires_at)
{
	Datum		values[LEASE_NATTS] = {0};
	bool		nulls[LEASE_NATTS] = {false};
	bool		replace[LEASE_NATTS] = {false};

	values[LEASE_EXPIRES_AT - 1] = TimestampTzGetDatum(expires_at);
	replace[LEASE_EXPIRES_AT - 1] = true;
	wig_store_update(store, WIG_TABLE_LEASE, LEASE_NATTS, values, nulls, replace);
	wig_wake_at(WIG_DEADLINE_LEASE, expires_at);
}

int
wig_lease_scan_expired(WigStore *store, TimestampTz now, int max,
					   int64 *instances, int32 *ns, TimestampTz *next)
{
	Relation	rel = wig_store_heap(store, WIG_TABLE_LEASE);
	TupleTableSlot *row = table_slot_create(rel, NULL);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	TableScanDesc scan = table_beginscan(rel, snapshot, 0, NULL);
	int			n = 0;

	*next = WIG_NEVER;
	while (table_scan_getnextslot(scan, ForwardScanDirection, row))
	{
		bool		isnull;
		TimestampTz at = DatumGetTimestampTz(slot_getattr(row, LEASE_EXPIRES_AT, &isnull));

		if (at > now || n == max)
		{
			*next = Min(*next, at);
			continue;
		}
		instances[n] = DatumGetInt64(slot_getattr(row, LEASE_INSTANCE, &isnull));
		ns[n++] = DatumGetInt32(slot_getattr(row, LEASE_N, &isnull));
	}
	table_endscan(scan);
	UnregisterSnapshot(snapshot);
	ExecDropSingleTupleTableSlot(row);
	return n;
}
