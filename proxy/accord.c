/*
 * accord.c
 *	  Home's word on a topology document as a whole.
 */
#include "accord.h"
#include "admission.h"
#include "drain.h"
#include "home_clock.h"
#include "log.h"

#define RETRY_MS 1000

static void ask(struct accord *accord);

/* A single database has none: the document that comes in its place may give the first one any id and time. */
static void
write_generations(struct buf *out, const struct topology *topology)
{
	char		instant[TOPOLOGY_INSTANT_LEN];

	buf_reset(out);
	buf_byte(out, '[');
	for (int i = 0; i < topology->ngenerations && !topology->single; i++)
	{
		const struct generation *generation = &topology->generations[i];

		topology_write_instant(generation->active_from_ms, instant);
		buf_printf(out, "%s{\"id\":%lld,\"activeFrom\":\"%s\",\"weights\":{", i > 0 ? "," : "",
				   (long long) generation->id, instant);
		for (int w = 0; w < generation->nweights; w++)
			buf_printf(out, "%s\"%d\":%d", w > 0 ? "," : "",
					   topology->shards[generation->weights[w].shard].id, generation->weights[w].weight);
		buf_text(out, "}}");
	}
	buf_byte(out, ']');
}

static void
ask_again(struct deadline *deadline)
{
	ask(deadline_owner(deadline, struct accord, retry));
}

static void
wait_for_home(struct accord *accord, const char *why)
{
	if (drain_started())
		return;
	deadline_set(&accord->retry, loop_now() + RETRY_MS, ask_again);
	accord->ops->waits(why);
}

static void
home_has_judged(struct question *question, const PGresult *result, const struct refusal *refusal)
{
	struct accord *accord = deadline_owner(question, struct accord, question);
	struct buf	why = BUF_INIT;

	accord->asked = false;
	if (result == NULL && !refusal->storage)
	{
		accord->ops->heard(refusal->message);
		return;
	}
	if (result == NULL)
	{
		wait_for_home(accord, refusal->message);
		return;
	}
	for (int row = 0; row < PQntuples(result); row++)
	{
		if (PQgetisnull(result, row, TOPOLOGY_ADMIT_REFUSAL))
			log_warn("topology", "%s", PQgetvalue(result, row, TOPOLOGY_ADMIT_NOTICE));
		else
			buf_printf(&why, "%s%s", why.len > 0 ? "; and " : "", PQgetvalue(result, row, TOPOLOGY_ADMIT_REFUSAL));
	}
	accord->ops->heard(why.len > 0 ? buf_cstr(&why) : NULL);
	buf_free(&why);
}

static void
ask(struct accord *accord)
{
	struct shard *home = shard_at(shard_topology()->home);
	struct wig_error err = {.message = ""};
	const struct topology *document;

	if (!home_clock_known())
	{
		wait_for_home(accord, "it has not been heard of yet");
		return;
	}
	document = accord->ops->judged(&err);
	if (document == NULL)
	{
		accord->ops->heard(err.message);
		return;
	}
	admission_topology(document, &accord->entries);
	write_generations(&accord->generations, document);
	accord->question = (struct question) {
		.statement = SQL_TOPOLOGY_ADMIT,
		.nparams = 3,
		.params = {buf_cstr(&accord->entries), buf_cstr(&accord->generations), accord->withdraws ? "t" : "f"},
		.writes = true,
		.done = home_has_judged,
	};
	accord->asked = shard_ask(home, &accord->question) == SUBMIT_OK;
	if (!accord->asked)
		wait_for_home(accord, shard_problem(home));
}

void
accord_ask(struct accord *accord, const struct accord_ops *ops, bool withdraws)
{
	if (accord->asked)
		return;
	deadline_clear(&accord->retry);
	accord->ops = ops;
	accord->withdraws = withdraws;
	ask(accord);
}

bool
accord_cancel(struct accord *accord)
{
	deadline_clear(&accord->retry);
	return !accord->asked;
}
