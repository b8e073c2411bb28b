/*
 * grpc_gzip.h
 *	  Messages in gRPC's encoding "gzip". Pure: no I/O; one message at a time.
 */
#ifndef WIGGLE_PROXY_GRPC_GZIP_H
#define WIGGLE_PROXY_GRPC_GZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"

enum gunzip_outcome
{
	GUNZIP_DONE,
	GUNZIP_TOO_LARGE,			/* more than `max` bytes come out; they were not made */
	GUNZIP_MALFORMED			/* no gzip, cut short, wrong sum, or bytes behind it */
};

/* Inflate a whole message into out, which is empty before and after a refusal. */
extern enum gunzip_outcome grpc_gunzip(const uint8_t *data, size_t len, size_t max, struct buf *out);

/* Append the message compressed to out; false (and out as it was) when it gets no smaller. */
extern bool grpc_gzip(const uint8_t *data, size_t len, struct buf *out);

/* Is one of the comma-separated encodings gzip? */
extern bool grpc_gzip_accepted(const char *encodings, size_t len);

#endif							/* WIGGLE_PROXY_GRPC_GZIP_H */
