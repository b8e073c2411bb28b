/*
 * http.h
 *	  The second port: /healthz /readyz /metrics /api/cluster.
 *
 * libmicrohttpd runs on the event loop (no thread), so its answers need no locks
 * and /healthz also tells that the loop turns.
 */
#ifndef WIGGLE_PROXY_HTTP_H
#define WIGGLE_PROXY_HTTP_H

#include <stdbool.h>

#include "error.h"

/* Listen; false with *err when the port cannot be had. Nothing when it is off. */
extern bool http_open(struct wig_error *err);

/* Let go of the port; part of loop shutdown, after everything else. */
extern void http_close(void);

#endif							/* WIGGLE_PROXY_HTTP_H */
