/*
 * h2.h
 *	  nghttp2's session of a connection: bytes in, events out, bytes out.
 */
#ifndef WIGGLE_PROXY_H2_H
#define WIGGLE_PROXY_H2_H

#include "conn.h"
#include "stream.h"

extern void h2_setup(void);

/* Create conn->session and queue the server's SETTINGS. */
extern void h2_open(struct conn *conn);
extern void h2_close(struct conn *conn);

/* Feed received bytes. False when the connection must end: *reason is a literal. */
extern bool h2_receive(struct conn *conn, const uint8_t *data, size_t len, const char **reason);

/*
 * Append what is to be sent to out (cap bytes), stopping when less than a frame's
 * room is left; returns the bytes written. The only place that calls nghttp2's send.
 */
#define H2_FRAME_ROOM	(16384 + 9)
extern size_t h2_send(struct conn *conn, uint8_t *out, size_t cap);

/* Nothing more is to be sent or received, ever. */
extern bool h2_finished(const struct conn *conn);

/* Queue an answer; the call's reply, status and state are set. Of a stream: queue its
 * first message, after which h2_resume tells of more, or of its end. A plain answer
 * has http_status and no trailers. */
extern void h2_submit_reply(struct call *call);
extern void h2_resume(struct call *call);
extern void h2_submit_plain(struct call *call);
extern void h2_submit_refusal(struct call *call, uint16_t http_status, const char *message);

/* Return window credit of a stream that is open, or of the connection alone. */
extern void h2_consume(struct call *call, size_t n);
extern void h2_consume_closed(struct conn *conn, size_t n);

/* The drain's steps. */
extern void h2_shutdown_notice(struct conn *conn);
extern void h2_goaway(struct conn *conn);
extern void h2_calm_down(struct conn *conn);

#endif							/* WIGGLE_PROXY_H2_H */
