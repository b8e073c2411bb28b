/*
 * claim.h
 *	  Claims: ready tokens become leased ones.
 */
#ifndef WIGGLE_CLAIM_H
#define WIGGLE_CLAIM_H

#include "wiggle.h"

#include "errors.h"
#include "work.h"

typedef struct WigVersion
{
	const char *workflow;
	int32		version;
} WigVersion;

/* Of which tasks a poll may take those that are ready: by queue, a range of buckets. */
typedef struct WigShare
{
	const char *queue;			/* NULL: every queue that is not listed, for a poll that names none */
	int			start;
	int			end;
} WigShare;

typedef struct WigPoll
{
	const char *owner;			/* "<worker id>#<nonce>" */
	int			max;			/* <= 0: 1 */
	int64		lease_ms;		/* <= 0: wiggle.default_lease */
	const char **queues;		/* none: every queue */
	int			nqueues;
	const WigVersion *versions; /* none: every version */
	int			nversions;
	const WigShare *shares;		/* queues that are not listed: every bucket */
	int			nshares;
} WigPoll;

/* Called for each task that was claimed, in claim order of its poll. */
typedef void (*WigClaimedFn) (void *arg, int poll, const WigInstance *inst,
							  const WigToken *token, text *context, const char *owner,
							  TimestampTz expires_at);

/* Is the poll acceptable? 400 otherwise. */
extern bool wig_poll_check(const WigPoll *poll, WigRefusal *refusal);

/*
 * Serve the polls in order (but those marked in skip[], which may be NULL), each
 * with up to max tasks, oldest instance first over all its queues. Never waits:
 * tokens that another claim is taking are left to it. Tokens that this unit minted are leased
 * without becoming ready, whatever their bucket: nobody else knows of them.
 */
extern void wig_claim(WigWork *work, const WigPoll *polls, const bool *skip, int npolls,
					  WigClaimedFn claimed, void *arg);

/* What a worker is told of a task besides ids and contexts. A compensator's
 * task goes under "<activity>#compensate" and is run step by step. */
typedef struct WigActivation
{
	const struct wig_node *node;
	const char *step_name;		/* NULL allowed */
	const char *activity;
	const char *mode;			/* never DEFAULT */
} WigActivation;

extern WigActivation wig_activation(const WigInstance *inst, const WigToken *token);

/* The arm names of a combine as a text[] datum; 0 for any other node. */
extern Datum wig_arm_names(const struct wig_node *node);

/* Add "#<nonce>" with a fresh nonce to a worker id; palloc'd. */
extern char *wig_make_owner(const char *worker_id);

#endif							/* WIGGLE_CLAIM_H */
