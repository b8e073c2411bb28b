/*
 * loops.h
 *	  Iteration counts of loop guards, as a token carries them.
 *
 * The text is a JSON object {"<node id>": count, …} or NULL when no guard was
 * counted yet. Counts live with the token because each arm of a fork counts
 * its own (Wiggle keeps them in the token's payload).
 */
#ifndef WIGGLE_LOOPS_H
#define WIGGLE_LOOPS_H

#include "wiggle.h"

/* The count of a node, 0 when it has none. */
extern int32 wig_loops_get(const char *loops, const char *node_id);

/* The text with the node's count replaced; palloc'd. */
extern char *wig_loops_set(const char *loops, const char *node_id, int32 count);

#endif							/* WIGGLE_LOOPS_H */
