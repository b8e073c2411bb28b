/*
 * rpc.h
 *	  What handlers have in common: the call in waiting, routes, checks.
 */
#ifndef WIGGLE_PROXY_RPC_H
#define WIGGLE_PROXY_RPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <protobuf-c/protobuf-c.h>

#include "buf.h"
#include "call.h"
#include "item.h"
#include "refusal.h"
#include "shard.h"
#include "value.h"

/* What a client can receive without settings of its own. */
#define REPLY_MAX_BYTES ((size_t) 4 * 1024 * 1024)

/* Widths of the database's columns, in characters; the worker's id in bytes. */
#define WIDTH_WORKFLOW		200
#define WIDTH_CORRELATION	200
#define WIDTH_REASON		200
#define WIDTH_QUEUE			200
#define WIDTH_SIGNAL		200
#define WIDTH_CONSUMER		200
#define WIDTH_CRON			120
#define WIDTH_WORKER		120

/* A call that waits for the database. Embedded in a handler's state. */
struct pending
{
	struct call *call;			/* NULL once it is gone: nobody is to be answered */
	enum value_form values;		/* how Values of the answer are to be made */
	ProtobufCMessage *request;	/* owned */
	struct buf	json;			/* texts made from the request, owned */
};

/* Take the call over; its request's bytes are given back. */
extern void pending_open(struct pending *pending, struct call *call, ProtobufCMessage *request);

/* Free what it owns. The call has been answered or is gone. */
extern void pending_close(struct pending *pending);

/* Answer when there is still somebody to be answered. */
extern void pending_reply(struct pending *pending, const ProtobufCMessage *message);
extern void pending_fail(struct pending *pending, enum grpc_status status, const char *fmt,...)
			__attribute__((format(printf, 3, 4)));
extern void pending_refuse(struct pending *pending, const struct refusal *refusal);

/* As pending_refuse, from an outcome that is not OK. */
extern void pending_outcome(struct pending *pending, const struct outcome *outcome);

/*
 * The shard of an id. NULL with *refusal filled when it is not known or retired;
 * what ("instance", "task") is for the message.
 */
extern struct shard *rpc_route(const char *id, const char *what, struct refusal *refusal);

/* Not more than `most` characters? False with *err, which names the field. */
extern bool rpc_width(const char *field, const char *text, int most, struct wig_error *err);

/* A Value of the request as JSON text behind what *json holds; *start is where. */
extern bool rpc_json(const ProtobufCBinaryData *value, const char *field, struct buf *json,
					 size_t *start, struct wig_error *err);

/* Is a JSON text the null? */
extern bool rpc_json_null(const struct buf *json, size_t start);

/* A new Value's bytes from JSON text (free()); empty and false when it is refused. */
extern bool rpc_value(enum value_form form, const char *json, size_t len, ProtobufCBinaryData *out,
					  struct wig_error *err);

#endif							/* WIGGLE_PROXY_RPC_H */
