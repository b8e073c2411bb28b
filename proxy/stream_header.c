/*
 * stream_header.c
 *	  What the header fields of a call say.
 */
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "config.h"
#include "connect.h"
#include "grpc_gzip.h"
#include "grpc_header.h"
#include "stream.h"

/* Header fields beyond so many times the bound are not even counted on. */
#define HEADER_EXCESS		4

/* More than any cursor has. */
#define AFTER_BYTES			64

void
stream_refuse(struct call *call, enum grpc_status status, uint16_t http_status, const char *message)
{
	if (call->refusal != NULL)
		return;
	call->refusal = message;
	call->refusal_status = status;
	call->http_status = http_status;
}

static void
take_path(struct call *call, const char *value, size_t len)
{
	const char *method;
	size_t		method_len;

	call->pathed = true;
	if (!grpc_path_split(value, len, &method, &method_len))
	{
		call->method = method_find_standard(value, len, &call->shape, &call->grpc_only);
		if (call->method == NULL)
			stream_refuse(call, GRPC_UNIMPLEMENTED, 404, "unknown service or method: this server has"
						  " com.wiggle.proto.WiggleControlPlane, pg_wiggle.v1.ShardService, pg_wiggle.v1.AuthService,"
						  " grpc.health.v1.Health and"
						  " grpc.reflection");
	}
	else if ((call->method = method_find(method, method_len)) == NULL || call->method->start == NULL)
		stream_refuse(call, GRPC_UNIMPLEMENTED, 404,
					  "this server has no such method of com.wiggle.proto.WiggleControlPlane");
}

static void
take_encoding(struct call *call, const char *value, size_t len)
{
	if (len == 4 && memcmp(value, "gzip", 4) == 0)
		call->frame.takes_compressed = true;
	else if (len != 8 || memcmp(value, "identity", 8) != 0)
		stream_refuse(call, GRPC_UNIMPLEMENTED, 200, "the grpc-encoding is neither identity nor gzip");
}

/* A cursor is short and of plain characters: of anything else as much is kept as a refusal can show. */
static void
take_after(struct call *call, const char *value, size_t len)
{
	free(call->after);
	call->after = xstrndup(value, len < AFTER_BYTES ? len : AFTER_BYTES);
	for (char *p = call->after; *p != '\0'; p++)
	{
		if (*p < ' ' || *p > '~')
			*p = '?';
	}
}

/* Who does not ask for gRPC is told what is wrong in the body. */
static void
take_type(struct call *call, const char *value, size_t len)
{
	if (call->conn != NULL && grpc_content_type_ok(value, len))
		call->typed = true;
	else if (connect_content_type(value, len, &call->format))
	{
		call->typed = true;
		call->protocol = PROTOCOL_CONNECT;
	}
	else if (!grpc_content_type_like(value, len))
		call->protocol = PROTOCOL_CONNECT;
}

/* Fields that only Connect gives a meaning. */
static void
check_connect(struct call *call)
{
	if (call->grpc_only)
	{
		call->method = NULL;
		call->shape = METHOD_UNARY;
		stream_refuse(call, GRPC_UNIMPLEMENTED, 404, "this service is for gRPC alone");
	}
	if (call->encoded)
		stream_refuse(call, GRPC_UNIMPLEMENTED, 200,
					  "compressed messages are not understood; send them with identity encoding");
	else if (call->content_length > (uint64_t) config.max_message_bytes)
		stream_refuse(call, GRPC_RESOURCE_EXHAUSTED, 200, REQUEST_TOO_LARGE);
}

#define IS(literal) (name_len == sizeof(literal) - 1 && memcmp(name, literal, sizeof(literal) - 1) == 0)

bool
stream_header(struct call *call, const uint8_t *name, size_t name_len,
			  const uint8_t *value, size_t value_len)
{
	const char *text = (const char *) value;

	if (call->state != CALL_HEADERS)
		return true;
	call->header_bytes += name_len + value_len + 32;
	if (call->header_bytes > HEADER_EXCESS * (size_t) config.max_header_bytes)
		return false;
	if (call->header_bytes > (size_t) config.max_header_bytes)
		stream_refuse(call, GRPC_RESOURCE_EXHAUSTED, 200,
					  "the call's metadata is too large (WIGGLE_MAX_HEADER_BYTES)");
	else if (IS(":method"))
	{
		if (value_len != 4 || memcmp(value, "POST", 4) != 0)
			stream_refuse(call, GRPC_UNIMPLEMENTED, 405, "calls are POST requests");
	}
	else if (IS(":path"))
		take_path(call, text, value_len);
	else if (IS("content-type"))
		take_type(call, text, value_len);
	else if (IS("grpc-timeout"))
	{
		if (!grpc_timeout_parse(text, value_len, &call->timeout_ms))
			stream_refuse(call, GRPC_INVALID_ARGUMENT, 200,
						  "grpc-timeout is not up to eight digits and a unit of H M S m u n");
	}
	else if (IS("grpc-encoding"))
		take_encoding(call, text, value_len);
	else if (IS("grpc-accept-encoding"))
		call->accepts_gzip = grpc_gzip_accepted(text, value_len);
	else if (IS("connect-timeout-ms"))
	{
		if (!connect_number(text, value_len, &call->timeout_ms))
			stream_refuse(call, GRPC_INVALID_ARGUMENT, 200, "connect-timeout-ms is not up to ten digits");
	}
	else if (IS("connect-protocol-version"))
	{
		if (value_len != 1 || *value != '1')
			stream_refuse(call, GRPC_INVALID_ARGUMENT, 200, "connect-protocol-version is not 1");
	}
	else if (IS("wiggle-partial"))
		call->takes_part = value_len == 5 && memcmp(value, "allow", 5) == 0;
	else if (IS("wiggle-after"))
		take_after(call, text, value_len);
	else if (IS("authorization"))
	{
		if (config.grpc_auth != GRPC_AUTH_OFF)
			credential_from_header(&call->credential, text, value_len);
	}
	else if (IS("content-encoding"))
		call->encoded = value_len != 8 || memcmp(value, "identity", 8) != 0;
	else if (IS("content-length"))
	{
		if (!connect_number(text, value_len, &call->content_length))
			call->content_length = UINT64_MAX;
	}
	return true;
}

void
stream_check_headers(struct call *call)
{
	/* What is wrong with the wrapping is told before what is wrong inside. Behind
	 * fields that are too large nothing was looked at. */
	if (!call->typed && call->http_status != 405 && call->refusal_status != GRPC_RESOURCE_EXHAUSTED)
	{
		call->refusal = NULL;
		stream_refuse(call, GRPC_INVALID_ARGUMENT, 415, call->conn == NULL
					  ? "the content-type must be application/json or application/proto; gRPC has its own port"
					  : "the content-type must be application/grpc, application/json or application/proto");
	}
	if (call->protocol == PROTOCOL_CONNECT)
		check_connect(call);
}
