/*
 * member.c
 *	  This process among the proxies of its home shard.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "buf.h"
#include "catchup.h"
#include "config.h"
#include "drain.h"
#include "home_clock.h"
#include "ids.h"
#include "log.h"
#include "loop.h"
#include "member.h"
#include "random.h"
#include "roster.h"
#include "shard.h"

#define BEAT_MS 5000

static char id[WIG_ID_MAX + 1];
static bool leads;

static struct deadline next_beat;
static struct question beat;
static bool beating;
static uint64_t beat_asked_ns;
static void (*on_beat) (void);
static char workers[16];
static char *polls;

static struct question placement;
static bool publishing;
static bool published;
static bool changed;			/* while it was being told */
static bool withdraws;			/* the last generation that home was told of is taken back */
static struct buf generations;

static struct question leave;
static bool leaving;
static bool left;

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

/* ---- placement ---- */

static void
write_instant(struct buf *out, int64_t unix_ms)
{
	int64_t		ms = (unix_ms % 1000 + 1000) % 1000;
	time_t		seconds = (time_t) ((unix_ms - ms) / 1000);
	struct tm	utc;

	gmtime_r(&seconds, &utc);
	buf_printf(out, "\"%04d-%02d-%02dT%02d:%02d:%02d.%03dZ\"", utc.tm_year + 1900, utc.tm_mon + 1,
			   utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, (int) ms);
}

static void
write_generations(struct buf *out, const struct topology *topology)
{
	buf_reset(out);
	buf_byte(out, '[');
	for (int i = 0; i < topology->ngenerations; i++)
	{
		const struct generation *generation = &topology->generations[i];

		buf_printf(out, "%s{\"id\":%lld,\"activeFrom\":", i > 0 ? "," : "", (long long) generation->id);
		write_instant(out, generation->active_from_ms);
		buf_text(out, ",\"weights\":{");
		for (int w = 0; w < generation->nweights; w++)
			buf_printf(out, "%s\"%d\":%d", w > 0 ? "," : "",
					   topology->shards[generation->weights[w].shard].id, generation->weights[w].weight);
		buf_text(out, "}}");
	}
	buf_byte(out, ']');
}

static void publish(void);

static void
placement_told(struct question *question, const PGresult *result, const struct refusal *refusal)
{
	const struct topology *topology = shard_topology();
	long long	last = topology->generations[topology->ngenerations - 1].id;

	(void) question;
	publishing = false;
	published = result != NULL && !changed;
	if (changed)
		publish();
	else if (!published)
		log_warn("member", "home was not told where new instances go, and is told later: %s",
				 refusal->message);
	else
	{
		withdraws = false;
		if (strtoll(PQgetvalue(result, 0, 0), NULL, 10) > last)
			log_warn("member", "home knows generation %s, while this server's topology ends with %lld: roll the new"
					 " document out to this server too; if that generation was taken back, delete it from wf_placement there",
					 PQgetvalue(result, 0, 0), last);
	}
}

static void
publish(void)
{
	changed = false;
	write_generations(&generations, shard_topology());
	placement = (struct question) {
		.statement = SQL_PLACEMENT,
		.nparams = 2,
		.params = {buf_cstr(&generations), withdraws ? "t" : "f"},
		.writes = true,
		.done = placement_told,
	};
	publishing = shard_ask(home(), &placement) == SUBMIT_OK;
}

void
member_placement_changed(bool taken_back)
{
	withdraws = withdraws || taken_back;
	published = false;
	changed = publishing;
	if (!publishing && !leaving)
		publish();
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
	/* Not told, or told twice: the row is gone, or ends by its age. */
	leave = (struct question) {
		.statement = SQL_NODE_LEAVE,
		.nparams = 1,
		.params = {id},
		.done = left_home,
	};
	left = shard_ask(home(), &leave) != SUBMIT_OK;
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
		leads = strcmp(PQgetvalue(result, 0, BEAT_LEADS), "t") == 0;
		home_clock_set(strtoll(PQgetvalue(result, 0, BEAT_NOW), NULL, 10), beat_asked_ns, uv_hrtime());
		catchup_home_has(PQgetvalue(result, 0, BEAT_MARK));
		on_beat();
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
	if (!published && !publishing)
		publish();
	if (beating)
		return;
	array = roster_polls();
	polls = json_dumps(array, JSON_COMPACT);
	json_decref(array);
	snprintf(workers, sizeof(workers), "%d", roster_count());
	beat = (struct question) {
		.statement = SQL_NODE_BEAT,
		.nparams = 4,
		.params = {id, config.node_name, workers, polls ? polls : "[]"},
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
	published = false;
	deadline_set(&next_beat, loop_now(), ask_beat);
}

/* ---- the end ---- */

static void
begin_leave(void)
{
	bool		joined = next_beat.slot != 0;

	leaving = true;
	deadline_clear(&next_beat);
	if (!joined)
		left = true;
	else if (!beating)
		ask_leave();
}

static bool
has_left(void)
{
	return left && !publishing;
}

static void
stop(void)
{
	deadline_clear(&next_beat);
	buf_free(&generations);
}

void
member_start(void (*heard) (void))
{
	static const struct drain_hook hook = {.name = "member", .begin = begin_leave, .idle = has_left,
	.stop = stop};
	char		part[WIG_PART_LEN];
	struct timespec now;

	on_beat = heard;
	clock_gettime(CLOCK_REALTIME, &now);
	wig_part_encode(part, (uint64_t) now.tv_sec * 1000 + (uint64_t) now.tv_nsec / 1000000, random_u64());
	wig_id_format(id, "node", WIG_NO_SHARD, part, sizeof(part));
	drain_register(&hook);
}
