/*
 * gather.h
 *	  One question to several shards at once; done when all have answered.
 *
 * Embedded in the asker's state. Use: gather_begin, then gather_question and
 * gather_ask for each shard that is concerned, then gather_end. A shard that does not
 * count (shard_counts) is not asked after all. done() runs
 * once, when the last answer is in and gather_end has been called; it may begin
 * the same gather anew or free its owner. Parameters are copied.
 */
#ifndef WIGGLE_PROXY_GATHER_H
#define WIGGLE_PROXY_GATHER_H

#include <stdbool.h>
#include <stdint.h>
#include <libpq-fe.h>

#include "call.h"
#include "loop.h"
#include "refusal.h"
#include "side.h"

struct gather;
struct gather_question;

struct gather_part
{
	struct gather_question *asking; /* NULL unless the answer is to come */
	bool		asked;
	PGresult   *result;			/* a copy; NULL: not asked, or refused */
	struct refusal *refusal;	/* when it was asked and refused, else NULL */
};

struct gather
{
	struct gather_part *parts;	/* by slot, for as many as there may ever be */
	int			waiting;		/* answers to come, and one until gather_end */
	bool		impatient;		/* one answer is enough */
	struct deadline patience;
	void		(*done) (struct gather *gather);
};

/* Forget what was gathered before. */
extern void gather_begin(struct gather *gather, void (*done) (struct gather *gather));

/* A question to this shard: fill statement, params, then gather_ask. */
extern struct question *gather_question(struct gather *gather, int slot);
extern void gather_ask(struct gather *gather, int slot);
extern void gather_end(struct gather *gather);

/*
 * Before gather_end: do not wait for a shard that hangs. Once ms have passed, done()
 * runs as soon as any has answered; those that have not count as refused.
 */
extern void gather_hurry(struct gather *gather, int64_t ms);

/*
 * The same for a call whose client takes part, after the few seconds that a list may
 * take; nothing for others, and for NULL.
 */
extern void gather_hurry_part(struct gather *gather, const struct call *call);

/*
 * The same statement and parameters to all shards, from begin to end, hurried for this
 * call; may_lag: replicas may answer, where there are any.
 */
extern void gather_all(struct gather *gather, enum statement statement, const char *const *params,
					   int nparams, bool may_lag, const struct call *call,
					   void (*done) (struct gather *gather));

/* The first refusal in order of slots, NULL when nobody refused. */
extern const struct refusal *gather_refusal(const struct gather *gather);

/*
 * May the call be answered by what there is? When every shard asked has answered, or some
 * have and the client takes part or `enough` is found; it is told which are missing.
 */
extern bool gather_suffices(const struct gather *gather, struct call *call, bool enough);

/* How many shards have answered. */
extern int	gather_answers(const struct gather *gather);

/* What is still asked is forgotten: done() does not run any more. */
extern void gather_free(struct gather *gather);

#endif							/* WIGGLE_PROXY_GATHER_H */
