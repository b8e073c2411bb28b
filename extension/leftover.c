/*
 * leftover.c
 *	  Tasks that the member whose share they are in does not take.
 */
#include "wiggle.h"

#include "leftover.h"
#include "ready.h"

bool
wig_leftover_look(TimestampTz now, int max, TimestampTz *next)
{
	WigStore   *store = wig_store_open(false);
	int			n = 0;
	char	   *queue;

	while (n < max && (queue = wig_mark_next_watched(now, next)) != NULL)
	{
		WigReadyCursor *cursor = wig_ready_open(store, queue, now);
		WigCandidate oldest;
		bool		found = wig_ready_peek(cursor, &oldest);

		wig_ready_close(cursor);
		wig_mark_looked(queue, found ? &oldest.key : NULL, now + WIG_LEFTOVER_PAUSE_USECS);
		n++;
	}
	wig_store_close(store);
	return n == max;
}
