/*
 * descriptors.h
 *	  The protocols of this server as descriptors, in the bytes that protoc made.
 *
 * The set is compiled in: google.protobuf.FileDescriptorProto messages, each
 * behind those that it imports. A file is known by its place in the set.
 */
#ifndef WIGGLE_PROXY_DESCRIPTORS_H
#define WIGGLE_PROXY_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DESCRIPTOR_FILES	10

/* The file of this name, or the one that defines what bears this full name (a service, a
 * method, a message, a field, a oneof, an enum or one of its values); -1 when there is none. */
extern int	descriptors_by_name(const char *name);
extern int	descriptors_by_symbol(const char *symbol);

/* A file's bytes; they live for ever. */
extern const uint8_t *descriptors_file(int file, size_t *len);

/* Mark the file and all that it imports, directly or not. */
extern void descriptors_closure(int file, bool wanted[DESCRIPTOR_FILES]);

/* Calls each() with the full name of every service. */
extern void descriptors_services(void (*each) (const char *name, void *arg), void *arg);

#endif							/* WIGGLE_PROXY_DESCRIPTORS_H */
