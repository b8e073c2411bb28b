/*
 * config.c
 *	  The one table of settings, and reading it from the environment and the flags.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include "config.h"
#include "topology.h"

extern char **environ;

struct config config;

enum setting_kind
{
	SETTING_TEXT,
	SETTING_INTEGER,
	SETTING_CHOICE
};

struct setting
{
	const char *name;			/* the flag; the variable is WIGGLE_ + upper case */
	enum setting_kind kind;
	size_t		offset;
	const char *text;			/* default of a text */
	int64_t		number;			/* default of an integer or a choice */
	int64_t		min;
	int64_t		max;
	const char *unit;
	const char *const *choices;	/* NULL-terminated; the value is the index */
	bool		secret;			/* only from the environment: flags show in ps */
	const char *help;
};

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
	{.name = flag, .kind = SETTING_TEXT, .offset = AT(member), .text = value, __VA_ARGS__}
#define NUMBER(flag, member, value, lo, hi, of, what) \
	{.name = flag, .kind = SETTING_INTEGER, .offset = AT(member), .number = value, \
	 .min = lo, .max = hi, .unit = of, .help = what}
#define CHOICE(flag, member, value, list, what) \
	{.name = flag, .kind = SETTING_CHOICE, .offset = AT(member), .number = value, \
	 .choices = list, .help = what}

static const struct setting settings[] = {
	TEXT("bind", bind, "0.0.0.0", .help = "address on which clients are served"),
	NUMBER("port", port, 8080, 0, 65535, "", "port for clients; 0 = any free one, which the log names"),
	TEXT("dashboard-bind", dashboard_bind, "0.0.0.0", .help = "address of the second port"),
	NUMBER("dashboard-port", dashboard_port, 8090, -1, 65535, "",
		   "second port: /healthz /readyz /metrics /api/cluster, and calls in JSON; 0 = any free one, -1 = none"),
	TEXT("node-name", node_name, "", .help = "this process's name in answers and logs; default: the host's name"),
	CHOICE("log-level", log_level, LOG_LEVEL_INFO, log_levels, "least level that is logged"),
	CHOICE("log-format", log_format, LOG_FORMAT_TEXT, log_formats, "form of the lines on standard error"),

	TEXT("tls-keystore", tls_keystore, "",
		 .help = "certificate, chain and private key of both ports, PEM or PKCS#12, which turns TLS on; unset = plaintext"),
	TEXT("tls-keystore-password", tls_keystore_password, "", .secret = true,
		 .help = "password for WIGGLE_TLS_KEYSTORE and WIGGLE_TLS_KEY"),
	TEXT("tls-key", tls_key, "", .help = "the private key (PEM), when it is not in WIGGLE_TLS_KEYSTORE"),
	TEXT("tls-truststore", tls_truststore, "",
		 .help = "authorities whose certificates clients must present (mTLS), PEM or PKCS#12"),
	TEXT("tls-truststore-password", tls_truststore_password, "", .secret = true,
		 .help = "password for WIGGLE_TLS_TRUSTSTORE"),
	CHOICE("tls-client-auth", tls_client_auth, TLS_CLIENT_REQUIRED, client_auth,
		   "with WIGGLE_TLS_TRUSTSTORE: whether a client may come without a certificate"),
	NUMBER("tls-handshake-millis", tls_handshake_ms, 10000, 100, 600000, "ms", "longest time of a TLS handshake"),

	CHOICE("grpc-auth", grpc_auth, GRPC_AUTH_OFF, grpc_auth,
		   "whether calls need a credential with the permission: off, log (tell what would be refused), enforce"),
	NUMBER("auth-cache-millis", auth_cache_ms, 30000, 0, 3600000, "ms",
		   "how long a credential that was read counts without the shard that has it"),

	TEXT("storage-topology", storage_topology, "",
		 .help = "the shards: path of a JSON document, or the document itself when it begins with '{'"),
	TEXT("jdbc-url", jdbc_url, "",
		 .help = "the only database, instead of a topology: postgresql://… or jdbc:postgresql://…;"
		 " a URL without a database means the one named like the user"),
	TEXT("jdbc-user", jdbc_user, "", .help = "user for WIGGLE_JDBC_URL"),
	TEXT("jdbc-password", jdbc_password, "", .secret = true, .help = "password for WIGGLE_JDBC_URL"),
	NUMBER("jdbc-pool-size", jdbc_pool_size, 10, 1, 1000, "", "connections to the database of WIGGLE_JDBC_URL"),
	TEXT("jdbc-replica-urls", jdbc_replica_urls, "",
		 .help = "read replicas of WIGGLE_JDBC_URL, separated by commas; reached as the same user"),
	NUMBER("jdbc-replica-pool-size", jdbc_replica_pool_size, 16, 1, 1000, "", "connections to each of them"),
	NUMBER("jdbc-max-replica-lag-millis", jdbc_max_replica_lag_ms, 5000, 0, 2147483647, "ms",
		   "a replica further behind serves no reads"),
	CHOICE("jdbc-replica-fallback", jdbc_replica_fallback, FALLBACK_PRIMARY, replica_fallbacks,
		   "what becomes of its reads when none is recent enough: the primary answers, or they fail"),
	CHOICE("schema-mode", schema_mode, SCHEMA_APPLY, schema_modes,
		   "on start create or update the extension in each shard, or only verify it"),
	CHOICE("migrate-only", migrate_only, MIGRATE_ONLY_FALSE, no_or_yes,
		   "set every shard up, serve nothing and end: with status 0 when all are, else 1 and the others are named"),
	NUMBER("connect-timeout-millis", connect_timeout_ms, 5000, 100, 600000, "ms",
		   "for one attempt to connect to a database"),
	NUMBER("statement-timeout-millis", statement_timeout_ms, 30000, 100, 3600000, "ms",
		   "for reads and registrations"),
	NUMBER("startup-timeout-millis", startup_timeout_ms, 10000, 0, 3600000, "ms",
		   "how long to wait for shards that are down before serving the others; 0 = not at all"),

	NUMBER("longpoll-max-millis", longpoll_max_ms, 20000, 0, 3600000, "ms", "longest wait of a poll"),
	NUMBER("lease-millis", lease_ms, 30000, 100, 86400000, "ms", "lease of a poll that names none"),
	NUMBER("max-parked-polls", max_parked_polls, 20000, 1, 10000000, "", "polls that may wait at once"),
	NUMBER("poll-retry-millis", poll_retry_ms, 500, 1, 600000, "ms", "pause that a poll over a bound is asked for"),
	NUMBER("poller-ttl-millis", poller_ttl_ms, 60000, 100, 3600000, "ms", "how long a worker counts after its poll"),
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
	NUMBER("drain-grace-millis", drain_grace_ms, 25000, 0, 3600000, "ms", "time to finish calls after SIGTERM"),
};

#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

static bool given[SETTINGS];	/* by the environment or a flag */

static void
env_name(const struct setting *s, char *out, size_t cap)
{
	size_t		n = (size_t) snprintf(out, cap, "WIGGLE_%s", s->name);

	for (size_t i = 0; i < n && i < cap; i++)
	{
		if (out[i] == '-')
			out[i] = '_';
		else if (out[i] >= 'a' && out[i] <= 'z')
			out[i] = (char) (out[i] - 'a' + 'A');
	}
}

static void
choice_list(const struct setting *s, char *out, size_t cap)
{
	size_t		n = 0;

	out[0] = '\0';
	for (int i = 0; s->choices[i] != NULL && n < cap; i++)
		n += (size_t) snprintf(out + n, cap - n, "%s%s", i > 0 ? "|" : "", s->choices[i]);
}

static bool
set_number(const struct setting *s, const char *from, const char *value, struct wig_error *err)
{
	int64_t    *slot = (int64_t *) ((char *) &config + s->offset);
	char	   *end;
	long long	n;

	errno = 0;
	n = strtoll(value, &end, 10);
	if (*value == '\0' || *end != '\0' || errno != 0)
		return wig_fail(err, "%s is not a whole number: '%s'", from, value);
	if (n < s->min || n > s->max)
		return wig_fail(err, "%s is %lld, but must be from %lld to %lld%s%s", from, n,
						(long long) s->min, (long long) s->max, *s->unit ? " " : "", s->unit);
	*slot = n;
	return true;
}

static bool
set_choice(const struct setting *s, const char *from, const char *value, struct wig_error *err)
{
	int64_t    *slot = (int64_t *) ((char *) &config + s->offset);
	char		list[64];

	for (int i = 0; s->choices[i] != NULL; i++)
	{
		if (strcasecmp(s->choices[i], value) == 0)
		{
			*slot = i;
			return true;
		}
	}
	choice_list(s, list, sizeof(list));
	return wig_fail(err, "%s is '%s', but must be one of %s", from, value, list);
}

static bool
set(const struct setting *s, const char *from, const char *value, struct wig_error *err)
{
	given[s - settings] = true;
	switch (s->kind)
	{
		case SETTING_INTEGER:
			return set_number(s, from, value, err);
		case SETTING_CHOICE:
			return set_choice(s, from, value, err);
		case SETTING_TEXT:
			break;
	}
	*(const char **) ((char *) &config + s->offset) = value;
	return true;
}

static void
set_defaults(void)
{
	for (size_t i = 0; i < SETTINGS; i++)
	{
		const struct setting *s = &settings[i];

		given[i] = false;
		if (s->kind == SETTING_TEXT)
			*(const char **) ((char *) &config + s->offset) = s->text;
		else
			*(int64_t *) ((char *) &config + s->offset) = s->number;
	}
}

static bool
read_environment(struct wig_error *err)
{
	char		name[64];

	for (size_t i = 0; i < SETTINGS; i++)
	{
		const char *value;

		env_name(&settings[i], name, sizeof(name));
		value = getenv(name);
		if (value == NULL || (*value == '\0' && settings[i].kind != SETTING_TEXT))
			continue;
		if (!set(&settings[i], name, value, err))
			return false;
	}
	return true;
}

static const struct setting *
find_flag(const char *name, size_t len)
{
	for (size_t i = 0; i < SETTINGS; i++)
		if (strlen(settings[i].name) == len && memcmp(settings[i].name, name, len) == 0)
			return &settings[i];
	return NULL;
}

bool
config_given(const char *name)
{
	const struct setting *s = find_flag(name, strlen(name));

	return s != NULL && given[s - settings];
}

/* One flag with its value from "--name=value" or from the argument behind it. */
static bool
read_flag(int argc, char *const *argv, int *at, struct wig_error *err)
{
	const char *arg = argv[*at];
	const char *value = strchr(arg, '=');
	size_t		len = value != NULL ? (size_t) (value - arg) : strlen(arg);
	const struct setting *s;
	char		from[64];

	s = len > 2 && arg[0] == '-' && arg[1] == '-' ? find_flag(arg + 2, len - 2) : NULL;
	if (s == NULL)
		return wig_fail(err, "unknown argument '%.*s'; --help lists them", (int) len, arg);
	if (s->secret)
	{
		env_name(s, from, sizeof(from));
		return wig_fail(err, "--%s is read from %s only: arguments are visible to other users", s->name, from);
	}
	snprintf(from, sizeof(from), "--%s", s->name);
	if (value != NULL)
		value++;
	else if (*at + 1 < argc)
		value = argv[++*at];
	else
		return wig_fail(err, "%s needs a value", from);
	return set(s, from, value, err);
}

static bool
check_tls(struct wig_error *err)
{
	const char *without = *config.tls_key != '\0' ? "WIGGLE_TLS_KEY" :
		*config.tls_truststore != '\0' ? "WIGGLE_TLS_TRUSTSTORE" : NULL;

	if (*config.tls_keystore == '\0' && without != NULL)
		return wig_fail(err, "%s is set, but not WIGGLE_TLS_KEYSTORE, which turns TLS on", without);
	if (*config.tls_truststore == '\0' && config.tls_client_auth == TLS_CLIENT_OPTIONAL)
		return wig_fail(err, "WIGGLE_TLS_CLIENT_AUTH is optional, but WIGGLE_TLS_TRUSTSTORE, which says whose"
						" certificates hold, is not set");
	return true;
}

/* What no single range can say. */
static bool
check_together(struct wig_error *err)
{
	if (!check_tls(err))
		return false;
	if (config.max_request_bytes < 2 * config.max_message_bytes)
		return wig_fail(err, "WIGGLE_MAX_REQUEST_BYTES must be at least twice WIGGLE_MAX_MESSAGE_BYTES (%lld)",
						(long long) config.max_message_bytes);
	if (config.max_unsent_bytes < config.max_unsent_conn_bytes)
		return wig_fail(err, "WIGGLE_MAX_UNSENT_BYTES must be at least WIGGLE_MAX_UNSENT_CONN_BYTES (%lld)",
						(long long) config.max_unsent_conn_bytes);
	return true;
}

enum config_outcome
config_load(int argc, char *const *argv, struct wig_error *err)
{
	static char host[256];

	for (int i = 1; i < argc; i++)
	{
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return CONFIG_HELP;
		if (strcmp(argv[i], "--version") == 0)
			return CONFIG_VERSION;
	}
	set_defaults();
	if (!read_environment(err))
		return CONFIG_REFUSED;
	for (int i = 1; i < argc; i++)
		if (!read_flag(argc, argv, &i, err))
			return CONFIG_REFUSED;
	if (!check_together(err))
		return CONFIG_REFUSED;
	if (*config.node_name == '\0')
	{
		if (gethostname(host, sizeof(host) - 1) != 0 || host[0] == '\0')
			snprintf(host, sizeof(host), "wiggle-proxy");
		config.node_name = host;
	}
	return CONFIG_RUN;
}

/* Those of the wiggle command are often set for both. */
static bool
is_clients(const char *name, size_t len)
{
	static const char *const names[] = {"WIGGLE_URL", "WIGGLE_API_KEY", "WIGGLE_TLS", "WIGGLE_TLS_SERVER_NAME"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == len && memcmp(names[i], name, len) == 0)
			return true;
	return strncmp(name, "WIGGLE_RPC_", 11) == 0;
}

void
config_foreign(struct buf *out)
{
	for (char **entry = environ; entry != NULL && *entry != NULL; entry++)
	{
		size_t		len = strcspn(*entry, "=");
		char		name[64];
		size_t		i = 0;

		if (strncmp(*entry, "WIGGLE_", 7) != 0)
			continue;
		for (; i < SETTINGS; i++)
		{
			env_name(&settings[i], name, sizeof(name));
			if (strlen(name) == len && memcmp(name, *entry, len) == 0)
				break;
		}
		if (i == SETTINGS && !is_clients(*entry, len))
			buf_printf(out, "%s%.*s", out->len > 0 ? ", " : "", (int) len, *entry);
	}
}

static void
describe(const struct setting *s, struct buf *out)
{
	char		name[64];
	char		list[64];

	env_name(s, name, sizeof(name));
	if (s->secret)
		buf_printf(out, "  %s\n", name);
	else
		buf_printf(out, "  --%s, %s\n", s->name, name);
	buf_printf(out, "      %s\n", s->help);
	switch (s->kind)
	{
		case SETTING_TEXT:
			if (*s->text != '\0')
				buf_printf(out, "      default %s\n", s->text);
			break;
		case SETTING_INTEGER:
			buf_printf(out, "      default %lld%s%s, from %lld to %lld\n", (long long) s->number,
					   *s->unit ? " " : "", s->unit, (long long) s->min, (long long) s->max);
			break;
		case SETTING_CHOICE:
			choice_list(s, list, sizeof(list));
			buf_printf(out, "      default %s, one of %s\n", s->choices[s->number], list);
			break;
	}
}

void
config_help(struct buf *out)
{
	buf_text(out,
			 "wiggle-proxy serves Wiggle's gRPC protocol from PostgreSQL databases that have\n"
			 "the extension wiggle.\n"
			 "\n"
			 "Usage: wiggle-proxy [--setting=value]...\n"
			 "       wiggle-proxy --help | --version\n"
			 "\n"
			 "Each setting is an environment variable or a flag; the flag wins.\n"
			 "\n"
			 "Example\n"
			 "  WIGGLE_JDBC_URL=postgresql://wiggle@localhost/wiggle wiggle-proxy --port 8080\n"
			 "\n"
			 "Settings\n");
	for (size_t i = 0; i < SETTINGS; i++)
		describe(&settings[i], out);
	buf_text(out,
			 "\n"
			 "Signals\n"
			 "  SIGHUP has the topology document and the certificates read again, which also\n"
			 "  happens when they change.\n"
			 "  SIGTERM and SIGINT end the process after the calls in flight; a second one\n"
			 "  skips the wait.\n"
			 "\n"
			 "Exit status\n"
			 "  0 after an orderly end, 1 when it could not start or calls were cut off at the\n"
			 "  end, 2 for settings that are refused.\n");
}
