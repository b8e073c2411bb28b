/*
 * client.h
 *	  Calls to a wiggle-proxy: one connection, many calls, retries.
 *
 * A call whose status is UNAVAILABLE is made again, up to WIGGLE_RPC_MAX_ATTEMPTS
 * (5) times in all, after WIGGLE_RPC_RETRY_DELAY_MILLIS (200), doubled each time:
 * the server says UNAVAILABLE only when it applied nothing. A call that was lost
 * with its connection may have been carried out; it is repeated only when that
 * does no harm. A lost connection is opened again by the next call.
 */
#ifndef WIGGLE_CLI_CLIENT_H
#define WIGGLE_CLI_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>
#include <uv.h>

#include "grpc_status.h"
#include "security.h"

struct client;
struct client_call;

/* What a call came to. Valid during the callback only. */
struct client_reply
{
	enum grpc_status status;
	const char *message;		/* for a person, empty when status is GRPC_OK */
	const char *missing;		/* "1,3": shards that the answer lacks; NULL: none */
	const char *next_page;		/* where the list goes on; NULL: it has ended */
	const uint8_t *data;		/* the reply's message */
	size_t		len;
	bool		lost;			/* it is unknown whether the server carried it out */
	bool		answered;		/* status and message are the server's own */
};

typedef void (*client_done_fn) (void *arg, const struct client_reply *reply);

/* How a call is made; zero values are the usual case. */
struct client_options
{
	uint64_t	timeout_ms;		/* over all attempts; 0: thirty seconds */
	bool		once;			/* do not repeat it when it may have been carried out */
	const char *after;			/* of a list: a next_page, the caller's until done; NULL: from its beginning */
	int			max_attempts;	/* 0: as said above */
};

/*
 * server is "host:port", "host" or "[v6]:port", with any "scheme://" before it
 * ignored. NULL with a message in *problem (static) when it is neither. *security
 * must outlive the client.
 */
extern struct client *client_new(uv_loop_t *loop, const char *server, const struct security *security,
								 const char **problem);

/* Give up whatever is under way, without callbacks, and close. */
extern void client_free(struct client *client);

/* "host:port" for messages. */
extern const char *client_server(const struct client *client);

/*
 * Start a call of Wiggle's service, or, when method begins with a slash, of the service
 * that it names. done runs exactly once, never before this returns, unless
 * client_cancel or client_free comes first.
 */
extern struct client_call *client_start(struct client *client, const char *method,
										const ProtobufCMessage *request,
										const struct client_options *options,
										client_done_fn done, void *arg);
extern void client_cancel(struct client_call *call);

#endif							/* WIGGLE_CLI_CLIENT_H */
