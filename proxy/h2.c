/*
 * h2.c
 *	  nghttp2 glue: the session of a connection.
 *
 * Callbacks only translate. nghttp2 may be asked to submit frames from within a
 * callback, but neither to send nor to receive; the connection's flush does that.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compat.h"
#include "config.h"
#include "connect.h"
#include "h2.h"

#define STREAM_WINDOW		(1 << 20)
#define CONNECTION_WINDOW	(4 << 20)
#define CODED_BYTES			3072	/* a status's message, percent-coded */

static nghttp2_session_callbacks *callbacks;
static nghttp2_option *option;

static const char *const status_text[] = {
	"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16"
};

static struct call *
call_of(nghttp2_session *session, int32_t stream_id)
{
	return nghttp2_session_get_stream_user_data(session, stream_id);
}

/* ------------------------------------------------------------- receiving */

static int
on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
	struct conn *conn = user_data;

	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	conn_refund(conn);
	nghttp2_session_set_stream_user_data(session, frame->hd.stream_id,
										 stream_open(conn, frame->hd.stream_id,
													 conn->tls != NULL ? tls_peer(conn->tls) : NULL));
	return 0;
}

static int
on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
		  const uint8_t *value, size_t value_len, uint8_t flags, void *user_data)
{
	struct call *call = call_of(session, frame->hd.stream_id);

	(void) flags;
	(void) user_data;
	if (call == NULL || stream_header(call, name, name_len, value, value_len))
		return 0;
	return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static int
on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *data,
			  size_t len, void *user_data)
{
	struct call *call = call_of(session, stream_id);

	(void) flags;
	if (call != NULL)
		stream_data(call, data, len);
	else
		h2_consume_closed(user_data, len);
	return 0;
}

static void
on_request_frame(struct conn *conn, const nghttp2_frame *frame)
{
	struct call *call = call_of(conn->session, frame->hd.stream_id);
	bool		end_stream = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;

	if (call == NULL)
		return;
	if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		stream_headers_end(call, end_stream);
	else if (end_stream)
		stream_end(call);
	else if (frame->hd.length == 0)
		conn_charge(conn, 1);
}

static int
on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
	struct conn *conn = user_data;
	bool		is_ack = (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0;

	(void) session;
	switch (frame->hd.type)
	{
		case NGHTTP2_HEADERS:
		case NGHTTP2_DATA:
			on_request_frame(conn, frame);
			break;
		case NGHTTP2_SETTINGS:
			conn->greeted = true;
			if (!is_ack)
				conn_charge(conn, 1);
			break;
		case NGHTTP2_PING:
			if (!is_ack)
				conn_charge(conn, 1);
			else if (conn->drain == CONN_NOTICED)
				h2_goaway(conn);
			break;
		case NGHTTP2_PRIORITY:
			conn_charge(conn, 1);
			break;
		default:
			break;
	}
	return 0;
}

static int
on_stream_close(nghttp2_session *session, int32_t stream_id, uint32_t error_code, void *user_data)
{
	struct call *call = call_of(session, stream_id);

	(void) error_code;
	(void) user_data;
	if (call == NULL)
		return 0;
	nghttp2_session_set_stream_user_data(session, stream_id, NULL);
	stream_close(call);
	return 0;
}

/* --------------------------------------------------------------- sending */

/*
 * The rest of a request whose answer is complete is not wanted. A reset queued
 * together with the answer would make nghttp2 drop the answer, so it waits for
 * the frame that ends the stream to be out.
 */
static int
on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
	int32_t		id = frame->hd.stream_id;

	if (frame->hd.type == NGHTTP2_RST_STREAM && frame->rst_stream.error_code != NGHTTP2_NO_ERROR)
		conn_charge(user_data, 1);
	if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
		(frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0 &&
		nghttp2_session_get_stream_remote_close(session, id) == 0)
		nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, NGHTTP2_NO_ERROR);
	return 0;
}

#define NV(n, v, v_len) \
	{(uint8_t *) (n), (uint8_t *) (v), sizeof(n) - 1, v_len, \
	 NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE}
/* A value on the caller's stack must be copied. */
#define NV_COPY(n, v, v_len) \
	{(uint8_t *) (n), (uint8_t *) (v), sizeof(n) - 1, v_len, NGHTTP2_NV_FLAG_NO_COPY_NAME}

/* The status with its message and details, at head[n]; returns the number of fields. `details` and `coded`
 * live until they are submitted. */
static size_t
add_status(nghttp2_nv *head, size_t n, enum grpc_status status, const char *message, char *coded,
		   struct buf *details)
{
	const char *number = status_text[status];
	size_t		coded_len;

	head[n++] = (nghttp2_nv) NV("grpc-status", number, strlen(number));
	if (message == NULL)
		return n;
	coded_len = grpc_message_encode(message, coded, CODED_BYTES);
	head[n++] = (nghttp2_nv) NV_COPY("grpc-message", coded, coded_len);
	if (status != GRPC_OK)
	{
		grpc_details(status, message, details);
		head[n++] = (nghttp2_nv) NV_COPY("grpc-status-details-bin", details->data, details->len);
	}
	return n;
}

static void
submit_trailer(nghttp2_session *session, int32_t stream_id, const struct call *call)
{
	char		coded[CODED_BYTES];
	struct buf	details = BUF_INIT;
	nghttp2_nv	trailer[3];
	size_t		n = add_status(trailer, 0, call->status, call->trailer, coded, &details);

	nghttp2_submit_trailer(session, stream_id, trailer, n);
	buf_free(&details);
}

static ssize_t
read_reply(nghttp2_session *session, int32_t stream_id, uint8_t *out, size_t cap,
		   uint32_t *flags, nghttp2_data_source *source, void *user_data)
{
	struct call *call = source->ptr;
	size_t		left = call->reply_len - call->reply_sent;
	size_t		n = left < cap ? left : cap;

	if (n > 0)
		memcpy(out, call->reply + call->reply_sent, n);
	call->reply_sent += n;
	conn_unsent_taken(user_data, n);
	if (n < left)
		return (ssize_t) n;
	free(call->reply);
	call->reply = NULL;
	call->reply_len = call->reply_sent = 0;
	if (call->state != CALL_ANSWERED)
		return n > 0 ? (ssize_t) n : NGHTTP2_ERR_DEFERRED;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (call->protocol == PROTOCOL_GRPC)
	{
		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		submit_trailer(session, stream_id, call);
	}
	return (ssize_t) n;
}

/* What the answer lacks, and where the next page begins; returns the number of fields. */
static size_t
add_notes(nghttp2_nv *head, size_t n, const struct call *call)
{
	if (call->missing != NULL)
		head[n++] = (nghttp2_nv) NV("wiggle-missing-shards", call->missing, strlen(call->missing));
	if (call->next_page != NULL)
		head[n++] = (nghttp2_nv) NV("wiggle-next", call->next_page, strlen(call->next_page));
	return n;
}

void
h2_submit_reply(struct call *call)
{
	nghttp2_nv	head[5] = {
		NV(":status", "200", 3),
		NV("content-type", "application/grpc", 16),
		NV("grpc-encoding", "gzip", 4),
	};
	nghttp2_data_provider provider = {.source.ptr = call, .read_callback = read_reply};

	nghttp2_submit_response(call->conn->session, call->id, head, add_notes(head, call->gzipped ? 3 : 2, call),
							&provider);
	conn_mark_dirty(call->conn);
}

void
h2_resume(struct call *call)
{
	nghttp2_session_resume_data(call->conn->session, call->id);
	conn_mark_dirty(call->conn);
}

/* What a client may do better; returns the number of fields. */
static size_t
add_hint(nghttp2_nv *head, size_t n, unsigned http_status)
{
	const char *value;
	const char *name = connect_hint(http_status, &value);

	if (name == NULL)
		return n;
	head[n] = (nghttp2_nv) {(uint8_t *) name, (uint8_t *) value, strlen(name), strlen(value),
		NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
	return n + 1;
}

void
h2_submit_plain(struct call *call)
{
	const char *type = connect_reply_type(call->http_status, call->format);
	char		status[4];
	nghttp2_nv	head[6] = {
		NV_COPY(":status", status, 3),
		NV("content-type", type, strlen(type)),
	};
	nghttp2_data_provider provider = {.source.ptr = call, .read_callback = read_reply};

	snprintf(status, sizeof(status), "%03u", call->http_status % 1000U);
	nghttp2_submit_response(call->conn->session, call->id, head,
							add_notes(head, add_hint(head, 2, call->http_status), call), &provider);
	conn_mark_dirty(call->conn);
}

void
h2_submit_refusal(struct call *call, uint16_t http_status, const char *message)
{
	const char *http = http_status == 415 ? "415" : http_status == 405 ? "405" : "200";
	char		coded[CODED_BYTES];
	struct buf	details = BUF_INIT;
	nghttp2_nv	head[7] = {
		NV(":status", http, 3),
		NV("content-type", "application/grpc", 16),
	};
	size_t		n = add_status(head, 2, call->status, message, coded, &details);

	if (call->status == GRPC_UNIMPLEMENTED)
		head[n++] = (nghttp2_nv) NV("grpc-accept-encoding", "identity,gzip", 13);
	n = add_hint(head, n, http_status);
	nghttp2_submit_response(call->conn->session, call->id, head, n, NULL);
	buf_free(&details);
	conn_mark_dirty(call->conn);
}

size_t
h2_send(struct conn *conn, uint8_t *out, size_t cap)
{
	size_t		len = 0;

	while (cap - len >= H2_FRAME_ROOM)
	{
		const uint8_t *data;
		ssize_t		n = nghttp2_session_mem_send(conn->session, &data);

		if (n < 0)
			conn_doom(conn, "out of memory or an unsendable frame");
		if (n <= 0)
			break;
		memcpy(out + len, data, (size_t) n);
		len += (size_t) n;
	}
	return len;
}

/* --------------------------------------------------------------- session */

void
h2_consume(struct call *call, size_t n)
{
	nghttp2_session_consume(call->conn->session, call->id, n);
	conn_mark_dirty(call->conn);
}

void
h2_consume_closed(struct conn *conn, size_t n)
{
	nghttp2_session_consume_connection(conn->session, n);
	conn_mark_dirty(conn);
}

bool
h2_receive(struct conn *conn, const uint8_t *data, size_t len, const char **reason)
{
	ssize_t		n = nghttp2_session_mem_recv(conn->session, data, len);

	conn_mark_dirty(conn);
	if (n != NGHTTP2_ERR_BAD_CLIENT_MAGIC)
		conn->heard = true;
	if (n >= 0)
		return true;
	if (n == NGHTTP2_ERR_BAD_CLIENT_MAGIC)
		*reason = data[0] == 0x16 ? "a TLS client on the plaintext port" : "not an HTTP/2 client";
	else if (n == NGHTTP2_ERR_FLOODED)
		*reason = "flooded with frames that want an answer";
	else
		*reason = "a protocol error that cannot be answered";
	return false;
}

bool
h2_finished(const struct conn *conn)
{
	return !nghttp2_session_want_read(conn->session) && !nghttp2_session_want_write(conn->session);
}

void
h2_open(struct conn *conn)
{
	const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, (uint32_t) config.max_streams},
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t) config.max_header_bytes},
	};

	if (nghttp2_session_server_new2(&conn->session, callbacks, conn, option) != 0)
		abort();
	nghttp2_submit_settings(conn->session, NGHTTP2_FLAG_NONE, settings, sizeof(settings) / sizeof(settings[0]));
	nghttp2_session_set_local_window_size(conn->session, NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW);
	conn_mark_dirty(conn);
}

void
h2_close(struct conn *conn)
{
	/* nghttp2 does not report the streams that end with their session. */
	while (conn->calls != NULL)
		stream_close(conn->calls);
	nghttp2_session_del(conn->session);
	conn->session = NULL;
}

void
h2_shutdown_notice(struct conn *conn)
{
	conn->drain = CONN_NOTICED;
	nghttp2_submit_shutdown_notice(conn->session);
	nghttp2_submit_ping(conn->session, NGHTTP2_FLAG_NONE, NULL);
	conn_mark_dirty(conn);
}

void
h2_goaway(struct conn *conn)
{
	conn->drain = CONN_GOAWAY;
	nghttp2_submit_goaway(conn->session, NGHTTP2_FLAG_NONE,
						  nghttp2_session_get_last_proc_stream_id(conn->session),
						  NGHTTP2_NO_ERROR, NULL, 0);
	conn_mark_dirty(conn);
}

void
h2_calm_down(struct conn *conn)
{
	nghttp2_session_terminate_session(conn->session, NGHTTP2_ENHANCE_YOUR_CALM);
	conn_mark_dirty(conn);
}

void
h2_setup(void)
{
	if (nghttp2_session_callbacks_new(&callbacks) != 0 || nghttp2_option_new(&option) != 0)
		abort();
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data_chunk);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);

	nghttp2_option_set_no_closed_streams(option, 1);
	nghttp2_option_set_no_auto_window_update(option, 1);
	nghttp2_option_set_max_outbound_ack(option, (size_t) config.max_acks);
	h2_option_floods(option, (uint64_t) config.max_resets_burst, (uint64_t) config.max_resets_rate,
					 (size_t) config.max_continuations);
}
