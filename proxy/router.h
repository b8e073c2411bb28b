/*
 * router.h
 *	  From an id to the shard that holds it. Pure.
 */
#ifndef WIGGLE_PROXY_ROUTER_H
#define WIGGLE_PROXY_ROUTER_H

#include <stddef.h>
#include <stdint.h>

#include "topology.h"

enum route
{
	ROUTE_OK,
	ROUTE_UNKNOWN,				/* its shard is not listed, or holds no instances */
	ROUTE_RETIRED				/* an id of a shard that is retired */
};

/*
 * The shard of an instance's or a task's id: the one it names, the home shard
 * when it names none. *shard (an index into topology.shards) is set for
 * ROUTE_OK, *number (the shard's id in the text) whenever the id names one.
 */
extern enum route router_find(const struct topology *topology, const char *id, size_t len,
							  int *shard, int32_t *number);

/*
 * A hash that is equal for an instance and all of its tasks: what lane they take.
 */
extern uint32_t router_hash(const char *id, size_t len);

#endif							/* WIGGLE_PROXY_ROUTER_H */
