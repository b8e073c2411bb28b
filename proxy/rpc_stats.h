/*
 * rpc_stats.h
 *	  Handlers of calls that look at the work of all shards.
 */
#ifndef WIGGLE_PROXY_RPC_STATS_H
#define WIGGLE_PROXY_RPC_STATS_H

#include "call.h"

extern void rpc_get_step_stats(struct call *call);
extern void rpc_get_backlog_coverage(struct call *call);

#endif							/* WIGGLE_PROXY_RPC_STATS_H */
