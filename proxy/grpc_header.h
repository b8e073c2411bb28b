/*
 * grpc_header.h
 *	  What the header fields of a gRPC request mean. Pure.
 */
#ifndef WIGGLE_PROXY_GRPC_HEADER_H
#define WIGGLE_PROXY_GRPC_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "application/grpc", alone or with "+proto" or parameters behind it. */
extern bool grpc_content_type_ok(const char *value, size_t len);

/* Begins like it: the client asks for gRPC, perhaps for a kind that is not understood. */
extern bool grpc_content_type_like(const char *value, size_t len);

/* At most eight digits and a unit of H M S m u n; rounded up to milliseconds. */
extern bool grpc_timeout_parse(const char *value, size_t len, uint64_t *ms);

/*
 * "/<service>/<method>"; true when the service is Wiggle's (by its present or its first
 * package name) and *method is what follows. Otherwise *method is NULL.
 */
extern bool grpc_path_split(const char *path, size_t len, const char **method, size_t *method_len);

#endif							/* WIGGLE_PROXY_GRPC_HEADER_H */
