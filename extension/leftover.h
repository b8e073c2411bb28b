/*
 * leftover.h
 *	  Tasks that the member whose share they are in does not take.
 *
 * Proxies that divide the tasks are told of their own share only, and look only there. What
 * is left ready for longer than a pause is announced to everybody.
 */
#ifndef WIGGLE_LEFTOVER_H
#define WIGGLE_LEFTOVER_H

#include "wiggle.h"

/* Look at up to max queues that are due; *next is when the next one is. True when there may be more. */
extern bool wig_leftover_look(TimestampTz now, int max, TimestampTz *next);

#endif							/* WIGGLE_LEFTOVER_H */
