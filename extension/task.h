/*
 * task.h
 *	  From a task id and a lease owner to a locked instance and its token.
 */
#ifndef WIGGLE_TASK_H
#define WIGGLE_TASK_H

#include "wiggle.h"

#include "errors.h"
#include "lease.h"
#include "work.h"

typedef struct WigTask
{
	const char *id;				/* as the client sent it */
	WigInstance inst;
	WigToken	token;
	WigLease	lease;			/* after wig_task_check_lease */
} WigTask;

/* Lock the task's instance and read its token; false with 404 `task not found`. */
extern bool wig_task_find(WigWork *work, const char *id, WigTask *task, WigRefusal *refusal);

/* The same without waiting: false with 409 when another transaction holds it. */
extern bool wig_task_find_now(WigWork *work, const char *id, WigTask *task,
							  WigRefusal *refusal);

/*
 * Is the token leased to this owner? False with 409. An expired lease that
 * nobody reclaimed is still good: there is no clock check (Wiggle).
 */
extern bool wig_task_check_lease(WigWork *work, const char *owner, WigTask *task,
								 WigRefusal *refusal);

/* Was the token settled, or failed last, under this owner's lease? */
extern bool wig_task_was_settled_by(const WigTask *task, const char *owner);

/* The status of the task's token in Wiggle's words. */
extern const char *wig_task_status(WigWork *work, const WigTask *task);

/* A failed attempt of a leased token: retried by its node's policy or final. */
extern void wig_task_attempt_failed(WigWork *work, WigTask *task, const char *reason,
									const char *last_error, bool retryable);

/* FailTask. retryable = false skips the policy. */
extern bool wig_task_fail(WigWork *work, const char *id, const char *owner,
						  const char *message, bool retryable, bool asked_again,
						  WigRefusal *refusal);

/* HeartbeatTask: the lease expires extend_ms from now, which may be sooner. */
extern bool wig_task_heartbeat(WigWork *work, const char *id, const char *owner,
							   int64 extend_ms, TimestampTz *expires_at,
							   WigRefusal *refusal);

/* Give a claimed task back unspent: the claim could not be delivered. */
extern bool wig_task_release(WigWork *work, const char *id, const char *owner,
							 WigRefusal *refusal);

#endif							/* WIGGLE_TASK_H */
