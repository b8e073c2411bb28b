/*
 * feed_watch.h
 *	  Who waits for entries of the event logs, and whether there are any.
 *
 * Shards say that their logs have grown, which may show nothing yet: an open
 * transaction holds later entries back. So before anybody looks, the shard is asked once,
 * for everybody who waits, how far its log is final.
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
	uint64_t	since;			/* the news there was then */
	void		(*woken) (struct feed_watch *watch);	/* runs once, the watch waits no more */
};

extern void feed_watch_wait(struct feed_watch *watch, void (*woken) (struct feed_watch *watch));
extern void feed_watch_leave(struct feed_watch *watch);

/* Entries may have become visible on the shard of this slot. */
extern void feed_watch_hint(int slot);

/*
 * Grows each time when there are entries that were not final before; everybody
 * who waits is woken then. Whoever saw another number before looking may have
 * missed some.
 */
extern uint64_t feed_watch_news(void);

/* Entries below this number are final, as last told; 0 = not known. */
extern int64_t feed_watch_horizon(int slot);

/* The first that waits, NULL when nobody does. */
extern struct feed_watch *feed_watch_first(void);

extern void feed_watch_stop(void);

#endif							/* WIGGLE_PROXY_FEED_WATCH_H */
