/*
 * http_tls.c
 *	  TLS in front of the second port.
 *
 * A side is read no faster than the other one takes: what a socket does not take at
 * once is kept, at most what one read brought, and meanwhile its source is not read.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <uv.h>

#include "address.h"
#include "config.h"
#include "drain.h"
#include "http_tls.h"
#include "log.h"
#include "loop.h"
#include "tls_server.h"

#define BACKLOG		128
#define READ_BYTES	65536
#define LINGER_MS	1000

enum direction
{
	TO_CLIENT,
	TO_DAEMON
};

struct tunnel
{
	uv_tcp_t	client;
	uv_pipe_t	daemon;			/* our end */
	struct tls *tls;
	struct tunnel *prev;
	struct tunnel *next;
	int			kept[2];		/* writes that wait, by direction */
	bool		hello;			/* the first bytes were TLS's */
	bool		joined;			/* the handshake is over, the daemon has the other end */
	bool		half_closed;	/* the client sends no more */
	bool		gone;			/* nor does its socket: nothing more can come of it */
	bool		ending;			/* the daemon has closed */
	bool		lingering;
	bool		closing;
	int			handles;		/* that libuv still knows */
	struct deadline deadline;	/* the handshake's, a stalled write's, the linger's */
};

struct rest
{
	uv_write_t	request;
	struct tunnel *tunnel;
	enum direction direction;
	uint8_t		data[];
};

static uv_tcp_t server;
static bool opened;
static struct tunnel *tunnels;
static int	count;
static int	most;
static void (*give_daemon) (int fd, const char *peer);

static void start_reading(struct tunnel *t, enum direction to);
static void finish(struct tunnel *t);

/* ---------------------------------------------------------------------- end */

static void
on_closed(uv_handle_t *handle)
{
	struct tunnel *t = handle->data;

	if (--t->handles > 0)
		return;
	count--;
	tls_free(t->tls);
	free(t);
}

static void
end(struct tunnel *t)
{
	if (t->closing)
		return;
	t->closing = true;
	deadline_clear(&t->deadline);
	if (t->prev != NULL)
		t->prev->next = t->next;
	else
		tunnels = t->next;
	if (t->next != NULL)
		t->next->prev = t->prev;
	uv_close((uv_handle_t *) &t->client, on_closed);
	if (t->joined)
		uv_close((uv_handle_t *) &t->daemon, on_closed);
}

static void
complain(const char *why)
{
	static struct log_gate gate;

	tls_server_failed();
	if (log_gate_open(&gate))
		log_info("http", "closing a client's connection: %s", why);
}

static void
overdue(struct deadline *d)
{
	struct tunnel *t = deadline_owner(d, struct tunnel, deadline);

	if (!t->joined && !t->lingering)
		complain("the TLS handshake was not over in time (WIGGLE_TLS_HANDSHAKE_MILLIS)");
	end(t);
}

/* ------------------------------------------------------------------ writing */

static uv_stream_t *
sink(struct tunnel *t, enum direction to)
{
	return to == TO_CLIENT ? (uv_stream_t *) &t->client : (uv_stream_t *) &t->daemon;
}

static uv_stream_t *
source(struct tunnel *t, enum direction to)
{
	return sink(t, to == TO_CLIENT ? TO_DAEMON : TO_CLIENT);
}

static void
on_written(uv_write_t *request, int status)
{
	struct rest *rest = (struct rest *) request;
	struct tunnel *t = rest->tunnel;
	enum direction to = rest->direction;

	free(rest);
	t->kept[to]--;
	if (t->closing)
		return;
	if (status < 0)
		end(t);
	else if (t->kept[to] > 0)
		return;
	else if (to == TO_CLIENT)
	{
		deadline_clear(&t->deadline);
		if (t->ending)
			finish(t);
		else if (t->joined)
			start_reading(t, to);
	}
	else if (!t->gone)
		start_reading(t, to);
}

static void
keep(struct tunnel *t, enum direction to, const uint8_t *data, size_t len)
{
	struct rest *rest = xmalloc(sizeof(*rest) + len);
	uv_buf_t	buf = uv_buf_init((char *) rest->data, (unsigned) len);

	memcpy(rest->data, data, len);
	rest->tunnel = t;
	rest->direction = to;
	if (uv_write(&rest->request, sink(t, to), &buf, 1, on_written) != 0)
	{
		free(rest);
		end(t);
		return;
	}
	t->kept[to]++;
	if (to == TO_CLIENT)
		deadline_set(&t->deadline, loop_now() + (uint64_t) config.stalled_write_ms, overdue);
	if (to == TO_DAEMON || t->joined)
		uv_read_stop(source(t, to));
}

static void
pass(struct tunnel *t, enum direction to, const uint8_t *data, size_t len)
{
	uv_buf_t	buf = uv_buf_init((char *) data, (unsigned) len);
	int			written = 0;

	if (len == 0 || t->closing)
		return;
	if (t->kept[to] == 0)
		written = uv_try_write(sink(t, to), &buf, 1);
	if (written == UV_EAGAIN)
		written = 0;
	if (written < 0)
		end(t);
	else if ((size_t) written < len)
		keep(t, to, data + written, len - (size_t) written);
}

/* Send what TLS has to say. */
static void
pass_sealed(struct tunnel *t)
{
	struct buf *sealed = tls_sealed(t->tls);

	pass(t, TO_CLIENT, sealed->data, sealed->len);
	tls_sent(t->tls);
}

static void
on_shutdown(uv_shutdown_t *request, int status)
{
	(void) status;
	free(request);
}

/* Nothing more goes to the client: say so and wait a little for its end, unless that has come. */
static void
finish(struct tunnel *t)
{
	uv_shutdown_t *request = xmalloc(sizeof(*request));

	t->lingering = true;
	tls_goodbye(t->tls);
	pass_sealed(t);
	if (t->closing || (t->gone && t->kept[TO_CLIENT] == 0) ||
		uv_shutdown(request, (uv_stream_t *) &t->client, on_shutdown) != 0)
	{
		free(request);
		end(t);
		return;
	}
	deadline_set(&t->deadline, loop_now() + LINGER_MS, overdue);
}

/* Nothing more comes from the client: the daemon is told, and may have an answer yet. */
static void
half_close(struct tunnel *t)
{
	uv_shutdown_t *request;

	if (t->half_closed || t->closing)
		return;
	t->half_closed = true;
	request = xmalloc(sizeof(*request));
	if (uv_shutdown(request, (uv_stream_t *) &t->daemon, on_shutdown) != 0)
	{
		free(request);
		end(t);
	}
}

/* ------------------------------------------------------------------ reading */

static void
on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	static char data[READ_BYTES];

	(void) handle;
	(void) suggested;
	*buf = uv_buf_init(data, sizeof(data));
}

/* From the daemon. */
static void
on_answer(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct tunnel *t = stream->data;

	if (n == 0 || t->ending)
		return;
	if (n > 0 && tls_write(t->tls, (const uint8_t *) buf->base, (size_t) n))
	{
		pass_sealed(t);
		return;
	}
	t->ending = true;
	uv_read_stop(stream);
	if (t->kept[TO_CLIENT] == 0)
		finish(t);
}

/* The handshake is over: the daemon gets its connection. */
static void
join(struct tunnel *t)
{
	int			ends[2];

	deadline_clear(&t->deadline);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
	{
		complain("no more sockets");
		end(t);
		return;
	}
	uv_pipe_init(loop_get(), &t->daemon, 0);
	t->daemon.data = t;
	t->handles++;
	t->joined = true;
	uv_pipe_open(&t->daemon, ends[0]);
	start_reading(t, TO_CLIENT);
	give_daemon(ends[1], tls_peer(t->tls));
}

static void
take(struct tunnel *t, const uint8_t *data, size_t len)
{
	static uint8_t plain[READ_BYTES];
	enum tls_event event;
	size_t		n;

	tls_feed(t->tls, data, len);
	do
	{
		event = tls_read(t->tls, plain, sizeof(plain), &n);
		if (event == TLS_READY)
			join(t);
		else if (event == TLS_DATA)
			pass(t, TO_DAEMON, plain, n);
	} while ((event == TLS_READY || event == TLS_DATA) && !t->closing);
	if (t->closing)
		return;
	pass_sealed(t);
	if (event == TLS_FAILED)
		complain(tls_failure(t->tls));
	if (event == TLS_FAILED && !t->joined)
		finish(t);
	else if (event == TLS_EOF && t->joined)
		half_close(t);
	else if (event != TLS_WANT)
		end(t);
}

/* From the client. */
static void
on_request(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	static const char in_plaintext[] =
		"HTTP/1.1 400 Bad Request\r\n"
		"Content-Type: text/plain\r\n"
		"Content-Length: 24\r\n"
		"Connection: close\r\n"
		"\r\n"
		"This port speaks HTTPS.\n";
	struct tunnel *t = stream->data;
	const uint8_t *data = (const uint8_t *) buf->base;

	if (n == UV_EOF && t->joined && !t->lingering)
	{
		t->gone = true;
		half_close(t);
	}
	else if (n < 0)
		end(t);
	else if (n == 0 || t->lingering || t->half_closed)
		return;
	else if (t->hello || tls_server_hello(data, (size_t) n))
	{
		t->hello = true;
		take(t, data, (size_t) n);
	}
	else
	{
		complain("a plaintext client on the TLS port");
		pass(t, TO_CLIENT, (const uint8_t *) in_plaintext, sizeof(in_plaintext) - 1);
		if (!t->closing)
			finish(t);
	}
}

static void
start_reading(struct tunnel *t, enum direction to)
{
	uv_read_start(source(t, to), on_alloc, to == TO_CLIENT ? on_answer : on_request);
}

/* --------------------------------------------------------------- connections */

static void
on_connection(uv_stream_t *stream, int status)
{
	static struct log_gate gate;
	struct tunnel *t = xcalloc(1, sizeof(*t));

	(void) status;
	uv_tcp_init(loop_get(), &t->client);
	t->client.data = t;
	t->handles = 1;
	t->next = tunnels;
	if (tunnels != NULL)
		tunnels->prev = t;
	tunnels = t;
	count++;
	if (uv_accept(stream, (uv_stream_t *) &t->client) != 0 || count > most)
	{
		if (log_gate_open(&gate))
			log_warn("http", "a connection to the second port is refused: there are as many as it takes");
		end(t);
		return;
	}
	t->tls = tls_server_accept(TLS_PORT_SECOND);
	uv_tcp_nodelay(&t->client, 1);
	deadline_set(&t->deadline, loop_now() + (uint64_t) config.tls_handshake_ms, overdue);
	start_reading(t, TO_DAEMON);
}

/* What the daemon has written and the client has not got yet. */
static bool
owes(const struct tunnel *t)
{
	uv_os_fd_t	fd;
	int			unread = 0;

	if (t->kept[TO_CLIENT] > 0)
		return true;
	return t->joined && uv_fileno((const uv_handle_t *) &t->daemon, &fd) == 0 &&
		ioctl(fd, FIONREAD, &unread) == 0 && unread > 0;
}

static bool
is_idle(void)
{
	for (struct tunnel *t = tunnels; t != NULL; t = t->next)
		if (owes(t))
			return false;
	return true;
}

bool
http_tls_open(const struct sockaddr *addr, int limit, void (*add) (int fd, const char *peer), int *port,
			  struct wig_error *err)
{
	static const struct drain_hook hook = {.name = "second port", .idle = is_idle};
	struct sockaddr_storage bound;
	int			len = sizeof(bound);
	int			rc;

	drain_register(&hook);
	give_daemon = add;
	most = limit;
	uv_tcp_init(loop_get(), &server);
	opened = true;
	rc = uv_tcp_bind(&server, addr, 0);
	if (rc == 0)
		rc = uv_listen((uv_stream_t *) &server, BACKLOG, on_connection);
	if (rc == 0)
		rc = uv_tcp_getsockname(&server, (struct sockaddr *) &bound, &len);
	if (rc != 0)
		return wig_fail(err, "cannot listen on %s port %lld (WIGGLE_DASHBOARD_BIND, WIGGLE_DASHBOARD_PORT): %s",
						config.dashboard_bind, (long long) config.dashboard_port, uv_strerror(rc));
	*port = address_port(&bound);
	return true;
}

void
http_tls_close(void)
{
	if (!opened)
		return;
	while (tunnels != NULL)
		end(tunnels);
	if (!uv_is_closing((uv_handle_t *) &server))
		uv_close((uv_handle_t *) &server, NULL);
}
