/*
 * expire.c
 *	  Firing timers and expiring leases, one item at a time.
 */
#include "wiggle.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "utils/timestamp.h"

#include "drive.h"
#include "expire.h"
#include "signal_instance.h"
#include "subflow.h"
#include "task.h"

/* Lock the instance of an item without waiting; false sets *outcome. */
static bool
lock_item(WigWork *work, int64 instance, int32 n, WigTask *task, WigExpiry *outcome)
{
	bool		busy;

	*outcome = WIG_EXPIRY_DONE;
	if (!wig_instance_lock_no(work->store, instance, true, &task->inst, &busy))
	{
		if (busy)
			*outcome = WIG_EXPIRY_BUSY;
		return false;
	}
	if (!wig_token_read(work->store, &task->inst, n, &task->token))
		return false;
	wig_work_tick(work);
	return true;
}

/* Time has come for a waiting token. */
static void
fire_token(WigWork *work, WigTask *task)
{
	const struct wig_node *node = wig_graph_node(task->inst.graph, task->token.node);

	switch (node->kind)
	{
		case WIG_SLEEP:
			task->token.started_at = task->token.created_at;
			task->token.finished_at = work->now;
			wig_token_set_status(work->store, &task->inst, &task->token,
								 WIG_TOKEN_WAITING, WIG_TOKEN_DONE, NULL);
			wig_drive(work, &task->inst,
					  (WigArrival) {node->next, task->token.scope, task->token.loops, NULL});
			break;
		case WIG_SIGNAL:
			wig_signal_timed_out(work, &task->inst, &task->token);
			break;
		case WIG_SUB_WORKFLOW:
			wig_tell_parent(work, &task->inst, &task->token);
			break;
		default:
			/* A parked retry; a short one was READY all along and needs no write. */
			if (task->token.letter == wig_token_status_letter(WIG_TOKEN_WAITING))
				wig_token_set_status(work->store, &task->inst, &task->token,
									 WIG_TOKEN_WAITING, WIG_TOKEN_READY, NULL);
			wig_work_offer(work, &task->inst, &task->token);
			break;
	}
}

WigExpiry
wig_fire_timer(WigWork *work, const WigTimer *timer)
{
	WigTask		task;
	WigExpiry	outcome = WIG_EXPIRY_DONE;
	bool		orphan = timer->n == 0;
	bool		busy = false;

	if (orphan ? !wig_instance_lock_no(work->store, timer->instance, true, &task.inst, &busy)
		: !lock_item(work, timer->instance, timer->n, &task, &outcome))
	{
		if (busy)
			outcome = WIG_EXPIRY_BUSY;
		/* Purged while it waited: nobody else would take the timer away. */
		if (outcome == WIG_EXPIRY_DONE && wig_instance_gone(work->store, timer->instance))
			wig_timer_delete(work->store, timer->due_at, timer->instance, timer->n);
		return outcome;
	}
	/* Cancelled or fired since it was collected: then it is gone. */
	if (!wig_timer_delete(work->store, timer->due_at, timer->instance, timer->n))
		return WIG_EXPIRY_DONE;

	wig_work_tick(work);
	if (orphan)
		wig_cancel_orphan(work, &task.inst);
	else
		fire_token(work, &task);
	wig_run_errands(work, &task.inst);
	return WIG_EXPIRY_DONE;
}

WigExpiry
wig_expire_lease(WigWork *work, int64 instance, int32 n)
{
	WigTask		task;
	WigExpiry	outcome;

	if (!lock_item(work, instance, n, &task, &outcome))
		return outcome;
	/* Reported, or extended by a heartbeat, since it was collected. */
	if (!wig_lease_read(work->store, instance, n, &task.lease) ||
		task.lease.expires_at > work->now)
		return WIG_EXPIRY_DONE;
	wig_task_attempt_failed(work, &task, "lease expired",
							"lease expired (worker unreachable)", true);
	return WIG_EXPIRY_DONE;
}

void
wig_leases_set_back(TimestampTz now)
{
	Oid			types[] = {TIMESTAMPTZOID};
	Datum		values[] = {TimestampTzGetDatum(now)};

	/* Without the instances' locks: those that somebody is at are about to be settled. */
	SPI_connect();
	if (SPI_execute_with_args("with ahead as materialized (select instance, n from wiggle.wf_lease"
							  "  where claimed_at > $1 for update skip locked)"
							  " update wiggle.wf_lease l set expires_at = $1 + (l.expires_at - l.claimed_at), claimed_at = $1"
							  " from ahead where l.instance = ahead.instance and l.n = ahead.n",
							  1, types, values, NULL, false, 0) != SPI_OK_UPDATE)
		elog(ERROR, "could not update wf_lease");
	SPI_finish();
}
