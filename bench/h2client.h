/*
 * h2client.h
 *	  The load generator's side of gRPC: many unary calls over few connections.
 *
 * One thread, plain sockets, everything queued in a turn written at its end. It
 * trusts its server: a broken connection ends the program.
 */
#ifndef WIGGLE_BENCH_H2CLIENT_H
#define WIGGLE_BENCH_H2CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

struct h2_conn;

/*
 * The answer to a call: the message without its gRPC prefix, valid during the
 * callback only; status is grpc-status, with its text when it is not 0.
 */
struct h2_reply
{
	int			status;
	const char *message;
	const uint8_t *data;
	size_t		len;
};
typedef void (*h2_done_fn) (void *arg, const struct h2_reply *reply);

/* Connect to "host:port" (blocking) or end the program with a message. */
extern struct h2_conn *h2_connect(const char *server);
extern void h2_close(struct h2_conn *conn);

/* Queue a unary call of the control plane; done runs from h2_turn. */
extern void h2_call(struct h2_conn *conn, const char *rpc, const ProtobufCMessage *request,
					h2_done_fn done, void *arg);

/* Write what is queued, wait up to timeout_ms for bytes, run what they complete. */
extern void h2_turn(struct h2_conn *const *conns, int nconns, int timeout_ms);

/* Monotonic clock in microseconds. */
extern int64_t now_us(void);

#endif							/* WIGGLE_BENCH_H2CLIENT_H */
