/*
 * cmd_shards.c
 *	  wiggle shards: the databases, and the end of one.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output.h"
#include "pg_wiggle.pb-c.h"
#include "session.h"

#define SHARDS "/pg_wiggle.v1.ShardService/"

typedef PgWiggle__V1__Shard Shard;
typedef PgWiggle__V1__ListShardsResponse ShardList;

static enum exit_status run_shards(struct session *session, const struct arguments *args);

static const struct option no_options[] = {{NULL, 0, NULL, NULL}};

const struct command command_shards = {
	.name = "shards",
	.words = "[retire ID]",
	.max_words = 2,
	.summary = "the databases that the proxy serves; confirm that one is empty",
	.details =
	"WEIGHT is what a shard takes of new instances, now and from the next generation on. LIVE\n"
	"are its instances that have not ended, HELD all that are not purged; of more than 10000 only\n"
	"the newest 10000 are counted, which a '+' says. LAG is how long the oldest timer is overdue; it\n"
	"is near 0 while the shard's clock worker runs. CONNECTIONS are this proxy's.\n"
	"\n"
	"retire confirms that a draining shard holds no instance any more, and no event that a\n"
	"consumer has not acknowledged: from then on nothing can be started there, and the topology\n"
	"may give it the state retired.\n"
	"\n"
	"Examples:\n"
	"  wiggle shards\n"
	"  wiggle --json shards | jq '.shards[] | select(.reachable | not)'\n"
	"  wiggle shards retire 1\n",
	.options = no_options,
	.calls = true,
	.run = run_shards
};

static void
put_shard(struct buf *out, const Shard *shard)
{
	json_open(out, NULL, '{');
	json_number(out, "id", shard->id);
	json_text(out, "state", shard->state);
	json_open(out, "roles", '[');
	for (size_t i = 0; i < shard->n_roles; i++)
		json_text(out, NULL, shard->roles[i]);
	json_close(out, ']');
	json_text(out, "place", shard->place);
	json_number(out, "weight", shard->weight);
	json_number(out, "next_weight", shard->next_weight);
	json_flag(out, "reachable", shard->reachable);
	json_text(out, "problem", shard->problem[0] == '\0' ? NULL : shard->problem);
	json_time(out, "changed_at", shard->changed_at);
	json_flag(out, "takes_instances", shard->takes_instances);
	json_number(out, "connections", shard->connections);
	json_text(out, "library_version", shard->library_version);
	if (shard->counted)
	{
		json_text(out, "extension_version", shard->extension_version);
		json_number(out, "live_instances", shard->live_instances);
		json_number(out, "held_instances", shard->held_instances);
		json_flag(out, "more_instances", shard->more_instances);
		json_number(out, "lag_millis", shard->lag_millis);
	}
	json_close(out, '}');
}

static void
print_json(const ShardList *list)
{
	struct buf	out = BUF_INIT;

	json_open(&out, NULL, '{');
	json_number(&out, "generation", list->generation);
	if (list->next_generation != 0)
	{
		json_number(&out, "next_generation", list->next_generation);
		json_time(&out, "next_from", list->next_from);
	}
	json_open(&out, "shards", '[');
	for (size_t i = 0; i < list->n_shards; i++)
		put_shard(&out, list->shards[i]);
	json_close(&out, ']');
	json_close(&out, '}');
	print_buf(&out);
	buf_free(&out);
}

static void
add_row(struct table *table, const ShardList *list, const Shard *shard)
{
	char		id[16];
	char		roles[64] = "";
	char		weight[40];
	char		live[24] = "?";
	char		held[24] = "?";
	char		lag[32] = "?";
	char		connections[16];
	char		since[40];
	const char *more = shard->more_instances ? "+" : "";
	struct buf	reachable = BUF_INIT;
	const char *cells[] = {id, shard->state, roles, weight, live, held, lag, connections,
	shard->counted ? shard->extension_version : shard->library_version, shard->place, NULL};

	snprintf(id, sizeof(id), "%d", (int) shard->id);
	for (size_t i = 0; i < shard->n_roles; i++)
		snprintf(roles + strlen(roles), sizeof(roles) - strlen(roles), "%s%s", i > 0 ? "," : "", shard->roles[i]);
	if (list->next_generation != 0)
		snprintf(weight, sizeof(weight), "%d, then %d", (int) shard->weight, (int) shard->next_weight);
	else
		snprintf(weight, sizeof(weight), "%d", (int) shard->weight);
	if (shard->counted)
	{
		snprintf(live, sizeof(live), "%" PRId64 "%s", shard->live_instances, more);
		snprintf(held, sizeof(held), "%" PRId64 "%s", shard->held_instances, more);
		snprintf(lag, sizeof(lag), "%" PRId64 " ms", shard->lag_millis);
	}
	snprintf(connections, sizeof(connections), "%d", (int) shard->connections);
	if (strcmp(shard->state, "RETIRED") == 0 && shard->place[0] == '\0')
		buf_text(&reachable, "not asked");
	else if (shard->reachable)
		buf_printf(&reachable, "yes%s%s", shard->problem[0] == '\0' ? "" : ", but ", shard->problem);
	else
	{
		format_time(shard->changed_at, since);
		buf_printf(&reachable, "not since %s: %s", since, shard->problem);
	}
	cells[10] = buf_cstr(&reachable);
	table_row(table, cells);
	buf_free(&reachable);
}

static void
print_text(const ShardList *list)
{
	static const char *const headings[] = {"ID", "STATE", "ROLES", "WEIGHT", "LIVE", "HELD", "LAG", "CONNECTIONS",
	"VERSION", "PLACE", "REACHABLE"};
	struct table table;
	char		from[40];

	table_start(&table, 11, headings);
	for (size_t i = 0; i < list->n_shards; i++)
		add_row(&table, list, list->shards[i]);
	table_print(&table, stdout);
	table_free(&table);
	if (list->next_generation == 0)
		return;
	format_time(list->next_from, from);
	printf("generation %" PRId64 "; generation %" PRId64 " from %s\n", list->generation, list->next_generation, from);
}

static enum exit_status
retire(struct session *session, const char *word)
{
	PgWiggle__V1__RetireShardRequest request = PG_WIGGLE__V1__RETIRE_SHARD_REQUEST__INIT;
	ProtobufCMessage *reply;
	enum grpc_status status;
	char	   *end;
	long		id;

	errno = 0;
	id = strtol(word, &end, 10);
	if (errno != 0 || end == word || *end != '\0' || id < 0 || id > 999999999)
		return complain_text(EXIT_USAGE, "'%s' is no shard id", word);
	request.id = (int32_t) id;
	reply = session_call(session, SHARDS "RetireShard", &request.base,
						 &pg_wiggle__v1__retire_shard_response__descriptor, NULL, &status);
	if (reply == NULL)
		return status_exit(status);
	protobuf_c_message_free_unpacked(reply, NULL);
	if (session->json)
		printf("{\"retired\":%d}\n", (int) request.id);
	else
		printf("shard %d holds nothing any more; give it the state retired in the topology\n", (int) request.id);
	return EXIT_DONE;
}

static enum exit_status
run_shards(struct session *session, const struct arguments *args)
{
	PgWiggle__V1__ListShardsRequest request = PG_WIGGLE__V1__LIST_SHARDS_REQUEST__INIT;
	ShardList  *list;
	enum grpc_status status;

	if (args->nwords == 2 && strcmp(args->words[0], "retire") == 0)
		return retire(session, args->words[1]);
	if (args->nwords > 0)
		return complain_text(EXIT_USAGE, "usage: wiggle shards, or wiggle shards retire ID");
	list = (ShardList *) session_call(session, SHARDS "ListShards", &request.base,
									  &pg_wiggle__v1__list_shards_response__descriptor, NULL, &status);
	if (list == NULL)
		return status_exit(status);
	if (session->json)
		print_json(list);
	else
		print_text(list);
	protobuf_c_message_free_unpacked(&list->base, NULL);
	return EXIT_DONE;
}
