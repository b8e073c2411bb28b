/*
 * grpc_status.c
 *	  Status codes, the percent-coding of messages, and the details beside them.
 */
#include <openssl/evp.h>
#include <string.h>

#include "grpc_status.h"
#include "utf8.h"
#include "wire.h"

#define RETRY_SECONDS	1		/* of a call of which nothing was applied */

/* Reasons are for programs: they never change, whatever the messages say. */
static const char *const reasons[] = {
	[GRPC_CANCELLED] = "CANCELLED",
	[GRPC_INVALID_ARGUMENT] = "INVALID_REQUEST",
	[GRPC_DEADLINE_EXCEEDED] = "DEADLINE_PASSED",
	[GRPC_NOT_FOUND] = "NOT_FOUND",
	[GRPC_PERMISSION_DENIED] = "NOT_ALLOWED",
	[GRPC_RESOURCE_EXHAUSTED] = "OVER_A_BOUND",
	[GRPC_FAILED_PRECONDITION] = "WRONG_STATE",
	[GRPC_UNIMPLEMENTED] = "NOT_OFFERED",
	[GRPC_INTERNAL] = "OUTCOME_UNKNOWN",
	[GRPC_UNAVAILABLE] = "NOTHING_APPLIED",
	[GRPC_UNAUTHENTICATED] = "NO_CREDENTIAL",
};

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

void
grpc_message_utf8(const char *text, struct buf *out)
{
	const uint8_t *p = (const uint8_t *) text;
	size_t		left = strlen(text);

	while (left > 0)
	{
		size_t		n = utf8_sequence(p, left);

		if (n == 0)
			buf_text(out, "\xef\xbf\xbd");
		else
			buf_append(out, p, n);
		p += n > 0 ? n : 1;
		left -= n > 0 ? n : 1;
	}
}

/* ---------------------------------------------------------------- details */

/* A field's tag byte, for numbers below 16. */
#define TAG(number, type)	((uint8_t) ((number) << 3 | (type)))

static void
text_field(struct buf *out, int number, const char *text)
{
	size_t		content = wire_open(out, TAG(number, WIRE_BYTES));

	buf_text(out, text);
	wire_close(out, content);
}

/* Begin one of Status's details, a google.protobuf.Any; its message follows. */
static size_t
open_detail(struct buf *out, const char *type_url, size_t *message)
{
	size_t		any = wire_open(out, TAG(3, WIRE_BYTES));

	text_field(out, 1, type_url);
	*message = wire_open(out, TAG(2, WIRE_BYTES));
	return any;
}

static void
close_detail(struct buf *out, size_t any, size_t message)
{
	wire_close(out, message);
	wire_close(out, any);
}

static void
put_status(enum grpc_status status, const char *message, struct buf *out)
{
	const char *reason = (size_t) status < sizeof(reasons) / sizeof(reasons[0]) ? reasons[status] : NULL;
	size_t		any;
	size_t		inner;
	size_t		content;

	buf_byte(out, TAG(1, WIRE_VARINT));
	wire_varint(out, status);
	content = wire_open(out, TAG(2, WIRE_BYTES));
	grpc_message_utf8(message, out);
	wire_close(out, content);

	any = open_detail(out, "type.googleapis.com/google.rpc.ErrorInfo", &inner);
	text_field(out, 1, reason != NULL ? reason : "UNKNOWN");
	text_field(out, 2, "wiggle");
	close_detail(out, any, inner);

	if (status != GRPC_UNAVAILABLE)
		return;
	any = open_detail(out, "type.googleapis.com/google.rpc.RetryInfo", &inner);
	content = wire_open(out, TAG(1, WIRE_BYTES));
	buf_byte(out, TAG(1, WIRE_VARINT));
	wire_varint(out, RETRY_SECONDS);
	wire_close(out, content);
	close_detail(out, any, inner);
}

void
grpc_details(enum grpc_status status, const char *message, struct buf *out)
{
	struct buf	bytes = BUF_INIT;

	put_status(status, message, &bytes);
	buf_reserve(out, (bytes.len + 2) / 3 * 4 + 1);
	out->len += (size_t) EVP_EncodeBlock(out->data + out->len, bytes.data, (int) bytes.len);
	/* gRPC wants none of base64's padding. */
	while (out->data[out->len - 1] == '=')
		out->len--;
	buf_free(&bytes);
}
