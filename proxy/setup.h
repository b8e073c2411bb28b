/*
 * setup.h
 *	  Bring a shard's database up to date, or verify it, and claim it for its id.
 */
#ifndef WIGGLE_PROXY_SETUP_H
#define WIGGLE_PROXY_SETUP_H

struct setup;
struct shard;

extern struct setup *setup_create(struct shard *shard);

/*
 * Begin; goes on until it ends in shard_setup_done. When it is refused,
 * shard_setup_refused runs and another attempt follows later.
 */
extern void setup_start(struct setup *setup);
extern void setup_stop(struct setup *setup);

#endif							/* WIGGLE_PROXY_SETUP_H */
