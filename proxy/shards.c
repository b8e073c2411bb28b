/*
 * shards.c
 *	  All shards of the topology, which may change while the process runs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "drain.h"
#include "home_clock.h"
#include "log.h"
#include "loop.h"
#include "placement.h"
#include "random.h"
#include "replicas.h"
#include "shard.h"
#include "shards.h"
#include "topology_merge.h"

static struct topology *topology;
static struct shard **shards;	/* by the topology's index; NULL = was retired when the process started */
static struct placement *placement;
static struct shard *slots[TOPOLOGY_MAX_SHARDS];
static int	nslots;
static void (*on_serving) (void);
static void (*on_refused) (void);

struct shard *
shard_at(int index)
{
	return shards[index];
}

struct shard *
shard_by_slot(int slot)
{
	return slots[slot];
}

int
shard_slots(void)
{
	return nslots;
}

const struct topology *
shard_topology(void)
{
	return topology;
}

const struct shard *
shard_twin(const struct shard *shard, const char *system_id, const char *database)
{
	for (int i = 0; i < nslots; i++)
	{
		if (slots[i] != shard && slots[i]->phase != SHARD_GONE && strcmp(slots[i]->system_id, system_id) == 0 &&
			strcmp(slots[i]->database, database) == 0)
			return slots[i];
	}
	return NULL;
}

/* ---- placement ---- */

static bool
takes(int index)
{
	return shards[index] != NULL && shard_takes(shards[index]);
}

bool
shards_crowded(void)
{
	bool		some = false;

	for (int slot = 0; slot < shard_slots(); slot++)
	{
		const struct shard *shard = shard_by_slot(slot);

		if (!shard_usable(shard) || shard_retired(shard))
			continue;
		if (!shard_crowded(shard))
			return false;
		some = true;
	}
	return some;
}

struct shard *
shard_for_instance(void)
{
	static int64_t told = -1;
	int64_t		now_ms = home_clock_ms();
	int64_t		in_force = topology->generations[placement_generation(topology, now_ms)].id;
	int			index;

	if (in_force != told)
		log_info("topology", "generation %lld is in force", (long long) in_force);
	told = in_force;
	index = placement_pick(placement, now_ms, takes);
	return shards[index >= 0 ? index : placement_pick(placement, now_ms, NULL)];
}

bool
shard_weighs(const struct shard *shard)
{
	const struct generation *generation = &topology->generations[placement_generation(topology, home_clock_ms())];

	for (int i = 0; i < generation->nweights; i++)
	{
		if (generation->weights[i].shard == shard->index)
			return generation->weights[i].weight > 0;
	}
	return false;
}

/* ---- from start to end ---- */

void
shards_tell_serving(void)
{
	on_serving();
}

void
shards_tell_refused(void)
{
	on_refused();
}

static void
add(int index, struct target *target)
{
	shards[index] = shard_create(&topology->shards[index], index, nslots, target);
	slots[nslots++] = shards[index];
}

static void
turn(void)
{
	for (int i = 0; i < nslots; i++)
		shard_turn(slots[i]);
}

static bool
idle(void)
{
	for (int i = 0; i < nslots; i++)
	{
		if (!shard_idle(slots[i]))
			return false;
	}
	return true;
}

static void
stop(void)
{
	for (int i = 0; i < nslots; i++)
		shard_stop(slots[i]);
}

static struct target *
make_target(const struct topology_shard *entry, struct wig_error *err)
{
	char		what[32];

	snprintf(what, sizeof(what), "shard %d primary", entry->id);
	return target_create(what, entry->url, entry->user, entry->password, SESSION_WRITES, err);
}

/* Before home is heard only what is wrong at any time: this host's clock refuses nothing. */
static bool
check_generations(const struct topology *document, struct wig_error *err)
{
	return placement_check(document, home_clock_known() ? home_clock_ms() : INT64_MAX, err);
}

/* Before any generation has begun the first one is gone by: better than to refuse every start. */
static void
tell_generations(void)
{
	if (!topology->single && topology->generations[0].active_from_ms > home_clock_ms())
		log_warn("topology", "no generation is active yet: until its activeFrom new instances go by"
				 " generation %lld all the same", (long long) topology->generations[0].id);
}

bool
shards_judge(struct wig_error *err)
{
	static bool told;

	if (!check_generations(topology, err))
		return false;
	if (!told)
		tell_generations();
	told = true;
	return true;
}

bool
shards_start(struct topology *document, void (*serving) (void), void (*refused) (void),
			 struct wig_error *err)
{
	static const struct drain_hook hook = {.name = "shards", .idle = idle, .stop = stop};

	topology = document;
	on_serving = serving;
	on_refused = refused;
	if (!check_generations(topology, err))
		return false;
	placement = placement_create(topology, (uint32_t) random_u64());
	shards = xcalloc((size_t) topology->nshards, sizeof(*shards));
	for (int i = 0; i < topology->nshards; i++)
	{
		struct target *target;

		if (!topology_serves(&topology->shards[i]))
			continue;
		if (!replicas_check(&topology->shards[i], err))
			return false;
		target = make_target(&topology->shards[i], err);
		if (target == NULL)
			return false;
		add(i, target);
	}
	loop_turn(TURN_LANES, turn);
	drain_register(&hook);
	for (int i = 0; i < nslots; i++)
		shard_start(slots[i]);
	return true;
}

/* ---- another document ---- */

static void
free_targets(const struct topology *document, struct target **targets)
{
	for (int i = 0; i < document->nshards; i++)
		target_free(targets[i]);
	free(targets);
}

/* A target for each shard that is new or to be reached in another way; by index, NULL for the others. */
static struct target **
make_targets(const struct topology *document, struct wig_error *err)
{
	struct target **targets = xcalloc((size_t) document->nshards, sizeof(struct target *));
	bool		ok = true;

	for (int i = 0; i < document->nshards && ok; i++)
	{
		const struct topology_shard *entry = &document->shards[i];

		if (!topology_serves(entry))
			continue;
		ok = replicas_check(entry, err);
		if (!ok || (i < topology->nshards && topology_same_target(&topology->shards[i], entry)))
			continue;
		targets[i] = make_target(entry, err);
		ok = targets[i] != NULL;
	}
	if (ok)
		return targets;
	free_targets(document, targets);
	return NULL;
}

/* A poll's bits are not used for another shard while the process lives. */
static bool
check_slots(const struct topology *document, struct wig_error *err)
{
	int			more = 0;

	for (int i = topology->nshards; i < document->nshards; i++)
		more += topology_serves(&document->shards[i]);
	return nslots + more <= TOPOLOGY_MAX_SHARDS ||
		wig_fail(err, "%d shards have served since this server started and %d are new; up to %d fit: restart it with the"
				 " new document", nslots, more, TOPOLOGY_MAX_SHARDS);
}

static const char *
fallback_name(enum replica_fallback fallback)
{
	return fallback == FALLBACK_PRIMARY ? "primary" : "fail";
}

/* What is different about a shard that is known, for the log. */
static int
tell_shard(const struct topology_shard *was, const struct topology_shard *is, bool moves)
{
	int			changes = 0;

	if (was->state != is->state && ++changes)
		log_info("topology", "shard %d: is %s, was %s", is->id, topology_state_name(is->state),
				 topology_state_name(was->state));
	if (is->state != SHARD_RETIRED && was->pool != is->pool && ++changes)
		log_info("topology", "shard %d: its pool is %d, was %d", is->id, is->pool, was->pool);
	if (is->state != SHARD_RETIRED && !topology_same_replicas(was, is) && ++changes)
		log_info("topology", "shard %d: has %d replicas, had %d", is->id, is->nreplicas, was->nreplicas);
	if (is->state != SHARD_RETIRED && is->max_replica_lag_ms != was->max_replica_lag_ms && ++changes)
		log_info("topology", "shard %d: its maxReplicaLagMillis is %lld, was %lld", is->id,
				 (long long) is->max_replica_lag_ms, (long long) was->max_replica_lag_ms);
	if (is->state != SHARD_RETIRED && is->replica_fallback != was->replica_fallback && ++changes)
		log_info("topology", "shard %d: its replicaFallback is '%s', was '%s'", is->id,
				 fallback_name(is->replica_fallback), fallback_name(was->replica_fallback));
	if (moves && ++changes)
		log_info("topology", "shard %d: has another url, user or password, which is tried before it is used", is->id);
	return changes;
}

static int
renew_shards(const struct topology *was, struct target **targets)
{
	int			changes = 0;

	for (int i = 0; i < topology->nshards; i++)
	{
		if (i < was->nshards)
		{
			changes += tell_shard(&was->shards[i], &topology->shards[i], targets[i] != NULL);
			if (shards[i] != NULL)
				shard_renew(shards[i], &topology->shards[i], targets[i]);
			continue;
		}
		changes++;
		log_info("topology", "shard %d: is new, %s", topology->shards[i].id,
				 topology_state_name(topology->shards[i].state));
		if (targets[i] == NULL)
			continue;
		add(i, targets[i]);
		shards[i]->late = true;
		shard_start(shards[i]);
	}
	return changes;
}

/* Of the generations, those that have begun are the same. */
static int
renew_generations(const struct topology *was)
{
	int			changes = 0;

	for (int i = 0; i < topology->ngenerations; i++)
	{
		if (i < was->ngenerations &&
			topology_same_generation(was, &was->generations[i], topology, &topology->generations[i]))
			continue;
		changes++;
		log_info("topology", "generation %lld: says where new instances go from its activeFrom on",
				 (long long) topology->generations[i].id);
	}
	changes += was->ngenerations > topology->ngenerations;
	return changes;
}

/* Nothing can be on a shard that no proxy has reached; home has the last word. */
static bool
unused(int index)
{
	return shards[index] != NULL && !shards[index]->told && !shards[index]->known;
}

bool
shards_may_replace(struct topology *document, struct wig_error *err)
{
	int64_t		now_ms = home_clock_known() ? home_clock_ms() : INT64_MIN;
	struct target **targets;

	if (!topology_merge(topology, document, now_ms, unused, err) || !check_slots(document, err) ||
		!check_generations(document, err) || (targets = make_targets(document, err)) == NULL)
		return false;
	free_targets(document, targets);
	return true;
}

bool
shards_replace(struct topology *document, int *changes, struct wig_error *err)
{
	struct topology *was = topology;
	struct target **targets;

	/* as before home was asked: only memory can be short */
	targets = make_targets(document, err);
	if (targets == NULL)
	{
		topology_free(document);
		return false;
	}
	topology = document;
	shards = xrealloc(shards, (size_t) topology->nshards * sizeof(*shards));
	for (int i = was->nshards; i < topology->nshards; i++)
		shards[i] = NULL;
	placement_replace(placement, topology);
	*changes = renew_shards(was, targets) + renew_generations(was);
	tell_generations();
	free(targets);
	topology_free(was);
	return true;
}
