/*
 * message.h
 *	  Protobuf messages in and out of a call, whatever its format.
 *
 * This is the only place that knows of a call's format: handlers deal in messages.
 *
 * protobuf-c decodes recursively without a limit and hands strings over as C
 * strings, so the bytes are checked against the descriptor first: nesting of
 * messages (at most 64), every string UTF-8 without U+0000, sane wire format, no
 * Value in the text form (value.h).
 */
#ifndef WIGGLE_PROXY_MESSAGE_H
#define WIGGLE_PROXY_MESSAGE_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "call.h"
#include "error.h"
#include "value.h"

/*
 * Decode a message; protobuf_c_message_free_unpacked(m, NULL) frees it. Value and
 * Struct fields are copies too, so the request's bytes may be dropped. NULL with *err
 * (naming the field) when the bytes are refused.
 */
extern ProtobufCMessage *message_unpack(const ProtobufCMessageDescriptor *type,
										const uint8_t *data, size_t len,
										struct wig_error *err);

/*
 * The same for a call's request. When it is refused the call is answered with
 * INVALID_ARGUMENT and NULL is returned: the handler just returns.
 */
extern ProtobufCMessage *message_request(struct call *call,
										 const ProtobufCMessageDescriptor *type);

/* The form in which Values of a call's answer are to be made. */
extern enum value_form message_values(const struct call *call);

/* Pack and answer; the message stays the caller's. */
extern void message_reply(struct call *call, const ProtobufCMessage *message);

/* The same with a message that is packed: a buffer as call_reply takes it. */
extern void message_reply_packed(struct call *call, const ProtobufCMessageDescriptor *type,
								 uint8_t *message, size_t len);

/* Pack and send one message of a stream; see call_send. Streams are gRPC's alone. */
extern bool message_send(struct call *call, const ProtobufCMessage *message);

#endif							/* WIGGLE_PROXY_MESSAGE_H */
