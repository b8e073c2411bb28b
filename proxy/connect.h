/*
 * connect.h
 *	  The Connect protocol for unary calls: what its fields and answers are. Pure.
 *
 * https://connectrpc.com/docs/protocol: a POST whose body is the message, in JSON
 * or protobuf by its content-type; a success is 200 with the message, a refusal is
 * another HTTP status with {"code", "message"} in JSON, whatever the request was.
 */
#ifndef WIGGLE_PROXY_CONNECT_H
#define WIGGLE_PROXY_CONNECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "call.h"

/* application/json or application/proto, in any case, with or without parameters. */
extern bool connect_content_type(const char *value, size_t len, enum call_format *format);

/* One to ten digits. */
extern bool connect_number(const char *value, size_t len, uint64_t *number);

/* The HTTP status of a refusal. */
extern uint16_t connect_http_status(enum grpc_status status);

/* Append the body of a refusal; what is not UTF-8 in the message is replaced. */
extern void connect_error(enum grpc_status status, const char *message, struct buf *body);

/* The content-type of an answer. */
extern const char *connect_reply_type(uint16_t http_status, enum call_format format);

/* The field (in lower case) that says what would be taken, for 405 and 415; else NULL. */
extern const char *connect_hint(unsigned http_status, const char **value);

#endif							/* WIGGLE_PROXY_CONNECT_H */
