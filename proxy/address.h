/*
 * address.h
 *	  Addresses to listen on.
 */
#ifndef WIGGLE_PROXY_ADDRESS_H
#define WIGGLE_PROXY_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "error.h"

/* An IPv4 or IPv6 address in numbers, and a port. setting names it in *err. */
extern bool address_parse(const char *setting, const char *text, int64_t port,
						  struct sockaddr_storage *out, struct wig_error *err);

/* The port of a bound address. */
extern int	address_port(const struct sockaddr_storage *addr);

#endif							/* WIGGLE_PROXY_ADDRESS_H */
