/*
 * listener.h
 *	  The port for clients.
 */
#ifndef WIGGLE_PROXY_LISTENER_H
#define WIGGLE_PROXY_LISTENER_H

#include <stdbool.h>

#include "error.h"

/* Registers the drain hook that closes the port; call it before conn_setup, so that
 * the port closes first. */
extern void listener_setup(void);

/* Listen on WIGGLE_BIND and WIGGLE_PORT. */
extern bool listener_open(struct wig_error *err);

/* The port it listens on, also when WIGGLE_PORT is 0. */
extern int	listener_port(void);

#endif							/* WIGGLE_PROXY_LISTENER_H */
