/*
 * channel.h
 *	  One HTTP/2 connection to a server and the exchanges on it.
 *
 * Sockets on a libuv loop, plain or in TLS; nghttp2 sees bytes only. A channel resolves
 * the name, tries one address after the other, and is then up until it is down; it
 * never reconnects (client.h does, with a new channel). Callbacks run on the loop,
 * some of them while nghttp2 is at work: they may start and reset exchanges and
 * close the channel, all of which takes effect after they return.
 */
#ifndef WIGGLE_CLI_CHANNEL_H
#define WIGGLE_CLI_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "buf.h"
#include "grpc_frame.h"
#include "security.h"

struct channel;

/*
 * One unary request and what came back. The caller owns it and keeps it in place
 * from channel_send until finished; zero everything but the first group.
 */
struct exchange
{
	const char *path;			/* "/package.Service/Method" */
	const struct buf *request;	/* the message with its gRPC prefix */
	const char *after;			/* where a list is to go on; NULL: from its beginning */

	size_t		sent;			/* bytes of the request that nghttp2 took */
	int32_t		stream_id;
	struct channel *channel;	/* while it is under way */
	struct exchange *next;

	struct grpc_frame reply;	/* the owner frees reply.body */
	int			http_status;	/* 0: no response came */
	int			grpc_status;	/* -1: none came */
	struct buf	grpc_message;	/* as on the wire; the owner frees it */
	struct buf	missing;		/* shards that the answer lacks, as on the wire; the owner frees it */
	struct buf	next_page;		/* where the list goes on, as on the wire; the owner frees it */
	bool		not_grpc;		/* the response was not application/grpc */
	const char *why;			/* why the connection ended, while finished runs; or NULL */
};

/* How the stream of an exchange ended. */
enum exchange_end
{
	EXCHANGE_DONE,				/* in order; the status tells */
	EXCHANGE_REFUSED,			/* the server did not look at it: it may be sent again */
	EXCHANGE_RESET,				/* cut off by the server */
	EXCHANGE_LOST,				/* the connection ended; it may have been carried out */
	EXCHANGE_UNHEARD			/* the same, before the server had said anything in HTTP/2 */
};

struct channel_events
{
	void		(*up) (void *arg);

	/* The channel is of no more use; every exchange was finished before. */
	void		(*down) (void *arg, struct channel *channel, const char *why);
	void		(*finished) (void *arg, struct exchange *exchange, enum exchange_end end);
};

/* Start connecting. max_reply bounds one reply's message; *security stays the caller's. */
extern struct channel *channel_open(uv_loop_t *loop, const char *host, const char *port,
									const struct security *security, size_t max_reply,
									const struct channel_events *events, void *arg);

/* Can new exchanges be started: is it up and has the server not said goodbye? */
extern bool channel_usable(const struct channel *channel);

/* Does it take nothing new any more, though exchanges may still be under way? */
extern bool channel_leaving(const struct channel *channel);

/* Send a request on a usable channel. */
extern void channel_send(struct channel *channel, struct exchange *exchange);

/* Give an exchange up: the server is told, finished is not called. */
extern void channel_cancel(struct exchange *exchange);

/*
 * Close quietly: no callback is called any more, and exchanges under way are
 * forgotten. The memory goes when the loop has turned.
 */
extern void channel_close(struct channel *channel);

#endif							/* WIGGLE_CLI_CHANNEL_H */
