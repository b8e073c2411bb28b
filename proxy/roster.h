/*
 * roster.h
 *	  Who has polled this proxy lately, and for what.
 *
 * A poller is a worker and what it polls for. It counts from its poll until
 * WIGGLE_POLLER_TTL_MILLIS after the wait that it asked for: one that was answered comes
 * again. One whose client cancelled it, or is gone, does not, and goes at once, unless others
 * of its polls still wait. The roster is bounded; over the bound the one that polled
 * longest ago goes.
 */
#ifndef WIGGLE_PROXY_ROSTER_H
#define WIGGLE_PROXY_ROSTER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "subscription.h"

/* A worker polls for this. Takes a reference of its own. */
extern void roster_note(const char *worker_id, struct subscription *subscription, int64_t wait_ms);

/*
 * A poll that was noted ends: by an answer, or without one since its client does not wait any
 * more. The worker's id need not be terminated. The caller holds a reference of the subscription.
 */
extern void roster_end(const char *worker_id, size_t worker_len, struct subscription *subscription,
					   bool answered);

/* less() runs when a subscription's last poller has gone without an answer. */
extern void roster_watch(void (*less) (void));

/* How many workers are there? One that polls for several things, or has begun to poll for others, is one. */
extern int	roster_count(void);

/*
 * What they poll for, each subscription once: [{"queues":[…],"versions":[["wf",3],…]}].
 * The caller owns it.
 */
extern json_t *roster_polls(void);

/* Does any entry of such an array take tasks of this queue, of any version? */
extern bool roster_takes(const json_t *polls, const char *queue);

/*
 * Does any entry of such an array take tasks of this queue ("" = none) of this version?
 * What cannot be read covers nothing.
 */
extern bool roster_covers(const json_t *polls, const char *workflow, int64_t version,
						  const char *queue);

#endif							/* WIGGLE_PROXY_ROSTER_H */
