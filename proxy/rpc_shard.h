/*
 * rpc_shard.h
 *	  ListShards, RetireShard: pg_wiggle's own service.
 */
#ifndef WIGGLE_PROXY_RPC_SHARD_H
#define WIGGLE_PROXY_RPC_SHARD_H

#include "call.h"

extern void rpc_list_shards(struct call *call);
extern void rpc_retire_shard(struct call *call);

#endif							/* WIGGLE_PROXY_RPC_SHARD_H */
