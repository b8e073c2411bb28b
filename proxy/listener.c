/*
 * listener.c
 *	  The port for clients.
 */
#include "address.h"
#include "config.h"
#include "conn.h"
#include "drain.h"
#include "listener.h"
#include "log.h"

#define BACKLOG 1024

static uv_tcp_t server;
static bool opened;
static int	port;

static void
on_connection(uv_stream_t *stream, int status)
{
	static struct log_gate gate;

	if (status == 0)
		conn_accept(stream);
	else if (log_gate_open(&gate))
		log_warn("listener", "cannot accept a connection: %s", uv_strerror(status));
}

static void
close_port(void)
{
	if (opened && !uv_is_closing((uv_handle_t *) &server))
		uv_close((uv_handle_t *) &server, NULL);
}

static const struct drain_hook hook = {.name = "listener", .begin = close_port, .stop = close_port};

void
listener_setup(void)
{
	drain_register(&hook);
}

bool
listener_open(struct wig_error *err)
{
	struct sockaddr_storage addr;
	int			len = sizeof(addr);
	int			rc;

	if (!address_parse("WIGGLE_BIND", config.bind, config.port, &addr, err))
		return false;
	uv_tcp_init(loop_get(), &server);
	opened = true;
	rc = uv_tcp_bind(&server, (struct sockaddr *) &addr, 0);
	if (rc == 0)
		rc = uv_listen((uv_stream_t *) &server, BACKLOG, on_connection);
	if (rc == 0)
		rc = uv_tcp_getsockname(&server, (struct sockaddr *) &addr, &len);
	if (rc != 0)
		return wig_fail(err, "cannot listen on %s port %lld (WIGGLE_BIND, WIGGLE_PORT): %s",
						config.bind, (long long) config.port, uv_strerror(rc));
	port = address_port(&addr);
	return true;
}

int
listener_port(void)
{
	return port;
}
