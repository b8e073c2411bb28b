/*
 * task.c
 *	  One leased task from its arrival to its report.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "facts.h"
#include "log.h"
#include "step.h"
#include "task.h"
#include "value.h"
#include "verdict.h"

#define REPORT_RETRY_MS		2000
#define REPORT_TIMEOUT_MS	15000
#define MIN_BEAT_MS			300

extern char **environ;

struct task
{
	const struct task_owner *owner;
	PB(TaskActivation) *activation;
	const char *step_name;
	char	   *label;			/* "order/charge wfi.s0.…" */
	const struct handler *handler;
	int64_t		timeout_ms;
	struct step *step;			/* while it runs */
	struct verdict verdict;
	int64_t		started_at;		/* this machine's clock, ms since 1970 */
	int64_t		finished_at;
	uint64_t	lease_until;	/* loop time, as far as is known */
	bool		lost;			/* the lease is another's */
	bool		unsure;			/* a report may have arrived already */

	uv_timer_t	beat;
	uv_timer_t	retry;
	int			handles;
	struct client_call *beating;
	struct client_call *reporting;
};

static void report(struct task *task);

static int64_t
wall_clock_ms(void)
{
	struct timeval now;

	gettimeofday(&now, NULL);
	return (int64_t) now.tv_sec * 1000 + now.tv_usec / 1000;
}

/* ---- the end ---- */

static void
timer_closed(uv_handle_t *handle)
{
	struct task *task = handle->data;

	if (--task->handles > 0)
		return;
	task->owner->ended(task->owner->arg, task);
	protobuf_c_message_free_unpacked(&task->activation->base, NULL);
	verdict_free(&task->verdict);
	free(task->label);
	free(task);
}

static void
end(struct task *task)
{
	if (task->beating != NULL)
		client_cancel(task->beating);
	task->beating = NULL;
	uv_close((uv_handle_t *) &task->beat, timer_closed);
	uv_close((uv_handle_t *) &task->retry, timer_closed);
}

/* ---- the lease ---- */

static void
beat_done(void *arg, const struct client_reply *reply)
{
	struct task *task = arg;

	task->beating = NULL;
	if (reply->status == GRPC_OK)
		task->lease_until = uv_now(task->owner->loop) + (uint64_t) task->owner->config->lease_ms;
	else if (reply->status == GRPC_FAILED_PRECONDITION || reply->status == GRPC_NOT_FOUND)
	{
		if (task->step == NULL)
			return;				/* the report says the rest */
		log_warn(task->label, "the lease is lost, the command is stopped: %s", reply->message);
		task->lost = true;
		step_kill(task->step);
	}
	else
		log_warn(task->label, "the lease could not be extended: %s", reply->message);
}

static void
beat(uv_timer_t *timer)
{
	struct task *task = timer->data;
	PB(HeartbeatRequest) request = PB_INIT(HEARTBEAT_REQUEST);
	const struct client_options options = {
		.timeout_ms = (uint64_t) task->owner->config->lease_ms
	};

	if (task->beating != NULL || task->lost)
		return;
	request.task_id = task->activation->task_id;
	request.lease_owner = task->activation->lease_owner;
	request.extend_millis = task->owner->config->lease_ms;
	task->beating = client_start(task->owner->client, "HeartbeatTask", &request.base, &options,
								 beat_done, task);
}

/* ---- the report ---- */

static void
retry_report(uv_timer_t *timer)
{
	report(timer->data);
}

/*
 * No answer that stands: try again while the lease may be ours. The heartbeats go
 * on and keep it.
 */
static void
report_later(struct task *task, const char *why)
{
	task->unsure = true;
	if (uv_now(task->owner->loop) >= task->lease_until)
	{
		log_warn(task->label, "not reported, the server will hand the step out again: %s", why);
		end(task);
		return;
	}
	log_warn(task->label, "the report did not get through, trying again: %s", why);
	uv_timer_start(&task->retry, retry_report, REPORT_RETRY_MS, 0);
}

static void
log_verdict(const struct task *task, const char *consequence)
{
	int64_t		took = task->finished_at - task->started_at;
	int			attempt = task->activation->attempt;

	switch (task->verdict.kind)
	{
		case VERDICT_DONE:
			log_info(task->label, "attempt %d done in %" PRId64 " ms%s", attempt, took, consequence);
			break;
		case VERDICT_DECIDED:
			log_info(task->label, "attempt %d decided %s in %" PRId64 " ms%s", attempt,
					 task->verdict.decision ? "true" : "false", took, consequence);
			break;
		case VERDICT_FAILED:
		case VERDICT_FAILED_FOR_GOOD:
			log_warn(task->label, "attempt %d failed%s in %" PRId64 " ms: %s", attempt,
					 task->verdict.kind == VERDICT_FAILED ? "" : " for good", took,
					 buf_cstr((struct buf *) &task->verdict.message));
			break;
	}
}

/* The server refuses this result for what it is: the step failed, then. */
static void
refuse_result(struct task *task, const char *message)
{
	struct verdict verdict = {.kind = VERDICT_FAILED_FOR_GOOD};

	buf_printf(&verdict.message, "its result was refused: %s", message);
	buf_cstr(&verdict.message);
	verdict_free(&task->verdict);
	task->verdict = verdict;
	report(task);
}

/* The lease was not ours any more when the report came, or the report came before. */
static void
settle_elsewhere(struct task *task, const char *message)
{
	if (task->unsure)
		log_info(task->label, "the report had arrived before, or the lease is lost: %s", message);
	else
		log_warn(task->label, "the report was not accepted: %s", message);
	end(task);
}

static void
take_outcome(struct task *task, const struct client_reply *reply)
{
	PB(ReportStepsResult) *result = (PB(ReportStepsResult) *)
		protobuf_c_message_unpack(PB_TYPE(report_steps_result), NULL, reply->len, reply->data);
	const PB(RunOutcome) *outcome = result != NULL && result->n_results == 1 ? result->results[0] : NULL;

	if (outcome == NULL)
		report_later(task, "the answer cannot be read");
	else if (outcome->error_status == 0 && outcome->applied != NULL)
	{
		log_verdict(task, strcmp(outcome->applied->instance_status, "COMPLETED") == 0
					? ", the instance is completed" : "");
		end(task);
	}
	else if (outcome->error_status == 400)
		refuse_result(task, outcome->error);
	else if (outcome->error_status == 404 || outcome->error_status == 409)
		settle_elsewhere(task, outcome->error);
	else
		report_later(task, outcome->error);
	if (result != NULL)
		protobuf_c_message_free_unpacked(&result->base, NULL);
}

static void
report_done(void *arg, const struct client_reply *reply)
{
	struct task *task = arg;
	bool		failed = task->verdict.kind == VERDICT_FAILED ||
		task->verdict.kind == VERDICT_FAILED_FOR_GOOD;

	task->reporting = NULL;
	switch (reply->status)
	{
		case GRPC_OK:
			if (!failed)
				take_outcome(task, reply);
			else
			{
				log_verdict(task, "");
				end(task);
			}
			break;
		case GRPC_NOT_FOUND:
		case GRPC_FAILED_PRECONDITION:
			settle_elsewhere(task, reply->message);
			break;
		case GRPC_INVALID_ARGUMENT:
		case GRPC_RESOURCE_EXHAUSTED:
			if (failed)
				settle_elsewhere(task, reply->message);
			else
				refuse_result(task, reply->message);
			break;
		default:
			report_later(task, reply->message);
			break;
	}
}

static const struct client_options report_options = {.timeout_ms = REPORT_TIMEOUT_MS};

static void
report_failure(struct task *task)
{
	PB(FailTaskRequest) request = PB_INIT(FAIL_TASK_REQUEST);

	request.task_id = task->activation->task_id;
	request.lease_owner = task->activation->lease_owner;
	request.message = (char *) buf_cstr(&task->verdict.message);
	request.retryable = task->verdict.kind == VERDICT_FAILED;
	task->reporting = client_start(task->owner->client, "FailTask", &request.base,
								   &report_options, report_done, task);
}

static void
report_result(struct task *task)
{
	PB(StepResult) step = PB_INIT(STEP_RESULT);
	PB(StepResult) *steps[] = {&step};
	PB(ReportedRun) run = PB_INIT(REPORTED_RUN);
	PB(ReportedRun) *runs[] = {&run};
	PB(ReportStepsRequest) request = PB_INIT(REPORT_STEPS_REQUEST);

	step.node_id = task->activation->node_id;
	step.started_at = task->started_at;
	step.finished_at = task->finished_at;
	if (task->verdict.kind == VERDICT_DECIDED)
	{
		step.outcome_case = COM__WIGGLE__PROTO__STEP_RESULT__OUTCOME_PREDICATE_VALUE;
		step.predicate_value = task->verdict.decision;
	}
	else if (task->verdict.value.len > 0)
	{
		step.outcome_case = COM__WIGGLE__PROTO__STEP_RESULT__OUTCOME_MERGE;
		step.merge.data = task->verdict.value.data;
		step.merge.len = task->verdict.value.len;
	}
	run.task_id = task->activation->task_id;
	run.lease_owner = task->activation->lease_owner;
	run.steps = steps;
	run.n_steps = 1;
	run.final = true;
	request.runs = runs;
	request.n_runs = 1;
	task->reporting = client_start(task->owner->client, "ReportSteps", &request.base,
								   &report_options, report_done, task);
}

static void
report(struct task *task)
{
	if (task->verdict.kind == VERDICT_DONE || task->verdict.kind == VERDICT_DECIDED)
		report_result(task);
	else
		report_failure(task);
}

static void
report_refusal(struct task *task, const char *fmt, const char *detail)
{
	task->verdict.kind = VERDICT_FAILED_FOR_GOOD;
	buf_printf(&task->verdict.message, fmt, detail);
	buf_cstr(&task->verdict.message);
	task->started_at = task->finished_at = wall_clock_ms();
	report(task);
}

/* ---- the command ---- */

static void
step_ended(void *arg, const struct step_result *result)
{
	struct task *task = arg;

	task->step = NULL;
	task->finished_at = wall_clock_ms();
	if (task->lost)
	{
		end(task);
		return;
	}
	verdict_judge(result, facts_role(task->activation), task->timeout_ms, &task->verdict);
	report(task);
}

static void
run_command(struct task *task, const struct buf *context, const struct buf *base)
{
	struct facts facts;
	struct step_setup setup = {
		.argv = task->handler->argv,
		.dir = task->owner->config->dir,
		.input = (const char *) context->data,
		.input_len = context->len,
		.base = base->len > 0 ? (const char *) base->data : NULL,
		.base_len = base->len,
		.timeout_ms = task->timeout_ms,
		.label = task->label
	};

	facts_make(&facts, task->activation, STEP_BASE_PATH, environ);
	setup.environment = facts.environment;
	task->started_at = wall_clock_ms();
	task->step = step_start(task->owner->loop, &setup, step_ended, task);
	facts_free(&facts);
}

/* A context as a command reads it: one line of JSON. */
static bool
read_context(const ProtobufCBinaryData *value, struct buf *out, struct wig_error *err)
{
	if (!value_to_json(value->data, value->len, out, err))
		return false;
	buf_byte(out, '\n');
	return true;
}

static void
start_timers(struct task *task)
{
	int64_t		lease_ms = task->owner->config->lease_ms;
	uint64_t	every = (uint64_t) (lease_ms / 3 > MIN_BEAT_MS ? lease_ms / 3 : MIN_BEAT_MS);

	uv_timer_init(task->owner->loop, &task->beat);
	uv_timer_init(task->owner->loop, &task->retry);
	task->beat.data = task;
	task->retry.data = task;
	task->handles = 2;
	task->lease_until = uv_now(task->owner->loop) + (uint64_t) lease_ms;
	uv_timer_start(&task->beat, beat, every, every);
}

struct task *
task_start(const struct task_owner *owner, PB(TaskActivation) *activation)
{
	struct task *task = xcalloc(1, sizeof(*task));
	const ProtobufCBinaryData *around = &activation->base_context;
	struct buf	text = BUF_INIT;
	struct buf	base = BUF_INIT;
	struct wig_error err;

	task->owner = owner;
	task->activation = activation;
	task->step_name = facts_step_name(activation);
	buf_printf(&text, "%s/%s %s", activation->workflow, task->step_name, activation->instance_id);
	task->label = xstrdup(buf_cstr(&text));
	buf_reset(&text);
	start_timers(task);

	task->handler = worker_config_find(owner->config, activation->workflow, task->step_name);
	if (task->handler == NULL)
	{
		log_warn(task->label, "no command for this step: give it one, or keep queue and step from this"
				 " worker (queues, --queue)");
		report_refusal(task, "no handler registered for activity '%s'", activation->activity);
	}
	else if (!read_context(&activation->context, &text, &err) ||
			 (around->len > 0 && !read_context(around, &base, &err)))
		report_refusal(task, "its context cannot be read: %s", err.message);
	else
	{
		task->timeout_ms = task->handler->timeout_ms > 0 ? task->handler->timeout_ms
			: owner->config->timeout_ms;
		run_command(task, &text, &base);
	}
	buf_free(&text);
	buf_free(&base);
	return task;
}

void
task_kill(struct task *task)
{
	if (task->step != NULL)
		step_kill(task->step);
}
