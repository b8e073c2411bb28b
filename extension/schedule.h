/*
 * schedule.h
 *	  Schedules: when the next fire is due, and firing.
 */
#ifndef WIGGLE_SCHEDULE_H
#define WIGGLE_SCHEDULE_H

#include "wiggle.h"

/* The cadence of a schedule: an interval, or a cron expression in UTC. */
typedef struct WigCadence
{
	int64		every_millis;	/* 0: cron counts */
	const char *cron;
} WigCadence;

/*
 * The first fire after `after`. An interval counts from `last`, its last due
 * time, so that it neither drifts nor makes up for missed fires one by one.
 * Raises WG400 for a bad expression, an internal error for one that never fires.
 */
extern TimestampTz wig_schedule_next(const WigCadence *cadence, TimestampTz last,
									 TimestampTz after);

/*
 * Fire up to max due schedules, each in a subtransaction of its own: the due
 * time moves on in the transaction that starts the instance (or leaves it in the
 * outbox), so that every due time fires once, whatever is killed. One that cannot
 * fire rests, and keeps no other waiting. True when there may be more that are due;
 * *next is when to look again.
 */
extern bool wig_schedule_fire_due(TimestampTz now, int max, TimestampTz *next);

/* The clock was set back by so many microseconds: what was to fire later than a cadence from
 * now has been reckoned by a clock that was ahead, and is reckoned anew. */
extern void wig_schedule_set_back(TimestampTz now, TimestampTz back);

#endif							/* WIGGLE_SCHEDULE_H */
