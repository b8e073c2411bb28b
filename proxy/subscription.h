/*
 * subscription.h
 *	  What polls ask for, kept once for all polls that ask for the same.
 */
#ifndef WIGGLE_PROXY_SUBSCRIPTION_H
#define WIGGLE_PROXY_SUBSCRIPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "item.h"

struct poll;

/* A list of polls, oldest first. */
struct line
{
	struct poll *first;
	struct poll *last;
};

struct subscription
{
	/* immutable */
	const char *const *queues;	/* none: every queue */
	int			nqueues;
	const struct item_version *versions;	/* none: every version */
	int			nversions;

	/* the table's */
	struct subscription *chain;
	uint32_t	hash;
	int			refs;
	char	   *key;
	size_t		key_len;

	/* the roster's */
	int			pollers;		/* workers that are on it with this */

	/* the poller's */
	struct subscription *ring_prev; /* ring of those with parked polls */
	struct subscription *ring_next;
	struct line line;			/* parked polls, longest first */
	int			parked;
	uint64_t	ready;			/* shards that may have work for it */
	uint64_t	asking;			/* shards where a batch looks because of `ready` */
	uint64_t	beyond;			/* shards where the next look is not for this proxy's share alone */
	uint64_t	wanted;			/* counted in the poller's totals */
	uint32_t	wakes;			/* grows with every wake-up that concerns it */
	int			burst;			/* polls sent at a wake-up */
	size_t		task_bytes;		/* moving average of a claimed task's context */
};

/* Find or make the subscription; the caller owns one reference. */
extern struct subscription *subscription_get(const char *const *queues, int nqueues,
											 const struct item_version *versions, int nversions);
extern void subscription_unref(struct subscription *subscription);

/* Does a task in this queue ("" = none) concern it? */
extern bool subscription_concerns(const struct subscription *subscription, const char *queue);

/* Call fn for every subscription; fn must not create or drop any. */
extern void subscription_each(void (*fn) (struct subscription *subscription, void *arg), void *arg);

#endif							/* WIGGLE_PROXY_SUBSCRIPTION_H */
