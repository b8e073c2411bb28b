/*
 * rpc_task.h
 *	  Handlers of calls that workers make.
 */
#ifndef WIGGLE_PROXY_RPC_TASK_H
#define WIGGLE_PROXY_RPC_TASK_H

#include "call.h"

extern void rpc_poll_tasks(struct call *call);
extern void rpc_complete_task(struct call *call);
extern void rpc_fail_task(struct call *call);
extern void rpc_heartbeat_task(struct call *call);
extern void rpc_report_steps(struct call *call);	/* rpc_report.c */
extern void rpc_advance_run(struct call *call);
extern void rpc_advance_many(struct call *call);

#endif							/* WIGGLE_PROXY_RPC_TASK_H */
