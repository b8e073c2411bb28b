/*
 * topology_generation.c
 *	  Where new instances go from when on: the generations of a topology.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <jansson.h>

#include "topology.h"
#include "topology_impl.h"

static const char *const generation_keys[] = {"id", "activeFrom", "weights", NULL};

/* One weight: the key names a shard that may take instances. */
static bool
read_weight(const struct topology_reader *reader, const struct generation *generation,
			const char *key, json_t *value, struct generation_weight *weight)
{
	const struct topology *topology = reader->topology;
	long long	id = (long long) generation->id;
	char		shown[TOPOLOGY_SHOWN];
	json_t	   *name = json_string(key);
	char	   *end;
	long		number;

	topology_shown(name, shown);
	json_decref(name);
	errno = 0;
	number = strtol(key, &end, 10);
	if (*key < '0' || *key > '9' || *end != '\0' || errno != 0 || number > TOPOLOGY_MAX_SHARD_ID)
		return wig_fail(reader->err, "generation %lld weighs %s, which is not a shard id; write one that is listed under"
						" shards", id, shown);
	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
		json_integer_value(value) > TOPOLOGY_MAX_WEIGHT)
		return wig_fail(reader->err, "generation %lld gives shard %ld a weight that is not a non-negative"
						" integer up to %d, got %s", id, number, TOPOLOGY_MAX_WEIGHT,
						topology_shown(value, shown));
	weight->weight = (int32_t) json_integer_value(value);
	weight->shard = topology_find(topology, (int32_t) number);
	if (weight->shard < 0)
		return wig_fail(reader->err, "generation %lld weighs shard %ld, which is not listed; list it under"
						" shards, or remove the weight", id, number);
	if (weight->weight > 0 && (topology->shards[weight->shard].roles & ROLE_INSTANCES) == 0)
		return wig_fail(reader->err, "generation %lld weighs shard %ld, which holds no instances; give it"
						" the role instances, or remove the weight", id, number);
	return true;
}

static bool
read_weights(const struct topology_reader *reader, json_t *weights, struct generation *generation)
{
	const char *key;
	json_t	   *value;
	bool		positive = false;

	generation->weights = calloc(json_object_size(weights) + 1, sizeof(*generation->weights));
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
				return wig_fail(reader->err, "generation %lld weighs shard %d twice; remove one of the two",
								(long long) generation->id,
								reader->topology->shards[weight->shard].id);
		}
		generation->nweights++;
		positive = positive || weight->weight > 0;
	}
	return positive || wig_fail(reader->err, "generation %lld gives no shard a positive weight, so nothing"
								" could be minted; give one at least a weight from 1 to %d", (long long) generation->id,
								TOPOLOGY_MAX_WEIGHT);
}

/* nth: its place in the array, from 1, for one that has no id yet. */
static bool
read_generation(const struct topology_reader *reader, json_t *object, size_t nth, struct generation *generation)
{
	json_t	   *id = json_object_get(object, "id");
	json_t	   *from = json_object_get(object, "activeFrom");
	json_t	   *weights = json_object_get(object, "weights");
	char		where[TOPOLOGY_PLACE];
	char		shown[TOPOLOGY_SHOWN];

	if (!json_is_object(object))
		return wig_fail(reader->err, "a generation needs an integer id, but entry %zu of generations is %s; write it as an"
						" object with id, activeFrom and weights", nth, topology_kind(object));
	if (!json_is_integer(id))
		return wig_fail(reader->err, "a generation needs an integer id, got %s in entry %zu of generations; give it a number"
						" greater than the one before has", id ? topology_shown(id, shown) : "none", nth);
	generation->id = json_integer_value(id);
	snprintf(where, sizeof(where), "generation %lld", (long long) generation->id);
	if (!topology_check_keys(object, generation_keys, where, reader->err))
		return false;
	if (!json_is_string(from) || !topology_instant(json_string_value(from), &generation->active_from_ms))
		return wig_fail(reader->err,
						"%s needs activeFrom as an ISO-8601 instant, like \"2026-10-01T00:00:00Z\"%s%s", where,
						from ? ", got " : "", from ? topology_shown(from, shown) : "");
	if (weights != NULL && !json_is_object(weights))
		return wig_fail(reader->err, "%s weights must be an object like {\"0\": 1}, got %s", where,
						topology_shown(weights, shown));
	return read_weights(reader, weights, generation);
}

/* Does it follow the one before it in the array? */
static bool
check_order(const struct topology_reader *reader, json_t *former, json_t *object, const struct generation *generation)
{
	char		shown[TOPOLOGY_SHOWN];
	char		before[TOPOLOGY_SHOWN];

	if (generation->id <= generation[-1].id)
		return wig_fail(reader->err, "generation %lld must come after generation %lld in both id and activeFrom; give the later"
						" one an id greater than %lld", (long long) generation->id, (long long) generation[-1].id,
						(long long) generation[-1].id);
	if (generation->active_from_ms > generation[-1].active_from_ms)
		return true;
	return wig_fail(reader->err, "generation %lld must come after generation %lld in both id and activeFrom, but"
					" begins at %s and that one at %s; give it a later activeFrom", (long long) generation->id, (long long) generation[-1].id,
					topology_shown(json_object_get(object, "activeFrom"), shown),
					topology_shown(json_object_get(former, "activeFrom"), before));
}

bool
topology_read_generations(const struct topology_reader *reader, json_t *generations)
{
	struct topology *topology = reader->topology;
	size_t		i;
	json_t	   *object;

	if (generations != NULL && !json_is_array(generations))
		return wig_fail(reader->err, "generations must be an array of objects, got %s",
						topology_kind(generations));
	if (json_array_size(generations) == 0)
		return wig_fail(reader->err, "the topology has no generations, so nothing says where to mint; add \"generations\":"
						" [{\"id\": 1, \"activeFrom\": \"2026-10-01T00:00:00Z\", \"weights\": {\"%d\": 1}}]",
						topology->shards[topology->home].id);
	topology->generations = calloc(json_array_size(generations), sizeof(*topology->generations));
	if (topology->generations == NULL)
		return wig_fail(reader->err, "out of memory");
	json_array_foreach(generations, i, object)
	{
		struct generation *generation = &topology->generations[i];

		topology->ngenerations++;
		if (!read_generation(reader, object, i + 1, generation) ||
			(i > 0 && !check_order(reader, json_array_get(generations, i - 1), object, generation)))
			return false;
	}
	return true;
}

void
topology_write_instant(int64_t unix_ms, char *out)
{
	int64_t		ms = (unix_ms % 1000 + 1000) % 1000;
	time_t		seconds = (time_t) ((unix_ms - ms) / 1000);
	struct tm	utc;
	char		stamp[TOPOLOGY_INSTANT_LEN - 8];

	gmtime_r(&seconds, &utc);
	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(out, TOPOLOGY_INSTANT_LEN, "%s.%03dZ", stamp, (int) ms);
}
