/*
 * poller.h
 *	  Parked polls: who waits for what, and which of them a lane's batch carries.
 *
 * A poll is first tried on every shard, one after the other, then parked until a
 * shard tells that one of its queues became ready, or a batch that mints tokens
 * takes it along. It is in at most one batch at a time, so it cannot be answered
 * twice. A parked poll costs no connection and a few hundred bytes.
 */
#ifndef WIGGLE_PROXY_POLLER_H
#define WIGGLE_PROXY_POLLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "call.h"
#include "item.h"

/* What PollTasks asks for; everything is copied. */
struct poll_request
{
	const char *worker_id;
	int32_t		max;			/* > 0 */
	int64_t		lease_ms;		/* 0: the shard's default */
	int64_t		wait_ms;		/* >= 0 */
	const char *const *queues;
	int			nqueues;
	const struct item_version *versions;
	int			nversions;
};

extern void poller_start(void);

/* Take the call over: it is answered now or when there is something for it. */
extern void poller_add(struct call *call, const struct poll_request *request);

/* ---- for lanes; shards are counted by slot ---- */

/* Is there a poll that should claim on this shard now? */
extern bool poller_wants(int slot);

/*
 * Take polls for a batch that is about to be sent on the shard: up to max of them
 * into items. minting is how many starts and runs the batch has; when it is not 0,
 * polls that are merely parked come along too. Each item's done() runs once.
 */
extern int	poller_collect(int slot, struct item **items, int max, int minting);

/*
 * The item's batch takes too long: its call looks elsewhere from now on, and what
 * the batch claims after all is given back.
 */
extern void poller_detach(struct item *item);

/* The shard's payload of NOTIFY wiggle_ready: "*", or a JSON array of queues; one of [queue, bucket…]
 * concerns those who take these buckets, one of [queue] is left over for everybody. */
extern void poller_wake(int slot, const char *payload);

/* Anything may have become ready on the shard. */
extern void poller_wake_all(int slot);

/* The shard answers no claims for now: polls that stand in line there go on. */
extern void poller_shard_down(int slot);

#endif							/* WIGGLE_PROXY_POLLER_H */
