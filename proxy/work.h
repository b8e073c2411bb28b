/*
 * work.h
 *	  The outbound half, as main sees it.
 */
#ifndef WIGGLE_PROXY_WORK_H
#define WIGGLE_PROXY_WORK_H

#include <stdbool.h>

#include "error.h"

/*
 * Read the topology from the configuration, create shards, lanes and pollers on
 * loop_get() and begin to connect; register turn functions, drain hooks, health parts
 * and metrics. Runs before the loop and does not wait for the databases. False with
 * *err when the configuration is refused.
 *
 * opened() runs once, in the loop, when every shard is usable (schema applied or
 * verified, shard id claimed) or left out, or WIGGLE_STARTUP_TIMEOUT_MILLIS has passed, and one
 * is usable (the others answer UNAVAILABLE until they are): main opens the port for
 * clients. failed() runs instead when the topology is wrong about a shard (its database
 * bears another shard's id, is another shard too, is a copy), once the others have been heard
 * too or a moment has passed; each refusal has been logged, reason is their number.
 * main ends with status 1. With WIGGLE_MIGRATE_ONLY a shard that is not usable in time is a
 * failure as well, and is named.
 */
extern bool work_start(void (*opened) (void), void (*failed) (const char *reason),
					   struct wig_error *err);

/* SIGHUP: the topology document may have changed. */
extern void work_reload(void);

/* How many shards the topology lists that are not retired. */
extern int	work_shard_count(void);

#endif							/* WIGGLE_PROXY_WORK_H */
