/*
 * rpc_report.c
 *	  ReportSteps, and its former names AdvanceMany and AdvanceRun.
 *
 * Every run is an item of its own shard's lane, so runs of one report may commit in
 * different batches; the call is answered when the last of them is. What the
 * engine refuses is the run's result. A storage failure is the call's status when it
 * befell every run, since then a client may safely treat the call as one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ids.h"
#include "message.h"
#include "report_decode.h"
#include "router.h"
#include "rpc.h"
#include "rpc_task.h"

#define MAX_RUNS 4096

typedef Com__Wiggle__Proto__ReportStepsRequest ReportStepsRequest;
typedef Com__Wiggle__Proto__RunOutcome RunOutcome;
typedef Com__Wiggle__Proto__RunApplied RunApplied;

struct report;

/* What differs between the three calls: their messages are the same on the wire. */
struct form
{
	const char *no_runs;
	const char *no_steps;
	void		(*reply) (struct report *report);
	int			mode;			/* of every run */
};

struct run
{
	struct item item;			/* first: the lane hands it back */
	struct report *report;
	RunOutcome	outcome;
	RunApplied	applied;
	enum grpc_status storage;	/* GRPC_OK, or the failure that was not the engine's */
};

struct report
{
	struct pending pending;
	const struct form *form;
	struct report_texts texts;
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

		if (run->outcome.applied != NULL)
		{
			free(run->applied.instance_status);
			free(run->applied.next_task_id);
		}
		if (run->outcome.error_status != 0)
			free(run->outcome.error);
	}
	report_texts_free(&report->texts);
	free(report->runs);
	pending_close(&report->pending);
	free(report);
}

static void
reply_results(struct report *report)
{
	Com__Wiggle__Proto__ReportStepsResult reply = COM__WIGGLE__PROTO__REPORT_STEPS_RESULT__INIT;
	RunOutcome **results = xcalloc(report->nruns, sizeof(*results));

	for (size_t i = 0; i < report->nruns; i++)
		results[i] = &report->runs[i].outcome;
	reply.results = results;
	reply.n_results = report->nruns;
	pending_reply(&report->pending, &reply.base);
	free(results);
}

/* AdvanceRun: the only run's refusal is the call's. */
static void
reply_run(struct report *report)
{
	struct run *run = &report->runs[0];

	if (run->outcome.error_status == 0)
		pending_reply(&report->pending, &run->applied.base);
	else
		pending_fail(&report->pending, grpc_status_from_code(run->outcome.error_status), "%s",
					 run->outcome.error);
}

/* Answer when the last run is answered. */
static void
one_less(struct report *report)
{
	enum grpc_status storage = report->runs[0].storage;

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
		pending_fail(&report->pending, storage, "%s", report->runs[0].outcome.error);
	else
		report->form->reply(report);
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
check_report(ReportedRun *const *runs, size_t n, const struct form *form, struct wig_error *err)
{
	const char **ids;
	bool		ok = true;

	if (n == 0)
		return wig_fail(err, "%s", form->no_runs);
	if (n > MAX_RUNS)
		return wig_fail(err, "report has %zu runs; up to %d are allowed", n, MAX_RUNS);
	for (size_t i = 0; i < n; i++)
	{
		if (runs[i]->n_steps == 0)
			return wig_fail(err, "%s", form->no_steps);
	}
	ids = xcalloc(n, sizeof(*ids));
	for (size_t i = 0; i < n; i++)
		ids[i] = runs[i]->task_id;
	qsort(ids, n, sizeof(*ids), compare_text);
	for (size_t i = 1; i < n && ok; i++)
	{
		if (strcmp(ids[i - 1], ids[i]) == 0)
			ok = wig_fail(err, "task %.200s appears twice in the batch", ids[i]);
	}
	free(ids);
	return ok && report_check_events(runs, n, err);
}

/* ---- several runs of one instance ---- */

struct owned
{
	char		instance[WIG_ID_MAX + 1];
	struct run *run;
};

/* By instance, then in the order of the call. */
static int
compare_owned(const void *a, const void *b)
{
	const struct owned *x = a;
	const struct owned *y = b;
	int			order = strcmp(x->instance, y->instance);

	if (order != 0)
		return order;
	return x->run < y->run ? -1 : x->run > y->run;
}

/*
 * Of the runs of one instance the first is applied: the others may rest on what it
 * changes, and are to be reported again when it is known.
 */
static void
refuse_siblings(struct report *report)
{
	struct owned *owned = xcalloc(report->nruns, sizeof(*owned));
	size_t		n = 0;
	int32_t		ignored;

	for (size_t i = 0; i < report->nruns; i++)
	{
		struct run *run = &report->runs[i];
		const char *task = run->item.run.task_id;

		if (run->outcome.error_status != 0 ||
			!wig_task_id_parse(task, strlen(task), owned[n].instance, &ignored))
			continue;
		owned[n++].run = run;
	}
	qsort(owned, n, sizeof(*owned), compare_owned);
	for (size_t i = 1; i < n; i++)
	{
		char		text[WIG_ID_MAX + 128];

		if (strcmp(owned[i - 1].instance, owned[i].instance) != 0)
			continue;
		snprintf(text, sizeof(text), "another run in this batch already advances instance %s; report this"
				 " run again once it lands", owned[i].instance);
		refuse_run(owned[i].run, 409, GRPC_OK, text);
	}
	free(owned);
}

/* Decode every run, then submit: no item may be on its way while texts still move. */
static void
start_runs(struct report *report, ReportedRun *const *requests)
{
	report_texts_init(&report->texts, requests, report->nruns);
	for (size_t i = 0; i < report->nruns; i++)
	{
		struct run *run = &report->runs[i];
		struct wig_error err = {.message = ""};

		run->report = report;
		com__wiggle__proto__run_outcome__init(&run->outcome);
		run->outcome.task_id = requests[i]->task_id;
		run->item.kind = ITEM_RUN;
		run->item.done = run_done;
		run->item.mode = report->form->mode | (requests[i]->final ? ITEM_FINAL : 0) |
			(report->nruns > 1 ? ITEM_GROUPED : 0);
		if (!report_decode_run(&report->texts, requests[i], &run->item.run, &err))
			refuse_run(run, 400, GRPC_OK, err.message);
	}
	report_texts_settle(&report->texts);
	if (report->nruns > 1)
		refuse_siblings(report);
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

static void
take_report(struct call *call, ProtobufCMessage *message, ReportedRun *const *runs, size_t n,
			const struct form *form)
{
	struct wig_error err = {.message = ""};
	struct report *report;

	if (!check_report(runs, n, form, &err))
	{
		protobuf_c_message_free_unpacked(message, NULL);
		call_fail(call, GRPC_INVALID_ARGUMENT, "%s", err.message);
		return;
	}
	report = xcalloc(1, sizeof(*report));
	report->form = form;
	report->nruns = n;
	report->runs = xcalloc(n, sizeof(*report->runs));
	pending_open(&report->pending, call, message);
	start_runs(report, runs);
}

/* The call that takes any number of runs has two names. */
static void
take_many(struct call *call, const struct form *form)
{
	ProtobufCMessage *message =
		message_request(call, &com__wiggle__proto__report_steps_request__descriptor);
	const ReportStepsRequest *request = (const ReportStepsRequest *) message;

	if (request != NULL)
		take_report(call, message, request->runs, request->n_runs, form);
}

void
rpc_report_steps(struct call *call)
{
	static const struct form form = {
		"report requires at least one run", "report requires at least one step", reply_results, 0
	};

	take_many(call, &form);
}

void
rpc_advance_many(struct call *call)
{
	static const struct form form = {
		"advanceMany requires at least one run", "advance requires at least one step", reply_results, 0
	};

	take_many(call, &form);
}

/* Its clients send of a step's result what changed, and null for what went. */
void
rpc_advance_run(struct call *call)
{
	static const struct form form = {
		"advance requires at least one run", "advance requires at least one step", reply_run, ITEM_MERGE
	};
	ProtobufCMessage *message = message_request(call, &com__wiggle__proto__reported_run__descriptor);
	ReportedRun *run = (ReportedRun *) message;

	if (run != NULL)
		take_report(call, message, &run, 1, &form);
}
