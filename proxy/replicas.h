/*
 * replicas.h
 *	  The streaming copies of a shard, and the reads that they take from its primary.
 *
 * A replica serves while it is connected and not further behind than the topology
 * allows. How far that is a heartbeat tells, a row that the primary's clock renews
 * every second: it needs no clock but the primary's. A question that a replica could
 * not answer is asked at another one, then as replicaFallback says.
 */
#ifndef WIGGLE_PROXY_REPLICAS_H
#define WIGGLE_PROXY_REPLICAS_H

#include <stdbool.h>

#include "error.h"
#include "topology.h"

struct question;
struct replicas;
struct shard;

/* Can the URLs of the entry's replicas be read? False with *err. */
extern bool replicas_check(const struct topology_shard *entry, struct wig_error *err);

/* Of the shard's entry, which lists some and has been checked. */
extern struct replicas *replicas_create(struct shard *shard);

/* They are no replicas any more: stopped, and freed once nobody waits for them. */
extern void replicas_leave(struct replicas *replicas);

/* The primary is set up: connect, and begin to measure. Nothing happens the second time. */
extern void replicas_start(struct replicas *replicas);
extern void replicas_stop(struct replicas *replicas);

/* Nothing asked is unanswered. */
extern bool replicas_idle(const struct replicas *replicas);

/*
 * Give a question that may lag to the next replica that serves. False when there is
 * none: replicas_fall_back says whether the primary may be asked instead.
 */
extern bool replicas_ask(struct replicas *replicas, struct question *question);
extern bool replicas_fall_back(const struct replicas *replicas);

#endif							/* WIGGLE_PROXY_REPLICAS_H */
