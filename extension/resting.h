/*
 * resting.h
 *	  What the clock worker could not move for an error, left alone for a while.
 *
 * Kept in the worker's memory: one that is started anew tries everything once.
 */
#ifndef WIGGLE_RESTING_H
#define WIGGLE_RESTING_H

#include "wiggle.h"

#define WIG_RESTING_KEY_MAX 96

/* An item that raised an error must not become a busy loop; the time until which
 * it rests. A key is a printable name of the item; a longer one is cut. */
extern TimestampTz wig_rest(const char *key, TimestampTz now);

/* Until when the item rests; `now` or earlier: it does not. */
extern TimestampTz wig_resting_until(const char *key, TimestampTz now);

/* How many items rest; those that nobody asked for again are forgotten. */
extern int	wig_resting_count(TimestampTz now);

#endif							/* WIGGLE_RESTING_H */
