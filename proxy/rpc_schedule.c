/*
 * rpc_schedule.c
 *	  CreateSchedule, ListSchedules, DeleteSchedule.
 */
#include <stdio.h>
#include <stdlib.h>

#include "definition.h"
#include "inquiry.h"
#include "rpc_schedule.h"
#include "view.h"

typedef Com__Wiggle__Proto__CreateScheduleRequest CreateScheduleRequest;
typedef Com__Wiggle__Proto__ScheduleView ScheduleView;

static void
answer_schedule(struct inquiry *inquiry, const PGresult *result)
{
	ScheduleView reply = COM__WIGGLE__PROTO__SCHEDULE_VIEW__INIT;

	if (PQntuples(result) != 1)
	{
		pending_fail(&inquiry->pending, GRPC_INTERNAL, "the schedule gave no row");
		return;
	}
	view_schedule(result, 0, &reply);
	pending_reply(&inquiry->pending, &reply.base);
}

static bool
fill_schedule(struct inquiry *inquiry, const CreateScheduleRequest *request, struct wig_error *err)
{
	struct question *question = &inquiry->question;

	question->statement = SQL_SCHEDULE;
	question->nparams = 4;
	question->params[0] = request->workflow;
	question->params[3] = "{}";
	question->writes = true;
	question->told = "cron '";
	if (request->cadence_case == COM__WIGGLE__PROTO__CREATE_SCHEDULE_REQUEST__CADENCE_CRON)
		question->params[2] = request->cron;
	else
	{
		if (request->every_millis < 1)
			return wig_fail(err, "schedule interval must be positive");
		if (request->every_millis > WIG_MAX_DELAY_MS)
			return wig_fail(err, "every_millis is %lld; up to %lld (a hundred years) are allowed",
							(long long) request->every_millis, (long long) WIG_MAX_DELAY_MS);
		snprintf(inquiry->number, sizeof(inquiry->number), "%lld", (long long) request->every_millis);
		question->params[1] = inquiry->number;
	}
	return rpc_width("workflow", request->workflow, WIDTH_WORKFLOW, err) &&
		(question->params[2] == NULL || rpc_width("cron", request->cron, WIDTH_CRON, err)) &&
		inquiry_json(inquiry, &request->context, "context", 3, err);
}

void
rpc_create_schedule(struct call *call)
{
	struct inquiry *inquiry =
		inquiry_open(call, &com__wiggle__proto__create_schedule_request__descriptor, answer_schedule);
	struct wig_error err = {.message = ""};

	if (inquiry == NULL)
		return;
	if (fill_schedule(inquiry, (const CreateScheduleRequest *) inquiry->pending.request, &err))
		inquiry_ask_home(inquiry);
	else
		inquiry_refuse(inquiry, &err);
}

static void
answer_schedules(struct inquiry *inquiry, const PGresult *result)
{
	Com__Wiggle__Proto__ScheduleList reply = COM__WIGGLE__PROTO__SCHEDULE_LIST__INIT;
	int			n = PQntuples(result);
	ScheduleView *views = xcalloc((size_t) n + 1, sizeof(*views));
	ScheduleView **pointers = xcalloc((size_t) n + 1, sizeof(*pointers));

	for (int i = 0; i < n; i++)
	{
		com__wiggle__proto__schedule_view__init(&views[i]);
		view_schedule(result, i, &views[i]);
		pointers[i] = &views[i];
	}
	reply.schedules = pointers;
	reply.n_schedules = (size_t) n;
	pending_reply(&inquiry->pending, &reply.base);
	free(views);
	free(pointers);
}

void
rpc_list_schedules(struct call *call)
{
	struct inquiry *inquiry =
		inquiry_open(call, &com__wiggle__proto__empty__descriptor, answer_schedules);

	if (inquiry == NULL)
		return;
	inquiry->question.statement = SQL_SCHEDULES;
	inquiry_ask_home(inquiry);
}

void
rpc_delete_schedule(struct call *call)
{
	struct inquiry *inquiry =
		inquiry_open(call, &com__wiggle__proto__delete_schedule_request__descriptor, inquiry_ack);

	if (inquiry == NULL)
		return;
	inquiry->question.statement = SQL_UNSCHEDULE;
	inquiry->question.nparams = 1;
	inquiry->question.params[0] =
		((const Com__Wiggle__Proto__DeleteScheduleRequest *) inquiry->pending.request)->id;
	inquiry->question.writes = true;
	inquiry_ask_home(inquiry);
}
