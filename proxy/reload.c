/*
 * reload.c
 *	  The topology document, read again while the process runs.
 *
 * The file is looked at by name every second: notifications of the file system say
 * nothing about a link two levels up, which is what a mounted ConfigMap changes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "buf.h"
#include "drain.h"
#include "gather.h"
#include "health.h"
#include "log.h"
#include "loop.h"
#include "metrics.h"
#include "reload.h"
#include "shard.h"
#include "shards.h"

#define LOOK_MS		1000

/* Whoever writes in place is given this time to come to an end. */
#define SETTLE_MS	200

static struct topology *(*read_document) (struct wig_error *err);
static const char *path;		/* NULL: not in a file */
static uv_fs_poll_t watch;
static struct deadline settled;
static bool is_open;
static bool wanted;				/* once what is being looked at has been decided */
static bool quiet;				/* say nothing when nothing has changed */

static struct topology *candidate;	/* NULL unless it is being asked about */
static struct gather emptiness;
static struct buf retiring;		/* array of their ids */

static struct health *health;
static struct metric *applied;
static struct metric *refused;
static struct metric *refused_last;

static void
refuse(const char *why)
{
	char		detail[640];

	log_error("topology", "the changed document is refused as a whole, and the former one stays in force: %s", why);
	snprintf(detail, sizeof(detail), "the changed document is refused: %s", why);
	health_set(health, true, detail);
	metric_add(refused, 1);
	metric_set(refused_last, 1);
}

static void
apply(struct topology *document)
{
	struct wig_error err = {.message = ""};
	int			changes = 0;

	if (drain_started())
	{
		topology_free(document);
		return;
	}
	if (!shards_replace(document, &changes, &err))
	{
		refuse(err.message);
		return;
	}
	health_set(health, true, "read");
	metric_set(refused_last, 0);
	if (changes > 0)
		metric_add(applied, 1);
	if (changes > 0 || !quiet)
		log_info("topology", "the document has been read again, with %d change(s)", changes);
}

/* ---- a shard that is to be retired must be empty ---- */

static bool
is_retiring(int slot)
{
	const struct shard *shard = shard_by_slot(slot);
	int			index = topology_find(candidate, shard->entry->id);

	return !shard_retired(shard) && index >= 0 && candidate->shards[index].state == SHARD_RETIRED;
}

/* Why a shard cannot be retired, "" when all can. */
static void
find_objection(char *why, size_t size)
{
	const struct gather_part *home = &emptiness.parts[shard_at(shard_topology()->home)->slot];

	why[0] = '\0';
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		const struct gather_part *part = &emptiness.parts[slot];
		int			id = shard_by_slot(slot)->entry->id;

		if (part == home || !part->asked)
			continue;
		if (part->result == NULL)
			snprintf(why, size, "shard %d cannot be retired now, because it cannot be asked whether it still holds instances; try again"
					 " when it answers", id);
		else if (PQntuples(part->result) > 0)
			snprintf(why, size, "shard %d cannot be retired yet, because it still holds instances (%s for one); leave it draining until"
					 " they have ended and been purged", id, PQgetvalue(part->result, 0, INSTANCE_ID));
	}
	if (home->result == NULL)
		snprintf(why, size, "no shard can be retired now, because home cannot be asked what schedules have yet to start there; try"
				 " again when it answers");
	else if (PQntuples(home->result) > 0)
		snprintf(why, size, "shard %s cannot be retired yet, because an instance of a schedule has yet to be started there (%s)",
				 PQgetvalue(home->result, 0, OUTBOX_SHARD), PQgetvalue(home->result, 0, OUTBOX_ID));
}

static void
emptiness_known(struct gather *gather)
{
	struct topology *document = candidate;
	char		why[512];

	(void) gather;
	candidate = NULL;
	find_objection(why, sizeof(why));
	if (why[0] == '\0')
		apply(document);
	else
	{
		topology_free(document);
		refuse(why);
	}
	if (wanted)
		reload_now("it has been asked for meanwhile");
}

static void
ask_emptiness(void)
{
	const char *sep = "{";
	struct question *question;

	buf_reset(&retiring);
	gather_begin(&emptiness, emptiness_known);
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		if (!is_retiring(slot))
			continue;
		question = gather_question(&emptiness, slot);
		question->statement = SQL_INSTANCES;
		question->nparams = 5;
		question->params[3] = "1";
		question->params[4] = "0";
		gather_ask(&emptiness, slot);
		buf_printf(&retiring, "%s%d", sep, shard_by_slot(slot)->entry->id);
		sep = ",";
	}
	buf_byte(&retiring, '}');
	question = gather_question(&emptiness, shard_at(shard_topology()->home)->slot);
	question->statement = SQL_OUTBOX;
	question->nparams = 2;
	question->params[0] = "1";
	question->params[1] = buf_cstr(&retiring);
	gather_ask(&emptiness, shard_at(shard_topology()->home)->slot);
	gather_end(&emptiness);
}

/* ---- reading ---- */

static void
read_again(void)
{
	struct wig_error err = {.message = ""};
	struct topology *document = read_document(&err);
	bool		retires = false;

	wanted = false;
	if (document == NULL)
	{
		refuse(err.message);
		return;
	}
	candidate = document;
	for (int slot = 0; slot < shard_slots(); slot++)
		retires = retires || (shard_by_slot(slot)->entry->state == SHARD_DRAINING && is_retiring(slot));
	if (retires)
	{
		ask_emptiness();
		return;
	}
	candidate = NULL;
	apply(document);
}

void
reload_now(const char *why)
{
	if (drain_started())
		return;
	if (path == NULL)
	{
		log_info("topology", "%s: nothing to read again, since the topology is given by the environment, which does not change"
				 " while the server runs", why);
		return;
	}
	wanted = true;
	if (!is_open || candidate != NULL)
		return;
	log_info("topology", "%s: reading %s", why, path);
	quiet = false;
	read_again();
}

static void
has_settled(struct deadline *deadline)
{
	(void) deadline;
	reload_now("the document has changed");
}

static void
looked(uv_fs_poll_t *handle, int status, const uv_stat_t *was, const uv_stat_t *is)
{
	(void) handle;
	(void) was;
	(void) is;
	if (status < 0)
		log_warn("topology", "%s cannot be looked at (%s); what was read from it stays in force", path, uv_strerror(status));
	else
		deadline_set(&settled, loop_now() + SETTLE_MS, has_settled);
}

void
reload_open(void)
{
	is_open = true;
	if (path == NULL || drain_started())
		return;
	quiet = !wanted;
	read_again();
}

/* ---- from start to end ---- */

static void
stop(void)
{
	deadline_clear(&settled);
	gather_free(&emptiness);
	topology_free(candidate);
	candidate = NULL;
	buf_free(&retiring);
	uv_fs_poll_stop(&watch);
	uv_close((uv_handle_t *) &watch, NULL);
}

void
reload_start(const char *document, struct topology *(*read) (struct wig_error *err))
{
	static const struct drain_hook hook = {.name = "reload", .stop = stop};

	read_document = read;
	applied = metric_counter("wiggle_proxy_topology_reloads_total", "outcome=\"applied\"",
							 "Changed topology documents read while running.");
	refused = metric_counter("wiggle_proxy_topology_reloads_total", "outcome=\"refused\"",
							 "Changed topology documents read while running.");
	refused_last = metric_gauge("wiggle_proxy_topology_refused", NULL,
								"1 while the document as it is now is refused and a former one in force.");
	if (document == NULL || *document == '\0' || document[strspn(document, " \t\r\n")] == '{')
		return;
	path = document;
	health = health_add("topology");
	health_set(health, true, "read");
	uv_fs_poll_init(loop_get(), &watch);
	uv_fs_poll_start(&watch, looked, path, LOOK_MS);
	uv_unref((uv_handle_t *) &watch);
	drain_register(&hook);
}
