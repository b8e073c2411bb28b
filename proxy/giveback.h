/*
 * giveback.h
 *	  Claimed tasks that cannot be delivered: released, or failed for good.
 */
#ifndef WIGGLE_PROXY_GIVEBACK_H
#define WIGGLE_PROXY_GIVEBACK_H

#include <stdbool.h>

struct shard;

/* Give the lease back in the shard's next batch; the task is ready again at once. */
extern void giveback_release(struct shard *shard, const char *task_id, const char *owner);

/* No worker can ever receive it: a failure that is not retried, with the reason. */
extern void giveback_fail(struct shard *shard, const char *task_id, const char *owner,
						  const char *reason);

/* None of them is on its way. */
extern bool giveback_idle(void);

#endif							/* WIGGLE_PROXY_GIVEBACK_H */
