/*
 * conn.c
 *	  Connections: reading, the one write of a turn, bounds, and their end.
 *
 * Output is pulled from nghttp2 into one static buffer and written at once; only
 * what the socket does not take is copied, and while that waits nothing more is
 * pulled. A client that does not read therefore costs at most what nghttp2 and
 * call_has_room let queue, and is cut off when it takes nothing for a while.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "compat.h"
#include "config.h"
#include "drain.h"
#include "h2.h"
#include "log.h"
#include "metrics.h"
#include "pressure.h"
#include "tls_server.h"

#define READ_BYTES			65536
#define SEND_BYTES			262144
#define SEND_ROUNDS			4	/* of a connection and turn: 1 MB */
#define QUEUE_FRAMES		4096	/* above: not read while the socket is full */
#define TRIM_ABOVE_BYTES	(32 << 20)
#define TRIM_EVERY_MS		1000
#define GREETING_MS			30000
#define LINGER_MS			1000
#define NOTICE_MS			1000	/* wait for the PING's answer in the drain */
#define KEEPALIVE_IDLE_S	20
#define KEEPALIVE_EVERY_S	5
#define KEEPALIVE_PROBES	3

static struct conn *conns;
static int64_t nconns;			/* until their close callback */
static struct conn *dirty_first;
static struct conn **dirty_last = &dirty_first;
static size_t unsent_total;
static struct deadline again;	/* wakes the loop for connections left dirty */
static struct deadline notice;

static struct metric *open_gauge;
static struct metric *unsent_gauge;
static struct metric *accepted;
static struct metric *refused;
static struct metric *cut;
static struct metric *bytes_in;
static struct metric *bytes_out;

/* -------------------------------------------------------- unsent, tokens */

size_t
conn_unsent_total(void)
{
	return unsent_total;
}

void
conn_unsent_add(struct conn *conn, size_t n)
{
	if (conn != NULL)
		conn->unsent += n;
	unsent_total += n;
	metric_set(unsent_gauge, (int64_t) unsent_total);
	pressure_held(PRESSURE_UNSENT, unsent_total);
}

void
conn_unsent_taken(struct conn *conn, size_t n)
{
	unsent_total -= n;
	if (conn != NULL)
	{
		conn->unsent -= n;
		if (n > 0)
			conn->progress_at = loop_now();
	}
	metric_set(unsent_gauge, (int64_t) unsent_total);
	pressure_held(PRESSURE_UNSENT, unsent_total);
}

void
conn_charge(struct conn *conn, int n)
{
	struct bucket *b = &conn->control;
	uint64_t	now = loop_now();
	int64_t		new_tokens = (int64_t) (now - b->filled_at) * config.max_pings_rate / 1000;

	if (new_tokens > 0)
	{
		b->tokens += new_tokens;
		b->filled_at = now;
		if (b->tokens > config.max_pings_burst)
			b->tokens = config.max_pings_burst;
	}
	b->tokens -= n;
	if (b->tokens < 0 && conn->doomed == NULL)
	{
		h2_calm_down(conn);
		conn_doom(conn, "too many control frames (WIGGLE_MAX_PINGS_RATE)");
	}
}

void
conn_refund(struct conn *conn)
{
	if (conn->control.tokens < config.max_pings_burst)
		conn->control.tokens++;
}

/* ------------------------------------------------------------ life's end */

void
conn_mark_dirty(struct conn *conn)
{
	if (conn->dirty || conn->closing)
		return;
	conn->dirty = true;
	conn->next_dirty = NULL;
	*dirty_last = conn;
	dirty_last = &conn->next_dirty;
}

void
conn_doom(struct conn *conn, const char *reason)
{
	if (conn->doomed == NULL)
		conn->doomed = reason;
	conn_mark_dirty(conn);
}

static void
free_conn(struct conn *conn)
{
	tls_free(conn->tls);
	free(conn);
}

static void
on_closed(uv_handle_t *handle)
{
	struct conn *conn = handle->data;

	nconns--;
	metric_set(open_gauge, nconns);
	conn->closed = true;
	if (!conn->dirty)
		free_conn(conn);
}

static void
end_session(struct conn *conn)
{
	if (conn->session != NULL)
		h2_close(conn);
	deadline_clear(&conn->stall);
	deadline_clear(&conn->greeting);
}

static void
unlink_conn(struct conn *conn)
{
	if (conn->prev != NULL)
		conn->prev->next = conn->next;
	else
		conns = conn->next;
	if (conn->next != NULL)
		conn->next->prev = conn->prev;
}

/* Not from within nghttp2: it frees the session. */
static void
close_now(struct conn *conn)
{
	static struct log_gate gate;

	if (conn->closing)
		return;
	conn->closing = true;
	if (conn->doomed != NULL)
	{
		metric_add(cut, 1);
		if (log_gate_open(&gate))
			log_info("conn", "closing a client's connection: %s", conn->doomed);
	}
	end_session(conn);
	unlink_conn(conn);
	uv_close((uv_handle_t *) &conn->tcp, on_closed);
}

static void
linger_over(struct deadline *d)
{
	close_now(deadline_owner(d, struct conn, stall));
}

static void
on_shutdown(uv_shutdown_t *request, int status)
{
	(void) status;
	free(request);
}

/* As much of the goodbye as the socket takes: nobody waits for it. */
static void
say_goodbye(struct conn *conn)
{
	struct buf *sealed = tls_sealed(conn->tls);
	uv_buf_t	buf;

	tls_goodbye(conn->tls);
	buf = uv_buf_init((char *) sealed->data, (unsigned) sealed->len);
	if (sealed->len > 0)
		uv_try_write((uv_stream_t *) &conn->tcp, &buf, 1);
}

/*
 * Everything is sent. Closing a socket that still has bytes to read resets the
 * connection, which could overtake our last answers or the reason of the end: say
 * that we are done and wait a little for the client to be.
 */
static void
linger(struct conn *conn)
{
	uv_shutdown_t *request = xmalloc(sizeof(*request));

	end_session(conn);
	if (conn->tls != NULL)
		say_goodbye(conn);
	conn->lingering = true;
	if (uv_shutdown(request, (uv_stream_t *) &conn->tcp, on_shutdown) != 0)
	{
		free(request);
		close_now(conn);
		return;
	}
	deadline_set(&conn->stall, loop_now() + LINGER_MS, linger_over);
}

/* --------------------------------------------------------------- writing */

static void on_written(uv_write_t *request, int status);
static void start_reading(struct conn *conn);

/* The socket is full: keep a copy of the rest and wait for it to be taken. */
static void
write_rest(struct conn *conn, const uint8_t *data, size_t len)
{
	uv_buf_t	buf;

	conn->write_data = xmalloc(len);
	memcpy(conn->write_data, data, len);
	conn->writing = len;
	conn->write.data = conn;
	buf = uv_buf_init((char *) conn->write_data, (unsigned) len);
	if (uv_write(&conn->write, (uv_stream_t *) &conn->tcp, &buf, 1, on_written) != 0)
	{
		free(conn->write_data);
		conn->write_data = NULL;
		conn->writing = 0;
		conn_doom(conn, "cannot write to the socket");
	}
	else if (!conn->paused && nghttp2_session_get_outbound_queue_size(conn->session) > QUEUE_FRAMES)
	{
		conn->paused = true;
		uv_read_stop((uv_stream_t *) &conn->tcp);
	}
}

/* Write what the socket takes and keep the rest; true when it took all. */
static bool
write_out(struct conn *conn, const uint8_t *out, size_t len)
{
	uv_buf_t	buf = uv_buf_init((char *) out, (unsigned) len);
	int			written;

	written = uv_try_write((uv_stream_t *) &conn->tcp, &buf, 1);
	if (written == UV_EAGAIN)
		written = 0;
	if (written < 0)
	{
		/* The reading side will learn the same; no reason to log it. */
		close_now(conn);
		return false;
	}
	metric_add(bytes_out, written);
	if (written > 0)
		conn->progress_at = loop_now();
	if ((size_t) written < len)
	{
		write_rest(conn, out + written, len - (size_t) written);
		return false;
	}
	return true;
}

/* The same in TLS, with what the session itself has to say. */
static bool
write_sealed(struct conn *conn, const uint8_t *out, size_t len)
{
	struct buf *sealed = tls_sealed(conn->tls);
	bool		all;

	if (len > 0 && !tls_write(conn->tls, out, len))
		conn_doom(conn, tls_failure(conn->tls));
	all = sealed->len == 0 || write_out(conn, sealed->data, sealed->len);
	tls_sent(conn->tls);
	return all;
}

/* May frames of HTTP/2 go out? Not before bytes came that may be the like. */
static bool
may_speak(const struct conn *conn)
{
	return conn->heard && (conn->tls == NULL || tls_ready(conn->tls));
}

/* Pull, write; true when more may be had in the same way at once. */
static bool
write_some(struct conn *conn)
{
	static uint8_t out[SEND_BYTES];
	size_t		len = may_speak(conn) ? h2_send(conn, out, sizeof(out)) : 0;
	bool		all;

	if (conn->tls != NULL)
		all = write_sealed(conn, out, len);
	else
		all = len == 0 || write_out(conn, out, len);
	return all && sizeof(out) - len < H2_FRAME_ROOM;
}

static void
look_for_progress(struct deadline *d)
{
	struct conn *conn = deadline_owner(d, struct conn, stall);
	uint64_t	limit = conn->progress_at + (uint64_t) config.stalled_write_ms;

	if (conn->unsent == 0 && conn->writing == 0)
		return;
	else if (loop_now() >= limit)
		conn_doom(conn, "it takes no replies (WIGGLE_STALLED_WRITE_MILLIS)");
	else
		deadline_set(d, limit, look_for_progress);
}

static void
look_for_greeting(struct deadline *d)
{
	struct conn *conn = deadline_owner(d, struct conn, greeting);

	if (conn->tls != NULL && !tls_ready(conn->tls))
	{
		tls_server_failed();
		conn_doom(conn, "the TLS handshake was not over in time (WIGGLE_TLS_HANDSHAKE_MILLIS)");
	}
	else if (!conn->greeted)
		conn_doom(conn, "no HTTP/2 greeting came in time");
}

static void
flush(struct conn *conn)
{
	int			rounds = 0;

	if (conn->closing || conn->lingering)
		return;
	while (conn->writing == 0 && write_some(conn))
	{
		if (++rounds == SEND_ROUNDS)
		{
			conn_mark_dirty(conn);
			deadline_set(&again, loop_now(), again.due);
			break;
		}
	}
	if (conn->closing)
		return;
	if (conn->writing == 0 && (conn->doomed != NULL || h2_finished(conn)))
		linger(conn);
	else if (conn->doomed != NULL)
		close_now(conn);
	else if ((conn->unsent > 0 || conn->writing > 0) && conn->stall.slot == 0)
	{
		conn->progress_at = loop_now();
		deadline_set(&conn->stall, conn->progress_at + (uint64_t) config.stalled_write_ms, look_for_progress);
	}
}

static void
on_written(uv_write_t *request, int status)
{
	struct conn *conn = request->data;

	free(conn->write_data);
	conn->write_data = NULL;
	metric_add(bytes_out, (int64_t) conn->writing);
	conn->writing = 0;
	if (status < 0 || conn->closing)
	{
		if (status != UV_ECANCELED)
			close_now(conn);
		return;
	}
	conn->progress_at = loop_now();
	conn_mark_dirty(conn);
	if (conn->paused)
		start_reading(conn);
}

/* The turn's flush. Flushing one connection may make another dirty. */
static void
flush_dirty(void)
{
	struct conn *batch = dirty_first;

	while (batch != NULL)
	{
		dirty_first = NULL;
		dirty_last = &dirty_first;
		while (batch != NULL)
		{
			struct conn *conn = batch;

			batch = conn->next_dirty;
			conn->dirty = false;
			if (conn->closed)
				free_conn(conn);
			else
				flush(conn);
		}
		if (again.slot != 0)
			break;
		batch = dirty_first;
	}
}

/*
 * After a flood of large messages the allocator holds what they took. Give it back
 * once they are gone, not while they come and go.
 */
static void
trim_memory(void)
{
	static size_t peak;
	static uint64_t not_before;
	size_t		held = unsent_total + stream_request_bytes();

	if (held > peak)
		peak = held;
	if (peak > TRIM_ABOVE_BYTES && held < peak / 16 && loop_now() >= not_before)
	{
		peak = held;
		not_before = loop_now() + TRIM_EVERY_MS;
		return_free_memory();
	}
}

static void
nothing(struct deadline *d)
{
	(void) d;
}

/* --------------------------------------------------------------- reading */

static void
on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	static char data[READ_BYTES];

	(void) handle;
	(void) suggested;
	*buf = uv_buf_init(data, sizeof(data));
}

/* Does the first line end in HTTP/1.0 or HTTP/1.1? */
static bool
is_http1(const char *data, size_t len)
{
	static const char version[] = " HTTP/1.";
	const char *end = memchr(data, '\r', len);

	return end != NULL && end - data > (ptrdiff_t) sizeof(version) &&
		memcmp(end - sizeof(version), version, sizeof(version) - 1) == 0;
}

/* Someone speaks plain HTTP/1 to us: an answer that a person can read. */
static void
refuse_http1(struct conn *conn)
{
	static const char in_plaintext[] =
		"HTTP/1.1 505 HTTP Version Not Supported\r\n"
		"Content-Type: text/plain\r\n"
		"Content-Length: 116\r\n"
		"Connection: close\r\n"
		"\r\n"
		"This port speaks HTTP/2 without TLS: gRPC, and JSON. HTTP/1 for JSON, health and metrics is on the dashboard port.\r\n";
	static const char in_tls[] =
		"HTTP/1.1 400 Bad Request\r\n"
		"Content-Type: text/plain\r\n"
		"Content-Length: 33\r\n"
		"Connection: close\r\n"
		"\r\n"
		"This port speaks HTTP/2 in TLS.\r\n";
	uv_buf_t	buf = conn->tls == NULL ? uv_buf_init((char *) in_plaintext, sizeof(in_plaintext) - 1)
		: uv_buf_init((char *) in_tls, sizeof(in_tls) - 1);

	uv_try_write((uv_stream_t *) &conn->tcp, &buf, 1);
}

static void
receive(struct conn *conn, const uint8_t *data, size_t len)
{
	const char *reason = NULL;

	if (h2_receive(conn, data, len, &reason))
		return;
	if (!conn->heard && conn->tls == NULL && is_http1((const char *) data, len))
		refuse_http1(conn);
	else if (conn->heard)
		h2_calm_down(conn);
	conn_doom(conn, reason);
}

/* Bytes of TLS, as long as nothing is wrong with what is in them. */
static void
receive_sealed(struct conn *conn, const uint8_t *data, size_t len)
{
	static uint8_t plain[READ_BYTES];
	enum tls_event event;
	size_t		n;

	tls_feed(conn->tls, data, len);
	do
	{
		event = tls_read(conn->tls, plain, sizeof(plain), &n);
		if (event == TLS_DATA)
			receive(conn, plain, n);
		else if (event == TLS_READY)
			deadline_set(&conn->greeting, loop_now() + GREETING_MS, look_for_greeting);
	} while ((event == TLS_DATA || event == TLS_READY) && conn->doomed == NULL);
	conn_mark_dirty(conn);
	if (event == TLS_EOF)
		close_now(conn);
	else if (event == TLS_FAILED)
	{
		tls_server_failed();
		conn_doom(conn, tls_failure(conn->tls));
	}
}

/* The first bytes tell who does not speak TLS. */
static bool
is_plaintext(struct conn *conn, const char *data, size_t len)
{
	if (conn->hello || tls_server_hello((const uint8_t *) data, len))
	{
		conn->hello = true;
		return false;
	}
	tls_server_failed();
	if (is_http1(data, len))
		refuse_http1(conn);
	conn_doom(conn, "a plaintext client on the TLS port");
	return true;
}

static void
on_read(uv_stream_t *stream, ssize_t nread, const uv_buf_t *buf)
{
	struct conn *conn = stream->data;

	if (nread == 0)
		return;
	if (nread < 0)
	{
		close_now(conn);
		return;
	}
	if (conn->lingering || conn->doomed != NULL)
		return;
	metric_add(bytes_in, nread);
	if (conn->tls == NULL)
		receive(conn, (const uint8_t *) buf->base, (size_t) nread);
	else if (!is_plaintext(conn, buf->base, (size_t) nread))
		receive_sealed(conn, (const uint8_t *) buf->base, (size_t) nread);
}

static void
start_reading(struct conn *conn)
{
	conn->paused = false;
	uv_read_start((uv_stream_t *) &conn->tcp, on_alloc, on_read);
}

/* ---------------------------------------------------------------- accept */

/* A peer that vanished without a word is noticed by the kernel, whether or not
 * there is something to send. */
static void
set_socket_options(struct conn *conn)
{
	int			idle = KEEPALIVE_IDLE_S;
	int			every = KEEPALIVE_EVERY_S;
	int			probes = KEEPALIVE_PROBES;
	unsigned	unacked = (unsigned) config.stalled_write_ms;
	uv_os_fd_t	fd;

	uv_tcp_nodelay(&conn->tcp, 1);
	uv_tcp_keepalive(&conn->tcp, 1, KEEPALIVE_IDLE_S);
	if (uv_fileno((uv_handle_t *) &conn->tcp, &fd) != 0)
		return;
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacked, sizeof(unacked));
}

void
conn_accept(uv_stream_t *server)
{
	static struct log_gate gate;
	struct conn *conn = xcalloc(1, sizeof(*conn));
	int			rc;

	uv_tcp_init(loop_get(), &conn->tcp);
	conn->tcp.data = conn;
	nconns++;
	metric_set(open_gauge, nconns);
	rc = uv_accept(server, (uv_stream_t *) &conn->tcp);
	if (rc != 0 || nconns > config.max_connections)
	{
		metric_add(refused, 1);
		if (log_gate_open(&gate))
			log_warn("conn", "a client's connection is refused: %s", rc != 0 ? uv_strerror(rc)
					 : "there are as many as WIGGLE_MAX_CONNECTIONS allows");
		conn->closing = true;
		uv_close((uv_handle_t *) &conn->tcp, on_closed);
		return;
	}
	metric_add(accepted, 1);
	set_socket_options(conn);
	conn->control.tokens = config.max_pings_burst;
	conn->control.filled_at = loop_now();
	conn->next = conns;
	if (conns != NULL)
		conns->prev = conn;
	conns = conn;
	if (tls_server_on())
		conn->tls = tls_server_accept(TLS_PORT_CALLS);
	h2_open(conn);
	deadline_set(&conn->greeting, loop_now() + (conn->tls != NULL ? (uint64_t) config.tls_handshake_ms : GREETING_MS),
				 look_for_greeting);
	start_reading(conn);
}

/* ----------------------------------------------------------------- drain */

static void
notice_over(struct deadline *d)
{
	(void) d;
	for (struct conn *c = conns; c != NULL; c = c->next)
		if (c->session != NULL && c->drain == CONN_NOTICED)
			h2_goaway(c);
}

static void
drain_conns(void)
{
	for (struct conn *c = conns; c != NULL; c = c->next)
	{
		if (c->lingering)
			continue;
		if (c->greeted)
		{
			stream_drain(c);
			h2_shutdown_notice(c);
		}
		else
			conn_doom(c, "the server is about to end");
	}
	deadline_set(&notice, loop_now() + NOTICE_MS, notice_over);
}

static bool
no_conns(void)
{
	return nconns == 0;
}

static void
stop_conns(void)
{
	deadline_clear(&notice);
	while (conns != NULL)
		close_now(conns);
}

static const struct drain_hook hook = {
	.name = "connections", .begin = drain_conns, .idle = no_conns, .stop = stop_conns
};

void
conn_setup(void)
{
	open_gauge = metric_gauge("wiggle_proxy_connections", NULL, "Client connections that are open.");
	unsent_gauge = metric_gauge("wiggle_proxy_unsent_bytes", NULL, "Reply bytes that clients have not taken yet.");
	accepted = metric_counter("wiggle_proxy_connections_total", NULL, "Client connections accepted.");
	refused = metric_counter("wiggle_proxy_connections_refused_total", NULL, "Client connections refused at once.");
	cut = metric_counter("wiggle_proxy_connections_cut_total", NULL, "Client connections closed for their behaviour.");
	bytes_in = metric_counter("wiggle_proxy_received_bytes_total", NULL, "Bytes from clients.");
	bytes_out = metric_counter("wiggle_proxy_sent_bytes_total", NULL, "Bytes to clients.");
	again.due = nothing;
	stream_setup();
	h2_setup();
	loop_turn(TURN_FLUSH, flush_dirty);
	loop_turn(TURN_END, trim_memory);
	drain_register(&hook);
}
