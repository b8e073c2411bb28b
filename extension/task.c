/*
 * task.c
 *	  Finding leased tasks; failing, extending and releasing them.
 */
#include "wiggle.h"

#include "common/pg_prng.h"
#include "utils/timestamp.h"

#include "ending.h"
#include "guc.h"
#include "ids.h"
#include "subflow.h"
#include "task.h"
#include "timer.h"

static bool
find(WigWork *work, const char *id, bool skip_locked, WigTask *task, WigRefusal *refusal)
{
	char		instance_id[WIG_ID_MAX + 1];
	int32		n;
	bool		busy = false;

	task->id = id;
	if (id == NULL || !wig_task_id_parse(id, strlen(id), instance_id, &n) ||
		!wig_instance_lock(work->store, instance_id, skip_locked, &task->inst, &busy) ||
		!wig_token_read(work->store, &task->inst, n, &task->token))
	{
		if (busy)
			return wig_refuse(refusal, 409, "instance of task %s is held by a concurrent operation or gone -- report this run singly",
							  id);
		return wig_refuse(refusal, 404, "task not found");
	}
	wig_work_tick(work);
	return true;
}

bool
wig_task_find(WigWork *work, const char *id, WigTask *task, WigRefusal *refusal)
{
	return find(work, id, false, task, refusal);
}

bool
wig_task_find_now(WigWork *work, const char *id, WigTask *task, WigRefusal *refusal)
{
	return find(work, id, true, task, refusal);
}

const char *
wig_task_status(WigWork *work, const WigTask *task)
{
	WigLease	lease;

	WigTokenStatus status = wig_token_status_of_letter(task->token.letter);

	if (status == WIG_TOKEN_READY &&
		wig_lease_read(work->store, task->inst.no, task->token.n, &lease))
		status = WIG_TOKEN_RUNNING;
	return wig_token_status_name(status);
}

/* What to do about a task that no worker has. */
static const char *
unleased_hint(const WigTask *task)
{
	switch (wig_token_status_of_letter(task->token.letter))
	{
		case WIG_TOKEN_READY:
			return "Its lease has ended: claim it again with wiggle.poll(), if need be for a longer lease.";
		case WIG_TOKEN_WAITING:
			return "It failed and waits for its next attempt: claim it then with wiggle.poll().";
		default:
			return NULL;
	}
}

bool
wig_task_check_lease(WigWork *work, const char *owner, WigTask *task, WigRefusal *refusal)
{
	/* The nonce behind the last '#' is the lease's secret: it is not shown. */
	const char *nonce;

	if (!wig_lease_read(work->store, task->inst.no, task->token.n, &task->lease))
	{
		wig_refuse(refusal, 409, "task %s is %s, not RUNNING", task->id, wig_task_status(work, task));
		return wig_hint(refusal, unleased_hint(task));
	}
	if (owner != NULL && strcmp(task->lease.owner, owner) == 0)
		return true;
	nonce = strrchr(task->lease.owner, '#');
	wig_refuse(refusal, 409, "lease for task %s is held by %.*s", task->id,
			   nonce ? (int) (nonce - task->lease.owner) : WIG_MAX_OWNER, task->lease.owner);
	return wig_hint(refusal, "Report with the lease_owner that this very claim came with; after a lease has ended the task is another worker's.");
}

bool
wig_task_was_settled_by(const WigTask *task, const char *owner)
{
	uint64		nonce;

	return owner != NULL && task->token.nonce != 0 &&
		wig_nonce_decode(owner, strlen(owner), &nonce) && nonce == task->token.nonce;
}

static uint64
lease_nonce(const WigLease *lease)
{
	uint64		nonce = 0;

	if (!wig_nonce_decode(lease->owner, strlen(lease->owner), &nonce))
		nonce = 0;
	return nonce;
}

/* Park a failed attempt until its backoff is over. */
static void
retry_later(WigWork *work, WigTask *task, int64 delay_ms, const char *last_error)
{
	WigToken   *token = &task->token;

	token->available_at = TimestampTzPlusMilliseconds(work->now, delay_ms);
	wig_token_set_status(work->store, &task->inst, token, WIG_TOKEN_RUNNING,
						 delay_ms < wig_retry_park ? WIG_TOKEN_READY : WIG_TOKEN_WAITING,
						 last_error);
	wig_timer_insert(work->store, token->available_at, token->instance, token->n);
}

static void
ready_again(WigWork *work, WigTask *task, const char *last_error)
{
	task->token.available_at = work->now;
	wig_token_set_status(work->store, &task->inst, &task->token, WIG_TOKEN_RUNNING,
						 WIG_TOKEN_READY, last_error);
	wig_work_offer(work, &task->inst, &task->token);
}

void
wig_task_attempt_failed(WigWork *work, WigTask *task, const char *reason,
						const char *last_error, bool retryable)
{
	WigToken   *token = &task->token;
	const struct wig_node *node = wig_graph_node(task->inst.graph, token->node);

	wig_lease_delete(work->store);
	token->attempt++;

	if (retryable && token->attempt < node->retry.max_attempts)
	{
		int64		delay_ms = wig_retry_backoff(&node->retry, token->attempt,
												 pg_prng_double(&pg_global_prng_state));

		if (delay_ms > 0)
			retry_later(work, task, delay_ms, last_error);
		else
			ready_again(work, task, last_error);
		return;
	}

	token->started_at = task->lease.claimed_at;
	token->finished_at = work->now;
	wig_token_set_status(work->store, &task->inst, token, WIG_TOKEN_RUNNING,
						 WIG_TOKEN_FAILED, last_error);
	if (token->comp_seq != 0)
		wig_compensation_failed(work, &task->inst, token, reason);
	else
		wig_fail_instance(work, &task->inst,
						  psprintf("%s: %s", node->name ? node->name : node->id, reason));
	wig_run_errands(work, &task->inst);
}

bool
wig_task_fail(WigWork *work, const char *id, const char *owner, const char *message,
			  bool retryable, bool asked_again, WigRefusal *refusal)
{
	WigTask		task;

	if (!wig_task_find(work, id, &task, refusal))
		return false;
	if (asked_again && wig_task_was_settled_by(&task, owner))
		return true;
	if (!wig_task_check_lease(work, owner, &task, refusal))
		return false;
	if (message == NULL)
		message = "";

	/* Its owner has settled it. A lease that runs out does not say so: what its owner has
	 * reported and asks for again would be taken for done. */
	task.token.nonce = lease_nonce(&task.lease);
	wig_task_attempt_failed(work, &task, message, message, retryable);
	return true;
}

bool
wig_task_heartbeat(WigWork *work, const char *id, const char *owner, int64 extend_ms,
				   TimestampTz *expires_at, WigRefusal *refusal)
{
	WigTask		task;

	if (extend_ms < 0 || extend_ms > WIG_MAX_MILLIS)
		return wig_refuse(refusal, 400, "extend_millis must be between 0 and " INT64_FORMAT ", got " INT64_FORMAT,
						  WIG_MAX_MILLIS, extend_ms);
	if (!wig_task_find(work, id, &task, refusal) ||
		!wig_task_check_lease(work, owner, &task, refusal))
		return false;
	*expires_at = TimestampTzPlusMilliseconds(work->now, extend_ms);
	wig_lease_extend(work->store, *expires_at);
	return true;
}

bool
wig_task_release(WigWork *work, const char *id, const char *owner, WigRefusal *refusal)
{
	WigTask		task;

	if (!wig_task_find(work, id, &task, refusal) ||
		!wig_task_check_lease(work, owner, &task, refusal))
		return false;
	wig_lease_delete(work->store);
	ready_again(work, &task, NULL);
	return true;
}
