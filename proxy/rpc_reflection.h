/*
 * rpc_reflection.h
 *	  grpc.reflection.v1.ServerReflection, and v1alpha, which is the same.
 */
#ifndef WIGGLE_PROXY_RPC_REFLECTION_H
#define WIGGLE_PROXY_RPC_REFLECTION_H

#include "call.h"

extern void rpc_reflection(struct call *call);

#endif							/* WIGGLE_PROXY_RPC_REFLECTION_H */
