/*
 * subflow.h
 *	  Sub-workflows: driving children, telling parents.
 */
#ifndef WIGGLE_SUBFLOW_H
#define WIGGLE_SUBFLOW_H

#include "wiggle.h"

#include "work.h"

/*
 * Run the errands of the move that just ended, and the errands that these make,
 * until there are none. Lock order is child before parent: a parent that is
 * locked by somebody else is told by the clock worker instead, so that two
 * batches never wait for each other in a circle. A child that ends at once moves
 * its parent: *inst is left with the status that this gave it.
 */
extern void wig_run_errands(WigWork *work, WigInstance *inst);

/* Tell a locked parent's waiting token, if its child has ended. */
extern void wig_tell_parent(WigWork *work, WigInstance *parent, WigToken *token);

/* Cancel a locked instance whose parent's token does not wait for it any more. */
extern void wig_cancel_orphan(WigWork *work, WigInstance *inst);

#endif							/* WIGGLE_SUBFLOW_H */
