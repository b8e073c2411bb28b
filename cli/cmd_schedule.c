/*
 * cmd_schedule.c
 *	  wiggle schedule create, list, delete.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cron.h"
#include "output.h"
#include "session.h"
#include "source.h"
#include "wiggle.pb-c.h"

static enum exit_status run_schedule(struct session *session, const struct arguments *args);

static const struct option schedule_options[] = {
	{"every", 0, "DURATION", "create: start an instance this often, such as 30s or 24h"},
	{"cron", 0, "EXPR", "create: five fields in UTC: minute, hour, day, month, weekday"},
	{"context", 'c', "JSON", "create: what instances start with: JSON text, @FILE, or - (default {})"},
	{NULL, 0, NULL, NULL}
};

const struct command command_schedule = {
	.name = "schedule",
	.words = "create WORKFLOW | list | delete ID",
	.min_words = 1,
	.max_words = 2,
	.summary = "start instances by the clock",
	.details =
	"A workflow has one schedule: creating another replaces it and keeps its id. Each fire\n"
	"starts an instance of the highest version, with the correlation id \"schedule:ID\". What\n"
	"was missed while nothing ran is made up for once, not for each time.\n"
	"\n"
	"A cron field is a list, separated by commas, of *, N or A-B, with /STEP behind it if\n"
	"wanted. Weekdays are 0-7, where 0 and 7 are Sunday. When day and weekday are both given,\n"
	"either of them is enough. All times are UTC, so clock changes skip and repeat nothing.\n"
	"\n"
	"Examples:\n"
	"  wiggle schedule create report --cron '30 6 * * 1-5' --context '{\"kind\": \"daily\"}'\n"
	"  wiggle schedule create sweep --every 15m\n"
	"  wiggle schedule list\n"
	"  wiggle schedule delete sched.s0.01m446vf3rya1rekthaps4\n",
	.options = schedule_options,
	.calls = true,
	.run = run_schedule
};

/* ---- showing ---- */

/* "every 15m" or the cron expression. */
static void
describe_cadence(const PB(ScheduleView) *schedule, struct buf *out)
{
	char		every[32];

	format_duration(schedule->every_millis, every);
	if (schedule->cron[0] != '\0')
		buf_printf(out, "cron %s", schedule->cron);
	else
		buf_printf(out, "every %s", every);
}

static void
put_schedule(struct buf *out, const PB(ScheduleView) *schedule)
{
	char		next[40];
	char		created[40];

	format_time(schedule->next_fire_at, next);
	format_time(schedule->created_at, created);
	json_open(out, NULL, '{');
	json_text(out, "id", schedule->id);
	json_text(out, "workflow", schedule->workflow);
	if (schedule->cron[0] != '\0')
		json_text(out, "every_millis", NULL);
	else
		json_number(out, "every_millis", schedule->every_millis);
	json_text(out, "cron", schedule->cron[0] == '\0' ? NULL : schedule->cron);
	json_text(out, "next_fire_at", next[0] == '\0' ? NULL : next);
	json_text(out, "created_at", created[0] == '\0' ? NULL : created);
	json_close(out, '}');
}

/* ---- create ---- */

/* The cadence from the options; a cron expression is checked before anybody is asked. */
static bool
take_cadence(const struct arguments *args, PB(CreateScheduleRequest) *request)
{
	const char *cron = options_value(args, "cron");
	struct wig_cron parsed;
	struct wig_error err;
	int64_t		next;

	if ((cron != NULL) == options_has(args, "every"))
	{
		complain_text(EXIT_USAGE, "schedule create takes either --every DURATION or --cron EXPR");
		return false;
	}
	if (cron != NULL)
	{
		request->cadence_case = COM__WIGGLE__PROTO__CREATE_SCHEDULE_REQUEST__CADENCE_CRON;
		request->cron = (char *) cron;
		if (wig_cron_parse(cron, &parsed, &err) &&
			wig_cron_next(&parsed, (int64_t) time(NULL), &next, &err))
			return true;
		complain_text(EXIT_USAGE, "--cron: %s", err.message);
		return false;
	}
	request->cadence_case = COM__WIGGLE__PROTO__CREATE_SCHEDULE_REQUEST__CADENCE_EVERY_MILLIS;
	if (!options_duration(args, "every", &request->every_millis, &err))
		complain(EXIT_USAGE, NULL, &err);
	else if (request->every_millis < 1)
		complain_text(EXIT_USAGE, "--every must be at least 1ms");
	else
		return true;
	return false;
}

static enum exit_status
create_schedule(struct session *session, const struct arguments *args)
{
	PB(CreateScheduleRequest) request = PB_INIT(CREATE_SCHEDULE_REQUEST);
	const char *context = options_value(args, "context");
	PB(ScheduleView) *schedule;
	struct buf	value = BUF_INIT;
	struct buf	out = BUF_INIT;
	struct wig_error err;
	enum grpc_status status;

	if (!take_cadence(args, &request))
		return EXIT_USAGE;
	if (!source_value(context == NULL ? "{}" : context, &value, &err))
		return complain_text(EXIT_USAGE, "--context: %s", err.message);
	request.workflow = (char *) args->words[1];
	request.context.data = value.data;
	request.context.len = value.len;
	schedule = (PB(ScheduleView) *)
		session_call(session, "CreateSchedule", &request.base, PB_TYPE(schedule_view), NULL, &status);
	buf_free(&value);
	if (schedule == NULL)
		return status_exit(status);
	if (session->json)
		put_schedule(&out, schedule);
	else
	{
		char		next[40];

		format_time(schedule->next_fire_at, next);
		buf_printf(&out, "%s: %s, ", schedule->id, schedule->workflow);
		describe_cadence(schedule, &out);
		buf_printf(&out, ", first at %s", next);
	}
	print_buf(&out);
	buf_free(&out);
	protobuf_c_message_free_unpacked(&schedule->base, NULL);
	return EXIT_DONE;
}

/* ---- list ---- */

static void
print_schedules(const PB(ScheduleList) *list)
{
	static const char *const headings[] = {"ID", "WORKFLOW", "CADENCE", "NEXT", "CREATED"};
	struct table table;

	table_start(&table, 5, headings);
	for (size_t i = 0; i < list->n_schedules; i++)
	{
		const PB(ScheduleView) *schedule = list->schedules[i];
		struct buf	cadence = BUF_INIT;
		char		next[40];
		char		created[40];
		const char *cells[] = {schedule->id, schedule->workflow, NULL, next, created};

		describe_cadence(schedule, &cadence);
		cells[2] = buf_cstr(&cadence);
		format_time(schedule->next_fire_at, next);
		format_time(schedule->created_at, created);
		table_row(&table, cells);
		buf_free(&cadence);
	}
	table_print(&table, stdout);
	table_free(&table);
}

static enum exit_status
list_schedules(struct session *session, const struct arguments *args)
{
	PB(Empty) request = PB_INIT(EMPTY);
	PB(ScheduleList) *list;
	struct buf	out = BUF_INIT;
	enum grpc_status status;

	(void) args;
	list = (PB(ScheduleList) *)
		session_call(session, "ListSchedules", &request.base, PB_TYPE(schedule_list), NULL, &status);
	if (list == NULL)
		return status_exit(status);
	if (session->json)
	{
		json_open(&out, NULL, '[');
		for (size_t i = 0; i < list->n_schedules; i++)
			put_schedule(&out, list->schedules[i]);
		json_close(&out, ']');
		print_buf(&out);
	}
	else
		print_schedules(list);
	buf_free(&out);
	protobuf_c_message_free_unpacked(&list->base, NULL);
	return EXIT_DONE;
}

/* ---- delete ---- */

/* The call succeeds for any id, so the list has to say whether there is one. */
static bool
is_listed(struct session *session, const char *id, enum grpc_status *status)
{
	PB(Empty) request = PB_INIT(EMPTY);
	PB(ScheduleList) *list = (PB(ScheduleList) *)
		session_call(session, "ListSchedules", &request.base, PB_TYPE(schedule_list), NULL, status);
	bool		found = false;

	for (size_t i = 0; list != NULL && i < list->n_schedules && !found; i++)
		found = strcmp(list->schedules[i]->id, id) == 0;
	if (list != NULL)
		protobuf_c_message_free_unpacked(&list->base, NULL);
	return found;
}

static enum exit_status
delete_schedule(struct session *session, const struct arguments *args)
{
	PB(DeleteScheduleRequest) request = PB_INIT(DELETE_SCHEDULE_REQUEST);
	ProtobufCMessage *reply;
	struct buf	out = BUF_INIT;
	enum grpc_status status;

	if (!is_listed(session, args->words[1], &status))
		return status != GRPC_OK ? status_exit(status)
			: complain_text(EXIT_REFUSED, "no such schedule: '%s'; \"wiggle schedule list\" shows them",
							args->words[1]);
	request.id = (char *) args->words[1];
	reply = session_call(session, "DeleteSchedule", &request.base, PB_TYPE(ack), NULL, &status);
	if (reply == NULL)
		return status_exit(status);
	protobuf_c_message_free_unpacked(reply, NULL);
	if (session->json)
	{
		json_open(&out, NULL, '{');
		json_text(&out, "deleted", args->words[1]);
		json_close(&out, '}');
		print_buf(&out);
	}
	else
		printf("deleted %s\n", args->words[1]);
	buf_free(&out);
	return EXIT_DONE;
}

/* ---- which of them ---- */

static const struct
{
	const char *name;
	int			nwords;			/* with the name itself */
	bool		options;		/* takes those of create */
	enum exit_status (*run) (struct session *session, const struct arguments *args);
}			actions[] =
{
	{"create", 2, true, create_schedule},
	{"list", 1, false, list_schedules},
	{"delete", 2, false, delete_schedule}
};

static enum exit_status
run_schedule(struct session *session, const struct arguments *args)
{
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
	{
		if (strcmp(actions[i].name, args->words[0]) != 0)
			continue;
		if (args->nwords != actions[i].nwords)
			break;
		if (!actions[i].options && (options_has(args, "every") || options_has(args, "cron") ||
									options_has(args, "context")))
			return complain_text(EXIT_USAGE, "--every, --cron and --context go with schedule create");
		return actions[i].run(session, args);
	}
	return complain_text(EXIT_USAGE, "usage: wiggle schedule create WORKFLOW | list | delete ID; "
						 "see wiggle schedule --help");
}
