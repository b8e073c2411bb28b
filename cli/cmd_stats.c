/*
 * cmd_stats.c
 *	  wiggle stats, backlog, cluster: how the work goes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#include "output.h"
#include "session.h"
#include "wiggle.pb-c.h"

static enum exit_status run_stats(struct session *session, const struct arguments *args);
static enum exit_status run_backlog(struct session *session, const struct arguments *args);
static enum exit_status run_cluster(struct session *session, const struct arguments *args);

static const struct option stats_options[] = {
	{"version", 0, "N", "of this version (default: the highest)"},
	{"workflow-version", 0, "N", "the same"},
	{"since", 0, "WHEN", "only steps that ended since: 1h, 2026-10-01 or 2026-10-01T12:30:00Z"},
	{"sample", 0, "N", "look at this many of the latest steps at most (default 10000)"},
	{NULL, 0, NULL, NULL}
};

const struct command command_stats = {
	.name = "stats",
	.words = "WORKFLOW",
	.min_words = 1,
	.max_words = 1,
	.summary = "how long the steps of a workflow take and wait, the slowest first",
	.details =
	"COUNT steps were looked at; half of them took at most P50, 95 in a hundred at most P95.\n"
	"WAIT is the time between a step's being ready and its start, by the same measure.\n"
	"All times are in milliseconds.\n"
	"\n"
	"Examples:\n"
	"  wiggle stats order --since 24h\n"
	"  wiggle --json stats order --version 3 | jq '.nodes[] | select(.p95 > 1000)'\n",
	.options = stats_options,
	.calls = true,
	.run = run_stats
};

static const struct option backlog_options[] = {
	{"max", 'n', "N", "at most so many lines, 1 to 500 (default 100)"},
	{NULL, 0, NULL, NULL}
};

const struct command command_backlog = {
	.name = "backlog",
	.words = "",
	.summary = "the steps that are ready, and whether a worker asks for them",
	.details =
	"A line is what is ready of one version of a workflow on one queue, the most first. It is\n"
	"covered when some worker that polled in the last minute would take it. \"no\" for long\n"
	"means that a worker is missing.\n"
	"\n"
	"Example:\n"
	"  wiggle backlog\n",
	.options = backlog_options,
	.calls = true,
	.run = run_backlog
};

static const struct option no_options[] = {{NULL, 0, NULL, NULL}};

const struct command command_cluster = {
	.name = "cluster",
	.words = "",
	.summary = "the proxies that serve the same databases",
	.details =
	"The one that answered is marked with a star. A proxy that has not been heard of for\n"
	"some seconds is not alive; it is listed until it is forgotten.\n"
	"\n"
	"Example:\n"
	"  wiggle cluster\n",
	.options = no_options,
	.calls = true,
	.run = run_cluster
};

/* ---- stats ---- */

static void
print_stats_json(const PB(StepStats) *stats)
{
	struct buf	out = BUF_INIT;

	json_open(&out, NULL, '{');
	json_text(&out, "workflow", stats->workflow);
	json_number(&out, "version", stats->version);
	json_open(&out, "nodes", '[');
	for (size_t i = 0; i < stats->n_nodes; i++)
	{
		const PB(NodeStats) *node = stats->nodes[i];
		char		mean[64];
		int			len = snprintf(mean, sizeof(mean), "%.3f", node->mean_millis);

		json_open(&out, NULL, '{');
		json_text(&out, "node_id", node->node_id);
		json_text(&out, "name", node->name);
		json_number(&out, "count", node->count);
		json_raw(&out, "mean_millis", mean, (size_t) len);
		json_number(&out, "p50", node->p50);
		json_number(&out, "p95", node->p95);
		json_number(&out, "max", node->max);
		json_number(&out, "wait_p50", node->wait_p50);
		json_number(&out, "wait_p95", node->wait_p95);
		json_close(&out, '}');
	}
	json_close(&out, ']');
	json_close(&out, '}');
	print_buf(&out);
	buf_free(&out);
}

#define STATS_COLUMNS 8

static void
print_stats_text(const PB(StepStats) *stats)
{
	static const char *const headings[STATS_COLUMNS] = {
		"STEP", "COUNT", "MEAN", "P50", "P95", "MAX", "WAIT P50", "WAIT P95"
	};
	struct table table;

	table_start(&table, STATS_COLUMNS, headings);
	for (size_t i = 0; i < stats->n_nodes; i++)
	{
		const PB(NodeStats) *node = stats->nodes[i];
		char		text[STATS_COLUMNS][32];
		const char *cells[STATS_COLUMNS] = {node->name[0] != '\0' ? node->name : node->node_id};
		const int64_t numbers[] = {node->p50, node->p95, node->max, node->wait_p50, node->wait_p95};

		snprintf(text[1], sizeof(text[1]), "%" PRId64, node->count);
		snprintf(text[2], sizeof(text[2]), "%.1f", node->mean_millis);
		for (int k = 0; k < 5; k++)
			snprintf(text[k + 3], sizeof(text[k + 3]), "%" PRId64, numbers[k]);
		for (int k = 1; k < STATS_COLUMNS; k++)
			cells[k] = text[k];
		table_row(&table, cells);
	}
	table_print(&table, stdout);
	table_free(&table);
}

static enum exit_status
run_stats(struct session *session, const struct arguments *args)
{
	PB(StepStatsRequest) request = PB_INIT(STEP_STATS_REQUEST);
	PB(StepStats) *stats;
	struct timeval now;
	struct wig_error err;
	int64_t		version = 0;
	int64_t		sample = 0;
	enum grpc_status status;

	gettimeofday(&now, NULL);
	if (!options_number(args, "workflow-version", 1, INT32_MAX, &version, &err) ||
		!options_number(args, "version", 1, INT32_MAX, &version, &err) ||
		!options_number(args, "sample", 1, INT32_MAX, &sample, &err) ||
		!options_moment(args, "since", (int64_t) now.tv_sec * 1000 + now.tv_usec / 1000, &request.since, &err))
		return complain(EXIT_USAGE, NULL, &err);
	request.workflow = (char *) args->words[0];
	request.version = (int32_t) version;
	request.sample = (int32_t) sample;
	stats = (PB(StepStats) *)
		session_call(session, "GetStepStats", &request.base, PB_TYPE(step_stats), NULL, &status);
	if (stats == NULL)
		return status_exit(status);
	if (session->json)
		print_stats_json(stats);
	else
		print_stats_text(stats);
	protobuf_c_message_free_unpacked(&stats->base, NULL);
	return EXIT_DONE;
}

/* ---- backlog ---- */

static void
print_backlog_json(const PB(BacklogCoverage) *backlog)
{
	struct buf	out = BUF_INIT;

	json_open(&out, NULL, '{');
	json_open(&out, "slices", '[');
	for (size_t i = 0; i < backlog->n_slices; i++)
	{
		const PB(BacklogSlice) *slice = backlog->slices[i];

		json_open(&out, NULL, '{');
		json_text(&out, "workflow", slice->workflow);
		json_number(&out, "version", slice->version);
		json_text(&out, "queue", slice->queue[0] == '\0' ? NULL : slice->queue);
		json_number(&out, "ready_count", slice->ready_count);
		json_time(&out, "oldest_available_at", slice->oldest_available_at);
		json_flag(&out, "covered", slice->covered);
		json_close(&out, '}');
	}
	json_close(&out, ']');
	json_number(&out, "live_pollers", backlog->live_pollers);
	json_close(&out, '}');
	print_buf(&out);
	buf_free(&out);
}

static void
print_backlog_text(const PB(BacklogCoverage) *backlog)
{
	static const char *const headings[] = {"WORKFLOW", "VERSION", "QUEUE", "READY", "OLDEST", "COVERED"};
	struct table table;

	table_start(&table, 6, headings);
	for (size_t i = 0; i < backlog->n_slices; i++)
	{
		const PB(BacklogSlice) *slice = backlog->slices[i];
		char		version[16];
		char		ready[16];
		char		oldest[40];
		const char *cells[] = {
			slice->workflow, version, slice->queue, ready, oldest, slice->covered ? "yes" : "no"
		};

		snprintf(version, sizeof(version), "%d", (int) slice->version);
		snprintf(ready, sizeof(ready), "%d", (int) slice->ready_count);
		format_time(slice->oldest_available_at, oldest);
		table_row(&table, cells);
	}
	table_print(&table, stdout);
	table_free(&table);
	printf("\npollers in the last minute: %d\n", (int) backlog->live_pollers);
}

static enum exit_status
run_backlog(struct session *session, const struct arguments *args)
{
	PB(BacklogCoverageRequest) request = PB_INIT(BACKLOG_COVERAGE_REQUEST);
	PB(BacklogCoverage) *backlog;
	struct wig_error err;
	int64_t		max = 0;
	enum grpc_status status;

	if (!options_number(args, "max", 1, 500, &max, &err))
		return complain(EXIT_USAGE, NULL, &err);
	request.max = (int32_t) max;
	backlog = (PB(BacklogCoverage) *)
		session_call(session, "GetBacklogCoverage", &request.base, PB_TYPE(backlog_coverage), NULL, &status);
	if (backlog == NULL)
		return status_exit(status);
	if (session->json)
		print_backlog_json(backlog);
	else
		print_backlog_text(backlog);
	protobuf_c_message_free_unpacked(&backlog->base, NULL);
	return EXIT_DONE;
}

/* ---- cluster ---- */

static void
print_cluster_json(const PB(ClusterView) *cluster)
{
	struct buf	out = BUF_INIT;

	json_open(&out, NULL, '{');
	json_text(&out, "self", cluster->self);
	json_flag(&out, "leader", cluster->leader);
	json_open(&out, "members", '[');
	for (size_t i = 0; i < cluster->n_members; i++)
	{
		const PB(ClusterMember) *member = cluster->members[i];

		json_open(&out, NULL, '{');
		json_text(&out, "id", member->id);
		json_text(&out, "name", member->name);
		json_time(&out, "first_heartbeat", member->first_heartbeat);
		json_time(&out, "last_heartbeat", member->last_heartbeat);
		json_number(&out, "workers", member->workers);
		json_flag(&out, "leader", member->leader);
		json_flag(&out, "alive", member->alive);
		json_close(&out, '}');
	}
	json_close(&out, ']');
	json_close(&out, '}');
	print_buf(&out);
	buf_free(&out);
}

static void
print_cluster_text(const PB(ClusterView) *cluster)
{
	static const char *const headings[] = {"", "NAME", "ID", "ALIVE", "WORKERS", "SINCE", "LAST HEARD OF"};
	struct table table;

	table_start(&table, 7, headings);
	for (size_t i = 0; i < cluster->n_members; i++)
	{
		const PB(ClusterMember) *member = cluster->members[i];
		char		workers[16];
		char		first[40];
		char		last[40];
		const char *cells[] = {
			strcmp(member->id, cluster->self) == 0 ? "*" : "", member->name, member->id,
			member->alive ? "yes" : "no", workers, first, last
		};

		snprintf(workers, sizeof(workers), "%d", (int) member->workers);
		format_time(member->first_heartbeat, first);
		format_time(member->last_heartbeat, last);
		table_row(&table, cells);
	}
	table_print(&table, stdout);
	table_free(&table);
}

static enum exit_status
run_cluster(struct session *session, const struct arguments *args)
{
	PB(Empty) request = PB_INIT(EMPTY);
	PB(ClusterView) *cluster;
	enum grpc_status status;

	(void) args;
	cluster = (PB(ClusterView) *)
		session_call(session, "GetCluster", &request.base, PB_TYPE(cluster_view), NULL, &status);
	if (cluster == NULL)
		return status_exit(status);
	if (session->json)
		print_cluster_json(cluster);
	else
		print_cluster_text(cluster);
	protobuf_c_message_free_unpacked(&cluster->base, NULL);
	return EXIT_DONE;
}
