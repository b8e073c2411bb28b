/*
 * topology_merge.h
 *	  A document that has changed, against the one that a running process goes by.
 *
 * Pure. What is known by an index stays known by it: the shards of the running
 * topology keep theirs, new ones follow behind.
 */
#ifndef WIGGLE_PROXY_TOPOLOGY_MERGE_H
#define WIGGLE_PROXY_TOPOLOGY_MERGE_H

#include <stdbool.h>
#include <stdint.h>

#include "error.h"
#include "topology.h"

/*
 * May `fresh` take the place of `running` at this time (home's)? If so its shards
 * are put in the running order, with a retired entry for each shard that it does not list
 * any more: a retired one, or one that unused() says nobody has used (NULL: none is).
 * False with *err, fresh is untouched then.
 */
extern bool topology_merge(const struct topology *running, struct topology *fresh, int64_t now_ms,
						   bool (*unused) (int index), struct wig_error *err);

/* Do both lead to the same database in the same way? */
extern bool topology_same_target(const struct topology_shard *a, const struct topology_shard *b);

/* Do both list the same replicas, reached in the same way by as many connections? */
extern bool topology_same_replicas(const struct topology_shard *a, const struct topology_shard *b);

/* Id, time, and what each shard weighs, whatever its index. */
extern bool topology_same_generation(const struct topology *a, const struct generation *x,
									 const struct topology *b, const struct generation *y);

#endif							/* WIGGLE_PROXY_TOPOLOGY_MERGE_H */
