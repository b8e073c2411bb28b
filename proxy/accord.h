/*
 * accord.h
 *	  Home's word on a topology document as a whole.
 *
 * Home takes over the states of all shards and the generations, or nothing: in one
 * statement, once all has been judged that this process can judge itself, by home's clock.
 */
#ifndef WIGGLE_PROXY_ACCORD_H
#define WIGGLE_PROXY_ACCORD_H

#include <stdbool.h>

#include "buf.h"
#include "error.h"
#include "loop.h"
#include "shard.h"
#include "topology.h"

struct accord_ops
{
	/* The document, judged anew each time before home is asked; NULL with *err: it is refused. */
	const struct topology *(*judged) (struct wig_error *err);

	/* Home has taken it over (NULL), or it is refused and nothing has changed on home. */
	void		(*heard) (const char *refusal);

	/* Home does not answer; it is asked again, and again, until it does. */
	void		(*waits) (const char *why);
};

/* Zeroed at first. */
struct accord
{
	const struct accord_ops *ops;
	bool		withdraws;
	bool		asked;			/* the question is on its way */
	struct question question;
	struct buf	entries;
	struct buf	generations;
	struct deadline retry;
};

/*
 * Ask, unless the question is on its way. withdraws: the last generation that home was told of
 * is taken back. Ends in heard(), perhaps before this returns.
 */
extern void accord_ask(struct accord *accord, const struct accord_ops *ops, bool withdraws);

/* Do not ask again. False when the question is on its way: heard() or waits() still runs. */
extern bool accord_cancel(struct accord *accord);

#endif							/* WIGGLE_PROXY_ACCORD_H */
