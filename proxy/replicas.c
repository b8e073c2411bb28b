/*
 * replicas.c
 *	  The streaming copies of a shard, and the reads that they take from its primary.
 *
 * Each round reads the heartbeat on every replica and then renews it on the primary,
 * and compares a replica with the one that the primary had when the round began, which
 * has had a whole interval to reach it: one that keeps up is 0 ms behind, not an interval.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "log.h"
#include "loop.h"
#include "metrics.h"
#include "replicas.h"
#include "shard.h"
#include "side.h"

#define BEAT_MS			1000
#define AWAY_MS			(-1000) /* what the metric shows then: -1 s */

/* Not heard of: further behind than any topology allows. */
#define LAG_UNKNOWN		INT64_MAX

struct replica
{
	struct replicas *all;
	struct target *target;
	struct side_pool *pool;
	struct question reading;	/* of its heartbeat */
	bool		asked;			/* and not answered */
	int64_t		due_us;			/* the heartbeat that it should have */
	int64_t		lag_ms;
	bool		serves;
	char		said[256];		/* the last failure to connect that was logged */
	struct metric *lag;
	struct metric *reads;
};

struct replicas
{
	struct shard *shard;
	struct replica *list;
	int			n;
	int			next;			/* whose turn it is */
	struct question beating;
	bool		asked;
	int64_t		beat_us;		/* the primary's newest heartbeat, by its clock; 0 = none yet */
	int			missed;			/* rounds that have begun since it was heard of */
	struct deadline round;
	bool		left;			/* the topology has others, which may have these labels */
	struct metric *elsewhere;	/* questions that no replica could take */
};

static int64_t
allowed(const struct replica *replica)
{
	return replica->all->shard->entry->max_replica_lag_ms;
}

/* Take it into service or out of it, as its lag says. */
static void
judge(struct replica *replica)
{
	bool		serves = replica->lag_ms <= allowed(replica);
	int			id = replica->all->shard->entry->id;

	if (!replica->all->left)
		metric_set(replica->lag, replica->lag_ms == LAG_UNKNOWN ? AWAY_MS : replica->lag_ms);
	if (serves == replica->serves)
		return;
	replica->serves = serves;
	replica->said[0] = '\0';
	if (serves)
		log_info("replica", "shard %d: replica %s serves reads", id, target_name(replica->target));
	else if (replica->lag_ms == LAG_UNKNOWN)
		log_warn("replica", "shard %d: replica %s cannot be asked and serves no reads", id,
				 target_name(replica->target));
	else
		log_warn("replica", "shard %d: replica %s is %" PRId64 " ms behind, more than maxReplicaLagMillis (%" PRId64
				 "), and serves no reads", id, target_name(replica->target), replica->lag_ms, allowed(replica));
}

/* ---- heartbeats ---- */

static void
beat_read(struct question *question, const PGresult *result, const struct refusal *refusal)
{
	struct replica *replica = deadline_owner(question, struct replica, reading);
	const struct replicas *all = replica->all;
	int64_t		seen;

	replica->asked = false;
	replica->lag_ms = LAG_UNKNOWN;
	if (result == NULL)
		log_debug("replica", "shard %d: replica %s: %s", all->shard->entry->id, target_name(replica->target),
				  refusal->message);
	else if (PQntuples(result) == 1 && replica->due_us > 0)
	{
		/*
		 * While the primary is not heard of nobody knows what the replica lacks, unless
		 * it brings heartbeats that another proxy has written.
		 */
		seen = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
		replica->lag_ms = seen > replica->due_us ? 0 : (replica->due_us - seen) / 1000;
		if (seen <= replica->due_us && all->missed > 1)
			replica->lag_ms += (int64_t) (all->missed - 1) * BEAT_MS;
	}
	judge(replica);
}

static void
read_beat(struct replica *replica)
{
	if (replica->asked || !side_up(replica->pool))
	{
		/* what was asked a round ago and is not answered makes it that much later */
		replica->lag_ms = replica->asked && replica->lag_ms != LAG_UNKNOWN
			? replica->lag_ms + BEAT_MS : LAG_UNKNOWN;
		judge(replica);
		return;
	}
	replica->due_us = replica->all->beat_us;
	replica->reading = (struct question) {.statement = SQL_BEAT_READ, .done = beat_read};
	replica->asked = side_ask(replica->pool, &replica->reading);
}

static void
beaten(struct question *question, const PGresult *result, const struct refusal *refusal)
{
	struct replicas *all = deadline_owner(question, struct replicas, beating);

	all->asked = false;
	if (result == NULL)
		log_debug("replica", "shard %d: no heartbeat: %s", all->shard->entry->id, refusal->message);
	else if (PQntuples(result) == 1)
	{
		all->beat_us = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
		all->missed = 0;
	}
}

static void
begin_round(struct deadline *deadline)
{
	struct replicas *all = deadline_owner(deadline, struct replicas, round);

	deadline_set(deadline, loop_now() + BEAT_MS, begin_round);
	for (int i = 0; i < all->n; i++)
		read_beat(&all->list[i]);
	all->missed++;
	if (all->asked)
		return;
	all->beating = (struct question) {.statement = SQL_BEAT, .writes = true, .done = beaten};
	all->asked = shard_ask(all->shard, &all->beating) == SUBMIT_OK;
}

/* ---- questions ---- */

bool
replicas_fall_back(const struct replicas *replicas)
{
	return replicas->shard->entry->replica_fallback == FALLBACK_PRIMARY;
}

bool
replicas_ask(struct replicas *replicas, struct question *question)
{
	for (int i = 0; i < replicas->n && question->tried_replicas < replicas->n; i++)
	{
		struct replica *replica = &replicas->list[(replicas->next + i) % replicas->n];

		if (!replica->serves || !side_ask(replica->pool, question))
			continue;
		replicas->next = (replicas->next + i + 1) % replicas->n;
		question->tried_replicas++;
		metric_add(replica->reads, 1);
		return true;
	}
	metric_add(replicas->elsewhere, 1);
	return false;
}

/* The replica could not answer: its heartbeat decides whether it is asked others. */
static void
ask_elsewhere(void *owner, struct question *question, const struct refusal *refusal)
{
	struct replica *replica = owner;
	struct replicas *all = replica->all;

	if (!side_up(replica->pool))
	{
		replica->lag_ms = LAG_UNKNOWN;
		judge(replica);
	}
	if (replicas_ask(all, question))
		return;
	if (replicas_fall_back(all))
	{
		question->may_lag = false;
		if (shard_ask(all->shard, question) == SUBMIT_OK)
			return;
	}
	question->done(question, NULL, refusal);
}

/* A replica has the primary's row, and its cluster's identity where it is a physical copy. */
static bool
greeted(void *owner, const PGresult *result, struct wig_error *err)
{
	struct replica *replica = owner;
	const struct shard *shard = replica->all->shard;

	if (PQntuples(result) != 1 || PQgetisnull(result, 0, IDENTITY_SHARD_ID))
		return wig_fail(err, "the database belongs to no shard");
	if (strtol(PQgetvalue(result, 0, IDENTITY_SHARD_ID), NULL, 10) != shard->entry->id)
		return wig_fail(err, "the database belongs to shard %s; correct the topology",
						PQgetvalue(result, 0, IDENTITY_SHARD_ID));
	if (strcmp(PQgetvalue(result, 0, IDENTITY_SYSTEM), shard->system_id) != 0 ||
		strcmp(PQgetvalue(result, 0, IDENTITY_DATABASE), shard->database) != 0)
		return wig_fail(err, "the database is no streaming copy of the shard's primary (%s); correct the topology",
						target_name(shard->target));
	return true;
}

static void
failed(void *owner, const char *why)
{
	struct replica *replica = owner;

	if (strcmp(replica->said, why) == 0)
		return;
	snprintf(replica->said, sizeof(replica->said), "%s", why);
	log_warn("replica", "shard %d: cannot connect to replica %s, trying again: %s",
			 replica->all->shard->entry->id, target_name(replica->target), why);
}

static const struct side_ops replica_ops = {
	.greeted = greeted,
	.elsewhere = ask_elsewhere,
	.failed = failed,
};

/* ---- all of them ---- */

static struct target *
make_target(const struct topology_shard *entry, int i, struct wig_error *err)
{
	const struct topology_replica *replica = &entry->replicas[i];
	char		what[64];

	snprintf(what, sizeof(what), "shard %d replica %d", entry->id, i + 1);
	return target_create(what, replica->url, replica->user, replica->password, SESSION_ANY, err);
}

bool
replicas_check(const struct topology_shard *entry, struct wig_error *err)
{
	for (int i = 0; i < entry->nreplicas; i++)
	{
		struct target *target = make_target(entry, i, err);

		if (target == NULL)
			return false;
		target_free(target);
	}
	return true;
}

static void
create(struct replicas *all, int i)
{
	const struct topology_shard *entry = all->shard->entry;
	struct replica *replica = &all->list[i];
	struct wig_error err;
	char		labels[64];

	snprintf(labels, sizeof(labels), "shard=\"%d\",replica=\"%d\"", entry->id, i + 1);
	replica->all = all;
	replica->lag_ms = LAG_UNKNOWN;
	replica->target = make_target(entry, i, &err);
	replica->pool = side_create(all->shard, replica->target, entry->replicas[i].pool, entry->replicas[i].pool,
								&replica_ops, replica);
	replica->lag = metric_gauge_millis("wiggle_proxy_replica_lag_seconds", labels,
									   "How far a replica is behind its primary, at least; -1: it cannot be asked");
	/* nobody asks it before the primary has been set up */
	metric_set(replica->lag, AWAY_MS);
	replica->reads = metric_counter("wiggle_proxy_replica_reads_total", labels, "Reads given to a replica");
}

struct replicas *
replicas_create(struct shard *shard)
{
	struct replicas *all = xcalloc(1, sizeof(*all));
	char		labels[32];

	all->shard = shard;
	all->n = shard->entry->nreplicas;
	all->list = xcalloc((size_t) all->n, sizeof(*all->list));
	for (int i = 0; i < all->n; i++)
		create(all, i);
	snprintf(labels, sizeof(labels), "shard=\"%d\"", shard->entry->id);
	all->elsewhere = metric_counter("wiggle_proxy_replica_misses_total", labels,
									"Reads that no replica could take");
	return all;
}

static void
free_all(struct deadline *deadline)
{
	struct replicas *all = deadline_owner(deadline, struct replicas, round);

	if (!replicas_idle(all))
	{
		deadline_set(deadline, loop_now() + BEAT_MS, free_all);
		return;
	}
	for (int i = 0; i < all->n; i++)
	{
		side_free(all->list[i].pool);
		target_free(all->list[i].target);
	}
	free(all->list);
	free(all);
}

void
replicas_leave(struct replicas *replicas)
{
	replicas_stop(replicas);
	replicas->left = true;
	for (int i = 0; i < replicas->n; i++)
		metric_set(replicas->list[i].lag, METRIC_GONE);
	deadline_set(&replicas->round, loop_now(), free_all);
}

void
replicas_start(struct replicas *replicas)
{
	if (replicas->round.slot != 0)
		return;
	for (int i = 0; i < replicas->n; i++)
		side_start(replicas->list[i].pool);
	deadline_set(&replicas->round, loop_now(), begin_round);
}

void
replicas_stop(struct replicas *replicas)
{
	deadline_clear(&replicas->round);
	for (int i = 0; i < replicas->n; i++)
	{
		replicas->list[i].serves = false;
		side_stop(replicas->list[i].pool);
	}
}

bool
replicas_idle(const struct replicas *replicas)
{
	for (int i = 0; i < replicas->n; i++)
	{
		if (!side_idle(replicas->list[i].pool))
			return false;
	}
	return !replicas->asked;
}
