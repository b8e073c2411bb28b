/*
 * ending.h
 *	  How an instance ends: its live tokens go, its status says why.
 */
#ifndef WIGGLE_ENDING_H
#define WIGGLE_ENDING_H

#include "wiggle.h"

#include "work.h"

/* Cancel every live token of a locked instance, with its ready row, lease or timer. */
extern void wig_cancel_tokens(WigWork *work, WigInstance *inst);

/* End a locked, RUNNING instance. reason and error may be NULL. */
extern void wig_end_instance(WigWork *work, WigInstance *inst, WigInstanceStatus status,
							 const char *reason, const char *error);

#endif							/* WIGGLE_ENDING_H */
