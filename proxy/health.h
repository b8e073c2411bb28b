/*
 * health.h
 *	  What /readyz and /api/cluster tell about the parts of this process.
 */
#ifndef WIGGLE_PROXY_HEALTH_H
#define WIGGLE_PROXY_HEALTH_H

#include <stdbool.h>

#include "buf.h"

/* Called once by main: uptime counts from here. */
extern void health_open(void);

/* What the readiness of the process owes to a part. */
enum health_need
{
	HEALTH_TOLD,				/* nothing: it is shown alone */
	HEALTH_WORK,				/* one of these must be ready: shards that take instances */
	HEALTH_ALWAYS,				/* it must be ready: the port */
	HEALTH_HOME					/* it must be ready, and is one that takes instances */
};

/*
 * One part of this process: a shard. Created once, lives as long as the process, not
 * ready at first. name is copied.
 */
struct health;
extern struct health *health_add(const char *name, enum health_need need);
extern void health_need(struct health *health, enum health_need need);

/* detail: a few words for a person ("connected, wiggle 0.1", "cannot connect: …"),
 * without secrets; copied. */
extern void health_set(struct health *health, bool ready, const char *detail);

/*
 * Every part that must be ready is, one that takes instances is, and no drain is on.
 * One shard of many that is away does not take every server out of a balancer.
 */
extern bool health_ready(void);

/* {"ready":…,"missing":[…],"parts":[{"name":…,"ready":…,"detail":…}]} for /readyz (more: NULL), and
 * the same with "node", "version", "uptimeMillis" and what more() writes (",…") for /api/cluster. */
extern void health_write(struct buf *out, void (*more) (struct buf *out));

#endif							/* WIGGLE_PROXY_HEALTH_H */
