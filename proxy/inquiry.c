/*
 * inquiry.c
 *	  A call that is one question to one shard, or one that another allows.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "inquiry.h"
#include "message.h"
#include "shard.h"
#include "utf8.h"
#include "wiggle.pb-c.h"

static void
end(struct inquiry *inquiry)
{
	pending_close(&inquiry->pending);
	free(inquiry);
}

static void
answered(struct question *question, const PGresult *result, const struct refusal *refusal)
{
	struct inquiry *inquiry = (struct inquiry *) question;

	if (result != NULL && inquiry->then != NULL && inquiry->pending.call != NULL)
	{
		struct shard *shard = inquiry->then;

		inquiry->then = NULL;
		inquiry->question = (struct question) {.statement = inquiry->then_ask, .writes = true, .done = answered};
		inquiry_ask_shard(inquiry, shard);
		return;
	}
	if (result == NULL)
		pending_refuse(&inquiry->pending, refusal);
	else if (inquiry->pending.call != NULL)
		inquiry->answer(inquiry, result);
	end(inquiry);
}

struct inquiry *
inquiry_open(struct call *call, const ProtobufCMessageDescriptor *type,
			 void (*answer) (struct inquiry *inquiry, const PGresult *result))
{
	ProtobufCMessage *message = message_request(call, type);
	struct inquiry *inquiry;

	if (message == NULL)
		return NULL;
	inquiry = xcalloc(1, sizeof(*inquiry));
	pending_open(&inquiry->pending, call, message);
	inquiry->question.done = answered;
	inquiry->answer = answer;
	return inquiry;
}

bool
inquiry_json(struct inquiry *inquiry, const ProtobufCBinaryData *value, const char *field, int param,
			 struct wig_error *err)
{
	struct buf *json = &inquiry->pending.json;
	size_t		start;

	if (!rpc_json(value, field, json, &start, err))
		return false;
	if (!rpc_json_null(json, start))
		inquiry->question.params[param] = buf_cstr(json);
	return true;
}

void
inquiry_ask_shard(struct inquiry *inquiry, struct shard *shard)
{
	enum submit submitted = shard_ask(shard, &inquiry->question);
	struct refusal refusal;

	if (submitted == SUBMIT_OK)
		return;
	shard_refuse(shard, submitted, &refusal);
	answered(&inquiry->question, NULL, &refusal);
}

void
inquiry_ask_id(struct inquiry *inquiry, const char *instance_id)
{
	struct refusal refusal;
	struct shard *shard = rpc_route(instance_id, "instance", &refusal);

	if (shard != NULL)
		inquiry_ask_shard(inquiry, shard);
	else
		answered(&inquiry->question, NULL, &refusal);
}

void
inquiry_ask_home(struct inquiry *inquiry)
{
	inquiry_ask_shard(inquiry, shard_at(shard_topology()->home));
}

void
inquiry_refuse(struct inquiry *inquiry, const struct wig_error *err)
{
	inquiry_fail(inquiry, GRPC_INVALID_ARGUMENT, "%s", err->message);
}

void
inquiry_fail(struct inquiry *inquiry, enum grpc_status status, const char *fmt,...)
{
	char		message[512];
	va_list		args;

	va_start(args, fmt);
	utf8_vformat(message, sizeof(message), fmt, args);
	va_end(args);
	pending_fail(&inquiry->pending, status, "%s", message);
	end(inquiry);
}

void
inquiry_ack(struct inquiry *inquiry, const PGresult *result)
{
	Com__Wiggle__Proto__Ack ack = COM__WIGGLE__PROTO__ACK__INIT;

	(void) result;
	ack.ok = true;
	pending_reply(&inquiry->pending, &ack.base);
}
