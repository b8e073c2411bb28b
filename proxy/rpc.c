/*
 * rpc.c
 *	  What handlers have in common: the call in waiting, routes, checks.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"
#include "router.h"
#include "rpc.h"
#include "utf8.h"

static void
call_gone(struct call *call, void *arg)
{
	struct pending *pending = arg;

	(void) call;
	pending->call = NULL;
}

void
pending_open(struct pending *pending, struct call *call, ProtobufCMessage *request)
{
	pending->call = call;
	pending->values = message_values(call);
	pending->request = request;
	call_drop_request(call);
	call_on_cancel(call, call_gone, pending);
}

void
pending_close(struct pending *pending)
{
	if (pending->request != NULL)
		protobuf_c_message_free_unpacked(pending->request, NULL);
	buf_free(&pending->json);
}

void
pending_reply(struct pending *pending, const ProtobufCMessage *message)
{
	struct call *call = pending->call;
	size_t		bytes;

	if (call == NULL)
		return;
	pending->call = NULL;
	bytes = protobuf_c_message_get_packed_size(message);
	if (bytes > REPLY_MAX_BYTES)
		call_fail(call, GRPC_RESOURCE_EXHAUSTED,
				  "the answer has %zu bytes; up to %zu are sent: ask for less, or read it with SQL", bytes,
				  REPLY_MAX_BYTES);
	else
		message_reply(call, message);
}

void
pending_fail(struct pending *pending, enum grpc_status status, const char *fmt,...)
{
	struct call *call = pending->call;
	char		text[1024];
	va_list		args;

	if (call == NULL)
		return;
	pending->call = NULL;
	va_start(args, fmt);
	utf8_vformat(text, sizeof(text), fmt, args);
	va_end(args);
	call_fail(call, status, "%s", text);
}

void
pending_refuse(struct pending *pending, const struct refusal *refusal)
{
	pending_fail(pending, refusal->status, "%s", refusal->message);
}

void
pending_outcome(struct pending *pending, const struct outcome *outcome)
{
	pending_fail(pending, outcome->status, "%s", outcome->message);
}

struct shard *
rpc_route(const char *id, const char *what, struct refusal *refusal)
{
	int			index;
	int32_t		number;

	memset(refusal, 0, sizeof(*refusal));
	switch (router_find(shard_topology(), id, strlen(id), &index, &number))
	{
		case ROUTE_OK:
			return shard_at(index);
		case ROUTE_RETIRED:
			refusal->status = GRPC_NOT_FOUND;
			refusal->code = 404;
			snprintf(refusal->message, sizeof(refusal->message), "%s not found: shard %d is retired", what,
					 number);
			return NULL;
		case ROUTE_UNKNOWN:
			break;
	}
	refusal->status = GRPC_UNAVAILABLE;
	refusal->code = 500;
	refusal->storage = true;
	snprintf(refusal->message, sizeof(refusal->message),
			 "shard %d is not in this server's topology", number);
	return NULL;
}

bool
rpc_width(const char *field, const char *text, int most, struct wig_error *err)
{
	int			characters = 0;

	for (const char *p = text; *p != '\0'; p++)
		characters += (*p & 0xc0) != 0x80;
	if (characters <= most)
		return true;
	return wig_fail(err, "%s has %d characters; up to %d are allowed", field, characters, most);
}

bool
rpc_json(const ProtobufCBinaryData *value, const char *field, struct buf *json, size_t *start,
		 struct wig_error *err)
{
	struct wig_error why = {.message = ""};

	*start = json->len;
	return value_to_json(value->data, value->len, json, &why) ||
		wig_fail(err, "%s: %s", field, why.message);
}

bool
rpc_json_null(const struct buf *json, size_t start)
{
	return json->len - start == 4 && memcmp(json->data + start, "null", 4) == 0;
}

bool
rpc_value(enum value_form form, const char *json, size_t len, ProtobufCBinaryData *out,
		  struct wig_error *err)
{
	struct buf	bytes = BUF_INIT;

	out->data = NULL;
	out->len = 0;
	if (!(form == VALUE_TEXT ? json_to_text : json_to_value) (json, len, &bytes, err))
	{
		buf_free(&bytes);
		return false;
	}
	out->data = buf_detach(&bytes, &out->len);
	return true;
}
