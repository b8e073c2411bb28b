/*
 * topology_merge.c
 *	  A document that has changed, against the one that a running process goes by.
 */
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "topology_merge.h"

/* ---- comparing ---- */

static bool
same_text(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

bool
topology_same_target(const struct topology_shard *a, const struct topology_shard *b)
{
	return same_text(a->url, b->url) && same_text(a->user, b->user) && same_text(a->password, b->password);
}

bool
topology_same_replicas(const struct topology_shard *a, const struct topology_shard *b)
{
	if (a->nreplicas != b->nreplicas)
		return false;
	for (int i = 0; i < a->nreplicas; i++)
	{
		const struct topology_replica *x = &a->replicas[i];
		const struct topology_replica *y = &b->replicas[i];

		if (!same_text(x->url, y->url) || !same_text(x->user, y->user) || !same_text(x->password, y->password) ||
			x->pool != y->pool)
			return false;
	}
	return true;
}

static int32_t
weight_of(const struct topology *topology, const struct generation *generation, int32_t shard)
{
	for (int i = 0; i < generation->nweights; i++)
	{
		if (topology->shards[generation->weights[i].shard].id == shard)
			return generation->weights[i].weight;
	}
	return 0;
}

/* Does b give every shard that a weighs the same weight? */
static bool
weighs_as(const struct topology *a, const struct generation *x, const struct topology *b,
		  const struct generation *y)
{
	for (int i = 0; i < x->nweights; i++)
	{
		if (weight_of(b, y, a->shards[x->weights[i].shard].id) != x->weights[i].weight)
			return false;
	}
	return true;
}

bool
topology_same_generation(const struct topology *a, const struct generation *x,
						 const struct topology *b, const struct generation *y)
{
	return x->id == y->id && x->active_from_ms == y->active_from_ms && weighs_as(a, x, b, y) &&
		weighs_as(b, y, a, x);
}

/* ---- what must not change ---- */

/* Roles that decide what a shard holds; auth is looked at apart. */
#define HOLDS (ROLE_INSTANCES | ROLE_HOME)

static bool
check_shard(const struct topology_shard *was, const struct topology *fresh, bool unused, struct wig_error *err)
{
	int			index = topology_find(fresh, was->id);
	const struct topology_shard *is = index < 0 ? NULL : &fresh->shards[index];

	if (is == NULL)
		return was->state == SHARD_RETIRED || unused ||
			wig_fail(err, "shard %d is not listed any more, but it is %s; only a retired shard may leave the document, or one that"
					 " no proxy has reached yet: list it again", was->id, topology_state_name(was->state));
	if (unused && is->state == SHARD_RETIRED)
		return true;
	if (is->state < was->state)
		return wig_fail(err, "shard %d cannot go back from %s to %s; a shard's state only moves on: leave it %s", was->id,
						topology_state_name(was->state), topology_state_name(is->state),
						topology_state_name(was->state));
	if (was->state == SHARD_ACTIVE && is->state == SHARD_RETIRED)
		return wig_fail(err, "shard %d cannot go from ACTIVE to RETIRED at once; set it to draining first, and to retired when"
						" it holds no instance any more", was->id);
	if ((is->roles & HOLDS) != (was->roles & HOLDS))
		return wig_fail(err, "shard %d cannot take or lose the role '%s' while the server runs; restore its roles, or restart"
						" every server with the new document", was->id,
						((is->roles ^ was->roles) & ROLE_HOME) != 0 ? "home" : "instances");
	return true;
}

/* Generations that have begun are history: instances were minted by them, and other proxies still go by them. */
static bool
check_generations(const struct topology *running, const struct topology *fresh, int64_t now_ms,
				  struct wig_error *err)
{
	for (int i = 0; i < running->ngenerations && running->generations[i].active_from_ms <= now_ms; i++)
	{
		const struct generation *begun = &running->generations[i];

		if (i >= fresh->ngenerations || fresh->generations[i].id != begun->id)
			return wig_fail(err, "generation %lld has begun and cannot be removed, nor another be put before it; restore it, and"
							" append a generation instead", (long long) begun->id);
		if (!topology_same_generation(running, begun, fresh, &fresh->generations[i]))
			return wig_fail(err, "generation %lld has begun and cannot be changed; restore its activeFrom and weights, and"
							" append a generation instead", (long long) begun->id);
	}
	return true;
}

/* Keys and roles of clients stay where they are: on another shard there are others, or none. */
static bool
check_auth(const struct topology *running, const struct topology *fresh, struct wig_error *err)
{
	int32_t		was = running->shards[topology_auth(running)].id;
	int32_t		is = fresh->shards[topology_auth(fresh)].id;

	return is == was ||
		wig_fail(err, "the auth role cannot move from shard %d to shard %d while the server runs, since the keys and roles of"
				 " clients would not; leave it shard %d's", was, is, was);
}

static bool
check(const struct topology *running, const struct topology *fresh, int64_t now_ms, bool (*unused) (int index),
	  struct wig_error *err)
{
	int32_t		home = running->shards[running->home].id;

	if (fresh->shards[fresh->home].id != home)
		return wig_fail(err, "the home shard cannot move from %d to %d while the server runs; leave it shard %d", home,
						fresh->shards[fresh->home].id, home);
	if (!check_auth(running, fresh, err))
		return false;
	for (int i = 0; i < running->nshards; i++)
	{
		if (!check_shard(&running->shards[i], fresh, unused != NULL && unused(i), err))
			return false;
	}
	return check_generations(running, fresh, now_ms, err);
}

/* ---- in the running order ---- */

bool
topology_merge(const struct topology *running, struct topology *fresh, int64_t now_ms,
			   bool (*unused) (int index), struct wig_error *err)
{
	struct topology_shard *shards;
	int		   *place;			/* from fresh's index to the new one */
	int			n = running->nshards;

	if (!check(running, fresh, now_ms, unused, err))
		return false;
	shards = xcalloc((size_t) running->nshards + (size_t) fresh->nshards, sizeof(*shards));
	place = xcalloc((size_t) fresh->nshards, sizeof(*place));
	for (int i = 0; i < running->nshards; i++)
	{
		shards[i] = (struct topology_shard) {
			.id = running->shards[i].id,
			.state = SHARD_RETIRED,
			.roles = running->shards[i].roles,
		};
	}
	for (int i = 0; i < fresh->nshards; i++)
	{
		place[i] = topology_find(running, fresh->shards[i].id);
		if (place[i] < 0)
			place[i] = n++;
		shards[place[i]] = fresh->shards[i];
	}
	for (int g = 0; g < fresh->ngenerations; g++)
	{
		for (int w = 0; w < fresh->generations[g].nweights; w++)
			fresh->generations[g].weights[w].shard = place[fresh->generations[g].weights[w].shard];
	}
	fresh->home = place[fresh->home];
	free(fresh->shards);
	fresh->shards = shards;
	fresh->nshards = n;
	free(place);
	return true;
}
