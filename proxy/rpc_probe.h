/*
 * rpc_probe.h
 *	  grpc.health.v1.Health: what load balancers and Kubernetes ask.
 */
#ifndef WIGGLE_PROXY_RPC_PROBE_H
#define WIGGLE_PROXY_RPC_PROBE_H

#include "call.h"

extern void rpc_probe_check(struct call *call);
extern void rpc_probe_watch(struct call *call);

/* Called once by work_start, before the first call. */
extern void rpc_probe_open(void);

#endif							/* WIGGLE_PROXY_RPC_PROBE_H */
