/*
 * rpc_event.h
 *	  Handlers of calls about the event log.
 */
#ifndef WIGGLE_PROXY_RPC_EVENT_H
#define WIGGLE_PROXY_RPC_EVENT_H

#include "call.h"
#include "error.h"

/* A shard that hangs keeps its entries and places for later, like one that is down. */
#define EVENT_PATIENCE_MS	2000

extern void rpc_poll_events(struct call *call);
extern void rpc_ack_events(struct call *call);	/* rpc_event_ack.c, with the next */
extern void rpc_forget_consumer(struct call *call);

/* Registers the drain hook: once, before any call. */
extern void rpc_event_start(void);

/* Is this the name of a consumer? False with *err. */
extern bool rpc_event_consumer(const char *consumer, struct wig_error *err);

#endif							/* WIGGLE_PROXY_RPC_EVENT_H */
