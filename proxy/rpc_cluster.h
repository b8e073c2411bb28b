/*
 * rpc_cluster.h
 *	  Handlers of calls about the proxies themselves.
 */
#ifndef WIGGLE_PROXY_RPC_CLUSTER_H
#define WIGGLE_PROXY_RPC_CLUSTER_H

#include "call.h"

/* HealthCheck: answered without any database. */
extern void rpc_health_check(struct call *call);

extern void rpc_get_cluster(struct call *call);

/* SearchInstances: refused, since there is no search. */
extern void rpc_search_instances(struct call *call);

#endif							/* WIGGLE_PROXY_RPC_CLUSTER_H */
