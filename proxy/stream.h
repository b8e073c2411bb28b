/*
 * stream.h
 *	  One HTTP/2 stream = one call: from its first header field to its close.
 *
 * h2.c reports what nghttp2 saw; stream.c decides. A struct call lives from
 * stream_open to stream_close, also while a handler owns it and after it was
 * answered; handlers see it through call.h only.
 *
 * A request of HTTP/1 on the second port (http_call.c) is told here in the same
 * way, its request line as :method and :path. It has no conn, is never gRPC, and its
 * answer is handed over with answered().
 *
 * In Connect a refusal waits for the end of the body, which is thrown away, within
 * reason: plain HTTP clients often send all of it before they look at the answer,
 * and take an early one for a broken connection.
 */
#ifndef WIGGLE_PROXY_STREAM_H
#define WIGGLE_PROXY_STREAM_H

#include "call.h"
#include "conn.h"
#include "grpc_frame.h"

#define REQUEST_TOO_LARGE	"the request has more bytes than are taken (WIGGLE_MAX_MESSAGE_BYTES)"

enum call_protocol
{
	PROTOCOL_GRPC,				/* framed messages, the status in trailers */
	PROTOCOL_CONNECT			/* bare messages, the status is HTTP's (connect.h) */
};

enum call_state
{
	CALL_HEADERS,				/* header fields come in */
	CALL_BODY,					/* message bytes come in */
	CALL_OWNED,					/* a handler has it */
	CALL_ANSWERED				/* the answer is queued or sent */
};

struct call
{
	struct conn *conn;			/* NULL: HTTP/1 */
	void		(*answered) (struct call *call);	/* HTTP/1: the reply is set */
	void	   *carrier;		/* of answered() */
	char	   *peer;			/* subject of the client's certificate, or NULL; owned */
	struct call *prev;			/* of the connection */
	struct call *next;
	int32_t		id;
	enum call_state state;

	/* request */
	const struct method *method;
	enum method_shape shape;
	const char *refusal;		/* literal; the first thing wrong with the headers */
	enum grpc_status refusal_status;
	uint16_t	http_status;	/* of the refusal; in Connect, of the answer */
	enum call_protocol protocol;
	enum call_format format;
	struct credential credential;	/* of the header field, or of the connection */
	char	   *caller;			/* whose it is; owned */
	bool		typed;			/* a content-type came that is understood */
	bool		encoded;		/* Connect: the body is compressed */
	uint64_t	content_length; /* that was announced, or 0 */
	uint64_t	discarded;		/* bytes of a body that is not looked at */
	bool		pathed;			/* :path came */
	bool		grpc_only;		/* the method is of one of gRPC's own services */
	bool		accepts_gzip;	/* for the reply */
	bool		takes_part;		/* an answer may lack shards */
	char	   *after;			/* where a list goes on, or NULL */
	size_t		header_bytes;
	uint64_t	timeout_ms;		/* of grpc-timeout; UINT64_MAX = none */
	struct grpc_frame frame;
	size_t		charged;		/* of the process's request bytes */
	size_t		owed;			/* window credit held back */
	struct deadline deadline;
	uint64_t	deadline_at;	/* 0 = none */
	uint64_t	started_us;

	/* with the handler */
	call_cancel_fn cancelled;
	void	   *cancel_arg;

	/* reply */
	uint8_t    *reply;			/* prefix and message */
	size_t		reply_len;		/* with the prefix */
	size_t		reply_sent;		/* begins behind the prefix in Connect */
	bool		gzipped;		/* the reply's message is */
	char	   *missing;		/* shards that the answer lacks, or NULL */
	char	   *next_page;		/* where the list behind the answer goes on, or NULL */
	bool		streaming;		/* reply messages were sent: the head is out, or about to be */
	char	   *trailer;		/* the status's message, when it is to follow some */
	enum grpc_status status;
};

extern void stream_setup(void);

/* Without a connection for HTTP/1, which then sets answered and carrier. peer is the subject of
 * the client's certificate, or NULL. */
extern struct call *stream_open(struct conn *conn, int32_t id, const char *peer);

/* False when the stream is to be reset: far over the bound on header bytes. */
extern bool stream_header(struct call *call, const uint8_t *name, size_t name_len,
						  const uint8_t *value, size_t value_len);

/* Refuse the call when its headers, or the body of no interest behind them, end: the first
 * refusal counts. http_status is 200 unless HTTP has one of its own for it. */
extern void stream_refuse(struct call *call, enum grpc_status status, uint16_t http_status,
						  const char *message);

/* For stream_headers_end: refuse what the fields together do not allow. */
extern void stream_check_headers(struct call *call);

extern void stream_headers_end(struct call *call, bool end_stream);
extern void stream_data(struct call *call, const uint8_t *data, size_t len);
extern void stream_end(struct call *call);

/* The client is gone: the handler is told, and nobody is answered. */
extern void stream_cancel(struct call *call);

/*
 * The client of an HTTP/1 call sends no more. It may be gone, or read on: a call that works
 * goes on, for its answer is owed; one that waits is refused, lest it is handed what nobody takes.
 */
extern void stream_half_closed(struct call *call);

/* The stream is gone; frees the call, telling its handler if it has one. */
extern void stream_close(struct call *call);

/* The drain has begun: end the connection's calls that would go on for as long as the client likes. */
extern void stream_drain(struct conn *conn);

/* Bytes of requests that are in memory, of all connections. */
extern size_t stream_request_bytes(void);

#endif							/* WIGGLE_PROXY_STREAM_H */
