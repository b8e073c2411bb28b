/*
 * grpc_status.h
 *	  gRPC status codes, and what a refusal of the database becomes on the wire.
 */
#ifndef WIGGLE_PROXY_GRPC_STATUS_H
#define WIGGLE_PROXY_GRPC_STATUS_H

#include <stddef.h>

#include "buf.h"

enum grpc_status
{
	GRPC_OK = 0,
	GRPC_CANCELLED = 1,
	GRPC_UNKNOWN = 2,
	GRPC_INVALID_ARGUMENT = 3,
	GRPC_DEADLINE_EXCEEDED = 4,
	GRPC_NOT_FOUND = 5,
	GRPC_ALREADY_EXISTS = 6,
	GRPC_PERMISSION_DENIED = 7,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_FAILED_PRECONDITION = 9,
	GRPC_ABORTED = 10,
	GRPC_OUT_OF_RANGE = 11,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_INTERNAL = 13,
	GRPC_UNAVAILABLE = 14,
	GRPC_DATA_LOSS = 15,
	GRPC_UNAUTHENTICATED = 16
};

/* 0 -> OK, 400 -> INVALID_ARGUMENT, 404 -> NOT_FOUND, 409 -> FAILED_PRECONDITION,
 * anything else INTERNAL: the engine's codes of a batch row. */
extern enum grpc_status grpc_status_from_code(int code);

/* The engine's SQLSTATEs WG400, WG404, WG409 and 42501; INTERNAL for others. */
extern enum grpc_status grpc_status_from_sqlstate(const char *sqlstate);

/*
 * Percent-code a grpc-message: bytes outside 0x20..0x7e and '%' become %XX.
 * Writes at most cap bytes, never splits a code, returns the length.
 */
extern size_t grpc_message_encode(const char *text, char *out, size_t cap);

/* Append the text with U+FFFD in place of what is not UTF-8. */
extern void grpc_message_utf8(const char *text, struct buf *out);

/*
 * Append what stands in grpc-status-details-bin beside a status that is not OK: a
 * google.rpc.Status in base64, whose details are a google.rpc.ErrorInfo with the
 * domain "wiggle" and a reason of the list in docs/clients.md, and a
 * google.rpc.RetryInfo when the call may be made again as it was.
 */
extern void grpc_details(enum grpc_status status, const char *message, struct buf *out);

#endif							/* WIGGLE_PROXY_GRPC_STATUS_H */
