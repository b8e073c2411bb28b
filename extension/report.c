/*
 * report.c
 *	  A run is planned over the graph first, then written.
 */
#include "wiggle.h"

#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "clock.h"
#include "comp_log.h"
#include "drive.h"
#include "ending.h"
#include "event.h"
#include "guc.h"
#include "ids.h"
#include "jsontext.h"
#include "loops.h"
#include "report.h"
#include "step_io.h"
#include "subflow.h"
#include "task.h"
#include "view.h"

/* One step, decided. */
typedef struct StepPlan
{
	int			node;
	int			next;			/* -1: a loop ran over its budget */
	bool		decision;		/* of a predicate */
	const char *loops;			/* counts after it */
	const char *context;		/* the view after it, NULL: untouched */
	size_t		context_len;
} StepPlan;

/* What a run will do, decided before anything is written. */
typedef struct Plan
{
	StepPlan   *steps;			/* those that count; none after a hand-back */
	int			nsteps;
	bool		lease_back;
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

static bool
is_combine(const struct wig_node *node)
{
	return node->narms > 0 || node->collect_key != NULL;
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
	wig_refuse(refusal, 400, "predicate result must be a boolean");
	return wig_hint(refusal, "wiggle.decide() finishes a gate.");
}

/*
 * The view after a task's result; nothing changes for an absent or null one. before:
 * the last step of the same report that wrote, NULL when none did.
 */
static bool
plan_result(WigWork *work, const WigTask *task, const WigStep *step, bool merge,
			const StepPlan *before, StepPlan *plan, WigRefusal *refusal)
{
	const struct wig_node *node = wig_graph_node(task->inst.graph, plan->node);
	struct wig_json_info info;
	struct wig_error err;
	char	   *out;

	if (step->outcome == WIG_OUTCOME_PREDICATE)
		return wig_refuse(refusal, 400, "step %s is a TASK; its result is a context, not a decision",
						  node->id);
	if (step->outcome != WIG_OUTCOME_MERGE || step->value == NULL)
		return true;
	if (!wig_json_check(step->value, step->value_len, &info, &err))
		return wig_refuse(refusal, 400, "result: %s", err.message);
	if (info.type == WIG_JSON_NULL)
		return true;

	/* Branches that share a context write it key by key, or each would undo what
	 * the others wrote since it was given its own copy. */
	if (info.type == WIG_JSON_OBJECT && merge && !is_combine(node) && before != NULL)
	{
		out = palloc(before->context_len + info.length + 2);
		plan->context_len = wig_json_merge(before->context, before->context_len,
										   step->value + info.start, info.length, out);
		plan->context = out;
	}
	else if (info.type == WIG_JSON_OBJECT &&
		((merge && !is_combine(node)) ||
		 wig_view_shared(work->store, task->inst.no, task->token.scope)))
		plan->context = wig_view_merged(work->store, task->inst.no, task->token.scope,
										step->value + info.start, info.length, !merge,
										&plan->context_len);
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

static bool
check_events(const WigStep *step, WigRefusal *refusal)
{
	static const char *const names[] = {
		[WIG_JSON_NULL] = "null",
		[WIG_JSON_BOOL] = "boolean",
		[WIG_JSON_NUMBER] = "number",
		[WIG_JSON_STRING] = "string",
		[WIG_JSON_ARRAY] = "list",
	};

	for (int i = 0; i < step->nevents; i++)
	{
		const WigEmitted *e = &step->events[i];
		struct wig_json_info info;
		struct wig_error err;

		if (e->type == NULL || e->type[strspn(e->type, " \t\r\n")] == '\0')
			return wig_refuse(refusal, 400, "an event type is required");
		if (strncmp(e->type, "wf.", 3) == 0)
			return wig_refuse(refusal, 400, "event type '%s' takes the reserved \"wf.\" prefix",
							  wig_clip(e->type, WIG_MAX_NODE_ID));
		if (wig_longer(e->type, WIG_MAX_EVENT_TYPE))
			return wig_refuse(refusal, 400, "event type '%s' is longer than %d characters",
							  wig_clip(e->type, WIG_MAX_NODE_ID),
							  WIG_MAX_EVENT_TYPE);
		if (e->payload == NULL)
			continue;
		if (!wig_json_check(e->payload, e->payload_len, &info, &err))
			return wig_refuse(refusal, 400, "event '%s': %s", e->type, err.message);
		if (info.type != WIG_JSON_OBJECT)
			return wig_refuse(refusal, 400, "event '%s' carries a %s payload; an event's payload is a JSON object",
							  e->type, names[info.type]);
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
plan_step(WigWork *work, const WigRun *run, const WigTask *task, int i, const StepPlan *before,
		  StepPlan *plan, WigRefusal *refusal)
{
	const WigStep *step = &run->steps[i];
	const struct wig_node *node = wig_graph_node(task->inst.graph, plan->node);
	bool		value = false;

	if (step->node_id != NULL && strcmp(step->node_id, node->id) != 0)
		return wig_refuse(refusal, 409, "reported step %s but token %s is at %s",
						  wig_clip(step->node_id, WIG_MAX_NODE_ID),
						  i == 0 ? task->id : wig_task_id(&task->inst, task->inst.last_n + i),
						  node->id);
	if (!check_events(step, refusal))
		return false;
	plan->next = node->next;
	if (node->kind == WIG_TASK)
		return plan_result(work, task, step, run->merge, before, plan, refusal);

	if (!verdict(step, run->complete, &value, refusal))
		return false;
	plan->decision = value;
	if (!value)
		plan->next = node->alt;
	else if (node->loop_budget != 0 && !count_iteration(node, &plan->loops))
		plan->next = -1;
	return true;
}

static bool
make_plan(WigWork *work, const WigRun *run, const WigTask *task, Plan *plan,
		  WigRefusal *refusal)
{
	int			node = task->token.node;
	const char *loops = task->token.loops;
	const StepPlan *before = NULL;

	plan->steps = palloc0(sizeof(StepPlan) * run->nsteps);
	plan->lease_back = false;
	for (int i = 0; i < run->nsteps; i++)
	{
		StepPlan   *step = &plan->steps[i];

		step->node = node;
		step->loops = loops;
		if (!plan_step(work, run, task, i, before, step, refusal))
			return false;
		plan->nsteps = i + 1;
		if (step->context != NULL)
			before = step;
		if (step->next < 0 || !is_step(wig_graph_node(task->inst.graph, step->next)))
			return true;
		node = step->next;
		loops = step->loops;
	}
	plan->lease_back = chains(&task->inst) && !run->final && !run->complete;
	return true;
}

/* A worker's clock counts when both ends are given (Wiggle) and in order. */
static void
worker_times(const WigStep *step, WigToken *token)
{
	if (step->started_ms > 0 && step->started_ms <= step->finished_ms &&
		step->finished_ms <= WIG_MAX_MILLIS)
	{
		token->started_at = wig_from_millis(step->started_ms);
		token->finished_at = wig_from_millis(step->finished_ms);
	}
}

static void
append_events(WigWork *work, const WigInstance *inst, const WigStep *step, int node)
{
	for (int i = 0; i < step->nevents; i++)
		wig_event_append(work, inst, step->events[i].type, step->events[i].payload,
						 step->events[i].payload_len, wig_graph_node(inst->graph, node)->id);
}

/* What is kept of a step besides its outcome: undo log, events, input and output. */
static void
keep_traces(WigWork *work, const WigRun *run, WigTask *task, const StepPlan *step, int i,
			text **view, WigToken *token)
{
	const struct wig_node *node = wig_graph_node(task->inst.graph, step->node);
	bool		undo = node->compensable && node->kind == WIG_TASK;

	append_events(work, &task->inst, &run->steps[i], step->node);
	/* What is staged for a combine is gone once that has returned. */
	if (*view == NULL && (undo || wig_record_step_io))
		*view = i == 0 ? wig_view_dispatched(work->store, &task->token)
			: wig_view_read(work->store, task->inst.no, task->token.scope);
	if (wig_record_step_io && node->kind == WIG_PREDICATE)
	{
		const char *decision = step->decision ? "true" : "false";

		wig_step_io_record(token, *view, decision, strlen(decision));
	}
	else if (wig_record_step_io)
		wig_step_io_record(token, *view, step->context, step->context_len);
	if (undo)
	{
		text	   *after = step->context == NULL ? *view
			: cstring_to_text_with_len(step->context, step->context_len);

		wig_store_step(work->store);
		wig_comp_log_append(work->store, &task->inst, step->node, *view, after);
	}
	if (step->context != NULL)
		*view = cstring_to_text_with_len(step->context, step->context_len);
	else if (i == 0 && task->token.staged != NULL)
		*view = NULL;
}

/* Settle the reported token, then mint what a longer run passed, already settled. */
static void
write_steps(WigWork *work, const WigRun *run, WigTask *task, const Plan *plan)
{
	WigToken	token = task->token;
	text	   *view = NULL;
	const StepPlan *last_write = NULL;
	const char *last_step = NULL;

	wig_lease_delete(work->store);
	if (!wig_nonce_decode(run->owner, strlen(run->owner), &token.nonce))
		token.nonce = 0;
	for (int i = 0; i < plan->nsteps; i++)
	{
		const StepPlan *step = &plan->steps[i];

		token.started_at = i == 0 ? task->lease.claimed_at : 0;
		token.finished_at = i == 0 ? work->now : 0;
		worker_times(&run->steps[i], &token);
		keep_traces(work, run, task, step, i, &view, &token);
		if (i == 0)
			wig_token_set_status(work->store, &task->inst, &token, WIG_TOKEN_RUNNING,
								 WIG_TOKEN_DONE, NULL);
		else
		{
			token.node = step->node;
			token.loops = (char *) plan->steps[i - 1].loops;
			token.staged = NULL;
			token.created_at = token.available_at = work->now;
			wig_token_mint(work->store, &task->inst, &token, WIG_TOKEN_DONE);
		}
		if (step->context != NULL)
			last_write = step;
		if (wig_graph_node(task->inst.graph, step->node)->kind == WIG_TASK)
			last_step = wig_graph_node(task->inst.graph, step->node)->name;
	}
	if (last_write != NULL || (last_step != NULL && token.scope != 0))
		wig_view_write(work->store, task->inst.no, token.scope,
					   last_write ? last_write->context : NULL,
					   last_write ? last_write->context_len : 0, last_step);
}

static void
lease_back(WigWork *work, const WigRun *run, WigTask *task, const StepPlan *last,
		   WigApplied *applied)
{
	WigToken	token = {
		.node = last->next,
		.scope = task->token.scope,
		.loops = (char *) last->loops,
		.created_at = work->now,
		.available_at = work->now
	};

	wig_token_mint(work->store, &task->inst, &token, WIG_TOKEN_RUNNING);
	wig_lease_insert(work->store, task->inst.no, token.n, run->owner, work->now,
					 applied->lease_expires_at);
	applied->next_task_id = wig_task_id(&task->inst, token.n);
}

/*
 * A run that is asked again learns what its first answer said: the task leased back
 * is the live one of its scope. Siblings may have minted newer ones meanwhile, and
 * the same poll may hold tasks of theirs.
 */
static void
find_leased_back(WigWork *work, const WigRun *run, const WigTask *task, WigApplied *applied)
{
	WigToken	token;
	WigLease	lease;

	wig_token_walk_live(work->store, &task->inst);
	while (wig_token_next_live(work->store, &task->inst, &token))
	{
		if (token.scope != task->token.scope ||
			!wig_lease_read(work->store, task->inst.no, token.n, &lease) ||
			strcmp(lease.owner, run->owner) != 0)
			continue;
		applied->lease_expires_at = lease.expires_at;
		applied->next_task_id = wig_task_id(&task->inst, token.n);
		return;
	}
}

static void
loop_overrun(WigWork *work, WigTask *task, int guard)
{
	const struct wig_node *node = wig_graph_node(task->inst.graph, guard);
	int32		budget = node->loop_budget > 0 ? node->loop_budget : wig_loop_max_iterations;

	wig_fail_instance(work, &task->inst,
					  psprintf("loop '%s' exceeded its budget of %d iterations (raise it with doWhile(name, maxIterations, body) or fix the condition)",
							   node->name ? node->name : node->id, budget));
}

/* A compensator's report: its result is ignored, its log entry is undone. */
static bool
report_compensator(WigWork *work, const WigRun *run, WigTask *task, WigApplied *applied,
				   WigRefusal *refusal)
{
	const struct wig_node *node = wig_graph_node(task->inst.graph, task->token.node);
	const WigStep *step = &run->steps[0];

	if (run->nsteps != 1)
		return wig_refuse(refusal, 400, "a compensator reports exactly one step");
	if (!wig_task_check_lease(work, run->owner, task, refusal))
		return false;
	if (step->node_id != NULL && strcmp(step->node_id, node->id) != 0)
		return wig_refuse(refusal, 409, "reported step %s but token %s is at %s",
						  wig_clip(step->node_id, WIG_MAX_NODE_ID), task->id, node->id);
	if (task->inst.status != WIG_INSTANCE_COMPENSATING)
		return wig_refuse(refusal, 409, "instance %s is %s", task->inst.id,
						  wig_instance_status_name(task->inst.status));
	if (!check_events(step, refusal))
		return false;

	wig_lease_delete(work->store);
	append_events(work, &task->inst, step, task->token.node);
	if (!wig_nonce_decode(run->owner, strlen(run->owner), &task->token.nonce))
		task->token.nonce = 0;
	task->token.started_at = task->lease.claimed_at;
	task->token.finished_at = work->now;
	worker_times(step, &task->token);
	wig_token_set_status(work->store, &task->inst, &task->token, WIG_TOKEN_RUNNING,
						 WIG_TOKEN_DONE, NULL);
	wig_compensated(work, &task->inst, &task->token);
	wig_run_errands(work, &task->inst);
	applied->status = task->inst.status;
	return true;
}

/* What a call with several runs takes: LOCAL_ASYNC runs of instances that stand
 * for themselves (Wiggle). */
static bool
check_grouped(const WigRun *run, const WigTask *task, WigRefusal *refusal)
{
	const struct wig_definition *def = task->inst.graph->def;
	const struct wig_node *node = wig_graph_node(task->inst.graph, task->token.node);
	const char *first = run->steps[0].node_id;

	if (first != NULL && strcmp(first, node->id) != 0)
		return wig_refuse(refusal, 409, "reported step %s but token %s is at %s",
						  wig_clip(first, WIG_MAX_NODE_ID), task->id, node->id);
	if (task->inst.parent_token_id != NULL)
		return wig_refuse(refusal, 409, "instance %s is a sub-workflow of another instance -- report this run singly",
						  task->inst.id);
	if (def->mode != WIG_MODE_LOCAL_ASYNC)
		return wig_refuse(refusal, 409, "definition %s:%d runs %s; a batch takes only LOCAL_ASYNC runs -- report this run singly",
						  def->name, def->version,
						  wig_mode_name(def->mode == WIG_MODE_DEFAULT ? WIG_MODE_SERVER : def->mode));
	return true;
}

bool
wig_report(WigWork *work, const WigRun *run, WigApplied *applied, WigRefusal *refusal)
{
	WigTask		task;
	Plan		plan = {0};
	const StepPlan *last;

	memset(applied, 0, sizeof(*applied));
	if (run->nsteps < 1)
		return wig_refuse(refusal, 400, "report requires at least one step");
	if (run->grouped ? !wig_task_find_now(work, run->task_id, &task, refusal)
		: !wig_task_find(work, run->task_id, &task, refusal))
		return false;
	applied->status = task.inst.status;
	if (run->asked_again && wig_task_was_settled_by(&task, run->owner))
	{
		find_leased_back(work, run, &task, applied);
		return true;
	}
	/* In a group a compensator is told the status, and reports on its own. */
	if (task.token.comp_seq != 0 && run->grouped)
		return true;
	if (task.token.comp_seq != 0)
		return report_compensator(work, run, &task, applied, refusal);
	if (!run->complete && task.inst.status != WIG_INSTANCE_RUNNING)
		return true;
	if (!wig_task_check_lease(work, run->owner, &task, refusal) ||
		(run->grouped && !check_grouped(run, &task, refusal)) ||
		!make_plan(work, run, &task, &plan, refusal))
		return false;

	applied->lease_expires_at = TimestampTzPlusMilliseconds(work->now, wig_default_lease);
	last = &plan.steps[plan.nsteps - 1];
	write_steps(work, run, &task, &plan);
	if (last->next < 0)
		loop_overrun(work, &task, last->node);
	else if (plan.lease_back)
		lease_back(work, run, &task, last, applied);
	else
		wig_drive(work, &task.inst,
				  (WigArrival) {last->next, task.token.scope, last->loops, NULL});
	wig_run_errands(work, &task.inst);
	applied->status = task.inst.status;
	return true;
}
