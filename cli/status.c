/*
 * status.c
 *	  gRPC statuses for people.
 */
#include "status.h"

static const char *const names[] = {
	[GRPC_OK] = "OK",
	[GRPC_CANCELLED] = "CANCELLED",
	[GRPC_UNKNOWN] = "UNKNOWN",
	[GRPC_INVALID_ARGUMENT] = "INVALID_ARGUMENT",
	[GRPC_DEADLINE_EXCEEDED] = "DEADLINE_EXCEEDED",
	[GRPC_NOT_FOUND] = "NOT_FOUND",
	[GRPC_ALREADY_EXISTS] = "ALREADY_EXISTS",
	[GRPC_PERMISSION_DENIED] = "PERMISSION_DENIED",
	[GRPC_RESOURCE_EXHAUSTED] = "RESOURCE_EXHAUSTED",
	[GRPC_FAILED_PRECONDITION] = "FAILED_PRECONDITION",
	[GRPC_ABORTED] = "ABORTED",
	[GRPC_OUT_OF_RANGE] = "OUT_OF_RANGE",
	[GRPC_UNIMPLEMENTED] = "UNIMPLEMENTED",
	[GRPC_INTERNAL] = "INTERNAL",
	[GRPC_UNAVAILABLE] = "UNAVAILABLE",
	[GRPC_DATA_LOSS] = "DATA_LOSS",
	[GRPC_UNAUTHENTICATED] = "UNAUTHENTICATED"
};

const char *
status_name(enum grpc_status status)
{
	if ((unsigned) status >= sizeof(names) / sizeof(names[0]))
		return names[GRPC_UNKNOWN];
	return names[status];
}

enum exit_status
status_exit(enum grpc_status status)
{
	switch (status)
	{
		case GRPC_OK:
			return EXIT_DONE;
		case GRPC_UNAVAILABLE:
		case GRPC_DEADLINE_EXCEEDED:
			return EXIT_UNREACHABLE;
		default:
			return EXIT_REFUSED;
	}
}

static int
hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

void
status_message_decode(const char *text, size_t len, char *out, size_t cap)
{
	size_t		n = 0;

	for (size_t i = 0; i < len && n + 1 < cap; i++)
	{
		unsigned char c = (unsigned char) text[i];

		if (c == '%' && len - i > 2 && hex_value(text[i + 1]) >= 0 && hex_value(text[i + 2]) >= 0)
		{
			c = (unsigned char) (hex_value(text[i + 1]) << 4 | hex_value(text[i + 2]));
			i += 2;
		}
		out[n++] = c < 0x20 || c == 0x7f ? ' ' : (char) c;
	}
	out[n] = '\0';
}
