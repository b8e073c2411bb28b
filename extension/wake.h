/*
 * wake.h
 *	  What a transaction owes the others when it ends.
 *
 * Work is announced after commit, never by NOTIFY from the transaction itself,
 * which would serialise every commit of the cluster: queues are marked ready,
 * an earlier deadline is published, and the clock worker's latch is set when
 * it does not know yet. A rollback gives claimed keys back to the marks.
 */
#ifndef WIGGLE_WAKE_H
#define WIGGLE_WAKE_H

#include "wiggle.h"

#include "shmem.h"

/* Register the transaction callbacks; called once per process that loads us. */
extern void wig_wake_init(void);

/* This transaction inserted a row of wf_ready: note its key now, wake at commit. */
extern void wig_wake_ready(const char *queue, WigKey key, int bucket);

/* This transaction deleted a row of wf_ready: restore its key if it aborts. */
extern void wig_wake_claimed(const char *queue, WigKey key);

/* This transaction made something of this kind due at `at`. */
extern void wig_wake_at(WigDeadline kind, TimestampTz at);

/* This transaction appended to the event log. */
extern void wig_wake_event(void);

/* This transaction changes instances: it cannot be prepared, since the backend that
 * would commit it knows nothing of whom to wake. */
extern void wig_wake_writing(void);

/* This transaction wrote rows past the engine (a restore, an administrator): what
 * shared memory remembers of them no longer holds. */
extern void wig_wake_rewritten(void);

/* This transaction creates, drops or updates the extension or a database. */
extern void wig_wake_lifecycle(void);

#endif							/* WIGGLE_WAKE_H */
