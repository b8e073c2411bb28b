/*
 * rpc_cluster.h
 *	  Handlers of calls about the process itself.
 */
#ifndef WIGGLE_PROXY_RPC_CLUSTER_H
#define WIGGLE_PROXY_RPC_CLUSTER_H

#include "call.h"

/* HealthCheck: answered without any database. */
extern void rpc_health_check(struct call *call);

#endif							/* WIGGLE_PROXY_RPC_CLUSTER_H */
