/*
 * ready.h
 *	  Rows of wf_ready: tokens that a worker may claim, and the walk over them.
 *
 * A claim deletes the row here and inserts one into wf_lease, in one
 * transaction and without the instance's lock; deleting without waiting is
 * what SKIP LOCKED would do. Whoever ends an instance holds its lock and
 * deletes the row with waiting: if a claim got there first, the lease is
 * visible once the wait is over.
 */
#ifndef WIGGLE_READY_H
#define WIGGLE_READY_H

#include "wiggle.h"

#include "nodes/pg_list.h"

#include "mark.h"
#include "store.h"

/* Insert a row and announce its queue at commit. "" is the queue of nodes that name none. */
extern void wig_ready_insert(WigStore *store, const char *queue, WigKey key, int32 definition_id,
							 int bucket);

/* Delete a row under the instance's lock; false when a claim has taken it. */
extern bool wig_ready_remove(WigStore *store, const char *queue, WigKey key);

/*
 * A cursor over one queue: peek at the oldest token that may be taken, then
 * take it or pass over it. Keys minted below the mark come first.
 */
typedef struct WigReadyCursor WigReadyCursor;

extern WigReadyCursor *wig_ready_open(WigStore *store, const char *queue, TimestampTz now);

typedef struct WigCandidate
{
	WigKey		key;
	int32		definition_id;
	int			bucket;
} WigCandidate;

/* The candidate; false at the end. */
extern bool wig_ready_peek(WigReadyCursor *cursor, WigCandidate *candidate);

/* Take the candidate: false when somebody else was faster. The cursor moves on. */
extern bool wig_ready_take(WigReadyCursor *cursor);

/* Leave the candidate to others (a filter does not want it). */
extern void wig_ready_pass(WigReadyCursor *cursor);

/* Raise the queue's mark to what was learnt and free the cursor. */
extern void wig_ready_close(WigReadyCursor *cursor);

/* The names of all queues that have entries in the index, dead ones included:
 * one index descent a queue. A List of char *. */
extern List *wig_ready_queues(WigStore *store);

#endif							/* WIGGLE_READY_H */
