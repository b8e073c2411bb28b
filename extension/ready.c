/*
 * ready.c
 *	  The walk over wf_ready: ring, then index from the mark on.
 */
#include "wiggle.h"

#include "access/genam.h"
#include "access/itup.h"
#include "access/relscan.h"
#include "access/skey.h"
#include "access/tableam.h"
#include "catalog/pg_collation.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "ready.h"
#include "wake.h"

enum
{
	READY_INSTANCE = 1,
	READY_N,
	READY_DEFINITION,
	READY_BUCKET,
	READY_QUEUE,
	READY_NATTS = READY_QUEUE
};

static const WigKey KEY_MAX = {PG_INT64_MAX, PG_INT32_MAX};

struct WigReadyCursor
{
	WigStore   *store;
	char	   *queue;
	WigMarkView view;
	SnapshotData dirty;
	TupleTableSlot *row;

	int			ring_next;		/* next ring key to look up */
	IndexScanDesc lookup;		/* exact keys, for the ring */
	IndexScanDesc walk;			/* from the mark on */
	bool		walking;
	bool		ended;

	bool		found;			/* some row was seen */
	bool		have;			/* row holds a candidate */
	WigKey		key;
	int32		definition_id;
	int			bucket;

	/* What the mark may rise to: nothing live was left behind below it. */
	bool		left_behind;
	WigKey		lowest_left;
	WigKey		gone[WIG_RING];
	int			ngone;
};

void
wig_ready_insert(WigStore *store, const char *queue, WigKey key, int32 definition_id, int bucket)
{
	Datum		values[READY_NATTS];
	bool		nulls[READY_NATTS] = {false};

	values[READY_INSTANCE - 1] = Int64GetDatum(key.instance);
	values[READY_N - 1] = Int32GetDatum(key.n);
	values[READY_DEFINITION - 1] = Int32GetDatum(definition_id);
	values[READY_BUCKET - 1] = Int16GetDatum(bucket);
	values[READY_QUEUE - 1] = CStringGetTextDatum(queue);
	wig_store_insert(store, WIG_TABLE_READY, READY_NATTS, values, nulls);

	/* After the index entry exists: a claim that walks now must not pass it unseen. */
	wig_wake_ready(queue, key, bucket);
}

bool
wig_ready_remove(WigStore *store, const char *queue, WigKey key)
{
	Datum		values[3] = {CStringGetTextDatum(queue), Int64GetDatum(key.instance), Int32GetDatum(key.n)};

	if (wig_store_fetch(store, WIG_INDEX_READY, values, 3) == NULL)
		return false;
	wig_wake_claimed(queue, key);
	return wig_store_delete(store, WIG_TABLE_READY);
}

static void
leave_behind(WigReadyCursor *c, WigKey key)
{
	if (!c->left_behind || wig_key_cmp(key, c->lowest_left) < 0)
		c->lowest_left = key;
	c->left_behind = true;
}

WigReadyCursor *
wig_ready_open(WigStore *store, const char *queue, TimestampTz now)
{
	WigReadyCursor *c = palloc0(sizeof(WigReadyCursor));

	c->store = store;
	c->queue = pstrdup(queue);
	InitDirtySnapshot(c->dirty);
	c->row = table_slot_create(wig_store_heap(store, WIG_TABLE_READY), NULL);
	wig_mark_read(queue, now, &c->view);
	return c;
}

static void
queue_key(WigReadyCursor *c, ScanKey key)
{
	ScanKeyEntryInitialize(key, 0, 1, BTEqualStrategyNumber, InvalidOid, C_COLLATION_OID,
						   F_TEXTEQ, CStringGetTextDatum(c->queue));
}

static IndexScanDesc
begin_scan(WigReadyCursor *c, int nkeys)
{
	return wig_index_beginscan(wig_store_heap(c->store, WIG_TABLE_READY),
							   wig_store_index(c->store, WIG_INDEX_READY),
							   &c->dirty, nkeys);
}

static void
read_candidate(WigReadyCursor *c)
{
	bool		isnull;

	c->key.instance = DatumGetInt64(slot_getattr(c->row, READY_INSTANCE, &isnull));
	c->key.n = DatumGetInt32(slot_getattr(c->row, READY_N, &isnull));
	c->definition_id = DatumGetInt32(slot_getattr(c->row, READY_DEFINITION, &isnull));
	c->bucket = DatumGetInt16(slot_getattr(c->row, READY_BUCKET, &isnull));
	c->found = true;
}

/* Look up the next keys of the ring; true when one may be taken. */
static bool
advance_ring(WigReadyCursor *c)
{
	while (c->ring_next < c->view.nring)
	{
		WigKey		key = c->view.ring[c->ring_next++];
		ScanKeyData keys[3];

		if (c->lookup == NULL)
			c->lookup = begin_scan(c, 3);
		queue_key(c, &keys[0]);
		ScanKeyInit(&keys[1], 2, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(key.instance));
		ScanKeyInit(&keys[2], 3, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(key.n));
		index_rescan(c->lookup, keys, 3, NULL, 0);

		if (!index_getnext_slot(c->lookup, ForwardScanDirection, c->row))
		{
			c->gone[c->ngone++] = key;
			continue;
		}
		/* Not committed yet: keep the key. Being deleted: the deleter restores it. */
		if (TransactionIdIsValid(c->dirty.xmin))
			continue;
		if (TransactionIdIsValid(c->dirty.xmax))
		{
			c->gone[c->ngone++] = key;
			continue;
		}
		read_candidate(c);
		return true;
	}
	return false;
}

static void
begin_walk(WigReadyCursor *c)
{
	ScanKeyData keys[2];

	c->walk = begin_scan(c, 2);
	queue_key(c, &keys[0]);
	ScanKeyInit(&keys[1], 2, BTGreaterEqualStrategyNumber, F_INT8GE,
				Int64GetDatum(c->view.mark.instance));
	index_rescan(c->walk, keys, 2, NULL, 0);
	c->walking = true;
}

static bool
advance_walk(WigReadyCursor *c)
{
	if (!c->walking)
		begin_walk(c);
	while (index_getnext_slot(c->walk, ForwardScanDirection, c->row))
	{
		read_candidate(c);
		if (wig_key_cmp(c->key, c->view.mark) < 0)
			continue;
		if (TransactionIdIsValid(c->dirty.xmin))
		{
			leave_behind(c, c->key);
			continue;
		}
		if (TransactionIdIsValid(c->dirty.xmax))
			continue;
		return true;
	}
	return false;
}

bool
wig_ready_peek(WigReadyCursor *c, WigCandidate *candidate)
{
	if (!c->have && !c->ended)
	{
		c->have = advance_ring(c) || advance_walk(c);
		c->ended = !c->have;
	}
	if (!c->have)
		return false;
	*candidate = (WigCandidate) {c->key, c->definition_id, c->bucket};
	return true;
}

bool
wig_ready_take(WigReadyCursor *c)
{
	Assert(c->have);
	c->have = false;

	/* Noted first, so that nothing can fail between the delete and the note. */
	wig_wake_claimed(c->queue, c->key);
	if (!wig_store_take(c->store, WIG_TABLE_READY, &c->row->tts_tid, c->row))
		return false;
	if (!c->walking)
		c->gone[c->ngone++] = c->key;
	return true;
}

void
wig_ready_pass(WigReadyCursor *c)
{
	Assert(c->have);
	c->have = false;
	if (c->walking)
		leave_behind(c, c->key);
}

void
wig_ready_close(WigReadyCursor *c)
{
	WigKey		reached = c->view.mark;

	/* A candidate that nobody took stays where the next claim begins. */
	if (c->have && c->walking)
		leave_behind(c, c->key);
	if (c->ended)
		reached = KEY_MAX;
	else if (c->walking)
		reached = c->key;
	if (c->left_behind && wig_key_cmp(c->lowest_left, reached) < 0)
		reached = c->lowest_left;
	wig_mark_raise(c->queue, &c->view, c->found, reached, c->gone, c->ngone);

	if (c->lookup != NULL)
		index_endscan(c->lookup);
	if (c->walk != NULL)
		index_endscan(c->walk);
	ExecDropSingleTupleTableSlot(c->row);
	pfree(c->queue);
	pfree(c);
}

List *
wig_ready_queues(WigStore *store)
{
	Relation	index = wig_store_index(store, WIG_INDEX_READY);
	SnapshotData dirty;
	IndexScanDesc scan;
	ScanKeyData key;
	List	   *queues = NIL;
	int			nkeys = 0;

	/*
	 * Only the index is read: a dead entry names a queue as well as a live one,
	 * and jumping from queue to queue never walks over the dead.
	 */
	InitDirtySnapshot(dirty);
	for (;;)
	{
		bool		isnull;
		char	   *queue;

		scan = wig_index_beginscan(wig_store_heap(store, WIG_TABLE_READY), index, &dirty, nkeys);
		scan->xs_want_itup = true;
		index_rescan(scan, &key, nkeys, NULL, 0);
		if (index_getnext_tid(scan, ForwardScanDirection) == NULL)
		{
			index_endscan(scan);
			return queues;
		}
		queue = TextDatumGetCString(index_getattr(scan->xs_itup, 1, scan->xs_itupdesc, &isnull));
		index_endscan(scan);
		queues = lappend(queues, queue);

		ScanKeyEntryInitialize(&key, 0, 1, BTGreaterStrategyNumber, InvalidOid,
							   C_COLLATION_OID, F_TEXT_GT, CStringGetTextDatum(queue));
		nkeys = 1;
	}
}
