/*
 * shard.c
 *	  One database: set up once, then lanes, side connections and a wake-up session.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "admission.h"
#include "buf.h"
#include "catchup.h"
#include "config.h"
#include "drain.h"
#include "health.h"
#include "lane.h"
#include "log.h"
#include "member.h"
#include "outbox.h"
#include "poller.h"
#include "position.h"
#include "replicas.h"
#include "setup.h"
#include "shard.h"
#include "shards.h"
#include "target.h"
#include "topology_merge.h"
#include "wakeup.h"

/* A second lane opens when this many items stay behind, batch after batch. */
#define CROWD_ITEMS		64
#define CROWD_BATCHES	16

/* Connections that come up and break at once would hurry one another for ever. */
#define HURRY_MS		1000

/* And closes to new work when next to nothing stays behind for so long. */
#define QUIET_ITEMS		8
#define QUIET_BATCHES	5000

/* The same reason why a shard is not set up is logged so often. */
#define PROBLEM_REPEAT_MS	60000

static int64_t
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
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

	/* where the first lane is up a side connection is about to be */
	if (shard->phase != SHARD_SERVING || !(side_up(shard->side) || lane_up(shard->lanes[0])))
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

bool
shard_crowded(const struct shard *shard)
{
	for (int i = 0; i < shard->active; i++)
		if (!lane_crowded(shard->lanes[i]))
			return false;
	return true;
}

bool
shard_takes(const struct shard *shard)
{
	return shard->entry->state == SHARD_ACTIVE && !shard->closed && shard_receives(shard);
}

bool
shard_receives(const struct shard *shard)
{
	return shard->entry->state != SHARD_RETIRED && shard_claims(shard) && shard->definitions == DEFINITIONS_COMPLETE;
}

bool
shard_retired(const struct shard *shard)
{
	return shard->phase == SHARD_LEAVING || shard->phase == SHARD_GONE;
}

bool
shard_counts(const struct shard *shard)
{
	return !shard_retired(shard) && (!shard->late || shard->told || shard->known || shard_weighs(shard));
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

int
shard_connections(const struct shard *shard)
{
	int			n = side_count(shard->side) + wakeup_connected(shard->wakeup) + setup_busy(shard->setup);

	for (int i = 0; i < shard->nlanes; i++)
		n += lane_up(shard->lanes[i]);
	return n;
}

const char *
shard_problem(const struct shard *shard)
{
	if (*setup_problem(shard->setup) != '\0')
		return setup_problem(shard->setup);
	return shard->problem[0] != '\0' ? shard->problem : "no connection";
}

/* Without home nothing is registered and no schedule fires; of the others one is enough. */
static enum health_need
need_of(const struct shard *shard)
{
	bool		takes = shard->entry->state == SHARD_ACTIVE && (shard->entry->roles & ROLE_INSTANCES) != 0;

	if ((shard->entry->roles & ROLE_HOME) != 0)
		return takes ? HEALTH_HOME : HEALTH_ALWAYS;
	return takes ? HEALTH_WORK : HEALTH_TOLD;
}

static void
tell_health(struct shard *shard)
{
	bool		reachable = shard->phase == SHARD_SERVING && lane_up(shard->lanes[0]);
	char		detail[128];

	if (reachable != shard->reachable || shard->changed_at_ms == 0)
		shard->changed_at_ms = now_ms();
	if (reachable)
		shard->problem[0] = '\0';
	shard->reachable = reachable;
	health_need(shard->health, need_of(shard));

	if (shard_retired(shard))
		health_set(shard->health, true,
				   shard->phase == SHARD_GONE ? "retired" : "retired, finishing what is in flight");
	else if (shard->phase == SHARD_SETTING_UP)
		health_set(shard->health, false, "setting up");
	else if (!lane_up(shard->lanes[0]))
		health_set(shard->health, false, "no connection");
	else if (side_count(shard->side) == 0)
		health_set(shard->health, false, "no connection for reads");
	else
	{
		snprintf(detail, sizeof(detail), "connected, wiggle %s%s", shard->version,
				 shard->definitions == DEFINITIONS_BEHIND ? ", lacks definitions that home has" : "");
		health_set(shard->health, shard->definitions != DEFINITIONS_UNKNOWN || shard->told, detail);
	}
}

void
shard_connected(struct shard *shard)
{
	if (shard->hurried_at > 0 && loop_now() - shard->hurried_at < HURRY_MS)
		return;
	shard->hurried_at = loop_now();
	for (int i = 0; i < shard->nlanes; i++)
		lane_hurry(shard->lanes[i]);
	side_hurry(shard->side);
	wakeup_hurry(shard->wakeup);
}

void
shard_doubt(struct shard *shard)
{
	if (shard->phase != SHARD_SERVING)
		return;
	for (int i = 0; i < shard->made; i++)
	{
		if (lane_ready_to_send(shard->lanes[i]))
			lane_renew(shard->lanes[i]);
	}
	side_doubt(shard->side);
	tell_health(shard);
}

void
shard_side_changed(struct shard *shard)
{
	tell_health(shard);
}

void
shard_lane_changed(struct shard *shard)
{
	bool		first = lane_up(shard->lanes[0]);

	/* what a further lane has is done by the first one, while that is up */
	for (int i = 1; i < shard->made && first; i++)
	{
		if (!lane_up(shard->lanes[i]))
		{
			lane_move(shard->lanes[i], shard->lanes[0]);
			if (shard->active > i)
				shard->active = i;
		}
	}
	tell_health(shard);
	if (!first)
		catchup_stop(shard->catchup);
	if (!shard_claims(shard))
	{
		poller_shard_down(shard->slot);
		return;
	}
	if (shard->definitions == DEFINITIONS_UNKNOWN)
		catchup_look(shard->catchup);
	poller_wake_all(shard->slot);
	outbox_look();
	if (!shard->told && shard->definitions != DEFINITIONS_UNKNOWN)
	{
		shard->told = true;
		shards_tell_serving();
	}
}

/* ---- setting up ---- */

static int
pool_of(const struct topology_shard *entry)
{
	return entry->pool > 3 ? entry->pool : 3;	/* lane, side, wake-up */
}

static int
replica_connections(const struct topology_shard *entry)
{
	int			n = 0;

	for (int i = 0; i < entry->nreplicas; i++)
		n += entry->replicas[i].pool;
	return n;
}

static void
tell_connections(const struct topology_shard *entry)
{
	log_info("shard", "shard %d: up to %d primary and %d replica connection(s) per node, over %d replica(s)",
			 entry->id, pool_of(entry), replica_connections(entry), entry->nreplicas);
}

static void
close_all(struct shard *shard)
{
	for (int i = 0; i < shard->made; i++)
		lane_stop(shard->lanes[i]);
	if (shard->heir != NULL)
		lane_free(shard->heir);
	shard->heir = NULL;
	if (shard->ending != NULL)
		lane_stop(shard->ending);
	side_stop(shard->side);
	wakeup_stop(shard->wakeup);
}

static void
withdraw(struct shard *shard)
{
	shard->phase = SHARD_SETTING_UP;
	shard->active = 1;
	close_all(shard);
	admission_stop(shard->admission);
	catchup_stop(shard->catchup);
	tell_health(shard);
	poller_shard_down(shard->slot);
}

static void
set_up_again(struct deadline *deadline)
{
	struct shard *shard = deadline_owner(deadline, struct shard, lost);

	withdraw(shard);
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
	int			timeline;

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
	if (strcmp(PQgetvalue(result, 0, IDENTITY_SYSTEM), shard->system_id) != 0 ||
		strcmp(PQgetvalue(result, 0, IDENTITY_UUID), shard->identity) != 0)
	{
		shard_schema_lost(shard, "another database answers in its place");
		return wig_fail(err, "another database answers in the shard's place");
	}
	timeline = (int) strtol(PQgetvalue(result, 0, IDENTITY_TIMELINE), NULL, 10);
	if (timeline < shard->timeline)
		return wig_fail(err, "the server is on timeline %d, but the shard has moved on to timeline %d: a former primary"
						" must follow the present one", timeline, shard->timeline);
	if (timeline == shard->timeline && strcmp(PQgetvalue(result, 0, IDENTITY_BEHIND), "t") == 0)
	{
		/* of several hosts another may have the shard itself: the link looks there next */
		if (shard->target->nhosts == 1)
			shard_schema_lost(shard, "an older copy of the database answers in its place");
		return wig_fail(err, "an older copy of the database answers in the shard's place");
	}
	if (timeline > shard->timeline)
	{
		log_warn("shard", "shard %d: its primary was promoted, timeline %d", shard->entry->id, timeline);
		shard->timeline = timeline;
		position_begin(shard, PQgetvalue(result, 0, IDENTITY_WAL));
		admission_renew(shard->admission);
	}
	return true;
}

/*
 * Leave the former target for the one that has been verified now, and lose nothing by
 * it: another first lane is opened beside the present one before that one ends.
 */
static void
adopt_target(struct shard *shard)
{
	bool		up = lane_up(shard->lanes[0]);

	if (shard->heir != NULL)
		lane_free(shard->heir);
	shard->heir = up ? lane_create(shard, 0) : NULL;
	if (shard->ending != NULL)
		lane_aim(shard->ending);
	for (int i = 0; i < shard->made; i++)
	{
		lane_aim(shard->lanes[i]);
		if (i > 0)
			lane_renew(shard->lanes[i]);
	}
	side_aim(shard->side);
	wakeup_aim(shard->wakeup);
	target_free(shard->former);
	shard->former = NULL;
	if (up)
		lane_start(shard->heir);
}

/* Work goes from the present first lane to its heir; what that has in flight ends there. */
static void
hand_over(struct shard *shard)
{
	shard->ending = shard->lanes[0];
	shard->lanes[0] = shard->heir;
	shard->heir = NULL;
	shard_lane_changed(shard);
}

void
shard_setup_done(struct shard *shard)
{
	if (shard->former != NULL)
		adopt_target(shard);
	shard->phase = SHARD_SERVING;
	shard->closed = false;
	log_info("shard", "shard %d: ready in %s, wiggle %s", shard->entry->id, target_name(shard->target),
			 shard->version);
	lane_start(shard->lanes[0]);
	side_start(shard->side);
	wakeup_start(shard->wakeup);
	if (shard->replicas != NULL)
		replicas_start(shard->replicas);
	tell_health(shard);
	if (shard->index == shard_topology()->home)
	{
		for (int slot = 0; slot < shard_slots(); slot++)
			setup_home_ready(shard_by_slot(slot)->setup);
		member_home_ready();
		outbox_look();
	}
}

void
shard_refused_by_home(struct shard *shard, const char *why)
{
	/* one that serves by its former target goes on */
	if (shard->former == NULL || !shard_usable(shard))
		withdraw(shard);
	setup_refuse(shard->setup, why);
}

/* The same is logged once in a while only, for setup tries again and again. */
static void
tell_problem(struct shard *shard, const char *why)
{
	char		former[sizeof(shard->problem)];

	memcpy(former, shard->problem, sizeof(former));
	snprintf(shard->problem, sizeof(shard->problem), "%s", why);
	if (strcmp(former, shard->problem) != 0 || loop_now() - shard->problem_at >= PROBLEM_REPEAT_MS)
	{
		log_error("setup", "%s", why);
		shard->problem_at = loop_now();
	}

	/* one that serves by its former target goes on */
	health_set(shard->health, shard_usable(shard), why);
}

void
shard_left_out(struct shard *shard, const char *why)
{
	tell_problem(shard, why);
	if (!shard->left_out)
	{
		shard->left_out = true;
		shards_tell_refused();
	}
}

void
shard_setup_refused(struct shard *shard, const char *why)
{
	tell_problem(shard, why);
	if (!shard->refused)
	{
		shard->refused = true;
		shards_tell_refused();
	}
}

/* ---- made, changed, closed ---- */

/* How many lanes and side connections the pool has room for, beside the wake-up session. */
static void
share_pool(const struct shard *shard, int *lanes, int *sides)
{
	int			pool = pool_of(shard->entry);
	int			half = (pool - 1) / 2;

	*sides = (int) config.side_connections < half ? (int) config.side_connections : half;
	*lanes = (int) config.lanes_per_shard < pool - 1 - *sides
		? (int) config.lanes_per_shard : pool - 1 - *sides;
	if (*lanes > SHARD_MAX_LANES)
		*lanes = SHARD_MAX_LANES;
}

static void
make_lanes(struct shard *shard)
{
	for (; shard->made < shard->nlanes; shard->made++)
		shard->lanes[shard->made] = lane_create(shard, shard->made);
}

struct shard *
shard_create(const struct topology_shard *entry, int index, int slot, struct target *target)
{
	struct shard *shard = xcalloc(1, sizeof(*shard));
	char		name[32];
	int			sides;

	shard->entry = entry;
	shard->index = index;
	shard->slot = slot;
	shard->target = target;
	shard->active = 1;
	share_pool(shard, &shard->nlanes, &sides);
	make_lanes(shard);
	shard->side = side_create(shard, target, sides, (int) config.side_connections, NULL, NULL);
	if (entry->nreplicas > 0)
		shard->replicas = replicas_create(shard);
	shard->wakeup = wakeup_create(shard);
	shard->setup = setup_create(shard);
	shard->admission = admission_create(shard);
	shard->catchup = catchup_create(shard);
	snprintf(name, sizeof(name), "shard %d", entry->id);
	shard->health = health_add(name, need_of(shard));
	shard->changed_at_ms = now_ms();
	tell_connections(entry);
	return shard;
}

void
shard_start(struct shard *shard)
{
	setup_start(shard->setup);
}

/* Another pool: lanes that are too many give what waits to the first and end when they are idle. */
static void
resize(struct shard *shard)
{
	int			sides;

	share_pool(shard, &shard->nlanes, &sides);
	make_lanes(shard);
	if (shard->active > shard->nlanes)
		shard->active = shard->nlanes;
	side_resize(shard->side, sides);
}

static void
retire(struct shard *shard)
{
	shard->phase = SHARD_LEAVING;
	deadline_clear(&shard->lost);
	setup_stop(shard->setup);
	admission_stop(shard->admission);
	catchup_stop(shard->catchup);
	tell_health(shard);
	poller_shard_down(shard->slot);
}

/* The former target stays in use until setup has found the shard behind the new one. */
static void
try_target(struct shard *shard, struct target *target)
{
	setup_stop(shard->setup);
	if (shard->former == NULL)
		shard->former = shard->target;
	else
		target_free(shard->target);
	shard->target = target;
	setup_start(shard->setup);
}

/* What the former ones are asked is answered elsewhere. */
static void
renew_replicas(struct shard *shard)
{
	if (shard->replicas != NULL)
		replicas_leave(shard->replicas);
	shard->replicas = shard->entry->state != SHARD_RETIRED && shard->entry->nreplicas > 0
		? replicas_create(shard) : NULL;
	if (shard->replicas != NULL && shard->phase == SHARD_SERVING)
		replicas_start(shard->replicas);
}

void
shard_renew(struct shard *shard, const struct topology_shard *entry, struct target *target)
{
	bool		leaves = entry->state == SHARD_RETIRED && shard->entry->state != SHARD_RETIRED;
	bool		resizes = entry->state != SHARD_RETIRED && entry->pool != shard->entry->pool;
	bool		copies = !topology_same_replicas(shard->entry, entry);
	bool		moves = entry->state != shard->entry->state;

	shard->entry = entry;
	health_need(shard->health, need_of(shard));
	if (leaves || copies)
		renew_replicas(shard);
	if (leaves)
		retire(shard);
	else if (moves && shard->phase == SHARD_SERVING)
		admission_renew(shard->admission);
	if (resizes)
	{
		resize(shard);
		tell_connections(entry);
	}
	if (target != NULL)
		try_target(shard, target);
}

/* ---- turns ---- */

/* Lanes that have no future give what waits to the first one and close once nothing is in flight. */
static void
end_lanes(struct shard *shard)
{
	if (shard->heir != NULL && shard->ending == NULL && lane_ready_to_send(shard->heir))
		hand_over(shard);
	if (shard->ending != NULL)
	{
		lane_move(shard->ending, shard->lanes[0]);
		if (lane_idle(shard->ending))
		{
			lane_free(shard->ending);
			shard->ending = NULL;
		}
	}
	for (int i = shard->nlanes; i < shard->made; i++)
	{
		lane_move(shard->lanes[i], shard->lanes[0]);
		if (lane_idle(shard->lanes[i]))
			lane_stop(shard->lanes[i]);
	}
}

void
shard_turn(struct shard *shard)
{
	if (shard->phase == SHARD_GONE)
		return;
	end_lanes(shard);
	if (shard->phase == SHARD_LEAVING && shard_idle(shard))
	{
		shard->phase = SHARD_GONE;
		close_all(shard);
		tell_health(shard);
		log_info("shard", "shard %d: is retired, its connections are closed", shard->entry->id);
		return;
	}
	for (int i = 0; i < shard->nlanes; i++)
		lane_turn(shard->lanes[i]);
}

bool
shard_idle(const struct shard *shard)
{
	for (int i = 0; i < shard->made; i++)
	{
		if (!lane_idle(shard->lanes[i]))
			return false;
	}
	return (shard->ending == NULL || lane_idle(shard->ending)) && side_idle(shard->side) &&
		(shard->replicas == NULL || replicas_idle(shard->replicas));
}

void
shard_stop(struct shard *shard)
{
	deadline_clear(&shard->lost);
	setup_stop(shard->setup);
	if (shard->replicas != NULL)
		replicas_stop(shard->replicas);
	admission_stop(shard->admission);
	catchup_stop(shard->catchup);
	close_all(shard);
}

