/*
 * cmd_instance.c
 *	  wiggle start, get, list, signal, cancel.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "output.h"
#include "session.h"
#include "show.h"
#include "source.h"
#include "wiggle.pb-c.h"

#define FIRST_PAUSE_MS	50		/* between looks at an instance that is waited for */
#define LAST_PAUSE_MS	1000
#define DEFAULT_LIMIT	50

/* The cursor of a list's first page. */
#define FIRST_PAGE		"begin"

static enum exit_status run_start(struct session *session, const struct arguments *args);
static enum exit_status run_get(struct session *session, const struct arguments *args);
static enum exit_status run_list(struct session *session, const struct arguments *args);
static enum exit_status run_signal(struct session *session, const struct arguments *args);
static enum exit_status run_cancel(struct session *session, const struct arguments *args);

static const struct option start_options[] = {
	{"context", 'c', "JSON", "what the instance starts with: JSON text, @FILE, or - (default {})"},
	{"version", 0, "N", "this version of the workflow (default: the highest)"},
	{"correlation-id", 0, "TEXT", "your own name for the instance, up to 200 characters"},
	{"wait", 'w', NULL, "wait for the instance to end and print it"},
	{"timeout", 0, "DURATION", "with --wait: wait no longer than this, such as 30s or 5m"},
	{NULL, 0, NULL, NULL}
};

const struct command command_start = {
	.name = "start",
	.words = "WORKFLOW",
	.min_words = 1,
	.max_words = 1,
	.summary = "start an instance and print its id",
	.details =
	"With --wait the exit status is 0 when the instance is COMPLETED, 4 when it ended\n"
	"otherwise or did not end in time.\n"
	"\n"
	"A start whose answer was lost is not repeated: the message says that it may have\n"
	"happened; \"wiggle list --correlation-id\" finds it.\n"
	"\n"
	"Examples:\n"
	"  wiggle start order --context '{\"order\": 17, \"total\": 99.5}'\n"
	"  wiggle start order --context @order.json --correlation-id order-17 --wait\n"
	"  jq -c .payload event.json | wiggle --json start order --context -\n",
	.options = start_options,
	.calls = true,
	.run = run_start
};

static const struct option get_options[] = {
	{"wait", 'w', NULL, "wait for the instance to end first"},
	{"timeout", 0, "DURATION", "with --wait: wait no longer than this, such as 30s or 5m"},
	{NULL, 0, NULL, NULL}
};

const struct command command_get = {
	.name = "get",
	.words = "ID",
	.min_words = 1,
	.max_words = 1,
	.summary = "show an instance, its tokens and its context",
	.details =
	"A line is a token, or several that went through the same step alike, as those of a\n"
	"fork_each do; FAILURES are the attempts that failed. With --json each token stands by\n"
	"itself, with its id, times, input and output. The child of a token that waits for a\n"
	"sub-workflow has the correlation id \"sub:\" and the token's id.\n"
	"\n"
	"With --wait the exit status is 0 when the instance is COMPLETED, 4 when it ended\n"
	"otherwise or did not end in time.\n"
	"\n"
	"Examples:\n"
	"  wiggle get wfi.s0.01m446vf3rya1rekthaps4\n"
	"  wiggle --json get wfi.s0.01m446vf3rya1rekthaps4 --wait | jq .context\n",
	.options = get_options,
	.calls = true,
	.run = run_get
};

static const struct option list_options[] = {
	{"workflow", 0, "NAME", "only instances of this workflow"},
	{"status", 0, "STATUS", "only RUNNING, COMPLETED, FAILED, CANCELLED, ..."},
	{"correlation-id", 0, "TEXT", "only those started with it; the other two are ignored then"},
	{"limit", 'n', "N", "at most so many (default 50), with --all so many at a time"},
	{"all", 'a', NULL, "all of them, one call after the other"},
	{NULL, 0, NULL, NULL}
};

const struct command command_list = {
	.name = "list",
	.words = "",
	.summary = "list instances, the newest first",
	.details =
	"With --all what was there at its beginning is listed once each; what is started\n"
	"meanwhile is newer and is left out.\n"
	"\n"
	"Examples:\n"
	"  wiggle list --workflow order --status FAILED\n"
	"  wiggle --json list --all --status FAILED | jq -r '.[].id'\n",
	.options = list_options,
	.calls = true,
	.run = run_list
};

static const struct option signal_options[] = {
	{"payload", 'p', "JSON", "merged into the context: JSON text, @FILE, or - (default: nothing)"},
	{NULL, 0, NULL, NULL}
};

const struct command command_signal = {
	.name = "signal",
	.words = "ID NAME",
	.min_words = 2,
	.max_words = 2,
	.summary = "deliver a signal to an instance that waits for it",
	.details =
	"The members of the payload are merged into the context of the step that waits; a null\n"
	"member deletes its key. A signal that the instance does not wait for is refused, it is\n"
	"not kept until it does. \"wiggle get\" shows what an instance waits for.\n"
	"\n"
	"A signal whose answer was lost is not repeated: the message says that it may have\n"
	"been delivered.\n"
	"\n"
	"Examples:\n"
	"  wiggle signal wfi.s0.01m446vf3rya1rekthaps4 paid\n"
	"  wiggle signal wfi.s0.01m446vf3rya1rekthaps4 approved --payload '{\"by\": \"ada\"}'\n",
	.options = signal_options,
	.calls = true,
	.run = run_signal
};

static const struct option cancel_options[] = {
	{"reason", 0, "TEXT", "why, up to 200 characters (default \"cancelled via API\")"},
	{NULL, 0, NULL, NULL}
};

const struct command command_cancel = {
	.name = "cancel",
	.words = "ID",
	.min_words = 1,
	.max_words = 1,
	.summary = "cancel a running instance",
	.details =
	"An instance that has ended stays as it is; that is no error, and its status is said.\n"
	"\n"
	"Example:\n"
	"  wiggle cancel wfi.s0.01m446vf3rya1rekthaps4 --reason 'ordered twice'\n",
	.options = cancel_options,
	.calls = true,
	.run = run_cancel
};

/* ---- waiting for an instance ---- */

static bool
has_ended(const char *status)
{
	static const char *const live[] = {"RUNNING", "COMPENSATING"};

	for (size_t i = 0; i < sizeof(live) / sizeof(live[0]); i++)
	{
		if (strcmp(status, live[i]) == 0)
			return false;
	}
	return true;
}

static PB(InstanceDetail) *
fetch(struct session *session, const char *id, enum exit_status *status)
{
	PB(GetInstanceRequest) request = PB_INIT(GET_INSTANCE_REQUEST);
	PB(InstanceDetail) *detail;
	enum grpc_status grpc;

	request.instance_id = (char *) id;
	session->subject = id;
	detail = (PB(InstanceDetail) *) session_call(session, "GetInstance", &request.base,
												 PB_TYPE(instance_detail), NULL, &grpc);
	*status = status_exit(grpc);
	if (detail != NULL && detail->instance == NULL)
	{
		protobuf_c_message_free_unpacked(&detail->base, NULL);
		*status = complain_text(EXIT_REFUSED, "the server's answer holds no instance");
		return NULL;
	}
	return detail;
}

/* Look until the instance has ended or the time is over; print what was seen last. */
static enum exit_status
await(struct session *session, const char *id, int64_t timeout_ms)
{
	uint64_t	pause = FIRST_PAUSE_MS;
	uint64_t	deadline;
	enum exit_status status;

	uv_update_time(&session->loop);
	deadline = timeout_ms < 0 ? UINT64_MAX : uv_now(&session->loop) + (uint64_t) timeout_ms;
	for (;;)
	{
		PB(InstanceDetail) *detail = fetch(session, id, &status);
		bool		ended;
		bool		over;

		if (detail == NULL)
			return status;
		ended = has_ended(detail->instance->status);
		over = uv_now(&session->loop) >= deadline;
		if (ended || over)
		{
			show_instance(session, detail);
			status = strcmp(detail->instance->status, "COMPLETED") == 0
				? EXIT_DONE : EXIT_NOT_COMPLETED;
			if (!ended)
				complain_text(status, "%s is still %s after the time given", id,
							  detail->instance->status);
			protobuf_c_message_free_unpacked(&detail->base, NULL);
			return status;
		}
		protobuf_c_message_free_unpacked(&detail->base, NULL);
		session_pause(session, deadline - uv_now(&session->loop) < pause
					  ? deadline - uv_now(&session->loop) : pause);
		pause = pause * 3 / 2 < LAST_PAUSE_MS ? pause * 3 / 2 : LAST_PAUSE_MS;
	}
}

/* --timeout, -1 when it was not given; refused without --wait. */
static bool
take_timeout(const struct arguments *args, int64_t *timeout_ms)
{
	struct wig_error err;

	*timeout_ms = -1;
	if (options_has(args, "timeout") && !options_has(args, "wait"))
	{
		complain_text(EXIT_USAGE, "--timeout goes with --wait");
		return false;
	}
	if (options_duration(args, "timeout", timeout_ms, &err))
		return true;
	complain(EXIT_USAGE, NULL, &err);
	return false;
}

/* ---- start ---- */

static enum exit_status
send_start(struct session *session, PB(StartInstanceRequest) *request, bool wait,
		   int64_t timeout_ms)
{
	const struct client_options once = {.once = true};
	PB(StartInstanceResponse) *reply;
	struct buf	out = BUF_INIT;
	enum grpc_status grpc;
	enum exit_status status = EXIT_DONE;

	reply = (PB(StartInstanceResponse) *)
		session_call(session, "StartInstance", &request->base,
					 PB_TYPE(start_instance_response), &once, &grpc);
	if (reply == NULL)
		return status_exit(grpc);
	if (wait)
		status = await(session, reply->instance_id, timeout_ms);
	else if (session->json)
	{
		json_open(&out, NULL, '{');
		json_text(&out, "instance_id", reply->instance_id);
		json_text(&out, "workflow", reply->workflow);
		json_close(&out, '}');
		print_buf(&out);
	}
	else
		printf("%s\n", reply->instance_id);
	buf_free(&out);
	protobuf_c_message_free_unpacked(&reply->base, NULL);
	return status;
}

static enum exit_status
run_start(struct session *session, const struct arguments *args)
{
	PB(StartInstanceRequest) request = PB_INIT(START_INSTANCE_REQUEST);
	const char *context = options_value(args, "context");
	const char *correlation_id = options_value(args, "correlation-id");
	struct buf	value = BUF_INIT;
	struct wig_error err;
	int64_t		version = 0;
	int64_t		timeout_ms;
	enum exit_status status;

	if (!take_timeout(args, &timeout_ms))
		return EXIT_USAGE;
	if (!options_number(args, "version", 1, INT32_MAX, &version, &err))
		return complain(EXIT_USAGE, NULL, &err);
	if (!source_value(context == NULL ? "{}" : context, &value, &err))
		return complain_text(EXIT_USAGE, "--context: %s", err.message);
	request.workflow = (char *) args->words[0];
	request.context.data = value.data;
	request.context.len = value.len;
	if (version > 0)
	{
		request.has_version_case = COM__WIGGLE__PROTO__START_INSTANCE_REQUEST__HAS_VERSION_VERSION;
		request.version = (int32_t) version;
	}
	if (correlation_id != NULL)
	{
		request.has_correlation_id_case =
			COM__WIGGLE__PROTO__START_INSTANCE_REQUEST__HAS_CORRELATION_ID_CORRELATION_ID;
		request.correlation_id = (char *) correlation_id;
	}
	status = send_start(session, &request, options_has(args, "wait"), timeout_ms);
	buf_free(&value);
	return status;
}

/* ---- get ---- */

static enum exit_status
run_get(struct session *session, const struct arguments *args)
{
	PB(InstanceDetail) *detail;
	enum exit_status status;
	int64_t		timeout_ms;

	if (!take_timeout(args, &timeout_ms))
		return EXIT_USAGE;
	if (options_has(args, "wait"))
		return await(session, args->words[0], timeout_ms);
	detail = fetch(session, args->words[0], &status);
	if (detail == NULL)
		return status;
	show_instance(session, detail);
	protobuf_c_message_free_unpacked(&detail->base, NULL);
	return EXIT_DONE;
}

/* ---- list ---- */

/* One array over all pages. */
static void
print_page_json(const PB(InstanceList) *list, bool first, bool last)
{
	struct buf	out = BUF_INIT;

	json_open(&out, NULL, '[');
	for (size_t i = 0; i < list->n_instances; i++)
	{
		json_open(&out, NULL, '{');
		show_members(&out, list->instances[i]);
		json_close(&out, '}');
	}
	if (!first)
		out.data[0] = list->n_instances > 0 ? ',' : ' ';
	if (last)
		json_close(&out, ']');
	fwrite(out.data, 1, out.len, stdout);
	if (last)
		fputc('\n', stdout);
	buf_free(&out);
}

/* Headings once; the columns of each page are as wide as it needs. */
static void
print_page_text(const PB(InstanceList) *list, bool first)
{
	static const char *const headings[] = {"ID", "WORKFLOW", "VERSION", "STATUS", "CREATED", "WHY"};
	struct table table;

	table_start(&table, 6, first ? headings : NULL);
	for (size_t i = 0; i < list->n_instances; i++)
	{
		const PB(InstanceView) *view = list->instances[i];
		char		version[16];
		char		created[40];
		const char *cells[] = {
			view->id, view->workflow, version, view->status, created,
			show_why(view)
		};

		snprintf(version, sizeof(version), "%d", (int) view->version);
		format_time(view->created_at, created);
		table_row(&table, cells);
	}
	table_print(&table, stdout);
	table_free(&table);
}

/* A list on its way: it goes page by page, so that no number of large contexts is too many. */
struct walk
{
	PB(ListInstancesRequest) request;
	bool		all;			/* limit is that of a page */
	bool		begun;
	char	   *after;			/* where the next page begins */
};

/* Print one page; false: there is none behind it. */
static bool
list_page(struct session *session, struct walk *walk, enum exit_status *exit_status)
{
	struct client_options options = {.after = walk->after};
	PB(InstanceList) *list;
	enum grpc_status status;
	bool		goes_on;

	list = (PB(InstanceList) *) session_call(session, "ListInstances", &walk->request.base,
											 PB_TYPE(instance_list), &options, &status);
	*exit_status = status_exit(status);
	if (list == NULL)
		return false;
	if (!walk->all)
		walk->request.limit -= (int32_t) list->n_instances;
	goes_on = session->next_page != NULL && walk->request.limit > 0;
	if (session->json)
		print_page_json(list, !walk->begun, !goes_on);
	else
		print_page_text(list, !walk->begun);
	walk->begun = true;
	free(walk->after);
	walk->after = goes_on ? xstrdup(session->next_page) : NULL;
	protobuf_c_message_free_unpacked(&list->base, NULL);
	return goes_on;
}

/* --status, checked here: the server's own word for it is one of Java's. */
static bool
check_status(const struct arguments *args)
{
	static const char *const statuses[] = {
		"RUNNING", "COMPLETED", "FAILED", "CANCELLED", "COMPENSATING", "COMPENSATED",
		"COMPENSATION_FAILED"
	};
	const char *status = options_value(args, "status");

	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]) && status != NULL; i++)
	{
		if (strcasecmp(statuses[i], status) == 0)
			return true;
	}
	if (status != NULL)
		complain_text(EXIT_USAGE, "unknown status '%s'; use RUNNING, COMPLETED, FAILED, CANCELLED,"
					  " COMPENSATING, COMPENSATED or COMPENSATION_FAILED", status);
	return status == NULL;
}

static enum exit_status
run_list(struct session *session, const struct arguments *args)
{
	struct walk walk = {.request = PB_INIT(LIST_INSTANCES_REQUEST), .all = options_has(args, "all")};
	struct wig_error err;
	int64_t		limit = DEFAULT_LIMIT;
	enum exit_status status;

	if (!options_number(args, "limit", 1, INT32_MAX, &limit, &err))
		return complain(EXIT_USAGE, NULL, &err);
	if (!check_status(args))
		return EXIT_USAGE;
	walk.request.limit = (int32_t) limit;
	if (options_has(args, "workflow"))
	{
		walk.request.has_workflow_case = COM__WIGGLE__PROTO__LIST_INSTANCES_REQUEST__HAS_WORKFLOW_WORKFLOW;
		walk.request.workflow = (char *) options_value(args, "workflow");
	}
	if (options_has(args, "status"))
	{
		walk.request.has_status_case = COM__WIGGLE__PROTO__LIST_INSTANCES_REQUEST__HAS_STATUS_STATUS;
		walk.request.status = (char *) options_value(args, "status");
	}
	if (options_has(args, "correlation-id"))
	{
		walk.request.has_correlation_id_case =
			COM__WIGGLE__PROTO__LIST_INSTANCES_REQUEST__HAS_CORRELATION_ID_CORRELATION_ID;
		walk.request.correlation_id = (char *) options_value(args, "correlation-id");
	}
	walk.after = xstrdup(FIRST_PAGE);
	while (list_page(session, &walk, &status))
		;
	free(walk.after);
	return status;
}

/* ---- signal ---- */

static enum exit_status
run_signal(struct session *session, const struct arguments *args)
{
	const struct client_options once = {.once = true};
	PB(SignalInstanceRequest) request = PB_INIT(SIGNAL_INSTANCE_REQUEST);
	const char *payload = options_value(args, "payload");
	struct buf	value = BUF_INIT;
	struct buf	out = BUF_INIT;
	ProtobufCMessage *reply;
	struct wig_error err;
	enum grpc_status status;

	if (payload != NULL && !source_value(payload, &value, &err))
		return complain_text(EXIT_USAGE, "--payload: %s", err.message);
	request.instance_id = (char *) args->words[0];
	request.signal = (char *) args->words[1];
	request.payload.data = value.data;
	request.payload.len = value.len;
	reply = session_call(session, "SignalInstance", &request.base, PB_TYPE(ack), &once, &status);
	buf_free(&value);
	if (reply == NULL)
		return status_exit(status);
	protobuf_c_message_free_unpacked(reply, NULL);
	if (session->json)
	{
		json_open(&out, NULL, '{');
		json_text(&out, "instance_id", args->words[0]);
		json_text(&out, "signal", args->words[1]);
		json_close(&out, '}');
		print_buf(&out);
	}
	else
		printf("signalled %s\n", args->words[0]);
	buf_free(&out);
	return EXIT_DONE;
}

/* ---- cancel ---- */

static enum exit_status
run_cancel(struct session *session, const struct arguments *args)
{
	PB(CancelInstanceRequest) request = PB_INIT(CANCEL_INSTANCE_REQUEST);
	PB(CancelInstanceResponse) *reply;
	PB(InstanceDetail) *detail;
	const char *ended;
	enum exit_status looked;
	struct buf	out = BUF_INIT;
	enum grpc_status status;

	session->subject = args->words[0];
	request.instance_id = (char *) args->words[0];
	if (options_has(args, "reason"))
		request.reason = (char *) options_value(args, "reason");
	reply = (PB(CancelInstanceResponse) *)
		session_call(session, "CancelInstance", &request.base,
					 PB_TYPE(cancel_instance_response), NULL, &status);
	if (reply == NULL)
		return status_exit(status);

	/* The answer is the same for one that had ended before. */
	detail = fetch(session, args->words[0], &looked);
	ended = detail == NULL ? "" : detail->instance->status;
	if (session->json)
	{
		json_open(&out, NULL, '{');
		json_text(&out, "cancelled", reply->cancelled);
		json_text(&out, "status", detail == NULL ? NULL : ended);
		json_close(&out, '}');
		print_buf(&out);
	}
	else if (strcmp(ended, "COMPLETED") == 0 || strcmp(ended, "FAILED") == 0)
		printf("%s had already ended: %s\n", reply->cancelled, ended);
	else
		printf("cancelled %s\n", reply->cancelled);
	buf_free(&out);
	if (detail != NULL)
		protobuf_c_message_free_unpacked(&detail->base, NULL);
	protobuf_c_message_free_unpacked(&reply->base, NULL);
	return EXIT_DONE;
}
