/*
 * pressure.h
 *	  Is this process short of memory? Then polls and starts are sent away, while
 *	  reports and heartbeats, which make room, are served up to the bounds themselves.
 */
#ifndef WIGGLE_PROXY_PRESSURE_H
#define WIGGLE_PROXY_PRESSURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pressure_of
{
	PRESSURE_REQUESTS,			/* held in memory: WIGGLE_MAX_REQUEST_BYTES bounds them */
	PRESSURE_UNSENT,			/* replies not taken yet: WIGGLE_MAX_UNSENT_BYTES */
	PRESSURE_KINDS
};

extern void pressure_start(void);

/* What is held now. */
extern void pressure_held(enum pressure_of of, size_t bytes);

/*
 * Send this poll or start away? While anything is over WIGGLE_MEMORY_THRESHOLD of its bound, or the
 * process of its memory, WIGGLE_MEMORY_REJECT_RATIO of them are.
 */
extern bool pressure_sheds(void);

/* A start was sent away, for this or because calls queue up at its shard: counted. */
extern void pressure_shed_start(void);

/*
 * How long to stay away, for who was sent away: base, and up to as much again, but not more
 * than WIGGLE_MEMORY_RETRY_JITTER_MILLIS, at random: they must not come back all at once.
 */
extern int64_t pressure_pause(int64_t base_ms);

#endif							/* WIGGLE_PROXY_PRESSURE_H */
