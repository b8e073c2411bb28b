/*
 * rpc_schedule.h
 *	  Handlers of calls about schedules, which live on home.
 */
#ifndef WIGGLE_PROXY_RPC_SCHEDULE_H
#define WIGGLE_PROXY_RPC_SCHEDULE_H

#include "call.h"

extern void rpc_create_schedule(struct call *call);
extern void rpc_list_schedules(struct call *call);
extern void rpc_delete_schedule(struct call *call);

#endif							/* WIGGLE_PROXY_RPC_SCHEDULE_H */
