/*
 * wire.h
 *	  Protobuf's wire format, written by hand.
 */
#ifndef WIGGLE_PROXY_WIRE_H
#define WIGGLE_PROXY_WIRE_H

#include <stdint.h>
#include <string.h>

#include "buf.h"

enum wire_type
{
	WIRE_VARINT = 0,
	WIRE_FIXED64 = 1,
	WIRE_BYTES = 2,
	WIRE_FIXED32 = 5
};

static inline void
wire_varint(struct buf *out, uint64_t v)
{
	while (v >= 0x80)
	{
		buf_byte(out, (uint8_t) (v | 0x80));
		v >>= 7;
	}
	buf_byte(out, (uint8_t) v);
}

static inline void
wire_tag(struct buf *out, uint32_t field, enum wire_type type)
{
	wire_varint(out, (uint64_t) field << 3 | type);
}

/*
 * The length of what is to come: it stands before its content and is not known
 * before that ends, so one byte is kept for it, and the content moves up when more
 * are needed. Returns where the content begins, for wire_close.
 */
static inline size_t
wire_open_length(struct buf *out)
{
	buf_byte(out, 0);
	return out->len;
}

/* The same with a tag of one byte in front. */
static inline size_t
wire_open(struct buf *out, uint8_t tag)
{
	buf_reserve(out, 2);
	out->data[out->len++] = tag;
	out->data[out->len++] = 0;
	return out->len;
}

static inline void
wire_close(struct buf *out, size_t content)
{
	size_t		len = out->len - content;
	size_t		extra = 0;

	for (size_t rest = len >> 7; rest > 0; rest >>= 7)
		extra++;
	if (extra > 0)
	{
		buf_reserve(out, extra);
		memmove(out->data + content + extra, out->data + content, len);
		out->len += extra;
	}
	for (size_t i = 0; i <= extra; i++, len >>= 7)
		out->data[content - 1 + i] = (uint8_t) ((len & 0x7f) | (i < extra ? 0x80 : 0));
}

#endif							/* WIGGLE_PROXY_WIRE_H */
