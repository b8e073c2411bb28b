/*
 * placement.c
 *	  Where the next instance is minted: smooth weighted round robin.
 */
#include <stdlib.h>

#include "placement.h"

struct placement
{
	const struct topology *topology;
	int			generation;		/* whose weights `current` counts; -1 = none yet */
	int64_t		current[TOPOLOGY_MAX_SHARDS];	/* by position in its weights */
};

struct placement *
placement_create(const struct topology *topology)
{
	struct placement *placement = calloc(1, sizeof(*placement));

	if (placement != NULL)
	{
		placement->topology = topology;
		placement->generation = -1;
	}
	return placement;
}

void
placement_free(struct placement *placement)
{
	free(placement);
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

bool
placement_check(const struct topology *topology, int64_t now_ms, struct wig_error *err)
{
	int			in_force = placement_generation(topology, now_ms);

	for (int i = in_force; i < topology->ngenerations; i++)
	{
		const struct generation *generation = &topology->generations[i];

		for (int w = 0; w < generation->nweights; w++)
		{
			const struct topology_shard *shard = &topology->shards[generation->weights[w].shard];

			if (generation->weights[w].weight > 0 && shard->state != SHARD_ACTIVE)
				return wig_fail(err, "generation %lld, which %s, weighs shard %d, which is %s; first let a generation"
								" begin that gives the shard no weight", (long long) generation->id,
								i == in_force ? "is in force" : "is still to come", shard->id,
								shard->state == SHARD_DRAINING ? "DRAINING" : "RETIRED");
		}
	}
	return true;
}

int
placement_pick(struct placement *placement, int64_t now_ms)
{
	int			in_force = placement_generation(placement->topology, now_ms);
	const struct generation *generation = &placement->topology->generations[in_force];
	int64_t		total = 0;
	int			best = 0;
	bool		found = false;

	if (in_force != placement->generation)
	{
		placement->generation = in_force;
		for (int i = 0; i < TOPOLOGY_MAX_SHARDS; i++)
			placement->current[i] = 0;
	}
	for (int i = 0; i < generation->nweights; i++)
	{
		if (generation->weights[i].weight == 0)
			continue;
		placement->current[i] += generation->weights[i].weight;
		total += generation->weights[i].weight;
		if (!found || placement->current[i] > placement->current[best])
			best = i;
		found = true;
	}
	placement->current[best] -= total;
	return generation->weights[best].shard;
}
