/*
 * rpc_instance.h
 *	  Handlers of calls about instances.
 */
#ifndef WIGGLE_PROXY_RPC_INSTANCE_H
#define WIGGLE_PROXY_RPC_INSTANCE_H

#include "call.h"

extern void rpc_start_instance(struct call *call);
extern void rpc_get_instance(struct call *call);
extern void rpc_cancel_instance(struct call *call);
extern void rpc_signal_instance(struct call *call);
extern void rpc_list_instances(struct call *call);	/* rpc_list.c */

#endif							/* WIGGLE_PROXY_RPC_INSTANCE_H */
