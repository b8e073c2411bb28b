/*
 * json_message.h
 *	  Messages of our protocol <-> JSON, by their descriptors.
 *
 * protobuf's own mapping: members are named in lowerCamelCase (requests may use
 * the names of the proto too), 64-bit integers are strings (requests may write
 * numbers), Value and Struct are plain JSON, defaults are left out of answers,
 * null in a request is an absent field, unknown members are ignored. Every field
 * of bytes is a Value or a Struct here, in the text form of value.h.
 */
#ifndef WIGGLE_PROXY_JSON_MESSAGE_H
#define WIGGLE_PROXY_JSON_MESSAGE_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "error.h"

/*
 * Append the message that the text describes, in wire format. False with *err,
 * which names the field, when the text is not JSON (as wig_json_check has it, and up
 * to 64 levels around Values), or a member is given twice or does not fit its type.
 */
extern bool json_to_message(const char *json, size_t len, const ProtobufCMessageDescriptor *type,
							struct buf *out, struct wig_error *err);

/* Append the message as JSON; false with *err when a Value in wire form is malformed. */
extern bool message_to_json(const ProtobufCMessage *message, struct buf *out, struct wig_error *err);

#endif							/* WIGGLE_PROXY_JSON_MESSAGE_H */
