/*
 * client.c
 *	  Calls, their retries and deadlines, and the channel under them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "channel.h"
#include "client.h"
#include "status.h"

#define SERVICE				"/com.wiggle.proto.WiggleControlPlane/"
#define DEFAULT_PORT		"8080"
#define DEFAULT_TIMEOUT_MS	30000
#define DEFAULT_ATTEMPTS	5
#define DEFAULT_DELAY_MS	200
#define MAX_DELAY_MS		10000
#define MAX_REPLY_BYTES		(64u << 20)

enum call_state
{
	CALL_QUEUED,				/* waits for a usable channel */
	CALL_SENT,
	CALL_PAUSED,				/* waits for its next attempt */
	CALL_STRANDED				/* queued for a channel that came to nothing */
};

struct client_call
{
	struct exchange exchange;	/* first: a pointer to it is one to the call */
	struct client *client;
	struct client_call *next;
	enum call_state state;
	char	   *path;
	struct buf	request;
	int			attempt;
	int			max_attempts;
	bool		once;
	uint64_t	deadline;		/* loop time */
	uint64_t	resume_at;
	client_done_fn done;
	void	   *arg;
};

struct client
{
	uv_loop_t  *loop;
	const struct security *security;
	char	   *host;
	char	   *port;
	char	   *server;
	struct channel *channel;	/* for new calls; NULL: the next one opens it */
	struct channel **channels;	/* all that are not down, those leaving too */
	size_t		nchannels;
	struct client_call *calls;
	uv_timer_t	timer;			/* the nearest deadline or resumption */
	uint64_t	delay_ms;
	int			max_attempts;
	bool		freed;
};

static void pump(struct client *client);
static void arm(struct client *client);

/* ---- the server's address ---- */

/* Split "host", "host:port", "[v6]" or "[v6]:port"; false when it is none. */
static bool
split_server(const char *text, char **host, char **port)
{
	const char *scheme = strstr(text, "://");
	const char *start = scheme == NULL ? text : scheme + 3;
	size_t		len = strcspn(start, "/");
	const char *colon;
	const char *end = start + len;

	if (len > 0 && *start == '[')
	{
		const char *bracket = memchr(start, ']', len);

		if (bracket == NULL || bracket == start + 1 ||
			(bracket + 1 < end && bracket[1] != ':'))
			return false;
		*host = xstrndup(start + 1, (size_t) (bracket - start - 1));
		colon = bracket + 1 < end ? bracket + 1 : NULL;
	}
	else
	{
		colon = memchr(start, ':', len);
		if (len == 0 || colon == start ||
			(colon != NULL && memchr(colon + 1, ':', (size_t) (end - colon - 1)) != NULL))
			return false;
		*host = xstrndup(start, (size_t) ((colon == NULL ? end : colon) - start));
	}
	*port = colon == NULL ? xstrdup(DEFAULT_PORT)
		: xstrndup(colon + 1, (size_t) (end - colon - 1));
	if ((*port)[0] != '\0' && strspn(*port, "0123456789") == strlen(*port) &&
		strtol(*port, NULL, 10) <= 65535)
		return true;
	free(*host);
	free(*port);
	return false;
}

/* A positive number from the environment, or the default. */
static int
environment_number(const char *name, int absent)
{
	const char *text = getenv(name);
	char	   *end;
	long		value;

	if (text == NULL)
		return absent;
	value = strtol(text, &end, 10);
	return end != text && *end == '\0' && value > 0 && value < 1000000 ? (int) value : absent;
}

/* ---- the end of an attempt ---- */

static void
unlink_call(struct client_call *call)
{
	struct client_call **at = &call->client->calls;

	while (*at != call)
		at = &(*at)->next;
	*at = call->next;
}

static void
free_call(struct client_call *call)
{
	buf_free(&call->request);
	buf_free(&call->exchange.reply.body);
	buf_free(&call->exchange.grpc_message);
	buf_free(&call->exchange.missing);
	buf_free(&call->exchange.next_page);
	free(call->path);
	free(call);
}

static void
finish(struct client_call *call, const struct client_reply *reply)
{
	unlink_call(call);
	call->done(call->arg, reply);
	free_call(call);
}

static void
fail_call(struct client_call *call, enum grpc_status status, bool lost, const char *message)
{
	const struct client_reply reply = {.status = status, .message = message, .lost = lost};

	finish(call, &reply);
}

/* The delay before attempt number `attempt`, counted from 1. */
static uint64_t
delay_before(const struct client *client, int attempt)
{
	uint64_t	delay = client->delay_ms;

	for (; attempt > 2 && delay < MAX_DELAY_MS; attempt--)
		delay *= 2;
	return delay < MAX_DELAY_MS ? delay : MAX_DELAY_MS;
}

/* One attempt ended with UNAVAILABLE: pause, or end the call. */
static void
unavailable(struct client_call *call, const struct client_reply *reply)
{
	struct client *client = call->client;

	if (call->attempt >= call->max_attempts || (reply->lost && call->once))
	{
		finish(call, reply);
		return;
	}
	call->attempt++;
	call->state = CALL_PAUSED;
	call->resume_at = uv_now(client->loop) + delay_before(client, call->attempt);
}

/* The same when nothing came back. */
static void
unheard(struct client_call *call, bool lost, const char *message)
{
	const struct client_reply reply = {.status = GRPC_UNAVAILABLE, .message = message, .lost = lost};

	unavailable(call, &reply);
}

/* What a status of HTTP alone means, when the answer is not gRPC's. */
static enum grpc_status
status_of_http(int http)
{
	switch (http)
	{
		case 400:
			return GRPC_INTERNAL;
		case 401:
			return GRPC_UNAUTHENTICATED;
		case 403:
			return GRPC_PERMISSION_DENIED;
		case 404:
			return GRPC_UNIMPLEMENTED;
		case 429:
		case 502:
		case 503:
		case 504:
			return GRPC_UNAVAILABLE;
		default:
			return GRPC_UNKNOWN;
	}
}

/* The exchange ended in order: what did the server say? */
static void
take_answer(struct client_call *call)
{
	struct exchange *exchange = &call->exchange;
	struct client_reply reply = {.message = "", .answered = true};
	char		message[1024];
	char		http[64];

	if (exchange->grpc_status < 0)
	{
		snprintf(http, sizeof(http), "the server answered HTTP %d, not gRPC", exchange->http_status);
		reply.status = status_of_http(exchange->http_status);
		reply.message = http;
	}
	else
	{
		reply.status = (enum grpc_status) exchange->grpc_status;
		status_message_decode((const char *) exchange->grpc_message.data,
							  exchange->grpc_message.len, message, sizeof(message));
		if (reply.status != GRPC_OK)
			reply.message = message;
		else if (exchange->reply.state != GRPC_FRAME_WHOLE)
		{
			reply.status = GRPC_INTERNAL;
			reply.message = "the server's answer is not one whole message";
		}
	}
	if (reply.status == GRPC_UNAVAILABLE)
	{
		unavailable(call, &reply);
		return;
	}
	reply.missing = exchange->missing.len > 0 ? buf_cstr(&exchange->missing) : NULL;
	reply.next_page = exchange->next_page.len > 0 ? buf_cstr(&exchange->next_page) : NULL;
	reply.data = exchange->reply.body.data;
	reply.len = exchange->reply.body.len;
	finish(call, &reply);
}

static void
exchange_finished(void *arg, struct exchange *exchange, enum exchange_end end)
{
	struct client *client = arg;
	struct client_call *call = (struct client_call *) exchange;

	switch (end)
	{
		case EXCHANGE_DONE:
			take_answer(call);
			break;
		case EXCHANGE_REFUSED:
			unheard(call, false, "the server is closing the connection");
			break;
		case EXCHANGE_RESET:
			if (exchange->reply.state == GRPC_FRAME_TOO_LARGE)
				fail_call(call, GRPC_RESOURCE_EXHAUSTED, true, "the server's answer is too large");
			else
				fail_call(call, GRPC_INTERNAL, true, "the server broke the call off");
			break;
		case EXCHANGE_LOST:
			unheard(call, exchange->sent > 0, "the connection was lost");
			break;
		case EXCHANGE_UNHEARD:
			unheard(call, exchange->sent > 0, client->security->context != NULL ? exchange->why
					: "the connection was lost before a word of gRPC was said; is it wiggle-proxy's port?"
					" If it speaks TLS, say --tls");
			break;
	}
	if (!client->freed)
		arm(client);
}

/* ---- the channel ---- */

static void
channel_is_up(void *arg)
{
	pump(arg);
}

static struct client_call *
find_call(const struct client *client, enum call_state state)
{
	struct client_call *call = client->calls;

	while (call != NULL && call->state != state)
		call = call->next;
	return call;
}

static void
channel_is_down(void *arg, struct channel *channel, const char *why)
{
	struct client *client = arg;
	struct client_call *call;

	for (size_t i = 0; i < client->nchannels; i++)
	{
		if (client->channels[i] == channel)
			client->channels[i--] = client->channels[--client->nchannels];
	}
	if (client->channel != channel)
		return;
	client->channel = NULL;

	/*
	 * Whoever still waited for this channel has made an attempt. They are marked
	 * first: a callback may add and cancel calls.
	 */
	for (call = client->calls; call != NULL; call = call->next)
	{
		if (call->state == CALL_QUEUED)
			call->state = CALL_STRANDED;
	}
	while ((call = find_call(client, CALL_STRANDED)) != NULL)
		unheard(call, false, why);
	if (!client->freed)
		arm(client);
}

static const struct channel_events events = {
	.up = channel_is_up,
	.down = channel_is_down,
	.finished = exchange_finished
};

static void
open_channel(struct client *client)
{
	client->channel = channel_open(client->loop, client->host, client->port, client->security,
								   MAX_REPLY_BYTES, &events, client);
	client->channels = xrealloc(client->channels,
								(client->nchannels + 1) * sizeof(struct channel *));
	client->channels[client->nchannels++] = client->channel;
}

/* Send what waits, on a channel that takes it. */
static void
pump(struct client *client)
{
	bool		waiting = false;

	if (client->freed)
		return;
	for (struct client_call *call = client->calls; call != NULL; call = call->next)
	{
		if (call->state != CALL_QUEUED)
			continue;
		waiting = true;
		if (client->channel == NULL || !channel_usable(client->channel))
			continue;
		call->state = CALL_SENT;
		channel_send(client->channel, &call->exchange);
	}

	/*
	 * A channel that the server wants closed ends by itself when its last exchange
	 * has; new calls go to a new one.
	 */
	if (waiting && (client->channel == NULL || channel_leaving(client->channel)))
		open_channel(client);
}

/* ---- time ---- */

static struct client_call *
find_overdue(const struct client *client, uint64_t now)
{
	struct client_call *call = client->calls;

	while (call != NULL && call->deadline > now)
		call = call->next;
	return call;
}

static void
tick(uv_timer_t *timer)
{
	struct client *client = timer->data;
	uint64_t	now = uv_now(client->loop);
	struct client_call *call;

	while ((call = find_overdue(client, now)) != NULL)
	{
		bool		lost = call->state == CALL_SENT;

		channel_cancel(&call->exchange);
		fail_call(call, GRPC_DEADLINE_EXCEEDED, lost, "the server did not answer in time");
	}
	if (client->freed)
		return;
	for (call = client->calls; call != NULL; call = call->next)
	{
		if (call->state == CALL_PAUSED && call->resume_at <= now)
			call->state = CALL_QUEUED;
	}
	pump(client);
	arm(client);
}

/* Set the timer to what comes next. */
static void
arm(struct client *client)
{
	uint64_t	now = uv_now(client->loop);
	uint64_t	due = UINT64_MAX;

	for (struct client_call *call = client->calls; call != NULL; call = call->next)
	{
		if (call->deadline < due)
			due = call->deadline;
		if (call->state == CALL_PAUSED && call->resume_at < due)
			due = call->resume_at;
		/* One that waits for a connection is started by that connection. */
		if (call->state == CALL_QUEUED &&
			(client->channel == NULL || channel_usable(client->channel) ||
			 channel_leaving(client->channel)))
			due = now;
	}
	if (due == UINT64_MAX)
		uv_timer_stop(&client->timer);
	else
		uv_timer_start(&client->timer, tick, due > now ? due - now : 0, 0);
}

/* ---- the interface ---- */

struct client *
client_new(uv_loop_t *loop, const char *server, const struct security *security, const char **problem)
{
	struct client *client = xcalloc(1, sizeof(*client));
	struct buf	name = BUF_INIT;

	if (!split_server(server, &client->host, &client->port))
	{
		*problem = "a server is given as host:port";
		free(client);
		return NULL;
	}
	client->loop = loop;
	client->security = security;
	client->max_attempts = environment_number("WIGGLE_RPC_MAX_ATTEMPTS", DEFAULT_ATTEMPTS);
	client->delay_ms = (uint64_t) environment_number("WIGGLE_RPC_RETRY_DELAY_MILLIS",
													 DEFAULT_DELAY_MS);
	buf_printf(&name, strchr(client->host, ':') != NULL ? "[%s]:%s" : "%s:%s",
			   client->host, client->port);
	client->server = xstrdup(buf_cstr(&name));
	buf_free(&name);
	uv_timer_init(loop, &client->timer);
	client->timer.data = client;
	return client;
}

const char *
client_server(const struct client *client)
{
	return client->server;
}

struct client_call *
client_start(struct client *client, const char *method, const ProtobufCMessage *request,
			 const struct client_options *options, client_done_fn done, void *arg)
{
	static const struct client_options usual;
	struct client_call *call = xcalloc(1, sizeof(*call));
	struct buf	path = BUF_INIT;
	size_t		len = protobuf_c_message_get_packed_size(request);

	if (options == NULL)
		options = &usual;
	call->client = client;
	call->attempt = 1;
	call->max_attempts = options->max_attempts > 0 ? options->max_attempts : client->max_attempts;
	call->once = options->once;
	uv_update_time(client->loop);
	call->deadline = uv_now(client->loop) +
		(options->timeout_ms > 0 ? options->timeout_ms : DEFAULT_TIMEOUT_MS);
	call->done = done;
	call->arg = arg;

	buf_printf(&path, "%s%s", *method == '/' ? "" : SERVICE, method);
	call->path = (char *) buf_detach(&path, &(size_t) {0});
	buf_byte(&call->request, 0);
	buf_u32(&call->request, (uint32_t) len);
	buf_reserve(&call->request, len);
	call->request.len += protobuf_c_message_pack(request, call->request.data + call->request.len);
	call->exchange.path = call->path;
	call->exchange.request = &call->request;
	call->exchange.after = options->after;

	call->next = client->calls;
	client->calls = call;
	uv_timer_start(&client->timer, tick, 0, 0);
	return call;
}

void
client_cancel(struct client_call *call)
{
	channel_cancel(&call->exchange);
	unlink_call(call);
	free_call(call);
}

static void
timer_closed(uv_handle_t *handle)
{
	struct client *client = handle->data;

	free(client->host);
	free(client->port);
	free(client->server);
	free(client->channels);
	free(client);
}

void
client_free(struct client *client)
{
	if (client == NULL || client->freed)
		return;
	client->freed = true;
	for (size_t i = 0; i < client->nchannels; i++)
		channel_close(client->channels[i]);
	client->nchannels = 0;
	client->channel = NULL;
	while (client->calls != NULL)
	{
		struct client_call *call = client->calls;

		client->calls = call->next;
		channel_cancel(&call->exchange);
		free_call(call);
	}
	uv_close((uv_handle_t *) &client->timer, timer_closed);
}
