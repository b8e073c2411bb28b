/*
 * shard.c
 *	  One database: set up once, then lanes, side connections and a wake-up session.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "buf.h"
#include "config.h"
#include "drain.h"
#include "health.h"
#include "lane.h"
#include "log.h"
#include "member.h"
#include "outbox.h"
#include "placement.h"
#include "poller.h"
#include "replicas.h"
#include "setup.h"
#include "shard.h"
#include "shards.h"
#include "wakeup.h"

/* A second lane opens when this many items stay behind, batch after batch. */
#define CROWD_ITEMS		64
#define CROWD_BATCHES	16

/* And closes to new work when next to nothing stays behind for so long. */
#define QUIET_ITEMS		8
#define QUIET_BATCHES	5000

static struct topology *topology;
static struct shard **shards;	/* by the topology's index; NULL = retired */
static struct shard *slots[TOPOLOGY_MAX_SHARDS];
static int	nslots;
static void (*on_serving) (void);
static void (*on_refused) (void);

struct shard *
shard_at(int index)
{
	return shards[index];
}

int
shard_count(void)
{
	return topology->nshards;
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

/* ---- work ---- */

enum submit
shard_submit(struct shard *shard, struct item *item, uint32_t hash)
{
	struct lane *lane = shard->lanes[hash % (uint32_t) shard->active];

	item->hash = hash;
	if (!lane_usable(lane))
		lane = shard->lanes[0];
	if (shard->phase != SHARD_SERVING || !lane_usable(lane))
		return SUBMIT_DOWN;
	return lane_submit(lane, item) ? SUBMIT_OK : SUBMIT_FULL;
}

void
shard_refuse(const struct shard *shard, enum submit submit, struct refusal *refusal)
{
	const char *why = "no connection to the database";

	if (submit == SUBMIT_FULL)
		why = "the queue is full";
	else if (submit == SUBMIT_BEHIND)
		why = "no replica is within maxReplicaLagMillis, and replicaFallback is 'fail'";
	refusal_unavailable(refusal, shard->entry->id, "", why);
}

enum submit
shard_ask(struct shard *shard, struct question *question)
{
	if (question->may_lag && shard->replicas != NULL)
	{
		if (replicas_ask(shard->replicas, question))
			return SUBMIT_OK;
		if (!replicas_fall_back(shard->replicas))
			return SUBMIT_BEHIND;
	}
	if (shard->phase != SHARD_SERVING || !side_up(shard->side))
		return SUBMIT_DOWN;
	return side_ask(shard->side, question) ? SUBMIT_OK : SUBMIT_FULL;
}

bool
shard_usable(const struct shard *shard)
{
	return shard->phase == SHARD_SERVING && lane_usable(shard->lanes[0]);
}

bool
shard_claims(const struct shard *shard)
{
	return shard->phase == SHARD_SERVING && lane_prompt(shard->lanes[0]);
}

/* ---- how many lanes ---- */

void
shard_crowding(struct shard *shard, int left)
{
	struct lane *next;

	shard->crowded = left > CROWD_ITEMS ? shard->crowded + 1 : 0;
	shard->quiet = left <= QUIET_ITEMS && shard->active > 1 ? shard->quiet + 1 : 0;
	if (shard->crowded >= CROWD_BATCHES && shard->active < shard->nlanes)
	{
		shard->crowded = 0;
		next = shard->lanes[shard->active];
		lane_start(next);
		if (!lane_up(next))
			return;				/* used from the next crowd on, once it is up */
		shard->active++;
		for (int i = 0; i < shard->active - 1; i++)
			lane_spread(shard->lanes[i], shard->lanes, shard->active);
		log_info("shard", "shard %d: spreads over %d lanes", shard->entry->id, shard->active);
	}
	else if (shard->quiet >= QUIET_BATCHES)
	{
		shard->quiet = 0;
		shard->active--;
		lane_move(shard->lanes[shard->active], shard->lanes[0]);
		log_info("shard", "shard %d: back to %d lane(s)", shard->entry->id, shard->active);
	}
}

static void
tell_health(struct shard *shard)
{
	char		detail[96];

	if (shard->phase != SHARD_SERVING)
		health_set(shard->health, false, "setting up");
	else if (!lane_up(shard->lanes[0]))
		health_set(shard->health, false, "no connection");
	else
	{
		snprintf(detail, sizeof(detail), "connected, wiggle %s", shard->version);
		health_set(shard->health, true, detail);
	}
}

void
shard_lane_changed(struct shard *shard)
{
	bool		first = lane_up(shard->lanes[0]);

	/* what a further lane has is done by the first one, while that is up */
	for (int i = 1; i < shard->nlanes && first; i++)
	{
		if (!lane_up(shard->lanes[i]))
		{
			lane_move(shard->lanes[i], shard->lanes[0]);
			if (shard->active > i)
				shard->active = i;
		}
	}
	tell_health(shard);
	if (!shard_claims(shard))
	{
		poller_shard_down(shard->slot);
		return;
	}
	poller_wake_all(shard->slot);
	outbox_look();
	if (!shard->told)
	{
		shard->told = true;
		on_serving();
	}
}

/* ---- setting up ---- */

static void
close_all(struct shard *shard)
{
	for (int i = 0; i < shard->nlanes; i++)
		lane_stop(shard->lanes[i]);
	side_stop(shard->side);
	wakeup_stop(shard->wakeup);
}

static void
set_up_again(struct deadline *deadline)
{
	struct shard *shard = deadline_owner(deadline, struct shard, lost);

	shard->phase = SHARD_SETTING_UP;
	shard->active = 1;
	close_all(shard);
	tell_health(shard);
	poller_shard_down(shard->slot);
	setup_start(shard->setup);
}

void
shard_schema_lost(struct shard *shard, const char *why)
{
	if (shard->phase != SHARD_SERVING || shard->lost.slot != 0 || drain_started())
		return;
	log_warn("shard", "shard %d: sets up anew: %s", shard->entry->id, why);

	/* not now: the caller stands in the middle of one of the sessions to be closed */
	deadline_set(&shard->lost, loop_now(), set_up_again);
}

bool
shard_check_identity(struct shard *shard, const PGresult *result, struct wig_error *err)
{
	const char *system;

	if (PQntuples(result) != 1)
		return wig_fail(err, "wiggle.shard() gave no row");
	if (PQgetisnull(result, 0, IDENTITY_SHARD_ID))
	{
		shard_schema_lost(shard, "the database belongs to no shard");
		return wig_fail(err, "the database belongs to no shard");
	}
	if (strtol(PQgetvalue(result, 0, IDENTITY_SHARD_ID), NULL, 10) != shard->entry->id)
		return wig_fail(err, "the database belongs to shard %s",
						PQgetvalue(result, 0, IDENTITY_SHARD_ID));
	system = PQgetvalue(result, 0, IDENTITY_SYSTEM);
	if (strcmp(system, shard->system_id) != 0)
	{
		log_warn("shard", "shard %d: lives in another database cluster now (%s, it was %s)",
				 shard->entry->id, system, shard->system_id);
		snprintf(shard->system_id, sizeof(shard->system_id), "%s", system);
	}
	return true;
}

const struct shard *
shard_twin(const struct shard *shard, const char *system_id, const char *database)
{
	for (int i = 0; i < nslots; i++)
	{
		if (slots[i] != shard && strcmp(slots[i]->system_id, system_id) == 0 &&
			strcmp(slots[i]->database, database) == 0)
			return slots[i];
	}
	return NULL;
}

void
shard_setup_done(struct shard *shard)
{
	shard->phase = SHARD_SERVING;
	log_info("shard", "shard %d: ready in %s, wiggle %s", shard->entry->id, target_name(shard->target),
			 shard->version);
	lane_start(shard->lanes[0]);
	side_start(shard->side);
	wakeup_start(shard->wakeup);
	if (shard->replicas != NULL)
		replicas_start(shard->replicas);
	tell_health(shard);
	if (shard->index == topology->home)
	{
		member_home_ready();
		outbox_look();
	}
}

void
shard_setup_refused(struct shard *shard, const char *why)
{
	log_error("setup", "%s", why);
	health_set(shard->health, false, why);
	if (!shard->refused)
	{
		shard->refused = true;
		on_refused();
	}
}

/* ---- all of them ---- */

static bool
create_shard(int index, struct wig_error *err)
{
	const struct topology_shard *entry = &topology->shards[index];
	struct shard *shard = xcalloc(1, sizeof(*shard));
	int			pool = entry->pool > 3 ? entry->pool : 3;	/* lane, side, wake-up */
	int			half = (pool - 1) / 2;
	int			sides = (int) config.side_connections < half ? (int) config.side_connections : half;
	char		name[32];

	shards[index] = shard;
	shard->entry = entry;
	shard->index = index;
	snprintf(name, sizeof(name), "shard %d primary", entry->id);
	shard->target = target_create(name, entry->url, entry->user, entry->password, SESSION_WRITES, err);
	if (shard->target == NULL)
		return false;
	shard->slot = nslots;
	slots[nslots++] = shard;
	shard->nlanes = (int) config.lanes_per_shard < pool - 1 - sides
		? (int) config.lanes_per_shard : pool - 1 - sides;
	if (shard->nlanes > SHARD_MAX_LANES)
		shard->nlanes = SHARD_MAX_LANES;
	if (shard->nlanes < 1)
		shard->nlanes = 1;
	shard->active = 1;
	for (int i = 0; i < shard->nlanes; i++)
		shard->lanes[i] = lane_create(shard, i);
	shard->side = side_create(shard, shard->target, sides, NULL, NULL);
	if (entry->nreplicas > 0)
	{
		shard->replicas = replicas_create(shard, err);
		if (shard->replicas == NULL)
			return false;
	}
	shard->wakeup = wakeup_create(shard);
	shard->setup = setup_create(shard);
	snprintf(name, sizeof(name), "shard %d", entry->id);
	shard->health = health_add(name);
	log_info("shard", "shard %d: %s, up to %d connections from this process%s", entry->id,
			 target_name(shard->target), shard->nlanes + sides + 1,
			 entry->nreplicas > 0 ? "; its replicas are not used yet" : "");
	return true;
}

static void
turn(void)
{
	for (int i = 0; i < nslots; i++)
	{
		for (int lane = 0; lane < slots[i]->nlanes; lane++)
			lane_turn(slots[i]->lanes[lane]);
	}
}

static bool
idle(void)
{
	for (int i = 0; i < nslots; i++)
	{
		for (int lane = 0; lane < slots[i]->nlanes; lane++)
		{
			if (!lane_idle(slots[i]->lanes[lane]))
				return false;
		}
		if (!side_idle(slots[i]->side) || (slots[i]->replicas != NULL && !replicas_idle(slots[i]->replicas)))
			return false;
	}
	return true;
}

static void
stop(void)
{
	for (int i = 0; i < nslots; i++)
	{
		deadline_clear(&slots[i]->lost);
		setup_stop(slots[i]->setup);
		if (slots[i]->replicas != NULL)
			replicas_stop(slots[i]->replicas);
		close_all(slots[i]);
	}
}

/* Before any generation has begun the first one is gone by: better than to refuse every start. */
static bool
check_generations(struct wig_error *err)
{
	struct timespec now;
	int64_t		now_ms;

	clock_gettime(CLOCK_REALTIME, &now);
	now_ms = (int64_t) now.tv_sec * 1000;
	if (topology->ngenerations > 0 && !topology->single && topology->generations[0].active_from_ms > now_ms)
		log_warn("topology", "no generation is active yet: until its activeFrom new instances go by"
				 " generation %lld all the same", (long long) topology->generations[0].id);
	return placement_check(topology, now_ms, err);
}

bool
shards_start(struct topology *document, void (*serving) (void), void (*refused) (void),
			 struct wig_error *err)
{
	static const struct drain_hook hook = {.name = "shards", .idle = idle, .stop = stop};

	topology = document;
	on_serving = serving;
	on_refused = refused;
	if (!check_generations(err))
		return false;
	shards = xcalloc((size_t) topology->nshards, sizeof(*shards));
	for (int i = 0; i < topology->nshards; i++)
	{
		if (topology_serves(&topology->shards[i]) && !create_shard(i, err))
			return false;
	}
	loop_turn(TURN_LANES, turn);
	drain_register(&hook);
	for (int i = 0; i < nslots; i++)
		setup_start(slots[i]->setup);
	return true;
}
