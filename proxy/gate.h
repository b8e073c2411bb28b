/*
 * gate.h
 *	  From a complete request to its handler: may the caller do this?
 *
 * WIGGLE_GRPC_AUTH says whether anybody asks: off lets every call pass at no cost, log
 * lets it pass too and logs once what enforce would refuse. A caller who may do an action
 * on every scope is let through without a look at the request.
 */
#ifndef WIGGLE_PROXY_GATE_H
#define WIGGLE_PROXY_GATE_H

#include "call.h"

/* The method's handler owns the call, or the call was refused, now or later. */
extern void gate_start(struct call *call, const struct method *method);

#endif							/* WIGGLE_PROXY_GATE_H */
