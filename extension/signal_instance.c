/*
 * signal_instance.c
 *	  Delivering signals, and what happens when none comes.
 */
#include "wiggle.h"

#include "drive.h"
#include "ending.h"
#include "jsontext.h"
#include "signal_instance.h"
#include "subflow.h"
#include "timer.h"
#include "view.h"

static const char *
signal_name(const WigInstance *inst, const WigToken *token)
{
	const struct wig_node *node = wig_graph_node(inst->graph, token->node);

	return node->name ? node->name : node->id;
}

/* The oldest token that waits for this signal. */
static bool
find_waiting(WigWork *work, const WigInstance *inst, const char *signal, WigToken *token)
{
	wig_token_walk_live(work->store, inst);
	while (wig_token_next_live(work->store, inst, token))
		if (wig_graph_node(inst->graph, token->node)->kind == WIG_SIGNAL &&
			strcmp(signal_name(inst, token), signal) == 0)
			return true;
	return false;
}

bool
wig_signal(WigWork *work, const char *id, const char *signal, const char *payload,
		   size_t payload_len, WigRefusal *refusal)
{
	WigInstance inst;
	WigToken	token;
	struct wig_json_info info;
	struct wig_error err;

	if (signal == NULL || signal[0] == '\0')
		return wig_refuse(refusal, 400, "a signal name is required");
	if (wig_longer(signal, WIG_MAX_NAME))
		return wig_refuse(refusal, 400, "signal name is longer than %d characters", WIG_MAX_NAME);
	if (payload != NULL && !wig_json_check(payload, payload_len, &info, &err))
		return wig_refuse(refusal, 400, "payload: %s", err.message);
	if (id == NULL || !wig_instance_lock(work->store, id, false, &inst, NULL))
		return wig_refuse(refusal, 404, "instance not found");
	wig_work_tick(work);
	if (inst.status != WIG_INSTANCE_RUNNING)
		return wig_refuse(refusal, 409, "instance %s is %s", inst.id,
						  wig_instance_status_name(inst.status));
	if (!find_waiting(work, &inst, signal, &token))
	{
		wig_refuse(refusal, 409, "instance %s is not waiting for signal '%s'", inst.id, signal);
		return wig_hint(refusal, "wiggle.pending_signals() shows what instances wait for; a signal is not kept until then.");
	}

	(void) wig_token_read(work->store, &inst, token.n, &token);
	wig_timer_delete(work->store, token.available_at, inst.no, token.n);
	token.started_at = token.created_at;
	token.finished_at = work->now;
	wig_token_set_status(work->store, &inst, &token, WIG_TOKEN_AWAITING, WIG_TOKEN_DONE, NULL);
	wig_view_merge(work->store, inst.no, token.scope, payload, payload_len);
	wig_drive(work, &inst, (WigArrival)
			  {
				  wig_graph_node(inst.graph, token.node)->next, token.scope, token.loops, NULL
			  });
	wig_run_errands(work, &inst);
	return true;
}

void
wig_signal_timed_out(WigWork *work, WigInstance *inst, WigToken *token)
{
	const struct wig_node *node = wig_graph_node(inst->graph, token->node);
	char	   *error = psprintf("signal '%s' timed out", signal_name(inst, token));

	token->finished_at = work->now;
	if (node->alt >= 0)
	{
		wig_token_set_status(work->store, inst, token, WIG_TOKEN_AWAITING, WIG_TOKEN_DONE, NULL);
		wig_drive(work, inst, (WigArrival) {node->alt, token->scope, token->loops, NULL});
		return;
	}
	wig_token_set_status(work->store, inst, token, WIG_TOKEN_AWAITING, WIG_TOKEN_FAILED, error);
	wig_fail_instance(work, inst, error);
}
