/*
 * store.h
 *	  The one place that touches heaps and indexes directly.
 *
 * The hot path reads by exact key with SnapshotSelf: everything committed and
 * everything this transaction did. That is sound because callers hold the
 * instance's lock, so that no other session changes the instance's rows under
 * them; the exceptions are spelled out where they matter: a claim that moves a row
 * from wf_ready to wf_lease (ready.c), and finding the instance itself (instance.c).
 *
 * Writes go through the executor's simple-relation functions, as logical
 * replication's apply does, so that an administrator's index, trigger or
 * publication on these tables stays true. No foreign key, CHECK or row policy
 * exists on them that this path would have to keep.
 *
 * A row written in a command can be written again only in a later one: callers
 * call wig_store_step between items.
 */
#ifndef WIGGLE_STORE_H
#define WIGGLE_STORE_H

#include "wiggle.h"

#include "executor/tuptable.h"
#include "nodes/lockoptions.h"
#include "storage/lockdefs.h"
#include "utils/relcache.h"

typedef enum WigTable
{
	WIG_TABLE_INSTANCE,
	WIG_TABLE_SCOPE,
	WIG_TABLE_TOKEN,
	WIG_TABLE_READY,
	WIG_TABLE_LEASE,
	WIG_TABLE_TIMER,
	WIG_TABLE_DEFINITION,
	WIG_TABLE_EVENT,
	WIG_TABLE_COMP_LOG,
	WIG_NTABLES
} WigTable;

typedef enum WigIndex
{
	WIG_INDEX_INSTANCE_NO,		/* wf_instance_pkey (no) */
	WIG_INDEX_INSTANCE_ID,		/* wf_instance_id_key (id) */
	WIG_INDEX_SCOPE,			/* wf_scope_pkey (instance, scope) */
	WIG_INDEX_TOKEN,			/* wf_token_pkey (instance, n) */
	WIG_INDEX_READY,			/* wf_ready_pkey (queue, instance, n) */
	WIG_INDEX_LEASE,			/* wf_lease_pkey (instance, n) */
	WIG_INDEX_TIMER,			/* wf_timer_pkey (due_at, instance, n) */
	WIG_INDEX_DEFINITION,		/* wf_definition_pkey (name, version) */
	WIG_INDEX_INSTANCE_PARENT,	/* wf_instance_parent (parent_token_id) */
	WIG_INDEX_EVENT,			/* wf_event_pkey (seq) */
	WIG_INDEX_COMP_LOG,			/* wf_comp_log_pkey (instance, seq) */
	WIG_NINDEXES
} WigIndex;

typedef struct WigStore WigStore;

/*
 * Open a unit of work, for writing or only for reading (which a standby and a
 * read-only transaction may), on tables opened when first used; everything it holds
 * belongs to the current resource owner and memory context, so that an ERROR
 * cleans up. close() fires what AFTER triggers there are.
 */
extern WigStore *wig_store_open(bool writing);
extern void wig_store_close(WigStore *store);

/* Make what was written so far visible to later reads and writes of this unit. */
extern void wig_store_step(WigStore *store);

/*
 * Fetch the row with this exact key (as many columns as given, in index order)
 * into the table's slot; NULL when there is none. The slot stays valid until
 * the next fetch on the same table.
 */
extern TupleTableSlot *wig_store_fetch(WigStore *store, WigIndex index,
									   const Datum *key, int nkeys);

/* The row with the highest key among those equal in the first nkeys columns. */
extern TupleTableSlot *wig_store_fetch_last(WigStore *store, WigIndex index,
											const Datum *key, int nkeys);

/*
 * Walk the rows equal in the first nkeys columns (0: all), in index order:
 * begin, then next until NULL. One walk an index at a time; a fetch on the same
 * index ends it. Rows written during the walk may or may not be seen.
 */
extern void wig_store_walk(WigStore *store, WigIndex index, const Datum *key, int nkeys);
extern TupleTableSlot *wig_store_next(WigStore *store, WigIndex index);

/*
 * Lock the row in the table's slot against other writers (FOR NO KEY UPDATE)
 * until the end of the transaction and re-read its newest version into the slot.
 */
typedef enum WigLockResult
{
	WIG_LOCKED,
	WIG_LOCK_GONE,				/* deleted meanwhile */
	WIG_LOCK_BUSY				/* only with LockWaitSkip */
} WigLockResult;

extern WigLockResult wig_store_lock(WigStore *store, WigTable table, LockWaitPolicy wait);

/*
 * Insert a row. The caller says how many columns it fills; a table that has
 * others (somebody added or dropped one) is refused with an ERROR.
 */
extern void wig_store_insert(WigStore *store, WigTable table, int natts,
							 const Datum *values, const bool *nulls);

/*
 * The same unless a row with its key in that unique index exists, or is being
 * inserted by a transaction that commits: false then.
 */
extern bool wig_store_insert_new(WigStore *store, WigTable table, WigIndex index, int natts,
								 const Datum *values, const bool *nulls);

/*
 * Replace columns of the row in the table's slot; afterwards the slot holds
 * the old version still. Raises an ERROR when the row changed meanwhile, which
 * the instance's lock excludes.
 */
extern void wig_store_update(WigStore *store, WigTable table, int natts,
							 const Datum *values, const bool *nulls, const bool *replace);

/* Delete the row in the table's slot, waiting for whoever is deleting it;
 * false when it was deleted meanwhile. */
extern bool wig_store_delete(WigStore *store, WigTable table);

/* For walks of their own (ready.c, timer.c). */
extern Relation wig_store_heap(WigStore *store, WigTable table);
extern Relation wig_store_index(WigStore *store, WigIndex index);

/* Delete the row at tid at once or not at all: false when anybody else has it. */
extern bool wig_store_take(WigStore *store, WigTable table, ItemPointer tid,
						   TupleTableSlot *row);

#endif							/* WIGGLE_STORE_H */
