/*
 * conn.h
 *	  One client's connection: socket, unsent bytes, bounds, its calls.
 *
 * Owned by conn.c from accept to the close callback. Everything happens on the
 * loop. No function here closes a connection while nghttp2 is on the stack:
 * conn_doom only marks it, and the turn's flush ends it.
 */
#ifndef WIGGLE_PROXY_CONN_H
#define WIGGLE_PROXY_CONN_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "loop.h"
#include "tls.h"

struct call;

/* Tokens that refill with time (and with calls); see max_pings_*. */
struct bucket
{
	int64_t		tokens;
	uint64_t	filled_at;
};

struct conn
{
	uv_tcp_t	tcp;			/* data = the conn */
	struct conn *prev;			/* all connections */
	struct conn *next;
	struct conn *next_dirty;
	bool		dirty;			/* in the list of those to flush */
	bool		lingering;		/* our last byte is out, waiting for the client's end */
	bool		closing;		/* uv_close was called */
	bool		closed;			/* and is done: freed by the flush that finds it */
	bool		hello;			/* its first byte began TLS */
	bool		heard;			/* bytes came that may be HTTP/2: our SETTINGS may go out */
	bool		greeted;		/* the client's first SETTINGS came */
	bool		paused;			/* not read while the client takes nothing */
	const char *doomed;			/* why it is to be closed, or NULL */

	struct tls *tls;			/* NULL: plaintext */
	nghttp2_session *session;
	struct call *calls;			/* every stream that is not closed */
	int			ncalls;
	struct bucket control;		/* control frames that cost work */

	size_t		waiting;		/* request bytes of calls that handlers own */
	size_t		owed;			/* window credit held back meanwhile */

	size_t		unsent;			/* reply bytes that nghttp2 has not taken */
	size_t		writing;		/* bytes of the write in flight */
	uv_write_t	write;
	uint8_t    *write_data;
	uint64_t	progress_at;	/* when the client last took something */
	struct deadline stall;		/* set while something is unsent; then the linger's */
	struct deadline greeting;	/* for the TLS handshake, then for the client's first SETTINGS */

	enum
	{
		CONN_OPEN,
		CONN_NOTICED,			/* shutdown notice and PING sent */
		CONN_GOAWAY				/* final GOAWAY sent */
	}			drain;
};

extern void conn_setup(void);

/* Take an accepted handle's connection from the server; over the bound it is closed at once. */
extern void conn_accept(uv_stream_t *server);

/* Queue for the flush of this turn. */
extern void conn_mark_dirty(struct conn *conn);

/* Close at the end of the turn; the first reason stays. */
extern void conn_doom(struct conn *conn, const char *reason);

/* Take n tokens for a frame that costs work; when there are none the client is told
 * ENHANCE_YOUR_CALM and the connection ends. */
extern void conn_charge(struct conn *conn, int n);

/* The client did something useful: one token back. */
extern void conn_refund(struct conn *conn);

/* Reply bytes that wait in all connections; those of HTTP/1 count without one. */
extern size_t conn_unsent_total(void);
extern void conn_unsent_add(struct conn *conn, size_t n);
extern void conn_unsent_taken(struct conn *conn, size_t n);

#endif							/* WIGGLE_PROXY_CONN_H */
