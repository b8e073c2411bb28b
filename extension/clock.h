/*
 * clock.h
 *	  The shard's clock: the only source of "now" in the extension.
 */
#ifndef WIGGLE_CLOCK_H
#define WIGGLE_CLOCK_H

#include "wiggle.h"

/* The present instant, or the stopped clock of a test. Needs an attached database. */
extern TimestampTz wig_now(void);

/* Microseconds since some moment, for the rests and restarts of background workers: it goes
 * on while a test has stopped the clock, and when the machine's is set. Needs no attached database. */
extern TimestampTz wig_monotonic(void);

/* By how many microseconds the machine's clock has been set back since this process asked
 * last; 0 when it has not, or by less than has passed. */
extern TimestampTz wig_clock_set_back(void);

/* How long a latch may be waited on until `deadline`, in ms rounded up, at
 * least 0; -1 when the deadline is "never" or the clock is stopped. */
extern long wig_millis_until(TimestampTz deadline);

/* Stop the clock at `at` for the whole database, or let it run again (0). */
extern void wig_clock_set(TimestampTz at);

/* Milliseconds since the Unix epoch, as Wiggle's wire and ids have them. */
extern int64 wig_to_millis(TimestampTz at);
extern TimestampTz wig_from_millis(int64 millis);
extern int64 wig_to_micros(TimestampTz at);

#define WIG_NEVER	DT_NOEND

#endif							/* WIGGLE_CLOCK_H */
