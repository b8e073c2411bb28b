/*
 * ending.c
 *	  Cancelling what is live and setting the final status.
 */
#include "wiggle.h"

#include "nodes/pg_list.h"

#include "ending.h"
#include "lease.h"
#include "ready.h"
#include "timer.h"

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

static void
cancel_token(WigWork *work, WigInstance *inst, WigToken *token)
{
	WigTokenStatus from = WIG_TOKEN_READY;
	WigLease	lease;

	if (token->letter == wig_token_status_letter(WIG_TOKEN_WAITING))
	{
		from = WIG_TOKEN_WAITING;
		wig_timer_delete(work->store, token->available_at, inst->no, token->n);
	}
	else if (wig_work_withdraw(work, inst->no, token->n))
		;
	else if (wig_timer_delete(work->store, token->available_at, inst->no, token->n))
		;						/* a short retry: READY, but not before its time */
	else if (!remove_ready(work, inst, token))
	{
		/* A claim was faster and has committed by now. */
		from = WIG_TOKEN_RUNNING;
		if (!wig_lease_read(work->store, inst->no, token->n, &lease))
			elog(ERROR, "token %d of instance %s is neither ready nor leased",
				 token->n, inst->id);
		token->started_at = lease.claimed_at;
		wig_lease_delete(work->store);
	}
	token->finished_at = work->now;
	wig_token_set_status(work->store, inst, token, from, WIG_TOKEN_CANCELLED, NULL);
}

void
wig_cancel_tokens(WigWork *work, WigInstance *inst)
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
	wig_cancel_tokens(work, inst);
	wig_instance_set_status(work->store, inst, status, reason, error, work->now);
}
