/*
 * durable.h
 *	  How long a commit waits: for the log's flush, for synchronous standbys.
 */
#ifndef WIGGLE_DURABLE_H
#define WIGGLE_DURABLE_H

#include "wiggle.h"

/*
 * In the clock worker: commit without waiting, which is all right for what is found
 * and done again after a crash or a failover.
 */
extern void wig_commit_lazily(void);

/*
 * Others act on what this transaction writes: its commit waits as an application's
 * does by default, in the clock worker too.
 */
extern void wig_commit_durably(void);

/*
 * This transaction tells a caller that an earlier one has done what it asks for. The
 * earlier one may be visible and yet not be on the synchronous standby, when its wait
 * was cut short; one that writes nothing would not wait at all. This makes it wait.
 */
extern void wig_commit_confirms(void);

#endif							/* WIGGLE_DURABLE_H */
