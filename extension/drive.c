/*
 * drive.c
 *	  One function per node kind, called in a loop with a budget.
 *
 * This is where an outcome is read and several tables are touched.
 */
#include "wiggle.h"

#include "miscadmin.h"
#include "utils/timestamp.h"

#include "drive.h"
#include "ending.h"
#include "event.h"
#include "guc.h"
#include "ids.h"
#include "mint.h"
#include "scope.h"
#include "timer.h"
#include "view.h"

/* Nodes that one move may go through before it is taken for a runaway (Wiggle);
 * each child beyond one that a fork pushes is allowed on top. */
#define DRIVE_BUDGET 10000

typedef void (*ArriveFn) (WigDrive *drive, const WigArrival *at);

void
wig_drive_push(WigDrive *drive, WigArrival at)
{
	if (drive->n == drive->max)
	{
		drive->max = Max(drive->max * 2, 16);
		if (drive->stack == NULL)
			drive->stack = palloc(drive->max * sizeof(WigArrival));
		else
			drive->stack = repalloc(drive->stack, drive->max * sizeof(WigArrival));
	}
	drive->stack[drive->n++] = at;
}

WigToken
wig_arriving(const WigWork *work, const WigArrival *at)
{
	return (WigToken)
	{
		.node = at->node,
		.scope = at->scope,
		.loops = (char *) at->loops,
		.staged = (char *) at->staged,
		.created_at = work->now,
		.available_at = work->now
	};
}

static void
arrive_at_step(WigDrive *drive, const WigArrival *at)
{
	WigToken	token = wig_arriving(drive->work, at);

	wig_token_mint(drive->work->store, drive->inst, &token, WIG_TOKEN_READY);
	wig_work_offer(drive->work, drive->inst, &token);
}

static void
arrive_at_sleep(WigDrive *drive, const WigArrival *at)
{
	WigWork    *work = drive->work;
	WigToken	token = wig_arriving(work, at);
	const struct wig_node *node = wig_graph_node(drive->inst->graph, at->node);

	token.available_at = TimestampTzPlusMilliseconds(work->now, node->sleep_ms);
	wig_token_mint(work->store, drive->inst, &token, WIG_TOKEN_WAITING);
	wig_timer_insert(work->store, token.available_at, drive->inst->no, token.n);
}

/* A wait without a deadline has no timer. */
static void
arrive_at_signal(WigDrive *drive, const WigArrival *at)
{
	WigWork    *work = drive->work;
	WigToken	token = wig_arriving(work, at);
	const struct wig_node *node = wig_graph_node(drive->inst->graph, at->node);

	if (node->sleep_ms > 0)
		token.available_at = TimestampTzPlusMilliseconds(work->now, node->sleep_ms);
	wig_token_mint(work->store, drive->inst, &token, WIG_TOKEN_AWAITING);
	if (node->sleep_ms > 0)
		wig_timer_insert(work->store, token.available_at, drive->inst->no, token.n);
}

static void
arrive_at_end(WigDrive *drive, const WigArrival *at)
{
	WigWork    *work = drive->work;
	WigToken	token = wig_arriving(work, at);
	const struct wig_node *node = wig_graph_node(drive->inst->graph, at->node);

	token.finished_at = work->now;
	wig_token_mint(work->store, drive->inst, &token, WIG_TOKEN_DONE);
	/* A successful end stands outside of every fork, so nothing else is live. */
	if (node->success)
		wig_end_instance(work, drive->inst, WIG_INSTANCE_COMPLETED, node->reason, NULL);
	else
		wig_fail_instance(work, drive->inst, node->reason ? node->reason : "terminated");
}

/* The graph, context and depth of a child; false with the reason. */
static bool
prepare_child(WigWork *work, const WigInstance *inst, const WigToken *token,
			  WigInstance *child, const char **why)
{
	const char *name = wig_graph_node(inst->graph, token->node)->activity;
	int32		version = wig_graph_latest(work->store, name);

	memset(child, 0, sizeof(*child));
	child->graph = version == 0 ? NULL : wig_graph_get(work->store, name, version);
	child->depth = inst->depth + 1;
	*why = NULL;
	if (child->graph == NULL)
		*why = psprintf("workflow '%s' not found", name);
	else if (child->depth > wig_max_depth)
		*why = psprintf("sub-workflows are nested deeper than the budget of %d (wiggle.max_depth)",
						wig_max_depth);
	return *why == NULL;
}

static void
arrive_at_sub_workflow(WigDrive *drive, const WigArrival *at)
{
	WigWork    *work = drive->work;
	WigInstance *inst = drive->inst;
	WigToken	token = wig_arriving(work, at);
	WigInstance child;
	const char *why;
	text	   *context;

	wig_token_mint(work->store, inst, &token, WIG_TOKEN_AWAITING);
	if (!prepare_child(work, inst, &token, &child, &why))
	{
		wig_store_step(work->store);
		token.finished_at = work->now;
		wig_token_set_status(work->store, inst, &token, WIG_TOKEN_AWAITING, WIG_TOKEN_FAILED, why);
		wig_fail_instance(work, inst, psprintf("sub-workflow '%s': %s",
											   wig_graph_node(inst->graph, at->node)->activity, why));
		return;
	}

	context = wig_view_dispatched(work->store, &token);
	child.parent_token_id = wig_task_id(inst, token.n);
	child.correlation_id = psprintf("sub:%s", child.parent_token_id);
	child.id = wig_mint_id(wig_id_shard(inst->id, strlen(inst->id)));
	if (!wig_instance_new(work, &child, VARDATA_ANY(context), VARSIZE_ANY_EXHDR(context)))
		elog(ERROR, "a minted instance id is taken");
	wig_work_add_errand(work, true, &child);
}

static const ArriveFn arrive[] = {
	[WIG_TASK] = arrive_at_step,
	[WIG_PREDICATE] = arrive_at_step,
	[WIG_SLEEP] = arrive_at_sleep,
	[WIG_SIGNAL] = arrive_at_signal,
	[WIG_SUB_WORKFLOW] = arrive_at_sub_workflow,
	[WIG_FORK] = wig_arrive_at_fork,
	[WIG_DYN_FORK] = wig_arrive_at_dyn_fork,
	[WIG_JOIN] = wig_arrive_at_join,
	[WIG_END] = arrive_at_end,
};

static void
over_budget(WigWork *work, WigInstance *inst)
{
	wig_fail_instance(work, inst,
					  psprintf("drive budget exceeded in workflow %s:%d: %d advances without parking (runaway server-side node chain)",
							   inst->workflow, inst->version, work->advances));
}

void
wig_drive(WigWork *work, WigInstance *inst, WigArrival first)
{
	WigDrive	drive = {.work = work, .inst = inst};

	wig_drive_push(&drive, first);
	/* An instance that has ended cancels what is live; what was pushed goes too. */
	while (drive.n > 0 && inst->status == WIG_INSTANCE_RUNNING)
	{
		WigArrival	at = drive.stack[--drive.n];

		CHECK_FOR_INTERRUPTS();
		if (work->advances++ >= DRIVE_BUDGET + work->allowance)
			over_budget(work, inst);
		else
			arrive[wig_graph_node(inst->graph, at.node)->kind] (&drive, &at);
	}
	if (drive.stack != NULL)
		pfree(drive.stack);
}
