/*
 * rpc_definition.h
 *	  Handlers of calls about workflow definitions.
 */
#ifndef WIGGLE_PROXY_RPC_DEFINITION_H
#define WIGGLE_PROXY_RPC_DEFINITION_H

#include "call.h"

extern void rpc_list_workflows(struct call *call);
extern void rpc_register_workflow(struct call *call);
extern void rpc_get_workflow(struct call *call);

#endif							/* WIGGLE_PROXY_RPC_DEFINITION_H */
