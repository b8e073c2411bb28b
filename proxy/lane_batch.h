/*
 * lane_batch.h
 *	  A batch of items: made, split, answered. No I/O.
 */
#ifndef WIGGLE_PROXY_LANE_BATCH_H
#define WIGGLE_PROXY_LANE_BATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <libpq-fe.h>

#include "item.h"
#include "refusal.h"

struct batch
{
	struct batch *next;
	struct item **items;
	int			nitems;
	int			cap;
	int			tries;			/* as a whole, after a deadlock and the like */
	bool		unknown;		/* was lost: what it did is not known */
	uint64_t	since;			/* loop time at which it began to wait for a session */
};

extern struct batch *batch_create(int cap);
extern void batch_free(struct batch *batch);

/* Cut the second half off. The batch has at least two items. */
extern struct batch *batch_split(struct batch *batch);

/* Every item is asked again as one whose first answer was lost. */
extern void batch_mark_unknown(struct batch *batch);

/* Tell the polls that they are lost and take them out. */
extern void batch_drop_polls(struct batch *batch);

/* Answer every item from the rows of a committed batch; frees the batch. */
extern void batch_deliver(struct batch *batch, const PGresult *result, int shard_id);

/* Answer every item with the refusal; frees the batch. */
extern void batch_refuse(struct batch *batch, const struct refusal *refusal);

/*
 * Give up a list of items: UNAVAILABLE, or INTERNAL for those whose fate is
 * unknown. One reference for each of the two kinds.
 */
extern void batch_abandon(struct item *list, int shard_id, const char *cause);

#endif							/* WIGGLE_PROXY_LANE_BATCH_H */
