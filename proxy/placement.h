/*
 * placement.h
 *	  Where the next instance is minted: smooth weighted round robin.
 *
 * Pure: time comes in, an index goes out. The generation in force is the
 * newest whose activeFrom has come, before any has come the first one listed.
 */
#ifndef WIGGLE_PROXY_PLACEMENT_H
#define WIGGLE_PROXY_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "error.h"
#include "topology.h"

struct placement;

/* The topology must outlive the placement. NULL when memory is short. */
extern struct placement *placement_create(const struct topology *topology);
extern void placement_free(struct placement *placement);

/* Index (into topology.shards) of the shard for the next instance. */
extern int	placement_pick(struct placement *placement, int64_t now_ms);

/* Index (into topology.generations) of the generation in force. */
extern int	placement_generation(const struct topology *topology, int64_t now_ms);

/*
 * Do the generation in force and those that follow it weigh active shards only?
 * Those before are history and may name what drains since. False with *err.
 */
extern bool placement_check(const struct topology *topology, int64_t now_ms, struct wig_error *err);

#endif							/* WIGGLE_PROXY_PLACEMENT_H */
