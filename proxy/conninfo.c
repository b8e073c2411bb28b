/*
 * conninfo.c
 *	  What libpq makes of a URL, before anything is connected to.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "conninfo.h"

PQconninfoOption *
conninfo_parse(const char *what, const char *url, struct wig_error *err)
{
	char	   *problem = NULL;
	PQconninfoOption *options = PQconninfoParse(url, &problem);

	/* libpq quotes the URL, which may hold a password */
	if (options == NULL)
		wig_fail(err, "%s is not a valid PostgreSQL URL; write a '%%' that stands for itself as %%25, an IPv6 address in"
				 " brackets, and each parameter as name=value", what);
	PQfreemem(problem);
	return options;
}

/* n: 0 for the primary, else the replica. */
static void
name_url(const struct topology *topology, const struct topology_shard *shard, int n, char *out, size_t size)
{
	if (topology->single && n == 0)
		snprintf(out, size, "WIGGLE_JDBC_URL");
	else if (topology->single)
		snprintf(out, size, "WIGGLE_JDBC_REPLICA_URLS, replica %d,", n);
	else if (n == 0)
		snprintf(out, size, "shard %d primary url", shard->id);
	else
		snprintf(out, size, "shard %d replica %d url", shard->id, n);
}

bool
conninfo_check(const struct topology *topology, struct wig_error *err)
{
	for (int i = 0; i < topology->nshards; i++)
	{
		const struct topology_shard *shard = &topology->shards[i];

		for (int n = 0; topology_serves(shard) && n <= shard->nreplicas; n++)
		{
			char		what[64];
			PQconninfoOption *options;

			name_url(topology, shard, n, what, sizeof(what));
			options = conninfo_parse(what, n == 0 ? shard->url : shard->replicas[n - 1].url, err);
			if (options == NULL)
				return false;
			PQconninfoFree(options);
		}
	}
	return true;
}

const char *const *
conninfo_parameters(void)
{
	static const char **names;
	PQconninfoOption *options;
	size_t		n = 0;

	if (names != NULL)
		return names;
	/* of nothing libpq gives all that it knows, and looks at no environment */
	options = PQconninfoParse("", NULL);
	if (options == NULL)
		abort();
	while (options[n].keyword != NULL)
		n++;
	names = xcalloc(n + 1, sizeof(*names));
	n = 0;
	for (const PQconninfoOption *option = options; option->keyword != NULL; option++)
	{
		if (strchr(option->dispchar, 'D') == NULL)
			names[n++] = xstrdup(option->keyword);
	}
	PQconninfoFree(options);
	return names;
}
