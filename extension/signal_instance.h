/*
 * signal_instance.h
 *	  Signals from outside. (A header named signal.h would hide the system's.)
 */
#ifndef WIGGLE_SIGNAL_INSTANCE_H
#define WIGGLE_SIGNAL_INSTANCE_H

#include "wiggle.h"

#include "errors.h"
#include "work.h"

/*
 * Deliver a signal to the oldest token that waits for it: its payload (JSON text
 * or NULL) merges into the token's view and the flow goes on. Nothing is
 * buffered: 404 no such instance, 409 not RUNNING or nobody waits, 400 a bad
 * name or payload.
 */
extern bool wig_signal(WigWork *work, const char *id, const char *signal,
					   const char *payload, size_t payload_len, WigRefusal *refusal);

/* The deadline of a locked instance's AWAITING token has passed: escalate or fail. */
extern void wig_signal_timed_out(WigWork *work, WigInstance *inst, WigToken *token);

#endif							/* WIGGLE_SIGNAL_INSTANCE_H */
