/*
 * topology_shard.c
 *	  One shard of a topology: its state and roles, and how to reach its databases.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>

#include "topology.h"
#include "topology_impl.h"

/* Settings that hold for all connections below the level that has them. */
#define SHARED_KEYS "user", "password", "pool", "replicaPool", "maxReplicaLagMillis", "replicaFallback"

static const char *const defaults_keys[] = {SHARED_KEYS, NULL};
static const char *const shard_keys[] =
{"id", "state", "roles", "primary", "replicas", SHARED_KEYS, NULL};
static const char *const primary_keys[] = {"url", "user", "password", "pool", NULL};
static const char *const replica_keys[] = {"url", "user", "password", "pool", "replicaPool", NULL};

static const char *const state_names[] = {"ACTIVE", "DRAINING", "RETIRED", NULL};
static const char *const role_names[] = {"INSTANCES", "HOME", "AUTH", "SEARCH", NULL};
static const char *const fallback_names[] = {"primary", "fail", NULL};

const char *
topology_state_name(enum shard_state state)
{
	return state_names[state];
}

/* The index of a name in a list, whatever its case; -1 when it is not there. */
static int
find_name(json_t *value, const char *const *names)
{
	for (int i = 0; json_is_string(value) && names[i] != NULL; i++)
	{
		if (strcasecmp(names[i], json_string_value(value)) == 0)
			return i;
	}
	return -1;
}

/* ---- settings ---- */

void
topology_settings_free(struct topology_settings *settings)
{
	free(settings->user);
	free(settings->password);
	settings->user = settings->password = NULL;
}

/* Of a password not even a wrong value is shown. */
static bool
refuse_no_text(const struct topology_reader *reader, json_t *value, const char *key, const char *what)
{
	char		shown[TOPOLOGY_SHOWN];

	return wig_fail(reader->err, "%s must be a string, got %s; put it in quotes, or leave it out", what,
					strcmp(key, "password") == 0 ? topology_kind(value) : topology_shown(value, shown));
}

/* A string setting with its variables replaced takes the place of *out, if it is there. */
static bool
read_text(const struct topology_reader *reader, json_t *object, const char *key,
		  const char *where, char **out)
{
	json_t	   *value = json_object_get(object, key);
	char		what[TOPOLOGY_PLACE + 16];
	char	   *text;

	if (value == NULL)
		return true;
	snprintf(what, sizeof(what), "%s %s", where, key);
	if (!json_is_string(value))
		return refuse_no_text(reader, value, key, what);
	text = topology_interpolate(json_string_value(value), what, reader->variable, reader->err);
	if (text == NULL)
		return false;
	free(*out);
	*out = text;
	return true;
}

/* A whole number; *out stays when it is absent. */
static bool
read_number(const struct topology_reader *reader, json_t *object, const char *key,
			const char *where, int64_t min, int64_t max, int64_t *out)
{
	json_t	   *value = json_object_get(object, key);
	char		shown[TOPOLOGY_SHOWN];

	if (value == NULL)
		return true;
	if (!json_is_integer(value) || json_integer_value(value) < min || json_integer_value(value) > max)
		return wig_fail(reader->err, "%s %s must be a %s integer up to %lld, got %s", where, key,
						min > 0 ? "positive" : "non-negative", (long long) max,
						topology_shown(value, shown));
	*out = json_integer_value(value);
	return true;
}

static bool
read_pool(const struct topology_reader *reader, json_t *object, const char *key,
		  const char *where, int *pool)
{
	int64_t		number = *pool;

	if (!read_number(reader, object, key, where, 1, TOPOLOGY_MAX_POOL, &number))
		return false;
	*pool = (int) number;
	return true;
}

static bool
read_fallback(const struct topology_reader *reader, json_t *object, const char *where,
			  enum replica_fallback *fallback)
{
	json_t	   *value = json_object_get(object, "replicaFallback");
	char		shown[TOPOLOGY_SHOWN];
	int			found = find_name(value, fallback_names);

	if (value == NULL)
		return true;
	if (found < 0)
		return wig_fail(reader->err, "%s replicaFallback %s is not one of [primary, fail]", where,
						topology_shown(value, shown));
	*fallback = (enum replica_fallback) found;
	return true;
}

static bool
inherit(char **out, const char *text, struct wig_error *err)
{
	*out = text ? strdup(text) : NULL;
	return text == NULL || *out != NULL || wig_fail(err, "out of memory");
}

/* What the object says, and what the level above says where it says nothing. */
static bool
read_settings(const struct topology_reader *reader, json_t *object, const char *where,
			  const struct topology_settings *above, struct topology_settings *out)
{
	*out = *above;
	out->user = out->password = NULL;
	out->has_pool = json_object_get(object, "pool") != NULL;
	return inherit(&out->user, above->user, reader->err) &&
		inherit(&out->password, above->password, reader->err) &&
		read_text(reader, object, "user", where, &out->user) &&
		read_text(reader, object, "password", where, &out->password) &&
		read_pool(reader, object, "pool", where, &out->pool) &&
		read_pool(reader, object, "replicaPool", where, &out->replica_pool) &&
		read_number(reader, object, "maxReplicaLagMillis", where, 0, TOPOLOGY_MAX_LAG_MS,
					&out->max_replica_lag_ms) &&
		read_fallback(reader, object, where, &out->replica_fallback);
}

bool
topology_read_defaults(struct topology_reader *reader, json_t *defaults)
{
	static const struct topology_settings builtin = {
		.pool = TOPOLOGY_POOL,
		.replica_pool = TOPOLOGY_REPLICA_POOL,
		.max_replica_lag_ms = TOPOLOGY_REPLICA_LAG_MS,
		.replica_fallback = FALLBACK_PRIMARY,
	};

	if (defaults != NULL && !json_is_object(defaults))
		return wig_fail(reader->err, "defaults must be an object like {\"pool\": 12}, got %s",
						topology_kind(defaults));
	if (defaults != NULL && !topology_check_keys(defaults, defaults_keys, "defaults", reader->err))
		return false;
	return read_settings(reader, defaults, "defaults", &builtin, &reader->defaults);
}

/* ---- connections ---- */

/* The url of a primary or a replica, as libpq takes it: malloc'd. */
static char *
read_url(const struct topology_reader *reader, json_t *object, const char *where)
{
	char	   *given = NULL;
	char	   *url = NULL;
	char		what[TOPOLOGY_PLACE + 16];

	if (!read_text(reader, object, "url", where, &given))
		return NULL;
	snprintf(what, sizeof(what), "%s url", where);
	if (given == NULL || given[strspn(given, " \t\r\n")] == '\0')
		wig_fail(reader->err, "%s needs a url, like \"postgresql://host:5432/database\"", where);
	else
		url = topology_url(given, what, reader->parameters, reader->err);
	free(given);
	return url;
}

static bool
read_primary(const struct topology_reader *reader, json_t *primary,
			 const struct topology_settings *above, struct topology_shard *shard)
{
	struct topology_settings settings;
	char		where[TOPOLOGY_PLACE];
	bool		ok;

	if (primary == NULL && shard->state == SHARD_RETIRED)
		return true;
	snprintf(where, sizeof(where), "shard %d primary", shard->id);
	if (!json_is_object(primary))
		return wig_fail(reader->err, "%s needs a url, like {\"url\": \"postgresql://host:5432/database\"}",
						where);
	if (!topology_check_keys(primary, primary_keys, where, reader->err))
		return false;
	shard->url = read_url(reader, primary, where);
	if (shard->url == NULL)
		return false;
	ok = read_settings(reader, primary, where, above, &settings);
	shard->user = settings.user;
	shard->password = settings.password;
	shard->pool = settings.pool;
	return ok;
}

static bool
read_replica(const struct topology_reader *reader, json_t *object, const char *where,
			 const struct topology_settings *above, struct topology_replica *replica)
{
	struct topology_settings settings;
	bool		ok;

	if (!json_is_object(object))
		return wig_fail(reader->err, "%s must be an object with a url, got %s", where, topology_kind(object));
	if (!topology_check_keys(object, replica_keys, where, reader->err))
		return false;
	replica->url = read_url(reader, object, where);
	if (replica->url == NULL)
		return false;
	ok = read_settings(reader, object, where, above, &settings);
	replica->user = settings.user;
	replica->password = settings.password;
	replica->pool = settings.has_pool ? settings.pool : settings.replica_pool;
	return ok;
}

static bool
read_replicas(const struct topology_reader *reader, json_t *object,
			  const struct topology_settings *settings, struct topology_shard *shard)
{
	json_t	   *replicas = json_object_get(object, "replicas");
	size_t		i;
	json_t	   *replica;
	char		where[TOPOLOGY_PLACE];

	if (replicas == NULL)
		return true;
	if (!json_is_array(replicas))
		return wig_fail(reader->err, "shard %d replicas must be an array of objects with a url, got %s", shard->id,
						topology_kind(replicas));
	if (json_array_size(replicas) == 0)
		return true;
	if (json_object_get(object, "primary") == NULL)
		return wig_fail(reader->err, "shard %d lists replicas but has no primary; give it one, or remove"
						" the replicas", shard->id);
	if (json_array_size(replicas) > TOPOLOGY_MAX_REPLICAS)
		return wig_fail(reader->err, "shard %d lists %zu replicas; up to %d are used: remove some", shard->id,
						json_array_size(replicas), TOPOLOGY_MAX_REPLICAS);
	shard->replicas = calloc(json_array_size(replicas), sizeof(*shard->replicas));
	if (shard->replicas == NULL)
		return wig_fail(reader->err, "out of memory");
	json_array_foreach(replicas, i, replica)
	{
		snprintf(where, sizeof(where), "shard %d replica %zu", shard->id, i + 1);
		shard->nreplicas++;
		if (!read_replica(reader, replica, where, settings, &shard->replicas[i]))
			return false;
	}
	return true;
}

/* ---- the shard ---- */

/* nth: the shard's place in the array, from 1. */
static bool
read_id(const struct topology_reader *reader, json_t *object, size_t nth, int32_t *out)
{
	json_t	   *id = json_object_get(object, "id");
	long long	number = json_integer_value(id);
	char		shown[TOPOLOGY_SHOWN];

	if (!json_is_object(object))
		return wig_fail(reader->err, "a shard needs an integer id, but entry %zu of shards is %s; write it as an object with"
						" id, state, roles and primary", nth, topology_kind(object));
	if (!json_is_integer(id))
		return wig_fail(reader->err, "a shard needs an integer id, got %s in entry %zu of shards; give it a number from 0 to"
						" %d that no other has", id ? topology_shown(id, shown) : "none", nth, TOPOLOGY_MAX_SHARD_ID);
	if (number < 0)
		return wig_fail(reader->err, "shard ids are not negative: %lld, in entry %zu of shards; take one from 0 to %d", number,
						nth, TOPOLOGY_MAX_SHARD_ID);
	if (number > TOPOLOGY_MAX_SHARD_ID)
		return wig_fail(reader->err, "shard ids go up to %d: %lld, in entry %zu of shards; take a smaller one",
						TOPOLOGY_MAX_SHARD_ID, number, nth);
	*out = (int32_t) number;
	return true;
}

static bool
read_state(const struct topology_reader *reader, json_t *state, struct topology_shard *shard)
{
	char		shown[TOPOLOGY_SHOWN];
	int			found = find_name(state, state_names);

	if (state == NULL)
		return wig_fail(reader->err, "shard %d state is missing; it is one of [ACTIVE, DRAINING, RETIRED]",
						shard->id);
	if (found < 0)
		return wig_fail(reader->err, "shard %d state %s is not one of [ACTIVE, DRAINING, RETIRED]",
						shard->id, topology_shown(state, shown));
	shard->state = (enum shard_state) found;
	return true;
}

static bool
read_roles(const struct topology_reader *reader, json_t *roles, struct topology_shard *shard)
{
	size_t		i;
	json_t	   *role;
	char		shown[TOPOLOGY_SHOWN];

	if (roles == NULL || (json_is_array(roles) && json_array_size(roles) == 0))
		return wig_fail(reader->err, "shard %d has no roles; give it some of [instances, home, auth, search]",
						shard->id);
	if (!json_is_array(roles))
		return wig_fail(reader->err, "shard %d roles must be an array like [\"instances\"], got %s", shard->id,
						topology_shown(roles, shown));
	json_array_foreach(roles, i, role)
	{
		int			found = find_name(role, role_names);

		if (found < 0)
			return wig_fail(reader->err, "shard %d role %s is not one of [instances, home, auth, search]",
							shard->id, topology_shown(role, shown));
		shard->roles |= 1u << found;
	}
	return true;
}

bool
topology_read_shard(const struct topology_reader *reader, json_t *object, size_t nth,
					struct topology_shard *shard)
{
	struct topology_settings settings = {0};
	char		where[TOPOLOGY_PLACE];
	bool		ok;

	if (!read_id(reader, object, nth, &shard->id))
		return false;
	snprintf(where, sizeof(where), "shard %d", shard->id);
	ok = topology_check_keys(object, shard_keys, where, reader->err) &&
		read_state(reader, json_object_get(object, "state"), shard) &&
		read_roles(reader, json_object_get(object, "roles"), shard) &&
		read_settings(reader, object, where, &reader->defaults, &settings) &&
		read_replicas(reader, object, &settings, shard) &&
		read_primary(reader, json_object_get(object, "primary"), &settings, shard);
	shard->max_replica_lag_ms = settings.max_replica_lag_ms;
	shard->replica_fallback = settings.replica_fallback;
	topology_settings_free(&settings);
	return ok;
}
