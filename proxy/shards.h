/*
 * shards.h
 *	  All shards of the topology: created and started once.
 */
#ifndef WIGGLE_PROXY_SHARDS_H
#define WIGGLE_PROXY_SHARDS_H

#include <stdbool.h>

#include "error.h"
#include "topology.h"

/*
 * Create every shard that is not retired and begin to set it up. The topology
 * stays theirs. serving() runs when a shard can be used for the first time, refused()
 * when one is refused for the first time, which has been logged (it is tried again
 * all the same).
 */
extern bool shards_start(struct topology *document, void (*serving) (void),
						 void (*refused) (void), struct wig_error *err);

#endif							/* WIGGLE_PROXY_SHARDS_H */
