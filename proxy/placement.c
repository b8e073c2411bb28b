/*
 * placement.c
 *	  Where the next instance is minted: smooth weighted round robin.
 */
#include <stdlib.h>

#include "buf.h"
#include "placement.h"
#include "topology_merge.h"

/* A cycle may have millions of picks: of its beginning so many are enough to begin anywhere in. */
#define PHASES_MAX	(UINT32_C(1) << 14)

struct placement
{
	const struct topology *topology;
	uint32_t	phase;
	bool		counts;			/* current is that of the generation below */
	int64_t		generation;		/* id */
	int64_t    *current;		/* by position in its weights */
};

struct placement *
placement_create(const struct topology *topology, uint32_t phase)
{
	struct placement *placement = xcalloc(1, sizeof(*placement));

	placement->topology = topology;
	placement->phase = phase;
	return placement;
}

void
placement_free(struct placement *placement)
{
	free(placement->current);
	free(placement);
}

/* The generation that the topology has by this id, NULL when it has none. */
static const struct generation *
find_generation(const struct topology *topology, int64_t id)
{
	for (int i = 0; i < topology->ngenerations; i++)
	{
		if (topology->generations[i].id == id)
			return &topology->generations[i];
	}
	return NULL;
}

void
placement_replace(struct placement *placement, const struct topology *topology)
{
	const struct generation *now = find_generation(topology, placement->generation);

	/* one that has begun does not change; the first one, in force before its time, may */
	placement->counts = placement->counts && now != NULL &&
		topology_same_generation(placement->topology,
								 find_generation(placement->topology, placement->generation), topology, now);
	placement->topology = topology;
}

int
placement_generation(const struct topology *topology, int64_t now_ms)
{
	for (int i = topology->ngenerations - 1; i > 0; i--)
	{
		if (topology->generations[i].active_from_ms <= now_ms)
			return i;
	}
	return 0;
}

static bool
weighs(const struct generation *generation, int shard)
{
	for (int w = 0; w < generation->nweights; w++)
	{
		if (generation->weights[w].shard == shard)
			return generation->weights[w].weight > 0;
	}
	return false;
}

/* The shard may not have its state yet: from when on it may, if the document says so itself. */
static bool
fail_too_early(const struct topology *topology, int which, bool in_force, int shard, struct wig_error *err)
{
	const struct generation *generation = &topology->generations[which];
	const struct topology_shard *entry = &topology->shards[shard];
	const char *state = entry->state == SHARD_DRAINING ? "DRAINING" : "RETIRED";
	int			last = topology->ngenerations - 1;
	int			first = last;
	char		instant[TOPOLOGY_INSTANT_LEN];

	if (weighs(&topology->generations[last], shard))
		return wig_fail(err, "generation %lld, which %s, weighs shard %d, which is %s; first let a generation"
						" begin that gives the shard no weight", (long long) generation->id,
						in_force ? "is in force" : "is still to come", entry->id, state);
	while (!weighs(&topology->generations[first - 1], shard))
		first--;
	topology_write_instant(topology->generations[first].active_from_ms, instant);
	return wig_fail(err, "generation %lld, which %s, weighs shard %d, which is %s; leave it active and set it to %s once"
					" generation %lld has begun, at %s (a document is read when it changes, and on SIGHUP)",
					(long long) generation->id, in_force ? "is in force" : "is still to come", entry->id, state,
					entry->state == SHARD_DRAINING ? "draining" : "draining, and later to retired,",
					(long long) topology->generations[first].id, instant);
}

bool
placement_check(const struct topology *topology, int64_t now_ms, struct wig_error *err)
{
	int			in_force = placement_generation(topology, now_ms);

	for (int i = in_force; i < topology->ngenerations; i++)
	{
		const struct generation *generation = &topology->generations[i];

		for (int w = 0; w < generation->nweights; w++)
		{
			int			shard = generation->weights[w].shard;

			if (generation->weights[w].weight > 0 && topology->shards[shard].state != SHARD_ACTIVE)
				return fail_too_early(topology, i, i == in_force, shard, err);
		}
	}
	return true;
}

/* One step of the round: the position in the generation's weights, -1 when nobody takes it. */
static int
step(struct placement *placement, const struct generation *generation, bool (*takes) (int shard))
{
	int64_t		total = 0;
	int			best = -1;

	for (int i = 0; i < generation->nweights; i++)
	{
		if (generation->weights[i].weight == 0 || (takes != NULL && !takes(generation->weights[i].shard)))
			continue;
		placement->current[i] += generation->weights[i].weight;
		total += generation->weights[i].weight;
		if (best < 0 || placement->current[i] > placement->current[best])
			best = i;
	}
	if (best >= 0)
		placement->current[best] -= total;
	return best;
}

/* Picks until the round repeats itself. */
static int64_t
cycle_of(const struct generation *generation)
{
	int64_t		total = 0;
	int64_t		divisor = 0;

	for (int i = 0; i < generation->nweights; i++)
	{
		int64_t		a = generation->weights[i].weight;

		total += a;
		while (a != 0)
		{
			int64_t		rest = divisor % a;

			divisor = a;
			a = rest;
		}
	}
	return divisor == 0 ? 1 : total / divisor;
}

/* As if so many instances had been placed before as the phase says: proxies that start together differ. */
static void
begin(struct placement *placement, const struct generation *generation)
{
	int64_t		cycle = cycle_of(generation);
	uint32_t	skip = placement->phase % (uint32_t) (cycle < PHASES_MAX ? cycle : PHASES_MAX);

	free(placement->current);
	placement->current = xcalloc((size_t) generation->nweights, sizeof(*placement->current));
	placement->generation = generation->id;
	placement->counts = true;
	while (skip-- > 0)
		step(placement, generation, NULL);
}

int
placement_pick(struct placement *placement, int64_t now_ms, bool (*takes) (int shard))
{
	int			in_force = placement_generation(placement->topology, now_ms);
	const struct generation *generation = &placement->topology->generations[in_force];
	int			picked;

	if (!placement->counts || generation->id != placement->generation)
		begin(placement, generation);
	picked = step(placement, generation, takes);
	return picked < 0 ? -1 : generation->weights[picked].shard;
}
