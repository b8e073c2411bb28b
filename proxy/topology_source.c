/*
 * topology_source.c
 *	  The topology that the settings name: a document, a file or a single database.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "topology_source.h"

#define BLANKS " \t\r\n"

static bool
is_set(const char *text)
{
	return text != NULL && *text != '\0';
}

/* ---- a document ---- */

/*
 * The whole of a file, malloc'd; NULL with *err. What is no path is likely a
 * document that something stands in front of, and may hold passwords.
 */
static char *
read_file(const char *path, size_t *len, struct wig_error *err)
{
	FILE	   *file;
	char	   *text;

	if (strpbrk(path, "{\"\n") != NULL)
	{
		wig_fail(err, "WIGGLE_STORAGE_TOPOLOGY is neither the path of a file nor a JSON document, which"
				 " begins with '{'");
		return NULL;
	}
	file = fopen(path, "rb");
	if (file == NULL)
	{
		wig_fail(err, "WIGGLE_STORAGE_TOPOLOGY names the file %s, which cannot be read: %s", path,
				 strerror(errno));
		return NULL;
	}
	/* one byte more tells what is too large from what just fits */
	text = xmalloc(TOPOLOGY_MAX_BYTES + 1);
	*len = fread(text, 1, TOPOLOGY_MAX_BYTES + 1, file);
	if (ferror(file))
	{
		wig_fail(err, "WIGGLE_STORAGE_TOPOLOGY names the file %s, which cannot be read: %s", path,
				 strerror(errno));
		free(text);
		text = NULL;
	}
	fclose(file);
	return text;
}

static struct topology *
read_document(const struct topology_source *source, struct wig_error *err)
{
	const char *start = source->document + strspn(source->document, BLANKS);
	struct topology *topology;
	size_t		len;
	char	   *text;

	if (*start == '{')
		return topology_parse(start, strlen(start), source->variable, source->parameters, err);
	text = read_file(source->document, &len, err);
	if (text == NULL)
		return NULL;
	topology = topology_parse(text, len, source->variable, source->parameters, err);
	free(text);
	return topology;
}

/* ---- a single database ---- */

/*
 * Where the next URL of a list begins: behind a comma that a scheme follows, or
 * nothing, since the hosts of one URL are separated by commas as well.
 */
static const char *
url_end(const char *list)
{
	for (const char *comma = strchr(list, ','); comma != NULL; comma = strchr(comma + 1, ','))
	{
		const char *next = comma + 1 + strspn(comma + 1, BLANKS);

		if (*next == '\0' || *next == ',' || strncmp(next, "jdbc:", 5) == 0 ||
			strncmp(next, "postgresql://", 13) == 0 || strncmp(next, "postgres://", 11) == 0)
			return comma;
	}
	return list + strlen(list);
}

/* "postgresql://a/d,b/d": the second was to be a URL of its own. */
static bool
has_comma_in_path(const char *url)
{
	const char *authority = strstr(url, "://");
	const char *path = authority ? strchr(authority + 3, '/') : NULL;

	return path != NULL && memchr(path, ',', strcspn(path, "?")) != NULL;
}

static bool
add_replica(const struct topology_source *source, struct topology_shard *shard,
			const char *text, size_t len, struct wig_error *err)
{
	struct topology_replica *replica;
	char		what[64];
	char	   *url;

	if (shard->nreplicas == TOPOLOGY_MAX_REPLICAS)
		return wig_fail(err, "WIGGLE_JDBC_REPLICA_URLS lists more than %d replicas", TOPOLOGY_MAX_REPLICAS);
	snprintf(what, sizeof(what), "WIGGLE_JDBC_REPLICA_URLS, replica %d,", shard->nreplicas + 1);
	url = xstrndup(text, len);
	if (has_comma_in_path(url))
	{
		free(url);
		return wig_fail(err, "%s names no single database; begin every URL behind a comma with postgresql://",
						what);
	}
	replica = &shard->replicas[shard->nreplicas];
	replica->url = topology_url(url, what, source->parameters, err);
	free(url);
	if (replica->url == NULL)
		return false;
	shard->nreplicas++;
	replica->user = is_set(source->user) ? xstrdup(source->user) : NULL;
	replica->password = is_set(source->password) ? xstrdup(source->password) : NULL;
	replica->pool = source->replica_pool > 0 ? source->replica_pool : TOPOLOGY_REPLICA_POOL;
	for (int i = 0; i < shard->nreplicas; i++)
	{
		if (strcmp(i == 0 ? shard->url : shard->replicas[i - 1].url, replica->url) == 0)
			return wig_fail(err, "%s has the same url as %s", what,
							i == 0 ? "WIGGLE_JDBC_URL" : "one before it");
	}
	return true;
}

static bool
add_replicas(const struct topology_source *source, struct topology_shard *shard,
			 struct wig_error *err)
{
	const char *at = source->replica_urls;

	shard->replicas = xcalloc(TOPOLOGY_MAX_REPLICAS, sizeof(*shard->replicas));
	while (*at != '\0')
	{
		const char *start = at + strspn(at, BLANKS);
		const char *end = url_end(start);
		const char *last = end;

		while (last > start && strchr(BLANKS, last[-1]) != NULL)
			last--;
		if (last > start && !add_replica(source, shard, start, (size_t) (last - start), err))
			return false;
		at = *end == ',' ? end + 1 : end;
	}
	return true;
}

/* One database, known by its URL alone: shard 0, home, all instances. */
static struct topology *
read_single(const struct topology_source *source, struct wig_error *err)
{
	struct topology *topology = xcalloc(1, sizeof(*topology));
	struct topology_shard *shard = xcalloc(1, sizeof(*shard));
	struct generation *generation = xcalloc(1, sizeof(*generation));

	topology->single = true;
	topology->shards = shard;
	topology->nshards = 1;
	topology->generations = generation;
	topology->ngenerations = 1;
	generation->id = 1;
	generation->weights = xcalloc(1, sizeof(*generation->weights));
	generation->nweights = 1;
	generation->weights[0].weight = 1;
	shard->roles = ROLE_INSTANCES | ROLE_HOME | ROLE_AUTH;
	shard->pool = source->pool > 0 ? source->pool : TOPOLOGY_POOL;
	shard->user = is_set(source->user) ? xstrdup(source->user) : NULL;
	shard->password = is_set(source->password) ? xstrdup(source->password) : NULL;
	shard->max_replica_lag_ms = source->replica_settings ? source->max_replica_lag_ms
		: TOPOLOGY_REPLICA_LAG_MS;
	shard->replica_fallback = source->replica_fallback;
	shard->url = topology_url(source->url, "WIGGLE_JDBC_URL", source->parameters, err);
	if (shard->url != NULL && (!is_set(source->replica_urls) || add_replicas(source, shard, err)))
		return topology;
	topology_free(topology);
	return NULL;
}

/* ---- which of them ---- */

static bool
check_settings(const struct topology_source *source, struct wig_error *err)
{
	bool		has_replicas = is_set(source->replica_urls);

	if (is_set(source->document) && is_set(source->url))
		return wig_fail(err, "both WIGGLE_STORAGE_TOPOLOGY and WIGGLE_JDBC_URL are set; the topology names every"
						" database, so unset WIGGLE_JDBC_URL");
	if (is_set(source->document) && (has_replicas || source->replica_settings))
		return wig_fail(err, "WIGGLE_JDBC_REPLICA_* is set alongside WIGGLE_STORAGE_TOPOLOGY; the topology lists"
						" each shard's replicas, so unset WIGGLE_JDBC_REPLICA_*");
	if (is_set(source->document) || (is_set(source->url) && (has_replicas || !source->replica_settings)))
		return true;
	if (is_set(source->url))
		return wig_fail(err, "a WIGGLE_JDBC_REPLICA_* setting is set without WIGGLE_JDBC_REPLICA_URLS; set it to"
						" the replicas' URLs, or unset the others");
	if (has_replicas || source->replica_settings)
		return wig_fail(err, "WIGGLE_JDBC_REPLICA_* is set without WIGGLE_JDBC_URL, the primary of the replicas");
	return wig_fail(err, "no database is named; set WIGGLE_STORAGE_TOPOLOGY to a topology document or"
					" WIGGLE_JDBC_URL to the URL of one database");
}

struct topology *
topology_read(const struct topology_source *source, struct wig_error *err)
{
	if (!check_settings(source, err))
		return NULL;
	return is_set(source->document) ? read_document(source, err) : read_single(source, err);
}
