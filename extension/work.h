/*
 * work.h
 *	  A unit of work: one call's store, clock and newly ready tokens.
 *
 * Tokens minted at a step are ready. A unit that also serves polls keeps them
 * aside (deferred) until its claims are done: one that a poll takes is then
 * written once, already leased, and never becomes a row of wf_ready.
 */
#ifndef WIGGLE_WORK_H
#define WIGGLE_WORK_H

#include "wiggle.h"

#include "nodes/pg_list.h"

#include "instance.h"
#include "mark.h"
#include "token.h"

typedef struct WigPending
{
	bool		settled;		/* leased or cancelled: not to be made ready */
	WigKey		key;
	const char *queue;
	WigInstance inst;
	WigToken	token;
} WigPending;

/*
 * What a move leaves to be done for another instance: a child to be driven from
 * its start, or a parent to be told that its child has ended. Done in a loop
 * once the move is complete (subflow.c), so that depth costs no stack.
 */
typedef struct WigErrand
{
	bool		drive_child;	/* else tell the parent */
	WigInstance inst;			/* the child */
	int			advances;		/* the move's, at this point: siblings do not add up */
	int			allowance;
} WigErrand;

typedef struct WigWork
{
	WigStore   *store;
	TimestampTz now;			/* refreshed by wig_work_tick */
	bool		deferring;
	WigPending *pending;
	int			npending;
	int			maxpending;
	List	   *errands;		/* of WigErrand */
	int			advances;		/* nodes that this move went through */
	int			allowance;		/* and may go through */
} WigWork;

extern WigWork *wig_work_begin(bool deferring);

/* Make the pending tokens that nobody took ready, and close the store. */
extern void wig_work_end(WigWork *work);

/* Take the time anew, after whatever may have waited; and make what was written
 * visible to what follows. */
extern void wig_work_tick(WigWork *work);

/* A live token at a step is to be claimed by somebody. */
extern void wig_work_offer(WigWork *work, const WigInstance *inst, const WigToken *token);

/* Take back an offer of this unit; false when the token was not pending. */
extern bool wig_work_withdraw(WigWork *work, int64 instance, int32 n);

extern void wig_work_add_errand(WigWork *work, bool drive_child, const WigInstance *inst);

/*
 * Run the action in a subtransaction. False when it raised an error: everything
 * it did is undone, the error is in the server's log, and the caller goes on.
 */
extern bool wig_work_attempt(void (*action) (void *arg), void *arg);

/* The queue under which a node's tokens wait: "" when it names none. */
extern const char *wig_node_queue(const struct wig_node *node);

/* "tok.s0.…-3" of a token; palloc'd. */
extern char *wig_task_id(const WigInstance *inst, int32 n);

/* The bucket of that id. */
extern int	wig_task_bucket(const WigInstance *inst, int32 n);

#endif							/* WIGGLE_WORK_H */
