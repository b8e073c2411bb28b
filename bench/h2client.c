/*
 * h2client.c
 *	  Unary gRPC calls over nghttp2 for the load generator.
 */
#include <err.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <nghttp2/nghttp2.h>

#include "h2client.h"

#define PREFIX		5			/* gRPC: a flag byte and a 32-bit length */
#define OUT_SIZE	(256 * 1024)
#define MAX_CONNS	1024

struct h2_conn
{
	int			fd;
	nghttp2_session *session;
	char		authority[128];
	uint8_t	   *out;			/* bytes that the socket did not take yet */
	size_t		out_len;
};

struct h2_call
{
	h2_done_fn	done;
	void	   *arg;
	uint8_t    *request;
	size_t		request_len;
	size_t		request_sent;
	uint8_t    *reply;
	size_t		reply_len;
	size_t		reply_cap;
	int			status;
	char		message[256];
};

int64_t
now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t) ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static ssize_t
read_request(nghttp2_session *session, int32_t stream_id, uint8_t *buf, size_t length,
			 uint32_t *data_flags, nghttp2_data_source *source, void *user_data)
{
	struct h2_call *call = source->ptr;
	size_t		left = call->request_len - call->request_sent;
	size_t		n = left < length ? left : length;

	(void) session;
	(void) stream_id;
	(void) user_data;
	memcpy(buf, call->request + call->request_sent, n);
	call->request_sent += n;
	if (call->request_sent == call->request_len)
		*data_flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t) n;
}

static int
on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t namelen,
		  const uint8_t *value, size_t valuelen, uint8_t flags, void *user_data)
{
	struct h2_call *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

	(void) flags;
	(void) user_data;
	if (call == NULL)
		return 0;
	if (namelen == 11 && memcmp(name, "grpc-status", 11) == 0)
		call->status = (int) strtol((const char *) value, NULL, 10);
	else if (namelen == 12 && memcmp(name, "grpc-message", 12) == 0)
	{
		size_t		n = valuelen < sizeof(call->message) - 1 ? valuelen : sizeof(call->message) - 1;

		memcpy(call->message, value, n);
		call->message[n] = '\0';
	}
	return 0;
}

static int
on_data(nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *data, size_t len,
		void *user_data)
{
	struct h2_call *call = nghttp2_session_get_stream_user_data(session, stream_id);

	(void) flags;
	(void) user_data;
	if (call == NULL)
		return 0;
	if (call->reply_len + len > call->reply_cap)
	{
		call->reply_cap = (call->reply_len + len) * 2;
		call->reply = realloc(call->reply, call->reply_cap);
		if (call->reply == NULL)
			err(1, "realloc");
	}
	memcpy(call->reply + call->reply_len, data, len);
	call->reply_len += len;
	return 0;
}

static int
on_close(nghttp2_session *session, int32_t stream_id, uint32_t error_code, void *user_data)
{
	struct h2_call *call = nghttp2_session_get_stream_user_data(session, stream_id);
	struct h2_reply reply;

	(void) user_data;
	if (call == NULL)
		return 0;
	reply.status = call->status < 0 ? 1000 + (int) error_code : call->status;
	reply.message = call->message;
	reply.data = call->reply_len >= PREFIX ? call->reply + PREFIX : NULL;
	reply.len = call->reply_len >= PREFIX ? call->reply_len - PREFIX : 0;
	call->done(call->arg, &reply);
	free(call->request);
	free(call->reply);
	free(call);
	return 0;
}

static int
open_socket(const char *server, char *authority, size_t size)
{
	char		host[128];
	const char *colon = strrchr(server, ':');
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *list;
	int			fd = -1;
	int			one = 1;
	int			rc;

	if (colon == NULL || (size_t) (colon - server) >= sizeof(host) || strlen(server) >= size)
		errx(2, "server is host:port, not '%s'", server);
	memcpy(host, server, (size_t) (colon - server));
	host[colon - server] = '\0';
	memcpy(authority, server, strlen(server) + 1);
	rc = getaddrinfo(host, colon + 1, &hints, &list);
	if (rc != 0)
		errx(1, "%s: %s", server, gai_strerror(rc));
	for (struct addrinfo *a = list; a != NULL && fd < 0; a = a->ai_next)
	{
		fd = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
		if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) != 0)
		{
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(list);
	if (fd < 0)
		err(1, "cannot connect to %s", server);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

struct h2_conn *
h2_connect(const char *server)
{
	struct h2_conn *conn = calloc(1, sizeof(*conn));
	nghttp2_session_callbacks *callbacks;
	nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 4 << 20},
		{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
	};

	if (conn == NULL)
		err(1, "calloc");
	conn->fd = open_socket(server, conn->authority, sizeof(conn->authority));
	nghttp2_session_callbacks_new(&callbacks);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
	if (nghttp2_session_client_new(&conn->session, callbacks, conn) != 0)
		errx(1, "cannot make an HTTP/2 session");
	nghttp2_session_callbacks_del(callbacks);
	nghttp2_submit_settings(conn->session, NGHTTP2_FLAG_NONE, settings, 2);
	nghttp2_session_set_local_window_size(conn->session, NGHTTP2_FLAG_NONE, 0, 16 << 20);
	return conn;
}

void
h2_close(struct h2_conn *conn)
{
	nghttp2_session_del(conn->session);
	close(conn->fd);
	free(conn->out);
	free(conn);
}

#define NV(n, v, len) \
	{(uint8_t *) (n), (uint8_t *) (v), sizeof(n) - 1, (len), NGHTTP2_NV_FLAG_NO_COPY_NAME}

void
h2_call(struct h2_conn *conn, const char *rpc, const ProtobufCMessage *request, h2_done_fn done, void *arg)
{
	struct h2_call *call = calloc(1, sizeof(*call));
	size_t		len = protobuf_c_message_get_packed_size(request);
	char		path[128] = "/com.wiggle.proto.WiggleControlPlane/";
	size_t		base = strlen(path);
	nghttp2_data_provider provider = {.source = {.ptr = call}, .read_callback = read_request};

	if (call == NULL || base + strlen(rpc) >= sizeof(path))
		errx(1, "cannot make a call of %s", rpc);
	memcpy(path + base, rpc, strlen(rpc) + 1);
	call->done = done;
	call->arg = arg;
	call->status = -1;
	call->request_len = len + PREFIX;
	call->request = malloc(call->request_len);
	if (call->request == NULL)
		err(1, "malloc");
	call->request[0] = 0;
	for (int i = 0; i < 4; i++)
		call->request[1 + i] = (uint8_t) (len >> (24 - 8 * i));
	protobuf_c_message_pack(request, call->request + PREFIX);

	nghttp2_nv	headers[] = {
		NV(":method", "POST", 4),
		NV(":scheme", "http", 4),
		NV(":path", path, strlen(path)),
		NV(":authority", conn->authority, strlen(conn->authority)),
		NV("content-type", "application/grpc", 16),
		NV("te", "trailers", 8),
	};

	if (nghttp2_submit_request(conn->session, NULL, headers, sizeof(headers) / sizeof(headers[0]),
							   &provider, call) < 0)
		errx(1, "cannot submit a call of %s", rpc);
}

/* Everything queued goes out in one write; what the socket leaves is kept. */
static void
flush_conn(struct h2_conn *conn)
{
	const uint8_t *data;
	ssize_t		n;

	if (conn->out == NULL && (conn->out = malloc(OUT_SIZE)) == NULL)
		err(1, "malloc");
	while (conn->out_len < OUT_SIZE / 2 && (n = nghttp2_session_mem_send(conn->session, &data)) > 0)
	{
		if (conn->out_len + (size_t) n > OUT_SIZE)
			errx(1, "a frame of %zd bytes does not fit", n);
		memcpy(conn->out + conn->out_len, data, (size_t) n);
		conn->out_len += (size_t) n;
	}
	if (conn->out_len == 0)
		return;
	n = send(conn->fd, conn->out, conn->out_len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0 && errno != EAGAIN)
		err(1, "send");
	if (n > 0)
	{
		conn->out_len -= (size_t) n;
		memmove(conn->out, conn->out + n, conn->out_len);
	}
}

static void
read_conn(struct h2_conn *conn)
{
	static uint8_t buf[OUT_SIZE];
	ssize_t		n = recv(conn->fd, buf, sizeof(buf), MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0)
		errx(1, "the server closed the connection");
	n = nghttp2_session_mem_recv(conn->session, buf, (size_t) n);
	if (n < 0)
		errx(1, "HTTP/2: %s", nghttp2_strerror((int) n));
}

void
h2_turn(struct h2_conn *const *conns, int nconns, int timeout_ms)
{
	static struct pollfd fds[MAX_CONNS];

	if (nconns > MAX_CONNS)
		errx(2, "at most %d connections", MAX_CONNS);
	for (int i = 0; i < nconns; i++)
	{
		flush_conn(conns[i]);
		fds[i].fd = conns[i]->fd;
		fds[i].events = (short) (POLLIN | (conns[i]->out_len > 0 ? POLLOUT : 0));
	}
	if (poll(fds, (nfds_t) nconns, timeout_ms) < 0 && errno != EINTR)
		err(1, "poll");
	for (int i = 0; i < nconns; i++)
		if (fds[i].revents & (POLLIN | POLLHUP | POLLERR))
			read_conn(conns[i]);
}
