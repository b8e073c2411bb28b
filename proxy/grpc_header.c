/*
 * grpc_header.c
 *	  What the header fields of a gRPC request mean.
 */
#include <string.h>
#include <strings.h>

#include "grpc_header.h"

#define TYPE		"application/grpc"
#define TYPE_LEN	(sizeof(TYPE) - 1)

bool
grpc_content_type_ok(const char *value, size_t len)
{
	static const char proto[] = "+proto";

	if (len < TYPE_LEN || strncasecmp(value, TYPE, TYPE_LEN) != 0)
		return false;
	value += TYPE_LEN;
	len -= TYPE_LEN;
	if (len >= sizeof(proto) - 1 && strncasecmp(value, proto, sizeof(proto) - 1) == 0)
	{
		value += sizeof(proto) - 1;
		len -= sizeof(proto) - 1;
	}
	return len == 0 || *value == ';' || *value == ' ';
}

bool
grpc_content_type_like(const char *value, size_t len)
{
	return len >= TYPE_LEN && strncasecmp(value, TYPE, TYPE_LEN) == 0;
}

bool
grpc_timeout_parse(const char *value, size_t len, uint64_t *ms)
{
	uint64_t	n = 0;

	if (len < 2 || len > 9)
		return false;
	for (size_t i = 0; i < len - 1; i++)
	{
		if (value[i] < '0' || value[i] > '9')
			return false;
		n = n * 10 + (uint64_t) (value[i] - '0');
	}
	switch (value[len - 1])
	{
		case 'H':
			*ms = n * 3600000;
			return true;
		case 'M':
			*ms = n * 60000;
			return true;
		case 'S':
			*ms = n * 1000;
			return true;
		case 'm':
			*ms = n;
			return true;
		case 'u':
			*ms = (n + 999) / 1000;
			return true;
		case 'n':
			*ms = (n + 999999) / 1000000;
			return true;
		default:
			return false;
	}
}

bool
grpc_path_split(const char *path, size_t len, const char **method, size_t *method_len)
{
	static const char *const services[] = {
		"/com.wiggle.proto.WiggleControlPlane/",
		"/dev.wiggle.proto.WiggleControlPlane/"
	};

	for (size_t i = 0; i < sizeof(services) / sizeof(services[0]); i++)
	{
		size_t		n = strlen(services[i]);

		if (len >= n && memcmp(path, services[i], n) == 0)
		{
			*method = path + n;
			*method_len = len - n;
			return true;
		}
	}
	*method = NULL;
	*method_len = 0;
	return false;
}
