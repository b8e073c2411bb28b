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
#include "grpc_gzip.h"
#include "grpc_header.h"
#include "h2.h"
#include "metrics.h"

/* A request must be complete within this time of its headers. */
#define RECEIVE_MS			60000
/* Header fields beyond so many times the bound are not even counted on. */
#define HEADER_EXCESS		4
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
#define TOO_LARGE			"the request has more bytes than are taken (WIGGLE_MAX_MESSAGE_BYTES)"
#define METHODS				64

static size_t request_bytes;	/* of all calls */

static struct metric *outcomes[GRPC_UNAUTHENTICATED + 1];
static struct metric *request_gauge;
static struct metric *open_gauge;
static struct
{
	const struct method *method;
	struct metric *seconds;
}			durations[METHODS];

/* ------------------------------------------------------------- accounting */

static struct metric *
duration_of(const struct method *method)
{
	char		labels[96];
	int			i = 0;

	while (i < METHODS - 1 && durations[i].method != NULL && durations[i].method != method)
		i++;
	if (durations[i].method != method)
	{
		snprintf(labels, sizeof(labels), "method=\"%s\"", method->name);
		durations[i].method = method;
		durations[i].seconds = metric_histogram("wiggle_proxy_call_seconds", labels,
												"Time from a call's headers to its answer.");
	}
	return durations[i].seconds;
}

static void
count_answer(const struct call *call)
{
	metric_add(outcomes[call->status], 1);
	if (call->method != NULL && call->shape == METHOD_UNARY)
		metric_observe(duration_of(call->method), uv_hrtime() / 1000 - call->started_us);
}

static void
charge_body(struct call *call)
{
	size_t		now = call->frame.body.cap;

	request_bytes += now - call->charged;
	call->charged = now;
	metric_set(request_gauge, (int64_t) request_bytes);
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

/* A message that is cut is not cut within a character. */
static void
refuse_args(struct call *call, enum grpc_status status, const char *fmt, va_list args)
{
	char		message[MESSAGE_BYTES + 1];
	size_t		len = sizeof(message) - 1;

	if ((size_t) vsnprintf(message, sizeof(message), fmt, args) > len)
	{
		while (len > 0 && ((unsigned char) message[len - 1] & 0xc0) == 0x80)
			len--;
		if (len > 0 && (unsigned char) message[len - 1] >= 0xc0)
			message[len - 1] = '\0';
	}
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
stream_open(struct conn *conn, int32_t id)
{
	struct call *call = xcalloc(1, sizeof(*call));

	call->conn = conn;
	call->id = id;
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

static void
refuse_later(struct call *call, enum grpc_status status, uint16_t http_status, const char *message)
{
	if (call->refusal != NULL)
		return;
	call->refusal = message;
	call->refusal_status = status;
	call->http_status = http_status;
}

static void
take_path(struct call *call, const char *value, size_t len)
{
	const char *method;
	size_t		method_len;

	call->pathed = true;
	if (!grpc_path_split(value, len, &method, &method_len))
	{
		call->method = method_find_standard(value, len, &call->shape);
		call->grpc_only = call->method != NULL;
		if (call->method == NULL)
			refuse_later(call, GRPC_UNIMPLEMENTED, 404, "unknown service or method: this server has"
						 " com.wiggle.proto.WiggleControlPlane, grpc.health.v1.Health and grpc.reflection");
	}
	else if ((call->method = method_find(method, method_len)) == NULL || call->method->start == NULL)
		refuse_later(call, GRPC_UNIMPLEMENTED, 404,
					 "this server has no such method of com.wiggle.proto.WiggleControlPlane");
}

static void
take_encoding(struct call *call, const char *value, size_t len)
{
	if (len == 4 && memcmp(value, "gzip", 4) == 0)
		call->frame.takes_compressed = true;
	else if (len != 8 || memcmp(value, "identity", 8) != 0)
		refuse_later(call, GRPC_UNIMPLEMENTED, 200, "the grpc-encoding is neither identity nor gzip");
}

/* Who does not ask for gRPC is told what is wrong in the body. */
static void
take_type(struct call *call, const char *value, size_t len)
{
	if (call->conn != NULL && grpc_content_type_ok(value, len))
		call->typed = true;
	else if (connect_content_type(value, len, &call->format))
	{
		call->typed = true;
		call->protocol = PROTOCOL_CONNECT;
	}
	else if (!grpc_content_type_like(value, len))
		call->protocol = PROTOCOL_CONNECT;
}

/* A body that is too long to be thrown away: twice as much as a message. */
static bool
is_endless(uint64_t len)
{
	return len > 2 * (uint64_t) config.max_message_bytes;
}

/* Fields that only Connect gives a meaning. */
static void
check_connect(struct call *call)
{
	if (call->grpc_only)
	{
		call->method = NULL;
		call->shape = METHOD_UNARY;
		refuse_later(call, GRPC_UNIMPLEMENTED, 404, "this service is for gRPC alone");
	}
	if (call->encoded)
		refuse_later(call, GRPC_UNIMPLEMENTED, 200,
					 "compressed messages are not understood; send them with identity encoding");
	else if (call->content_length > (uint64_t) config.max_message_bytes)
		refuse_later(call, GRPC_RESOURCE_EXHAUSTED, 200, TOO_LARGE);
}

#define IS(literal) (name_len == sizeof(literal) - 1 && memcmp(name, literal, sizeof(literal) - 1) == 0)

bool
stream_header(struct call *call, const uint8_t *name, size_t name_len,
			  const uint8_t *value, size_t value_len)
{
	const char *text = (const char *) value;

	if (call->state != CALL_HEADERS)
		return true;
	call->header_bytes += name_len + value_len + 32;
	if (call->header_bytes > HEADER_EXCESS * (size_t) config.max_header_bytes)
		return false;
	if (call->header_bytes > (size_t) config.max_header_bytes)
		refuse_later(call, GRPC_RESOURCE_EXHAUSTED, 200,
					 "the call's metadata is too large (WIGGLE_MAX_HEADER_BYTES)");
	else if (IS(":method"))
	{
		if (value_len != 4 || memcmp(value, "POST", 4) != 0)
			refuse_later(call, GRPC_UNIMPLEMENTED, 405, "calls are POST requests");
	}
	else if (IS(":path"))
		take_path(call, text, value_len);
	else if (IS("content-type"))
		take_type(call, text, value_len);
	else if (IS("grpc-timeout"))
	{
		if (!grpc_timeout_parse(text, value_len, &call->timeout_ms))
			refuse_later(call, GRPC_INVALID_ARGUMENT, 200,
						 "grpc-timeout is not up to eight digits and a unit of H M S m u n");
	}
	else if (IS("grpc-encoding"))
		take_encoding(call, text, value_len);
	else if (IS("grpc-accept-encoding"))
		call->accepts_gzip = grpc_gzip_accepted(text, value_len);
	else if (IS("connect-timeout-ms"))
	{
		if (!connect_number(text, value_len, &call->timeout_ms))
			refuse_later(call, GRPC_INVALID_ARGUMENT, 200, "connect-timeout-ms is not up to ten digits");
	}
	else if (IS("connect-protocol-version"))
	{
		if (value_len != 1 || *value != '1')
			refuse_later(call, GRPC_INVALID_ARGUMENT, 200, "connect-protocol-version is not 1");
	}
	else if (IS("content-encoding"))
		call->encoded = value_len != 8 || memcmp(value, "identity", 8) != 0;
	else if (IS("content-length"))
	{
		if (!connect_number(text, value_len, &call->content_length))
			call->content_length = UINT64_MAX;
	}
	return true;
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
	/* What is wrong with the wrapping is told before what is wrong inside. Behind
	 * fields that are too large nothing was looked at. */
	if (!call->typed && call->http_status != 405 && call->refusal_status != GRPC_RESOURCE_EXHAUSTED)
	{
		call->refusal = NULL;
		refuse_later(call, GRPC_INVALID_ARGUMENT, 415, call->conn == NULL
					 ? "the content-type must be application/json or application/proto; gRPC has its own port"
					 : "the content-type must be application/grpc, application/json or application/proto");
	}
	if (call->protocol == PROTOCOL_CONNECT)
		check_connect(call);
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
		refuse_later(call, GRPC_RESOURCE_EXHAUSTED, 200, TOO_LARGE);
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
				refuse(call, GRPC_RESOURCE_EXHAUSTED, 200, TOO_LARGE);
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

/* Each whole message of a chat is answered as it comes. */
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
	call->method->start(call);
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

void
stream_refuse(struct call *call, enum grpc_status status, const char *message)
{
	refuse_later(call, status, 200, message);
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

const void *
call_connection(const struct call *call)
{
	return call->conn != NULL ? (const void *) call->conn : call->carrier;
}

void
call_on_cancel(struct call *call, call_cancel_fn cancelled, void *arg)
{
	call->cancelled = cancelled;
	call->cancel_arg = arg;
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
	static const char *const codes[] = {
		"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
		"ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
		"ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS",
		"UNAUTHENTICATED"
	};
	char		labels[48];

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
	{
		snprintf(labels, sizeof(labels), "code=\"%s\"", codes[i]);
		outcomes[i] = metric_counter("wiggle_proxy_calls_total", labels,
									 "Calls answered, or ended by the client (CANCELLED).");
	}
	request_gauge = metric_gauge("wiggle_proxy_request_bytes", NULL, "Request messages held in memory.");
	open_gauge = metric_gauge("wiggle_proxy_streams", NULL, "Streams that are open.");
}
