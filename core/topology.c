/*
 * topology.c
 *	  Which databases there are: the document, read and checked as a whole.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "nearest.h"
#include "topology.h"
#include "topology_impl.h"

static const char *const document_keys[] = {"defaults", "shards", "generations", NULL};

/* For who writes a key at another level: whose it is. */
static const struct
{
	const char *key;
	const char *owner;
}			owners[] = {
	{"defaults", "the document itself"},
	{"shards", "the document itself"},
	{"generations", "the document itself"},
	{"id", "a shard or a generation"},
	{"state", "a shard"},
	{"roles", "a shard"},
	{"primary", "a shard"},
	{"replicas", "a shard"},
	{"url", "a shard's primary or of a replica"},
	{"user", "a shard, its primary, a replica or of defaults"},
	{"password", "a shard, its primary, a replica or of defaults"},
	{"pool", "a shard, its primary, a replica or of defaults"},
	{"replicaPool", "the shard or of defaults"},
	{"maxReplicaLagMillis", "the shard or of defaults"},
	{"replicaFallback", "the shard or of defaults"},
	{"activeFrom", "a generation"},
	{"weights", "a generation"},
};

const char *
topology_shown(json_t *value, char out[TOPOLOGY_SHOWN])
{
	char	   *text = NULL;
	size_t		len;

	if (json_is_object(value) || json_is_array(value))
	{
		snprintf(out, TOPOLOGY_SHOWN, "an %s", json_is_object(value) ? "object" : "array");
		return out;
	}
	text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII);
	len = text ? strlen(text) : 0;
	if (json_is_string(value) && len >= 2)
		snprintf(out, TOPOLOGY_SHOWN, "'%.*s'", (int) (len - 2 < 60 ? len - 2 : 60), text + 1);
	else
		snprintf(out, TOPOLOGY_SHOWN, "%.60s", text ? text : "?");
	free(text);
	return out;
}

const char *
topology_kind(json_t *value)
{
	switch (json_typeof(value))
	{
		case JSON_OBJECT:
			return "an object";
		case JSON_ARRAY:
			return "an array";
		case JSON_STRING:
			return "a string";
		case JSON_INTEGER:
		case JSON_REAL:
			return "a number";
		case JSON_NULL:
			return "null";
		default:
			return "true or false";
	}
}

static const char *
owner_of(const char *key)
{
	for (size_t i = 0; i < sizeof(owners) / sizeof(owners[0]); i++)
	{
		if (strcmp(owners[i].key, key) == 0)
			return owners[i].owner;
	}
	return NULL;
}

bool
topology_check_keys(json_t *object, const char *const *known, const char *where,
					struct wig_error *err)
{
	const char *key;
	json_t	   *value;

	json_object_foreach(object, key, value)
	{
		bool		found = false;
		char		shown[TOPOLOGY_SHOWN];
		json_t	   *name;
		const char *near;

		for (int i = 0; known[i] != NULL && !found; i++)
			found = strcmp(known[i], key) == 0;
		if (found)
			continue;
		if (owner_of(key) != NULL)
			return wig_fail(err, "%s has the key '%s', which is one of %s; move it there", where, key, owner_of(key));
		name = json_string(key);
		topology_shown(name, shown);
		json_decref(name);
		near = wig_nearest(key, known);
		return wig_fail(err, "%s has the unknown key %s; %s%s%s", where, shown,
						near ? "did you mean '" : "remove it", near ? near : "", near ? "'?" : "");
	}
	return true;
}

static bool
read_shards(const struct topology_reader *reader, json_t *shards)
{
	struct topology *topology = reader->topology;
	size_t		i;
	json_t	   *object;

	if (shards != NULL && !json_is_array(shards))
		return wig_fail(reader->err, "shards must be an array of objects, got %s", topology_kind(shards));
	if (json_array_size(shards) == 0)
		return wig_fail(reader->err, "the topology lists no shards; give each database an entry in the array shards");
	topology->shards = calloc(json_array_size(shards), sizeof(*topology->shards));
	if (topology->shards == NULL)
		return wig_fail(reader->err, "out of memory");
	json_array_foreach(shards, i, object)
	{
		topology->nshards++;
		if (!topology_read_shard(reader, object, i + 1, &topology->shards[i]))
			return false;
		for (size_t j = 0; j < i; j++)
		{
			if (topology->shards[j].id == topology->shards[i].id)
				return wig_fail(reader->err, "shard %d is listed twice, as entries %zu and %zu of shards; give one of"
								" them another id, or remove it", topology->shards[i].id, j + 1, i + 1);
		}
	}
	return true;
}

/* ---- the document as a whole ---- */

/*
 * The newest generation must weigh only active shards. Older ones are history:
 * a shard that has begun to drain since keeps its place in them.
 */
static bool
check_newest_generation(const struct topology_reader *reader)
{
	const struct topology *topology = reader->topology;
	const struct generation *newest = &topology->generations[topology->ngenerations - 1];

	for (int i = 0; i < newest->nweights; i++)
	{
		const struct topology_shard *shard = &topology->shards[newest->weights[i].shard];

		if (newest->weights[i].weight > 0 && shard->state != SHARD_ACTIVE)
			return wig_fail(reader->err, "generation %lld weighs shard %d, which is %s; append a generation"
							" without it", (long long) newest->id, shard->id,
							topology_state_name(shard->state));
	}
	return true;
}

/* How many shards carry the role; the last one's index in *at. */
static int
count_role(const struct topology *topology, enum shard_role role, int *at)
{
	int			n = 0;

	for (int i = 0; i < topology->nshards; i++)
	{
		if ((topology->shards[i].roles & role) == 0)
			continue;
		n++;
		*at = i;
	}
	return n;
}

static bool
check_roles(const struct topology_reader *reader)
{
	struct topology *topology = reader->topology;
	int			auth = 0;
	int			homes = count_role(topology, ROLE_HOME, &topology->home);
	int			auths = count_role(topology, ROLE_AUTH, &auth);
	int			serving = 0;
	bool		instances = false;

	for (int i = 0; i < topology->nshards; i++)
	{
		const struct topology_shard *shard = &topology->shards[i];

		serving += topology_serves(shard);
		instances = instances || ((shard->roles & ROLE_INSTANCES) != 0 && shard->state != SHARD_RETIRED);
	}
	if (homes > 1)
		return wig_fail(reader->err, "exactly one shard carries the home role; %d do, shard %d the last of them: take"
						" \"home\" from the roles of all but one", homes, topology->shards[topology->home].id);
	if (homes == 0)
		return wig_fail(reader->err, "exactly one shard carries the home role; 0 do: add \"home\" to the roles of the"
						" one that keeps schedules and the list of shards");
	if (auths > 1)
		return wig_fail(reader->err, "exactly one shard carries the auth role; %d do, shard %d the last of them: take"
						" \"auth\" from the roles of all but one", auths, topology->shards[auth].id);
	if (topology->shards[topology->home].state != SHARD_ACTIVE)
		return wig_fail(reader->err, "the home shard is %d; it stays ACTIVE, but its state is %s: set it to active",
						topology->shards[topology->home].id,
						topology_state_name(topology->shards[topology->home].state));
	if (auths == 1 && topology->shards[auth].state != SHARD_ACTIVE)
		return wig_fail(reader->err, "the auth role is shard %d's, which keeps the keys and roles of clients; it stays ACTIVE, but"
						" its state is %s: give the role to another shard first", topology->shards[auth].id,
						topology_state_name(topology->shards[auth].state));
	if (!instances)
		return wig_fail(reader->err, "no shard carries the instances role; add \"instances\" to the roles of each that"
						" is to hold instances and is not retired");
	if (serving > TOPOLOGY_MAX_SHARDS)
		return wig_fail(reader->err, "the topology lists %d shards that are not retired; up to %d are served",
						serving, TOPOLOGY_MAX_SHARDS);
	if (auths == 0)
		topology->shards[topology->home].roles |= ROLE_AUTH;
	return true;
}

/* The n-th connection of the shard, its primary first; NULL behind the last. */
static const char *
connection_url(const struct topology_shard *shard, int n)
{
	if (n == 0)
		return shard->url;
	return n <= shard->nreplicas ? shard->replicas[n - 1].url : NULL;
}

static void
connection_name(const struct topology_shard *shard, int n, char out[TOPOLOGY_PLACE])
{
	if (n == 0)
		snprintf(out, TOPOLOGY_PLACE, "shard %d primary", shard->id);
	else
		snprintf(out, TOPOLOGY_PLACE, "shard %d replica %d", shard->id, n);
}

/* The connection before the given one with the same url, if there is one. */
static bool
check_url(const struct topology_reader *reader, int at, int n)
{
	const struct topology *topology = reader->topology;
	const char *url = connection_url(&topology->shards[at], n);
	char		one[TOPOLOGY_PLACE];
	char		other[TOPOLOGY_PLACE];

	for (int i = 0; i <= at; i++)
	{
		const struct topology_shard *shard = &topology->shards[i];

		for (int k = 0; topology_serves(shard) && (i < at || k < n) && connection_url(shard, k); k++)
		{
			if (strcmp(connection_url(shard, k), url) != 0)
				continue;
			connection_name(shard, k, one);
			connection_name(&topology->shards[at], n, other);
			return wig_fail(reader->err, "%s and %s have the same url; each needs a database of its own", one,
							other);
		}
	}
	return true;
}

/* Two equal URLs are one database; the rest is found when the databases are asked. */
static bool
check_urls(const struct topology_reader *reader)
{
	const struct topology *topology = reader->topology;

	for (int i = 0; i < topology->nshards; i++)
	{
		const struct topology_shard *shard = &topology->shards[i];

		for (int n = 0; topology_serves(shard) && connection_url(shard, n) != NULL; n++)
		{
			if (!check_url(reader, i, n))
				return false;
		}
	}
	return true;
}

static bool
read_document(struct topology_reader *reader, json_t *document)
{
	if (!json_is_object(document))
		return wig_fail(reader->err, "the storage topology must be a JSON object like {\"shards\": [...],"
						" \"generations\": [...]}, got an array");
	return topology_check_keys(document, document_keys, "the storage topology", reader->err) &&
		topology_read_defaults(reader, json_object_get(document, "defaults")) &&
		read_shards(reader, json_object_get(document, "shards")) &&
		check_roles(reader) &&
		check_urls(reader) &&
		topology_read_generations(reader, json_object_get(document, "generations")) &&
		check_newest_generation(reader);
}

/* What is wrong, without the text that it is near to: that may be a password. */
static void
tell_problem(const json_error_t *problem, struct wig_error *err)
{
	const char *near = strstr(problem->text, " near '");

	wig_fail(err, "the storage topology is not valid JSON: line %d, column %d: %.*s", problem->line,
			 problem->column, near ? (int) (near - problem->text) : (int) strlen(problem->text),
			 problem->text);
}

struct topology *
topology_parse(const char *json, size_t len, const char *(*variable) (const char *name),
			   const char *const *parameters, struct wig_error *err)
{
	json_error_t problem;
	json_t	   *document;
	struct topology_reader reader = {.variable = variable, .parameters = parameters, .err = err};
	bool		ok;

	if (len > TOPOLOGY_MAX_BYTES)
	{
		wig_fail(err, "the storage topology has more than %d bytes; no more are read", TOPOLOGY_MAX_BYTES);
		return NULL;
	}
	if (len >= 3 && memcmp(json, "\xef\xbb\xbf", 3) == 0)
	{
		wig_fail(err, "the storage topology is not valid JSON: it begins with a byte order mark; remove it");
		return NULL;
	}
	document = json_loadb(json, len, JSON_REJECT_DUPLICATES, &problem);
	if (document == NULL)
	{
		tell_problem(&problem, err);
		return NULL;
	}
	reader.topology = calloc(1, sizeof(*reader.topology));
	ok = reader.topology != NULL ? read_document(&reader, document) : wig_fail(err, "out of memory");
	topology_settings_free(&reader.defaults);
	json_decref(document);
	if (ok)
		return reader.topology;
	topology_free(reader.topology);
	return NULL;
}

static void
free_shard(struct topology_shard *shard)
{
	for (int i = 0; i < shard->nreplicas; i++)
	{
		free(shard->replicas[i].url);
		free(shard->replicas[i].user);
		free(shard->replicas[i].password);
	}
	free(shard->replicas);
	free(shard->url);
	free(shard->user);
	free(shard->password);
}

void
topology_free(struct topology *topology)
{
	if (topology == NULL)
		return;
	for (int i = 0; i < topology->nshards; i++)
		free_shard(&topology->shards[i]);
	for (int i = 0; i < topology->ngenerations; i++)
		free(topology->generations[i].weights);
	free(topology->shards);
	free(topology->generations);
	free(topology);
}

int
topology_find(const struct topology *topology, int32_t id)
{
	for (int i = 0; i < topology->nshards; i++)
	{
		if (topology->shards[i].id == id)
			return i;
	}
	return -1;
}

int
topology_auth(const struct topology *topology)
{
	int			at = topology->home;

	count_role(topology, ROLE_AUTH, &at);
	return at;
}

bool
topology_serves(const struct topology_shard *shard)
{
	return shard->state != SHARD_RETIRED && (shard->roles & (ROLE_INSTANCES | ROLE_HOME | ROLE_AUTH)) != 0;
}
