/*
 * http_tls.h
 *	  TLS in front of the second port.
 *
 * The daemon of the second port sees plain connections: one end of a pair of
 * sockets for each client whose handshake is over. Its own TLS is another library's
 * and cannot change its certificate.
 */
#ifndef WIGGLE_PROXY_HTTP_TLS_H
#define WIGGLE_PROXY_HTTP_TLS_H

#include <stdbool.h>
#include <sys/socket.h>

#include "error.h"
#include "tls.h"

/*
 * Listen on the address. add() gets the daemon's end of each connection, which is
 * then its own. limit is of connections. *port is the port it listens on.
 */
extern bool http_tls_open(const struct sockaddr *addr, int limit, void (*add) (int fd), int *port,
						  struct wig_error *err);

/* The session of the client behind the daemon's socket; NULL when it is gone. */
extern const struct tls *http_tls_session(int fd);

/* No new connections; those there are end with the daemon. */
extern void http_tls_close(void);

#endif							/* WIGGLE_PROXY_HTTP_TLS_H */
