/*
 * wakeup.h
 *	  The session of a shard that hears what happened there: queues that became
 *	  ready, entries of the event log, instances that wait in the outbox,
 *	  members that came or went.
 *
 * A hint only: what is missed while the session is away is made good by looking at
 * everything when it is back, and by the poller's own slow look.
 */
#ifndef WIGGLE_PROXY_WAKEUP_H
#define WIGGLE_PROXY_WAKEUP_H

#include <stdbool.h>

struct shard;
struct wakeup;

extern struct wakeup *wakeup_create(struct shard *shard);
extern void wakeup_start(struct wakeup *wakeup);
extern void wakeup_stop(struct wakeup *wakeup);

/* The server answers others: connect now rather than later. */
extern void wakeup_hurry(struct wakeup *wakeup);
extern bool wakeup_connected(const struct wakeup *wakeup);

/* Listen at the shard's present target from now on. */
extern void wakeup_aim(struct wakeup *wakeup);

#endif							/* WIGGLE_PROXY_WAKEUP_H */
