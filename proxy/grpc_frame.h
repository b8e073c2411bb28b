/*
 * grpc_frame.h
 *	  A message of a call, out of the bytes of DATA frames.
 *
 * A message stands behind five bytes: a flag (1 = compressed) and its length,
 * big-endian. Pure: no I/O, and nothing is allocated for a length that was not
 * checked or for bytes that have not come.
 */
#ifndef WIGGLE_PROXY_GRPC_FRAME_H
#define WIGGLE_PROXY_GRPC_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"

#define GRPC_PREFIX	5

enum grpc_frame_state
{
	GRPC_FRAME_PARTIAL,			/* more bytes are needed */
	GRPC_FRAME_WHOLE,			/* body holds the message, nothing followed it yet */
	/* refusals; they are final */
	GRPC_FRAME_TOO_LARGE,		/* length says above the bound */
	GRPC_FRAME_COMPRESSED,		/* flag 1, which the owner does not take */
	GRPC_FRAME_BAD_FLAG,		/* flag above 1: not gRPC at all */
	GRPC_FRAME_SECOND			/* bytes follow the message */
};

/* Zero-initialised. The body's memory is the owner's to free or detach. */
struct grpc_frame
{
	bool		takes_compressed;	/* set by the owner: flag 1 is no refusal */
	uint8_t		prefix[GRPC_PREFIX];
	uint8_t		have;			/* bytes of the prefix */
	uint32_t	length;			/* valid when have is GRPC_PREFIX */
	enum grpc_frame_state state;
	struct buf	body;
};

/* Take the next bytes, at most `max` of message; returns the state after them. */
extern enum grpc_frame_state grpc_frame_feed(struct grpc_frame *frame, const uint8_t *data,
											 size_t len, size_t max);

/* The body of the whole message is compressed. */
static inline bool
grpc_frame_compressed(const struct grpc_frame *frame)
{
	return frame->prefix[0] == 1;
}

/* Bytes up to the end of the prefix or, behind it, of the message: who feeds no more than
 * that meets no second message. */
static inline size_t
grpc_frame_missing(const struct grpc_frame *frame)
{
	return frame->have < GRPC_PREFIX ? (size_t) (GRPC_PREFIX - frame->have) : frame->length - frame->body.len;
}

/* Forget the message and its memory, for the next one. */
static inline void
grpc_frame_reset(struct grpc_frame *frame)
{
	buf_free(&frame->body);
	frame->have = 0;
	frame->length = 0;
	frame->state = GRPC_FRAME_PARTIAL;
}

#endif							/* WIGGLE_PROXY_GRPC_FRAME_H */
