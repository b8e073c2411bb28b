/*
 * setting.c
 *	  The one table of settings, and what becomes of variables of Wiggle's own server.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "setting.h"
#include "topology.h"

static const char *const log_levels[] = {"debug", "info", "warn", "error", NULL};
static const char *const log_formats[] = {"text", "json", NULL};
static const char *const grpc_auth[] = {"off", "log", "enforce", NULL};
static const char *const replica_fallbacks[] = {"primary", "fail", NULL};
static const char *const client_auth[] = {"required", "optional", NULL};
static const char *const schema_modes[] = {"apply", "verify", NULL};
static const char *const no_or_yes[] = {"false", "true", NULL};

#define MIB(n)	((n) * INT64_C(1048576))
#define AT(member)	offsetof(struct config, member)
#define TEXT(flag, member, value, ...) \
	{.name = flag, .kind = SETTING_TEXT, .offset = AT(member), .text = value, .unit = "", __VA_ARGS__}
#define NUMBER(flag, member, value, lo, hi, of, what, ...) \
	{.name = flag, .kind = SETTING_INTEGER, .offset = AT(member), .number = value, \
	 .min = lo, .max = hi, .unit = of, .help = what, ##__VA_ARGS__}
#define RATIO(flag, member, value, lo, what) \
	{.name = flag, .kind = SETTING_RATIO, .offset = AT(member), .number = value, .min = lo, .max = 1000, \
	 .unit = "", .help = what}
#define CHOICE(flag, member, value, list, what, ...) \
	{.name = flag, .kind = SETTING_CHOICE, .offset = AT(member), .number = value, \
	 .choices = list, .unit = "", .help = what, ##__VA_ARGS__}

const struct setting settings[] = {
	TEXT("bind", bind, "0.0.0.0", .help = "address on which clients are served", .common = true),
	NUMBER("port", port, 8080, 0, 65535, "", "port for clients; 0 = any free one, which the log names", .common = true),
	TEXT("dashboard-bind", dashboard_bind, "0.0.0.0", .help = "address of the second port"),
	NUMBER("dashboard-port", dashboard_port, 8090, -1, 65535, "",
		   "second port: /healthz /readyz /metrics /api/cluster, and calls in JSON; 0 = any free one, -1 = none",
		   .common = true),
	TEXT("node-name", node_name, "", .help = "this process's name among the servers; default: the host's name",
		 .common = true),
	CHOICE("log-level", log_level, LOG_LEVEL_INFO, log_levels, "least level that is logged", .common = true),
	CHOICE("log-format", log_format, LOG_FORMAT_TEXT, log_formats, "form of the lines on standard error",
		   .common = true),

	TEXT("tls-keystore", tls_keystore, "",
		 .help = "certificate, chain and private key of both ports, PEM or PKCS#12, which turns TLS on; unset = plaintext",
		 .common = true),
	TEXT("tls-keystore-password", tls_keystore_password, "", .secret = true,
		 .help = "password for WIGGLE_TLS_KEYSTORE and WIGGLE_TLS_KEY"),
	TEXT("tls-key", tls_key, "", .help = "the private key (PEM), when it is not in WIGGLE_TLS_KEYSTORE"),
	TEXT("tls-truststore", tls_truststore, "",
		 .help = "authorities whose certificates clients must present (mTLS), PEM or PKCS#12", .common = true),
	TEXT("tls-truststore-password", tls_truststore_password, "", .secret = true,
		 .help = "password for WIGGLE_TLS_TRUSTSTORE"),
	CHOICE("tls-client-auth", tls_client_auth, TLS_CLIENT_REQUIRED, client_auth,
		   "with WIGGLE_TLS_TRUSTSTORE: whether a client may come without a certificate"),
	NUMBER("tls-handshake-millis", tls_handshake_ms, 10000, 100, 600000, "ms", "longest time of a TLS handshake"),

	CHOICE("grpc-auth", grpc_auth, GRPC_AUTH_OFF, grpc_auth,
		   "whether calls need a credential with the permission: off, log (tell what would be refused), enforce", .common = true),
	NUMBER("auth-cache-millis", auth_cache_ms, 30000, 0, 3600000, "ms",
		   "how long a credential that was read counts without the shard that has it"),

	TEXT("storage-topology", storage_topology, "",
		 .help = "the shards: path of a JSON document, or the document itself when it begins with '{'", .common = true),
	TEXT("jdbc-url", jdbc_url, "",
		 .help = "the only database, instead of a topology: postgresql://… or jdbc:postgresql://…;"
		 " a URL without a database means the one named like the user", .common = true),
	TEXT("jdbc-user", jdbc_user, "", .help = "user for WIGGLE_JDBC_URL", .common = true),
	TEXT("jdbc-password", jdbc_password, "", .secret = true, .help = "password for WIGGLE_JDBC_URL", .common = true),
	NUMBER("jdbc-pool-size", jdbc_pool_size, 10, 1, 1000, "", "connections to the database of WIGGLE_JDBC_URL"),
	TEXT("jdbc-replica-urls", jdbc_replica_urls, "",
		 .help = "read replicas of WIGGLE_JDBC_URL, separated by commas; reached as the same user"),
	NUMBER("jdbc-replica-pool-size", jdbc_replica_pool_size, 16, 1, 1000, "", "connections to each of them"),
	NUMBER("jdbc-max-replica-lag-millis", jdbc_max_replica_lag_ms, 5000, 0, 2147483647, "ms",
		   "a replica further behind serves no reads"),
	CHOICE("jdbc-replica-fallback", jdbc_replica_fallback, FALLBACK_PRIMARY, replica_fallbacks,
		   "what becomes of its reads when none is recent enough: the primary answers, or they fail"),
	CHOICE("schema-mode", schema_mode, SCHEMA_APPLY, schema_modes,
		   "on start create or update the extension in each shard, or only verify it", .common = true),
	CHOICE("migrate-only", migrate_only, MIGRATE_ONLY_FALSE, no_or_yes,
		   "set every shard up, serve nothing and end: with status 0 when all are, at this version or a newer one, else 1 and the others are named"),
	NUMBER("connect-timeout-millis", connect_timeout_ms, 5000, 100, 600000, "ms",
		   "for connecting to one server of a database: one that is silent is passed over then"),
	NUMBER("statement-timeout-millis", statement_timeout_ms, 30000, 100, 3600000, "ms",
		   "for reads and registrations"),
	NUMBER("startup-timeout-millis", startup_timeout_ms, 10000, 0, 3600000, "ms",
		   "how long to wait for shards that are down before serving the others; 0 = not at all"),

	/* The engine's, which each database keeps: pushed to it when they are given. */
	NUMBER("housekeeping-batch", housekeeping_batch, 500, 1, 100000, "",
		   "timers and leases that a shard moves in one transaction", .guc = "wiggle.clock_batch"),
	NUMBER("loop-max-iterations", loop_max_iterations, 10000, 1, 2147483647, "",
		   "iterations of a loop whose definition sets no budget", .guc = "wiggle.loop_max_iterations"),
	NUMBER("retention-millis", retention_ms, 86400000, 60000, INT64_C(128849018820000), "ms",
		   "how long instances that have ended are kept, in minutes", .guc = "wiggle.retention"),
	NUMBER("events-retention-millis", events_retention_ms, 604800000, 60000, INT64_C(128849018820000), "ms",
		   "how long entries of the event log are kept, in minutes", .guc = "wiggle.event_retention"),
	CHOICE("record-step-io", record_step_io, 1, no_or_yes, "keep the input and output of each step with its token",
		   .guc = "wiggle.record_step_io"),
	NUMBER("retry-timer-min-millis", retry_timer_min_ms, 1000, 0, 2147483647, "ms",
		   "a retry delayed at least so long is shown as WAITING", .guc = "wiggle.retry_park"),
	CHOICE("allow-graph-replace", allow_graph_replace, 0, no_or_yes,
		   "development only: a forced registration may replace the graph of a version", .guc = "wiggle.allow_graph_replace"),

	NUMBER("longpoll-max-millis", longpoll_max_ms, 20000, 0, 3600000, "ms", "longest wait of a poll", .common = true),
	NUMBER("lease-millis", lease_ms, 30000, 100, 86400000, "ms", "lease of a poll that names none",
		   .guc = "wiggle.default_lease", .common = true),
	NUMBER("max-parked-polls", max_parked_polls, 20000, 1, 10000000, "", "polls that may wait at once"),
	NUMBER("poll-retry-millis", poll_retry_ms, 500, 1, 600000, "ms", "pause that a poll over a bound is asked for"),
	NUMBER("poller-ttl-millis", poller_ttl_ms, 60000, 100, 3600000, "ms", "how long a worker counts after its poll"),
	CHOICE("task-partitioning", task_partitioning, TASK_PARTITIONING_FALSE, no_or_yes,
		   "divide each queue's tasks among the servers whose workers poll it; each needs its own WIGGLE_NODE_NAME"),
	NUMBER("queue-lag-check-interval-millis", queue_lag_check_ms, 5000, 100, 3600000, "ms",
		   "how often a shard is asked for what /metrics shows of it"),
	NUMBER("queue-lag-warn-millis", queue_lag_warn_ms, 10000, 0, 2147483647, "ms",
		   "a queue whose oldest ready task waits longer is told in the log, once; 0 = not at all", .common = true),
	NUMBER("max-event-polls", max_event_polls, 1000, 1, 1000000, "", "polls for events that may wait at once"),

	NUMBER("lanes-per-shard", lanes_per_shard, 4, 1, 64, "", "pipelined connections to a shard, opened as needed"),
	NUMBER("lane-queue-items", lane_queue_items, 16384, 64, 10000000, "", "calls that may wait for one lane"),
	NUMBER("lane-queue-bytes", lane_queue_bytes, MIB(64), MIB(8), MIB(4096), "bytes", "their size"),
	NUMBER("lane-batch-items", lane_batch_items, 256, 1, 10000, "", "calls in one batch"),
	NUMBER("lane-batch-bytes", lane_batch_bytes, MIB(1) / 2, 65536, MIB(16), "bytes",
		   "size of one batch; a single larger call goes alone"),
	NUMBER("side-connections", side_connections, 4, 1, 64, "",
		   "connections to a shard for everything else, opened as needed; one of several is kept for quick reads"),
	NUMBER("side-queue-items", side_queue_items, 4096, 16, 1000000, "",
		   "calls of a kind (quick reads, lists, events, what waits for locks) that may wait for them"),

	NUMBER("max-message-bytes", max_message_bytes, MIB(4), 1024, MIB(256), "bytes", "largest request message"),
	NUMBER("max-header-bytes", max_header_bytes, 16384, 1024, 1048576, "bytes",
		   "metadata of one call, 32 for each field included"),
	NUMBER("max-streams", max_streams, 1000, 1, 100000, "", "calls in flight on one connection"),
	NUMBER("max-connections", max_connections, 10000, 1, 1000000, "", "connections of clients"),
	NUMBER("max-request-bytes", max_request_bytes, MIB(256), MIB(8), MIB(65536), "bytes",
		   "requests held in the process"),
	NUMBER("max-request-conn-bytes", max_request_conn_bytes, MIB(16), MIB(1), MIB(4096), "bytes",
		   "requests of one connection that wait for their answer before it is read more slowly"),
	NUMBER("max-unsent-conn-bytes", max_unsent_conn_bytes, MIB(16), MIB(1), MIB(4096), "bytes",
		   "replies one connection has not taken yet"),
	NUMBER("max-unsent-bytes", max_unsent_bytes, MIB(256), MIB(8), MIB(65536), "bytes",
		   "replies all connections have not taken yet"),
	NUMBER("memory-limit-bytes", memory_limit_bytes, 0, 0, INT64_C(1) << 50, "bytes",
		   "memory that the process may have; 0 = its control group's bound, if there is one"),
	CHOICE("memory-shedding-enabled", memory_shedding, 1, no_or_yes,
		   "send polls and starts away before memory runs out"),
	RATIO("memory-threshold", memory_threshold, 900, 10,
		  "from which part of its bounds (WIGGLE_MAX_REQUEST_BYTES, WIGGLE_MAX_UNSENT_BYTES, WIGGLE_MEMORY_LIMIT_BYTES) on"),
	RATIO("memory-reject-ratio", memory_reject_ratio, 1000, 0, "which part of them is sent away then"),
	NUMBER("memory-retry-millis", memory_retry_ms, 2000, 1, 600000, "ms",
		   "pause that a poll which is sent away is asked for"),
	NUMBER("memory-retry-jitter-millis", memory_retry_jitter_ms, 1000, 0, 600000, "ms",
		   "up to so much is added to each such pause, at random"),
	NUMBER("max-resets-burst", max_resets_burst, 10000, 10, 10000000, "", "calls a connection may cancel at once"),
	NUMBER("max-resets-rate", max_resets_rate, 1000, 1, 10000000, "/s", "calls a connection may cancel lastingly"),
	NUMBER("max-pings-burst", max_pings_burst, 1000, 10, 10000000, "",
		   "PING, SETTINGS, PRIORITY and empty DATA frames of a connection at once"),
	NUMBER("max-pings-rate", max_pings_rate, 100, 1, 10000000, "/s",
		   "the same lastingly, beside one for each call"),
	NUMBER("max-acks", max_acks, 1000, 10, 1000000, "", "unsent answers to PING and SETTINGS"),
	NUMBER("max-continuations", max_continuations, 8, 1, 1000, "", "CONTINUATION frames of one header block"),
	NUMBER("stalled-write-millis", stalled_write_ms, 30000, 100, 3600000, "ms",
		   "time after which a client that takes nothing is cut off"),
	NUMBER("drain-grace-millis", drain_grace_ms, 25000, 0, 3600000, "ms", "time to finish calls after SIGTERM",
		   .common = true),
};

const size_t nsettings = sizeof(settings) / sizeof(settings[0]);
_Static_assert(sizeof(settings) / sizeof(settings[0]) <= SETTINGS_MAX, "there are more settings");

#define IGNORED(variable, reason)	{.name = variable, .fate = FOREIGN_IGNORED, .why = reason}
#define REFUSED(variable, reason)	{.name = variable, .fate = FOREIGN_REFUSED, .why = reason}
#define CLIENTS(variable)			{.name = variable, .fate = FOREIGN_CLIENTS}

#define ON_TIME		"timers, leases and schedules are kept to the moment by each database's clock worker"
#define NO_ELECTION	"no duty waits for an election: each database has a clock worker of its own"
#define WOKEN		"a parked poll is woken by the database that has something for it"
#define ASKED_AGAIN "what was rolled back for a passing reason is asked again, each call as long as it may wait"
#define TOPOLOGY	"there is no coordinator; list the shards in WIGGLE_STORAGE_TOPOLOGY"
#define NO_LOGIN	"there is no portal and no login: WIGGLE_GRPC_AUTH=enforce guards the calls of both ports, and" \
	" WIGGLE_DASHBOARD_BIND says who reaches the pages of the second one"
#define NO_SEARCH	"there is no search"
#define IN_FORCE	"bounds are always in force: WIGGLE_LANE_QUEUE_ITEMS, WIGGLE_MAX_PARKED_POLLS"
#define NO_BRANCHES "steps cannot create branches here"

/* The first that fits counts; a '*' at the end stands for any rest. */
const struct foreign foreigns[] = {
	{.name = "WIGGLE_ROLE", .fate = FOREIGN_REFUSED, .accepts = "server|cell",
	.why = "this program is the server and nothing else; there is no console yet, the wiggle command shows what one would"},
	IGNORED("WIGGLE_POLL_INTERVAL_MILLIS", ON_TIME),
	IGNORED("WIGGLE_ADAPTIVE_HOUSEKEEPING", "a batch that was full is followed by the next one at once"),
	IGNORED("WIGGLE_SWEEP_PARALLELISM", "a batch is one transaction: WIGGLE_HOUSEKEEPING_BATCH is its size"),
	IGNORED("WIGGLE_ADAPTIVE_FALLBACK_POLL", WOKEN),
	IGNORED("WIGGLE_FALLBACK_POLL_MILLIS", WOKEN),
	IGNORED("WIGGLE_DISPATCH_LINGER_MILLIS", "calls that arrive while a batch is in flight are the next batch"),
	IGNORED("WIGGLE_HEARTBEAT_INTERVAL_MILLIS", NO_ELECTION),
	IGNORED("WIGGLE_MISSED_HEARTBEATS", NO_ELECTION),
	IGNORED("WIGGLE_EVENTS_VISIBILITY_MILLIS", "entries are shown as soon as nothing can come before them"),
	IGNORED("WIGGLE_STEP_IO_MAX_CHARS", "recorded inputs and outputs are cut at 65536 characters"),
	IGNORED("WIGGLE_DYN_MAX_*", NO_BRANCHES),
	IGNORED("WIGGLE_JDBC_TX_ATTEMPTS", ASKED_AGAIN),
	IGNORED("WIGGLE_JDBC_TX_RETRY_DELAY_MILLIS", ASKED_AGAIN),
	IGNORED("WIGGLE_STABILITY_*", IN_FORCE),
	IGNORED("WIGGLE_LOG_FILE", "lines of the log go to standard error"),
	IGNORED("WIGGLE_OPTS", "no Java runs here"),
	IGNORED("WIGGLE_PORTAL_PORT", "there is no portal; WIGGLE_DASHBOARD_PORT has pages for probes and programs"),
	IGNORED("WIGGLE_CONSOLE_USERS_FILE", NO_LOGIN),
	IGNORED("WIGGLE_DASHBOARD_USER", NO_LOGIN),
	IGNORED("WIGGLE_DASHBOARD_VIEWER_USER", NO_LOGIN),
	REFUSED("WIGGLE_DASHBOARD_PASSWORD", NO_LOGIN),
	REFUSED("WIGGLE_DASHBOARD_VIEWER_PASSWORD", NO_LOGIN),
	{.name = "WIGGLE_SEARCH_ENABLED", .fate = FOREIGN_REFUSED, .accepts = "false", .why = NO_SEARCH},
	IGNORED("WIGGLE_SEARCH_*", NO_SEARCH),
	{.name = "WIGGLE_EMBEDDER", .fate = FOREIGN_REFUSED, .accepts = "none", .why = NO_SEARCH},
	IGNORED("WIGGLE_EMBEDDER_*", NO_SEARCH),
	REFUSED("WIGGLE_COORDINATOR_URL", TOPOLOGY),
	REFUSED("WIGGLE_COORD_*", TOPOLOGY),
	REFUSED("WIGGLE_NAMESPACE", TOPOLOGY),
	REFUSED("WIGGLE_CELL_ID", TOPOLOGY),
	REFUSED("WIGGLE_ADVERTISE_HOST", TOPOLOGY),
	REFUSED("WIGGLE_REGION", TOPOLOGY),

	/* Clients', workers' and this tree's own scripts', often set for all. */
	CLIENTS("WIGGLE_URL"),
	CLIENTS("WIGGLE_API_KEY"),
	CLIENTS("WIGGLE_TLS"),
	CLIENTS("WIGGLE_TLS_SERVER_NAME"),
	CLIENTS("WIGGLE_RPC_*"),
	CLIENTS("WIGGLE_WORKER_*"),
	CLIENTS("WIGGLE_LOCAL_BATCH_SIZE"),
	CLIENTS("WIGGLE_EXECUTION_MODE"),
	CLIENTS("WIGGLE_ENDPOINT_REWRITE"),
	CLIENTS("WIGGLE_PREFIX"),
	CLIENTS("WIGGLE_PGBIN"),
	CLIENTS("WIGGLE_PGLIB"),
	CLIENTS("WIGGLE_STATE"),
};

const size_t nforeigns = sizeof(foreigns) / sizeof(foreigns[0]);

void
setting_variable(const struct setting *s, char out[SETTING_NAME_MAX])
{
	size_t		n = (size_t) snprintf(out, SETTING_NAME_MAX, "WIGGLE_%s", s->name);

	for (size_t i = 0; i < n && i < SETTING_NAME_MAX; i++)
	{
		if (out[i] == '-')
			out[i] = '_';
		else if (out[i] >= 'a' && out[i] <= 'z')
			out[i] = (char) (out[i] - 'a' + 'A');
	}
}

const struct foreign *
setting_foreign(const char *variable, size_t len)
{
	for (size_t i = 0; i < nforeigns; i++)
	{
		size_t		n = strlen(foreigns[i].name);
		bool		any = foreigns[i].name[n - 1] == '*';

		n -= any;
		if (any ? len > n && memcmp(foreigns[i].name, variable, n) == 0
			: len == n && memcmp(foreigns[i].name, variable, n) == 0)
			return &foreigns[i];
	}
	return NULL;
}

bool
setting_is(const char *variable, size_t len)
{
	char		name[SETTING_NAME_MAX];

	for (size_t i = 0; i < nsettings; i++)
	{
		setting_variable(&settings[i], name);
		if (strlen(name) == len && memcmp(name, variable, len) == 0)
			return true;
	}
	return false;
}

/* NAME_PORT_8080_TCP, and that with _PROTO, _PORT or _ADDR behind it. */
static bool
is_port_link(const char *name)
{
	const char *at = strstr(name, "_PORT_");
	size_t		digits = at != NULL ? strspn(at + 6, "0123456789") : 0;

	if (digits == 0)
		return false;
	at += 6 + digits;
	for (const char *const *p = (const char *const[]) {"_TCP", "_UDP", "_SCTP", NULL}; *p != NULL; p++)
	{
		size_t		n = strlen(*p);

		if (strncmp(at, *p, n) == 0)
			return at[n] == '\0' || strcmp(at + n, "_PROTO") == 0 || strcmp(at + n, "_PORT") == 0 ||
				strcmp(at + n, "_ADDR") == 0;
	}
	return false;
}

bool
setting_is_link(const char *variable, size_t len, const char *value)
{
	char		name[256];
	if (len >= sizeof(name) || len < 11 || memcmp(variable, "WIGGLE_", 7) != 0)
		return false;
	memcpy(name, variable, len);
	name[len] = '\0';
	if ((len > 13 && strcmp(name + len - 13, "_SERVICE_HOST") == 0) || strstr(name, "_SERVICE_PORT") != NULL)
		return true;
	if (strcmp(name + len - 5, "_PORT") == 0 &&
		(strncmp(value, "tcp://", 6) == 0 || strncmp(value, "udp://", 6) == 0 || strncmp(value, "sctp://", 7) == 0))
		return true;
	return is_port_link(name);
}

void
setting_choices(const struct setting *s, char *out, size_t cap)
{
	size_t		n = 0;

	out[0] = '\0';
	for (int i = 0; s->choices[i] != NULL && n < cap; i++)
		n += (size_t) snprintf(out + n, cap - n, "%s%s", i > 0 ? "|" : "", s->choices[i]);
}
