/*
 * stream.c
 *	  The life of a call on its stream, and call.h for the handlers.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "connect.h"
#include "gate.h"
#include "grpc_gzip.h"
#include "h2.h"
#include "metrics.h"
#include "pressure.h"
#include "utf8.h"

/* A request must be complete within this time of its headers. */
#define RECEIVE_MS			60000
/* Replies of up to this size are never refused for want of room. */
#define SMALL_REPLY			16384
/* Longest message of a status, before it is percent-coded. */
#define MESSAGE_BYTES		1024
/* A handler that asked call_has_room stays below this many times the bound. */
#define UNSENT_EXCESS		4
/*
 * Every client says that it takes gzip; one that sends it tells that its link is
 * narrow. To the others only such replies are compressed that cost more to carry.
 */
#define GZIP_REPLY			65536
#define GZIP_REPLY_IN_KIND	1024

#define NO_TIMEOUT			UINT64_MAX
#define METHODS				64

static size_t request_bytes;	/* of all calls */

static struct metric *request_gauge;
static struct metric *open_gauge;

/* What is counted of a method; NULL: of calls to none that there is. */
static struct counted
{
	const struct method *method;
	const char *name;			/* NULL: the entry is free */
	struct metric *seconds;
	struct metric *outcomes[GRPC_UNAUTHENTICATED + 1];
}			counted[METHODS];

/* ------------------------------------------------------------- accounting */

static struct counted *
counted_of(const struct method *method)
{
	char		labels[96];
	int			i = 0;

	while (i < METHODS - 1 && counted[i].name != NULL && counted[i].method != method)
		i++;
	if (counted[i].name == NULL)
	{
		counted[i].method = method;
		counted[i].name = method != NULL ? method->name : "other";
		snprintf(labels, sizeof(labels), "method=\"%s\"", counted[i].name);
		if (method != NULL)
			counted[i].seconds = metric_histogram("wiggle_proxy_call_seconds", labels,
												  "Time from a call's headers to its answer.");
	}
	return &counted[i];
}

static struct metric *
answers(const char *method, const char *code)
{
	char		labels[128];

	snprintf(labels, sizeof(labels), "method=\"%s\",code=\"%s\"", method, code);
	return metric_counter("wiggle_proxy_calls_total", labels, "Calls answered, or ended by the client (CANCELLED).");
}

static struct metric *
outcome_of(struct counted *of, enum grpc_status status)
{
	static const char *const codes[] = {
		"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
		"ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
		"ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS",
		"UNAUTHENTICATED"
	};

	if (of->outcomes[status] == NULL)
		of->outcomes[status] = answers(of->name, codes[status]);
	return of->outcomes[status];
}

static void
count_answer(const struct call *call)
{
	struct counted *of = counted_of(call->method);

	metric_add(outcome_of(of, call->status), 1);
	if (call->method != NULL && call->shape == METHOD_UNARY)
		metric_observe(of->seconds, uv_hrtime() / 1000 - call->started_us);
}

static void
charge_body(struct call *call)
{
	size_t		now = call->frame.body.cap;

	request_bytes += now - call->charged;
	call->charged = now;
	metric_set(request_gauge, (int64_t) request_bytes);
	pressure_held(PRESSURE_REQUESTS, request_bytes);
}

/* Give back what was held from the client while too much of it waited. */
static void
pay_window(struct conn *conn)
{
	if (conn == NULL || conn->owed == 0 || conn->waiting > (size_t) config.max_request_conn_bytes)
		return;
	for (struct call *c = conn->calls; c != NULL; c = c->next)
	{
		if (c->owed > 0)
			h2_consume(c, c->owed);
		c->owed = 0;
	}
	conn->owed = 0;
}

static void
free_body(struct call *call)
{
	if (call->state == CALL_OWNED && call->conn != NULL)
		call->conn->waiting -= call->frame.body.len;
	buf_free(&call->frame.body);
	charge_body(call);
	pay_window(call->conn);
}

/* The call leaves its handler, or never had one. */
static void
set_answered(struct call *call)
{
	free_body(call);
	call->state = CALL_ANSWERED;
	call->cancelled = NULL;
	deadline_clear(&call->deadline);
}

/* The reply is set: to the wire with it. */
static void
submit(struct call *call)
{
	conn_unsent_add(call->conn, call->reply_len - call->reply_sent);
	if (call->conn == NULL)
		call->answered(call);
	else if (call->protocol == PROTOCOL_CONNECT)
		h2_submit_plain(call);
	else
		h2_submit_reply(call);
}

static void
refuse(struct call *call, enum grpc_status status, uint16_t http_status, const char *message)
{
	struct buf	body = BUF_INIT;

	set_answered(call);
	call->status = status;
	count_answer(call);
	if (call->protocol == PROTOCOL_CONNECT)
	{
		call->http_status = http_status != 200 ? http_status : connect_http_status(status);
		connect_error(status, message, &body);
		call->reply = buf_detach(&body, &call->reply_len);
		submit(call);
	}
	else if (!call->streaming)
		h2_submit_refusal(call, http_status, message);
	else
	{
		call->trailer = xstrdup(message);
		h2_resume(call);
	}
}

static void
refuse_args(struct call *call, enum grpc_status status, const char *fmt, va_list args)
{
	char		message[MESSAGE_BYTES + 1];

	utf8_vformat(message, sizeof(message), fmt, args);
	refuse(call, status, 200, message);
}

static void
refuse_fmt(struct call *call, enum grpc_status status, const char *fmt,...)
			__attribute__((format(printf, 3, 4)));

static void
refuse_fmt(struct call *call, enum grpc_status status, const char *fmt,...)
{
	va_list		args;

	va_start(args, fmt);
	refuse_args(call, status, fmt, args);
	va_end(args);
}

/* -------------------------------------------------------------- life span */

struct call *
stream_open(struct conn *conn, int32_t id, const char *peer)
{
	struct call *call = xcalloc(1, sizeof(*call));

	call->conn = conn;
	call->id = id;
	call->peer = peer != NULL ? xstrdup(peer) : NULL;
	call->timeout_ms = NO_TIMEOUT;
	call->started_us = uv_hrtime() / 1000;
	metric_add(open_gauge, 1);
	if (conn == NULL)
	{
		call->protocol = PROTOCOL_CONNECT;
		return call;
	}
	call->next = conn->calls;
	if (conn->calls != NULL)
		conn->calls->prev = call;
	conn->calls = call;
	conn->ncalls++;
	return call;
}

/* Tell the handler that the call ends without its answer. */
static void
cancel(struct call *call)
{
	call_cancel_fn cancelled = call->cancelled;

	call->cancelled = NULL;
	if (call->state == CALL_OWNED && cancelled != NULL)
		cancelled(call, call->cancel_arg);
}

void
stream_cancel(struct call *call)
{
	if (call->state == CALL_ANSWERED)
		return;
	cancel(call);
	set_answered(call);
	call->status = GRPC_CANCELLED;
	count_answer(call);
}

void
stream_half_closed(struct call *call)
{
	if (call->state != CALL_OWNED || !method_waits(call->method))
		return;
	cancel(call);
	refuse(call, GRPC_CANCELLED, 200, "a poll waits for clients that keep their sending half open;"
		   " this one has closed it");
}

void
stream_close(struct call *call)
{
	struct conn *conn = call->conn;

	stream_cancel(call);
	if (call->owed > 0)
	{
		conn->owed -= call->owed;
		h2_consume_closed(conn, call->owed);
	}
	conn_unsent_taken(conn, call->reply_len - call->reply_sent);
	free(call->reply);
	free(call->trailer);
	free(call->missing);
	free(call->after);
	free(call->next_page);
	free(call->caller);
	free(call->peer);
	metric_add(open_gauge, -1);
	if (call->prev != NULL)
		call->prev->next = call->next;
	else if (conn != NULL)
		conn->calls = call->next;
	if (call->next != NULL)
		call->next->prev = call->prev;
	if (conn != NULL)
		conn->ncalls--;
	free(call);
}

/* ---------------------------------------------------------------- headers */

/* A body that is too long to be thrown away: twice as much as a message. */
static bool
is_endless(uint64_t len)
{
	return len > 2 * (uint64_t) config.max_message_bytes;
}

static void deadline_passed(struct deadline *d);

/* For the next message of the request, at most up to the call's deadline. */
static void
await_message(struct call *call)
{
	uint64_t	by = loop_now() + RECEIVE_MS;

	deadline_set(&call->deadline, call->deadline_at != 0 && call->deadline_at < by ? call->deadline_at : by,
				 deadline_passed);
}

void
stream_headers_end(struct call *call, bool end_stream)
{
	if (call->state != CALL_HEADERS)
		return;
	call->state = CALL_BODY;
	stream_check_headers(call);
	if (call->refusal != NULL && (call->protocol == PROTOCOL_GRPC || end_stream || is_endless(call->content_length)))
	{
		refuse(call, call->refusal_status, call->http_status, call->refusal);
		return;
	}
	if (call->timeout_ms != NO_TIMEOUT)
		call->deadline_at = loop_now() + call->timeout_ms;
	await_message(call);
	if (end_stream)
		stream_end(call);
}

/* ------------------------------------------------------------------- body */

/* Connect's body is the message, or of no interest any more. */
static enum grpc_frame_state
take_bytes(struct call *call, const uint8_t *data, size_t len)
{
	struct buf *body = &call->frame.body;
	size_t		max = (size_t) config.max_message_bytes;

	if (call->protocol == PROTOCOL_GRPC)
		return grpc_frame_feed(&call->frame, data, len, max);
	if (call->refusal != NULL)
	{
		call->discarded += len;
		return is_endless(call->discarded) ? GRPC_FRAME_TOO_LARGE : GRPC_FRAME_PARTIAL;
	}
	if (len > max - body->len)
	{
		stream_refuse(call, GRPC_RESOURCE_EXHAUSTED, 200, REQUEST_TOO_LARGE);
		buf_free(body);
		return GRPC_FRAME_PARTIAL;
	}
	buf_append(body, data, len);
	return GRPC_FRAME_PARTIAL;
}

static void
refuse_frame(struct call *call, enum grpc_frame_state state)
{
	switch (state)
	{
		case GRPC_FRAME_TOO_LARGE:
			if (call->protocol == PROTOCOL_CONNECT)
				refuse(call, GRPC_RESOURCE_EXHAUSTED, 200, REQUEST_TOO_LARGE);
			else
				refuse_fmt(call, GRPC_RESOURCE_EXHAUSTED,
						   "the request has %u bytes, more than the %lld that are taken (WIGGLE_MAX_MESSAGE_BYTES)",
						   call->frame.length, (long long) config.max_message_bytes);
			break;
		case GRPC_FRAME_COMPRESSED:
			refuse(call, GRPC_INTERNAL, 200, "the message is marked as compressed, but no grpc-encoding is named");
			break;
		case GRPC_FRAME_BAD_FLAG:
			refuse(call, GRPC_INTERNAL, 200, "the request does not begin with a gRPC message prefix");
			break;
		default:
			refuse(call, GRPC_INTERNAL, 200, "a unary call has one request message, but more came");
			break;
	}
}

/* The frame's state after the bytes; false when the call was refused for them. */
static bool
feed(struct call *call, const uint8_t *data, size_t len)
{
	enum grpc_frame_state state = take_bytes(call, data, len);

	charge_body(call);
	if (state > GRPC_FRAME_WHOLE)
		refuse_frame(call, state);
	else if (request_bytes > (size_t) config.max_request_bytes)
		refuse(call, GRPC_RESOURCE_EXHAUSTED, 200,
			   "the server holds too many requests (WIGGLE_MAX_REQUEST_BYTES); try again later");
	return call->state == CALL_BODY;
}

/* A whole compressed message becomes what it was; false when the call was refused. */
static bool
inflate_body(struct call *call)
{
	struct buf *body = &call->frame.body;
	struct buf	plain = BUF_INIT;

	switch (grpc_gunzip(body->data, body->len, (size_t) config.max_message_bytes, &plain))
	{
		case GUNZIP_DONE:
			buf_free(body);
			*body = plain;
			charge_body(call);
			return true;
		case GUNZIP_TOO_LARGE:
			refuse_fmt(call, GRPC_RESOURCE_EXHAUSTED,
					   "the request has more than the %lld bytes that are taken (WIGGLE_MAX_MESSAGE_BYTES), uncompressed",
					   (long long) config.max_message_bytes);
			return false;
		case GUNZIP_MALFORMED:
			break;
	}
	refuse(call, GRPC_INTERNAL, 200, "the request message cannot be uncompressed: it is no whole gzip stream");
	return false;
}

static bool
take_body(struct call *call)
{
	return !grpc_frame_compressed(&call->frame) || inflate_body(call);
}

/* Each whole message of a chat is answered as it comes. Chats are open to everybody
 * (method.c): the gate may have to wait. */
static void
chat(struct call *call, const uint8_t *data, size_t len)
{
	while (len > 0)
	{
		size_t		missing = grpc_frame_missing(&call->frame);
		size_t		n = len < missing ? len : missing;

		if (!feed(call, data, n))
			return;
		data += n;
		len -= n;
		if (call->frame.state != GRPC_FRAME_WHOLE)
			continue;
		if (take_body(call))
			call->method->start(call);
		if (call->state != CALL_BODY)
			return;
		grpc_frame_reset(&call->frame);
		charge_body(call);
		await_message(call);
	}
}

static void
end_chat(struct call *call)
{
	set_answered(call);
	call->status = GRPC_OK;
	count_answer(call);
	if (call->streaming)
		h2_resume(call);
	else
		h2_submit_reply(call);
}

void
stream_drain(struct conn *conn)
{
	for (struct call *c = conn->calls; c != NULL; c = c->next)
		if (c->state == CALL_BODY && c->shape == METHOD_CHAT)
			refuse(c, GRPC_UNAVAILABLE, 200, "the server is about to end");
}

void
stream_data(struct call *call, const uint8_t *data, size_t len)
{
	struct conn *conn = call->conn;

	if (call->state == CALL_BODY && conn != NULL && conn->waiting > (size_t) config.max_request_conn_bytes)
	{
		call->owed += len;
		conn->owed += len;
	}
	else if (conn != NULL)
		h2_consume(call, len);
	if (call->state != CALL_BODY)
		return;
	if (call->shape == METHOD_CHAT)
		chat(call, data, len);
	else
		feed(call, data, len);
}

static bool
unsent_below(const struct conn *conn, size_t bytes, size_t times)
{
	size_t		mine = bytes + (conn != NULL ? conn->unsent + conn->writing : 0);

	return mine <= times * (size_t) config.max_unsent_conn_bytes &&
		conn_unsent_total() + bytes <= times * (size_t) config.max_unsent_bytes;
}

void
stream_end(struct call *call)
{
	if (call->state != CALL_BODY)
		return;
	if (call->refusal != NULL)
	{
		refuse(call, call->refusal_status, call->http_status, call->refusal);
		return;
	}
	if (call->shape == METHOD_CHAT && call->frame.have == 0)
	{
		end_chat(call);
		return;
	}
	if (call->protocol == PROTOCOL_GRPC && call->frame.state != GRPC_FRAME_WHOLE)
	{
		refuse(call, GRPC_INTERNAL, 200, call->frame.have == 0
			   ? "a unary call has one request message, but none came"
			   : "the request message is shorter than its prefix says");
		return;
	}
	if (call->conn != NULL && call->conn->unsent > SMALL_REPLY && !unsent_below(call->conn, 0, 1))
	{
		refuse(call, GRPC_RESOURCE_EXHAUSTED, 200,
			   "too many replies wait to be read "
			   "(WIGGLE_MAX_UNSENT_CONN_BYTES, WIGGLE_MAX_UNSENT_BYTES); read them first");
		return;
	}
	if (!take_body(call))
		return;
	call->state = CALL_OWNED;
	if (call->conn != NULL)
		call->conn->waiting += call->frame.body.len;
	if (call->deadline_at != 0)
		deadline_set(&call->deadline, call->deadline_at, deadline_passed);
	else
		deadline_clear(&call->deadline);
	gate_start(call, call->method);
}

static void
deadline_passed(struct deadline *d)
{
	struct call *call = deadline_owner(d, struct call, deadline);

	if (call->deadline_at != 0 && loop_now() >= call->deadline_at)
	{
		cancel(call);
		refuse(call, GRPC_DEADLINE_EXCEEDED, 200, "the call's deadline passed on the server");
	}
	else
		refuse_fmt(call, GRPC_DEADLINE_EXCEEDED, "the request was not complete within %d seconds", RECEIVE_MS / 1000);
}

/* ----------------------------------------------------------------- call.h */

const uint8_t *
call_request(const struct call *call, size_t *len)
{
	*len = call->frame.body.len;
	return call->frame.body.data;
}

enum call_format
call_format(const struct call *call)
{
	return call->format;
}

bool
call_takes_part(const struct call *call)
{
	return call->takes_part;
}

void
call_missing(struct call *call, const char *shards)
{
	free(call->missing);
	call->missing = xstrdup(shards);
}

const char *
call_after(const struct call *call)
{
	return call->after;
}

void
call_next(struct call *call, const char *cursor)
{
	free(call->next_page);
	call->next_page = xstrdup(cursor);
}

void
call_drop_request(struct call *call)
{
	free_body(call);
}

uint64_t
call_deadline(const struct call *call)
{
	return call->deadline_at;
}

int
call_siblings(const struct call *call)
{
	int			n = 0;

	for (const struct call *c = call->conn->calls; c != NULL; c = c->next)
		n += c->method == call->method && c->state != CALL_ANSWERED;
	return n;
}

void
call_on_cancel(struct call *call, call_cancel_fn cancelled, void *arg)
{
	call->cancelled = cancelled;
	call->cancel_arg = arg;
}

const struct credential *
call_credential(struct call *call)
{
	credential_from_subject(&call->credential, call->peer);
	return &call->credential;
}

void
call_set_caller(struct call *call, const char *id)
{
	free(call->caller);
	call->caller = xstrdup(id);
}

const char *
call_caller(const struct call *call)
{
	return call->caller;
}

bool
call_has_room(const struct call *call, size_t bytes)
{
	return unsent_below(call->conn, bytes, 1);
}

/* Does a reply fit beside those that the client has yet to read? */
static bool
fits(const struct call *call, size_t len)
{
	return len <= UINT32_MAX && (len <= SMALL_REPLY || (call->conn != NULL && call->conn->unsent == 0) ||
								 unsent_below(call->conn, len, UNSENT_EXCESS));
}

static void
refuse_unread(struct call *call, uint8_t *message, size_t len)
{
	free(message);
	refuse_fmt(call, GRPC_RESOURCE_EXHAUSTED,
			   "a reply of %zu bytes does not fit beside those that wait to be read", len);
}

static void
write_prefix(uint8_t *message, bool compressed, size_t len)
{
	message[0] = compressed;
	message[1] = (uint8_t) (len >> 24);
	message[2] = (uint8_t) (len >> 16);
	message[3] = (uint8_t) (len >> 8);
	message[4] = (uint8_t) len;
}

static void
compress_reply(struct call *call, uint8_t **message, size_t *len)
{
	struct buf	gzip = BUF_INIT;

	buf_reserve(&gzip, CALL_PREFIX);
	gzip.len = CALL_PREFIX;
	call->gzipped = grpc_gzip(*message + CALL_PREFIX, *len, &gzip);
	if (!call->gzipped)
	{
		buf_free(&gzip);
		return;
	}
	free(*message);
	*len = gzip.len - CALL_PREFIX;
	*message = gzip.data;
}

void
call_reply(struct call *call, uint8_t *message, size_t len)
{
	if (!fits(call, len))
	{
		refuse_unread(call, message, len);
		return;
	}
	set_answered(call);
	if (call->protocol == PROTOCOL_GRPC && call->accepts_gzip &&
		len >= (call->frame.takes_compressed ? GZIP_REPLY_IN_KIND : GZIP_REPLY))
		compress_reply(call, &message, &len);
	write_prefix(message, call->gzipped, len);
	call->reply = message;
	call->reply_len = CALL_PREFIX + len;
	call->reply_sent = call->protocol == PROTOCOL_GRPC ? 0 : CALL_PREFIX;
	call->status = GRPC_OK;
	call->http_status = 200;
	count_answer(call);
	submit(call);
}

bool
call_send(struct call *call, uint8_t *message, size_t len)
{
	if (!unsent_below(call->conn, len, 1))
	{
		refuse_unread(call, message, len);
		return false;
	}
	write_prefix(message, false, len);
	len += CALL_PREFIX;
	if (call->reply == NULL)
		call->reply = message;
	else
	{
		call->reply = xrealloc(call->reply, call->reply_len + len);
		memcpy(call->reply + call->reply_len, message, len);
		free(message);
	}
	call->reply_len += len;
	conn_unsent_add(call->conn, len);
	if (call->streaming)
		h2_resume(call);
	else
		h2_submit_reply(call);
	call->streaming = true;
	return true;
}

void
call_fail(struct call *call, enum grpc_status status, const char *fmt,...)
{
	va_list		args;

	va_start(args, fmt);
	refuse_args(call, status, fmt, args);
	va_end(args);
}

size_t
stream_request_bytes(void)
{
	return request_bytes;
}

void
stream_setup(void)
{
	request_gauge = metric_gauge("wiggle_proxy_request_bytes", NULL, "Request messages held in memory.");
	open_gauge = metric_gauge("wiggle_proxy_streams", NULL, "Streams that are open.");

	/* alerts see a counter grow only from a value that they have seen: also from none to the first */
	for (size_t i = 0; method_name(i) != NULL; i++)
		answers(method_name(i), "INTERNAL");
}
