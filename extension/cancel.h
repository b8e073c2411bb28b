/*
 * cancel.h
 *	  Cancelling instances.
 */
#ifndef WIGGLE_CANCEL_H
#define WIGGLE_CANCEL_H

#include "wiggle.h"

#include "errors.h"
#include "work.h"

/*
 * Cancel a RUNNING instance with its live tokens; any other status is left as
 * it is, which is a success (Wiggle). reason NULL or "" is "cancelled via API".
 * 404 when there is no such instance, 400 when the reason is too long.
 */
extern bool wig_cancel(WigWork *work, const char *id, const char *reason,
					   WigRefusal *refusal);

#endif							/* WIGGLE_CANCEL_H */
