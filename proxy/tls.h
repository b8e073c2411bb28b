/*
 * tls.h
 *	  One TLS session as bytes in, bytes out; both sides.
 *
 * No socket is touched here. What came from the peer is fed, then read until
 * TLS_WANT; what is to go to the peer gathers in tls_sealed, also while reading
 * (the handshake, alerts), and the owner of the socket sends it.
 */
#ifndef WIGGLE_PROXY_TLS_H
#define WIGGLE_PROXY_TLS_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"

struct tls;

/* Takes its own reference of the context: a reload may replace it at any time. */
extern struct tls *tls_open(SSL_CTX *context, bool server);
extern void tls_free(struct tls *tls);

/* For what belongs to this session alone: names to verify, the port's number. */
extern SSL *tls_ssl(struct tls *tls);

enum tls_event
{
	TLS_WANT,					/* all that was fed is used up */
	TLS_READY,					/* the handshake is over; told once */
	TLS_DATA,					/* *n bytes are in out */
	TLS_EOF,					/* the peer said goodbye */
	TLS_FAILED					/* tls_failure says why */
};

/* The data must stay in place until tls_read has answered something other than
 * TLS_DATA and TLS_READY. */
extern void tls_feed(struct tls *tls, const uint8_t *data, size_t len);
extern enum tls_event tls_read(struct tls *tls, uint8_t *out, size_t cap, size_t *n);

/* Client only: begin the handshake. */
extern void tls_greet(struct tls *tls);

/* Is the handshake over? Before that nothing may be written. */
extern bool tls_ready(const struct tls *tls);

/* Seal; false when the session is broken. */
extern bool tls_write(struct tls *tls, const uint8_t *data, size_t len);

/* Say goodbye, unless the session is broken. */
extern void tls_goodbye(struct tls *tls);

/* What is to be sent; whoever has sent it empties the buffer with tls_sent. */
extern struct buf *tls_sealed(struct tls *tls);
extern void tls_sent(struct tls *tls);

/* One line, in place as long as the session. */
extern const char *tls_failure(const struct tls *tls);

/* The subject of the peer's certificate as RFC 2253 writes it, in UTF-8; NULL when it
 * presented none. In place as long as the session. */
extern const char *tls_peer(const struct tls *tls);

#endif							/* WIGGLE_PROXY_TLS_H */
