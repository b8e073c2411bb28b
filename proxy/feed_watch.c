/*
 * feed_watch.c
 *	  Who waits for entries of the event logs.
 */
#include <stddef.h>

#include "feed_watch.h"

static struct feed_watch *first;
static uint64_t wakes;

void
feed_watch_wait(struct feed_watch *watch, void (*woken) (struct feed_watch *watch))
{
	watch->woken = woken;
	watch->waiting = true;
	watch->prev = NULL;
	watch->next = first;
	if (first != NULL)
		first->prev = watch;
	first = watch;
}

void
feed_watch_leave(struct feed_watch *watch)
{
	if (!watch->waiting)
		return;
	watch->waiting = false;
	if (watch->prev != NULL)
		watch->prev->next = watch->next;
	else
		first = watch->next;
	if (watch->next != NULL)
		watch->next->prev = watch->prev;
}

void
feed_watch_wake(void)
{
	wakes++;
	while (first != NULL)
	{
		struct feed_watch *watch = first;

		/* nobody who is woken waits again at once, so this ends */
		feed_watch_leave(watch);
		watch->woken(watch);
	}
}

uint64_t
feed_watch_wakes(void)
{
	return wakes;
}

struct feed_watch *
feed_watch_first(void)
{
	return first;
}
