/*
 * address.c
 *	  Addresses to listen on.
 */
#include <netinet/in.h>
#include <string.h>
#include <uv.h>

#include "address.h"

bool
address_parse(const char *setting, const char *text, int64_t port,
			  struct sockaddr_storage *out, struct wig_error *err)
{
	memset(out, 0, sizeof(*out));
	if (uv_ip4_addr(text, (int) port, (struct sockaddr_in *) out) == 0 ||
		uv_ip6_addr(text, (int) port, (struct sockaddr_in6 *) out) == 0)
		return true;
	return wig_fail(err, "%s is '%s', but must be an IPv4 or IPv6 address in numbers, such as 0.0.0.0, 127.0.0.1 or ::",
					setting, text);
}

int
address_port(const struct sockaddr_storage *addr)
{
	if (addr->ss_family == AF_INET6)
		return ntohs(((const struct sockaddr_in6 *) addr)->sin6_port);
	return ntohs(((const struct sockaddr_in *) addr)->sin_port);
}
