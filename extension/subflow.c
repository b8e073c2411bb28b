/*
 * subflow.c
 *	  The traffic between a sub-workflow and the token that waits for it.
 */
#include "wiggle.h"

#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "drive.h"
#include "ending.h"
#include "ids.h"
#include "scope.h"
#include "subflow.h"
#include "timer.h"
#include "view.h"

#define MAX_REASON 900

static void
child_completed(WigWork *work, WigInstance *parent, WigToken *token, const WigInstance *child)
{
	const struct wig_node *node = wig_graph_node(parent->graph, token->node);
	text	   *result = wig_view_read(work->store, child->no, WIG_ROOT_SCOPE);

	token->finished_at = work->now;
	wig_token_set_status(work->store, parent, token, WIG_TOKEN_AWAITING, WIG_TOKEN_DONE, NULL);
	wig_view_merge(work->store, parent->no, token->scope, VARDATA_ANY(result),
				   VARSIZE_ANY_EXHDR(result));
	wig_drive(work, parent, (WigArrival) {node->next, token->scope, token->loops, NULL});
}

/*
 * What a failed child says. A deep chain must not carry every level's words to
 * the top: of long ones the end is kept, which tells what broke.
 */
static const char *
child_reason(const WigInstance *child)
{
	const char *error = child->error != NULL ? child->error : "";
	int			len = (int) strlen(error);

	if (len <= MAX_REASON)
		return error;
	return psprintf("...%s", error + pg_mbcliplen(error, len, len - MAX_REASON));
}

static void
child_failed(WigWork *work, WigInstance *parent, WigToken *token, const WigInstance *child)
{
	const struct wig_node *node = wig_graph_node(parent->graph, token->node);
	char	   *error = psprintf("sub-workflow '%s' %s%s%s", node->activity,
								 wig_instance_status_name(child->status),
								 child->error ? ": " : "", child_reason(child));

	token->finished_at = work->now;
	wig_token_set_status(work->store, parent, token, WIG_TOKEN_AWAITING, WIG_TOKEN_FAILED, error);
	wig_fail_instance(work, parent, error);
}

void
wig_tell_parent(WigWork *work, WigInstance *parent, WigToken *token)
{
	WigInstance child;

	wig_work_tick(work);
	if (parent->status != WIG_INSTANCE_RUNNING ||
		token->letter != wig_token_status_letter(WIG_TOKEN_AWAITING) ||
		!wig_instance_of_parent(work->store, wig_task_id(parent, token->n), &child) ||
		!wig_instance_terminal(child.status))
		return;
	if (child.status == WIG_INSTANCE_COMPLETED)
		child_completed(work, parent, token, &child);
	else
		child_failed(work, parent, token, &child);
}

static void
tell_parent_of(WigWork *work, const WigInstance *child)
{
	char		parent_id[WIG_ID_MAX + 1];
	int32		n;
	WigInstance parent;
	WigToken	token;
	bool		busy = false;

	if (!wig_task_id_parse(child->parent_token_id, strlen(child->parent_token_id), parent_id, &n))
		elog(ERROR, "instance %s has the malformed parent \"%s\"", child->id,
			 child->parent_token_id);
	wig_store_step(work->store);
	if (wig_instance_lock(work->store, parent_id, true, &parent, &busy))
	{
		if (wig_token_read(work->store, &parent, n, &token))
			wig_tell_parent(work, &parent, &token);
	}
	else if (busy && wig_instance_exists(work->store, parent_id, &parent))
		wig_timer_insert(work->store, work->now, parent.no, n);
}

void
wig_run_errands(WigWork *work, WigInstance *inst)
{
	bool		moving = work->errands != NIL;
	WigInstance moved;

	/* One may leave others, which follow it. */
	for (int i = 0; i < list_length(work->errands); i++)
	{
		WigErrand  *errand = list_nth(work->errands, i);

		CHECK_FOR_INTERRUPTS();
		wig_work_tick(work);
		work->advances = errand->advances;
		work->allowance = errand->allowance;
		if (errand->drive_child)
			wig_drive(work, &errand->inst, (WigArrival)
					  {
						  errand->inst.graph->def->start, WIG_ROOT_SCOPE, NULL, NULL
					  });
		else
			tell_parent_of(work, &errand->inst);
	}
	list_free_deep(work->errands);
	work->errands = NIL;
	work->advances = 0;
	work->allowance = 0;
	if (moving && wig_instance_read(work->store, inst->no, &moved))
		inst->status = moved.status;
}

void
wig_cancel_orphan(WigWork *work, WigInstance *inst)
{
	char		parent_id[WIG_ID_MAX + 1];
	int32		n;
	WigInstance parent;
	WigToken	token;

	if (inst->status != WIG_INSTANCE_RUNNING || inst->parent_token_id == NULL ||
		!wig_task_id_parse(inst->parent_token_id, strlen(inst->parent_token_id), parent_id, &n) ||
		!wig_instance_exists(work->store, parent_id, &parent) ||
		!wig_token_peek(work->store, &parent, n, &token) ||
		token.letter == wig_token_status_letter(WIG_TOKEN_AWAITING))
		return;
	wig_end_instance(work, inst, WIG_INSTANCE_CANCELLED,
					 parent.status == WIG_INSTANCE_CANCELLED
					 ? "parent instance cancelled" : "parent instance failed", NULL);
}
