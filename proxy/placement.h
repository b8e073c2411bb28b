/*
 * placement.h
 *	  Where the next instance is minted: smooth weighted round robin.
 *
 * Pure: time comes in, an index goes out. The generation in force is the
 * newest whose activeFrom has come, before any has come the first one listed.
 * Time is the home shard's, so that every proxy changes at the same moment.
 */
#ifndef WIGGLE_PROXY_PLACEMENT_H
#define WIGGLE_PROXY_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "error.h"
#include "topology.h"

struct placement;

/*
 * The topology must outlive the placement or its replacement. phase, any number: where
 * in its round each generation begins. Whatever it is, a whole round has the exact shares.
 */
extern struct placement *placement_create(const struct topology *topology, uint32_t phase);
extern void placement_free(struct placement *placement);

/* Go by another topology from now on; what has been counted stays while the same generation is in force. */
extern void placement_replace(struct placement *placement, const struct topology *topology);

/*
 * Index (into topology.shards) of the shard for the next instance, of those that
 * takes() says yes to (NULL: all): who is left out neither gains nor owes anything
 * meanwhile. -1 when none takes it.
 */
extern int	placement_pick(struct placement *placement, int64_t now_ms, bool (*takes) (int shard));

/* Index (into topology.generations) of the generation in force. */
extern int	placement_generation(const struct topology *topology, int64_t now_ms);

/*
 * Do the generation in force and those that follow it weigh active shards only?
 * Those before are history and may name what drains since. False with *err.
 */
extern bool placement_check(const struct topology *topology, int64_t now_ms, struct wig_error *err);

#endif							/* WIGGLE_PROXY_PLACEMENT_H */
