/*
 * message.c
 *	  Protobuf messages in and out of a call.
 */
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "json_message.h"
#include "message.h"
#include "utf8.h"

#define MAX_NESTING		64
#define MAX_PARTS		262144	/* strings and messages in one request: each costs
								 * far more memory decoded than its two bytes */

struct check
{
	struct wig_error *err;
	unsigned	parts;
	bool		texts;			/* Values may have the text form */
};

static bool
read_varint(const uint8_t **p, const uint8_t *end, uint64_t *value)
{
	uint64_t	v = 0;

	for (int shift = 0; shift < 64 && *p < end; shift += 7)
	{
		uint8_t		b = *(*p)++;

		v |= (uint64_t) (b & 0x7f) << shift;
		if (b < 0x80)
		{
			*value = v;
			return true;
		}
	}
	return false;
}

static bool
check_string(const struct check *check, const ProtobufCMessageDescriptor *type,
			 const char *name, const uint8_t *p, size_t len)
{
	const uint8_t *end = p + len;

	while (p < end)
	{
		size_t		n = utf8_plain_run(p, (size_t) (end - p));

		p += n;
		if (p == end)
			break;
		if (*p == 0)
			return wig_fail(check->err, "%s.%s holds the character U+0000, which cannot be stored",
							type->short_name, name);
		n = utf8_sequence(p, (size_t) (end - p));
		if (n == 0)
			return wig_fail(check->err, "%s.%s is not valid UTF-8", type->short_name, name);
		p += n;
	}
	return true;
}

static bool check_message(struct check *check, const ProtobufCMessageDescriptor *type,
						  const uint8_t *p, size_t len, int nesting);

static bool
check_bytes_field(struct check *check, const ProtobufCMessageDescriptor *type, uint32_t number,
				  const uint8_t *p, size_t len, int nesting)
{
	const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(type, number);

	if (field == NULL)
		return true;
	if ((field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE) &&
		++check->parts > MAX_PARTS)
		return wig_fail(check->err, "the request holds more than %d strings and messages", MAX_PARTS);
	if (field->type == PROTOBUF_C_TYPE_STRING)
		return check_string(check, type, field->name, p, len);
	if (field->type == PROTOBUF_C_TYPE_MESSAGE)
		return check_message(check, field->descriptor, p, len, nesting + 1);
	if (field->type == PROTOBUF_C_TYPE_BYTES && len > 0 && *p == VALUE_TEXT_MARK && !check->texts)
		return wig_fail(check->err, "%s.%s is not a well-formed google.protobuf.Value",
						type->short_name, field->name);
	return true;
}

static bool
check_message(struct check *check, const ProtobufCMessageDescriptor *type,
			  const uint8_t *p, size_t len, int nesting)
{
	const uint8_t *end = p + len;
	uint64_t	tag;
	uint64_t	n;

	if (nesting > MAX_NESTING)
		return wig_fail(check->err, "the request nests more than %d messages", MAX_NESTING);
	while (p < end)
	{
		if (!read_varint(&p, end, &tag) || tag >> 3 == 0 || tag >> 3 > UINT32_MAX >> 3)
			break;
		n = 0;
		switch (tag & 7)
		{
			case 0:
				if (!read_varint(&p, end, &n))
					goto malformed;
				continue;
			case 1:
				n = 8;
				break;
			case 5:
				n = 4;
				break;
			case 2:
				if (!read_varint(&p, end, &n) || n > (uint64_t) (end - p))
					goto malformed;
				if (!check_bytes_field(check, type, (uint32_t) (tag >> 3), p, (size_t) n, nesting))
					return false;
				break;
			default:
				goto malformed;
		}
		if (n > (uint64_t) (end - p))
			break;
		p += n;
	}
	if (p == end)
		return true;
malformed:
	return wig_fail(check->err, "the request is not a well-formed %s", type->short_name);
}

static ProtobufCMessage *
unpack(const ProtobufCMessageDescriptor *type, const uint8_t *data, size_t len, bool texts,
	   struct wig_error *err)
{
	struct check check = {.err = err, .texts = texts};
	ProtobufCMessage *message;

	if (len == 0)
		data = (const uint8_t *) "";
	if (!check_message(&check, type, data, len, 1))
		return NULL;
	message = protobuf_c_message_unpack(type, NULL, len, data);
	if (message == NULL)
		wig_fail(err, "the request is not a well-formed %s", type->short_name);
	return message;
}

ProtobufCMessage *
message_unpack(const ProtobufCMessageDescriptor *type, const uint8_t *data, size_t len,
			   struct wig_error *err)
{
	return unpack(type, data, len, false, err);
}

/* ---- by the call's format ---- */

static ProtobufCMessage *
read_json(const ProtobufCMessageDescriptor *type, const uint8_t *text, size_t len,
		  struct wig_error *err)
{
	struct buf	bytes = BUF_INIT;
	ProtobufCMessage *message = NULL;

	if (json_to_message((const char *) text, len, type, &bytes, err))
		message = unpack(type, bytes.data, bytes.len, true, err);
	buf_free(&bytes);
	return message;
}

ProtobufCMessage *
message_request(struct call *call, const ProtobufCMessageDescriptor *type)
{
	struct wig_error err;
	ProtobufCMessage *message;
	const uint8_t *data;
	size_t		len;

	data = call_request(call, &len);
	if (call_format(call) == CALL_JSON)
		message = read_json(type, data, len, &err);
	else
		message = unpack(type, data, len, false, &err);
	if (message == NULL)
		call_fail(call, GRPC_INVALID_ARGUMENT, "%s", err.message);
	return message;
}

static uint8_t *
pack(const ProtobufCMessage *message, size_t *len)
{
	uint8_t    *reply;

	*len = protobuf_c_message_get_packed_size(message);
	reply = xmalloc(CALL_PREFIX + *len);
	protobuf_c_message_pack(message, reply + CALL_PREFIX);
	return reply;
}

enum value_form
message_values(const struct call *call)
{
	return call_format(call) == CALL_JSON ? VALUE_TEXT : VALUE_WIRE;
}

static void
reply_json(struct call *call, const ProtobufCMessage *message)
{
	struct buf	text = BUF_INIT;
	struct wig_error err = {.message = ""};
	uint8_t    *reply;
	size_t		len;

	buf_append(&text, "\0\0\0\0\0", CALL_PREFIX);
	if (message_to_json(message, &text, &err))
	{
		reply = buf_detach(&text, &len);
		call_reply(call, reply, len - CALL_PREFIX);
		return;
	}
	buf_free(&text);
	call_fail(call, GRPC_INTERNAL, "the answer cannot be written as JSON: %s", err.message);
}

void
message_reply(struct call *call, const ProtobufCMessage *message)
{
	size_t		len;
	uint8_t    *reply;

	if (call_format(call) == CALL_JSON)
	{
		reply_json(call, message);
		return;
	}
	reply = pack(message, &len);
	call_reply(call, reply, len);
}

void
message_reply_packed(struct call *call, const ProtobufCMessageDescriptor *type, uint8_t *message,
					 size_t len)
{
	ProtobufCMessage *unpacked;

	if (call_format(call) != CALL_JSON)
	{
		call_reply(call, message, len);
		return;
	}
	unpacked = protobuf_c_message_unpack(type, NULL, len, message + CALL_PREFIX);
	free(message);
	reply_json(call, unpacked);
	protobuf_c_message_free_unpacked(unpacked, NULL);
}

bool
message_send(struct call *call, const ProtobufCMessage *message)
{
	size_t		len;
	uint8_t    *reply = pack(message, &len);

	return call_send(call, reply, len);
}
