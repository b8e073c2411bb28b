/*
 * catchup.c
 *	  A shard is given the definitions that home has and it lacks.
 *
 * One question at a time: home's list, what of it the shard lacks, then for each the
 * body from home and its registration on the shard; and again, until nothing is
 * lacking. Several proxies may do it at once: what is there already is a success.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "catchup.h"
#include "log.h"
#include "loop.h"
#include "shard.h"

#define RETRY_MS	50			/* the shard's side connections come up */

struct catchup
{
	struct shard *shard;
	struct question question;
	bool		busy;
	bool		stopped;
	struct deadline retry;
	char		mark[64];		/* of home's list that is being looked at */
	char		done[64];		/* the last one that the shard had all of */
	struct buf	text;			/* home's list, then one body */
	PGresult   *lacking;
	int			row;
	int			given;
	char		said[1024];		/* the last failure that was logged */
};

static void ask_list(struct catchup *catchup);
static void give_next(struct catchup *catchup);

static struct shard *
home(void)
{
	return shard_at(shard_topology()->home);
}

static bool
ask(struct catchup *catchup, struct shard *shard, enum statement statement, const char *first, const char *second,
	void (*done) (struct question *, const PGresult *, const struct refusal *))
{
	catchup->question = (struct question) {
		.statement = statement,
		.nparams = (first != NULL) + (second != NULL),
		.params = {first, second},
		.done = done,
	};
	catchup->busy = shard_ask(shard, &catchup->question) == SUBMIT_OK;
	return catchup->busy;
}

static void
settle(struct catchup *catchup, enum shard_definitions definitions)
{
	struct shard *shard = catchup->shard;
	bool		changed = shard->definitions != definitions;

	PQclear(catchup->lacking);
	catchup->lacking = NULL;
	shard->definitions = definitions;
	if (changed)
		shard_lane_changed(shard);
}

/* Without home: by what the shard was known to have when home was last heard. */
static void
give_up(struct catchup *catchup)
{
	if (catchup->shard->definitions == DEFINITIONS_UNKNOWN)
		settle(catchup, catchup->shard->was_complete ? DEFINITIONS_COMPLETE : DEFINITIONS_BEHIND);
	else
		settle(catchup, catchup->shard->definitions);
}

/* Is there something to go on with? Not when it failed, which is told, or was stopped meanwhile. */
static bool
answered(struct catchup *catchup, const PGresult *result, const struct refusal *refusal)
{
	catchup->busy = false;
	if (catchup->stopped)
	{
		PQclear(catchup->lacking);
		catchup->lacking = NULL;
		return false;
	}
	if (result != NULL)
		return true;
	log_debug("catchup", "shard %d: interrupted: %s", catchup->shard->entry->id, refusal->message);
	give_up(catchup);
	return false;
}

static void
registered(struct question *question, const PGresult *result, const struct refusal *refusal)
{
	struct catchup *catchup = deadline_owner(question, struct catchup, question);

	if (result == NULL && !refusal->storage && !catchup->stopped)
	{
		if (strcmp(catchup->said, refusal->message) != 0)
			log_error("catchup", "shard %d takes no new instances until it has what home has: %s",
					  catchup->shard->entry->id, refusal->message);
		snprintf(catchup->said, sizeof(catchup->said), "%s", refusal->message);
		catchup->busy = false;
		settle(catchup, DEFINITIONS_BEHIND);
		return;
	}
	if (!answered(catchup, result, refusal))
		return;
	catchup->given++;
	catchup->row++;
	give_next(catchup);
}

static void
body_read(struct question *question, const PGresult *result, const struct refusal *refusal)
{
	struct catchup *catchup = deadline_owner(question, struct catchup, question);

	if (!answered(catchup, result, refusal))
		return;
	buf_reset(&catchup->text);
	buf_text(&catchup->text, PQntuples(result) == 1 ? PQgetvalue(result, 0, 0) : "null");
	if (!ask(catchup, catchup->shard, SQL_REGISTER, buf_cstr(&catchup->text), "t", registered))
		give_up(catchup);
}

static void
give_next(struct catchup *catchup)
{
	if (catchup->row == PQntuples(catchup->lacking))
	{
		PQclear(catchup->lacking);
		catchup->lacking = NULL;
		ask_list(catchup);
		return;
	}
	if (!ask(catchup, home(), SQL_DEFINITION_BODY, PQgetvalue(catchup->lacking, catchup->row, 0),
			 PQgetvalue(catchup->lacking, catchup->row, 1), body_read))
		give_up(catchup);
}

static void
lacking_known(struct question *question, const PGresult *result, const struct refusal *refusal)
{
	struct catchup *catchup = deadline_owner(question, struct catchup, question);
	struct shard *shard = catchup->shard;

	if (!answered(catchup, result, refusal))
		return;
	if (PQntuples(result) == 0)
	{
		if (catchup->given > 0)
			log_info("catchup", "shard %d: was given %d definition(s) that home has", shard->entry->id, catchup->given);
		catchup->given = 0;
		catchup->said[0] = '\0';
		shard->was_complete = true;
		snprintf(catchup->done, sizeof(catchup->done), "%s", catchup->mark);
		settle(catchup, DEFINITIONS_COMPLETE);
		return;
	}
	shard->was_complete = false;
	shard->definitions = DEFINITIONS_BEHIND;
	catchup->lacking = PQcopyResult(result, PG_COPYRES_ATTRS | PG_COPYRES_TUPLES);
	catchup->row = 0;
	give_next(catchup);
}

static void
look_again(struct deadline *deadline)
{
	catchup_look(deadline_owner(deadline, struct catchup, retry));
}

static void
listed(struct question *question, const PGresult *result, const struct refusal *refusal)
{
	struct catchup *catchup = deadline_owner(question, struct catchup, question);

	if (!answered(catchup, result, refusal))
		return;
	buf_reset(&catchup->text);
	buf_text(&catchup->text, PQgetvalue(result, 0, 0));
	snprintf(catchup->mark, sizeof(catchup->mark), "%s", PQgetvalue(result, 0, 1));
	if (!ask(catchup, catchup->shard, SQL_LACKING, buf_cstr(&catchup->text), NULL, lacking_known))
		deadline_set(&catchup->retry, loop_now() + RETRY_MS, look_again);
}

static void
ask_list(struct catchup *catchup)
{
	if (!ask(catchup, home(), SQL_DEFINITION_LIST, NULL, NULL, listed))
		give_up(catchup);
}

struct catchup *
catchup_create(struct shard *shard)
{
	struct catchup *catchup = xcalloc(1, sizeof(*catchup));

	catchup->shard = shard;
	return catchup;
}

void
catchup_look(struct catchup *catchup)
{
	deadline_clear(&catchup->retry);
	if (catchup->shard == home())
		settle(catchup, DEFINITIONS_COMPLETE);
	else if (catchup->busy && catchup->stopped)
		deadline_set(&catchup->retry, loop_now() + RETRY_MS, look_again);
	else if (!catchup->busy)
	{
		catchup->stopped = false;
		ask_list(catchup);
	}
}

void
catchup_stop(struct catchup *catchup)
{
	deadline_clear(&catchup->retry);
	catchup->stopped = true;
	catchup->done[0] = '\0';
	catchup->shard->definitions = DEFINITIONS_UNKNOWN;
}

void
catchup_home_has(const char *mark)
{
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		struct shard *shard = shard_by_slot(slot);

		if (shard != home() && shard_claims(shard) && shard->catchup->retry.slot == 0 &&
			(shard->definitions != DEFINITIONS_COMPLETE || strcmp(shard->catchup->done, mark) != 0))
			catchup_look(shard->catchup);
	}
}
