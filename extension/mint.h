/*
 * mint.h
 *	  New ids and new instances.
 */
#ifndef WIGGLE_MINT_H
#define WIGGLE_MINT_H

#include "wiggle.h"

#include "work.h"

/* Mint an instance id on a shard (WIG_NO_SHARD: a bare one); palloc'd. */
extern char *wig_mint_id(int32 shard);

/* The shard id stored in this database, WIG_NO_SHARD when it was not claimed. */
extern int32 wig_shard_id(void);

/*
 * Write a new RUNNING instance with its root context and its first event; the
 * caller has filled id, graph, correlation_id, parent_token_id and depth, and
 * drives it to its start node afterwards. False when there is one with that id.
 */
extern bool wig_instance_new(WigWork *work, WigInstance *inst, const char *context, size_t len);

#endif							/* WIGGLE_MINT_H */
