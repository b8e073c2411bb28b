/*
 * ending.c
 *	  Cancelling what is live, undoing what was done, setting the final status.
 */
#include "wiggle.h"

#include "nodes/pg_list.h"
#include "utils/timestamp.h"

#include "comp_log.h"
#include "ending.h"
#include "event.h"
#include "guc.h"
#include "lease.h"
#include "ready.h"
#include "timer.h"
#include "wake.h"

static const char *const status_events[WIG_NINSTANCE_STATUSES] = {
	[WIG_INSTANCE_COMPLETED] = WIG_EVENT_COMPLETED,
	[WIG_INSTANCE_FAILED] = WIG_EVENT_FAILED,
	[WIG_INSTANCE_CANCELLED] = WIG_EVENT_CANCELLED,
	[WIG_INSTANCE_COMPENSATING] = WIG_EVENT_COMPENSATING,
	[WIG_INSTANCE_COMPENSATED] = WIG_EVENT_COMPENSATED,
	[WIG_INSTANCE_COMPENSATION_FAILED] = WIG_EVENT_COMPENSATION_FAILED,
};

/*
 * The child of a cancelled SUB_WORKFLOW token must not live on. It is cancelled
 * by the clock worker (expire.c), one instance at a time, so that a deep or wide
 * tree needs neither stack nor thousands of locks at once.
 */
static void
orphan_child(WigWork *work, const WigInstance *inst, const WigToken *token)
{
	WigInstance child;

	if (wig_instance_of_parent(work->store, wig_task_id(inst, token->n), &child) &&
		!wig_instance_terminal(child.status))
		wig_timer_insert(work->store, work->now, child.no, 0);
}

/* A token whose node is gone from its graph may wait in any queue. */
static bool
remove_ready(WigWork *work, const WigInstance *inst, const WigToken *token)
{
	WigKey		key = {inst->no, token->n};
	ListCell   *lc;

	if (token->node >= 0)
		return wig_ready_remove(work->store,
								wig_node_queue(wig_graph_node(inst->graph, token->node)), key);
	foreach(lc, wig_ready_queues(work->store))
		if (wig_ready_remove(work->store, (char *) lfirst(lc), key))
			return true;
	return false;
}

/* Take a READY or RUNNING token out of wherever it stands; returns which it was. */
static WigTokenStatus
withdraw_live(WigWork *work, WigInstance *inst, WigToken *token)
{
	WigLease	lease;

	/* The second is a short retry: READY, but not before its time. */
	if (wig_work_withdraw(work, inst->no, token->n) ||
		wig_timer_delete(work->store, token->available_at, inst->no, token->n) ||
		remove_ready(work, inst, token))
		return WIG_TOKEN_READY;

	/* A claim was faster and has committed by now. */
	if (!wig_lease_read(work->store, inst->no, token->n, &lease))
		elog(ERROR, "token %d of instance %s is neither ready nor leased", token->n, inst->id);
	token->started_at = lease.claimed_at;
	wig_lease_delete(work->store);
	return WIG_TOKEN_RUNNING;
}

static void
cancel_token(WigWork *work, WigInstance *inst, WigToken *token)
{
	WigTokenStatus from = wig_token_status_of_letter(token->letter);

	if (from == WIG_TOKEN_READY)
		from = withdraw_live(work, inst, token);
	else if (from == WIG_TOKEN_WAITING || from == WIG_TOKEN_AWAITING)
	{
		wig_timer_delete(work->store, token->available_at, inst->no, token->n);
		if (token->node < 0 ||
			wig_graph_node(inst->graph, token->node)->kind == WIG_SUB_WORKFLOW)
			orphan_child(work, inst, token);
	}
	token->finished_at = work->now;
	wig_token_set_status(work->store, inst, token, from, WIG_TOKEN_CANCELLED, NULL);
}

static void
cancel_tokens(WigWork *work, WigInstance *inst)
{
	List	   *live = NIL;
	ListCell   *lc;
	WigToken	token;

	/* Collected first: cancelling fetches from the index that is being walked. */
	wig_store_step(work->store);
	wig_token_walk_live(work->store, inst);
	while (wig_token_next_live(work->store, inst, &token))
	{
		WigToken   *copy = palloc(sizeof(WigToken));

		*copy = token;
		live = lappend(live, copy);
	}
	foreach(lc, live)
		cancel_token(work, inst, (WigToken *) lfirst(lc));
	list_free_deep(live);
}

void
wig_end_instance(WigWork *work, WigInstance *inst, WigInstanceStatus status,
				 const char *reason, const char *error)
{
	cancel_tokens(work, inst);
	wig_instance_set_status(work->store, inst, status, reason, error, work->now);
	wig_event_lifecycle(work, inst, status_events[status], reason, inst->error);
	if (!wig_instance_terminal(status))
		return;
	if (wig_retention >= 0)
		wig_wake_at(WIG_DEADLINE_RETENTION,
					TimestampTzPlusMilliseconds(work->now, wig_retention * INT64CONST(60000)));
	if (inst->parent_token_id != NULL)
		wig_work_add_errand(work, false, inst);
}

static void
mint_compensator(WigWork *work, WigInstance *inst, const WigCompEntry *entry)
{
	WigToken	token = {
		.node = entry->node,
		.created_at = work->now,
		.available_at = work->now,
		.comp_seq = entry->seq,
		.staged = psprintf("{\"input\":%s,\"result\":%s}", entry->input, entry->result)
	};

	wig_token_mint(work->store, inst, &token, WIG_TOKEN_READY);
	wig_work_offer(work, inst, &token);
}

void
wig_fail_instance(WigWork *work, WigInstance *inst, const char *error)
{
	WigCompEntry entry;

	wig_store_step(work->store);
	if (!wig_comp_log_read(work->store, inst, 0, &entry))
	{
		wig_end_instance(work, inst, WIG_INSTANCE_FAILED, NULL, error);
		return;
	}
	wig_end_instance(work, inst, WIG_INSTANCE_COMPENSATING, NULL, error);
	mint_compensator(work, inst, &entry);
}

void
wig_compensated(WigWork *work, WigInstance *inst, const WigToken *token)
{
	WigCompEntry entry;

	/* Newest first, so that everything above this entry is undone already. */
	wig_comp_log_set_compensated(work->store, inst, token->comp_seq);
	if (token->comp_seq > 1 &&
		wig_comp_log_read(work->store, inst, token->comp_seq - 1, &entry))
		mint_compensator(work, inst, &entry);
	else
		wig_end_instance(work, inst, WIG_INSTANCE_COMPENSATED, NULL, NULL);
}

void
wig_compensation_failed(WigWork *work, WigInstance *inst, const WigToken *token,
						const char *reason)
{
	const struct wig_node *node = wig_graph_node(inst->graph, token->node);

	wig_end_instance(work, inst, WIG_INSTANCE_COMPENSATION_FAILED, NULL,
					 psprintf("%s; compensator '%s' (undo seq %d) failed: %s",
							  inst->error ? inst->error : "",
							  node->name ? node->name : node->id, token->comp_seq, reason));
}
