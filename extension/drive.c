/*
 * drive.c
 *	  One function per node kind, called in a loop with a budget.
 *
 * This is the one place that reads an outcome and touches several tables.
 */
#include "wiggle.h"

#include "utils/timestamp.h"

#include "clock.h"
#include "drive.h"
#include "ending.h"
#include "timer.h"

/* Nodes that one pass may go through before it is taken for a runaway (Wiggle). */
#define DRIVE_BUDGET 10000

typedef struct Arrival
{
	int			node;			/* -1: nothing left to do */
	int32		scope;
	const char *loops;
} Arrival;

typedef void (*ArriveFn) (WigWork *work, WigInstance *inst, Arrival *at);

static WigToken
arriving(const WigWork *work, const Arrival *at)
{
	return (WigToken)
	{
		.node = at->node,
		.scope = at->scope,
		.loops = (char *) at->loops,
		.created_at = work->now,
		.available_at = work->now
	};
}

static void
arrive_at_step(WigWork *work, WigInstance *inst, Arrival *at)
{
	WigToken	token = arriving(work, at);

	wig_token_mint(work->store, inst, &token, WIG_TOKEN_READY);
	wig_work_offer(work, inst, &token);
	at->node = -1;
}

static void
arrive_at_sleep(WigWork *work, WigInstance *inst, Arrival *at)
{
	const struct wig_node *node = wig_graph_node(inst->graph, at->node);
	WigToken	token = arriving(work, at);

	token.available_at = TimestampTzPlusMilliseconds(work->now, node->sleep_ms);
	wig_token_mint(work->store, inst, &token, WIG_TOKEN_WAITING);
	wig_timer_insert(work->store, token.available_at, inst->no, token.n);
	at->node = -1;
}

static void
arrive_at_end(WigWork *work, WigInstance *inst, Arrival *at)
{
	const struct wig_node *node = wig_graph_node(inst->graph, at->node);
	WigToken	token = arriving(work, at);

	token.finished_at = work->now;
	wig_token_mint(work->store, inst, &token, WIG_TOKEN_DONE);
	if (node->success)
		wig_end_instance(work, inst, WIG_INSTANCE_COMPLETED, node->reason, NULL);
	else
		wig_end_instance(work, inst, WIG_INSTANCE_FAILED, NULL,
						 node->reason ? node->reason : "terminated");
	at->node = -1;
}

static const ArriveFn arrive[] = {
	[WIG_TASK] = arrive_at_step,
	[WIG_PREDICATE] = arrive_at_step,
	[WIG_SLEEP] = arrive_at_sleep,
	[WIG_END] = arrive_at_end,
};

void
wig_drive(WigWork *work, WigInstance *inst, int node, int32 scope, const char *loops)
{
	Arrival		at = {node, scope, loops};
	int			budget = DRIVE_BUDGET;

	while (at.node >= 0)
	{
		enum wig_kind kind = wig_graph_node(inst->graph, at.node)->kind;

		if (budget-- == 0)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("drive budget exceeded in workflow %s:%d: %d advances without parking (runaway server-side node chain)",
							inst->workflow, inst->version, DRIVE_BUDGET)));
		/* Start refuses definitions with other kinds (graph.c). */
		if (kind >= lengthof(arrive) || arrive[kind] == NULL)
			elog(ERROR, "instance %s arrived at a node of the unsupported kind %s",
				 inst->id, wig_kind_name(kind));
		arrive[kind] (work, inst, &at);
	}
}
