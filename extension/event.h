/*
 * event.h
 *	  The event log: one entry for each transition of an instance, and what
 *	  handlers emit, written in the transition's own transaction.
 *
 * Numbers rise with the time they are taken, not with the order of commits. The
 * feed must not step over an entry whose transaction is still open: each
 * transaction publishes the first number it may take (shmem.h, open_events)
 * before it takes one, and the feed serves only numbers below the lowest that
 * is still published.
 */
#ifndef WIGGLE_EVENT_H
#define WIGGLE_EVENT_H

#include "wiggle.h"

#include "work.h"

#define WIG_MAX_EVENT_TYPE 32

#define WIG_EVENT_STARTED				"wf.started"
#define WIG_EVENT_COMPLETED				"wf.completed"
#define WIG_EVENT_FAILED				"wf.failed"
#define WIG_EVENT_CANCELLED				"wf.cancelled"
#define WIG_EVENT_COMPENSATING			"wf.compensating"
#define WIG_EVENT_COMPENSATED			"wf.compensated"
#define WIG_EVENT_COMPENSATION_FAILED	"wf.compensation_failed"

/* Append an entry; payload is a JSON object or NULL, node_id may be NULL. */
extern void wig_event_append(WigWork *work, const WigInstance *inst, const char *type,
							 const char *payload, size_t payload_len, const char *node_id);

/* Append a lifecycle entry: payload {reason?, error?}, empty when both are NULL. */
extern void wig_event_lifecycle(WigWork *work, const WigInstance *inst, const char *type,
								const char *reason, const char *error);

/* Entries below this number are final: read it before taking the snapshot. */
extern int64 wig_event_horizon(void);

/* Register the callbacks that withdraw the published number. */
extern void wig_event_init(void);

#endif							/* WIGGLE_EVENT_H */
