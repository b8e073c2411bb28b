/*
 * grpc_frame.h
 *	  The one message of a unary call, out of the bytes of DATA frames.
 *
 * A message stands behind five bytes: a flag (1 = compressed) and its length,
 * big-endian. Pure: no I/O, and nothing is allocated for a length that was not
 * checked or for bytes that have not come.
 */
#ifndef WIGGLE_PROXY_GRPC_FRAME_H
#define WIGGLE_PROXY_GRPC_FRAME_H

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
	GRPC_FRAME_COMPRESSED,		/* flag 1 */
	GRPC_FRAME_BAD_FLAG,		/* flag above 1: not gRPC at all */
	GRPC_FRAME_SECOND			/* bytes follow the message */
};

/* Zero-initialised. The body's memory is the owner's to free or detach. */
struct grpc_frame
{
	uint8_t		prefix[GRPC_PREFIX];
	uint8_t		have;			/* bytes of the prefix */
	uint32_t	length;			/* valid when have is GRPC_PREFIX */
	enum grpc_frame_state state;
	struct buf	body;
};

/* Take the next bytes, at most `max` of message; returns the state after them. */
extern enum grpc_frame_state grpc_frame_feed(struct grpc_frame *frame, const uint8_t *data,
											 size_t len, size_t max);

#endif							/* WIGGLE_PROXY_GRPC_FRAME_H */
