/*
 * feed_watch.h
 *	  Who waits for entries of the event logs.
 */
#ifndef WIGGLE_PROXY_FEED_WATCH_H
#define WIGGLE_PROXY_FEED_WATCH_H

#include <stdbool.h>
#include <stdint.h>

/* Embedded in the waiter, zero-initialised. */
struct feed_watch
{
	struct feed_watch *prev;
	struct feed_watch *next;
	bool		waiting;
	void		(*woken) (struct feed_watch *watch);	/* runs once, the watch waits no more */
};

extern void feed_watch_wait(struct feed_watch *watch, void (*woken) (struct feed_watch *watch));
extern void feed_watch_leave(struct feed_watch *watch);

/* Entries may have become visible on some shard: everybody is woken. */
extern void feed_watch_wake(void);

/* Grows with every wake-up. */
extern uint64_t feed_watch_wakes(void);

/* The first that waits, NULL when nobody does. */
extern struct feed_watch *feed_watch_first(void);

#endif							/* WIGGLE_PROXY_FEED_WATCH_H */
