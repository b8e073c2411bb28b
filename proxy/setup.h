/*
 * setup.h
 *	  Bring a shard's database up to date, or verify it, and claim it for its id.
 */
#ifndef WIGGLE_PROXY_SETUP_H
#define WIGGLE_PROXY_SETUP_H

#include <stdbool.h>

struct setup;
struct shard;

extern struct setup *setup_create(struct shard *shard);

/*
 * Begin; goes on until it ends in shard_setup_done. When the topology is wrong about the
 * database shard_setup_refused runs, when that is not ready shard_left_out, and in
 * either case another attempt follows later.
 */
extern void setup_start(struct setup *setup);
extern void setup_stop(struct setup *setup);

/* Home serves: a new database that waited for its word goes on. */
extern void setup_home_ready(struct setup *setup);

/* Is it in the midst of it? Also between two attempts to get a lock there. */
extern bool setup_busy(const struct setup *setup);

/* Why the last attempt to connect failed, or was interrupted; "" when none was since the last success. */
extern const char *setup_problem(const struct setup *setup);

/* Refuse the shard for a reason that was found elsewhere; another attempt follows later. */
extern void setup_refuse(struct setup *setup, const char *why);

#endif							/* WIGGLE_PROXY_SETUP_H */
