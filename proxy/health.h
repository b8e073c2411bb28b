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

/*
 * One thing that must work for this process to be ready: a shard. Created once,
 * lives as long as the process, not ready at first. name is copied.
 */
struct health;
extern struct health *health_add(const char *name);

/* detail: a few words for a person ("connected, wiggle 0.1", "cannot connect: …"),
 * without secrets; copied. */
extern void health_set(struct health *health, bool ready, const char *detail);

/* At least one part is there, all are ready, and no drain is on. */
extern bool health_ready(void);

/* {"ready":…,"parts":[{"name":…,"ready":…,"detail":…}]} for /readyz, and the same
 * with "node", "version", "uptimeMillis" for /api/cluster. */
extern void health_write(struct buf *out, bool cluster);

#endif							/* WIGGLE_PROXY_HEALTH_H */
