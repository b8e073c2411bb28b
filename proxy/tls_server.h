/*
 * tls_server.h
 *	  TLS of the ports: the certificate in use, and its successor.
 *
 * Both ports have the same certificate. The files are looked at every two seconds
 * and at SIGHUP; what they hold is taken for new connections, as a whole or, with
 * an error in the log, not at all.
 */
#ifndef WIGGLE_PROXY_TLS_SERVER_H
#define WIGGLE_PROXY_TLS_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "tls.h"

enum tls_port
{
	TLS_PORT_CALLS,				/* h2 by ALPN, nothing else */
	TLS_PORT_SECOND				/* http/1.1, also without ALPN */
};

/* Read the files of the settings. False with *err when they are refused. */
extern bool tls_server_open(struct wig_error *err);

/* Is there a certificate, so that the ports speak TLS? */
extern bool tls_server_on(void);

/* "plaintext", "TLS", ..., for the log. */
extern const char *tls_server_mode(void);

/* Must a call come with a client's certificate? The port for clients does not get
 * as far without. */
extern bool tls_server_needs_peer(void);

/* A new connection's session. */
extern struct tls *tls_server_accept(enum tls_port port);

/* A handshake failed: counted. */
extern void tls_server_failed(void);

/* Read the files again. */
extern void tls_server_reload(void);

/* Do a connection's first bytes begin TLS? */
extern bool tls_server_hello(const uint8_t *data, size_t len);

#endif							/* WIGGLE_PROXY_TLS_SERVER_H */
