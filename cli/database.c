/*
 * database.c
 *	  What a database says of itself, asked over a connection of our own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#include "database.h"
#include "topology.h"

#define CONNECT_SECONDS "5"

/* As the proxy's sessions have it: a read-only default is not taken for a standby. */
#define OPTIONS "-c default_transaction_read_only=off -c statement_timeout=10s"

/*
 * A standby that has replayed all it has received and still receives is not behind,
 * however long ago the last change was. One that has replayed none since its start is
 * at least as far behind as that.
 */
#define FACTS \
	"select pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('server_version')," \
	" (select default_version from pg_catalog.pg_available_extensions where name = 'wiggle')," \
	" (select extversion from pg_catalog.pg_extension where extname = 'wiggle')," \
	" (select system_identifier from pg_catalog.pg_control_system())," \
	" (select oid from pg_catalog.pg_database where datname = pg_catalog.current_database())," \
	" pg_catalog.pg_postmaster_start_time()," \
	" case when pg_catalog.pg_last_wal_receive_lsn() = pg_catalog.pg_last_wal_replay_lsn()" \
	" and exists(select from pg_catalog.pg_stat_wal_receiver where pid is not null) then 0" \
	" else (extract(epoch from pg_catalog.clock_timestamp() - coalesce(pg_catalog.pg_last_xact_replay_timestamp()," \
	" pg_catalog.pg_postmaster_start_time())) * 1000)::pg_catalog.int8 end, pg_catalog.pg_backend_pid()," \
	" session_user, (select rolsuper from pg_catalog.pg_roles where rolname = session_user)"

#define IDENTITY \
	"select s.shard_id, s.library_version, f.facts, f.genuine," \
	" (select pg_catalog.bool_and(pg_catalog.has_function_privilege(p.oid, 'execute'))" \
	"  from pg_catalog.pg_proc p where p.pronamespace = 'wiggle'::pg_catalog.regnamespace" \
	"  and p.proname in ('batch', 'release_owners', 'register', 'instance_list', 'cancel'))," \
	" (select v.compatible from wiggle.version() v)" \
	" from wiggle.shard() s, wiggle.shard_facts() f"

#define JUDGE "select shard, refusal, wal from wiggle.shard_admit($1::pg_catalog.jsonb, true)"

#define REACHES \
	"select pg_catalog.pg_current_wal_flush_lsn() >= $1::pg_catalog.pg_lsn where not pg_catalog.pg_is_in_recovery()"

static const char *
option(const PQconninfoOption *options, const char *keyword)
{
	for (; options->keyword != NULL; options++)
	{
		if (strcmp(options->keyword, keyword) == 0)
			return options->val != NULL && *options->val != '\0' ? options->val : NULL;
	}
	return NULL;
}

/* The n-th element of a comma-separated list, of which one may serve for all; its length in *len. */
static const char *
element(const char *list, int n, int *len)
{
	const char *comma;

	for (; n > 0 && (comma = strchr(list, ',')) != NULL; n--)
		list = comma + 1;
	*len = (int) strcspn(list, ",");
	return list;
}

bool
database_name(const char *url, const char *user, struct buf *out)
{
	PQconninfoOption *options = PQconninfoParse(url, NULL);
	const char *hosts;
	const char *ports;
	const char *name;
	int			host_len;
	int			port_len;

	if (options == NULL)
		return false;
	hosts = option(options, "host") ? option(options, "host") : option(options, "hostaddr");
	hosts = hosts ? hosts : "local";
	ports = option(options, "port") ? option(options, "port") : "";
	for (int n = 0; n == 0 || *hosts == ','; n++)
	{
		const char *port = element(ports, n, &port_len);
		const char *host = element(n == 0 ? hosts : hosts + 1, 0, &host_len);

		buf_printf(out, "%s%.*s:%.*s", n > 0 ? "," : "", host_len, host,
				   port_len > 0 ? port_len : 4, port_len > 0 ? port : "5432");
		hosts = host + host_len;
	}
	name = option(options, "dbname") ? option(options, "dbname")
		: option(options, "user") ? option(options, "user") : user;
	buf_printf(out, "/%s", name ? name : "");
	PQconninfoFree(options);
	return true;
}

/* libpq's message in one line; it holds no password. */
static void
take_problem(char problem[DATABASE_PROBLEM], const char *message)
{
	size_t		used = 0;

	while (*message != '\0' && used + 3 < DATABASE_PROBLEM)
	{
		size_t		blanks = strspn(message, "\n\t ");

		if (message[blanks] == '\0')
			break;
		if (blanks > 0 && *message == '\n')
			problem[used++] = ';';
		problem[used++] = blanks > 0 ? ' ' : *message;
		message += blanks > 0 ? blanks : 1;
	}
	problem[used] = '\0';
}

static void
hush(void *arg, const char *message)
{
	(void) arg;
	(void) message;
}

/* Of several hosts a primary is the one that takes writes. Never NULL, perhaps not connected. */
static PGconn *
open_session(const char *url, const char *user, const char *password, bool primary)
{
	PQconninfoOption *options = PQconninfoParse(url, NULL);
	const char *host = options ? option(options, "host") : NULL;
	const char *several = primary && host != NULL && strchr(host, ',') != NULL ? "read-write" : NULL;
	const char *keywords[9];
	const char *values[9];
	int			n = 0;
	PGconn	   *conn;

	/* of two values for one keyword the later counts, and the URL's before all */
#define SET(k, v) (keywords[n] = (k), values[n] = (v), n++)
	SET("user", user);
	SET("password", password);
	SET("connect_timeout", CONNECT_SECONDS);
	SET("tcp_user_timeout", "15000");
	SET("application_name", "wiggle topology check");
	SET("dbname", url);
	SET("options", OPTIONS);
	SET("target_session_attrs", several);
	keywords[n] = values[n] = NULL;
#undef SET
	conn = PQconnectdbParams(keywords, values, 1);
	PQsetNoticeProcessor(conn, hush, NULL);
	PQconninfoFree(options);
	return conn;
}

/* The only row of a query; NULL after the problem has been noted. */
static PGresult *
ask(PGconn *conn, const char *sql, struct database *database)
{
	PGresult   *result = PQexec(conn, sql);

	if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1)
		return result;
	take_problem(database->problem, PQresultErrorMessage(result));
	PQclear(result);
	return NULL;
}

static void
copy(const PGresult *result, int column, char *out, size_t size)
{
	snprintf(out, size, "%s", PQgetvalue(result, 0, column));
}

static void
ask_all(PGconn *conn, struct database *database)
{
	PGresult   *result = ask(conn, FACTS, database);

	if (result == NULL)
		return;
	database->in_recovery = *PQgetvalue(result, 0, 0) == 't';
	copy(result, 1, database->server, sizeof(database->server));
	copy(result, 2, database->available, sizeof(database->available));
	copy(result, 3, database->extension, sizeof(database->extension));
	copy(result, 4, database->system, sizeof(database->system));
	copy(result, 5, database->oid, sizeof(database->oid));
	copy(result, 6, database->started, sizeof(database->started));
	database->pooled = strtol(PQgetvalue(result, 0, 8), NULL, 10) != PQbackendPID(conn);
	copy(result, 9, database->role, sizeof(database->role));
	database->may_create = *PQgetvalue(result, 0, 10) == 't';
	database->lag_ms = PQgetisnull(result, 0, 7) ? -1 : strtoll(PQgetvalue(result, 0, 7), NULL, 10);
	PQclear(result);
	if (*database->extension == '\0')
		return;
	result = ask(conn, IDENTITY, database);
	if (result == NULL)
		return;
	copy(result, 0, database->shard, sizeof(database->shard));
	copy(result, 1, database->library, sizeof(database->library));
	copy(result, 2, database->facts, sizeof(database->facts));
	database->copied = *PQgetvalue(result, 0, 3) == 'f';
	database->may_serve = *PQgetvalue(result, 0, 4) == 't';
	database->compatible = *PQgetvalue(result, 0, 5) == 't';
	PQclear(result);
}

void
database_ask(const char *url, const char *user, const char *password, bool primary,
			 struct database *database)
{
	PGconn	   *conn;

	memset(database, 0, sizeof(*database));
	database->lag_ms = -1;
	conn = open_session(url, user, password, primary);
	database->reached = PQstatus(conn) == CONNECTION_OK;
	if (database->reached)
		ask_all(conn, database);
	else
		take_problem(database->problem, PQerrorMessage(conn));
	if (strstr(database->problem, TOPOLOGY_POOLER_SAYS) != NULL)
		database->pooled = true;
	PQfinish(conn);
}

bool
database_judge(const char *url, const char *user, const char *password, const char *entries,
			   database_refusal_fn tell, void *arg, char problem[DATABASE_PROBLEM])
{
	PGconn	   *conn = open_session(url, user, password, true);
	const char *params[] = {entries};
	PGresult   *result = NULL;
	bool		judged;

	/* proxies that start wait for the lock that this takes, and it for theirs */
	PQclear(PQexec(conn, "begin; set local lock_timeout = '5s'"));
	if (PQtransactionStatus(conn) == PQTRANS_INTRANS)
		result = PQexecParams(conn, JUDGE, 1, NULL, params, NULL, NULL, 0);
	judged = PQresultStatus(result) == PGRES_TUPLES_OK;
	if (!judged)
		take_problem(problem, PQerrorMessage(conn));
	PQclear(PQexec(conn, "rollback"));
	for (int row = 0; judged && row < PQntuples(result); row++)
		tell((int) strtol(PQgetvalue(result, row, 0), NULL, 10), PQgetvalue(result, row, 1),
			 PQgetvalue(result, row, 2), arg);
	PQclear(result);
	PQfinish(conn);
	return judged;
}

bool
database_reaches(const char *url, const char *user, const char *password, const char *wal)
{
	PGconn	   *conn = open_session(url, user, password, true);
	const char *params[] = {wal};
	PGresult   *result = PQexecParams(conn, REACHES, 1, NULL, params, NULL, NULL, 0);
	bool		reaches = PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1 &&
		*PQgetvalue(result, 0, 0) == 't';

	PQclear(result);
	PQfinish(conn);
	return reaches;
}
