/*
 * http.c
 *	  The second port, by libmicrohttpd on the event loop: pages, and calls.
 */
#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "buf.h"
#include "cluster_page.h"
#include "config.h"
#include "health.h"
#include "http.h"
#include "http_call.h"
#include "http_tls.h"
#include "log.h"
#include "loop.h"
#include "metrics.h"
#include "tls_server.h"

#define HTTP_CONNECTIONS	(HTTP_CALLS + 64)	/* pages are served beside all calls */
#define HTTP_TIMEOUT_S		10

static struct MHD_Daemon *httpd;
static uv_poll_t poll_handle;
static struct deadline timeout;
static struct metric *ready;
static const char *arriving;	/* whose connection the daemon is being given, or NULL */

struct page
{
	const char *path;
	const char *type;
	unsigned	(*write) (struct buf *out);
};

static unsigned
write_healthz(struct buf *out)
{
	buf_text(out, "{\"status\":\"UP\"}\n");
	return MHD_HTTP_OK;
}

static unsigned
write_readyz(struct buf *out)
{
	health_write(out, NULL);
	return health_ready() ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE;
}

static unsigned
write_metrics(struct buf *out)
{
	metric_set(ready, health_ready());
	metrics_write(out);
	return MHD_HTTP_OK;
}

static unsigned
write_cluster(struct buf *out)
{
	cluster_page_write(out);
	return MHD_HTTP_OK;
}

static const struct page pages[] = {
	{"/healthz", "application/json", write_healthz},
	{"/readyz", "application/json", write_readyz},
	{"/metrics", "text/plain; version=0.0.4; charset=utf-8", write_metrics},
	{"/api/cluster", "application/json", write_cluster},
};

static enum MHD_Result
respond(struct MHD_Connection *connection, unsigned status, const char *type, struct buf *body)
{
	struct MHD_Response *response;
	enum MHD_Result result;

	response = MHD_create_response_from_buffer(body->len, body->data, MHD_RESPMEM_MUST_COPY);
	buf_free(body);
	if (response == NULL)
		return MHD_NO;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result
handle(void *cls, struct MHD_Connection *connection, const char *url, const char *method,
	   const char *version, const char *upload, size_t *upload_size, void **state)
{
	struct buf	body = BUF_INIT;
	unsigned	status;

	(void) cls;
	(void) version;
	if (http_call_is(url))
		return http_call_handle(connection, url, method, upload, upload_size, state);
	*upload_size = 0;
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
	{
		buf_text(&body, "only GET and HEAD are answered here, and POST to /com.wiggle.proto.WiggleControlPlane/...\n");
		return respond(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain", &body);
	}
	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++)
	{
		if (strcmp(pages[i].path, url) != 0)
			continue;
		status = pages[i].write(&body);
		return respond(connection, status, pages[i].type, &body);
	}
	buf_text(&body, "not found; there are /healthz /readyz /metrics /api/cluster\n");
	return respond(connection, MHD_HTTP_NOT_FOUND, "text/plain", &body);
}

static void
run(struct deadline *d)
{
	MHD_UNSIGNED_LONG_LONG wait;

	(void) d;
	MHD_run(httpd);
	if (MHD_get_timeout(httpd, &wait) == MHD_YES)
		deadline_set(&timeout, loop_now() + wait, run);
	else
		deadline_clear(&timeout);
}

static void
wake(void)
{
	deadline_set(&timeout, loop_now(), run);
}

static void
on_readable(uv_poll_t *handle_, int status, int events)
{
	(void) handle_;
	(void) status;
	(void) events;
	run(NULL);
}

/* A connection's context is the subject of its client's certificate, from its start to its end. */
static void
on_connection(void *cls, struct MHD_Connection *connection, void **context, enum MHD_ConnectionNotificationCode what)
{
	(void) cls;
	(void) connection;
	if (what == MHD_CONNECTION_NOTIFY_STARTED)
		*context = arriving != NULL ? xstrdup(arriving) : NULL;
	else
	{
		free(*context);
		*context = NULL;
	}
}

/* Without a port of its own the daemon gets its connections from the tunnels of TLS. */
static void
start_daemon(const struct sockaddr_storage *addr)
{
	unsigned	flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME;

	if (tls_server_on())
		flags |= MHD_USE_NO_LISTEN_SOCKET;
	else if (addr->ss_family == AF_INET6)
		flags |= MHD_USE_DUAL_STACK;
	httpd = MHD_start_daemon(flags, (uint16_t) config.dashboard_port, NULL, NULL, handle, NULL,
							 MHD_OPTION_SOCK_ADDR, (const struct sockaddr *) addr,
							 MHD_OPTION_CONNECTION_LIMIT, HTTP_CONNECTIONS,
							 MHD_OPTION_CONNECTION_TIMEOUT, HTTP_TIMEOUT_S,
							 MHD_OPTION_NOTIFY_COMPLETED, http_call_completed, NULL,
							 MHD_OPTION_NOTIFY_CONNECTION, on_connection, NULL,
							 MHD_OPTION_END);
}

/* The daemon has no thread of its own: it tells of the connection before it returns. */
static void
add_connection(int fd, const char *peer)
{
	const struct sockaddr addr = {.sa_family = AF_UNIX};

	arriving = peer;
	MHD_add_connection(httpd, fd, &addr, sizeof(addr.sa_family));
	arriving = NULL;
	wake();
}

bool
http_open(struct wig_error *err)
{
	struct sockaddr_storage addr;
	const union MHD_DaemonInfo *info;
	int			port;

	if (config.dashboard_port < 0)
		return true;
	if (!address_parse("WIGGLE_DASHBOARD_BIND", config.dashboard_bind, config.dashboard_port, &addr, err))
		return false;
	ready = metric_gauge("wiggle_proxy_ready", NULL, "1 while /readyz says so.");
	http_call_setup(wake);
	start_daemon(&addr);
	if (httpd == NULL)
		return wig_fail(err, "cannot listen on %s port %lld (WIGGLE_DASHBOARD_BIND, WIGGLE_DASHBOARD_PORT): %s",
						config.dashboard_bind, (long long) config.dashboard_port, strerror(errno));
	if (tls_server_on())
	{
		if (!http_tls_open((const struct sockaddr *) &addr, HTTP_CONNECTIONS, add_connection, &port, err))
			return false;
	}
	else
	{
		info = MHD_get_daemon_info(httpd, MHD_DAEMON_INFO_BIND_PORT);
		port = info->port;
	}
	info = MHD_get_daemon_info(httpd, MHD_DAEMON_INFO_EPOLL_FD);
	uv_poll_init(loop_get(), &poll_handle, info->epoll_fd);
	uv_poll_start(&poll_handle, UV_READABLE, on_readable);
	log_info("http", "health, metrics and JSON on %s port %d (%s)", config.dashboard_bind, port,
			 tls_server_on() ? "HTTPS" : "HTTP");
	return true;
}

void
http_close(void)
{
	if (httpd == NULL)
		return;
	deadline_clear(&timeout);
	uv_poll_stop(&poll_handle);
	uv_close((uv_handle_t *) &poll_handle, NULL);
	MHD_stop_daemon(httpd);
	httpd = NULL;
	http_tls_close();
}
