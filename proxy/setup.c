/*
 * setup.c
 *	  Bring a shard's database up to date, or verify it, and claim it for its id.
 *
 * One session, one statement at a time. Proxies that start together take turns
 * by an advisory lock, since "create extension if not exists" can collide with itself.
 *
 * A topology that is wrong is refused, and a process that starts ends by it. A database that
 * is not ready yet (extension, version, grants, claim) is left out until it is; nobody else waits.
 */
#define _GNU_SOURCE				/* strverscmp */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admission.h"
#include "buf.h"
#include "config.h"
#include "health.h"
#include "log.h"
#include "loop.h"
#include "position.h"
#include "setup.h"
#include "shard.h"
#include "target.h"
#include "tour.h"

#define REFUSED_RETRY_MS	5000
#define STEP_TIMEOUT_MS		60000
#define STATEMENTS_BYTES	600
#define REPEAT_MS			60000	/* the same failure to connect is logged so often */

struct setup
{
	struct shard *shard;
	struct link link;
	enum statement step;
	PGresult   *result;
	char		claim[16];
	char		home[16];
	struct buf	entries;		/* for home's registry */
	struct buf	settings;		/* that the database is to have */
	char		behind_system[24];	/* the database behind a pooler, for which the shard is refused; or empty */
	char		behind_database[16];
	char		available[32];	/* version that the server could install */
	bool		compatible;		/* the server's library runs with the SQL objects that there are */
	bool		stays;			/* and they are not updated now */
	bool		waits;			/* for home, to change what nobody has used yet */
	bool		busy;			/* connected, or cut off in the midst of it and not seen to be away */
	struct deadline timer;		/* the step's, or until the next attempt */
	struct tour *tour;			/* goes first */
	char		said[512];		/* the last failure to connect that was logged */
	uint64_t	said_at;
};

static void run(struct setup *setup, enum statement step);

static void
step_overdue(struct deadline *deadline)
{
	struct setup *setup = deadline_owner(deadline, struct setup, timer);

	link_break(&setup->link, "setting the shard up takes too long");
}

/* Of several servers each is asked first which timeline it writes. */
static void
begin(struct setup *setup)
{
	tour_start(setup->tour, setup->shard->target);
}

static void
toured(void *owner)
{
	struct setup *setup = owner;

	link_start(&setup->link);
}

static void
start_again(struct deadline *deadline)
{
	begin(deadline_owner(deadline, struct setup, timer));
}

static void
try_later(struct setup *setup, const char *why, void (*tell) (struct shard *shard, const char *why))
{
	char		reason[1024];

	snprintf(reason, sizeof(reason), "shard %d (%s): %s", setup->shard->entry->id,
			 target_name(setup->shard->target), why);
	link_stop(&setup->link);
	setup->busy = false;
	deadline_set(&setup->timer, loop_now() + REFUSED_RETRY_MS, start_again);
	tell(setup->shard, reason);
}

void
setup_refuse(struct setup *setup, const char *why)
{
	try_later(setup, why, shard_setup_refused);
}

static void
leave_out(struct setup *setup, const char *why)
{
	try_later(setup, why, shard_left_out);
}

/* ---- a pooler ---- */

static bool
applies(void)
{
	return config.schema_mode == SCHEMA_APPLY;
}

/* Another shard that reaches this database, through a pooler or not. */
static const struct shard *
alias_of(const struct shard *shard, const char *system, const char *database)
{
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		const struct shard *other = shard_by_slot(slot);

		if (other != shard && strcmp(other->setup->behind_system, system) == 0 &&
			strcmp(other->setup->behind_database, database) == 0)
			return other;
	}
	return shard_twin(shard, system, database);
}

/* Which of the two comes first is chance: who comes second names both. */
static void
tell_alias(const struct shard *shard, const char *system, const char *database)
{
	const struct shard *other = alias_of(shard, system, database);

	if (other != NULL)
		log_error("setup", "shard %d (%s): this is the same database as shard %d (%s); every shard needs one of its own",
				  shard->entry->id, target_name(shard->target), other->entry->id, target_name(other->target));
}

static void
judge_server(struct setup *setup, const PGresult *result)
{
	if (link_pooled(&setup->link, result))
		run(setup, SQL_SETUP_BEHIND);
	else
		run(setup, applies() ? SQL_SETUP_LOCK : SQL_SETUP_STATE);
}

static void
refuse_pooler(struct setup *setup, const PGresult *result)
{
	snprintf(setup->behind_system, sizeof(setup->behind_system), "%s", PQgetvalue(result, 0, 0));
	snprintf(setup->behind_database, sizeof(setup->behind_database), "%s", PQgetvalue(result, 0, 1));
	tell_alias(setup->shard, setup->behind_system, setup->behind_database);
	setup_refuse(setup, TOPOLOGY_POOLER);
}

/* ---- what there is ---- */

/* Home's registry speaks for the whole topology: before it has, a new database is let alone. */
static bool
may_take(const struct setup *setup)
{
	const struct shard *home = shard_at(shard_topology()->home);

	return setup->shard == home || home->phase != SHARD_SETTING_UP;
}

static void
wait_for_home(struct setup *setup)
{
	snprintf(setup->said, sizeof(setup->said), "it is a new database, and home has not accepted the topology yet");
	health_set(setup->shard->health, false, "waits for home");
	setup->waits = true;
	setup->busy = false;
	link_stop(&setup->link);
}

void
setup_home_ready(struct setup *setup)
{
	if (!setup->waits)
		return;
	setup->waits = false;
	begin(setup);
}

/*
 * Has the database the SQL objects that this program needs? Newer ones are good: they keep
 * what the program of the version before asks for. Who is to update brings its own.
 */
static bool
is_new_enough(struct setup *setup, const char *installed)
{
	char		why[256];

	if (config.migrate_only && applies() && strverscmp(installed, WIGGLE_VERSION) < 0)
		snprintf(why, sizeof(why), "its server has version %s of pg_wiggle, and this is %s; install the new package there and"
				 " restart the server, then run this again", installed, WIGGLE_VERSION);
	else if (strverscmp(installed, SQL_NEEDED) < 0)
		snprintf(why, sizeof(why), "the database has version %s of the extension, and this proxy needs %s; once its server runs"
				 " that, run \"alter extension wiggle update\" there", installed, SQL_NEEDED);
	else
		return true;
	leave_out(setup, why);
	return false;
}

/* The next step after the state is known: 0 rows of it are impossible. */
static void
judge_state(struct setup *setup, const PGresult *result)
{
	bool		installed = !PQgetisnull(result, 0, SETUP_INSTALLED);
	bool		available = !PQgetisnull(result, 0, SETUP_AVAILABLE);
	bool		current = installed && available &&
		strcmp(PQgetvalue(result, 0, SETUP_INSTALLED), PQgetvalue(result, 0, SETUP_AVAILABLE)) == 0;
	bool		has_path = strcmp(PQgetvalue(result, 0, SETUP_SEARCH_PATH), "t") == 0;

	if (!installed && setup->shard->told)
	{
		/* whoever drops it under a running server means it */
		leave_out(setup, "the extension wiggle has been dropped; create it again, or take the shard out of"
				" the topology");
	}
	else if (!installed && !applies())
		leave_out(setup, "the extension wiggle is not installed; run \"create extension wiggle\" there,"
				" or start with WIGGLE_SCHEMA_MODE=apply");
	else if (!installed && !available)
		leave_out(setup, "the extension wiggle is not available on its server; install pg_wiggle there");
	else if (!installed && !may_take(setup))
		wait_for_home(setup);
	else if (!installed)
		run(setup, SQL_SETUP_CREATE);
	else if (applies() && available && !current && !setup->stays)
	{
		snprintf(setup->available, sizeof(setup->available), "%s",
				 PQgetvalue(result, 0, SETUP_AVAILABLE));
		run(setup, SQL_SETUP_LIBRARY);
	}
	else if (!is_new_enough(setup, PQgetvalue(result, 0, SETUP_INSTALLED)))
		return;
	else if (applies() && !has_path)
		run(setup, SQL_SETUP_SEARCH_PATH);
	else
		run(setup, SQL_SETUP_IDENTITY);
}

/*
 * A new package does not change the library that the server has loaded: the
 * catalog is brought up to the library's version, never past it. Who only serves
 * does so with the SQL objects that there are.
 */
static void
judge_library(struct setup *setup, const PGresult *result)
{
	const char *library = PQgetvalue(result, 0, 0);
	char		why[256];

	setup->compatible = strcmp(PQgetvalue(result, 0, 1), "t") == 0;
	if (strcmp(library, setup->available) == 0)
	{
		run(setup, SQL_SETUP_UPDATE);
		return;
	}
	snprintf(why, sizeof(why), "version %s of wiggle is installed, but the server runs %s; restart the server, then %s",
			 setup->available, library, config.migrate_only ? "run this again" : "update the extension");
	if (config.migrate_only)
	{
		leave_out(setup, why);
		return;
	}
	log_warn("setup", "shard %d: %s", setup->shard->entry->id, why);
	setup->stays = true;
	run(setup, SQL_SETUP_STATE);
}

static void
judge_identity(struct setup *setup, const PGresult *result)
{
	struct shard *shard = setup->shard;
	const char *system = PQgetvalue(result, 0, IDENTITY_SYSTEM);
	const char *database = PQgetvalue(result, 0, IDENTITY_DATABASE);
	const struct shard *twin = shard_twin(shard, system, database);
	int			timeline = (int) strtol(PQgetvalue(result, 0, IDENTITY_TIMELINE), NULL, 10);
	char		why[512];

	if (timeline < shard->timeline && strcmp(system, shard->system_id) == 0)
	{
		snprintf(why, sizeof(why), "the server is on timeline %d, but the shard has moved on to timeline %d: a former"
				 " primary", timeline, shard->timeline);
		link_next_host(&setup->link);
		link_break(&setup->link, why);
		return;
	}
	if (twin != NULL)
	{
		snprintf(why, sizeof(why), "this is the same database as shard %d (%s); every shard needs one of"
				 " its own", twin->entry->id, target_name(twin->target));
		setup_refuse(setup, why);
		return;
	}
	if (PQgetisnull(result, 0, IDENTITY_SHARD_ID) && !applies())
	{
		snprintf(why, sizeof(why), "the database belongs to no shard yet; run \"select"
				 " wiggle.shard_claim(%d)\" there, or start with WIGGLE_SCHEMA_MODE=apply",
				 shard->entry->id);
		leave_out(setup, why);
		return;
	}
	if (!PQgetisnull(result, 0, IDENTITY_SHARD_ID) &&
		strcmp(PQgetvalue(result, 0, IDENTITY_SHARD_ID), setup->claim) != 0)
	{
		long		bears = strtol(PQgetvalue(result, 0, IDENTITY_SHARD_ID), NULL, 10);
		int			owner = topology_find(shard_topology(), (int32_t) bears);
		const struct shard *other = owner < 0 ? NULL : shard_at(owner);

		snprintf(why, sizeof(why), "the database belongs to shard %s%s%s%s; correct the topology",
				 PQgetvalue(result, 0, IDENTITY_SHARD_ID), other ? " (" : "",
				 other ? target_name(other->target) : owner < 0 ? ", which the topology does not list" : "",
				 other ? ")" : "");
		setup_refuse(setup, why);
		return;
	}
	if (strcmp(PQgetvalue(result, 0, IDENTITY_GENUINE), "f") == 0)
	{
		snprintf(why, sizeof(why), TOPOLOGY_COPY, shard->entry->id);
		setup_refuse(setup, why);
		return;
	}
	if (timeline == shard->timeline && strcmp(PQgetvalue(result, 0, IDENTITY_UUID), shard->identity) == 0 &&
		strcmp(PQgetvalue(result, 0, IDENTITY_BEHIND), "t") == 0)
	{
		snprintf(why, sizeof(why), "its write-ahead log ends at %s, but the shard had already written up to %s: this is an"
				 " older copy; correct the topology, or, when the original is gone for good, run \"select"
				 " wiggle.shard_adopt()\" in this one", PQgetvalue(result, 0, IDENTITY_WAL), position_known(shard));
		setup_refuse(setup, why);
		return;
	}
	if (strcmp(PQgetvalue(result, 0, IDENTITY_MAY_SERVE), "true") != 0)
	{
		snprintf(why, sizeof(why), TOPOLOGY_MAY_NOT_SERVE, PQgetvalue(result, 0, IDENTITY_ROLE),
				 PQgetvalue(result, 0, IDENTITY_ROLE));
		leave_out(setup, why);
		return;
	}
	if (shard->former != NULL && shard_usable(shard) &&
		(PQgetisnull(result, 0, IDENTITY_UUID) || strcmp(PQgetvalue(result, 0, IDENTITY_UUID), shard->identity) != 0))
	{
		setup_refuse(setup, "this is another database than the one that the shard has, which still answers; stop that first");
		return;
	}
	tell_alias(shard, system, database);
	snprintf(shard->system_id, sizeof(shard->system_id), "%s", system);
	snprintf(shard->database, sizeof(shard->database), "%s", database);
	snprintf(shard->version, sizeof(shard->version), "%s", PQgetvalue(result, 0, IDENTITY_LIBRARY));
	if (strcmp(PQgetvalue(result, 0, IDENTITY_COMPATIBLE), "t") != 0)
	{
		snprintf(why, sizeof(why), "the server runs version %s of the wiggle library, the database has version"
				 " %s of the extension; %s", shard->version, PQgetvalue(result, 0, IDENTITY_CATALOG),
				 strverscmp(shard->version, PQgetvalue(result, 0, IDENTITY_CATALOG)) < 0 ? "restart the server"
				 : "run \"alter extension wiggle update\" there");
		leave_out(setup, why);
		return;
	}
	if (PQgetisnull(result, 0, IDENTITY_SHARD_ID))
	{
		if (may_take(setup))
			run(setup, SQL_SETUP_CLAIM);
		else
			wait_for_home(setup);
		return;
	}
	if (timeline != shard->timeline || strcmp(PQgetvalue(result, 0, IDENTITY_UUID), shard->identity) != 0)
		position_begin(shard, PQgetvalue(result, 0, IDENTITY_WAL));
	else
		position_raise(shard, PQgetvalue(result, 0, IDENTITY_WAL));
	snprintf(shard->identity, sizeof(shard->identity), "%s", PQgetvalue(result, 0, IDENTITY_UUID));
	shard->timeline = timeline;
	free(shard->facts);
	shard->facts = xstrdup(PQgetvalue(result, 0, IDENTITY_FACTS));
	shard->was_complete = strcmp(PQgetvalue(result, 0, IDENTITY_COMPLETE), "t") == 0;
	run(setup, SQL_SETUP_HOME);
}

/*
 * The shard is ours: bring the settings that were given to it, which only a role that
 * may set them can. It serves all the same.
 */
static void
tell_settings(struct setup *setup)
{
	buf_reset(&setup->settings);
	run(setup, config_pushed(&setup->settings) ? SQL_SETUP_SETTINGS : SQL_SETUP_UNLOCK);
}

/* The statements so far, which were done or are left to do (problem: why). */
static void
tell_statements(const struct setup *setup, const char *problem, struct buf *statements)
{
	if (statements->len == 0)
		return;
	if (problem == NULL)
		log_info("setup", "shard %d: done: %s", setup->shard->entry->id, buf_cstr(statements));
	else
		log_warn("setup", "shard %d: settings of the database are not as given (%s); have an administrator run there: %s",
				 setup->shard->entry->id, problem, buf_cstr(statements));
	buf_reset(statements);
}

static void
judge_settings(struct setup *setup, const PGresult *result)
{
	const char *problem = NULL;
	struct buf	done = BUF_INIT;
	struct buf	left = BUF_INIT;

	for (int row = 0; row < PQntuples(result); row++)
	{
		bool		is_done = PQgetisnull(result, row, SETTINGS_PROBLEM);
		struct buf *list = is_done ? &done : &left;

		/* a line of the log has room for so many */
		if (list->len > STATEMENTS_BYTES)
			tell_statements(setup, is_done ? NULL : problem, list);
		buf_printf(list, "%s%s", list->len > 0 ? "; " : "", PQgetvalue(result, row, SETTINGS_STATEMENT));
		if (!is_done)
			problem = PQgetvalue(result, row, SETTINGS_PROBLEM);
	}
	tell_statements(setup, NULL, &done);
	tell_statements(setup, problem, &left);
	buf_free(&done);
	buf_free(&left);
}

static bool
is_home(const struct setup *setup)
{
	return setup->shard->index == shard_topology()->home;
}

static void
step_done(struct setup *setup, const PGresult *result)
{
	switch (setup->step)
	{
		case SQL_SETUP_SERVER:
			judge_server(setup, result);
			break;
		case SQL_SETUP_BEHIND:
			refuse_pooler(setup, result);
			break;
		case SQL_SETUP_LOCK:
			run(setup, SQL_SETUP_STATE);
			break;
		case SQL_SETUP_STATE:
			judge_state(setup, result);
			break;
		case SQL_SETUP_LIBRARY:
			judge_library(setup, result);
			break;
		case SQL_SETUP_CREATE:
		case SQL_SETUP_UPDATE:
			log_info("setup", "shard %d: %s the extension wiggle in %s", setup->shard->entry->id,
					 setup->step == SQL_SETUP_CREATE ? "created" : "updated",
					 target_name(setup->shard->target));
			run(setup, SQL_SETUP_STATE);
			break;
		case SQL_SETUP_SEARCH_PATH:
			run(setup, SQL_SETUP_IDENTITY);
			break;
		case SQL_SETUP_IDENTITY:
			if (PQntuples(result) == 1)
				judge_identity(setup, result);
			else
				leave_out(setup, "wiggle.shard() gave no row");
			break;
		case SQL_SETUP_CLAIM:
			log_info("setup", "shard %d: this is the database %s from now on", setup->shard->entry->id,
					 target_name(setup->shard->target));
			run(setup, SQL_SETUP_IDENTITY);
			break;
		case SQL_SETUP_HOME:
			if (is_home(setup))
				run(setup, SQL_ADMIT);
			else
				tell_settings(setup);
			break;
		case SQL_SETUP_SETTINGS:
			judge_settings(setup, result);
			run(setup, SQL_SETUP_UNLOCK);
			break;
		case SQL_ADMIT:
			if (admission_forbids(result))
				setup_refuse(setup, "home's registry does not agree with the topology, as said above");
			else
				tell_settings(setup);
			break;
		default:
			setup->busy = false;
			link_stop(&setup->link);
			if (is_home(setup))
				shard_setup_done(setup->shard);
			else
				admission_begin(setup->shard->admission);
			break;
	}
}

static void
step_failed(struct setup *setup, const PGresult *result)
{
	const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	const char *hint = PQresultErrorField(result, PG_DIAG_MESSAGE_HINT);
	enum error_class error_class = error_classify(sqlstate);
	char		why[512];

	if (setup->step == SQL_SETUP_BEHIND && sqlstate != NULL && error_class != ERROR_CONNECTION)
	{
		setup_refuse(setup, TOPOLOGY_POOLER);
		return;
	}
	if (setup->step == SQL_SETUP_SEARCH_PATH)
	{
		log_warn("setup", "shard %d: the database's search_path could not be set: %s",
				 setup->shard->entry->id, message ? message : "");
		run(setup, SQL_SETUP_IDENTITY);
		return;
	}
	if (setup->step == SQL_SETUP_SETTINGS && sqlstate != NULL && error_class != ERROR_CONNECTION)
	{
		log_warn("setup", "shard %d: the database's settings could not be looked at: %s", setup->shard->entry->id,
				 message ? message : "");
		run(setup, SQL_SETUP_UNLOCK);
		return;
	}
	if (setup->step == SQL_SETUP_UPDATE && sqlstate != NULL && error_class != ERROR_CONNECTION && setup->compatible &&
		!config.migrate_only)
	{
		log_warn("setup", "shard %d: the extension is not updated to version %s: %s; it serves as it is until somebody runs"
				 " \"alter extension wiggle update\" there", setup->shard->entry->id, setup->available, message ? message : "");
		setup->stays = true;
		run(setup, SQL_SETUP_STATE);
		return;
	}
	if (sqlstate != NULL && strcmp(sqlstate, "55P03") == 0)
		hint = setup->step == SQL_SETUP_LOCK ? "another proxy is setting the database up"
			: "a transaction there holds what is to be changed";
	else if (sqlstate != NULL && strcmp(sqlstate, "42501") == 0)
		hint = setup->step == SQL_SETUP_CREATE || setup->step == SQL_SETUP_UPDATE
			? "as a superuser run \"create extension wiggle\" (or \"alter extension wiggle update\")"
			" there and grant wiggle_server to the proxy's role, or let the proxy connect as a superuser"
			: "grant wiggle_server to the proxy's role there";
	snprintf(why, sizeof(why), "%s%s%s", message ? message : "no message", hint ? "; " : "",
			 hint ? hint : "");
	/* 55000 is the extension's own: a server that is not set up for it stays so until someone acts */
	if (sqlstate == NULL || (strcmp(sqlstate, "55000") != 0 &&
							 (error_class == ERROR_CONNECTION || error_class == ERROR_RETRY ||
							  error_class == ERROR_BUSY)))
		link_break(&setup->link, why);
	else if (strncmp(sqlstate, "WG4", 3) == 0)
		setup_refuse(setup, why);	/* the engine's own: the database is not what the topology says */
	else
		leave_out(setup, why);
}

static void
run(struct setup *setup, enum statement step)
{
	const char *values[2] = {setup->claim, NULL};
	int			nparams = 0;

	setup->step = step;
	if (step == SQL_SETUP_CLAIM)
		nparams = 1;
	else if (step == SQL_SETUP_IDENTITY)
	{
		nparams = 1;
		values[0] = position_known(setup->shard);
	}
	else if (step == SQL_SETUP_HOME)
	{
		nparams = 2;
		values[0] = setup->home;
		values[1] = setup->shard->entry->state == SHARD_DRAINING ? "DRAINING" : "ACTIVE";
	}
	else if (step == SQL_SETUP_SETTINGS)
	{
		nparams = 2;
		values[0] = buf_cstr(&setup->settings);
		values[1] = applies() ? "t" : "f";
	}
	else if (step == SQL_ADMIT)
	{
		nparams = 2;
		admission_entries(setup->shard, true, &setup->entries);
		values[0] = buf_cstr(&setup->entries);
		values[1] = "t";
	}
	if (!PQsendQueryParams(setup->link.conn, statement_text(step), nparams, NULL, values, NULL, NULL, 0))
	{
		link_break(&setup->link, PQerrorMessage(setup->link.conn));
		return;
	}
	/* To make or to change the extension takes what it takes; a connection that is lost is noticed all the same. */
	if (step != SQL_SETUP_CREATE && step != SQL_SETUP_UPDATE)
		deadline_set(&setup->timer, loop_now() + STEP_TIMEOUT_MS, step_overdue);
	link_flush(&setup->link);
}

static void
setup_up(struct link *link)
{
	struct setup *setup = link->owner;

	setup->said[0] = '\0';
	setup->busy = true;
	setup->behind_system[0] = '\0';
	setup->stays = false;
	run(setup, SQL_SETUP_SERVER);
}

static void
setup_ready(struct link *link)
{
	struct setup *setup = link->owner;

	while (link_up(link) && PQstatus(link->conn) == CONNECTION_OK && !PQisBusy(link->conn))
	{
		PGresult   *result = PQgetResult(link->conn);

		if (result != NULL)
		{
			PQclear(setup->result);
			setup->result = result;
			continue;
		}
		result = setup->result;
		setup->result = NULL;
		if (result == NULL)
			break;
		deadline_clear(&setup->timer);
		if (PQresultStatus(result) == PGRES_TUPLES_OK || PQresultStatus(result) == PGRES_COMMAND_OK)
			step_done(setup, result);
		else
			step_failed(setup, result);
		PQclear(result);
	}
}

static void
setup_down(struct link *link, const char *why)
{
	struct setup *setup = link->owner;

	deadline_clear(&setup->timer);
	PQclear(setup->result);
	setup->result = NULL;
	snprintf(setup->said, sizeof(setup->said), "%s", why);
	log_warn("setup", "shard %d: interrupted: %s", setup->shard->entry->id, why);
}

/*
 * What to do about a refusal that does not mend itself; NULL for the others. libpq
 * gives no SQLSTATE for a connection that was refused: its English text has to do,
 * and in another language only the advice is missing.
 */
static const char *
advice(const char *why)
{
	static const struct
	{
		const char *part;
		const char *advice;
	}			known[] = {
		{"database \"", "create the database, or correct its name in the url"},
		{"role \"", "create the role, or correct 'user' in the topology (WIGGLE_JDBC_USER)"},
		{"password authentication failed", "correct user and password in the topology"
		" (WIGGLE_JDBC_USER, WIGGLE_JDBC_PASSWORD)"},
		{"no password supplied", "give a password in the topology (WIGGLE_JDBC_PASSWORD)"},
		{"no pg_hba.conf entry", "allow this host, role and database in the server's pg_hba.conf"}
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
	{
		bool		missing = i < 2;

		if (strstr(why, known[i].part) != NULL && (!missing || strstr(why, "does not exist") != NULL))
			return known[i].advice;
	}
	return NULL;
}

static void
setup_failed(struct link *link, const char *sqlstate, const char *why)
{
	struct setup *setup = link->owner;
	const char *what = advice(why);

	(void) sqlstate;
	setup->busy = false;
	if (strstr(why, TOPOLOGY_POOLER_SAYS) != NULL)
	{
		setup_refuse(setup, TOPOLOGY_POOLER);
		return;
	}
	if (!shard_usable(setup->shard))
		health_set(setup->shard->health, false, "cannot connect; the log says why");
	if (strcmp(setup->said, why) == 0 && loop_now() - setup->said_at < REPEAT_MS)
		return;
	snprintf(setup->said, sizeof(setup->said), "%s", why);
	setup->said_at = loop_now();
	log_line(what == NULL ? LOG_LEVEL_WARN : LOG_LEVEL_ERROR, "setup",
			 "shard %d: cannot connect to %s, trying again: %s%s%s%s", setup->shard->entry->id,
			 target_name(setup->shard->target), why, what == NULL ? "" : "; ", what == NULL ? "" : what,
			 setup->shard->late && !setup->shard->told && !setup->shard->known
			 ? "; while no proxy has reached it and no generation weighs it, it may be taken out of the topology again" : "");
}

static const struct link_ops setup_ops = {
	.up = setup_up,
	.ready = setup_ready,
	.down = setup_down,
	.failed = setup_failed,
};

struct setup *
setup_create(struct shard *shard)
{
	struct setup *setup = xcalloc(1, sizeof(*setup));

	setup->shard = shard;
	snprintf(setup->claim, sizeof(setup->claim), "%d", shard->entry->id);
	snprintf(setup->home, sizeof(setup->home), "%d", shard_topology()->shards[shard_topology()->home].id);
	link_init(&setup->link, &setup_ops, shard->target, "setup", setup);
	setup->tour = tour_create(toured, setup);
	return setup;
}

void
setup_start(struct setup *setup)
{
	deadline_clear(&setup->timer);
	setup->waits = false;
	setup->link.target = setup->shard->target;
	begin(setup);
}

void
setup_stop(struct setup *setup)
{
	setup->waits = setup->busy = false;
	deadline_clear(&setup->timer);
	setup->behind_system[0] = '\0';
	PQclear(setup->result);
	setup->result = NULL;
	buf_free(&setup->entries);
	buf_free(&setup->settings);
	tour_stop(setup->tour);
	link_stop(&setup->link);
}

bool
setup_busy(const struct setup *setup)
{
	return setup->busy;
}

const char *
setup_problem(const struct setup *setup)
{
	return setup->said;
}
