/*
 * poll_place.h
 *	  Where polls stand: in line at a shard, parked, sated, or riding in a batch.
 *
 * The lists behind the poller, and the counts that must agree with them. A poll
 * leaves its place before it enters another; nothing here decides where to.
 */
#ifndef WIGGLE_PROXY_POLL_PLACE_H
#define WIGGLE_PROXY_POLL_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "call.h"
#include "item.h"
#include "loop.h"
#include "metrics.h"
#include "subscription.h"
#include "topology.h"

#define BIT(slot) (UINT64_C(1) << (slot))

enum poll_place
{
	IN_LINE,					/* for the next batch of one shard */
	PARKED,						/* with its subscription */
	SATED,						/* until its connection has room again */
	RIDING						/* in a batch */
};

struct poll
{
	struct item item;			/* first: the lane hands it back */
	struct call *call;			/* NULL: gone, its claims are given back */
	struct subscription *subscription;
	struct poll *prev;
	struct poll *next;
	enum poll_place place;
	int			slot;			/* where it stands in line or rides */
	uint64_t	untried;		/* shards that have not been asked yet */
	bool		tried;			/* any has answered */
	bool		looking;		/* rides because of a wake-up */
	bool		hasty;			/* waits too briefly to be told what others leave over */
	struct poll *heir;			/* has taken over the call of this one, which still rides */
	struct poll *ancestor;		/* whose heir this is */
	uint32_t	wakes;			/* the subscription's when the ride began */
	int32_t		max;
	uint64_t	wait_until;		/* loop time */
	struct deadline deadline;
	size_t		worker_len;
	char		owner[];		/* worker id, '#', nonce, terminator */
};

struct poll_places
{
	struct line lines[TOPOLOGY_MAX_SHARDS];
	struct line sated;
	struct subscription *ring;	/* those with parked polls; the next one to be served */
	int			ring_size;
	int			wanting[TOPOLOGY_MAX_SHARDS];	/* subscriptions that should look there */
	struct metric *gauge;		/* shows how many are parked */
	int			riding;			/* in batches, with or without a call */
};

extern struct poll_places places;

extern void line_append(struct line *line, struct poll *poll);
extern void line_remove(struct line *line, struct poll *poll);

/* Take the poll from where it stands; it stands nowhere then. */
extern void place_leave(struct poll *poll);

extern void place_in_line(struct poll *poll, int slot);
extern void place_parked(struct poll *poll);
extern void place_sated(struct poll *poll);
extern void place_riding(struct poll *poll, int slot);

/* The longest parked poll goes to the end of its subscription's list. */
extern void place_rotate(struct subscription *subscription);

/* Keep the totals true after ready or asking of a subscription has changed. */
extern void place_recount(struct subscription *subscription);

#endif							/* WIGGLE_PROXY_POLL_PLACE_H */
