/*
 * topology.c
 *	  Which databases there are: the document, read and checked as a whole.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>

#include "nearest.h"
#include "topology.h"
#include "topology_url.h"

#define DEFAULT_POOL			10
#define DEFAULT_REPLICA_POOL	16
#define MAX_POOL				1000
#define MAX_SHARD_ID			999999999

/* Settings that a connection may take from its own object, the shard or defaults. */
#define CONNECTION_KEYS "user", "password", "pool", "replicaPool", "maxReplicaLagMillis", "replicaFallback"

static const char *const document_keys[] = {"defaults", "shards", "generations", NULL};
static const char *const defaults_keys[] = {CONNECTION_KEYS, NULL};
static const char *const shard_keys[] =
{"id", "state", "roles", "primary", "replicas", CONNECTION_KEYS, NULL};
static const char *const primary_keys[] = {"url", CONNECTION_KEYS, NULL};
static const char *const generation_keys[] = {"id", "activeFrom", "weights", NULL};
static const char *const state_names[] = {"ACTIVE", "DRAINING", "RETIRED", NULL};
static const char *const role_names[] = {"INSTANCES", "HOME", "AUTH", "SEARCH", NULL};

/* What one pass over the document carries along. */
struct reader
{
	struct topology *topology;
	json_t	   *defaults;
	const char *(*variable) (const char *name);
	struct wig_error *err;
};

static bool
check_keys(json_t *object, const char *const *known, const char *where, struct wig_error *err)
{
	const char *key;
	json_t	   *value;

	json_object_foreach(object, key, value)
	{
		bool		found = false;
		const char *near;

		for (int i = 0; known[i] != NULL && !found; i++)
			found = strcmp(known[i], key) == 0;
		if (found)
			continue;
		near = wig_nearest(key, known);
		return wig_fail(err, "%s has the unknown key '%.60s'%s%s%s", where, key,
						near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
	}
	return true;
}

/* The index of a name in a list, whatever its case; -1 when it is not there. */
static int
find_name(const char *text, const char *const *names)
{
	for (int i = 0; names[i] != NULL; i++)
	{
		if (strcasecmp(names[i], text) == 0)
			return i;
	}
	return -1;
}

/* The setting's value from the nearest of the three levels, NULL when none has it. */
static json_t *
inherited(const struct reader *reader, json_t *own, json_t *shard, const char *key)
{
	json_t	   *value = json_object_get(own, key);

	if (value == NULL)
		value = json_object_get(shard, key);
	if (value == NULL)
		value = json_object_get(reader->defaults, key);
	return value;
}

/* A string setting with its variables replaced; *out stays NULL when it is absent. */
static bool
read_text(const struct reader *reader, json_t *value, const char *what, char **out)
{
	if (value == NULL || json_is_null(value))
		return true;
	if (!json_is_string(value))
		return wig_fail(reader->err, "%s must be a string", what);
	if (strlen(json_string_value(value)) != json_string_length(value))
		return wig_fail(reader->err, "%s must not hold a zero byte", what);
	*out = topology_interpolate(json_string_value(value), what, reader->variable, reader->err);
	return *out != NULL;
}

static bool
read_pool(const struct reader *reader, json_t *value, const char *what, int fallback, int *out)
{
	char	   *text;

	*out = fallback;
	if (value == NULL)
		return true;
	if (json_is_integer(value) && json_integer_value(value) >= 1 &&
		json_integer_value(value) <= MAX_POOL)
	{
		*out = (int) json_integer_value(value);
		return true;
	}
	text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
	wig_fail(reader->err, "%s must be a positive integer up to %d, got %.60s", what, MAX_POOL,
			 text ? text : "?");
	free(text);
	return false;
}

/* Settings of replicas are checked although nothing reads from replicas yet. */
static bool
check_replica_settings(const struct reader *reader, json_t *own, json_t *shard, int32_t id)
{
	json_t	   *lag = inherited(reader, own, shard, "maxReplicaLagMillis");
	json_t	   *fallback = inherited(reader, own, shard, "replicaFallback");

	if (lag != NULL && (!json_is_integer(lag) || json_integer_value(lag) < 0))
	{
		char	   *text = json_dumps(lag, JSON_ENCODE_ANY | JSON_COMPACT);

		wig_fail(reader->err, "shard %d maxReplicaLagMillis must be a non-negative integer, got %.60s",
				 id, text ? text : "?");
		free(text);
		return false;
	}
	if (fallback != NULL &&
		(!json_is_string(fallback) || (strcasecmp(json_string_value(fallback), "primary") != 0 &&
									   strcasecmp(json_string_value(fallback), "fail") != 0)))
		return wig_fail(reader->err, "shard %d replicaFallback must be \"primary\" or \"fail\"", id);
	return true;
}

static bool
read_primary(const struct reader *reader, json_t *object, struct topology_shard *shard)
{
	json_t	   *primary = json_object_get(object, "primary");
	char		what[64];
	char	   *url = NULL;
	bool		ok;

	if (primary == NULL && shard->state == SHARD_RETIRED)
		return true;
	snprintf(what, sizeof(what), "shard %d primary", shard->id);
	if (!json_is_object(primary))
		return wig_fail(reader->err, "shard %d primary needs a url", shard->id);
	if (!check_keys(primary, primary_keys, what, reader->err))
		return false;
	snprintf(what, sizeof(what), "shard %d primary url", shard->id);
	if (!read_text(reader, json_object_get(primary, "url"), what, &url))
		return false;
	if (url == NULL || *url == '\0')
	{
		free(url);
		return wig_fail(reader->err, "shard %d primary needs a url", shard->id);
	}
	shard->url = topology_url(url, what, reader->err);
	free(url);
	if (shard->url == NULL)
		return false;
	snprintf(what, sizeof(what), "shard %d user", shard->id);
	ok = read_text(reader, inherited(reader, primary, object, "user"), what, &shard->user);
	snprintf(what, sizeof(what), "shard %d password", shard->id);
	ok = ok && read_text(reader, inherited(reader, primary, object, "password"), what,
						 &shard->password);
	snprintf(what, sizeof(what), "shard %d pool", shard->id);
	ok = ok && read_pool(reader, inherited(reader, primary, object, "pool"), what, DEFAULT_POOL,
						 &shard->pool);
	snprintf(what, sizeof(what), "shard %d replicaPool", shard->id);
	ok = ok && read_pool(reader, inherited(reader, primary, object, "replicaPool"), what,
						 DEFAULT_REPLICA_POOL, &shard->replica_pool);
	return ok && check_replica_settings(reader, primary, object, shard->id);
}

static bool
read_roles(const struct reader *reader, json_t *roles, struct topology_shard *shard)
{
	size_t		i;
	json_t	   *role;

	if (!json_is_array(roles) || json_array_size(roles) == 0)
		return wig_fail(reader->err, "shard %d has no roles", shard->id);
	json_array_foreach(roles, i, role)
	{
		const char *text = json_is_string(role) ? json_string_value(role) : "?";
		int			found = find_name(text, role_names);

		if (found < 0)
			return wig_fail(reader->err,
							"shard %d role '%.60s' is not one of [instances, home, auth, search]",
							shard->id, text);
		shard->roles |= 1u << found;
	}
	return true;
}

static bool
read_replicas(const struct reader *reader, json_t *object, struct topology_shard *shard)
{
	json_t	   *replicas = json_object_get(object, "replicas");
	size_t		i;
	json_t	   *replica;
	char		what[64];

	if (replicas == NULL)
		return true;
	if (!json_is_array(replicas))
		return wig_fail(reader->err, "shard %d replicas must be an array", shard->id);
	if (json_array_size(replicas) > 0 && json_object_get(object, "primary") == NULL)
		return wig_fail(reader->err, "shard %d lists replicas but has no primary", shard->id);
	json_array_foreach(replicas, i, replica)
	{
		char	   *url = NULL;
		char	   *checked;

		snprintf(what, sizeof(what), "shard %d replica %zu", shard->id, i + 1);
		if (!json_is_object(replica))
			return wig_fail(reader->err, "%s must be an object with a url", what);
		if (!check_keys(replica, primary_keys, what, reader->err))
			return false;
		snprintf(what, sizeof(what), "shard %d replica %zu url", shard->id, i + 1);
		if (!read_text(reader, json_object_get(replica, "url"), what, &url))
			return false;
		if (url == NULL)
			return wig_fail(reader->err, "shard %d replica %zu needs a url", shard->id, i + 1);
		checked = topology_url(url, what, reader->err);
		free(url);
		if (checked == NULL)
			return false;
		free(checked);
	}
	shard->replicas = (int) json_array_size(replicas);
	return true;
}

static bool
read_shard(const struct reader *reader, json_t *object, struct topology_shard *shard)
{
	json_t	   *id = json_object_get(object, "id");
	json_t	   *state = json_object_get(object, "state");
	char		where[32];
	int			found;

	if (!json_is_object(object) || !json_is_integer(id))
		return wig_fail(reader->err, "a shard needs an integer id");
	if (json_integer_value(id) < 0)
		return wig_fail(reader->err, "shard ids are not negative: %lld",
						(long long) json_integer_value(id));
	if (json_integer_value(id) > MAX_SHARD_ID)
		return wig_fail(reader->err, "shard id %lld is over %d", (long long) json_integer_value(id),
						MAX_SHARD_ID);
	shard->id = (int32_t) json_integer_value(id);
	snprintf(where, sizeof(where), "shard %d", shard->id);
	if (!check_keys(object, shard_keys, where, reader->err))
		return false;
	if (!json_is_string(state))
		return wig_fail(reader->err, "shard %d state is missing", shard->id);
	found = find_name(json_string_value(state), state_names);
	if (found < 0)
		return wig_fail(reader->err, "shard %d state '%.60s' is not one of [ACTIVE, DRAINING, RETIRED]",
						shard->id, json_string_value(state));
	shard->state = (enum shard_state) found;
	return read_roles(reader, json_object_get(object, "roles"), shard) &&
		read_replicas(reader, object, shard) && read_primary(reader, object, shard);
}

static bool
read_shards(const struct reader *reader, json_t *shards)
{
	struct topology *topology = reader->topology;
	size_t		i;
	json_t	   *object;

	if (!json_is_array(shards) || json_array_size(shards) == 0)
		return wig_fail(reader->err, "the topology lists no shards");
	topology->shards = calloc(json_array_size(shards), sizeof(*topology->shards));
	if (topology->shards == NULL)
		return wig_fail(reader->err, "out of memory");
	json_array_foreach(shards, i, object)
	{
		topology->nshards++;
		if (!read_shard(reader, object, &topology->shards[i]))
			return false;
		for (size_t j = 0; j < i; j++)
		{
			if (topology->shards[j].id == topology->shards[i].id)
				return wig_fail(reader->err, "shard %d is listed twice", topology->shards[i].id);
		}
	}
	return true;
}

/* One weight: the key names a shard that may take instances. */
static bool
read_weight(const struct reader *reader, const struct generation *generation, const char *key,
			json_t *value, struct generation_weight *weight)
{
	const struct topology *topology = reader->topology;
	const struct topology_shard *shard;
	long long	id = (long long) generation->id;
	char	   *end;
	long		number;

	errno = 0;
	number = strtol(key, &end, 10);
	if (*key < '0' || *key > '9' || *end != '\0' || errno != 0 || number > MAX_SHARD_ID)
		return wig_fail(reader->err, "generation %lld weighs '%.60s', which is not a shard id", id, key);
	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
		json_integer_value(value) > TOPOLOGY_MAX_WEIGHT)
		return wig_fail(reader->err,
						"generation %lld gives shard %ld a weight that is not a non-negative integer up to %d",
						id, number, TOPOLOGY_MAX_WEIGHT);
	weight->weight = (int32_t) json_integer_value(value);
	weight->shard = topology_find(topology, (int32_t) number);
	if (weight->shard < 0)
		return wig_fail(reader->err, "generation %lld weighs shard %ld, which is not listed", id, number);
	if (weight->weight == 0)
		return true;
	shard = &topology->shards[weight->shard];
	if ((shard->roles & ROLE_INSTANCES) == 0)
		return wig_fail(reader->err, "generation %lld weighs shard %ld, which holds no instances", id,
						number);
	return true;
}

static bool
read_generation(const struct reader *reader, json_t *object, struct generation *generation)
{
	json_t	   *id = json_object_get(object, "id");
	json_t	   *from = json_object_get(object, "activeFrom");
	json_t	   *weights = json_object_get(object, "weights");
	char		where[48];
	const char *key;
	json_t	   *value;
	bool		positive = false;

	if (!json_is_object(object) || !json_is_integer(id))
		return wig_fail(reader->err, "a generation needs an integer id");
	generation->id = json_integer_value(id);
	snprintf(where, sizeof(where), "generation %lld", (long long) generation->id);
	if (!check_keys(object, generation_keys, where, reader->err))
		return false;
	if (!json_is_string(from) || !topology_instant(json_string_value(from), &generation->active_from_ms))
		return wig_fail(reader->err,
						"%s needs activeFrom as an ISO-8601 instant, like \"2026-10-01T00:00:00Z\"", where);
	if (!json_is_object(weights) || json_object_size(weights) == 0)
		return wig_fail(reader->err, "%s gives no shard a positive weight", where);
	generation->weights = calloc(json_object_size(weights), sizeof(*generation->weights));
	if (generation->weights == NULL)
		return wig_fail(reader->err, "out of memory");
	json_object_foreach(weights, key, value)
	{
		struct generation_weight *weight = &generation->weights[generation->nweights];

		if (!read_weight(reader, generation, key, value, weight))
			return false;
		for (int i = 0; i < generation->nweights; i++)
		{
			if (generation->weights[i].shard == weight->shard)
				return wig_fail(reader->err, "%s weighs shard %s twice", where, key);
		}
		generation->nweights++;
		positive = positive || weight->weight > 0;
	}
	if (!positive)
		return wig_fail(reader->err, "%s gives no shard a positive weight", where);
	return true;
}

static bool
read_generations(const struct reader *reader, json_t *generations)
{
	struct topology *topology = reader->topology;
	size_t		i;
	json_t	   *object;

	if (!json_is_array(generations) || json_array_size(generations) == 0)
		return wig_fail(reader->err,
						"the topology has no generations, so nothing says where to mint");
	topology->generations = calloc(json_array_size(generations), sizeof(*topology->generations));
	if (topology->generations == NULL)
		return wig_fail(reader->err, "out of memory");
	json_array_foreach(generations, i, object)
	{
		struct generation *generation = &topology->generations[i];

		topology->ngenerations++;
		if (!read_generation(reader, object, generation))
			return false;
		if (i > 0 && (generation->id <= generation[-1].id ||
					  generation->active_from_ms <= generation[-1].active_from_ms))
			return wig_fail(reader->err,
							"generation %lld must come after generation %lld in both id and activeFrom",
							(long long) generation->id, (long long) generation[-1].id);
	}
	return true;
}

/*
 * The newest generation must weigh only active shards. Older ones are history:
 * a shard that has begun to drain since keeps its place in them.
 */
static bool
check_newest_generation(const struct reader *reader)
{
	const struct topology *topology = reader->topology;
	const struct generation *newest = &topology->generations[topology->ngenerations - 1];

	for (int i = 0; i < newest->nweights; i++)
	{
		const struct topology_shard *shard = &topology->shards[newest->weights[i].shard];

		if (newest->weights[i].weight > 0 && shard->state != SHARD_ACTIVE)
			return wig_fail(reader->err, "generation %lld weighs shard %d, which is %s",
							(long long) newest->id, shard->id, state_names[shard->state]);
	}
	return true;
}

static bool
check_roles(const struct reader *reader)
{
	struct topology *topology = reader->topology;
	int			homes = 0;
	int			auths = 0;
	int			serving = 0;
	bool		instances = false;

	for (int i = 0; i < topology->nshards; i++)
	{
		const struct topology_shard *shard = &topology->shards[i];

		if (shard->roles & ROLE_HOME)
		{
			homes++;
			topology->home = i;
		}
		auths += (shard->roles & ROLE_AUTH) != 0;
		serving += topology_serves(shard);
		instances = instances || (shard->roles & ROLE_INSTANCES) != 0;
	}
	if (homes != 1)
		return wig_fail(reader->err, "exactly one shard carries the home role; %d do", homes);
	if (auths > 1)
		return wig_fail(reader->err, "exactly one shard carries the auth role; %d do", auths);
	if (topology->shards[topology->home].state != SHARD_ACTIVE)
		return wig_fail(reader->err, "the home shard is %d; it stays ACTIVE",
						topology->shards[topology->home].id);
	if (!instances)
		return wig_fail(reader->err, "no shard carries the instances role");
	if (serving > TOPOLOGY_MAX_SHARDS)
		return wig_fail(reader->err, "the topology lists %d shards that are not retired; up to %d are served",
						serving, TOPOLOGY_MAX_SHARDS);
	if (auths == 0)
		topology->shards[topology->home].roles |= ROLE_AUTH;
	return true;
}

/* Two equal URLs are one database; the rest is found when the databases are asked. */
static bool
check_urls(const struct reader *reader)
{
	const struct topology *topology = reader->topology;

	for (int i = 0; i < topology->nshards; i++)
	{
		for (int j = 0; j < i; j++)
		{
			const struct topology_shard *a = &topology->shards[j];
			const struct topology_shard *b = &topology->shards[i];

			if (topology_serves(a) && topology_serves(b) && strcmp(a->url, b->url) == 0)
				return wig_fail(reader->err, "shard %d and shard %d have the same primary url", a->id,
								b->id);
		}
	}
	return true;
}

static bool
read_document(const struct reader *reader, json_t *document)
{
	if (!json_is_object(document))
		return wig_fail(reader->err, "the storage topology must be a JSON object");
	if (!check_keys(document, document_keys, "the storage topology", reader->err))
		return false;
	if (reader->defaults != NULL && !json_is_object(reader->defaults))
		return wig_fail(reader->err, "defaults must be an object");
	if (reader->defaults != NULL && !check_keys(reader->defaults, defaults_keys, "defaults", reader->err))
		return false;
	return read_shards(reader, json_object_get(document, "shards")) &&
		check_roles(reader) &&
		check_urls(reader) &&
		read_generations(reader, json_object_get(document, "generations")) &&
		check_newest_generation(reader);
}

struct topology *
topology_parse(const char *json, size_t len, const char *(*variable) (const char *name),
			   struct wig_error *err)
{
	json_error_t problem;
	json_t	   *document;
	struct topology *topology;
	struct reader reader;
	bool		ok;

	if (len > TOPOLOGY_MAX_BYTES)
	{
		wig_fail(err, "the storage topology has %zu bytes; up to %d are read", len, TOPOLOGY_MAX_BYTES);
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
		wig_fail(err, "the storage topology is not valid JSON: line %d, column %d: %s", problem.line,
				 problem.column, problem.text);
		return NULL;
	}
	topology = calloc(1, sizeof(*topology));
	reader = (struct reader) {topology, json_object_get(document, "defaults"), variable, err};
	ok = topology != NULL && read_document(&reader, document);
	json_decref(document);
	if (ok)
		return topology;
	topology_free(topology);
	return NULL;
}

/* The whole of a file, malloc'd; NULL with *err. */
static char *
read_file(const char *path, size_t *len, struct wig_error *err)
{
	FILE	   *file = fopen(path, "rb");
	char	   *text = malloc(TOPOLOGY_MAX_BYTES + 1);

	if (file == NULL || text == NULL)
		wig_fail(err, "WIGGLE_STORAGE_TOPOLOGY names the file %s, which cannot be read: %s", path,
				 strerror(errno));
	else
	{
		*len = fread(text, 1, TOPOLOGY_MAX_BYTES + 1, file);
		if (!ferror(file))
		{
			fclose(file);
			return text;
		}
		wig_fail(err, "WIGGLE_STORAGE_TOPOLOGY names the file %s, which cannot be read", path);
	}
	if (file != NULL)
		fclose(file);
	free(text);
	return NULL;
}

/* One database, known by its URL alone: shard 0, home, all instances. */
static struct topology *
topology_single(const struct topology_source *source, struct wig_error *err)
{
	struct topology *topology = calloc(1, sizeof(*topology));
	struct topology_shard *shard;
	struct generation *generation;

	if (topology == NULL ||
		(topology->shards = calloc(1, sizeof(*topology->shards))) == NULL ||
		(topology->generations = calloc(1, sizeof(*topology->generations))) == NULL ||
		(topology->generations->weights = calloc(1, sizeof(*topology->generations->weights))) == NULL)
	{
		topology_free(topology);
		wig_fail(err, "out of memory");
		return NULL;
	}
	topology->nshards = topology->ngenerations = 1;
	topology->single = true;
	shard = topology->shards;
	shard->roles = ROLE_INSTANCES | ROLE_HOME | ROLE_AUTH;
	shard->pool = source->pool > 0 ? source->pool : DEFAULT_POOL;
	shard->url = topology_url(source->url, "WIGGLE_JDBC_URL", err);
	if (source->user != NULL && *source->user != '\0')
		shard->user = strdup(source->user);
	if (source->password != NULL && *source->password != '\0')
		shard->password = strdup(source->password);
	generation = topology->generations;
	generation->id = 1;
	generation->nweights = 1;
	generation->weights[0].weight = 1;
	if (shard->url != NULL)
		return topology;
	topology_free(topology);
	return NULL;
}

struct topology *
topology_read(const struct topology_source *source, struct wig_error *err)
{
	bool		has_document = source->document != NULL && *source->document != '\0';
	bool		has_url = source->url != NULL && *source->url != '\0';
	struct topology *topology;
	const char *start;
	size_t		len;
	char	   *text;

	if (has_document && has_url)
	{
		wig_fail(err, "both WIGGLE_STORAGE_TOPOLOGY and WIGGLE_JDBC_URL are set; the topology names every"
				 " database, so unset WIGGLE_JDBC_URL");
		return NULL;
	}
	if (!has_document && !has_url)
	{
		wig_fail(err, "no database is named; set WIGGLE_STORAGE_TOPOLOGY to a topology document or"
				 " WIGGLE_JDBC_URL to the URL of one database");
		return NULL;
	}
	if (has_url)
		return topology_single(source, err);
	start = source->document + strspn(source->document, " \t\r\n");
	if (*start == '{')
		return topology_parse(start, strlen(start), source->variable, err);
	text = read_file(source->document, &len, err);
	if (text == NULL)
		return NULL;
	topology = topology_parse(text, len, source->variable, err);
	free(text);
	return topology;
}

void
topology_free(struct topology *topology)
{
	if (topology == NULL)
		return;
	for (int i = 0; i < topology->nshards; i++)
	{
		free(topology->shards[i].url);
		free(topology->shards[i].user);
		free(topology->shards[i].password);
	}
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

bool
topology_serves(const struct topology_shard *shard)
{
	return shard->state != SHARD_RETIRED && (shard->roles & (ROLE_INSTANCES | ROLE_HOME)) != 0;
}
