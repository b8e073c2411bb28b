/*
 * cmd_topology.c
 *	  wiggle topology check.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "conninfo.h"
#include "output.h"
#include "placement.h"
#include "session.h"
#include "source.h"
#include "topology.h"
#include "topology_probe.h"

static enum exit_status run_topology(struct session *session, const struct arguments *args);

static const struct option topology_options[] = {
	{"connect", 0, NULL, "also connect to every primary and replica and compare what they say"},
	{NULL, 0, NULL, NULL}
};

const struct command command_topology = {
	.name = "topology",
	.words = "check FILE",
	.min_words = 2,
	.max_words = 2,
	.summary = "check a topology document without a server",
	.details =
	"FILE is what WIGGLE_STORAGE_TOPOLOGY would name: a path, or the document itself when it\n"
	"begins with '{'; \"-\" is standard input. ${NAME} is taken from the environment. What the\n"
	"proxy would refuse is refused with the same words.\n"
	"\n"
	"Each shard is shown with its weight now and under the next generation, by this\n"
	"machine's clock (proxies go by the home shard's). With --connect also: is every primary\n"
	"reachable and writable, is every replica a standby of its primary and how far behind,\n"
	"which versions are there, does every database belong to its shard, is one listed twice,\n"
	"does home's list of shards agree, as on a start. Nothing is changed anywhere. Of home's\n"
	"keys and roles it is asked when WIGGLE_GRPC_AUTH is set as for the proxies. The exit status is 2 for a document that is not valid, 1\n"
	"when something else is wrong, 3 when all that is wrong is that a database cannot be reached.\n"
	"\n"
	"Examples:\n"
	"  wiggle topology check topology.json\n"
	"  WIGGLE_JDBC_USER=wiggle WIGGLE_JDBC_PASSWORD=… wiggle topology check topology.json --connect\n",
	.options = topology_options,
	.run = run_topology
};

/* ---- reading ---- */

static const char *
variable(const char *name)
{
	return getenv(name);
}

/* The document that the argument names, checked; NULL after a complaint. */
static struct topology *
load(const char *argument, const char *shown)
{
	struct buf	text = BUF_INIT;
	struct wig_error err = {0};
	struct topology *topology = NULL;

	if (shown != argument)
		buf_text(&text, argument);
	else if (!source_read(argument, &text, &err))
	{
		complain(EXIT_USAGE, NULL, &err);
		buf_free(&text);
		return NULL;
	}
	topology = topology_parse(buf_cstr(&text), text.len, variable, conninfo_parameters(), &err);
	if (topology != NULL && (!conninfo_check(topology, &err) ||
							 !placement_check(topology, (int64_t) time(NULL) * 1000, &err)))
	{
		topology_free(topology);
		topology = NULL;
	}
	if (topology == NULL)
		complain(EXIT_USAGE, shown, &err);
	buf_free(&text);
	return topology;
}

/* ---- showing ---- */

static const char *const roles[] = {"instances", "home", "auth", "search"};

static void
put_roles(struct buf *out, unsigned set)
{
	for (int i = 0; i < 4; i++)
	{
		if (set & (1u << i))
			buf_printf(out, "%s%s", out->len > 0 ? "," : "", roles[i]);
	}
}

static int32_t
weight_of(const struct topology *topology, int generation, int shard)
{
	for (int i = 0; i < topology->generations[generation].nweights; i++)
	{
		if (topology->generations[generation].weights[i].shard == shard)
			return topology->generations[generation].weights[i].weight;
	}
	return 0;
}

/* "2 (16, 8)": how many and their pools. */
static void
put_replicas(struct buf *out, const struct topology_shard *shard)
{
	buf_printf(out, "%d", shard->nreplicas);
	for (int i = 0; i < shard->nreplicas; i++)
		buf_printf(out, "%s%d%s", i == 0 ? " (" : ", ", shard->replicas[i].pool,
				   i == shard->nreplicas - 1 ? ")" : "");
}

static void
print_shard(struct table *table, const struct topology *topology, int index, int now)
{
	const struct topology_shard *shard = &topology->shards[index];
	struct buf	names[4] = {BUF_INIT, BUF_INIT, BUF_INIT, BUF_INIT};
	char		id[16];
	char		pool[16] = "";
	char		weight[16];
	char		from[40];
	const char *cells[8] = {id, topology_state_name(shard->state), NULL, NULL, pool, NULL, weight, NULL};

	snprintf(id, sizeof(id), "%d", shard->id);
	snprintf(weight, sizeof(weight), "%d", weight_of(topology, now, index));
	put_roles(&names[0], shard->roles);
	if (shard->url != NULL)
	{
		database_name(shard->url, shard->user, &names[1]);
		snprintf(pool, sizeof(pool), "%d", shard->pool);
	}
	put_replicas(&names[2], shard);
	if (now + 1 < topology->ngenerations)
	{
		format_time(topology->generations[now + 1].active_from_ms, from);
		buf_printf(&names[3], "%d from %s", weight_of(topology, now + 1, index), from);
	}
	cells[2] = buf_cstr(&names[0]);
	cells[3] = buf_cstr(&names[1]);
	cells[5] = buf_cstr(&names[2]);
	cells[7] = buf_cstr(&names[3]);
	table_row(table, cells);
	for (int i = 0; i < 4; i++)
		buf_free(&names[i]);
}

static void
print_topology(const struct topology *topology, int now)
{
	static const char *const headings[] =
	{"SHARD", "STATE", "ROLES", "PRIMARY", "POOL", "REPLICAS", "WEIGHT", "NEXT"};
	struct table table;

	table_start(&table, now + 1 < topology->ngenerations ? 8 : 7, headings);
	for (int i = 0; i < topology->nshards; i++)
		print_shard(&table, topology, i, now);
	table_print(&table, stdout);
	table_free(&table);
}

static void
put_shard(struct buf *out, const struct topology *topology, int index, int now)
{
	const struct topology_shard *shard = &topology->shards[index];
	struct buf	name = BUF_INIT;

	json_open(out, NULL, '{');
	json_number(out, "id", shard->id);
	json_text(out, "state", topology_state_name(shard->state));
	json_open(out, "roles", '[');
	for (int i = 0; i < 4; i++)
	{
		if (shard->roles & (1u << i))
			json_text(out, NULL, roles[i]);
	}
	json_close(out, ']');
	if (shard->url != NULL)
		database_name(shard->url, shard->user, &name);
	json_text(out, "primary", shard->url ? buf_cstr(&name) : NULL);
	if (shard->url != NULL)
		json_number(out, "pool", shard->pool);
	else
		json_text(out, "pool", NULL);
	json_open(out, "replicas", '[');
	for (int i = 0; i < shard->nreplicas; i++)
	{
		buf_reset(&name);
		database_name(shard->replicas[i].url, shard->replicas[i].user, &name);
		json_open(out, NULL, '{');
		json_text(out, "database", buf_cstr(&name));
		json_number(out, "pool", shard->replicas[i].pool);
		json_close(out, '}');
	}
	json_close(out, ']');
	json_number(out, "max_replica_lag_millis", shard->max_replica_lag_ms);
	json_text(out, "replica_fallback", shard->replica_fallback == FALLBACK_FAIL ? "fail" : "primary");
	json_number(out, "weight", weight_of(topology, now, index));
	if (now + 1 < topology->ngenerations)
		json_number(out, "next_weight", weight_of(topology, now + 1, index));
	else
		json_text(out, "next_weight", NULL);
	json_close(out, '}');
	buf_free(&name);
}

static void
put_generation(struct buf *out, const char *key, const struct topology *topology, int index)
{
	char		from[40];

	if (index >= topology->ngenerations)
	{
		json_text(out, key, NULL);
		return;
	}
	format_time(topology->generations[index].active_from_ms, from);
	json_open(out, key, '{');
	json_number(out, "id", topology->generations[index].id);
	json_text(out, "active_from", from);
	json_close(out, '}');
}

static void
print_json(const struct topology *topology, int now, const struct probe *probe)
{
	struct buf	out = BUF_INIT;

	json_open(&out, NULL, '{');
	json_open(&out, "shards", '[');
	for (int i = 0; i < topology->nshards; i++)
		put_shard(&out, topology, i, now);
	json_close(&out, ']');
	put_generation(&out, "generation", topology, now);
	put_generation(&out, "next_generation", topology, now + 1);
	if (probe != NULL)
		probe_put(probe, &out);
	json_close(&out, '}');
	print_buf(&out);
	buf_free(&out);
}

static void
print_text(const char *shown, const struct topology *topology, int now, int64_t now_ms,
		   const struct probe *probe)
{
	const struct generation *generation = &topology->generations[now];
	char		from[40];

	print_topology(topology, now);
	if (probe != NULL)
	{
		putchar('\n');
		probe_print(probe);
	}
	format_time(generation->active_from_ms, from);
	printf("\n%s: valid; %d shard%s, generation %lld %s %s%s\n", shown, topology->nshards,
		   topology->nshards == 1 ? "" : "s", (long long) generation->id,
		   generation->active_from_ms <= now_ms ? "since" : "begins", from,
		   generation->active_from_ms <= now_ms ? "" : " and is gone by until then, as there is none before it");
}

static enum exit_status
run_topology(struct session *session, const struct arguments *args)
{
	const char *argument = args->words[1];
	const char *shown = argument[strspn(argument, " \t\r\n")] == '{' ? "the topology" : argument;
	int64_t		now_ms = (int64_t) time(NULL) * 1000;
	struct topology *topology;
	struct probe *probe = NULL;
	enum exit_status status = EXIT_DONE;
	int			now;

	if (strcmp(args->words[0], "check") != 0)
		return complain_text(EXIT_USAGE, "usage: wiggle topology check FILE; see wiggle topology --help");
	topology = load(argument, shown);
	if (topology == NULL)
		return EXIT_USAGE;
	now = placement_generation(topology, now_ms);
	if (options_has(args, "connect"))
		probe = probe_run(topology);
	if (session->json)
		print_json(topology, now, probe);
	else
		print_text(shown, topology, now, now_ms, probe);
	if (probe != NULL)
	{
		fflush(stdout);
		status = probe_complain(probe, shown);
	}
	probe_free(probe);
	topology_free(topology);
	return status;
}
