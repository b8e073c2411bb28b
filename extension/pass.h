/*
 * pass.h
 *	  The duties of a clock worker, as a const table of bounded passes.
 */
#ifndef WIGGLE_PASS_H
#define WIGGLE_PASS_H

#include "wiggle.h"

#include "shmem.h"

/* Private state of one duty of the running worker. */
typedef struct WigDuty
{
	TimestampTz next;			/* when it is due next */
	TimestampTz from;			/* timers: nothing live is due before this */
	bool		careful;		/* something failed lately: one subtransaction an item */
	int			stuck;			/* passes in a row that could move nothing */
} WigDuty;

typedef struct WigPass
{
	const char *name;			/* shown in pg_stat_activity */
	WigDeadline deadline;		/* which published deadline concerns it */

	/* Move up to wiggle.clock_batch items in the running transaction and set
	 * duty->next; true when the batch was filled, so that it is run again at once. */
	bool		(*run) (WigDuty *duty, TimestampTz now);
} WigPass;

#define WIG_NPASSES 5
extern const WigPass wig_passes[WIG_NPASSES];

#endif							/* WIGGLE_PASS_H */
