/*
 * gather.c
 *	  One question to several shards at once; done when all have answered.
 */
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "gather.h"
#include "shard.h"

/* More shards than fit are not named. */
#define MISSING_BYTES	512

/* A shard that has not answered by then, when another has, is missing to who takes part. */
#define PART_PATIENCE_MS 5000

/* One that a side pool has; it outlives its part when nobody waits for it any more. */
struct gather_question
{
	struct question question;	/* first: the side pool hands it back */
	struct gather *whole;		/* NULL: forgotten */
	int			slot;
	struct buf	texts;			/* of the parameters */
};

static void
forget(struct gather_part *part)
{
	if (part->asking != NULL)
		part->asking->whole = NULL;
	part->asking = NULL;
}

static void
clear(struct gather *gather)
{
	deadline_clear(&gather->patience);
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		forget(&gather->parts[slot]);
		PQclear(gather->parts[slot].result);
		free(gather->parts[slot].refusal);
		gather->parts[slot] = (struct gather_part) {NULL};
	}
}

static void
keep_refusal(struct gather_part *part, const struct refusal *refusal)
{
	part->refusal = xcalloc(1, sizeof(*refusal));
	*part->refusal = *refusal;
}

static void
finish(struct gather *gather)
{
	deadline_clear(&gather->patience);
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		struct gather_part *part = &gather->parts[slot];
		struct refusal refusal;

		if (part->asking == NULL)
			continue;
		refusal_unavailable(&refusal, shard_by_slot(slot)->entry->id, "", "the database does not answer");
		keep_refusal(part, &refusal);
		forget(part);
	}
	gather->done(gather);
}

static void
one_less(struct gather *gather)
{
	if (--gather->waiting == 0 || (gather->impatient && gather_answers(gather) > 0))
		finish(gather);
}

static void
patience_over(struct deadline *deadline)
{
	struct gather *gather = deadline_owner(deadline, struct gather, patience);

	gather->impatient = true;
	if (gather_answers(gather) > 0)
		finish(gather);
}

static void
answered(struct question *question, const PGresult *result, const struct refusal *refusal)
{
	struct gather_question *asked = (struct gather_question *) question;
	struct gather *gather = asked->whole;
	struct gather_part *part;

	if (gather != NULL)
	{
		part = &gather->parts[asked->slot];
		part->asking = NULL;
		if (result != NULL)
			part->result = PQcopyResult(result, PG_COPYRES_ATTRS | PG_COPYRES_TUPLES);
		else
			keep_refusal(part, refusal);
	}
	buf_free(&asked->texts);
	free(asked);
	if (gather != NULL)
		one_less(gather);
}

void
gather_begin(struct gather *gather, void (*done) (struct gather *gather))
{
	if (gather->parts == NULL)
		gather->parts = xcalloc(TOPOLOGY_MAX_SHARDS, sizeof(*gather->parts));
	clear(gather);
	gather->done = done;
	gather->waiting = 1;
	gather->impatient = false;
}

struct question *
gather_question(struct gather *gather, int slot)
{
	struct gather_question *asking = xcalloc(1, sizeof(*asking));

	asking->question.done = answered;
	asking->whole = gather;
	asking->slot = slot;
	gather->parts[slot].asking = asking;
	return &asking->question;
}

static void
keep_params(struct gather_question *asking)
{
	struct question *question = &asking->question;
	size_t		at[QUESTION_MAX_PARAMS];

	for (int i = 0; i < question->nparams; i++)
	{
		at[i] = asking->texts.len;
		if (question->params[i] != NULL)
			buf_append(&asking->texts, question->params[i], strlen(question->params[i]) + 1);
	}
	for (int i = 0; i < question->nparams; i++)
	{
		if (question->params[i] != NULL)
			question->params[i] = (const char *) asking->texts.data + at[i];
	}
}

void
gather_ask(struct gather *gather, int slot)
{
	struct gather_part *part = &gather->parts[slot];
	struct question *question = &part->asking->question;
	enum submit submitted;
	struct refusal refusal;

	if (!shard_counts(shard_by_slot(slot)))
	{
		free(part->asking);
		part->asking = NULL;
		return;
	}
	part->asked = true;
	gather->waiting++;
	keep_params(part->asking);
	submitted = shard_ask(shard_by_slot(slot), question);
	if (submitted == SUBMIT_OK)
		return;
	shard_refuse(shard_by_slot(slot), submitted, &refusal);
	answered(question, NULL, &refusal);
}

void
gather_hurry(struct gather *gather, int64_t ms)
{
	deadline_set(&gather->patience, loop_now() + (uint64_t) ms, patience_over);
}

void
gather_hurry_part(struct gather *gather, const struct call *call)
{
	if (call != NULL && call_takes_part(call))
		gather_hurry(gather, PART_PATIENCE_MS);
}

void
gather_end(struct gather *gather)
{
	one_less(gather);
}

void
gather_all(struct gather *gather, enum statement statement, const char *const *params, int nparams,
		   bool may_lag, const struct call *call, void (*done) (struct gather *gather))
{
	gather_begin(gather, done);
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		struct question *question = gather_question(gather, slot);

		question->statement = statement;
		question->may_lag = may_lag;
		question->nparams = nparams;
		for (int i = 0; i < nparams; i++)
			question->params[i] = params[i];
		gather_ask(gather, slot);
	}
	gather_hurry_part(gather, call);
	gather_end(gather);
}

const struct refusal *
gather_refusal(const struct gather *gather)
{
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		if (gather->parts[slot].asked && gather->parts[slot].result == NULL)
			return gather->parts[slot].refusal;
	}
	return NULL;
}

bool
gather_suffices(const struct gather *gather, struct call *call, bool enough)
{
	struct buf	missing = BUF_INIT;
	bool		suffices = gather_refusal(gather) == NULL;

	if (suffices || call == NULL || gather_answers(gather) == 0 || !(enough || call_takes_part(call)))
		return suffices;
	for (int slot = 0; slot < shard_slots() && missing.len < MISSING_BYTES; slot++)
	{
		const struct gather_part *part = &gather->parts[slot];

		if (!part->asked || part->result != NULL)
			continue;
		if (!part->refusal->storage)
		{
			buf_free(&missing);
			return false;		/* the engine's own word, which others would say as well */
		}
		buf_printf(&missing, "%s%d", missing.len > 0 ? "," : "", shard_by_slot(slot)->entry->id);
	}
	call_missing(call, buf_cstr(&missing));
	buf_free(&missing);
	return true;
}

int
gather_answers(const struct gather *gather)
{
	int			n = 0;

	for (int slot = 0; slot < shard_slots(); slot++)
		n += gather->parts[slot].result != NULL;
	return n;
}

void
gather_free(struct gather *gather)
{
	if (gather->parts == NULL)
		return;
	clear(gather);
	free(gather->parts);
	gather->parts = NULL;
}
