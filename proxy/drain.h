/*
 * drain.h
 *	  How the process ends: SIGTERM or SIGINT, then everybody's part in it.
 *
 * Each part registers a struct drain_hook once. When the drain begins, every
 * begin() runs in order of registration; then, once a turn of the loop, every
 * idle() is asked; when all are idle or the grace period (WIGGLE_DRAIN_GRACE_MILLIS)
 * has passed or a second signal came, every stop() runs in reverse order and
 * the loop ends. The exit status is 0 when all were idle, else 1.
 */
#ifndef WIGGLE_PROXY_DRAIN_H
#define WIGGLE_PROXY_DRAIN_H

#include <stdbool.h>

struct drain_hook
{
	const char *name;			/* for the log: "poller", "lanes" */
	void		(*begin) (void);	/* take no new work, let waiting work go; or NULL */
	bool		(*idle) (void);	/* nothing of mine is in flight; or NULL */
	void		(*stop) (void);	/* close every handle, free; or NULL */
};

/* hook must live for ever (a const static). */
extern void drain_register(const struct drain_hook *hook);

/* Start it; a second call skips the waiting. reason is for the log. */
extern void drain_begin(const char *reason);

/* True from drain_begin on. */
extern bool drain_started(void);

/* The process's exit status after the loop has ended. */
extern int	drain_status(void);

#endif							/* WIGGLE_PROXY_DRAIN_H */
