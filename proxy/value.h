/*
 * value.h
 *	  protobuf Value and Struct bytes <-> JSON text, streaming.
 *
 * The proxy's own proto declares every Value and Struct field as bytes; these
 * functions translate those bytes without building a tree. A NULL or empty
 * input is the message without fields: Value -> null, Struct -> {}.
 *
 * To JSON: whole doubles become integers (saturating at 64 bits; -0.0 is 0), others
 * their shortest decimal form. NaN, infinities, U+0000, text that is not UTF-8
 * (lone surrogates among it), malformed bytes and nesting cost above
 * WIG_JSON_MAX_NESTING (core/jsontext.h) are refused. The last field of a oneof
 * wins; unknown fields are skipped; a repeated map key stays repeated (readers
 * take the last).
 *
 * To Value: the text must be one JSON document of the same rules; numbers become
 * the nearest double.
 *
 * A value may also travel within the process as text: the byte VALUE_TEXT_MARK,
 * which begins no protobuf message, and the JSON as it was written. So a client
 * that speaks JSON gets and gives numbers of any length without a double in
 * between. The text is checked when it is made and when it is read; a client that
 * sends such bytes is refused (message.h), and they are never sent.
 *
 * All functions append to *out. On refusal they return false, fill *err and leave
 * *out at the length that it had. Nothing is allocated but the growth of *out,
 * and recursion is bounded by the nesting limit.
 */
#ifndef WIGGLE_PROXY_VALUE_H
#define WIGGLE_PROXY_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "error.h"

enum value_form
{
	VALUE_WIRE,					/* the bytes of a Value or Struct */
	VALUE_TEXT					/* the mark and JSON text */
};

#define VALUE_TEXT_MARK 0

/* Both take either form. */
extern bool value_to_json(const uint8_t *pb, size_t len, struct buf *out, struct wig_error *err);
extern bool struct_to_json(const uint8_t *pb, size_t len, struct buf *out, struct wig_error *err);

/* json_to_struct refuses anything but an object. */
extern bool json_to_value(const char *json, size_t len, struct buf *out, struct wig_error *err);
extern bool json_to_struct(const char *json, size_t len, struct buf *out, struct wig_error *err);

/* The text form of a value; checked alike. */
extern bool json_to_text(const char *json, size_t len, struct buf *out, struct wig_error *err);

#endif							/* WIGGLE_PROXY_VALUE_H */
