/*
 * rpc_report.c
 *	  ReportSteps: one or several runs, each applied and answered on its own.
 *
 * Every run is an item of its own shard's lane, so runs of one report may commit in
 * different batches; the call is answered when the last of them is. What the
 * engine refuses is the run's result. A storage failure is the call's status when it
 * befell every run, since then a client may safely treat the call as one.
 */
#include <stdlib.h>
#include <string.h>

#include "message.h"
#include "router.h"
#include "rpc.h"
#include "rpc_task.h"
#include "wiggle.pb-c.h"

#define MAX_RUNS 4096

typedef Com__Wiggle__Proto__ReportStepsRequest ReportStepsRequest;
typedef Com__Wiggle__Proto__ReportedRun ReportedRun;
typedef Com__Wiggle__Proto__RunOutcome RunOutcome;
typedef Com__Wiggle__Proto__RunApplied RunApplied;
typedef Com__Wiggle__Proto__StepResult StepResult;

struct report;

struct run
{
	struct item item;			/* first: the lane hands it back */
	struct report *report;
	struct item_step *steps;
	RunOutcome	outcome;
	RunApplied	applied;
	enum grpc_status storage;	/* GRPC_OK, or the failure that was not the engine's */
};

struct report
{
	struct pending pending;
	struct run *runs;
	size_t		nruns;
	size_t		waiting;		/* runs not answered, and one while they are submitted */
};

static void
free_report(struct report *report)
{
	for (size_t i = 0; i < report->nruns; i++)
	{
		struct run *run = &report->runs[i];

		free(run->steps);
		if (run->outcome.applied != NULL)
		{
			free(run->applied.instance_status);
			free(run->applied.next_task_id);
		}
		if (run->outcome.error_status != 0)
			free(run->outcome.error);
	}
	free(report->runs);
	pending_close(&report->pending);
	free(report);
}

/* Answer when the last run is answered. */
static void
one_less(struct report *report)
{
	Com__Wiggle__Proto__ReportStepsResult reply = COM__WIGGLE__PROTO__REPORT_STEPS_RESULT__INIT;
	enum grpc_status storage = report->runs[0].storage;
	RunOutcome **results;

	if (--report->waiting > 0)
		return;
	for (size_t i = 0; i < report->nruns && storage != GRPC_OK; i++)
	{
		/* of several failures the worse: INTERNAL says that something may be applied */
		if (report->runs[i].storage == GRPC_OK)
			storage = GRPC_OK;
		else if (report->runs[i].storage == GRPC_INTERNAL)
			storage = GRPC_INTERNAL;
	}
	if (storage != GRPC_OK)
	{
		pending_fail(&report->pending, storage, "%s", report->runs[0].outcome.error);
		free_report(report);
		return;
	}
	results = xcalloc(report->nruns, sizeof(*results));
	for (size_t i = 0; i < report->nruns; i++)
		results[i] = &report->runs[i].outcome;
	reply.results = results;
	reply.n_results = report->nruns;
	pending_reply(&report->pending, &reply.base);
	free(results);
	free_report(report);
}

static void
refuse_run(struct run *run, int code, enum grpc_status storage, const char *message)
{
	run->outcome.error_status = code;
	run->outcome.error = xstrdup(message);
	run->storage = storage;
}

static void
run_done(struct item *item, const struct outcome *outcome)
{
	struct run *run = (struct run *) item;

	if (outcome->status == GRPC_OK)
	{
		com__wiggle__proto__run_applied__init(&run->applied);
		run->applied.instance_status = xstrdup(outcome->instance_status);
		run->applied.lease_expires_at = outcome->expires_at;
		run->applied.next_task_id = xstrdup(outcome->next_task);
		run->outcome.applied = &run->applied;
	}
	else
		refuse_run(run, outcome->code, outcome->storage ? outcome->status : GRPC_OK, outcome->message);
	one_less(run->report);
}

/* One step into the item's form; values are made from offsets when all texts are there. */
static bool
read_step(const StepResult *step, struct buf *json, struct item_step *out, size_t *start,
		  struct wig_error *err)
{
	*out = (struct item_step) {
		.node_id = step->node_id,
		.started_at = step->started_at,
		.finished_at = step->finished_at,
	};
	*start = json->len;
	if (step->n_events > 0)
		return wig_fail(err, "step %s emits events, which this server does not keep yet; report it without"
						" them", step->node_id);
	if (step->n_branches > 0)
		return wig_fail(err, "step %s creates branches, which this server does not support yet",
						step->node_id);
	if (step->outcome_case == COM__WIGGLE__PROTO__STEP_RESULT__OUTCOME_PREDICATE_VALUE)
	{
		out->outcome = STEP_PREDICATE;
		buf_text(json, step->predicate_value ? "true" : "false");
	}
	else if (step->outcome_case == COM__WIGGLE__PROTO__STEP_RESULT__OUTCOME_MERGE)
	{
		if (!rpc_json(&step->merge, "merge", json, start, err))
			return false;
		if (rpc_json_null(json, *start))
			json->len = *start;
		else
			out->outcome = STEP_MERGE;
	}
	out->value_len = json->len - *start;
	return true;
}

static bool
read_run(const ReportedRun *request, struct run *run, size_t *starts, struct wig_error *err)
{
	struct buf *json = &run->report->pending.json;

	run->steps = xcalloc(request->n_steps, sizeof(*run->steps));
	for (size_t i = 0; i < request->n_steps; i++)
	{
		if (!read_step(request->steps[i], json, &run->steps[i], &starts[i], err))
			return false;
	}
	run->item.kind = ITEM_RUN;
	run->item.done = run_done;
	run->item.mode = request->final ? ITEM_FINAL : 0;
	run->item.run = (struct item_run) {
		.task_id = request->task_id,
		.owner = request->lease_owner,
		.steps = run->steps,
		.nsteps = (int) request->n_steps,
	};
	return true;
}

static void
submit(struct run *run)
{
	const char *task_id = run->item.run.task_id;
	struct refusal refusal;
	struct shard *shard = rpc_route(task_id, "task", &refusal);
	enum submit submitted;

	if (shard != NULL)
	{
		submitted = shard_submit(shard, &run->item, router_hash(task_id, strlen(task_id)));
		if (submitted == SUBMIT_OK)
			return;
		shard_refuse(shard, submitted, &refusal);
	}
	refuse_run(run, refusal.code, refusal.storage ? refusal.status : GRPC_OK, refusal.message);
	one_less(run->report);
}

static int
compare_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/* What refuses the call as a whole. */
static bool
check_report(const ReportStepsRequest *request, struct wig_error *err)
{
	const char **ids;
	bool		ok = true;

	if (request->n_runs == 0)
		return wig_fail(err, "report requires at least one run");
	if (request->n_runs > MAX_RUNS)
		return wig_fail(err, "report has %zu runs; up to %d are allowed", request->n_runs, MAX_RUNS);
	for (size_t i = 0; i < request->n_runs; i++)
	{
		if (request->runs[i]->n_steps == 0)
			return wig_fail(err, "report requires at least one step");
	}
	ids = xcalloc(request->n_runs, sizeof(*ids));
	for (size_t i = 0; i < request->n_runs; i++)
		ids[i] = request->runs[i]->task_id;
	qsort(ids, request->n_runs, sizeof(*ids), compare_text);
	for (size_t i = 1; i < request->n_runs && ok; i++)
	{
		if (strcmp(ids[i - 1], ids[i]) == 0)
			ok = wig_fail(err, "task %.200s appears twice in the batch", ids[i]);
	}
	free(ids);
	return ok;
}

/*
 * Decode every run, then submit: the texts of all runs share one buffer, which must
 * not move once an item points into it.
 */
static void
start_runs(struct report *report, const ReportStepsRequest *request)
{
	size_t		nsteps = 0;
	size_t	   *starts;
	size_t		at = 0;

	for (size_t i = 0; i < request->n_runs; i++)
		nsteps += request->runs[i]->n_steps;
	starts = xcalloc(nsteps, sizeof(*starts));
	for (size_t i = 0; i < report->nruns; i++)
	{
		struct run *run = &report->runs[i];
		struct wig_error err = {.message = ""};

		run->report = report;
		com__wiggle__proto__run_outcome__init(&run->outcome);
		run->outcome.task_id = request->runs[i]->task_id;
		if (!read_run(request->runs[i], run, &starts[at], &err))
			refuse_run(run, 400, GRPC_OK, err.message);
		at += request->runs[i]->n_steps;
	}
	at = 0;
	for (size_t i = 0; i < report->nruns; i++)
	{
		for (size_t j = 0; j < request->runs[i]->n_steps; j++)
		{
			struct item_step *step = &report->runs[i].steps[j];

			if (step->outcome != STEP_UNTOUCHED)
				step->value = (const char *) report->pending.json.data + starts[at];
			at++;
		}
	}
	free(starts);
	report->waiting = report->nruns + 1;
	for (size_t i = 0; i < report->nruns; i++)
	{
		if (report->runs[i].outcome.error_status == 0)
			submit(&report->runs[i]);
		else
			one_less(report);
	}
	one_less(report);
}

void
rpc_report_steps(struct call *call)
{
	ProtobufCMessage *message =
		message_request(call, &com__wiggle__proto__report_steps_request__descriptor);
	const ReportStepsRequest *request = (const ReportStepsRequest *) message;
	struct wig_error err = {.message = ""};
	struct report *report;

	if (request == NULL)
		return;
	if (!check_report(request, &err))
	{
		protobuf_c_message_free_unpacked(message, NULL);
		call_fail(call, GRPC_INVALID_ARGUMENT, "%s", err.message);
		return;
	}
	report = xcalloc(1, sizeof(*report));
	report->nruns = request->n_runs;
	report->runs = xcalloc(report->nruns, sizeof(*report->runs));
	pending_open(&report->pending, call, message);
	start_runs(report, request);
}
