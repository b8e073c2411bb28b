/*
 * call.h
 *	  One RPC in flight, as the handlers see it.
 *
 * The inbound side (listener, conn, h2, stream) owns a struct call from the
 * moment the request message is complete until exactly one of call_reply,
 * call_fail or the cancel callback. Handlers (rpc_*.c) know nothing of HTTP/2:
 * they read the request, and answer now or later on the same loop.
 */
#ifndef WIGGLE_PROXY_CALL_H
#define WIGGLE_PROXY_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "credential.h"
#include "grpc_status.h"
#include "permission.h"

struct call;

/* The request message, without the prefix of gRPC's; valid until the answer or
 * call_drop_request. */
extern const uint8_t *call_request(const struct call *call, size_t *len);

/* How messages of the call are written; message.h reads and writes them. */
enum call_format
{
	CALL_PROTOBUF,
	CALL_JSON
};
extern enum call_format call_format(const struct call *call);

/*
 * Does the client want what there is when a shard does not answer ("wiggle-partial: allow")?
 * It is told which are missing ("wiggle-missing-shards: 1,3"); before the answer.
 */
extern bool call_takes_part(const struct call *call);
extern void call_missing(struct call *call, const char *shards);

/*
 * Where a list is to go on ("wiggle-after"), NULL: from its beginning. "wiggle-next" says
 * where the one behind it does; before the answer.
 */
extern const char *call_after(const struct call *call);
extern void call_next(struct call *call, const char *cursor);

/* Free the request early (a parked poll keeps only what it needs). */
extern void call_drop_request(struct call *call);

/* Loop time (uv_now, ms) at which grpc-timeout ends the call; 0 = none. The
 * inbound side itself ends an overdue call with DEADLINE_EXCEEDED and runs the
 * cancel callback. */
extern uint64_t call_deadline(const struct call *call);

/* The calls of the same method that the connection has open, this one among them; by HTTP/2 alone. */
extern int	call_siblings(const struct call *call);

/* What the caller presented; NONE throughout while WIGGLE_GRPC_AUTH is off. */
extern const struct credential *call_credential(struct call *call);

/* The credential that let the call pass, once gate.h knows it; NULL before. */
extern void call_set_caller(struct call *call, const char *id);
extern const char *call_caller(const struct call *call);

/*
 * cancelled() runs once when the stream ends before the answer: reset by the
 * client, connection lost, deadline passed, drain's end. After it returns the
 * call is gone; the handler forgets its pointer. It is not run after an answer.
 */
typedef void (*call_cancel_fn) (struct call *call, void *arg);
extern void call_on_cancel(struct call *call, call_cancel_fn cancelled, void *arg);

/*
 * May `bytes` more of reply be queued for this call's connection and process
 * without passing the bounds on unsent bytes? Pollers claim only where this
 * is true.
 */
extern bool call_has_room(const struct call *call, size_t bytes);

/*
 * Answer with one message. `message` is a malloc'd buffer whose first
 * CALL_PREFIX bytes are free for the gRPC prefix, the payload of `len` bytes in the
 * call's format behind them; ownership passes. The call is gone on return. Nothing is
 * written before the turn of the loop ends (one write a connection and turn).
 */
#define CALL_PREFIX 5
extern void call_reply(struct call *call, uint8_t *message, size_t len);

/*
 * For calls whose replies are a stream: queue one message of it, in the manner of
 * call_reply, and go on. False when the call ended instead because the client
 * does not read: it is gone, without the cancel callback.
 */
extern bool call_send(struct call *call, uint8_t *message, size_t len);

/* Answer with a status and a message for a person (UTF-8, any length up to
 * 1 KiB; percent-coded on the wire). The call is gone on return. */
extern void call_fail(struct call *call, enum grpc_status status, const char *fmt,...)
			__attribute__((format(printf, 3, 4)));

/*
 * The method table: a const array in method.c, looked up by the RPC's name (the
 * part after the service). start() owns the call from then on. Unknown names and
 * NULL start are answered UNIMPLEMENTED by the inbound side.
 */
struct method
{
	const char *name;
	void		(*start) (struct call *call);
	struct need need;
};
extern const struct method *method_find(const char *name, size_t len);

/* The name of the i-th of all methods, gRPC's own among them; NULL behind the last. */
extern const char *method_name(size_t i);

/* Does a call of it wait for what may come, and change nothing meanwhile? */
extern bool method_waits(const struct method *method);

/* Wiggle's own calls are unary, all of them. */
enum method_shape
{
	METHOD_UNARY,				/* one request, one reply */
	METHOD_WATCH,				/* one request; replies by call_send, the end by call_fail */
	METHOD_CHAT					/* start() runs for each request and sends its reply before it
								 * returns; the client's end ends the call with OK */
};

/* The other services, by the whole path. gRPC's own are for gRPC alone. */
extern const struct method *method_find_standard(const char *path, size_t len, enum method_shape *shape,
												 bool *grpc_only);

#endif							/* WIGGLE_PROXY_CALL_H */
