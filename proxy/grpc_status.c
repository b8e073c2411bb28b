/*
 * grpc_status.c
 *	  Status codes, and the percent-coding of messages.
 */
#include <string.h>

#include "grpc_status.h"

enum grpc_status
grpc_status_from_code(int code)
{
	switch (code)
	{
		case 0:
			return GRPC_OK;
		case 400:
			return GRPC_INVALID_ARGUMENT;
		case 404:
			return GRPC_NOT_FOUND;
		case 409:
			return GRPC_FAILED_PRECONDITION;
		default:
			return GRPC_INTERNAL;
	}
}

enum grpc_status
grpc_status_from_sqlstate(const char *sqlstate)
{
	static const struct
	{
		const char *sqlstate;
		enum grpc_status status;
	}			known[] = {
		{"WG400", GRPC_INVALID_ARGUMENT},
		{"WG404", GRPC_NOT_FOUND},
		{"WG409", GRPC_FAILED_PRECONDITION},
		{"42501", GRPC_PERMISSION_DENIED},
	};

	for (size_t i = 0; sqlstate != NULL && i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(known[i].sqlstate, sqlstate) == 0)
			return known[i].status;
	return GRPC_INTERNAL;
}

size_t
grpc_message_encode(const char *text, char *out, size_t cap)
{
	static const char hex[] = "0123456789ABCDEF";
	size_t		n = 0;

	for (; *text != '\0'; text++)
	{
		unsigned char c = (unsigned char) *text;

		if (c >= 0x20 && c <= 0x7e && c != '%')
		{
			if (n + 1 > cap)
				break;
			out[n++] = (char) c;
			continue;
		}
		if (n + 3 > cap)
			break;
		out[n++] = '%';
		out[n++] = hex[c >> 4];
		out[n++] = hex[c & 15];
	}
	return n;
}
