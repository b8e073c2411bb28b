/*
 * side.h
 *	  A few connections of a shard for what is not batched: definitions, lists, cancel.
 *
 * Each question is one statement in its own transaction. Most may be asked twice
 * with the same effect, so a question whose connection was lost is asked again,
 * for a while; one that may not says `once`.
 */
#ifndef WIGGLE_PROXY_SIDE_H
#define WIGGLE_PROXY_SIDE_H

#include <stdbool.h>
#include <stdint.h>
#include <libpq-fe.h>

#include "refusal.h"
#include "statement.h"

struct shard;
struct side_pool;
struct target;

#define QUESTION_MAX_PARAMS 6

/* Embedded in the asker's state; params stay the asker's until done(). */
struct question
{
	struct question *next;		/* the pool's */
	enum statement statement;
	int			nparams;
	const char *params[QUESTION_MAX_PARAMS];	/* text, NULL = NULL */
	bool		writes;			/* when its fate is unknown: INTERNAL, else UNAVAILABLE */
	bool		once;			/* not to be asked again when its fate is unknown */
	bool		unawaited;		/* nobody waits for the answer: the process may end without it */
	bool		may_lag;		/* a replica may answer it */
	int			tried_replicas; /* replicas.c's */
	const char *told;			/* an XX000 that begins so is the engine's own text; NULL = none */
	bool		unknown;		/* the pool's: sent, and the answer was lost */
	unsigned	tries;			/* the pool's */
	uint64_t	since;			/* the pool's */

	/* Exactly one of result (rows in text format, the pool's) and refusal is given. */
	void		(*done) (struct question *question, const PGresult *result,
						 const struct refusal *refusal);
};

/* How a pool that is not the primary's differs. */
struct side_ops
{
	/* Is a new session's row (enum identity_column) the expected one? False with *err. */
	bool		(*greeted) (void *owner, const PGresult *result, struct wig_error *err);

	/* A question that may lag was refused or got no answer: done() is this one's to call. */
	void		(*elsewhere) (void *owner, struct question *question, const struct refusal *refusal);

	/* An attempt to connect failed. */
	void		(*failed) (void *owner, const char *why);
};

/* connections: at first; most: what side_resize may ever ask for. ops NULL: the primary's. */
extern struct side_pool *side_create(struct shard *shard, const struct target *target, int connections, int most,
									 const struct side_ops *ops, void *owner);

/* After side_stop, once it is idle. */
extern void side_free(struct side_pool *pool);
extern void side_start(struct side_pool *pool);
extern void side_stop(struct side_pool *pool);

/* The server answers others: connect now rather than later. */
extern void side_hurry(struct side_pool *pool);

/* From now on so many connections; those that are too many end when their question is answered. */
extern void side_resize(struct side_pool *pool, int connections);

/* Connect to the shard's present target from now on; each session is renewed as soon as it is free. */
extern void side_aim(struct side_pool *pool);

/*
 * Another session of the server was lost while it owed an answer: those that are idle are opened
 * anew, and those that owe one, too, count as lost until they have given it.
 */
extern void side_doubt(struct side_pool *pool);

/* False when the queue is full. */
extern bool side_ask(struct side_pool *pool, struct question *question);

/* How many connections are up? */
extern int	side_count(const struct side_pool *pool);

/* Is one of the connections up, or lost so recently that what is asked may wait for it? */
extern bool side_up(const struct side_pool *pool);

/* Nothing asked is unanswered. */
extern bool side_idle(const struct side_pool *pool);

#endif							/* WIGGLE_PROXY_SIDE_H */
