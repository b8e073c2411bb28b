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

/*
 * Listen on the address. add() gets the daemon's end of each connection, which is
 * then its own, and the subject of the client's certificate, or NULL: the daemon's
 * connection may outlive the client's, and has to remember whose it is by itself.
 * limit is of connections. *port is the port it listens on.
 */
extern bool http_tls_open(const struct sockaddr *addr, int limit, void (*add) (int fd, const char *peer),
						  int *port, struct wig_error *err);

/* No new connections; those there are end with the daemon. */
extern void http_tls_close(void);

#endif							/* WIGGLE_PROXY_HTTP_TLS_H */
