/*
 * member.c
 *	  This process among the proxies of its home shard.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "accord.h"
#include "buf.h"
#include "catchup.h"
#include "config.h"
#include "drain.h"
#include "fleet.h"
#include "home_clock.h"
#include "ids.h"
#include "log.h"
#include "loop.h"
#include "member.h"
#include "metrics.h"
#include "random.h"
#include "roster.h"
#include "shard.h"
#include "shards.h"

/* Twice as often as members need: GetCluster counts a server as alive for 15 s. */
#define BEAT_MS 5000

/* A heartbeat that something waits for comes so long after the last one. */
#define BEAT_SOON_MS 1000

/* A worker whose poll has ended without an answer may come again at once, to be told of as if it had stayed. */
#define AGAIN_MS 200

static char id[WIG_ID_MAX + 1];
static bool leads;

static struct deadline next_beat;
static struct question beat;
static bool beating;
static uint64_t beat_asked_ns;
static uint64_t beaten_at;		/* loop time */
static void (*on_heard) (void);
static void (*on_refused) (const char *why);
static void (*on_failed) (const char *reason);
static struct metric *beat_time;
static char workers[16];
static char *polls;

static struct accord accord;	/* on the topology in force */
static bool tells;				/* from now on home is told of it, each time that it is set up */
static bool due;				/* once home has said what time it is */
static bool waits;
static bool told;
static bool held;				/* another topology is before home */

static struct question look;
static bool looking;
static bool look_again;			/* asked for while it was under way */
static bool listed;				/* once at least */
static uint64_t look_asked_ns;
static struct metric *look_time;
static struct metric *range_start;
static struct metric *range_end;

static bool joined;				/* has divided the tasks with others */
static char holder[WIG_ID_MAX + 1]; /* who bears this process's name */
static int64_t holder_heard;

static struct question leave;
static bool leaving;
static bool leave_asked;
static bool left;

static void ask_beat(struct deadline *deadline);

static struct shard *
home(void)
{
	return shard_at(shard_topology()->home);
}

const char *
member_id(void)
{
	return id;
}

bool
member_leads(void)
{
	return leads;
}

/* ---- the topology ---- */

static const struct topology *
topology_to_tell(struct wig_error *err)
{
	return shards_judge(err) ? shard_topology() : NULL;
}

static void
topology_waits(const char *why)
{
	if (!waits)
		log_warn("member", "home was not told of this server's topology, and is told later: %s", why);
	waits = true;
}

static void
topology_heard(const char *refusal)
{
	waits = false;
	told = refusal == NULL;
	if (told)
		on_heard();
	else
		on_refused(refusal);
}

void
member_tell_topology(void)
{
	static const struct accord_ops ops = {topology_to_tell, topology_heard, topology_waits};

	tells = true;
	due = false;
	if (!told && !held && !leaving)
		accord_ask(&accord, &ops, false);
}

bool
member_hold_topology(bool hold)
{
	if (hold && !accord_cancel(&accord))
		return false;
	held = hold;
	if (!held && tells)
		member_tell_topology();
	return true;
}

bool
member_topology_told(void)
{
	return told;
}

/* ---- heartbeats ---- */

static void
left_home(struct question *question, const PGresult *result, const struct refusal *refusal)
{
	(void) question;
	left = true;
	if (result == NULL)
		log_info("member", "home could not be told that this server leaves: %s", refusal->message);
}

static void
ask_leave(void)
{
	if (leave_asked)
		return;
	leave_asked = true;
	/* Not told, or told twice: the row is gone, or ends by its age. */
	leave = (struct question) {
		.statement = SQL_NODE_LEAVE,
		.nparams = 1,
		.params = {id},
		.done = left_home,
	};
	left = shard_ask(home(), &leave) != SUBMIT_OK;
}

/* Home should hear sooner than it would, though not before this time. */
static void
beat_by(uint64_t at)
{
	if (at < beaten_at + BEAT_SOON_MS)
		at = beaten_at + BEAT_SOON_MS;
	if (!leaving && next_beat.slot != 0 && at < next_beat.when)
		deadline_set(&next_beat, at, ask_beat);
}

static void
beat_soon(void)
{
	beat_by(loop_now());
}

/* Nobody polls here any more for what somebody did: the others can have its share. */
static void
polls_less(void)
{
	if (config.task_partitioning)
		beat_by(loop_now() + AGAIN_MS);
}

/*
 * Who else bears this process's name, "" for nobody. It may be this very process before a
 * crash: then its row is not heard from again. One that is heard from is another process.
 */
static void
hear_of_name(const char *other, int64_t heard)
{
	char		reason[WIG_ID_MAX + 512];
	bool		again = strcmp(other, holder) == 0 && heard > holder_heard;

	if (*other == '\0')
	{
		if (*holder != '\0')
			log_info("member", "no other server bears the name '%s' any more: this one takes its share", config.node_name);
		holder[0] = '\0';
		joined = joined || config.task_partitioning;
		return;
	}
	if (strcmp(other, holder) != 0)
		log_warn("member", "the name '%s' is that of %s: should that be this server before a crash, it is forgotten 60 s after"
				 " its last heartbeat; until then this one takes tasks from whole queues", config.node_name, other);
	snprintf(holder, sizeof(holder), "%s", other);
	holder_heard = heard;
	beat_soon();
	if (!again)
		return;
	snprintf(reason, sizeof(reason), "another live server, %s, bears the name '%s': to divide the tasks"
			 " (WIGGLE_TASK_PARTITIONING) give each server a WIGGLE_NODE_NAME of its own", other, config.node_name);
	if (joined)
		log_error("member", "%s; until then this one takes tasks from whole queues", reason);
	else
		on_failed(reason);
}

static bool
is_true(const PGresult *result, int row, int column)
{
	return strcmp(PQgetvalue(result, row, column), "t") == 0;
}

static int64_t
number(const PGresult *result, int row, int column)
{
	return strtoll(PQgetvalue(result, row, column), NULL, 10);
}

static void
show_range(void)
{
	int			n;
	const struct fleet_node *nodes = fleet_nodes(&n);

	metric_set(range_start, 0);
	metric_set(range_end, 0);
	for (int i = 0; i < n && fleet_state() == FLEET_DIVIDES; i++)
	{
		if (strcmp(nodes[i].id, id) != 0)
			continue;
		metric_set(range_start, nodes[i].start);
		metric_set(range_end, nodes[i].end);
	}
}

static void
nodes_listed(struct question *question, const PGresult *result, const struct refusal *refusal)
{
	(void) question;
	looking = false;
	if (result == NULL)
		log_debug("member", "home did not list the members: %s", refusal->message);
	else
	{
		metric_observe(look_time, (uv_hrtime() - look_asked_ns) / 1000);
		fleet_list_begin();
		for (int row = 0; row < PQntuples(result); row++)
		{
			struct fleet_node node = {
				.id = PQgetvalue(result, row, NODE_ID),
				.name = PQgetvalue(result, row, NODE_NAME),
				.first_ms = number(result, row, NODE_FIRST),
				.last_ms = number(result, row, NODE_LAST),
				.workers = (int) number(result, row, NODE_WORKERS),
				.alive = is_true(result, row, NODE_ALIVE),
				.leader = is_true(result, row, NODE_LEADER),
				.partition = is_true(result, row, NODE_PARTITION),
				.member = is_true(result, row, NODE_MEMBER),
			};

			fleet_list_add(&node, PQgetvalue(result, row, NODE_POLLS));
		}
		fleet_list_end(id);
		show_range();
		if (!listed && config.task_partitioning)
			on_heard();
		listed = true;
	}
	if (look_again)
		member_look();
}

void
member_look(void)
{
	look_again = looking;
	if (looking || leaving || next_beat.slot == 0)
		return;
	look = (struct question) {
		.statement = SQL_NODES,
		.done = nodes_listed,
	};
	look_asked_ns = uv_hrtime();
	looking = shard_ask(home(), &look) == SUBMIT_OK;
}

static void
beaten(struct question *question, const PGresult *result, const struct refusal *refusal)
{
	(void) question;
	beating = false;
	free(polls);
	polls = NULL;
	if (result == NULL)
		log_debug("member", "a heartbeat did not reach home: %s", refusal->message);
	else if (PQntuples(result) == 1)
	{
		metric_observe(beat_time, (uv_hrtime() - beat_asked_ns) / 1000);
		leads = strcmp(PQgetvalue(result, 0, BEAT_LEADS), "t") == 0;
		home_clock_set(strtoll(PQgetvalue(result, 0, BEAT_NOW), NULL, 10), beat_asked_ns, uv_hrtime());
		catchup_home_has(PQgetvalue(result, 0, BEAT_MARK));
		if (due)
			member_tell_topology();
		hear_of_name(PQgetvalue(result, 0, BEAT_HOLDER), strtoll(PQgetvalue(result, 0, BEAT_HEARD), NULL, 10));
		if (listed || !config.task_partitioning)
			on_heard();
		member_look();
	}

	/* not before: overtaking the heartbeat, the leave would be undone by it */
	if (leaving)
		ask_leave();
}

static void
ask_beat(struct deadline *deadline)
{
	json_t	   *array;

	deadline_set(deadline, loop_now() + BEAT_MS, ask_beat);
	beaten_at = loop_now();
	show_range();				/* the list may have become too old */
	if (beating)
		return;
	array = roster_polls();
	polls = json_dumps(array, JSON_COMPACT);
	json_decref(array);
	snprintf(workers, sizeof(workers), "%d", roster_count());
	beat = (struct question) {
		.statement = SQL_NODE_BEAT,
		.nparams = 5,
		.params = {id, config.node_name, workers, polls ? polls : "[]", config.task_partitioning ? "t" : "f"},
		.writes = true,
		.done = beaten,
	};
	beat_asked_ns = uv_hrtime();
	beating = shard_ask(home(), &beat) == SUBMIT_OK;
	if (beating)
		return;
	free(polls);
	polls = NULL;
}

void
member_home_ready(void)
{
	if (leaving || config.migrate_only)
		return;
	told = false;
	due = tells;
	deadline_set(&next_beat, loop_now(), ask_beat);
}

/* ---- the end ---- */

static void
begin_leave(void)
{
	bool		known = next_beat.slot != 0;

	leaving = true;
	deadline_clear(&next_beat);
	accord_cancel(&accord);
	if (!known)
		left = true;
	else if (!beating)
		ask_leave();
}

static bool
has_left(void)
{
	return left && !accord.asked;
}

static void
stop(void)
{
	deadline_clear(&next_beat);
	accord_cancel(&accord);
}

void
member_start(void (*heard) (void), void (*refused) (const char *why), void (*failed) (const char *reason))
{
	static const struct drain_hook hook = {.name = "member", .begin = begin_leave, .idle = has_left,
	.stop = stop};
	char		part[WIG_PART_LEN];
	struct timespec now;

	on_heard = heard;
	on_refused = refused;
	on_failed = failed;
	fleet_start(config.task_partitioning, beat_soon);
	roster_watch(polls_less);
	beat_time = metric_histogram("wiggle_proxy_member_heartbeat_seconds", NULL, "Heartbeats on home.");
	look_time = metric_histogram("wiggle_proxy_member_read_seconds", NULL, "Reads of the members from home.");
	range_start = metric_gauge("wiggle_proxy_partition_range_start", NULL,
							   "First bucket of this server's share; 0 while it is no member.");
	range_end = metric_gauge("wiggle_proxy_partition_range_end", NULL,
							 "The bucket behind this server's share; 0 while it is no member.");
	clock_gettime(CLOCK_REALTIME, &now);
	wig_part_encode(part, (uint64_t) now.tv_sec * 1000 + (uint64_t) now.tv_nsec / 1000000, random_u64());
	wig_id_format(id, "node", WIG_NO_SHARD, part, sizeof(part));
	drain_register(&hook);
}
