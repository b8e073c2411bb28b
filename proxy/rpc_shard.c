/*
 * rpc_shard.c
 *	  ListShards, RetireShard: pg_wiggle's own service.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admission.h"
#include "gather.h"
#include "home_clock.h"
#include "inquiry.h"
#include "message.h"
#include "pg_wiggle.pb-c.h"
#include "placement.h"
#include "rpc.h"
#include "rpc_shard.h"
#include "view.h"

typedef PgWiggle__V1__Shard ShardView;
typedef PgWiggle__V1__RetireShardRequest RetireShardRequest;

/* A shard that hangs is listed without its numbers. */
#define PATIENCE_MS 2000

#define ROLES 4

static const char *const states[] = {"ACTIVE", "DRAINING", "RETIRED"};
static const char *const roles[ROLES] = {"instances", "home", "auth", "search"};

/* ---- ListShards ---- */

struct listing
{
	struct gather gather;		/* first: it is handed back */
	struct pending pending;
};

static int32_t
weight_in(const struct generation *generation, int index)
{
	for (int i = 0; generation != NULL && i < generation->nweights; i++)
	{
		if (generation->weights[i].shard == index)
			return generation->weights[i].weight;
	}
	return 0;
}

static void
view_entry(const struct topology_shard *entry, ShardView *view, char **names)
{
	pg_wiggle__v1__shard__init(view);
	view->id = entry->id;
	view->state = (char *) states[entry->state];
	view->roles = names;
	for (int i = 0; i < ROLES; i++)
	{
		if (entry->roles & (1u << i))
			view->roles[view->n_roles++] = (char *) roles[i];
	}
}

static void
view_shard(const struct shard *shard, const struct gather_part *part, ShardView *view)
{
	const PGresult *result = part->result;

	view->place = (char *) target_name(shard->target);
	view->reachable = shard->reachable;
	view->changed_at = shard->changed_at_ms;
	view->connections = shard_connections(shard);
	view->takes_instances = shard_takes(shard);
	view->library_version = (char *) shard->version;
	if (!shard->reachable)
		view->problem = (char *) shard_problem(shard);
	else if (result == NULL)
		view->problem = (char *) "it does not answer";
	else if (shard->definitions == DEFINITIONS_BEHIND)
		view->problem = (char *) "it lacks definitions that home has, and takes no new instances";
	if (result == NULL || PQntuples(result) != 1)
		return;
	view->counted = true;
	view->live_instances = view_number(result, 0, 0);
	view->held_instances = view_number(result, 0, 1);
	view->lag_millis = view_number(result, 0, 2);
	view->extension_version = PQgetvalue(result, 0, 3);
	view->more_instances = *PQgetvalue(result, 0, 4) == 't';
}

static void
counted(struct gather *gather)
{
	struct listing *listing = (struct listing *) gather;
	const struct topology *topology = shard_topology();
	PgWiggle__V1__ListShardsResponse reply = PG_WIGGLE__V1__LIST_SHARDS_RESPONSE__INIT;
	size_t		n = (size_t) topology->nshards;
	ShardView  *views = xcalloc(n, sizeof(*views));
	ShardView **pointers = xcalloc(n, sizeof(*pointers));
	char	  **names = xcalloc(n * ROLES, sizeof(*names));
	const struct generation *present;
	const struct generation *next;

	present = &topology->generations[placement_generation(topology, home_clock_ms())];
	next = present + 1 < topology->generations + topology->ngenerations ? present + 1 : NULL;
	reply.generation = present->id;
	reply.next_generation = next ? next->id : 0;
	reply.next_from = next ? next->active_from_ms : 0;
	for (int i = 0; i < topology->nshards; i++)
	{
		view_entry(&topology->shards[i], &views[i], names + (size_t) i * ROLES);
		views[i].weight = weight_in(present, i);
		views[i].next_weight = weight_in(next, i);
		if (shard_at(i) != NULL)
			view_shard(shard_at(i), &gather->parts[shard_at(i)->slot], &views[i]);
		pointers[i] = &views[i];
	}
	reply.shards = pointers;
	reply.n_shards = n;
	pending_reply(&listing->pending, &reply.base);
	free(names);
	free(pointers);
	free(views);
	gather_free(gather);
	pending_close(&listing->pending);
	free(listing);
}

void
rpc_list_shards(struct call *call)
{
	ProtobufCMessage *message = message_request(call, &pg_wiggle__v1__list_shards_request__descriptor);
	struct listing *listing;

	if (message == NULL)
		return;
	listing = xcalloc(1, sizeof(*listing));
	pending_open(&listing->pending, call, message);
	gather_begin(&listing->gather, counted);
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		gather_question(&listing->gather, slot)->statement = SQL_SHARD_LOAD;
		gather_ask(&listing->gather, slot);
	}
	gather_hurry(&listing->gather, PATIENCE_MS);
	gather_end(&listing->gather);
}

/* ---- RetireShard ---- */

static void
answer_retired(struct inquiry *inquiry, const PGresult *result)
{
	PgWiggle__V1__RetireShardResponse reply = PG_WIGGLE__V1__RETIRE_SHARD_RESPONSE__INIT;
	const RetireShardRequest *request = (const RetireShardRequest *) inquiry->pending.request;
	int			index = topology_find(shard_topology(), request->id);

	(void) result;
	if (index >= 0 && shard_at(index) != NULL)
		admission_renew(shard_at(index)->admission);
	reply.id = request->id;
	pending_reply(&inquiry->pending, &reply.base);
}

void
rpc_retire_shard(struct call *call)
{
	const struct topology *topology = shard_topology();
	struct inquiry *inquiry = inquiry_open(call, &pg_wiggle__v1__retire_shard_request__descriptor, answer_retired);
	const RetireShardRequest *request;
	int			index;
	const char *problem = NULL;

	if (inquiry == NULL)
		return;
	request = (const RetireShardRequest *) inquiry->pending.request;
	index = topology_find(topology, request->id);
	if (index < 0)
		problem = "the topology lists no such shard";
	else if (shard_at(index) == NULL)
		problem = "the topology calls it retired already";
	else if (topology->shards[index].state != SHARD_DRAINING)
		problem = "it is active; append a generation without it to the topology, and when that has begun set its state to"
			" draining";
	if (problem != NULL)
	{
		inquiry_fail(inquiry, index < 0 ? GRPC_NOT_FOUND : GRPC_FAILED_PRECONDITION, "shard %d: %s",
					 (int) request->id, problem);
		return;
	}
	snprintf(inquiry->number, sizeof(inquiry->number), "%d", (int) request->id);
	inquiry->question.statement = SQL_SHARD_OWED;
	inquiry->question.nparams = 1;
	inquiry->question.params[0] = inquiry->number;
	inquiry->then = shard_at(index);
	inquiry->then_ask = SQL_SHARD_RETIRE;
	inquiry_ask_home(inquiry);
}
