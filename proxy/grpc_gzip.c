/*
 * grpc_gzip.c
 *	  Messages in gRPC's encoding "gzip".
 *
 * zlib's states are large (40 and 260 KB) and cheap to reset, so there is one of
 * each for the process, made when the first client wants it.
 */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "grpc_gzip.h"
#include "log.h"

#define GZIP_WINDOW		(15 + 16)	/* zlib's largest window, in gzip's wrapping */
#define MEMORY_LEVEL	8
#define FIRST_GUESS		4		/* times the message, what usually comes out */
#define LEAST_BYTES		512

static void
out_of_memory(void)
{
	log_error("memory", "out of memory (zlib's state)");
	abort();
}

static z_stream *
ready_inflater(void)
{
	static z_stream inflater;
	static bool made;

	if (made ? inflateReset(&inflater) != Z_OK : inflateInit2(&inflater, GZIP_WINDOW) != Z_OK)
		out_of_memory();
	made = true;
	return &inflater;
}

static z_stream *
ready_deflater(void)
{
	static z_stream deflater;
	static bool made;

	if (made ? deflateReset(&deflater) != Z_OK
		: deflateInit2(&deflater, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, MEMORY_LEVEL,
					   Z_DEFAULT_STRATEGY) != Z_OK)
		out_of_memory();
	made = true;
	return &deflater;
}

enum gunzip_outcome
grpc_gunzip(const uint8_t *data, size_t len, size_t max, struct buf *out)
{
	z_stream   *z = ready_inflater();
	size_t		room = len > max / FIRST_GUESS ? max : len * FIRST_GUESS;
	int			rc = Z_OK;

	z->next_in = (uint8_t *) data;
	z->avail_in = (uInt) len;
	if (room < LEAST_BYTES)
		room = LEAST_BYTES;
	while (rc == Z_OK)
	{
		/* One byte more than is taken shows that there is more. */
		if (room > max + 1 - out->len)
			room = max + 1 - out->len;
		buf_reserve(out, room);
		z->next_out = out->data + out->len;
		z->avail_out = (uInt) room;
		rc = inflate(z, Z_NO_FLUSH);
		out->len += room - z->avail_out;
		if (out->len > max)
		{
			buf_free(out);
			return GUNZIP_TOO_LARGE;
		}
		if (rc == Z_OK && z->avail_out > 0)
			break;				/* it wants input that is not there */
		room = out->len;
	}
	if (rc == Z_STREAM_END && z->avail_in == 0)
		return GUNZIP_DONE;
	buf_free(out);
	return GUNZIP_MALFORMED;
}

bool
grpc_gzip(const uint8_t *data, size_t len, struct buf *out)
{
	z_stream   *z = ready_deflater();

	buf_reserve(out, len);
	z->next_in = (uint8_t *) data;
	z->avail_in = (uInt) len;
	z->next_out = out->data + out->len;
	z->avail_out = (uInt) len;
	if (deflate(z, Z_FINISH) != Z_STREAM_END)
		return false;
	out->len += len - z->avail_out;
	return true;
}

bool
grpc_gzip_accepted(const char *encodings, size_t len)
{
	const char *end = encodings + len;

	while (encodings < end)
	{
		const char *comma = memchr(encodings, ',', (size_t) (end - encodings));
		const char *stop = comma != NULL ? comma : end;

		while (encodings < stop && *encodings == ' ')
			encodings++;
		while (stop > encodings && stop[-1] == ' ')
			stop--;
		if (stop - encodings == 4 && memcmp(encodings, "gzip", 4) == 0)
			return true;
		encodings = comma != NULL ? comma + 1 : end;
	}
	return false;
}
