/*
 * statement.h
 *	  The only SQL text of the proxy; batches to binary parameters, rows back.
 *
 * Nothing here does I/O. Results are libpq's, in binary format for the batch.
 */
#ifndef WIGGLE_PROXY_STATEMENT_H
#define WIGGLE_PROXY_STATEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <libpq-fe.h>

#include "buf.h"
#include "error.h"
#include "item.h"

/* The oldest SQL objects of the extension that these texts run with. Newer ones keep what the texts name. */
#define SQL_NEEDED "0.1"

enum statement
{
	SQL_BATCH,					/* eight composites, binary; rows of wiggle.batch_result */
	SQL_IMPATIENT,				/* before SQL_BATCH: this transaction gives up soon on a lock */
	SQL_RELEASE_OWNERS,			/* text[], int4: the lost session's pid */
	SQL_SESSION_LANE,			/* $1 lock, $2 statement timeout (ms), $3 WAL known; shard identity */
	SQL_SESSION_SIDE,			/* the same for side connections */
	SQL_LISTEN,
	SQL_PROBE,
	SQL_DEALLOCATE,
	SQL_TIMELINE,				/* that a primary writes, and up to which byte it has */
	SQL_SETUP_SERVER,
	SQL_SETUP_BEHIND,			/* a pooler: the cluster's identifier, the database's */
	SQL_SETUP_LOCK,
	SQL_SETUP_STATE,
	SQL_SETUP_CREATE,
	SQL_SETUP_LIBRARY,			/* the loaded library's version; does it run with the SQL objects that there are */
	SQL_SETUP_UPDATE,
	SQL_SETUP_SEARCH_PATH,
	SQL_SETUP_IDENTITY,			/* $1 WAL known */
	SQL_SETUP_CLAIM,			/* $1 shard id */
	SQL_SETUP_HOME,				/* $1 home's shard id, $2 this shard's state */
	SQL_SETUP_SETTINGS,			/* $1 what the database is to have set (JSON), $2 apply; rows of enum settings_column */
	SQL_SETUP_UNLOCK,
	SQL_FACTS,					/* as IDENTITY_FACTS */
	SQL_ADMIT,					/* home: $1 entries, $2 whole; rows of shard, refusal, position that it lies behind */
	SQL_TOPOLOGY_ADMIT,			/* home: $1 all entries, $2 generations, $3 withdraw; rows of refusal, notice */
	SQL_POSITION,				/* where the shard's log ends */
	SQL_POSITIONS,				/* home: $1 entries; the shards that any proxy has reached */
	SQL_WORKFLOWS,
	SQL_DEFINITION_LIST,		/* JSON for SQL_LACKING, and a mark that changes with it */
	SQL_DEFINITION_BODY,		/* $1 name, $2 version; as it was registered */
	SQL_LACKING,				/* $1 another shard's list; name and version of what is not here */
	SQL_REGISTER,				/* $1 definition, $2 force */
	SQL_REGISTER_CHECK,			/* the same, writes nothing */
	SQL_DEFINITION,				/* $1 name, $2 version or NULL */
	SQL_INSTANCE,				/* $1 id, $2 bytes of context at most */
	SQL_INSTANCES,				/* $1 workflow, $2 status, $3 correlation, $4 max, $5 bytes at most, $6 before */
	SQL_CANCEL,					/* $1 id, $2 reason or NULL */
	SQL_SIGNAL,					/* $1 id, $2 signal, $3 payload or NULL */
	SQL_SCHEDULE,				/* $1 workflow, $2 every ms or NULL, $3 cron or NULL, $4 context */
	SQL_SCHEDULES,
	SQL_UNSCHEDULE,				/* $1 id */
	SQL_HORIZON,				/* the first event number that is not final */
	SQL_FEED,					/* $1 after, $2 max, $3 bytes at most */
	SQL_FEED_AWAY,				/* the same on a shard that is not home, $4 consumer, $5 shard */
	SQL_CURSOR_READ,			/* $1 consumer; shard, acked */
	SQL_CURSOR_REGISTER,		/* $1 consumer, $2 shards, $3 numbers */
	SQL_CURSOR_ACK,				/* the same */
	SQL_FORGET_CONSUMER,		/* $1 consumer; was there one? */
	SQL_STEP_STATS,				/* $1 workflow, $2 version or NULL, $3 since ms, $4 sample */
	SQL_BACKLOG,				/* $1 max */
	SQL_BEAT,					/* renews the heartbeat that replicas are measured by; its time, Unix µs */
	SQL_BEAT_READ,				/* the same on a replica */
	SQL_NODES,
	SQL_NODE_BEAT,				/* $1 id, $2 name, $3 workers, $4 polls, $5 divides the tasks */
	SQL_NODE_LEAVE,				/* $1 id */
	SQL_OUTBOX,					/* $1 max, $2 shards */
	SQL_OUTBOX_DONE,			/* $1 ids started, $2 ids to be given again later */
	SQL_WATCH,					/* rows of enum watch_column */
	SQL_SHARD_LOAD,				/* live, held, lag in ms, the extension's version, are there more */
	SQL_SHARD_OWED,				/* home: $1 shard; refused while instances wait to be started there */
	SQL_SHARD_RETIRE,
	SQL_INSTANCE_WORKFLOW,		/* $1 id */
	SQL_SCHEDULE_WORKFLOW,		/* $1 id */
	SQL_AUTH_FIND,				/* $1 a key's SHA-256 in hex or NULL, $2 subject or NULL */
	SQL_AUTH_HEAD,				/* the last change */
	SQL_AUTH_CREATE_KEY,		/* $1 id, $2 role, $3 expires ms or NULL, $4 actor; the key */
	SQL_AUTH_ADD_CERTIFICATE,	/* $1 id, $2 subject, $3 role, $4 expires ms or NULL, $5 actor */
	SQL_AUTH_CREDENTIALS,		/* id, role, prefix, subject, created ms, expires ms */
	SQL_AUTH_GRANT,				/* $1 id, $2 role, $3 actor */
	SQL_AUTH_REVOKE,			/* $1 id, $2 actor */
	SQL_AUTH_PUT_ROLE,			/* $1 name, $2 permissions between line feeds, $3 actor */
	SQL_AUTH_ROLES,				/* name, permissions between line feeds, is it built in? */
	SQL_AUTH_DROP_ROLE			/* $1 name, $2 actor */
};
#define STATEMENTS (SQL_AUTH_DROP_ROLE + 1)

extern const char *statement_text(enum statement statement);

/* Columns of SQL_SESSION_LANE, SQL_SESSION_SIDE and SQL_SETUP_IDENTITY, as text. */
enum identity_column
{
	IDENTITY_SHARD_ID,			/* NULL: not claimed */
	IDENTITY_SYSTEM,
	IDENTITY_DATABASE,
	IDENTITY_LIBRARY,
	IDENTITY_CATALOG,
	IDENTITY_UUID,				/* NULL: not claimed */
	IDENTITY_TIMELINE,			/* of the server's history; each promotion begins another */
	IDENTITY_WAL,				/* where its log ends; NULL: a standby */
	IDENTITY_BEHIND,			/* 't': before the position given */
	IDENTITY_MAY_SERVE,			/* SQL_SETUP_IDENTITY alone, and the rest: 'true' when the role may run what
								 * is needed */
	IDENTITY_ROLE,				/* the session's role */
	IDENTITY_GENUINE,			/* 'f': a copy of the database that was claimed */
	IDENTITY_FACTS,				/* JSON, for SQL_ADMIT */
	IDENTITY_COMPLETE,			/* 't': it had every definition of home when it was looked at last */
	IDENTITY_COMPATIBLE			/* 't': the server's library runs with the database's SQL objects */
};

/* Columns of SQL_POSITION, as text. */
enum position_column
{
	POSITION_UUID, POSITION_TIMELINE, POSITION_WAL
};

/* Columns of SQL_TOPOLOGY_ADMIT, one of them NULL. */
enum topology_admit_column
{
	TOPOLOGY_ADMIT_REFUSAL, TOPOLOGY_ADMIT_NOTICE
};

/* Columns of SQL_ADMIT, as text. */
enum admit_column
{
	ADMIT_SHARD, ADMIT_REFUSAL,
	ADMIT_WAL					/* refused for this: its facts say less, perhaps as others have looked since */
};

/* Columns of SQL_SETUP_STATE, as text. */
enum settings_column
{
	SETTINGS_NAME,
	SETTINGS_PROBLEM,			/* NULL: it is set from now on */
	SETTINGS_STATEMENT			/* the SQL that sets it */
};

enum setup_column
{
	SETUP_INSTALLED,			/* version, NULL: no extension */
	SETUP_AVAILABLE,			/* default version, NULL: no control file */
	SETUP_DATABASE,				/* its name */
	SETUP_SEARCH_PATH			/* 't' when the database's own search_path names wiggle */
};

/* Columns of SQL_INSTANCES and the first ones of SQL_INSTANCE, as text. */
enum instance_column
{
	INSTANCE_ID,
	INSTANCE_WORKFLOW,
	INSTANCE_VERSION,
	INSTANCE_STATUS,
	INSTANCE_REASON,
	INSTANCE_ERROR,
	INSTANCE_CREATED_AT,		/* Unix ms */
	INSTANCE_UPDATED_AT,
	INSTANCE_NUMBER,			/* in SQL_INSTANCES: its place, for merging and paging */
	INSTANCE_CONTEXT,			/* JSON text; in SQL_INSTANCE of the first row only */
	INSTANCE_OVER				/* 't': the rows have more bytes than asked for */
};

/* Further columns of SQL_INSTANCE; TOKEN_ID is NULL when there are no tokens. */
enum token_column
{
	TOKEN_ID = INSTANCE_OVER + 1,
	TOKEN_NODE_ID,
	TOKEN_KIND,
	TOKEN_STATUS,
	TOKEN_ACTIVITY,
	TOKEN_ATTEMPT,
	TOKEN_AVAILABLE_AT,
	TOKEN_LEASE_OWNER,
	TOKEN_LAST_ERROR,
	TOKEN_STARTED_AT,
	TOKEN_FINISHED_AT,
	TOKEN_CREATED_AT,
	TOKEN_INPUT,				/* JSON text; all NULL when together over the bytes asked for */
	TOKEN_OUTPUT
};

/* Columns of SQL_SCHEDULE and SQL_SCHEDULES, as text. */
enum schedule_column
{
	SCHEDULE_ID,
	SCHEDULE_WORKFLOW,
	SCHEDULE_EVERY,				/* ms, NULL: by cron */
	SCHEDULE_CRON,				/* NULL: by interval */
	SCHEDULE_NEXT,				/* Unix ms */
	SCHEDULE_CREATED
};

/* Columns of SQL_FEED, as text; rows in order of their numbers. */
enum feed_column
{
	FEED_SEQ,
	FEED_INSTANCE,
	FEED_WORKFLOW,
	FEED_VERSION,
	FEED_CORRELATION,
	FEED_TYPE,
	FEED_CREATED_AT,			/* Unix ms */
	FEED_CREATED_EXACT,			/* Unix µs, for merging */
	FEED_PAYLOAD,				/* JSON text or NULL */
	FEED_NODE,
	FEED_FOUND					/* rows there were before the bound on bytes */
};

/* Columns of SQL_STEP_STATS, as text. */
enum stats_column
{
	STATS_NODE, STATS_NAME, STATS_COUNT, STATS_MEAN, STATS_P50, STATS_P95, STATS_MAX,
	STATS_WAIT_P50, STATS_WAIT_P95
};

/* Columns of SQL_BACKLOG, as text. */
enum backlog_column
{
	BACKLOG_WORKFLOW, BACKLOG_VERSION, BACKLOG_QUEUE, BACKLOG_READY, BACKLOG_OLDEST
};

/* Columns of SQL_WATCH, as text. */
enum watch_column
{
	WATCH_METRIC, WATCH_LABEL, WATCH_VALUE
};

/* Columns of SQL_NODE_BEAT, as text. */
enum beat_column
{
	BEAT_HOLDER,				/* NULL, or the id of the member that bears the name */
	BEAT_HEARD,					/* Unix ms: its last heartbeat */
	BEAT_LEADS,					/* is it the leader? */
	BEAT_NOW,					/* Unix ms */
	BEAT_MARK					/* of definitions */
};

/* Columns of SQL_NODES, as text. */
enum node_column
{
	NODE_ID, NODE_NAME, NODE_FIRST, NODE_LAST, NODE_WORKERS, NODE_POLLS, NODE_ALIVE, NODE_LEADER,
	NODE_PARTITION, NODE_MEMBER
};

/* Columns of SQL_AUTH_FIND, as text; AUTH_LEFT: ms by the shard's clock, NULL for ever. */
enum auth_column
{
	AUTH_ID, AUTH_PERMISSIONS, AUTH_LEFT
};

/* Columns of SQL_OUTBOX, as text. */
enum outbox_column
{
	OUTBOX_ID, OUTBOX_SHARD, OUTBOX_WORKFLOW, OUTBOX_CORRELATION, OUTBOX_CONTEXT
};

/* About the bytes that the item adds to a batch; set item->bytes to it. */
extern size_t item_measure(const struct item *item);

/* The parameters of SQL_BATCH: a family of each kind of item, then the runs' events, then
 * what this proxy takes of the queues that its polls name. */
#define BATCH_EVENTS	ITEM_KINDS
#define BATCH_SHARES	(ITEM_KINDS + 1)
#define BATCH_PARAMS	(ITEM_KINDS + 2)

/* Memory is kept for the next batch. */
struct batch_params
{
	struct buf	family[BATCH_PARAMS];
	const char *values[BATCH_PARAMS];
	int			lengths[BATCH_PARAMS];
	int			formats[BATCH_PARAMS];
};

/*
 * Encode items, which are numbered from 0 within each kind in the order of the
 * array. A kind without items is a NULL.
 */
extern void batch_encode(struct batch_params *params, struct item *const *items, int nitems);
extern size_t batch_params_bytes(const struct batch_params *params);
extern void batch_params_free(struct batch_params *params);

#define RELEASE_PARAMS 2

/* What SQL_RELEASE_OWNERS takes: whose claims, and which backend may still make some. */
extern void release_encode(struct batch_params *params, const char *const *owners, int n, int backend_pid);

/* One row of wiggle.batch_result. Texts are terminated; NULL where SQL has NULL. */
struct batch_row
{
	char		op;				/* 's' 'r' 'f' 'h' 'd' 't' */
	int32_t		item;
	int32_t		code;
	const char *message;
	const char *task_id;
	const char *instance_id;
	const char *status;
	int64_t		expires_at;
	const char *lease_owner;
	const char *workflow;
	int32_t		version;
	const char *node_id;
	const char *step_name;
	const char *activity;
	const char *kind;
	int32_t		attempt;
	const char *mode;
	const char *context;
	size_t		context_len;
	const char *base_context;
	size_t		base_context_len;
	int64_t		item_index;
	const char *item_map_key;
	const char *collect_key;
	const uint8_t *arm_names;	/* text[] in binary format */
	size_t		arm_names_len;
};

/* The kind of item that a row's op answers; -1 for an unknown op. */
extern int	batch_row_kind(char op);

/* Does the result have the columns that batch_row_decode expects? */
extern bool batch_result_valid(const PGresult *result, struct wig_error *err);

/* The row must exist; the result lives longer than *row. False: malformed. */
extern bool batch_row_decode(const PGresult *result, int n, struct batch_row *row);

/*
 * Walk a binary text[]: start with *pos = 0. True with *text (not terminated) for
 * each element that is not NULL, false at the end or when it is malformed.
 */
extern bool text_array_next(const uint8_t *array, size_t len, size_t *pos,
							const char **text, size_t *text_len);

#endif							/* WIGGLE_PROXY_STATEMENT_H */
