/*
 * transition.h
 *	  The states of instances and tokens, and every legal change between them.
 *
 * Wiggle's words are the truth shown outside; wf_token stores one letter. READY
 * and RUNNING share the letter of a live token: the row of wf_ready or wf_lease
 * says which, so that a claim need not touch the token.
 */
#ifndef WIGGLE_TRANSITION_H
#define WIGGLE_TRANSITION_H

#include <stdbool.h>

typedef enum WigTokenStatus
{
	WIG_TOKEN_NONE,				/* before it is minted */
	WIG_TOKEN_READY,
	WIG_TOKEN_RUNNING,
	WIG_TOKEN_WAITING,			/* for time */
	WIG_TOKEN_AWAITING,			/* for a signal or a sub-workflow */
	WIG_TOKEN_JOINED,			/* for its siblings, at a join */
	WIG_TOKEN_DONE,
	WIG_TOKEN_FAILED,
	WIG_TOKEN_CANCELLED,
	WIG_NTOKEN_STATUSES
} WigTokenStatus;

typedef enum WigInstanceStatus
{
	WIG_INSTANCE_NONE,			/* before it is started */
	WIG_INSTANCE_RUNNING,
	WIG_INSTANCE_COMPLETED,
	WIG_INSTANCE_FAILED,
	WIG_INSTANCE_CANCELLED,
	WIG_INSTANCE_COMPENSATING,
	WIG_INSTANCE_COMPENSATED,
	WIG_INSTANCE_COMPENSATION_FAILED,
	WIG_NINSTANCE_STATUSES
} WigInstanceStatus;

typedef struct WigTransition
{
	bool		of_token;		/* else of an instance */
	int			from;
	int			to;
	const char *rule;			/* why it happens, in a word or two */
} WigTransition;

extern const WigTransition wig_transitions[];
extern const int wig_ntransitions;

extern const char *wig_token_status_name(WigTokenStatus status);
extern const char *wig_instance_status_name(WigInstanceStatus status);

/* By Wiggle's name; false when it names no status. */
extern bool wig_instance_status_from_name(const char *name, WigInstanceStatus *status);

/* Is this change in the table? */
extern bool wig_token_may(WigTokenStatus from, WigTokenStatus to);
extern bool wig_instance_may(WigInstanceStatus from, WigInstanceStatus to);

/* An instance in one of these states changes no more. */
extern bool wig_instance_terminal(WigInstanceStatus status);

/* Letters of wf_token.status: R (ready or leased), W, A and J are live; D, F, C. */
extern char wig_token_status_letter(WigTokenStatus status);
extern bool wig_token_letter_live(char letter);

/* The status behind a letter; READY for R, which only a lease tells from RUNNING. */
extern WigTokenStatus wig_token_status_of_letter(char letter);

#endif							/* WIGGLE_TRANSITION_H */
