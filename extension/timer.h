/*
 * timer.h
 *	  Rows of wf_timer: tokens that time will move.
 */
#ifndef WIGGLE_TIMER_H
#define WIGGLE_TIMER_H

#include "wiggle.h"

#include "store.h"

extern void wig_timer_insert(WigStore *store, TimestampTz due_at, int64 instance, int32 n);

/* Delete a timer; false when there is none (it fired). Needs the instance's lock. */
extern bool wig_timer_delete(WigStore *store, TimestampTz due_at, int64 instance, int32 n);

typedef struct WigTimer
{
	TimestampTz due_at;
	int64		instance;
	int32		n;
} WigTimer;

/*
 * Collect up to max timers due at or before `now`, oldest first, looking from
 * `from` on, into due[]; *next is when the first one not collected is due.
 * Returns the number collected.
 */
extern int	wig_timer_scan_due(WigStore *store, TimestampTz from, TimestampTz now, int max,
							   WigTimer *due, TimestampTz *next);

#endif							/* WIGGLE_TIMER_H */
