/*
 * expire.h
 *	  What time does: timers fire, leases expire.
 */
#ifndef WIGGLE_EXPIRE_H
#define WIGGLE_EXPIRE_H

#include "wiggle.h"

#include "timer.h"
#include "work.h"

typedef enum WigExpiry
{
	WIG_EXPIRY_DONE,			/* moved, or found moved by somebody else */
	WIG_EXPIRY_BUSY				/* another transaction holds the instance: later */
} WigExpiry;

/* Neither ever waits for an instance's lock, so that one stuck transaction does
 * not keep every other timer from firing. */
extern WigExpiry wig_fire_timer(WigWork *work, const WigTimer *timer);
extern WigExpiry wig_expire_lease(WigWork *work, int64 instance, int32 n);

/* The clock was set back: leases that were claimed later than now last for as long as they
 * were given for, from now. */
extern void wig_leases_set_back(TimestampTz now);

#endif							/* WIGGLE_EXPIRE_H */
