/*
 * item.h
 *	  One thing that a lane does in a batch, and what became of it.
 *
 * A handler embeds a struct item in its own state, fills it and submits it to a
 * shard (shard.h). Strings and arrays stay the handler's and must live until
 * done() runs, exactly once, after the database has committed or refused.
 */
#ifndef WIGGLE_PROXY_ITEM_H
#define WIGGLE_PROXY_ITEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "grpc_status.h"

/* In the order of wiggle.batch's parameters. */
enum item_kind
{
	ITEM_START,
	ITEM_RUN,
	ITEM_FAIL,
	ITEM_BEAT,
	ITEM_RELEASE,
	ITEM_POLL
};
#define ITEM_KINDS (ITEM_POLL + 1)

/* Mode bits of runs and fails. */
#define ITEM_FINAL			1	/* lease nothing back to the worker */
#define ITEM_COMPLETE		2	/* CompleteTask: one step, its node not checked, merged */
#define ITEM_ASKED_AGAIN	4	/* the answer to the first asking was lost */
#define ITEM_GROUPED		8	/* one of several runs of a call: the rules of batches apply */
#define ITEM_MERGE			16	/* AdvanceRun: results are merged, as of CompleteTask */

enum step_outcome
{
	STEP_UNTOUCHED,
	STEP_MERGE,					/* value is JSON text */
	STEP_PREDICATE				/* value is "true" or "false" */
};

/* What a handler adds to the event log. */
struct item_event
{
	const char *type;
	const char *payload;		/* JSON text, NULL = none */
	size_t		payload_len;
};

struct item_step
{
	const char *node_id;		/* NULL: not checked */
	enum step_outcome outcome;
	const char *value;			/* NULL when untouched */
	size_t		value_len;
	int64_t		started_at;		/* the worker's clock, Unix ms, 0 = not told */
	int64_t		finished_at;
	const struct item_event *events;
	int			nevents;
};

struct item_start
{
	const char *id;
	const char *workflow;
	const char *correlation_id; /* NULL = none */
	const char *context;		/* JSON text */
	size_t		context_len;
	bool		has_version;	/* false: the highest */
	int32_t		version;
};

struct item_run
{
	const char *task_id;
	const char *owner;
	const struct item_step *steps;
	int			nsteps;
};

struct item_fail
{
	const char *task_id;
	const char *owner;
	const char *message;
	bool		retryable;
};

struct item_beat
{
	const char *task_id;
	const char *owner;
	int64_t		extend_ms;
};

struct item_release
{
	const char *task_id;
	const char *owner;
};

struct item_version
{
	const char *workflow;
	int32_t		version;
};

struct item_poll
{
	const char *owner;			/* worker id, '#' and a nonce of this claim */
	int32_t		max;
	int64_t		lease_ms;		/* 0: the shard's default */
	const char *const *queues;	/* none: every queue */
	int			nqueues;
	const struct item_version *versions;	/* none: every version */
	int			nversions;
	bool		narrow;			/* takes ready tasks of this proxy's share alone (fleet.h) */
};

struct batch_row;

/* What became of an item. Pointers are valid during done() only. */
struct outcome
{
	enum grpc_status status;	/* GRPC_OK: it is applied and committed */
	int			code;			/* 0, or 400, 404, 409, 500 as the engine has them */
	bool		storage;		/* not the engine's answer: the storage failed */
	const char *message;		/* for a person, NULL when applied */
	const char *instance_status;	/* "" when there is none */
	int64_t		expires_at;		/* Unix ms, 0 = none */
	const char *next_task;		/* "" when there is none */
	const struct batch_row *tasks;	/* of a poll: what was claimed */
	int			ntasks;
	bool		lost;			/* of a poll: not known; what it claimed is given back */
};

struct item
{
	struct item *next;			/* the lane's */
	enum item_kind kind;
	int32_t		mode;
	bool		unknown;		/* the lane's: sent, and the answer was lost */
	uint64_t	since;			/* the lane's: loop time of submission */
	uint32_t	hash;			/* the shard's: which lane */
	size_t		bytes;			/* about what it adds to a batch; item_measure */
	void		(*done) (struct item *item, const struct outcome *outcome);
	union
	{
		struct item_start start;
		struct item_run run;
		struct item_fail fail;
		struct item_beat beat;
		struct item_release release;
		struct item_poll poll;
	};
};

#endif							/* WIGGLE_PROXY_ITEM_H */
