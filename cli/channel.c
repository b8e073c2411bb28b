/*
 * channel.c
 *	  HTTP/2 over a socket, plain or in TLS; client side.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#include "channel.h"
#include "tls.h"

#define CONNECT_TIMEOUT_MS	5000
#define PING_MS				15000	/* a connection that leaves a ping unanswered this
									 * long is dead */
#define STREAM_WINDOW		(1 << 20)
#define CONNECTION_WINDOW	(4 << 20)
#define READ_BYTES			65536

enum channel_state
{
	CHANNEL_RESOLVING,
	CHANNEL_CONNECTING,
	CHANNEL_SECURING,			/* connected; the TLS handshake is under way */
	CHANNEL_UP,
	CHANNEL_CLOSED
};

struct channel
{
	uv_loop_t  *loop;
	const struct channel_events *events;
	void	   *arg;
	size_t		max_reply;
	char	   *host;
	char	   *port;
	char	   *authority;

	enum channel_state state;
	bool		spoke;			/* a frame of HTTP/2 came */
	bool		goodbye;		/* GOAWAY came */
	bool		in_session;		/* nghttp2 is calling us */
	bool		pinged;			/* a PING waits for its answer */

	uv_getaddrinfo_t resolver;
	bool		resolving;
	struct addrinfo *addresses;
	struct addrinfo *address;	/* the one being tried */
	char		failure[160];	/* of the last address */

	const struct security *security;
	struct tls *tls;			/* NULL: plaintext, or no connection yet */

	uv_tcp_t	socket;
	bool		socket_open;
	uv_connect_t connector;
	uv_timer_t	timer;			/* first the connect timeout, then pings */
	uv_timer_t	flusher;		/* writes in the next turn what was asked for in this */
	int			handles;		/* that libuv still knows */

	nghttp2_session *session;
	struct exchange *exchanges;
	uint8_t		input[READ_BYTES];
	struct buf	output;			/* being written by `writer` */
	uv_write_t	writer;
	bool		writing;
};

static void try_next_address(struct channel *channel);

/* Free once libuv has let go of everything. */
static void
release(struct channel *channel)
{
	if (channel->handles > 0 || channel->resolving)
		return;
	nghttp2_session_del(channel->session);
	tls_free(channel->tls);
	uv_freeaddrinfo(channel->addresses);
	buf_free(&channel->output);
	free(channel->host);
	free(channel->port);
	free(channel->authority);
	free(channel);
}

static void
handle_closed(uv_handle_t *handle)
{
	struct channel *channel = handle->data;

	channel->handles--;
	if (channel->state == CHANNEL_CLOSED)
		release(channel);
	else
		try_next_address(channel);
}

static void
close_socket(struct channel *channel)
{
	if (!channel->socket_open)
		return;
	channel->socket_open = false;
	uv_close((uv_handle_t *) &channel->socket, handle_closed);
}

static void
unlink_exchange(struct channel *channel, struct exchange *exchange)
{
	struct exchange **at = &channel->exchanges;

	while (*at != NULL && *at != exchange)
		at = &(*at)->next;
	if (*at == exchange)
		*at = exchange->next;
	exchange->next = NULL;
	exchange->channel = NULL;
}

/* Let go of everything but the exchanges. */
static void
shut(struct channel *channel)
{
	channel->state = CHANNEL_CLOSED;
	if (channel->resolving)
		uv_cancel((uv_req_t *) &channel->resolver);
	close_socket(channel);
	uv_close((uv_handle_t *) &channel->timer, handle_closed);
	uv_close((uv_handle_t *) &channel->flusher, handle_closed);
}

void
channel_close(struct channel *channel)
{
	if (channel->state == CHANNEL_CLOSED)
		return;
	shut(channel);
	for (struct exchange *e = channel->exchanges; e != NULL; e = e->next)
		e->channel = NULL;
	channel->exchanges = NULL;
}

/*
 * End the channel and tell: first of every exchange, then of the channel. A
 * callback may cancel other exchanges, so each is taken off the list by itself.
 */
static void
go_down(struct channel *channel, const char *why)
{
	if (channel->state == CHANNEL_CLOSED)
		return;
	shut(channel);
	while (channel->exchanges != NULL)
	{
		struct exchange *exchange = channel->exchanges;

		unlink_exchange(channel, exchange);
		exchange->why = why;
		channel->events->finished(channel->arg, exchange,
								  channel->spoke ? EXCHANGE_LOST : EXCHANGE_UNHEARD);
	}
	channel->events->down(channel->arg, channel, why);
}

/* The connection is of no use: down, or to the next address when it never was of any. */
static void
lose(struct channel *channel, const char *why)
{
	if (channel->state != CHANNEL_SECURING)
	{
		go_down(channel, why);
		return;
	}
	snprintf(channel->failure, sizeof(channel->failure), "%s", why);
	channel->state = CHANNEL_CONNECTING;
	close_socket(channel);
}

/* ---- writing ---- */

static bool
is_connected(const struct channel *channel)
{
	return channel->state == CHANNEL_SECURING || channel->state == CHANNEL_UP;
}

static void flush(struct channel *channel);

static void
flush_now(uv_timer_t *flusher)
{
	flush(flusher->data);
}

/*
 * For requests from outside: a flush may run callbacks, which whoever asks does
 * not expect before it is done.
 */
static void
flush_soon(struct channel *channel)
{
	uv_timer_start(&channel->flusher, flush_now, 0, 0);
}

static void
written(uv_write_t *writer, int status)
{
	struct channel *channel = writer->data;

	channel->writing = false;
	if (!is_connected(channel))
		return;
	if (status < 0)
		lose(channel, uv_strerror(status));
	else
		flush(channel);
}

/* Everything nghttp2 has to say into *out; false when the session is broken. */
static bool
collect_output(struct channel *channel, struct buf *out)
{
	bool		ok = true;

	channel->in_session = true;
	for (;;)
	{
		const uint8_t *data;
		ssize_t		n = nghttp2_session_mem_send(channel->session, &data);

		if (n < 0)
			ok = false;
		if (n <= 0)
			break;
		buf_append(out, data, (size_t) n);
	}
	channel->in_session = false;
	return ok;
}

/* Seal the output, behind what TLS itself has to say. */
static void
seal(struct channel *channel)
{
	struct buf *sealed = tls_sealed(channel->tls);

	tls_write(channel->tls, channel->output.data, channel->output.len);
	buf_reset(&channel->output);
	buf_append(&channel->output, sealed->data, sealed->len);
	tls_sent(channel->tls);
}

static void
flush(struct channel *channel)
{
	uv_buf_t	piece;
	int			n;

	if (!is_connected(channel) || channel->writing || channel->in_session)
		return;
	buf_reset(&channel->output);
	if (channel->state == CHANNEL_UP && !collect_output(channel, &channel->output))
	{
		go_down(channel, "HTTP/2 protocol error");
		return;
	}

	/* Callbacks during the collection may have closed the channel. */
	if (!is_connected(channel))
		return;
	if (channel->tls != NULL)
		seal(channel);
	if (channel->output.len == 0)
		return;
	piece = uv_buf_init((char *) channel->output.data, (unsigned) channel->output.len);
	channel->writer.data = channel;
	n = uv_write(&channel->writer, (uv_stream_t *) &channel->socket, &piece, 1, written);
	if (n < 0)
		lose(channel, uv_strerror(n));
	else
		channel->writing = true;
}

/* ---- nghttp2's callbacks ---- */

static ssize_t
read_request(nghttp2_session *session, int32_t stream_id, uint8_t *out, size_t cap,
			 uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct exchange *exchange = source->ptr;
	size_t		n = exchange->request->len - exchange->sent;

	(void) session;
	(void) stream_id;
	(void) user;
	if (n > cap)
		n = cap;
	memcpy(out, exchange->request->data + exchange->sent, n);
	exchange->sent += n;
	if (exchange->sent == exchange->request->len)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t) n;
}

static bool
is_named(const char *name, const uint8_t *text, size_t len)
{
	return strlen(name) == len && memcmp(name, text, len) == 0;
}

static int
decimal(const uint8_t *text, size_t len)
{
	int			value = 0;

	if (len == 0 || len > 4)
		return -1;
	for (size_t i = 0; i < len; i++)
	{
		if (text[i] < '0' || text[i] > '9')
			return -1;
		value = value * 10 + (text[i] - '0');
	}
	return value;
}

static int
on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		  size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags, void *user)
{
	struct exchange *exchange = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	static const char grpc[] = "application/grpc";

	(void) flags;
	(void) user;
	if (exchange == NULL)
		return 0;
	if (is_named(":status", name, name_len))
		exchange->http_status = decimal(value, value_len);
	else if (is_named("grpc-status", name, name_len))
		exchange->grpc_status = decimal(value, value_len);
	else if (is_named("grpc-message", name, name_len))
	{
		buf_reset(&exchange->grpc_message);
		buf_append(&exchange->grpc_message, value, value_len);
	}
	else if (is_named("wiggle-missing-shards", name, name_len))
		buf_append(&exchange->missing, value, value_len);
	else if (is_named("wiggle-next", name, name_len))
		buf_append(&exchange->next_page, value, value_len);
	else if (is_named("content-type", name, name_len))
		exchange->not_grpc = value_len < sizeof(grpc) - 1 ||
			memcmp(value, grpc, sizeof(grpc) - 1) != 0;
	return 0;
}

static int
on_data(nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *data,
		size_t len, void *user)
{
	struct channel *channel = user;
	struct exchange *exchange = nghttp2_session_get_stream_user_data(session, stream_id);

	(void) flags;
	if (exchange == NULL || exchange->not_grpc)
		return 0;
	if (grpc_frame_feed(&exchange->reply, data, len, channel->max_reply) > GRPC_FRAME_WHOLE)
		nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream_id, NGHTTP2_CANCEL);
	return 0;
}

static int
on_stream_close(nghttp2_session *session, int32_t stream_id, uint32_t code, void *user)
{
	struct channel *channel = user;
	struct exchange *exchange = nghttp2_session_get_stream_user_data(session, stream_id);
	enum exchange_end end = EXCHANGE_RESET;

	if (exchange == NULL || exchange->channel != channel)
		return 0;
	unlink_exchange(channel, exchange);

	/* A status stands even when the server cut the rest of the request off. */
	if (code == NGHTTP2_NO_ERROR || exchange->grpc_status >= 0)
		end = EXCHANGE_DONE;
	else if (code == NGHTTP2_REFUSED_STREAM ||
			 (exchange->sent == 0 && exchange->http_status == 0))
		end = EXCHANGE_REFUSED;
	channel->events->finished(channel->arg, exchange, end);
	return 0;
}

static int
on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct channel *channel = user;

	(void) session;
	channel->spoke = true;
	if (frame->hd.type == NGHTTP2_GOAWAY)
		channel->goodbye = true;
	else if (frame->hd.type == NGHTTP2_PING && (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0)
		channel->pinged = false;
	return 0;
}

static void
start_session(struct channel *channel)
{
	const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW}
	};
	nghttp2_session_callbacks *callbacks;

	nghttp2_session_callbacks_new(&callbacks);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	if (nghttp2_session_client_new(&channel->session, callbacks, channel) != 0)
		abort();
	nghttp2_session_callbacks_del(callbacks);
	nghttp2_submit_settings(channel->session, NGHTTP2_FLAG_NONE, settings, 2);
	nghttp2_session_set_local_window_size(channel->session, NGHTTP2_FLAG_NONE, 0,
										  CONNECTION_WINDOW);
}

/* ---- reading ---- */

static void
give_room(uv_handle_t *handle, size_t suggested, uv_buf_t *room)
{
	struct channel *channel = handle->data;

	(void) suggested;
	*room = uv_buf_init((char *) channel->input, sizeof(channel->input));
}

static void
take_frames(struct channel *channel, const uint8_t *data, size_t len)
{
	ssize_t		used;

	channel->in_session = true;
	used = nghttp2_session_mem_recv(channel->session, data, len);
	channel->in_session = false;
	if (channel->state != CHANNEL_UP)
		return;
	if (used < 0)
		go_down(channel, used == NGHTTP2_ERR_BAD_CLIENT_MAGIC || used == NGHTTP2_ERR_PROTO
				? "the server does not speak HTTP/2" : nghttp2_strerror((int) used));
	else if (channel->goodbye && channel->exchanges == NULL)
		go_down(channel, "the server said goodbye");
}

static void go_up(struct channel *channel);

/* The handshake is over; was h2 agreed on? */
static void
secured(struct channel *channel)
{
	const unsigned char *protocol;
	unsigned	len;

	SSL_get0_alpn_selected(tls_ssl(channel->tls), &protocol, &len);
	if (len == 2 && memcmp(protocol, "h2", 2) == 0)
		go_up(channel);
	else
		lose(channel, "the server speaks TLS, but no HTTP/2 in it");
}

static void
take_sealed(struct channel *channel, const uint8_t *data, size_t len)
{
	uint8_t		plain[16384];
	enum tls_event event;
	size_t		n;

	tls_feed(channel->tls, data, len);
	do
	{
		event = tls_read(channel->tls, plain, sizeof(plain), &n);
		if (event == TLS_READY)
			secured(channel);
		else if (event == TLS_DATA)
			take_frames(channel, plain, n);
	} while ((event == TLS_READY || event == TLS_DATA) && is_connected(channel));
	if (!is_connected(channel))
		return;
	flush(channel);
	if (event == TLS_EOF)
		lose(channel, "the server closed the connection");
	else if (event == TLS_FAILED)
		lose(channel, tls_failure(channel->tls));
}

static void
take_input(uv_stream_t *stream, ssize_t n, const uv_buf_t *room)
{
	struct channel *channel = stream->data;
	const uint8_t *data = (const uint8_t *) room->base;

	if (n == 0 || !is_connected(channel))
		return;
	if (n == UV_EOF)
		lose(channel, channel->state == CHANNEL_UP ? "the server closed the connection"
			 : "the server closed the connection in the TLS handshake; does it speak TLS?");
	else if (n < 0)
		lose(channel, uv_strerror((int) n));
	else if (channel->tls != NULL)
		take_sealed(channel, data, (size_t) n);
	else
	{
		take_frames(channel, data, (size_t) n);
		flush(channel);
	}
}

/* ---- connecting ---- */

static void
tick(uv_timer_t *timer)
{
	struct channel *channel = timer->data;

	if (channel->state == CHANNEL_CONNECTING || channel->state == CHANNEL_SECURING)
	{
		snprintf(channel->failure, sizeof(channel->failure), "no answer within %d seconds",
				 CONNECT_TIMEOUT_MS / 1000);
		channel->state = CHANNEL_CONNECTING;
		close_socket(channel);
	}
	else if (channel->state == CHANNEL_UP && channel->pinged)
		go_down(channel, "the server does not answer any more");
	else if (channel->state == CHANNEL_UP && channel->exchanges != NULL)
	{
		channel->pinged = true;
		nghttp2_submit_ping(channel->session, NGHTTP2_FLAG_NONE, NULL);
		flush(channel);
	}
}

static void
go_up(struct channel *channel)
{
	channel->state = CHANNEL_UP;
	uv_timer_start(&channel->timer, tick, PING_MS, PING_MS);
	start_session(channel);
	channel->events->up(channel->arg);
	flush(channel);
}

/* Begin the handshake: the server's certificate must name the host, or whom we were told. */
static void
secure(struct channel *channel)
{
	static const unsigned char h2[] = "\x02h2";
	const char *name = channel->security->server_name != NULL ? channel->security->server_name : channel->host;
	struct in6_addr address;
	SSL		   *ssl;

	channel->state = CHANNEL_SECURING;
	channel->tls = tls_open(channel->security->context, false);
	ssl = tls_ssl(channel->tls);
	SSL_set_alpn_protos(ssl, h2, sizeof(h2) - 1);
	if (inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1)
		X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name);
	else
	{
		SSL_set_tlsext_host_name(ssl, name);
		SSL_set1_host(ssl, name);
	}
	tls_greet(channel->tls);
	flush(channel);
}

static void
connected(uv_connect_t *connector, int status)
{
	struct channel *channel = connector->data;

	if (channel->state != CHANNEL_CONNECTING || !channel->socket_open)
		return;
	if (status < 0)
	{
		snprintf(channel->failure, sizeof(channel->failure), "%s", uv_strerror(status));
		close_socket(channel);
		return;
	}
	uv_tcp_nodelay(&channel->socket, 1);
	uv_read_start((uv_stream_t *) &channel->socket, give_room, take_input);
	if (channel->security->context != NULL)
		secure(channel);
	else
		go_up(channel);
}

static void
try_next_address(struct channel *channel)
{
	int			rc;

	channel->address = channel->address == NULL ? channel->addresses
		: channel->address->ai_next;
	if (channel->address == NULL)
	{
		go_down(channel, channel->failure);
		return;
	}
	tls_free(channel->tls);
	channel->tls = NULL;
	uv_tcp_init(channel->loop, &channel->socket);
	channel->socket.data = channel;
	channel->socket_open = true;
	channel->handles++;
	channel->connector.data = channel;
	uv_timer_start(&channel->timer, tick, CONNECT_TIMEOUT_MS, 0);
	rc = uv_tcp_connect(&channel->connector, &channel->socket, channel->address->ai_addr,
						connected);
	if (rc != 0)
	{
		snprintf(channel->failure, sizeof(channel->failure), "%s", uv_strerror(rc));
		close_socket(channel);
	}
}

static void
resolved(uv_getaddrinfo_t *resolver, int status, struct addrinfo *addresses)
{
	struct channel *channel = resolver->data;

	channel->resolving = false;
	channel->addresses = addresses;
	if (channel->state == CHANNEL_CLOSED)
	{
		release(channel);
		return;
	}
	if (status < 0)
	{
		snprintf(channel->failure, sizeof(channel->failure), "the name '%s' is not known: %s",
				 channel->host, uv_strerror(status));
		go_down(channel, channel->failure);
		return;
	}
	channel->state = CHANNEL_CONNECTING;
	try_next_address(channel);
}

static void
resolve_failed(uv_timer_t *timer)
{
	struct channel *channel = timer->data;

	go_down(channel, channel->failure);
}

struct channel *
channel_open(uv_loop_t *loop, const char *host, const char *port, const struct security *security,
			 size_t max_reply, const struct channel_events *events, void *arg)
{
	struct channel *channel = xcalloc(1, sizeof(*channel));
	const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct buf	authority = BUF_INIT;
	int			rc;

	channel->loop = loop;
	channel->events = events;
	channel->arg = arg;
	channel->security = security;
	channel->max_reply = max_reply;
	channel->host = xstrdup(host);
	channel->port = xstrdup(port);
	buf_printf(&authority, strchr(host, ':') != NULL ? "[%s]:%s" : "%s:%s", host, port);
	channel->authority = xstrdup(buf_cstr(&authority));
	buf_free(&authority);
	uv_timer_init(loop, &channel->timer);
	channel->timer.data = channel;
	uv_timer_init(loop, &channel->flusher);
	channel->flusher.data = channel;
	channel->handles = 2;
	channel->resolver.data = channel;
	channel->resolving = true;
	rc = uv_getaddrinfo(loop, &channel->resolver, resolved, host, port, &hints);
	if (rc < 0)
	{
		/* The caller does not hold the channel yet: tell it in the next turn. */
		channel->resolving = false;
		snprintf(channel->failure, sizeof(channel->failure), "the name '%s' is not usable: %s",
				 host, uv_strerror(rc));
		uv_timer_start(&channel->timer, resolve_failed, 0, 0);
	}
	return channel;
}

/* ---- exchanges ---- */

bool
channel_usable(const struct channel *channel)
{
	return channel->state == CHANNEL_UP && !channel->goodbye &&
		nghttp2_session_check_request_allowed(channel->session) != 0;
}

bool
channel_leaving(const struct channel *channel)
{
	return channel->state == CHANNEL_CLOSED ||
		(channel->state == CHANNEL_UP && !channel_usable(channel));
}

#define MAX_HEADERS 10			/* of a request */

#define HEADER(key, text) \
	{(uint8_t *) (key), (uint8_t *) (text), sizeof(key) - 1, strlen(text), NGHTTP2_NV_FLAG_NONE}

void
channel_send(struct channel *channel, struct exchange *exchange)
{
	const char *authorization = channel->security->authorization;
	nghttp2_nv	headers[MAX_HEADERS] = {
		HEADER(":method", "POST"),
		HEADER(":scheme", channel->tls != NULL ? "https" : "http"),
		HEADER(":path", exchange->path),
		HEADER(":authority", channel->authority),
		HEADER("te", "trailers"),
		HEADER("content-type", "application/grpc"),
		HEADER("wiggle-partial", "allow"),
		HEADER("user-agent", "wiggle/" WIGGLE_VERSION)
	};
	size_t		n = 8;
	nghttp2_data_provider body = {
		.source.ptr = exchange,
		.read_callback = read_request
	};
	int32_t		id;

	if (authorization != NULL)
		headers[n++] = (nghttp2_nv) HEADER("authorization", authorization);
	if (exchange->after != NULL)
		headers[n++] = (nghttp2_nv) HEADER("wiggle-after", exchange->after);
	exchange->sent = 0;
	exchange->http_status = 0;
	exchange->grpc_status = -1;
	exchange->not_grpc = false;
	exchange->why = NULL;
	buf_reset(&exchange->grpc_message);
	buf_reset(&exchange->missing);
	buf_reset(&exchange->next_page);
	buf_free(&exchange->reply.body);
	memset(&exchange->reply, 0, sizeof(exchange->reply));
	id = nghttp2_submit_request(channel->session, NULL, headers, n, &body, exchange);
	if (id < 0)
		abort();
	exchange->stream_id = id;
	exchange->channel = channel;
	exchange->next = channel->exchanges;
	channel->exchanges = exchange;
	flush_soon(channel);
}

void
channel_cancel(struct exchange *exchange)
{
	struct channel *channel = exchange->channel;

	if (channel == NULL)
		return;
	unlink_exchange(channel, exchange);
	if (channel->state != CHANNEL_UP)
		return;

	/* nghttp2 may hold the pointer still, for a stream that waits for its turn. */
	nghttp2_session_set_stream_user_data(channel->session, exchange->stream_id, NULL);
	nghttp2_submit_rst_stream(channel->session, NGHTTP2_FLAG_NONE, exchange->stream_id,
							  NGHTTP2_CANCEL);
	flush_soon(channel);
}
