/*
 * admission.c
 *	  Does home's registry know a database as the shard that it says it is?
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admission.h"
#include "config.h"
#include "log.h"
#include "loop.h"
#include "position.h"
#include "setup.h"
#include "shard.h"

#define CLOSED_RETRY_MS		50
#define OPEN_RETRY_MS		1000

struct admission
{
	struct shard *shard;
	struct question question;
	struct buf	entries;
	bool		asked;
	bool		opens;			/* the shard's setup ends with the answer */
	bool		tells;			/* the shard is told its state first */
	bool		renews;			/* the shard's facts are read first, or next */
	char		home[16];
	bool		stale;			/* what is asked is not what is to be known any more */
	uint64_t	since;
	struct deadline retry;
};

static bool decided;

static const char *const states[] = {"ACTIVE", "DRAINING", "RETIRED"};

static void consult(struct admission *admission);

static struct shard *
home(void)
{
	return shard_at(shard_topology()->home);
}

void
admission_decided(void)
{
	decided = true;
}

/* ---- entries ---- */

void
admission_entries(const struct shard *shard, bool whole, struct buf *out)
{
	const struct topology *topology = shard_topology();

	buf_reset(out);
	for (int i = 0; i < topology->nshards; i++)
	{
		const struct topology_shard *entry = &topology->shards[i];

		if (!whole && entry != shard->entry)
			continue;
		buf_printf(out, "%s{\"id\":%d,\"state\":\"%s\"", out->len == 0 ? "[" : ",", entry->id,
				   states[entry->state]);
		if (entry == shard->entry)
		{
			buf_text(out, ",\"place\":");
			buf_json(out, target_name(shard->target));
			buf_printf(out, ",\"facts\":%s", shard->facts);
		}
		if (i == topology_auth(topology) && config.grpc_auth != GRPC_AUTH_OFF)
			buf_text(out, ",\"auth\":true");
		buf_byte(out, '}');
	}
	buf_byte(out, ']');
}

void
admission_topology(const struct topology *topology, struct buf *out)
{
	buf_reset(out);
	for (int i = 0; i < topology->nshards; i++)
		buf_printf(out, "%s{\"id\":%d,\"state\":\"%s\"%s}", i == 0 ? "[" : ",", topology->shards[i].id,
				   states[topology->shards[i].state],
				   i == topology_auth(topology) && config.grpc_auth != GRPC_AUTH_OFF ? ",\"auth\":true" : "");
	buf_byte(out, ']');
}

bool
admission_forbids(const PGresult *result)
{
	bool		forbids = false;

	for (int row = 0; row < PQntuples(result); row++)
	{
		int			id = (int) strtol(PQgetvalue(result, row, 0), NULL, 10);

		log_error("registry", "shard %d: %s", id, PQgetvalue(result, row, 1));
		forbids = forbids || !decided || id == home()->entry->id;
	}
	return forbids;
}

/* ---- one shard ---- */

/* Home is there in a moment, or it is not: a start that has just begun waits for it for a while. */
static bool
waits_for_home(const struct admission *admission)
{
	return !home()->told && !decided &&
		loop_now() - admission->since < (uint64_t) config.startup_timeout_ms / 2;
}

/* Home takes facts that are a while old for those of an older copy: they are read again. */
static void
retry_due(struct deadline *deadline)
{
	struct admission *admission = deadline_owner(deadline, struct admission, retry);

	if (!admission->opens)
		admission->renews = true;
	consult(admission);
}

static void
open_shard(struct admission *admission)
{
	admission->opens = false;
	shard_setup_done(admission->shard);
}

static void
not_asked(struct admission *admission)
{
	if (admission->opens && !waits_for_home(admission))
	{
		log_warn("registry", "shard %d: home cannot be asked whether this is the shard's database; it serves, and home"
				 " is asked later", admission->shard->entry->id);
		open_shard(admission);
	}
	deadline_set(&admission->retry, loop_now() + (admission->opens ? CLOSED_RETRY_MS : OPEN_RETRY_MS), retry_due);
}

/*
 * The facts say less than home has heard of. Other proxies may have told it since they
 * were read: only the database can say now whether it is that far.
 */
static void
look_again(struct admission *admission)
{
	if (admission->opens)
	{
		admission->opens = false;
		setup_start(admission->shard->setup);
		return;
	}
	admission->renews = true;
	consult(admission);
}

static void
admitted(struct question *question, const PGresult *result, const struct refusal *refusal)
{
	struct admission *admission = deadline_owner(question, struct admission, question);
	struct shard *shard = admission->shard;

	(void) refusal;
	admission->asked = false;
	if (admission->stale)
	{
		admission->stale = false;
		return;
	}
	if (result == NULL)
		not_asked(admission);
	else if (PQntuples(result) > 0 && !PQgetisnull(result, 0, ADMIT_WAL) &&
			 position_raise(shard, PQgetvalue(result, 0, ADMIT_WAL)))
		look_again(admission);
	else if (PQntuples(result) > 0)
		shard_refused_by_home(shard, PQgetvalue(result, 0, ADMIT_REFUSAL));
	else if (admission->opens)
		open_shard(admission);
}

static void
facts_read(struct question *question, const PGresult *result, const struct refusal *refusal)
{
	struct admission *admission = deadline_owner(question, struct admission, question);

	(void) refusal;
	admission->asked = false;
	if (admission->stale)
	{
		admission->stale = false;
		return;
	}
	if (result == NULL || PQntuples(result) != 1)
	{
		not_asked(admission);
		return;
	}
	if (admission->tells)
	{
		admission->tells = false;
		consult(admission);
		return;
	}
	admission->renews = false;
	free(admission->shard->facts);
	admission->shard->facts = xstrdup(PQgetvalue(result, 0, 0));
	consult(admission);
}

static void
consult(struct admission *admission)
{
	if (admission->asked)
	{
		deadline_set(&admission->retry, loop_now() + CLOSED_RETRY_MS, retry_due);
		return;
	}
	admission->question = (struct question) {
		.statement = admission->renews ? SQL_FACTS : SQL_ADMIT,
		.done = admission->renews ? facts_read : admitted,
	};
	if (admission->tells)
	{
		snprintf(admission->home, sizeof(admission->home), "%d", home()->entry->id);
		admission->question.statement = SQL_SETUP_HOME;
		admission->question.nparams = 2;
		admission->question.params[0] = admission->home;
		admission->question.params[1] = states[admission->shard->entry->state];
	}
	else if (!admission->renews)
	{
		admission_entries(admission->shard, false, &admission->entries);
		admission->question.nparams = 2;
		admission->question.params[0] = buf_cstr(&admission->entries);
		admission->question.params[1] = "f";
	}
	admission->asked = shard_ask(admission->renews ? admission->shard : home(), &admission->question) == SUBMIT_OK;
	if (!admission->asked)
		not_asked(admission);
}

struct admission *
admission_create(struct shard *shard)
{
	struct admission *admission = xcalloc(1, sizeof(*admission));

	admission->shard = shard;
	return admission;
}

void
admission_begin(struct admission *admission)
{
	admission_stop(admission);
	admission->opens = true;
	admission->since = loop_now();
	consult(admission);
}

void
admission_renew(struct admission *admission)
{
	admission->tells = admission->renews = true;
	deadline_set(&admission->retry, loop_now(), retry_due);
}

void
admission_stop(struct admission *admission)
{
	deadline_clear(&admission->retry);
	admission->opens = admission->tells = admission->renews = false;
	admission->stale = admission->asked;
}
