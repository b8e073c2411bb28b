/*
 * main.c
 *	  wiggle-proxy: Wiggle's gRPC protocol in front of PostgreSQL.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "config.h"
#include "conn.h"
#include "drain.h"
#include "health.h"
#include "http.h"
#include "listener.h"
#include "log.h"
#include "loop.h"
#include "pressure.h"
#include "signals.h"
#include "tls_server.h"
#include "work.h"

#define EXIT_SETTINGS 2

static int	outcome = EXIT_SUCCESS;
static struct health *port_health;

/* As many descriptors as we may have: each client is one. */
static void
raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void
give_up(const char *reason)
{
	log_error("main", "%s", reason);
	outcome = EXIT_FAILURE;
	drain_begin("start failed");
}

static void
on_opened(void)
{
	struct wig_error err;
	int			shards = work_shard_count();

	if (drain_started())
		return;
	if (config.migrate_only)
	{
		log_info("main", "%d shard%s set up", shards, shards == 1 ? " is" : "s are");
		drain_begin("WIGGLE_MIGRATE_ONLY asks for nothing else");
		return;
	}
	if (!listener_open(&err))
	{
		give_up(err.message);
		return;
	}
	health_set(port_health, true, "open");
	log_info("main", "Wiggle server '%s' on port %d (gRPC: %s, storage: %d shard%s)",
			 config.node_name, listener_port(), tls_server_mode(), shards, shards == 1 ? "" : "s");
}

static int
print_and_leave(enum config_outcome what)
{
	struct buf	help = BUF_INIT;

	if (what == CONFIG_VERSION)
		puts("wiggle-proxy " WIGGLE_VERSION);
	else
	{
		config_help(&help);
		fputs(buf_cstr(&help), stdout);
		buf_free(&help);
	}
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static void
tell_foreign(bool known, const char *text, void *arg)
{
	(void) arg;
	log_line(known ? LOG_LEVEL_INFO : LOG_LEVEL_WARN, "config", "%s", text);
}

static void
on_hangup(void)
{
	tls_server_reload();
	work_reload();
}

int
main(int argc, char **argv)
{
	struct wig_error err;
	enum config_outcome loaded = config_load(argc, argv, &err);

	if (loaded == CONFIG_HELP || loaded == CONFIG_VERSION)
		return print_and_leave(loaded);
	if (loaded == CONFIG_REFUSED)
	{
		log_error("config", "%s", err.message);
		return EXIT_SETTINGS;
	}
	log_setup((enum log_level) config.log_level, (enum log_format) config.log_format);
	config_foreign(tell_foreign, NULL);
	raise_descriptor_limit();
	loop_open();
	health_open();
	port_health = health_add("port", HEALTH_ALWAYS);
	signals_open(on_hangup);
	if (!tls_server_open(&err))
	{
		log_error("tls", "%s", err.message);
		return EXIT_SETTINGS;
	}
	pressure_start();
	listener_setup();
	conn_setup();
	if (!work_start(on_opened, give_up, &err))
	{
		log_error("topology", "%s", err.message);
		return EXIT_SETTINGS;
	}
	if (!config.migrate_only && !http_open(&err))
	{
		log_error("http", "%s", err.message);
		return EXIT_FAILURE;
	}
	uv_run(loop_get(), UV_RUN_DEFAULT);
	http_close();
	loop_close();
	return outcome != EXIT_SUCCESS ? outcome : drain_status();
}
