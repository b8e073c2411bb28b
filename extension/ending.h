/*
 * ending.h
 *	  How an instance ends: its live tokens go, its status says why, its log
 *	  says it, its parent is told.
 */
#ifndef WIGGLE_ENDING_H
#define WIGGLE_ENDING_H

#include "wiggle.h"

#include "work.h"

/* End a locked instance. reason and error may be NULL. */
extern void wig_end_instance(WigWork *work, WigInstance *inst, WigInstanceStatus status,
							 const char *reason, const char *error);

/* Fail a locked, RUNNING instance: undo its compensable steps first, if any. */
extern void wig_fail_instance(WigWork *work, WigInstance *inst, const char *error);

/* A compensator was reported: undo the next step, or be COMPENSATED. */
extern void wig_compensated(WigWork *work, WigInstance *inst, const WigToken *token);

/* A compensator failed for good. */
extern void wig_compensation_failed(WigWork *work, WigInstance *inst, const WigToken *token,
									const char *reason);

#endif							/* WIGGLE_ENDING_H */
