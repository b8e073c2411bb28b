/*
 * inquiry.h
 *	  A call that is one question to one shard, or one that another allows.
 */
#ifndef WIGGLE_PROXY_INQUIRY_H
#define WIGGLE_PROXY_INQUIRY_H

#include <libpq-fe.h>

#include "rpc.h"
#include "side.h"

struct inquiry
{
	struct question question;	/* first: the side pool hands it back */
	struct pending pending;
	char		number[24];		/* room for a parameter as text */
	void		(*answer) (struct inquiry *inquiry, const PGresult *result);
	struct shard *then;			/* is asked next, unless the first question is refused; or NULL */
	enum statement then_ask;	/* without parameters */
};

/*
 * Decode the call's request and take the call over; NULL when it was refused and
 * answered. answer() replies from the rows, while the call is there.
 */
extern struct inquiry *inquiry_open(struct call *call, const ProtobufCMessageDescriptor *type,
									void (*answer) (struct inquiry *inquiry, const PGresult *result));

/* A Value of the request as the text of a parameter; null is SQL's NULL. */
extern bool inquiry_json(struct inquiry *inquiry, const ProtobufCBinaryData *value,
						 const char *field, int param, struct wig_error *err);

/* Send the question, which is filled, to a shard, to that of the instance, or to home. */
extern void inquiry_ask_shard(struct inquiry *inquiry, struct shard *shard);
extern void inquiry_ask_id(struct inquiry *inquiry, const char *instance_id);
extern void inquiry_ask_home(struct inquiry *inquiry);

/* INVALID_ARGUMENT, and the end of the inquiry. */
extern void inquiry_refuse(struct inquiry *inquiry, const struct wig_error *err);

/* Any other refusal, and the end. */
extern void inquiry_fail(struct inquiry *inquiry, enum grpc_status status, const char *fmt,...)
			__attribute__((format(printf, 3, 4)));

/* For answer: Ack{ok: true}. */
extern void inquiry_ack(struct inquiry *inquiry, const PGresult *result);

#endif							/* WIGGLE_PROXY_INQUIRY_H */
