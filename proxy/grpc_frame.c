/*
 * grpc_frame.c
 *	  A message of a call, out of the bytes of DATA frames.
 */
#include "grpc_frame.h"

static enum grpc_frame_state
check_prefix(struct grpc_frame *frame, size_t max)
{
	const uint8_t *p = frame->prefix;

	frame->length = (uint32_t) p[1] << 24 | (uint32_t) p[2] << 16 | (uint32_t) p[3] << 8 | p[4];
	if (p[0] > 1)
		return GRPC_FRAME_BAD_FLAG;
	if (p[0] == 1 && !frame->takes_compressed)
		return GRPC_FRAME_COMPRESSED;
	if (frame->length > max)
		return GRPC_FRAME_TOO_LARGE;
	return frame->length == 0 ? GRPC_FRAME_WHOLE : GRPC_FRAME_PARTIAL;
}

enum grpc_frame_state
grpc_frame_feed(struct grpc_frame *frame, const uint8_t *data, size_t len, size_t max)
{
	size_t		missing;

	while (len > 0 && frame->have < GRPC_PREFIX && frame->state == GRPC_FRAME_PARTIAL)
	{
		frame->prefix[frame->have++] = *data++;
		len--;
		if (frame->have == GRPC_PREFIX)
			frame->state = check_prefix(frame, max);
	}
	if (len == 0 || frame->state > GRPC_FRAME_WHOLE)
		return frame->state;
	if (frame->state == GRPC_FRAME_WHOLE)
		return frame->state = GRPC_FRAME_SECOND;

	missing = frame->length - frame->body.len;
	buf_append(&frame->body, data, len < missing ? len : missing);
	if (frame->body.len == frame->length)
		frame->state = len > missing ? GRPC_FRAME_SECOND : GRPC_FRAME_WHOLE;
	return frame->state;
}
