/*
 * lane.h
 *	  One pipelined connection to a shard that carries batches, one at a time.
 *
 * What arrives while a batch is in flight is the next batch: no timer, no linger.
 * A batch is one call of wiggle.batch and one Sync, hence one transaction, and
 * nobody is answered before the Sync is. When a batch fails, halves of it are
 * sent again until the culprit is alone. When the connection is lost, the batch
 * is asked again on the next one, marked as asked again.
 */
#ifndef WIGGLE_PROXY_LANE_H
#define WIGGLE_PROXY_LANE_H

#include <stdbool.h>
#include <stddef.h>

#include "item.h"

struct lane;
struct shard;

extern struct lane *lane_create(struct shard *shard, int number);
extern void lane_start(struct lane *lane);
extern void lane_stop(struct lane *lane);

/* Stop it and forget what it has; only one that is idle has nothing to lose. Not from within its callbacks. */
extern void lane_free(struct lane *lane);

/* Connect to the shard's present target from now on, when the session is lost. */
extern void lane_aim(struct lane *lane);

/* Open another session as soon as no batch is in flight. */
extern void lane_renew(struct lane *lane);

/* The server answers others: connect now rather than later. */
extern void lane_hurry(struct lane *lane);

extern bool lane_up(const struct lane *lane);

/* Up, and ready to send a batch. */
extern bool lane_ready_to_send(const struct lane *lane);

/* Up, and its batch in flight, if any, has not been waited for long. */
extern bool lane_prompt(const struct lane *lane);

/* Up, or down for so short a time that waiting for it is sensible. */
extern bool lane_usable(const struct lane *lane);

/* Its queue is so long that starts are refused, which leaves room for what settles tasks. */
extern bool lane_crowded(const struct lane *lane);

/* Queue an item; false when it would pass the bounds on items or bytes. */
extern bool lane_submit(struct lane *lane, struct item *item);

/* Nothing queued, nothing in flight, nothing to be replayed. */
extern bool lane_idle(const struct lane *lane);

/* Form a batch and send it, when the lane is free and there is something to do. */
extern void lane_turn(struct lane *lane);

/* Move everything that is not in flight to another lane of the shard. */
extern void lane_move(struct lane *from, struct lane *to);

/* Share out what is queued (nothing that was sent before) over the first n lanes. */
extern void lane_spread(struct lane *from, struct lane *const *lanes, int n);

#endif							/* WIGGLE_PROXY_LANE_H */
