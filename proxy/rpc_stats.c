/*
 * rpc_stats.c
 *	  GetStepStats, GetBacklogCoverage.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gather.h"
#include "member.h"
#include "message.h"
#include "roster.h"
#include "rpc.h"
#include "rpc_stats.h"
#include "view.h"

#define DEFAULT_SAMPLE	10000
#define DEFAULT_SLICES	100
#define MAX_SLICES		500

/* A slice that is small on each shard may be large in all: more are read than shown. */
#define READ_SLICES		"5000"

typedef Com__Wiggle__Proto__StepStatsRequest StepStatsRequest;
typedef Com__Wiggle__Proto__NodeStats NodeStats;
typedef Com__Wiggle__Proto__BacklogCoverageRequest BacklogCoverageRequest;
typedef Com__Wiggle__Proto__BacklogSlice BacklogSlice;

/* ---- GetStepStats ---- */

/* Milliseconds since 1970; a timestamp ends in the year 294276. */
#define LAST_MILLIS		INT64_C(9000000000000000)

struct stats
{
	struct gather gather;		/* first: it is handed back */
	struct pending pending;
	char		version[16];
	char		since[24];
	char		sample[16];
};

static double
weigh(double a, int64_t na, double b, int64_t nb)
{
	return (a * (double) na + b * (double) nb) / (double) (na + nb);
}

/*
 * A shard tells its percentiles, not its samples: over several they are the mean of
 * the shards' own by the number of steps, which lies between them.
 */
static void
add_node(NodeStats *node, const PGresult *result, int row)
{
	int64_t		had = node->count;
	int64_t		more = view_number(result, row, STATS_COUNT);
	int64_t		most = view_number(result, row, STATS_MAX);

	if (more <= 0)
		return;
	node->count += more;
	node->mean_millis = weigh(node->mean_millis, had, strtod(PQgetvalue(result, row, STATS_MEAN), NULL), more);
	node->max = most > node->max ? most : node->max;
#define WEIGH(field, column) \
	node->field = (int64_t) (weigh((double) node->field, had, (double) view_number(result, row, column), more) + 0.5)
	WEIGH(p50, STATS_P50);
	WEIGH(p95, STATS_P95);
	WEIGH(wait_p50, STATS_WAIT_P50);
	WEIGH(wait_p95, STATS_WAIT_P95);
#undef WEIGH
}

/* Slowest first; of equals by node. */
static int
compare_nodes(const void *a, const void *b)
{
	const NodeStats *x = *(NodeStats *const *) a;
	const NodeStats *y = *(NodeStats *const *) b;

	if (x->p95 != y->p95)
		return x->p95 > y->p95 ? -1 : 1;
	return strcmp(x->node_id, y->node_id);
}

static NodeStats *
node_for(NodeStats **nodes, size_t *n, const PGresult *result, int row)
{
	char	   *id = PQgetvalue(result, row, STATS_NODE);

	for (size_t i = 0; i < *n; i++)
	{
		if (strcmp(nodes[i]->node_id, id) == 0)
			return nodes[i];
	}
	nodes[*n] = xcalloc(1, sizeof(NodeStats));
	com__wiggle__proto__node_stats__init(nodes[*n]);
	nodes[*n]->node_id = id;
	nodes[*n]->name = PQgetvalue(result, row, STATS_NAME);
	return nodes[(*n)++];
}

static void
reply_stats(struct stats *stats)
{
	const StepStatsRequest *request = (const StepStatsRequest *) stats->pending.request;
	Com__Wiggle__Proto__StepStats reply = COM__WIGGLE__PROTO__STEP_STATS__INIT;
	int			rows = 0;

	for (int slot = 0; slot < shard_slots(); slot++)
		rows += PQntuples(stats->gather.parts[slot].result);
	reply.nodes = xcalloc((size_t) rows + 1, sizeof(NodeStats *));
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		const PGresult *result = stats->gather.parts[slot].result;

		for (int row = 0; row < PQntuples(result); row++)
			add_node(node_for(reply.nodes, &reply.n_nodes, result, row), result, row);
	}
	qsort(reply.nodes, reply.n_nodes, sizeof(NodeStats *), compare_nodes);
	reply.workflow = request->workflow;
	reply.version = request->version;
	pending_reply(&stats->pending, &reply.base);
	for (size_t i = 0; i < reply.n_nodes; i++)
		free(reply.nodes[i]);
	free(reply.nodes);
}

static void
stats_known(struct gather *gather)
{
	struct stats *stats = (struct stats *) gather;

	if (!gather_suffices(gather, stats->pending.call, false))
		pending_refuse(&stats->pending, gather_refusal(gather));
	else
		reply_stats(stats);
	gather_free(gather);
	pending_close(&stats->pending);
	free(stats);
}

void
rpc_get_step_stats(struct call *call)
{
	ProtobufCMessage *message =
		message_request(call, &com__wiggle__proto__step_stats_request__descriptor);
	const StepStatsRequest *request = (const StepStatsRequest *) message;
	struct stats *stats;
	const char *params[4];
	int64_t		since;

	if (request == NULL)
		return;
	stats = xcalloc(1, sizeof(*stats));
	pending_open(&stats->pending, call, message);
	snprintf(stats->version, sizeof(stats->version), "%d", request->version);
	/* Any number is an instant; those that timestamps lack mean "all" and "none". */
	since = request->since < 0 ? 0 : request->since > LAST_MILLIS ? LAST_MILLIS : request->since;
	snprintf(stats->since, sizeof(stats->since), "%lld", (long long) since);
	snprintf(stats->sample, sizeof(stats->sample), "%d", request->sample > 0 ? request->sample : DEFAULT_SAMPLE);
	params[0] = request->workflow;
	params[1] = request->version > 0 ? stats->version : NULL;
	params[2] = stats->since;
	params[3] = stats->sample;
	gather_all(&stats->gather, SQL_STEP_STATS, params, 4, true, call, stats_known);
}

/* ---- GetBacklogCoverage ---- */

struct backlog
{
	struct gather gather;		/* first: it is handed back */
	struct question question;	/* home's: what the other proxies' workers poll for */
	struct pending pending;
	json_t	   *polls;
	int			pollers;
};

static void
end_backlog(struct backlog *backlog)
{
	gather_free(&backlog->gather);
	json_decref(backlog->polls);
	pending_close(&backlog->pending);
	free(backlog);
}

/* Most first; of equals by name. */
static int
compare_slices(const void *a, const void *b)
{
	const BacklogSlice *x = *(BacklogSlice *const *) a;
	const BacklogSlice *y = *(BacklogSlice *const *) b;
	int			order;

	if (x->ready_count != y->ready_count)
		return x->ready_count > y->ready_count ? -1 : 1;
	order = strcmp(x->workflow, y->workflow);
	if (order == 0)
		order = x->version < y->version ? -1 : x->version > y->version;
	return order != 0 ? order : strcmp(x->queue, y->queue);
}

static int
compare_keys(const void *a, const void *b)
{
	const BacklogSlice *x = *(BacklogSlice *const *) a;
	const BacklogSlice *y = *(BacklogSlice *const *) b;
	int			order = strcmp(x->workflow, y->workflow);

	if (order == 0)
		order = x->version < y->version ? -1 : x->version > y->version;
	return order != 0 ? order : strcmp(x->queue, y->queue);
}

/* Slices of one key become one; they are in order of keys. */
static size_t
unite(BacklogSlice **slices, size_t n)
{
	size_t		kept = 0;

	for (size_t i = 0; i < n; i++)
	{
		BacklogSlice *last = kept > 0 ? slices[kept - 1] : NULL;

		if (last == NULL || compare_keys(&last, &slices[i]) != 0)
		{
			slices[kept++] = slices[i];
			continue;
		}
		last->ready_count += slices[i]->ready_count;
		if (slices[i]->oldest_available_at < last->oldest_available_at)
			last->oldest_available_at = slices[i]->oldest_available_at;
	}
	return kept;
}

static size_t
read_slices(const struct gather *gather, BacklogSlice *views, BacklogSlice **slices)
{
	size_t		n = 0;

	for (int slot = 0; slot < shard_slots(); slot++)
	{
		const PGresult *result = gather->parts[slot].result;

		for (int row = 0; row < PQntuples(result); row++)
		{
			BacklogSlice *view = &views[n];

			com__wiggle__proto__backlog_slice__init(view);
			view->workflow = PQgetvalue(result, row, BACKLOG_WORKFLOW);
			view->version = (int32_t) view_number(result, row, BACKLOG_VERSION);
			view->queue = PQgetvalue(result, row, BACKLOG_QUEUE);
			view->ready_count = (int32_t) view_number(result, row, BACKLOG_READY);
			view->oldest_available_at = view_number(result, row, BACKLOG_OLDEST);
			slices[n++] = view;
		}
	}
	return n;
}

static void
reply_backlog(struct backlog *backlog)
{
	const BacklogCoverageRequest *request = (const BacklogCoverageRequest *) backlog->pending.request;
	Com__Wiggle__Proto__BacklogCoverage reply = COM__WIGGLE__PROTO__BACKLOG_COVERAGE__INIT;
	size_t		most = request->max <= 0 ? DEFAULT_SLICES
		: request->max < MAX_SLICES ? (size_t) request->max : MAX_SLICES;
	size_t		rows = 0;
	BacklogSlice *views;

	for (int slot = 0; slot < shard_slots(); slot++)
		rows += (size_t) PQntuples(backlog->gather.parts[slot].result);
	views = xcalloc(rows + 1, sizeof(*views));
	reply.slices = xcalloc(rows + 1, sizeof(*reply.slices));
	rows = read_slices(&backlog->gather, views, reply.slices);
	qsort(reply.slices, rows, sizeof(*reply.slices), compare_keys);
	rows = unite(reply.slices, rows);
	qsort(reply.slices, rows, sizeof(*reply.slices), compare_slices);
	reply.n_slices = rows < most ? rows : most;
	for (size_t i = 0; i < reply.n_slices; i++)
		reply.slices[i]->covered = roster_covers(backlog->polls, reply.slices[i]->workflow,
												 reply.slices[i]->version, reply.slices[i]->queue);
	reply.live_pollers = backlog->pollers;
	pending_reply(&backlog->pending, &reply.base);
	free(reply.slices);
	free(views);
}

static void
backlog_known(struct gather *gather)
{
	struct backlog *backlog = (struct backlog *) gather;

	if (!gather_suffices(gather, backlog->pending.call, false))
		pending_refuse(&backlog->pending, gather_refusal(gather));
	else
		reply_backlog(backlog);
	end_backlog(backlog);
}

/* This process's own pollers are known better here than from its last heartbeat. */
static void
nodes_known(struct question *question, const PGresult *result, const struct refusal *refusal)
{
	struct backlog *backlog =
		(struct backlog *) ((char *) question - offsetof(struct backlog, question));
	static const char *const params[] = {READ_SLICES};

	if (result == NULL)
	{
		pending_refuse(&backlog->pending, refusal);
		end_backlog(backlog);
		return;
	}
	backlog->polls = roster_polls();
	backlog->pollers = roster_count();
	for (int row = 0; row < PQntuples(result); row++)
	{
		json_t	   *polls;

		if (strcmp(PQgetvalue(result, row, NODE_ALIVE), "t") != 0 ||
			strcmp(PQgetvalue(result, row, NODE_ID), member_id()) == 0)
			continue;
		backlog->pollers += (int) view_number(result, row, NODE_WORKERS);
		polls = json_loads(PQgetvalue(result, row, NODE_POLLS), 0, NULL);
		if (json_is_array(polls))
			json_array_extend(backlog->polls, polls);
		json_decref(polls);
	}
	gather_all(&backlog->gather, SQL_BACKLOG, params, 1, true, backlog->pending.call, backlog_known);
}

void
rpc_get_backlog_coverage(struct call *call)
{
	ProtobufCMessage *message =
		message_request(call, &com__wiggle__proto__backlog_coverage_request__descriptor);
	struct shard *home = shard_at(shard_topology()->home);
	struct backlog *backlog;
	struct refusal refusal;
	enum submit submitted;

	if (message == NULL)
		return;
	backlog = xcalloc(1, sizeof(*backlog));
	pending_open(&backlog->pending, call, message);
	backlog->question.statement = SQL_NODES;
	backlog->question.done = nodes_known;
	submitted = shard_ask(home, &backlog->question);
	if (submitted == SUBMIT_OK)
		return;
	shard_refuse(home, submitted, &refusal);
	nodes_known(&backlog->question, NULL, &refusal);
}
