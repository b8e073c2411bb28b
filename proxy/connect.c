/*
 * connect.c
 *	  The Connect protocol for unary calls: what its fields and answers are.
 */
#include <string.h>
#include <strings.h>

#include "connect.h"

static const struct
{
	const char *name;
	uint16_t	http_status;
}			codes[] = {
	[GRPC_OK] = {"", 200},
	[GRPC_CANCELLED] = {"canceled", 499},
	[GRPC_UNKNOWN] = {"unknown", 500},
	[GRPC_INVALID_ARGUMENT] = {"invalid_argument", 400},
	[GRPC_DEADLINE_EXCEEDED] = {"deadline_exceeded", 504},
	[GRPC_NOT_FOUND] = {"not_found", 404},
	[GRPC_ALREADY_EXISTS] = {"already_exists", 409},
	[GRPC_PERMISSION_DENIED] = {"permission_denied", 403},
	[GRPC_RESOURCE_EXHAUSTED] = {"resource_exhausted", 429},
	[GRPC_FAILED_PRECONDITION] = {"failed_precondition", 400},
	[GRPC_ABORTED] = {"aborted", 409},
	[GRPC_OUT_OF_RANGE] = {"out_of_range", 400},
	[GRPC_UNIMPLEMENTED] = {"unimplemented", 501},
	[GRPC_INTERNAL] = {"internal", 500},
	[GRPC_UNAVAILABLE] = {"unavailable", 503},
	[GRPC_DATA_LOSS] = {"data_loss", 500},
	[GRPC_UNAUTHENTICATED] = {"unauthenticated", 401},
};

bool
connect_content_type(const char *value, size_t len, enum call_format *format)
{
	static const char *const types[] = {[CALL_PROTOBUF] = "application/proto", [CALL_JSON] = "application/json"};

	for (int i = CALL_PROTOBUF; i <= CALL_JSON; i++)
	{
		size_t		n = strlen(types[i]);

		if (len < n || strncasecmp(value, types[i], n) != 0)
			continue;
		if (len > n && value[n] != ';' && value[n] != ' ')
			continue;
		*format = (enum call_format) i;
		return true;
	}
	return false;
}

bool
connect_number(const char *value, size_t len, uint64_t *number)
{
	uint64_t	n = 0;

	if (len == 0 || len > 10)
		return false;
	for (size_t i = 0; i < len; i++)
	{
		if (value[i] < '0' || value[i] > '9')
			return false;
		n = n * 10 + (uint64_t) (value[i] - '0');
	}
	*number = n;
	return true;
}

uint16_t
connect_http_status(enum grpc_status status)
{
	return codes[status].http_status;
}

void
connect_error(enum grpc_status status, const char *message, struct buf *body)
{
	struct buf	text = BUF_INIT;

	grpc_message_utf8(message, &text);
	buf_printf(body, "{\"code\":\"%s\",\"message\":", codes[status].name);
	buf_json(body, buf_cstr(&text));
	buf_byte(body, '}');
	buf_free(&text);
}

const char *
connect_reply_type(uint16_t http_status, enum call_format format)
{
	return http_status == 200 && format == CALL_PROTOBUF ? "application/proto" : "application/json";
}

const char *
connect_hint(unsigned http_status, const char **value)
{
	switch (http_status)
	{
		case 405:
			*value = "POST";
			return "allow";
		case 415:
			*value = "application/json, application/proto, application/grpc";
			return "accept-post";
		default:
			return NULL;
	}
}
