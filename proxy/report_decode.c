/*
 * report_decode.c
 *	  Reported runs of a request to items, with all their texts in one buffer.
 */
#include <stdlib.h>
#include <string.h>

#include "report_decode.h"
#include "rpc.h"

typedef Com__Wiggle__Proto__StepResult StepResult;
typedef Com__Wiggle__Proto__EmittedEvent EmittedEvent;

static bool
check_event(const EmittedEvent *event, struct wig_error *err)
{
	if (event->type[strspn(event->type, " \t\r\n\f\v")] == '\0')
		return wig_fail(err, "an event type is required: it names what happened");
	if (strncmp(event->type, "wf.", 3) == 0)
		return wig_fail(err, "event type '%.100s' takes the reserved \"wf.\" prefix, which is for the engine's"
						" own events", event->type);
	return true;
}

bool
report_check_events(ReportedRun *const *runs, size_t n, struct wig_error *err)
{
	for (size_t i = 0; i < n; i++)
	{
		for (size_t j = 0; j < runs[i]->n_steps; j++)
		{
			const StepResult *step = runs[i]->steps[j];

			for (size_t k = 0; k < step->n_events; k++)
			{
				if (!check_event(step->events[k], err))
					return false;
			}
		}
	}
	return true;
}

void
report_texts_init(struct report_texts *texts, ReportedRun *const *runs, size_t n)
{
	for (size_t i = 0; i < n; i++)
	{
		texts->nsteps += runs[i]->n_steps;
		for (size_t j = 0; j < runs[i]->n_steps; j++)
			texts->nevents += runs[i]->steps[j]->n_events;
	}
	texts->steps = xcalloc(texts->nsteps, sizeof(*texts->steps));
	texts->step_at = xcalloc(texts->nsteps, sizeof(*texts->step_at));
	texts->events = xcalloc(texts->nevents + 1, sizeof(*texts->events));
	texts->event_at = xcalloc(texts->nevents + 1, sizeof(*texts->event_at));
}

/* A payload that is null is none. */
static bool
read_event(struct report_texts *texts, const EmittedEvent *request, size_t at, struct wig_error *err)
{
	struct item_event *event = &texts->events[at];
	size_t	   *start = &texts->event_at[at];

	event->type = request->type;
	if (!rpc_json(&request->payload, "an event's payload", &texts->json, start, err))
		return false;
	if (rpc_json_null(&texts->json, *start))
		texts->json.len = *start;
	event->payload_len = texts->json.len - *start;
	return true;
}

static bool
read_outcome(struct report_texts *texts, const StepResult *request, struct item_step *step,
			 size_t *start, struct wig_error *err)
{
	*start = texts->json.len;
	if (request->outcome_case == COM__WIGGLE__PROTO__STEP_RESULT__OUTCOME_PREDICATE_VALUE)
	{
		step->outcome = STEP_PREDICATE;
		buf_text(&texts->json, request->predicate_value ? "true" : "false");
	}
	else if (request->outcome_case == COM__WIGGLE__PROTO__STEP_RESULT__OUTCOME_MERGE)
	{
		if (!rpc_json(&request->merge, "merge", &texts->json, start, err))
			return false;
		if (rpc_json_null(&texts->json, *start))
			texts->json.len = *start;
		else
			step->outcome = STEP_MERGE;
	}
	step->value_len = texts->json.len - *start;
	return true;
}

static bool
read_step(struct report_texts *texts, const StepResult *request, size_t at, size_t event_at,
		  struct wig_error *err)
{
	struct item_step *step = &texts->steps[at];

	*step = (struct item_step) {
		.node_id = request->node_id,
		.started_at = request->started_at,
		.finished_at = request->finished_at,
		.events = &texts->events[event_at],
		.nevents = (int) request->n_events,
	};
	if (request->n_branches > 0)
		return wig_fail(err, "created branches are not supported yet");
	if (!read_outcome(texts, request, step, &texts->step_at[at], err))
		return false;
	for (size_t i = 0; i < request->n_events; i++)
	{
		if (!read_event(texts, request->events[i], event_at + i, err))
			return false;
	}
	return true;
}

bool
report_decode_run(struct report_texts *texts, const ReportedRun *request, struct item_run *out,
				  struct wig_error *err)
{
	size_t		first = texts->next_step;
	size_t		event_at = texts->next_event;
	bool		ok = true;

	texts->next_step += request->n_steps;
	for (size_t i = 0; i < request->n_steps; i++)
		texts->next_event += request->steps[i]->n_events;
	*out = (struct item_run) {
		.task_id = request->task_id,
		.owner = request->lease_owner,
		.steps = &texts->steps[first],
		.nsteps = (int) request->n_steps,
	};
	for (size_t i = 0; i < request->n_steps && ok; i++)
	{
		ok = read_step(texts, request->steps[i], first + i, event_at, err);
		event_at += request->steps[i]->n_events;
	}
	return ok;
}

void
report_texts_settle(struct report_texts *texts)
{
	const char *json = (const char *) texts->json.data;

	for (size_t i = 0; i < texts->nsteps; i++)
	{
		if (texts->steps[i].outcome != STEP_UNTOUCHED)
			texts->steps[i].value = json + texts->step_at[i];
	}
	for (size_t i = 0; i < texts->nevents; i++)
	{
		if (texts->events[i].payload_len > 0)
			texts->events[i].payload = json + texts->event_at[i];
	}
}

void
report_texts_free(struct report_texts *texts)
{
	buf_free(&texts->json);
	free(texts->steps);
	free(texts->step_at);
	free(texts->events);
	free(texts->event_at);
}
