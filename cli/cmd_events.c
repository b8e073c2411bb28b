/*
 * cmd_events.c
 *	  wiggle events: read the feed in a consumer's name.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output.h"
#include "session.h"
#include "show.h"

#define DEFAULT_MAX		100
#define MAX_BATCH		1000	/* as many as the server gives in one answer */
#define FOLLOW_WAIT_MS	15000
#define FOLLOW_TIMEOUT_MS (FOLLOW_WAIT_MS + 15000)
#define ERROR_PAUSE_MS	2000

static enum exit_status run_events(struct session *session, const struct arguments *args);

static const struct option events_options[] = {
	{"consumer", 0, "NAME", "in whose name to read; each name has its own place in the feed"},
	{"from", 0, "start|now|N", "where a new name begins: at the start, now (default), or after entry N"},
	{"follow", 'f', NULL, "go on and print what comes; acknowledges what it has printed"},
	{"max", 'n', "N", "at most so many entries (default 100; with --follow without end)"},
	{"ack", 0, NULL, "acknowledge what was printed, so that it is not shown again"},
	{"forget", 0, NULL, "remove the name with its place, instead of reading"},
	{NULL, 0, NULL, NULL}
};

const struct command command_events = {
	.name = "events",
	.words = "",
	.summary = "read the events of all instances in order",
	.details =
	"The server keeps a place in the feed for each consumer's name. Reading does not move\n"
	"it, acknowledging does: with --ack or --follow, after the entries have been printed.\n"
	"Whatever was printed and not yet acknowledged when this command dies is printed again\n"
	"by the next one, so nothing is lost. Without them one answer of the server is shown:\n"
	"the oldest entries, up to 1000 and to 4 MB of them. Entries that some consumer has not\n"
	"acknowledged are not cleared away: do not leave names behind, remove them with --forget\n"
	"when nobody reads in their name any more.\n"
	"\n"
	"--from counts when the name is new; N is an entry's number on a server with one shard.\n"
	"\n"
	"With --json there is one object a line:\n"
	"  seq, shard, created_at, type, instance_id, workflow, version, correlation_id,\n"
	"  node_id, payload, cursor\n"
	"\n"
	"--follow rides out restarts of the server; it ends with --max, a signal, or when its\n"
	"output is closed.\n"
	"\n"
	"Examples:\n"
	"  wiggle events --consumer me --from start\n"
	"  wiggle events --consumer mailer --follow --json | ./send-mails\n"
	"  wiggle events --consumer me --forget\n",
	.options = events_options,
	.calls = true,
	.run = run_events
};

struct reading
{
	const char *consumer;
	int64_t		start_from;
	int64_t		left;			/* entries still to be printed */
	bool		follow;
	bool		ack;
};

/* ---- printing ---- */

static void
put_event(struct buf *out, const PB(EventView) *event)
{
	struct buf	payload = BUF_INIT;
	char		created[40];

	format_time(event->created_at, created);
	if (event->payload.len > 0)
		show_value(&payload, &event->payload);
	else
		buf_text(&payload, "{}");
	json_open(out, NULL, '{');
	json_number(out, "seq", event->seq);
	json_number(out, "shard", event->shard);
	json_text(out, "created_at", created);
	json_text(out, "type", event->type);
	json_text(out, "instance_id", event->instance_id);
	json_text(out, "workflow", event->workflow);
	json_number(out, "version", event->version);
	json_text(out, "correlation_id", event->correlation_id[0] == '\0' ? NULL : event->correlation_id);
	json_text(out, "node_id", event->node_id[0] == '\0' ? NULL : event->node_id);
	json_raw(out, "payload", (const char *) payload.data, payload.len);
	json_text(out, "cursor", event->cursor);
	json_close(out, '}');
	buf_free(&payload);
}

/* One line for a person. A stream has no widths to align to but usual ones. */
static void
describe_event(struct buf *out, const PB(EventView) *event)
{
	char		created[40];

	format_time(event->created_at, created);
	buf_printf(out, "%-24s  %-14s  %-12s  %s", created, event->type, event->workflow, event->instance_id);
	if (event->node_id[0] != '\0')
		buf_printf(out, "  %s", event->node_id);
	if (event->payload.len > 0)
	{
		buf_text(out, "  ");
		show_value(out, &event->payload);
	}
}

/* Print a batch; false when it cannot be written. */
static bool
print_events(const struct session *session, const PB(EventList) *list)
{
	struct buf	out = BUF_INIT;

	for (size_t i = 0; i < list->n_events; i++)
	{
		buf_reset(&out);
		if (session->json)
			put_event(&out, list->events[i]);
		else
			describe_event(&out, list->events[i]);
		print_buf(&out);
	}
	buf_free(&out);
	return fflush(stdout) == 0 && !ferror(stdout);
}

/* ---- reading ---- */

static PB(EventList) *
poll_events(struct session *session, const struct reading *reading, enum grpc_status *status)
{
	const struct client_options options = {.timeout_ms = FOLLOW_TIMEOUT_MS};
	PB(PollEventsRequest) request = PB_INIT(POLL_EVENTS_REQUEST);

	request.consumer = (char *) reading->consumer;
	request.max = (int32_t) (reading->left < MAX_BATCH ? reading->left : MAX_BATCH);
	request.wait_millis = reading->follow ? FOLLOW_WAIT_MS : 0;
	request.start_from = reading->start_from;
	return (PB(EventList) *) session_call(session, "PollEvents", &request.base, PB_TYPE(event_list),
										  &options, status);
}

static enum grpc_status
ack_events(struct session *session, const struct reading *reading, const char *cursor)
{
	PB(AckEventsRequest) request = PB_INIT(ACK_EVENTS_REQUEST);
	ProtobufCMessage *reply;
	enum grpc_status status;

	request.consumer = (char *) reading->consumer;
	request.acked_cursor = (char *) cursor;
	reply = session_call(session, "AckEvents", &request.base, PB_TYPE(ack), NULL, &status);
	if (reply != NULL)
		protobuf_c_message_free_unpacked(reply, NULL);
	return status;
}

/* Print and acknowledge one batch; *over when there is no more to read. */
static enum exit_status
take_batch(struct session *session, struct reading *reading, PB(EventList) *list, bool *over)
{
	enum grpc_status status = GRPC_OK;

	if (!print_events(session, list))
	{
		*over = true;
		return complain_text(EXIT_REFUSED, "cannot write the output");
	}
	reading->left -= (int64_t) list->n_events;
	if (reading->ack && list->n_events > 0)
		status = ack_events(session, reading, list->events[list->n_events - 1]->cursor);
	*over = reading->left <= 0 ||
		(!reading->follow && (list->n_events == 0 || !reading->ack));
	if (status == GRPC_OK && !*over && list->retry_after_millis > 0)
		session_pause(session, (uint64_t) list->retry_after_millis);
	return status == GRPC_OK ? EXIT_DONE : status_exit(status);
}

static enum exit_status
read_events(struct session *session, struct reading *reading)
{
	bool		over = false;
	enum exit_status result = EXIT_DONE;

	while (!over)
	{
		enum grpc_status status;
		PB(EventList) *list = poll_events(session, reading, &status);

		if (list == NULL)
			result = status_exit(status);
		else
		{
			result = take_batch(session, reading, list, &over);
			protobuf_c_message_free_unpacked(&list->base, NULL);
		}
		if (result != EXIT_DONE && (!reading->follow || result != EXIT_UNREACHABLE))
			return result;
		if (result != EXIT_DONE && !over)
			session_pause(session, ERROR_PAUSE_MS);
	}
	return result;
}

static enum exit_status
forget(struct session *session, const char *consumer)
{
	PB(ForgetConsumerRequest) request = PB_INIT(FORGET_CONSUMER_REQUEST);
	PB(ForgetConsumerResponse) *reply;
	struct buf	out = BUF_INIT;
	enum grpc_status status;
	bool		existed;

	request.consumer = (char *) consumer;
	reply = (PB(ForgetConsumerResponse) *)
		session_call(session, "ForgetConsumer", &request.base, PB_TYPE(forget_consumer_response), NULL,
					 &status);
	if (reply == NULL)
		return status_exit(status);
	existed = reply->existed;
	protobuf_c_message_free_unpacked(&reply->base, NULL);
	if (!existed)
		return complain_text(EXIT_REFUSED, "there is no consumer '%s'", consumer);
	if (session->json)
	{
		json_open(&out, NULL, '{');
		json_text(&out, "forgotten", consumer);
		json_close(&out, '}');
		print_buf(&out);
		buf_free(&out);
	}
	else
		printf("forgot %s\n", consumer);
	return EXIT_DONE;
}

/* "start", "now" or an entry's number, as the protocol says it. */
static bool
take_from(const struct arguments *args, int64_t *start_from, struct wig_error *err)
{
	const char *from = options_value(args, "from");

	*start_from = 0;
	if (from == NULL || strcmp(from, "now") == 0)
		return true;
	if (strcmp(from, "start") == 0)
	{
		*start_from = -1;
		return true;
	}
	if (from[strspn(from, "0123456789")] != '\0')
		return wig_fail(err, "--from must be start, now or an entry's number, got '%s'", from);
	return options_number(args, "from", 1, INT64_MAX, start_from, err);
}

static enum exit_status
run_events(struct session *session, const struct arguments *args)
{
	struct reading reading = {
		.consumer = options_value(args, "consumer"),
		.follow = options_has(args, "follow")
	};
	struct wig_error err;

	reading.left = reading.follow ? INT64_MAX : DEFAULT_MAX;
	reading.ack = reading.follow || options_has(args, "ack");
	if (reading.consumer == NULL)
		return complain_text(EXIT_USAGE, "events needs --consumer NAME: the server keeps a place in the feed "
							 "for each name");
	if (options_has(args, "forget") &&
		(reading.ack || options_has(args, "from") || options_has(args, "max")))
		return complain_text(EXIT_USAGE, "--forget goes with --consumer alone");
	if (options_has(args, "forget"))
		return forget(session, reading.consumer);
	if (!take_from(args, &reading.start_from, &err) ||
		!options_number(args, "max", 1, INT64_MAX, &reading.left, &err))
		return complain(EXIT_USAGE, NULL, &err);
	if (!reading.ack && reading.left > MAX_BATCH)
		return complain_text(EXIT_USAGE, "--max over %d needs --ack or --follow: without them there is one answer of "
							 "the server, and the next one would begin at the same place", MAX_BATCH);
	return read_events(session, &reading);
}
