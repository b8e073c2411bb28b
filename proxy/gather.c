/*
 * gather.c
 *	  One question to several shards at once; done when all have answered.
 */
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "gather.h"
#include "shard.h"

static void
clear(struct gather *gather)
{
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		PQclear(gather->parts[slot].result);
		gather->parts[slot].result = NULL;
		gather->parts[slot].asked = false;
	}
}

static void
one_less(struct gather *gather)
{
	if (--gather->waiting == 0)
		gather->done(gather);
}

static void
answered(struct question *question, const PGresult *result, const struct refusal *refusal)
{
	struct gather_part *part = (struct gather_part *) question;

	if (result != NULL)
		part->result = PQcopyResult(result, PG_COPYRES_ATTRS | PG_COPYRES_TUPLES);
	else
		part->refusal = *refusal;
	one_less(part->whole);
}

void
gather_begin(struct gather *gather, void (*done) (struct gather *gather))
{
	if (gather->parts == NULL)
		gather->parts = xcalloc((size_t) shard_slots(), sizeof(*gather->parts));
	clear(gather);
	gather->done = done;
	gather->waiting = 1;
}

struct question *
gather_question(struct gather *gather, int slot)
{
	struct gather_part *part = &gather->parts[slot];

	memset(&part->question, 0, sizeof(part->question));
	part->question.done = answered;
	part->whole = gather;
	return &part->question;
}

void
gather_ask(struct gather *gather, int slot)
{
	struct gather_part *part = &gather->parts[slot];
	enum submit submitted;

	part->asked = true;
	gather->waiting++;
	submitted = shard_ask(shard_by_slot(slot), &part->question);
	if (submitted == SUBMIT_OK)
		return;
	shard_refuse(shard_by_slot(slot), submitted, &part->refusal);
	one_less(gather);
}

void
gather_end(struct gather *gather)
{
	one_less(gather);
}

void
gather_all(struct gather *gather, enum statement statement, const char *const *params, int nparams,
		   void (*done) (struct gather *gather))
{
	gather_begin(gather, done);
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		struct question *question = gather_question(gather, slot);

		question->statement = statement;
		question->nparams = nparams;
		for (int i = 0; i < nparams; i++)
			question->params[i] = params[i];
		gather_ask(gather, slot);
	}
	gather_end(gather);
}

const struct refusal *
gather_refusal(const struct gather *gather)
{
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		if (gather->parts[slot].asked && gather->parts[slot].result == NULL)
			return &gather->parts[slot].refusal;
	}
	return NULL;
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
