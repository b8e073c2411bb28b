/*
 * http_call.c
 *	  Calls by HTTP/1 on the second port.
 *
 * The daemon runs in the loop (http.c) and asks for the handler again after a
 * resume, so that an answer is only noted here and queued there.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "connect.h"
#include "drain.h"
#include "grpc_header.h"
#include "http_call.h"
#include "log.h"
#include "loop.h"
#include "metrics.h"
#include "stream.h"
#include "tls_server.h"

#define NAME_BYTES 64			/* longest name of a header field that has a meaning */

struct request
{
	struct MHD_Connection *connection;
	struct call *call;
	struct request *prev;
	struct request *next;
	uv_poll_t	socket;			/* watched while the connection is suspended */
	bool		watched;		/* socket is to be closed */
	bool		suspended;
	bool		half_closed;	/* the client sends no more */
	bool		answered;		/* the call's reply is set */
	bool		queued;			/* and given to the daemon */
	bool		gone;			/* the client, or we are about to end */
	bool		complete;		/* the whole request has come */
};

static struct request *requests;
static int	count;
static struct metric *open_gauge;
static void (*wake_daemon) (void);

/* --------------------------------------------------------- suspend, resume */

static void
resume(struct request *request)
{
	if (!request->suspended)
		return;
	request->suspended = false;
	uv_poll_stop(&request->socket);
	MHD_resume_connection(request->connection);
	wake_daemon();
}

/* The call's answer, from within its handler or later. */
static void
answered(struct call *call)
{
	struct request *request = call->carrier;

	request->answered = true;
	resume(request);
}

static void
give_up(struct request *request)
{
	request->gone = true;
	stream_cancel(request->call);
	resume(request);
}

/*
 * The first event is the end of the sending half, unless it is an error. The end of both
 * halves comes with any event that is waited for, and with nothing else: clients have no
 * business with urgent data.
 */
static void
on_socket(uv_poll_t *handle, int status, int events)
{
	struct request *request = handle->data;

	if (status != 0 || request->half_closed || events != UV_DISCONNECT)
	{
		give_up(request);
		return;
	}
	request->half_closed = true;
	uv_poll_start(handle, UV_PRIORITIZED, on_socket);
	stream_half_closed(request->call);
}

static int
socket_of(struct MHD_Connection *connection)
{
	return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

/* The daemon does not look at a suspended connection's socket. */
static enum MHD_Result
suspend(struct request *request)
{
	int			fd = socket_of(request->connection);

	MHD_suspend_connection(request->connection);
	if (!request->watched)
	{
		if (uv_poll_init(loop_get(), &request->socket, fd) != 0)
		{
			MHD_resume_connection(request->connection);
			wake_daemon();
			return MHD_NO;
		}
		request->socket.data = request;
		request->watched = true;
	}
	request->suspended = true;
	uv_poll_start(&request->socket, UV_DISCONNECT, on_socket);
	return MHD_YES;
}

/* ----------------------------------------------------------------- request */

static enum MHD_Result
take_header(void *cls, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct call *call = cls;
	uint8_t		lower[NAME_BYTES];
	size_t		len = strlen(name);

	(void) kind;
	if (value == NULL)
		value = "";
	for (size_t i = 0; i < len && i < sizeof(lower); i++)
		lower[i] = (uint8_t) tolower((unsigned char) name[i]);
	if (len > sizeof(lower))
		len = sizeof(lower);
	stream_header(call, lower, len, (const uint8_t *) value, strlen(value));
	return MHD_YES;
}

/* Probes come without a certificate, and calls as the setting says. */
static bool
lacks_certificate(const struct call *call)
{
	return tls_server_needs_peer() && call->peer == NULL;
}

static struct request *
open_request(struct MHD_Connection *connection, const char *path, const char *method)
{
	struct request *request = xcalloc(1, sizeof(*request));
	struct call *call =
		stream_open(NULL, 0, MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context);

	request->connection = connection;
	request->call = call;
	call->answered = answered;
	call->carrier = request;
	request->next = requests;
	if (requests != NULL)
		requests->prev = request;
	requests = request;
	metric_set(open_gauge, ++count);
	if (drain_started())
		stream_refuse(call, GRPC_UNAVAILABLE, 200, "the server is about to end");
	else if (count > HTTP_CALLS)
		stream_refuse(call, GRPC_RESOURCE_EXHAUSTED, 200, "too many calls wait for their answers; try again later");
	else if (lacks_certificate(call))
		stream_refuse(call, GRPC_UNAUTHENTICATED, 200, "calls need a client certificate here");
	/* also of what is refused: how it is told, and how much of a body comes, is in the fields */
	stream_header(call, (const uint8_t *) ":method", 7, (const uint8_t *) method, strlen(method));
	stream_header(call, (const uint8_t *) ":path", 5, (const uint8_t *) path, strlen(path));
	MHD_get_connection_values(connection, MHD_HEADER_KIND, take_header, call);
	stream_headers_end(call, false);
	return request;
}

/* The daemon frees the reply with the request: the call keeps it. */
static enum MHD_Result
queue_answer(struct request *request)
{
	const struct call *call = request->call;
	const char *value;
	const char *hint = connect_hint(call->http_status, &value);
	struct MHD_Response *response =
		MHD_create_response_from_buffer(call->reply_len - call->reply_sent, call->reply + call->reply_sent,
										MHD_RESPMEM_PERSISTENT);
	enum MHD_Result result;

	if (response == NULL)
		return MHD_NO;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
							connect_reply_type(call->http_status, call->format));
	if (hint != NULL)
		MHD_add_response_header(response, hint, value);
	if (call->missing != NULL)
		MHD_add_response_header(response, "wiggle-missing-shards", call->missing);
	if (call->next_page != NULL)
		MHD_add_response_header(response, "wiggle-next", call->next_page);
	if (drain_started())
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	result = MHD_queue_response(request->connection, call->http_status, response);
	MHD_destroy_response(response);
	request->queued = true;
	return result;
}

bool
http_call_is(const char *path)
{
	const char *method;
	size_t		len;
	enum method_shape shape;
	bool		grpc_only;

	return grpc_path_split(path, strlen(path), &method, &len) ||
		(method_find_standard(path, strlen(path), &shape, &grpc_only) != NULL && !grpc_only);
}

enum MHD_Result
http_call_handle(struct MHD_Connection *connection, const char *path, const char *method,
				 const char *upload, size_t *upload_size, void **state)
{
	struct request *request = *state;

	if (request == NULL)
	{
		*state = request = open_request(connection, path, method);
		return request->answered ? queue_answer(request) : MHD_YES;
	}
	if (request->gone)
		return MHD_NO;
	if (*upload_size > 0)
	{
		/* an answer cannot be queued among data: the connection just ends */
		stream_data(request->call, (const uint8_t *) upload, *upload_size);
		*upload_size = 0;
		return request->answered ? MHD_NO : MHD_YES;
	}
	if (!request->complete)
	{
		request->complete = true;
		stream_end(request->call);
		/*
		 * The daemon asks again at once. Suspended within the read that brought the
		 * request, the connection would be read before it is asked for its answer, and
		 * a client that sends no more be dropped.
		 */
		if (!request->answered)
			return MHD_YES;
	}
	if (!request->answered)
		return suspend(request);
	return request->queued ? MHD_YES : queue_answer(request);
}

static void
on_unwatched(uv_handle_t *handle)
{
	free(handle->data);
}

void
http_call_completed(void *cls, struct MHD_Connection *connection, void **state,
					enum MHD_RequestTerminationCode why)
{
	struct request *request = *state;

	(void) cls;
	(void) connection;
	(void) why;
	if (request == NULL)
		return;
	*state = NULL;
	stream_close(request->call);
	if (request->prev != NULL)
		request->prev->next = request->next;
	else
		requests = request->next;
	if (request->next != NULL)
		request->next->prev = request->prev;
	metric_set(open_gauge, --count);
	if (request->watched)
		uv_close((uv_handle_t *) &request->socket, on_unwatched);
	else
		free(request);
}

/* ------------------------------------------------------------------- drain */

static bool
idle(void)
{
	return count == 0;
}

/* Ends with the daemon, which must not stop with suspended connections. */
static void
stop(void)
{
	for (struct request *request = requests; request != NULL; request = request->next)
		give_up(request);
}

void
http_call_setup(void (*wake) (void))
{
	static const struct drain_hook hook = {.name = "HTTP/1 calls", .idle = idle, .stop = stop};

	wake_daemon = wake;
	open_gauge = metric_gauge("wiggle_proxy_http_calls", NULL, "Calls by HTTP/1 that are open.");
	drain_register(&hook);
}
