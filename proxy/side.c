/*
 * side.c
 *	  A few connections of a shard for what is not batched.
 *
 * One question at a time on each connection. Connections beyond the first are
 * opened when questions wait, and stay.
 *
 * Questions stand in four lines, by what may keep their connection: an instance that
 * somebody holds locked, a list over a large table, or the number of consumers of
 * events. Neither keeps quick ones waiting, nor all connections from the others.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "config.h"
#include "log.h"
#include "loop.h"
#include "position.h"
#include "shard.h"
#include "side.h"

#define FRESH_PATIENCE_MS	3000
#define UNKNOWN_PATIENCE_MS 15000
#define QUEUE_PATIENCE_MS	20000
#define TRIES_MAX			3
#define SWEEP_MS			250
#define LOCK_TIMEOUT		"5000"

/* So many quick ones go ahead of one that waits in another line. */
#define QUICK_AHEAD			4

enum line_kind
{
	LINE_QUICK,					/* reads few rows, or writes what nobody holds for long */
	LINE_LOCKS,					/* waits for whoever has the row, as long as LOCK_TIMEOUT */
	LINE_LISTS,					/* may have to look at many rows */
	LINE_EVENTS					/* comes in crowds */
};
#define LINES (LINE_EVENTS + 1)

struct question_line
{
	struct question *head;
	struct question **tail;
	int			queued;
	int			asked;			/* in flight */
};

struct side
{
	struct side_pool *pool;
	struct link link;
	struct question *asked;		/* in flight, NULL = free */
	PGresult   *result;
	struct deadline silence;
	bool		outdated;		/* the session is to be opened anew */
	bool		doubtful;		/* whether what it was asked will be answered */
};

struct side_pool
{
	struct shard *shard;
	const struct side_ops *ops; /* NULL: the primary's */
	void	   *owner;
	struct side *sides;
	int			nsides;			/* in use */
	int			most;			/* of the array */
	struct question_line lines[LINES];
	int			ahead;			/* quick ones sent since one of another line was */
	int			unanswered;		/* queued and asked, and somebody waits for the answer */
	bool		stopped;
	uint64_t	down_since;
	struct deadline sweep;
};

static void pump(struct side_pool *pool);
static void arm_sweep(struct side_pool *pool);

static void
answer(struct side_pool *pool, struct question *question, const PGresult *result,
	   const struct refusal *refusal)
{
	pool->unanswered -= !question->unawaited;
	if (result == NULL && pool->ops != NULL && question->may_lag)
		pool->ops->elsewhere(pool->owner, question, refusal);
	else
		question->done(question, result, refusal);
}

static void
refuse(struct side_pool *pool, struct question *question, const char *why)
{
	struct refusal refusal;

	if (question->unknown && question->writes)
		refusal_internal(&refusal, pool->shard->entry->id, "", why);
	else
		refusal_unavailable(&refusal, pool->shard->entry->id, "", why);
	answer(pool, question, NULL, &refusal);
}

/* ---- the lines ---- */

static struct question_line *
line_of(struct side_pool *pool, const struct question *question)
{
	switch (question->statement)
	{
		case SQL_REGISTER:
		case SQL_CANCEL:
		case SQL_SIGNAL:
		case SQL_SCHEDULE:
		case SQL_UNSCHEDULE:
		case SQL_SHARD_RETIRE:
			return &pool->lines[LINE_LOCKS];
		case SQL_INSTANCES:
		case SQL_SHARD_LOAD:
		case SQL_WATCH:
		case SQL_STEP_STATS:
		case SQL_BACKLOG:
			return &pool->lines[LINE_LISTS];
		case SQL_HORIZON:
		case SQL_FEED:
		case SQL_FEED_AWAY:
		case SQL_CURSOR_READ:
		case SQL_CURSOR_REGISTER:
		case SQL_CURSOR_ACK:
		case SQL_FORGET_CONSUMER:
			return &pool->lines[LINE_EVENTS];
		default:
			return &pool->lines[LINE_QUICK];
	}
}

static void
append(struct question_line *line, struct question *question)
{
	question->next = NULL;
	*line->tail = question;
	line->tail = &question->next;
	line->queued++;
}

static struct question *
take(struct question_line *line)
{
	struct question *question = line->head;

	line->head = question->next;
	if (line->head == NULL)
		line->tail = &line->head;
	line->queued--;
	return question;
}

static bool
any_waits(const struct side_pool *pool)
{
	for (int i = 0; i < LINES; i++)
	{
		if (pool->lines[i].head != NULL)
			return true;
	}
	return false;
}

/*
 * The line whose turn it is, NULL when none may be served. The others together leave
 * a connection to the quick ones, and each of them takes half of all at most; the
 * one that has waited longest is first.
 */
static struct question_line *
next_line(struct side_pool *pool)
{
	struct question_line *quick = &pool->lines[LINE_QUICK];
	struct question_line *other = NULL;
	int			half = pool->nsides > 1 && pool->ops == NULL ? pool->nsides / 2 : pool->nsides;
	int			most = pool->nsides > 1 ? pool->nsides - 1 : 1;

	for (int i = LINE_QUICK + 1; i < LINES; i++)
		most -= pool->lines[i].asked;
	for (int i = LINE_QUICK + 1; i < LINES && most > 0; i++)
	{
		struct question_line *line = &pool->lines[i];

		if (line->head != NULL && line->asked < half &&
			(other == NULL || line->head->since < other->head->since))
			other = line;
	}
	return quick->head != NULL && (other == NULL || pool->ahead < QUICK_AHEAD) ? quick : other;
}

static void
put_back(struct side_pool *pool, struct question *question)
{
	struct question_line *line = line_of(pool, question);

	question->since = loop_now();
	question->next = line->head;
	if (line->head == NULL)
		line->tail = &question->next;
	line->head = question;
	line->queued++;
	arm_sweep(pool);
}

static void
sweep_line(struct side_pool *pool, struct question_line *line, bool down)
{
	for (int count = line->queued; count > 0 && line->head != NULL; count--)
	{
		struct question *question = take(line);
		uint64_t	patience = !down ? QUEUE_PATIENCE_MS
			: question->unknown && question->writes ? UNKNOWN_PATIENCE_MS : FRESH_PATIENCE_MS;

		if (loop_now() - question->since < patience)
			append(line, question);
		else
			refuse(pool, question, down ? "no connection to the database" : "the database does not answer");
	}
}

/* Give up what has waited too long. */
static void
sweep(struct deadline *deadline)
{
	struct side_pool *pool = deadline_owner(deadline, struct side_pool, sweep);
	bool		down = !side_up(pool);

	for (int i = 0; i < LINES; i++)
		sweep_line(pool, &pool->lines[i], down);
	arm_sweep(pool);
}

static void
arm_sweep(struct side_pool *pool)
{
	if (pool->sweep.slot == 0 && any_waits(pool))
		deadline_set(&pool->sweep, loop_now() + SWEEP_MS, sweep);
}

/* ---- asking ---- */

static void
silent(struct deadline *deadline)
{
	struct side *side = deadline_owner(deadline, struct side, silence);

	link_next_host(&side->link);
	link_break(&side->link, "the database has not answered in time");
}

static void
send_question(struct side *side, struct question_line *line)
{
	struct question *question = take(line);

	side->asked = question;
	line->asked++;
	side->pool->ahead = line == &side->pool->lines[LINE_QUICK] ? side->pool->ahead + 1 : 0;
	if (!PQsendQueryParams(side->link.conn, statement_text(question->statement), question->nparams,
						   NULL, question->params, NULL, NULL, 0))
	{
		link_break(&side->link, PQerrorMessage(side->link.conn));
		return;
	}
	deadline_set(&side->silence, loop_now() + (uint64_t) config.statement_timeout_ms + 5000, silent);
	link_flush(&side->link);
}

/* Hand questions to free connections; open another when they do not suffice. */
static void
pump(struct side_pool *pool)
{
	for (int i = 0; i < pool->nsides && next_line(pool) != NULL; i++)
	{
		if (link_up(&pool->sides[i].link) && pool->sides[i].asked == NULL && !pool->sides[i].outdated)
			send_question(&pool->sides[i], next_line(pool));
	}
	for (int i = 0; i < pool->nsides && next_line(pool) != NULL && !pool->stopped; i++)
	{
		if (pool->sides[i].link.state == LINK_STOPPED)
		{
			link_start(&pool->sides[i].link);
			break;
		}
	}
}

/* The connection is free again; what it was asked is the caller's. */
static struct question *
take_asked(struct side *side)
{
	struct question *question = side->asked;

	deadline_clear(&side->silence);
	side->doubtful = false;
	side->asked = NULL;
	side->result = NULL;
	if (question != NULL)
		line_of(side->pool, question)->asked--;
	return question;
}

/* A free session that is outdated is opened anew, one too many is closed. */
static void
end_unwanted(struct side *side)
{
	bool		surplus = side - side->pool->sides >= side->pool->nsides;

	if (side->asked != NULL)
		return;
	if (surplus)
		link_stop(&side->link);
	else if (side->outdated && link_up(&side->link))
		link_break(&side->link, "renewed");
}

/* The answer of the question in flight is complete. */
static void
answered(struct side *side)
{
	struct side_pool *pool = side->pool;
	PGresult   *result = side->result;
	struct question *question = take_asked(side);
	const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	enum error_class error_class = error_classify_statement(sqlstate, message);
	bool		answers = PQresultStatus(result) == PGRES_TUPLES_OK ||
		PQresultStatus(result) == PGRES_COMMAND_OK;
	struct refusal refusal;

	if (answers)
		answer(pool, question, result, NULL);
	else if (sqlstate != NULL && question->tries < TRIES_MAX && pool->ops == NULL &&
			 (!question->once || error_class != ERROR_CONNECTION) &&
			 (error_class == ERROR_RETRY || error_class == ERROR_CONNECTION ||
			  error_class == ERROR_SCHEMA))
	{
		char		why[256];

		snprintf(why, sizeof(why), "%s", message ? message : "");
		question->tries++;
		put_back(pool, question);
		if (error_class == ERROR_SCHEMA)
			shard_schema_lost(pool->shard, why);
		else if (error_class == ERROR_CONNECTION)
			link_break(&side->link, why);
	}
	else if (question->once && error_class == ERROR_CONNECTION)
	{
		/* the session may have been ended after its commit */
		question->unknown = true;
		refuse(pool, question, message ? message : "the session was ended");
	}
	else if (question->told != NULL && sqlstate != NULL && strcmp(sqlstate, "XX000") == 0 &&
			 message != NULL && strncmp(message, question->told, strlen(question->told)) == 0)
	{
		refusal = (struct refusal) {.status = GRPC_INTERNAL, .code = 500};
		snprintf(refusal.message, sizeof(refusal.message), "%s", message);
		answer(pool, question, NULL, &refusal);
	}
	else
	{
		refusal_from_error(&refusal, pool->shard->entry->id, sqlstate, message);
		answer(pool, question, NULL, &refusal);
	}
	PQclear(result);
	end_unwanted(side);
	if (answers || error_class != ERROR_SCHEMA)
		pump(pool);
}

static void
side_ready(struct link *link)
{
	struct side *side = link->owner;

	while (link_up(link) && side->asked != NULL && !PQisBusy(link->conn))
	{
		PGresult   *result = PQgetResult(link->conn);

		if (result != NULL)
		{
			PQclear(side->result);
			side->result = result;
			continue;
		}

		/* without an SQLSTATE it is the broken connection that speaks: down() follows */
		if (side->result == NULL ||
			(PQresultStatus(side->result) == PGRES_FATAL_ERROR &&
			 PQresultErrorField(side->result, PG_DIAG_SQLSTATE) == NULL))
			break;
		answered(side);
	}
}

static bool
side_greet(struct link *link)
{
	const struct side *side = link->owner;
	char		timeout[24];
	const char *const values[] = {LOCK_TIMEOUT, timeout, position_known(side->pool->shard)};

	snprintf(timeout, sizeof(timeout), "%lld", (long long) config.statement_timeout_ms);
	return PQsendQueryParams(link->conn, statement_text(SQL_SESSION_SIDE), 3, NULL, values, NULL, NULL, 0);
}

static bool
side_greeted(struct link *link, const PGresult *result, struct wig_error *err)
{
	const struct side_pool *pool = ((struct side *) link->owner)->pool;

	if (pool->ops != NULL)
		return pool->ops->greeted(pool->owner, result, err);
	return shard_check_identity(pool->shard, result, err);
}

static void
side_link_up(struct link *link)
{
	struct side *side = link->owner;

	if (side->pool->ops == NULL)
	{
		shard_connected(side->pool->shard);
		shard_side_changed(side->pool->shard);
	}
	end_unwanted(side);
	pump(side->pool);
}

static void
side_link_down(struct link *link, const char *why)
{
	struct side *side = link->owner;
	struct side_pool *pool = side->pool;
	struct question *question;

	PQclear(side->result);
	question = take_asked(side);
	if (question != NULL && !pool->stopped)
	{
		if (pool->ops == NULL)
			shard_doubt(pool->shard);
		else
			side_doubt(pool);
	}
	if (!side_up(pool))
		pool->down_since = loop_now();
	if (!pool->stopped && !side->outdated)
	{
		log_info("side", "shard %d: a side connection was lost: %s", pool->shard->entry->id, why);
		if (pool->ops == NULL)
			shard_side_changed(pool->shard);
	}
	side->outdated = false;
	if (question != NULL)
	{
		question->unknown = true;
		if (question->once || pool->ops != NULL || ++question->tries > TRIES_MAX)
			refuse(pool, question, why);
		else
			put_back(pool, question);
	}
	pump(pool);
}

static void
side_link_failed(struct link *link, const char *sqlstate, const char *why)
{
	struct side *side = link->owner;
	const struct shard *shard = side->pool->shard;
	static struct log_gate gate;

	if (side->pool->ops != NULL)
	{
		side->pool->ops->failed(side->pool->owner, why);
		return;
	}

	/* of a server that cannot be reached at all the first lane tells */
	if (shard->reachable && side_count(side->pool) == 0 && log_gate_open(&gate))
		log_warn("side", "shard %d: cannot open a side connection: %s", shard->entry->id, why);
	shard_side_changed(side->pool->shard);
	if (error_classify(sqlstate) == ERROR_SCHEMA)
		shard_schema_lost(side->pool->shard, why);
}

static const struct link_ops link_ops = {
	.greet = side_greet,
	.greeted = side_greeted,
	.up = side_link_up,
	.ready = side_ready,
	.down = side_link_down,
	.failed = side_link_failed,
};

struct side_pool *
side_create(struct shard *shard, const struct target *target, int connections, int most,
			const struct side_ops *ops, void *owner)
{
	struct side_pool *pool = xcalloc(1, sizeof(*pool));

	pool->shard = shard;
	pool->ops = ops;
	pool->owner = owner;
	for (int i = 0; i < LINES; i++)
		pool->lines[i].tail = &pool->lines[i].head;
	pool->stopped = true;
	pool->nsides = connections;
	pool->most = most;
	pool->sides = xcalloc((size_t) most, sizeof(*pool->sides));
	for (int i = 0; i < most; i++)
	{
		pool->sides[i].pool = pool;
		link_init(&pool->sides[i].link, &link_ops, target, ops == NULL ? "side" : "replica",
				  &pool->sides[i]);
	}
	return pool;
}

void
side_free(struct side_pool *pool)
{
	deadline_clear(&pool->sweep);
	free(pool->sides);
	free(pool);
}

void
side_start(struct side_pool *pool)
{
	pool->stopped = false;
	pool->down_since = loop_now();	/* what is asked now may wait for the first connection */
	link_start(&pool->sides[0].link);
	pump(pool);
}

void
side_stop(struct side_pool *pool)
{
	pool->stopped = true;
	for (int i = 0; i < pool->most; i++)
	{
		if (link_up(&pool->sides[i].link))
			link_break(&pool->sides[i].link, "closing");
		link_stop(&pool->sides[i].link);
	}
}

void
side_hurry(struct side_pool *pool)
{
	for (int i = 0; i < pool->nsides; i++)
		link_hurry(&pool->sides[i].link);
}

void
side_resize(struct side_pool *pool, int connections)
{
	pool->nsides = connections;
	for (int i = connections; i < pool->most; i++)
		end_unwanted(&pool->sides[i]);
	pump(pool);
}

void
side_aim(struct side_pool *pool)
{
	for (int i = 0; i < pool->most; i++)
	{
		struct side *side = &pool->sides[i];

		link_aim(&side->link, pool->shard->target);
		side->outdated = link_up(&side->link);
		end_unwanted(side);
	}
}

void
side_doubt(struct side_pool *pool)
{
	for (int i = 0; i < pool->most; i++)
	{
		struct side *side = &pool->sides[i];

		side->doubtful = link_up(&side->link) && side->asked != NULL;
		side->outdated = side->outdated || (link_up(&side->link) && side->asked == NULL);
	}
	for (int i = 0; i < pool->most; i++)
		end_unwanted(&pool->sides[i]);
	if (!side_up(pool))
		pool->down_since = loop_now();
}

bool
side_ask(struct side_pool *pool, struct question *question)
{
	struct question_line *line = line_of(pool, question);

	if (line->queued >= config.side_queue_items)
		return false;
	question->unknown = false;
	question->tries = 0;
	question->since = loop_now();
	append(line, question);
	pool->unanswered += !question->unawaited;
	arm_sweep(pool);
	pump(pool);
	return true;
}

int
side_count(const struct side_pool *pool)
{
	int			n = 0;

	for (int i = 0; i < pool->nsides; i++)
		n += link_up(&pool->sides[i].link);
	return n;
}

bool
side_up(const struct side_pool *pool)
{
	for (int i = 0; i < pool->nsides; i++)
	{
		if (link_up(&pool->sides[i].link) && !pool->sides[i].doubtful)
			return true;
	}
	return pool->down_since > 0 && loop_now() - pool->down_since < FRESH_PATIENCE_MS;
}

bool
side_idle(const struct side_pool *pool)
{
	return pool->unanswered == 0;
}
