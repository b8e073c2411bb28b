/*
 * outbox.c
 *	  Instances that home has minted for other shards: started there, then ticked off.
 *
 * A look asks home for what is due on the shards that answer and have nothing from
 * an earlier look on its way; so no shard waits for another. What a shard is
 * given is a round: home is told at its end which were started and which were
 * not, and gives the latter again later, behind what has become due meanwhile.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "config.h"
#include "drain.h"
#include "log.h"
#include "loop.h"
#include "metrics.h"
#include "outbox.h"
#include "router.h"
#include "shard.h"

#define LOOK_MS		10000
#define LOOK_MAX	256
#define LOOK_TEXT	"256"

struct delivery
{
	struct item item;			/* first: the lane hands it back */
	struct round *round;		/* whose it is */
	struct delivery *next;
	bool		started;
	char		texts[];		/* that the item points to */
};

/* What a shard is being given. */
struct round
{
	struct delivery *deliveries;
	int			waiting;		/* deliveries on their way, and one while they are sent */
	bool		busy;			/* until home has been told how it went */
	bool		more;			/* a look has left this shard out, or was full */
	struct question question;
	struct buf	started;		/* arrays of ids */
	struct buf	refused;
};

static struct round rounds[TOPOLOGY_MAX_SHARDS];	/* by slot */
static struct question question;
static struct buf answering;	/* array of shards */
static bool looking;
static bool again;
static struct deadline next_look;
static struct metric *delivered;

static void
look_due(struct deadline *deadline)
{
	(void) deadline;
	outbox_look();
}

static void
look_after(int64_t ms)
{
	if (!drain_started())
		deadline_set(&next_look, loop_now() + (uint64_t) ms, look_due);
}

/* ---- a round ---- */

static void
end_round(struct round *round)
{
	while (round->deliveries != NULL)
	{
		struct delivery *delivery = round->deliveries;

		round->deliveries = delivery->next;
		free(delivery);
	}
	round->busy = false;
}

static void
told(struct question *asked, const PGresult *result, const struct refusal *refusal)
{
	struct round *round = (struct round *) ((char *) asked - offsetof(struct round, question));

	end_round(round);
	if (result == NULL)
		log_info("outbox", "what was started could not be ticked off, and is started again without effect: %s",
				 refusal->message);
	else if (round->more)
		outbox_look();
}

/* Ids have no character that an array's text would have to quote. */
static int
write_ids(struct buf *out, const struct round *round, bool started)
{
	int			n = 0;

	buf_reset(out);
	buf_byte(out, '{');
	for (const struct delivery *d = round->deliveries; d != NULL; d = d->next)
	{
		if (d->started == started)
			buf_printf(out, "%s%s", n++ > 0 ? "," : "", d->item.start.id);
	}
	buf_byte(out, '}');
	return n;
}

static void
tell_home(struct round *round)
{
	metric_add(delivered, write_ids(&round->started, round, true));
	write_ids(&round->refused, round, false);
	round->question = (struct question) {
		.statement = SQL_OUTBOX_DONE,
		.nparams = 2,
		.params = {buf_cstr(&round->started), buf_cstr(&round->refused)},
		.done = told,
	};
	if (shard_ask(shard_at(shard_topology()->home), &round->question) != SUBMIT_OK)
		end_round(round);
}

static void
one_less(struct round *round)
{
	if (--round->waiting == 0)
		tell_home(round);
}

static void
not_started(const struct item_start *start, const char *why)
{
	static struct log_gate gate;

	if (log_gate_open(&gate))
		log_warn("outbox", "instance %s of a schedule could not be started and is tried again: %s",
				 start->id, why);
}

static void
started(struct item *item, const struct outcome *outcome)
{
	struct delivery *delivery = (struct delivery *) item;

	delivery->started = outcome->status == GRPC_OK;
	if (!delivery->started)
		not_started(&item->start, outcome->message);
	one_less(delivery->round);
}

static void
deliver(struct delivery *delivery, struct shard *shard)
{
	struct item_start *start = &delivery->item.start;
	enum submit submitted;
	struct refusal refusal;

	delivery->round->waiting++;
	submitted = shard_submit(shard, &delivery->item, router_hash(start->id, strlen(start->id)));
	if (submitted == SUBMIT_OK)
		return;
	shard_refuse(shard, submitted, &refusal);
	not_started(start, refusal.message);
	delivery->round->waiting--;
}

/* ---- a look ---- */

/* Copy a text of the row to *at, which moves on. */
static const char *
keep(char **at, const PGresult *result, int row, enum outbox_column column)
{
	size_t		len = (size_t) PQgetlength(result, row, column) + 1;
	char	   *copy = *at;

	memcpy(copy, PQgetvalue(result, row, column), len);
	*at += len;
	return copy;
}

static struct delivery *
read_row(const PGresult *result, int row)
{
	size_t		bytes = 0;
	struct delivery *delivery;
	struct item_start *start;
	char	   *at;

	for (int column = OUTBOX_ID; column <= OUTBOX_CONTEXT; column++)
		bytes += (size_t) PQgetlength(result, row, column) + 1;
	delivery = xcalloc(1, sizeof(*delivery) + bytes);
	at = delivery->texts;
	start = &delivery->item.start;
	delivery->item.kind = ITEM_START;
	delivery->item.done = started;
	start->id = keep(&at, result, row, OUTBOX_ID);
	start->workflow = keep(&at, result, row, OUTBOX_WORKFLOW);
	if (!PQgetisnull(result, row, OUTBOX_CORRELATION))
		start->correlation_id = keep(&at, result, row, OUTBOX_CORRELATION);
	start->context = keep(&at, result, row, OUTBOX_CONTEXT);
	start->context_len = (size_t) PQgetlength(result, row, OUTBOX_CONTEXT);
	return delivery;
}

/* Give each shard its rows, in their order. */
static void
begin_rounds(const PGresult *result)
{
	bool		full = PQntuples(result) == LOOK_MAX;
	bool		begun[TOPOLOGY_MAX_SHARDS] = {false};

	for (int row = 0; row < PQntuples(result); row++)
	{
		int32_t		number = (int32_t) strtol(PQgetvalue(result, row, OUTBOX_SHARD), NULL, 10);
		struct shard *shard = shard_at(topology_find(shard_topology(), number));
		struct round *round = &rounds[shard->slot];
		struct delivery *delivery = read_row(result, row);

		if (!begun[shard->slot])
		{
			begun[shard->slot] = round->busy = true;
			round->more = full;
			round->waiting = 1;
		}
		delivery->round = round;
		delivery->next = round->deliveries;
		round->deliveries = delivery;
		deliver(delivery, shard);
	}
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		if (begun[slot])
			one_less(&rounds[slot]);
	}
	if (full)
		again = true;			/* for the shards that had no row in it */
}

static void
looked(struct question *asked, const PGresult *result, const struct refusal *refusal)
{
	(void) asked;
	looking = false;
	if (result != NULL)
		begin_rounds(result);
	else
		log_debug("outbox", "home could not be asked: %s", refusal->message);
	look_after(again ? 0 : LOOK_MS);
}

/* The shards that can be given something now. */
static bool
write_answering(void)
{
	int			n = 0;

	buf_reset(&answering);
	buf_byte(&answering, '{');
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		if (rounds[slot].busy)
			rounds[slot].more = true;
		else if (shard_receives(shard_by_slot(slot)))
			buf_printf(&answering, "%s%d", n++ > 0 ? "," : "", shard_by_slot(slot)->entry->id);
	}
	buf_byte(&answering, '}');
	return n > 0;
}

void
outbox_look(void)
{
	again = looking;
	if (looking || drain_started() || config.migrate_only)
		return;
	question = (struct question) {
		.statement = SQL_OUTBOX,
		.nparams = 2,
		.done = looked,
	};
	if (write_answering())
	{
		question.params[0] = LOOK_TEXT;
		question.params[1] = buf_cstr(&answering);
		looking = shard_ask(shard_at(shard_topology()->home), &question) == SUBMIT_OK;
	}
	if (!looking)
		look_after(LOOK_MS);
}

/* ---- drain ---- */

static void
begin_drain(void)
{
	deadline_clear(&next_look);
}

static bool
idle(void)
{
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		if (rounds[slot].busy)
			return false;
	}
	return !looking;
}

static void
stop(void)
{
	deadline_clear(&next_look);
	buf_free(&answering);
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		buf_free(&rounds[slot].started);
		buf_free(&rounds[slot].refused);
	}
}

void
outbox_start(void)
{
	static const struct drain_hook hook = {.name = "outbox", .begin = begin_drain, .idle = idle,
	.stop = stop};

	delivered = metric_counter("wiggle_proxy_outbox_started_total", NULL,
							   "Instances of schedules that were started on another shard than home.");
	drain_register(&hook);
}
