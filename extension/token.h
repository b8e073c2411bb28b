/*
 * token.h
 *	  Rows of wf_token: where an instance stands, and stood.
 *
 * A token is written twice in its life: minted and settled; claims and
 * heartbeats never touch it (wf_ready and wf_lease do). Everything here needs
 * the instance's lock.
 */
#ifndef WIGGLE_TOKEN_H
#define WIGGLE_TOKEN_H

#include "wiggle.h"

#include "instance.h"

typedef struct WigToken
{
	int64		instance;
	int32		n;
	int			node;			/* index into the graph */
	int32		scope;
	int32		attempt;		/* failures so far */
	char		letter;			/* transition.h */
	TimestampTz created_at;
	TimestampTz available_at;
	TimestampTz started_at;		/* 0 = not */
	TimestampTz finished_at;
	uint64		nonce;			/* of the lease that settled or failed it last, 0 = none */
	char	   *loops;			/* loops.h, NULL = none */
	char	   *staged;			/* JSON object laid over the view at dispatch, or NULL */
	char	   *input;			/* step_io.h; written, not read back */
	char	   *output;
	int32		comp_seq;		/* of the comp-log entry that a compensator undoes, 0 = none */

	/* A fork's token keeps its group, for the join. */
	int32		first_scope;	/* of `width` consecutive scopes, 0 = no fork */
	int32		width;
	int32		missing;		/* siblings that have not arrived yet */
} WigToken;

/* Read token n of a locked instance and learn inst->last_n; false: no such token. */
extern bool wig_token_read(WigStore *store, WigInstance *inst, int32 n, WigToken *token);

/* Read a token without the lock, for an activation; false, with a WARNING, also
 * when it stands at a node that a replaced graph lacks. */
extern bool wig_token_peek(WigStore *store, const WigInstance *inst, int32 n, WigToken *token);

/*
 * Mint the next token of the instance in this status. The caller has filled
 * node, scope, loops, the times (created_at and available_at at least) and, for
 * a token that is settled at once, nonce; the rest is filled in here.
 */
extern void wig_token_mint(WigStore *store, WigInstance *inst, WigToken *token,
						   WigTokenStatus status);

/*
 * The one function that changes a token's status. token->attempt, available_at,
 * started_at, finished_at and nonce are written as the caller has set them;
 * last_error is written when it is not NULL.
 */
extern void wig_token_set_status(WigStore *store, const WigInstance *inst, WigToken *token,
								 WigTokenStatus from, WigTokenStatus to,
								 const char *last_error);

/* One more sibling has arrived: token->missing goes down, in the row as well. */
extern void wig_token_arrived(WigStore *store, const WigInstance *inst, WigToken *token);

/* Walk all tokens of an instance that are live; end with false. The node of one
 * that its graph lacks is -1. */
extern void wig_token_walk_live(WigStore *store, const WigInstance *inst);
extern bool wig_token_next_live(WigStore *store, const WigInstance *inst, WigToken *token);

#endif							/* WIGGLE_TOKEN_H */
