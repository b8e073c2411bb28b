/*
 * config.h
 *	  Every setting of the proxy, with its name, default, unit and range.
 *
 * Each has an environment variable (WIGGLE_…) and a flag (--…, which wins); the
 * const table in setting.c drives both, the checks and --help. Nothing can be
 * changed while the process runs.
 */
#ifndef WIGGLE_PROXY_CONFIG_H
#define WIGGLE_PROXY_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "error.h"
#include "log.h"

enum schema_mode
{
	SCHEMA_APPLY,				/* create or update the extension on start */
	SCHEMA_VERIFY				/* refuse a shard that is not as expected */
};

enum tls_client_auth
{
	TLS_CLIENT_REQUIRED,		/* with a truststore: no connection without a certificate */
	TLS_CLIENT_OPTIONAL
};

enum grpc_auth
{
	GRPC_AUTH_OFF,				/* credentials are not looked at */
	GRPC_AUTH_LOG,				/* every call is served, refusals are only told */
	GRPC_AUTH_ENFORCE
};

enum migrate_only
{
	MIGRATE_ONLY_FALSE,
	MIGRATE_ONLY_TRUE
};

enum task_partitioning
{
	TASK_PARTITIONING_FALSE,
	TASK_PARTITIONING_TRUE
};

struct config
{
	/* where to listen, who we are */
	const char *bind;			/* WIGGLE_BIND */
	int64_t		port;			/* WIGGLE_PORT; 0 = any free port */
	const char *dashboard_bind; /* WIGGLE_DASHBOARD_BIND */
	int64_t		dashboard_port; /* WIGGLE_DASHBOARD_PORT; 0 = any free, -1 = off */
	const char *node_name;		/* WIGGLE_NODE_NAME; default: the host's name */
	int64_t		log_level;		/* WIGGLE_LOG_LEVEL: enum log_level */
	int64_t		log_format;		/* WIGGLE_LOG_FORMAT: enum log_format */

	/* TLS; "" = not set */
	const char *tls_keystore;	/* WIGGLE_TLS_KEYSTORE: PEM or PKCS#12; "" = plaintext */
	const char *tls_keystore_password;	/* WIGGLE_TLS_KEYSTORE_PASSWORD */
	const char *tls_key;		/* WIGGLE_TLS_KEY: PEM, when it is not in the keystore */
	const char *tls_truststore; /* WIGGLE_TLS_TRUSTSTORE: whose clients' certificates hold */
	const char *tls_truststore_password;	/* WIGGLE_TLS_TRUSTSTORE_PASSWORD */
	int64_t		tls_client_auth;	/* WIGGLE_TLS_CLIENT_AUTH: enum tls_client_auth */
	int64_t		tls_handshake_ms;	/* WIGGLE_TLS_HANDSHAKE_MILLIS */

	/* who may call what */
	int64_t		grpc_auth;		/* WIGGLE_GRPC_AUTH: enum grpc_auth */
	int64_t		auth_cache_ms;	/* WIGGLE_AUTH_CACHE_MILLIS */

	/* the databases; "" = not set */
	const char *storage_topology;	/* WIGGLE_STORAGE_TOPOLOGY: path or JSON */
	const char *jdbc_url;		/* WIGGLE_JDBC_URL */
	const char *jdbc_user;		/* WIGGLE_JDBC_USER */
	const char *jdbc_password;	/* WIGGLE_JDBC_PASSWORD */
	int64_t		jdbc_pool_size; /* WIGGLE_JDBC_POOL_SIZE */
	const char *jdbc_replica_urls;	/* WIGGLE_JDBC_REPLICA_URLS: by commas */
	int64_t		jdbc_replica_pool_size; /* WIGGLE_JDBC_REPLICA_POOL_SIZE: of each */
	int64_t		jdbc_max_replica_lag_ms;	/* WIGGLE_JDBC_MAX_REPLICA_LAG_MILLIS */
	int64_t		jdbc_replica_fallback;	/* WIGGLE_JDBC_REPLICA_FALLBACK: enum replica_fallback */
	int64_t		schema_mode;	/* WIGGLE_SCHEMA_MODE: enum schema_mode */
	int64_t		migrate_only;	/* WIGGLE_MIGRATE_ONLY: enum migrate_only; set the shards up and leave */
	int64_t		connect_timeout_ms; /* WIGGLE_CONNECT_TIMEOUT_MILLIS */
	int64_t		statement_timeout_ms;	/* WIGGLE_STATEMENT_TIMEOUT_MILLIS, cold path */
	int64_t		startup_timeout_ms; /* WIGGLE_STARTUP_TIMEOUT_MILLIS: see work.h */

	/* the engine's settings of every shard; config_pushed() has those that are given */
	int64_t		housekeeping_batch; /* WIGGLE_HOUSEKEEPING_BATCH */
	int64_t		loop_max_iterations;	/* WIGGLE_LOOP_MAX_ITERATIONS */
	int64_t		retention_ms;	/* WIGGLE_RETENTION_MILLIS */
	int64_t		events_retention_ms;	/* WIGGLE_EVENTS_RETENTION_MILLIS */
	int64_t		record_step_io; /* WIGGLE_RECORD_STEP_IO */
	int64_t		retry_timer_min_ms; /* WIGGLE_RETRY_TIMER_MIN_MILLIS */
	int64_t		allow_graph_replace;	/* WIGGLE_ALLOW_GRAPH_REPLACE */

	/* workers */
	int64_t		longpoll_max_ms;	/* WIGGLE_LONGPOLL_MAX_MILLIS */
	int64_t		lease_ms;		/* WIGGLE_LEASE_MILLIS */
	int64_t		max_parked_polls;	/* WIGGLE_MAX_PARKED_POLLS */
	int64_t		poll_retry_ms;	/* WIGGLE_POLL_RETRY_MILLIS: retry_after when over a bound */
	int64_t		poller_ttl_ms;	/* WIGGLE_POLLER_TTL_MILLIS */
	int64_t		queue_lag_check_ms; /* WIGGLE_QUEUE_LAG_CHECK_INTERVAL_MILLIS */
	int64_t		queue_lag_warn_ms;	/* WIGGLE_QUEUE_LAG_WARN_MILLIS; 0 = no warnings */
	int64_t		max_event_polls;	/* WIGGLE_MAX_EVENT_POLLS */
	int64_t		task_partitioning;	/* WIGGLE_TASK_PARTITIONING: enum task_partitioning */

	/* lanes */
	int64_t		lanes_per_shard;	/* WIGGLE_LANES_PER_SHARD: at most */
	int64_t		lane_queue_items;	/* WIGGLE_LANE_QUEUE_ITEMS */
	int64_t		lane_queue_bytes;	/* WIGGLE_LANE_QUEUE_BYTES */
	int64_t		lane_batch_items;	/* WIGGLE_LANE_BATCH_ITEMS */
	int64_t		lane_batch_bytes;	/* WIGGLE_LANE_BATCH_BYTES */
	int64_t		side_connections;	/* WIGGLE_SIDE_CONNECTIONS: per shard, cold path */
	int64_t		side_queue_items;	/* WIGGLE_SIDE_QUEUE_ITEMS */

	/* inbound bounds */
	int64_t		max_message_bytes;	/* WIGGLE_MAX_MESSAGE_BYTES */
	int64_t		max_header_bytes;	/* WIGGLE_MAX_HEADER_BYTES */
	int64_t		max_streams;	/* WIGGLE_MAX_STREAMS: per connection */
	int64_t		max_connections;	/* WIGGLE_MAX_CONNECTIONS */
	int64_t		max_request_bytes;	/* WIGGLE_MAX_REQUEST_BYTES: held in the process */
	int64_t		max_request_conn_bytes; /* WIGGLE_MAX_REQUEST_CONN_BYTES: waiting per connection */
	int64_t		max_unsent_conn_bytes;	/* WIGGLE_MAX_UNSENT_CONN_BYTES */
	int64_t		max_unsent_bytes;	/* WIGGLE_MAX_UNSENT_BYTES: process */
	int64_t		memory_limit_bytes; /* WIGGLE_MEMORY_LIMIT_BYTES; 0 = the control group's */
	int64_t		memory_shedding;	/* WIGGLE_MEMORY_SHEDDING_ENABLED */
	int64_t		memory_threshold;	/* WIGGLE_MEMORY_THRESHOLD: thousandths */
	int64_t		memory_reject_ratio;	/* WIGGLE_MEMORY_REJECT_RATIO: thousandths */
	int64_t		memory_retry_ms;	/* WIGGLE_MEMORY_RETRY_MILLIS */
	int64_t		memory_retry_jitter_ms; /* WIGGLE_MEMORY_RETRY_JITTER_MILLIS: of every such pause */
	int64_t		max_resets_burst;	/* WIGGLE_MAX_RESETS_BURST: per connection */
	int64_t		max_resets_rate;	/* WIGGLE_MAX_RESETS_RATE: per second */
	int64_t		max_pings_burst;	/* WIGGLE_MAX_PINGS_BURST */
	int64_t		max_pings_rate; /* WIGGLE_MAX_PINGS_RATE: per second */
	int64_t		max_acks;		/* WIGGLE_MAX_ACKS: unsent PING and SETTINGS answers */
	int64_t		max_continuations;	/* WIGGLE_MAX_CONTINUATIONS: per header block */
	int64_t		stalled_write_ms;	/* WIGGLE_STALLED_WRITE_MILLIS */
	int64_t		drain_grace_ms; /* WIGGLE_DRAIN_GRACE_MILLIS */
};

/* Filled by config_load, never changed after. */
extern struct config config;

enum config_outcome
{
	CONFIG_RUN,
	CONFIG_HELP,				/* --help was asked for */
	CONFIG_VERSION,				/* --version was asked for */
	CONFIG_REFUSED				/* *err names the setting, the value and the range */
};

/*
 * Defaults, then the environment, then the flags. Strings point into argv and
 * the environment. Does not look at files and does not connect.
 */
extern enum config_outcome config_load(int argc, char *const *argv, struct wig_error *err);

/* Has the setting of this flag been given, rather than left at its default? */
extern bool config_given(const char *name);

/*
 * Each WIGGLE_ variable of the environment that is no setting and not a client's either,
 * in one sentence: a setting of Wiggle's own server that has no meaning here (known), or
 * probably a mistyped name. Values are not told. Those that stop a start are refused by
 * config_load.
 */
typedef void (*config_foreign_fn) (bool known, const char *text, void *arg);
extern void config_foreign(config_foreign_fn tell, void *arg);

enum config_source
{
	CONFIG_DEFAULT,
	CONFIG_ENVIRONMENT,
	CONFIG_FLAG
};

struct setting;

/* Where the value came from, and the value for a person: without secrets, and in the setting's unit. */
extern enum config_source config_source(const struct setting *setting);
extern void config_value(const struct setting *setting, struct buf *out);

/*
 * What every database is to have, of the engine's settings that were given: a JSON
 * object {"wiggle.retention":"3600000ms"}. False when it is empty.
 */
extern bool config_pushed(struct buf *out);

/* The text of --help: every setting with default, unit and meaning. */
extern void config_help(struct buf *out);

#endif							/* WIGGLE_PROXY_CONFIG_H */
