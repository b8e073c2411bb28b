/*
 * position.c
 *	  How far the write-ahead log of each shard had come when it was looked at.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "config.h"
#include "drain.h"
#include "gather.h"
#include "log.h"
#include "loop.h"
#include "position.h"
#include "shard.h"

#define LOOK_MS		5000
#define PATIENCE_MS 2000

static struct gather look;
static bool looking;
static struct question question;
static bool telling;
static struct buf entries;
static struct deadline next_look;

/* ---- what is known ---- */

static uint64_t
parse(const char *wal)
{
	char	   *end;
	uint64_t	high = strtoull(wal, &end, 16);

	return *end == '/' ? high << 32 | strtoull(end + 1, NULL, 16) : 0;
}

const char *
position_known(const struct shard *shard)
{
	return shard->wal[0] != '\0' ? shard->wal : "0/0";
}

bool
position_raise(struct shard *shard, const char *wal)
{
	if (parse(wal) <= parse(shard->wal))
		return false;
	position_begin(shard, wal);
	return true;
}

void
position_begin(struct shard *shard, const char *wal)
{
	snprintf(shard->wal, sizeof(shard->wal), "%s", wal);
}

/* ---- looking, and telling home ---- */

static void
told(struct question *asked, const PGresult *result, const struct refusal *refusal)
{
	(void) asked;
	telling = false;
	if (result == NULL)
		log_debug("position", "home could not be told how far the shards are: %s", refusal->message);
	for (int row = 0; result != NULL && row < PQntuples(result); row++)
	{
		int			index = topology_find(shard_topology(), (int32_t) strtol(PQgetvalue(result, row, 0), NULL, 10));

		if (index >= 0 && shard_at(index) != NULL)
			shard_at(index)->known = true;
	}
}

/* Home's own registry is in any copy of it: what is written there about home says nothing. */
static void
tell_home(void)
{
	if (telling)
		return;
	buf_byte(&entries, ']');
	question = (struct question) {
		.statement = SQL_POSITIONS,
		.nparams = 1,
		.params = {buf_cstr(&entries)},
		.done = told,
	};
	telling = shard_ask(shard_at(shard_topology()->home), &question) == SUBMIT_OK;
}

static void
note(struct shard *shard, const PGresult *result)
{
	const char *identity = PQgetvalue(result, 0, POSITION_UUID);
	int			timeline = (int) strtol(PQgetvalue(result, 0, POSITION_TIMELINE), NULL, 10);

	if (strcmp(identity, shard->identity) != 0 || timeline != shard->timeline)
		return;					/* a new session will say what that is */
	position_raise(shard, PQgetvalue(result, 0, POSITION_WAL));
	if (shard->index == shard_topology()->home || telling)
		return;
	buf_printf(&entries, "%s{\"id\":%d,\"identity\":\"%s\",\"timeline\":%d,\"wal\":\"%s\"}", entries.len > 1 ? "," : "",
			   shard->entry->id, identity, timeline, position_known(shard));
}

static void
looked(struct gather *gather)
{
	looking = false;
	if (!telling)
	{
		buf_reset(&entries);
		buf_byte(&entries, '[');
	}
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		const PGresult *result = gather->parts[slot].result;

		if (result != NULL && PQntuples(result) == 1)
			note(shard_by_slot(slot), result);
	}
	if (!drain_started())
		tell_home();
}

static void
look_due(struct deadline *deadline)
{
	deadline_set(deadline, loop_now() + LOOK_MS, look_due);
	if (looking)
		return;
	looking = true;
	gather_begin(&look, looked);
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		if (!shard_usable(shard_by_slot(slot)))
			continue;
		gather_question(&look, slot)->statement = SQL_POSITION;
		gather_ask(&look, slot);
	}
	gather_hurry(&look, PATIENCE_MS);
	gather_end(&look);
}

/* ---- from start to end ---- */

static void
begin_drain(void)
{
	deadline_clear(&next_look);
	gather_free(&look);
	looking = false;
}

static bool
idle(void)
{
	return !telling;
}

static void
stop(void)
{
	buf_free(&entries);
}

void
position_start(void)
{
	static const struct drain_hook hook = {.name = "position", .begin = begin_drain, .idle = idle, .stop = stop};

	if (config.migrate_only)
		return;
	drain_register(&hook);
	deadline_set(&next_look, loop_now() + LOOK_MS, look_due);
}
