/*
 * report.c
 *	  A run is planned over the graph first, then written.
 */
#include "wiggle.h"

#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "clock.h"
#include "drive.h"
#include "ending.h"
#include "guc.h"
#include "ids.h"
#include "jsontext.h"
#include "loops.h"
#include "report.h"
#include "scope.h"
#include "task.h"

/* What a run will do, decided before anything is written. */
typedef struct Plan
{
	int			nsteps;			/* steps that count; those after a hand-back do not */
	int			next;			/* node after them, -1: a loop ran over its budget */
	int			guard;			/* that loop's node */
	bool		lease_back;
	const char *loops;			/* counts after them */
	const char *context;		/* to be written, NULL: untouched */
	size_t		context_len;
} Plan;

static bool
chains(const WigInstance *inst)
{
	return inst->graph->def->mode == WIG_MODE_LOCAL_SYNC ||
		inst->graph->def->mode == WIG_MODE_LOCAL_ASYNC;
}

static bool
is_step(const struct wig_node *node)
{
	return node->kind == WIG_TASK || node->kind == WIG_PREDICATE;
}

/*
 * A predicate's verdict. CompleteTask carries {"value": b}; a bare boolean is
 * accepted too, which Go's item predicates send.
 */
static bool
verdict(const WigStep *step, bool complete, bool *value, WigRefusal *refusal)
{
	struct wig_json_info info;
	struct wig_json_member member;
	size_t		pos = 0;

	if (step->outcome == WIG_OUTCOME_PREDICATE)
	{
		*value = strcmp(step->value, "true") == 0;
		if (*value || strcmp(step->value, "false") == 0)
			return true;
	}
	if (complete && step->outcome == WIG_OUTCOME_MERGE &&
		wig_json_check(step->value, step->value_len, &info, NULL))
	{
		if (info.type == WIG_JSON_BOOL)
		{
			*value = info.bool_value;
			return true;
		}
		while (info.type == WIG_JSON_OBJECT &&
			   wig_json_next_member(step->value, step->value_len, &pos, &member))
		{
			if (!wig_json_key_equal(member.key, member.key_len, "\"value\"", 7))
				continue;
			*value = member.value[0] == 't';
			if (*value || member.value[0] == 'f')
				return true;
		}
	}
	return wig_refuse(refusal, 400, "predicate result must be a boolean");
}

/* The context after a task's result; nothing changes for an absent or null one. */
static bool
plan_result(WigWork *work, const WigTask *task, int node, const WigStep *step, bool complete,
			Plan *plan, WigRefusal *refusal)
{
	struct wig_json_info info;
	struct wig_error err;
	char	   *out;

	if (step->outcome == WIG_OUTCOME_PREDICATE)
		return wig_refuse(refusal, 400, "step %s is a TASK; its result is a context, not a decision",
						  wig_graph_node(task->inst.graph, node)->id);
	if (step->outcome != WIG_OUTCOME_MERGE || step->value == NULL)
		return true;
	if (!wig_json_check(step->value, step->value_len, &info, &err))
		return wig_refuse(refusal, 400, "result: %s", err.message);
	if (info.type == WIG_JSON_NULL)
		return true;

	if (complete && info.type == WIG_JSON_OBJECT)
	{
		text	   *base = wig_scope_context(work->store, task->inst.no, task->token.scope);

		out = palloc(VARSIZE_ANY_EXHDR(base) + step->value_len + 2);
		plan->context_len = wig_json_merge(VARDATA_ANY(base), VARSIZE_ANY_EXHDR(base),
										   step->value, step->value_len, out);
		plan->context = out;
	}
	else if (info.has_null_member)
	{
		out = palloc(step->value_len);
		plan->context_len = wig_json_drop_nulls(step->value + info.start, info.length, out);
		plan->context = out;
	}
	else
	{
		plan->context = step->value + info.start;
		plan->context_len = info.length;
	}
	return true;
}

/* Count an iteration of a loop guard; false when its budget is spent. */
static bool
count_iteration(const struct wig_node *node, const char **loops)
{
	int32		budget = node->loop_budget > 0 ? node->loop_budget : wig_loop_max_iterations;
	int32		count = wig_loops_get(*loops, node->id) + 1;

	if (count > budget)
		return false;
	*loops = wig_loops_set(*loops, node->id, count);
	return true;
}

static bool
plan_step(WigWork *work, const WigRun *run, const WigTask *task, int i, int node_index,
		  Plan *plan, WigRefusal *refusal)
{
	const WigStep *step = &run->steps[i];
	const struct wig_node *node = wig_graph_node(task->inst.graph, node_index);
	bool		value;

	if (step->node_id != NULL && strcmp(step->node_id, node->id) != 0)
		return wig_refuse(refusal, 409, "reported step %.64s but token %s is at %s", step->node_id,
						  i == 0 ? task->id : wig_task_id(&task->inst, task->inst.last_n + i),
						  node->id);
	plan->next = node->next;
	if (node->kind == WIG_TASK)
		return plan_result(work, task, node_index, step, run->complete, plan, refusal);

	if (!verdict(step, run->complete, &value, refusal))
		return false;
	if (!value)
		plan->next = node->alt;
	else if (node->loop_budget != 0 && !count_iteration(node, &plan->loops))
	{
		plan->next = -1;
		plan->guard = node_index;
	}
	return true;
}

static bool
make_plan(WigWork *work, const WigRun *run, const WigTask *task, Plan *plan,
		  WigRefusal *refusal)
{
	int			node = task->token.node;

	memset(plan, 0, sizeof(*plan));
	plan->loops = task->token.loops;
	for (int i = 0; i < run->nsteps; i++)
	{
		if (!plan_step(work, run, task, i, node, plan, refusal))
			return false;
		plan->nsteps = i + 1;
		if (plan->next < 0 || !is_step(wig_graph_node(task->inst.graph, plan->next)))
			return true;
		node = plan->next;
	}
	plan->lease_back = chains(&task->inst) && !run->final && !run->complete;
	return true;
}

/* A worker's clock counts when both ends are given (Wiggle). */
static void
worker_times(const WigStep *step, WigToken *token)
{
	if (step->started_ms > 0 && step->finished_ms > 0 &&
		step->started_ms <= WIG_MAX_MILLIS && step->finished_ms <= WIG_MAX_MILLIS)
	{
		token->started_at = wig_from_millis(step->started_ms);
		token->finished_at = wig_from_millis(step->finished_ms);
	}
}

/* Settle the reported token, then mint what a longer run passed, already settled. */
static void
write_steps(WigWork *work, const WigRun *run, WigTask *task, const Plan *plan)
{
	WigToken	token = task->token;
	uint64		nonce = 0;

	wig_lease_delete(work->store);
	(void) wig_nonce_decode(run->owner, strlen(run->owner), &nonce);
	token.started_at = task->lease.claimed_at;
	token.finished_at = work->now;
	token.nonce = nonce;
	worker_times(&run->steps[0], &token);
	wig_token_set_status(work->store, &task->inst, &token, WIG_TOKEN_RUNNING,
						 WIG_TOKEN_DONE, NULL);

	for (int i = 1; i < plan->nsteps; i++)
	{
		const struct wig_node *node = wig_graph_node(task->inst.graph, token.node);
		const WigStep *before = &run->steps[i - 1];
		bool		value = true;
		WigRefusal	ignored;

		if (node->kind == WIG_PREDICATE)
			(void) verdict(before, run->complete, &value, &ignored);
		token.node = value ? node->next : node->alt;
		token.created_at = token.available_at = work->now;
		token.started_at = token.finished_at = 0;
		worker_times(&run->steps[i], &token);
		wig_token_mint(work->store, &task->inst, &token, WIG_TOKEN_DONE);
	}
	if (plan->context != NULL)
		wig_scope_write(work->store, task->inst.no, token.scope,
						plan->context, plan->context_len);
}

static void
lease_back(WigWork *work, const WigRun *run, WigTask *task, const Plan *plan,
		   WigApplied *applied)
{
	WigToken	token = {
		.node = plan->next,
		.scope = task->token.scope,
		.loops = (char *) plan->loops,
		.created_at = work->now,
		.available_at = work->now
	};

	wig_token_mint(work->store, &task->inst, &token, WIG_TOKEN_RUNNING);
	wig_lease_insert(work->store, task->inst.no, token.n, run->owner, work->now,
					 applied->lease_expires_at);
	applied->next_task_id = wig_task_id(&task->inst, token.n);
}

/* A run that is asked again learns what its first answer said. */
static void
find_leased_back(WigWork *work, const WigRun *run, const WigTask *task, WigApplied *applied)
{
	WigLease	lease;

	if (!wig_lease_read(work->store, task->inst.no, task->inst.last_n, &lease) ||
		strcmp(lease.owner, run->owner) != 0)
		return;
	applied->lease_expires_at = lease.expires_at;
	applied->next_task_id = wig_task_id(&task->inst, task->inst.last_n);
}

static void
loop_overrun(WigWork *work, WigTask *task, int guard)
{
	const struct wig_node *node = wig_graph_node(task->inst.graph, guard);
	int32		budget = node->loop_budget > 0 ? node->loop_budget : wig_loop_max_iterations;

	wig_end_instance(work, &task->inst, WIG_INSTANCE_FAILED, NULL,
					 psprintf("loop '%s' exceeded its budget of %d iterations (raise it with doWhile(name, maxIterations, body) or fix the condition)",
							  node->name ? node->name : node->id, budget));
}

bool
wig_report(WigWork *work, const WigRun *run, WigApplied *applied, WigRefusal *refusal)
{
	WigTask		task;
	Plan		plan;

	memset(applied, 0, sizeof(*applied));
	if (run->nsteps < 1)
		return wig_refuse(refusal, 400, "report requires at least one step");
	if (!wig_task_find(work, run->task_id, &task, refusal))
		return false;
	applied->status = task.inst.status;
	if (run->asked_again && wig_task_was_settled_by(&task, run->owner))
	{
		find_leased_back(work, run, &task, applied);
		return true;
	}
	if (!run->complete && task.inst.status != WIG_INSTANCE_RUNNING)
		return true;
	if (!wig_task_check_lease(work, run->owner, &task, refusal) ||
		!make_plan(work, run, &task, &plan, refusal))
		return false;

	applied->lease_expires_at = TimestampTzPlusMilliseconds(work->now, wig_default_lease);
	write_steps(work, run, &task, &plan);
	if (plan.next < 0)
		loop_overrun(work, &task, plan.guard);
	else if (plan.lease_back)
		lease_back(work, run, &task, &plan, applied);
	else
		wig_drive(work, &task.inst, plan.next, task.token.scope, plan.loops);
	applied->status = task.inst.status;
	return true;
}
