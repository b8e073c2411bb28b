/*
 * outbox.c
 *	  Instances that home has minted for other shards: started there, then ticked off.
 */
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "drain.h"
#include "log.h"
#include "loop.h"
#include "metrics.h"
#include "outbox.h"
#include "router.h"
#include "shard.h"

#define LOOK_MS		10000
#define ROUND_MAX	256
#define ROUND_TEXT	"256"

struct delivery
{
	struct item item;			/* first: the lane hands it back */
	bool		started;
};

static struct question question;
static PGresult *round_rows;	/* the texts of the deliveries */
static struct delivery *deliveries;
static int	ndeliveries;
static int	waiting;			/* deliveries on their way, and one while they are sent */
static bool busy;
static bool again;
static struct buf done_ids;
static struct deadline next_look;
static struct metric *delivered;

static void look_due(struct deadline *deadline);

/* The round is over; more says that the next one need not wait. */
static void
end_round(bool more)
{
	PQclear(round_rows);
	round_rows = NULL;
	free(deliveries);
	deliveries = NULL;
	ndeliveries = 0;
	busy = false;
	if (drain_started())
		return;
	deadline_set(&next_look, loop_now() + (more || again ? 0 : LOOK_MS), look_due);
}

static void
ticked_off(struct question *asked, const PGresult *result, const struct refusal *refusal)
{
	(void) asked;
	if (result == NULL)
		log_info("outbox", "what was started could not be ticked off, and is started again without effect: %s",
				 refusal->message);
	end_round(result != NULL && ndeliveries == ROUND_MAX);
}

static void
tick_off(void)
{
	int			n = 0;

	buf_reset(&done_ids);
	buf_byte(&done_ids, '{');
	for (int i = 0; i < ndeliveries; i++)
	{
		if (!deliveries[i].started)
			continue;

		/* ids have no character that an array's text would have to quote */
		buf_printf(&done_ids, "%s%s", n++ > 0 ? "," : "", deliveries[i].item.start.id);
	}
	buf_byte(&done_ids, '}');
	metric_add(delivered, n);
	question = (struct question) {
		.statement = SQL_OUTBOX_DONE,
		.nparams = 1,
		.params = {buf_cstr(&done_ids)},
		.writes = true,
		.done = ticked_off,
	};
	if (n == 0 || shard_ask(shard_at(shard_topology()->home), &question) != SUBMIT_OK)
		end_round(false);
}

static void
one_less(void)
{
	if (--waiting == 0)
		tick_off();
}

static void
started(struct item *item, const struct outcome *outcome)
{
	static struct log_gate gate;
	struct delivery *delivery = (struct delivery *) item;

	delivery->started = outcome->status == GRPC_OK;
	if (!delivery->started && log_gate_open(&gate))
		log_warn("outbox", "instance %s of a schedule could not be started and is tried again: %s",
				 item->start.id, outcome->message);
	one_less();
}

static void
deliver(struct delivery *delivery, int row)
{
	static struct log_gate gate;
	struct item_start *start = &delivery->item.start;
	int32_t		number = (int32_t) strtol(PQgetvalue(round_rows, row, OUTBOX_SHARD), NULL, 10);
	int			index = topology_find(shard_topology(), number);
	struct shard *shard = index < 0 ? NULL : shard_at(index);

	delivery->item.kind = ITEM_START;
	delivery->item.done = started;
	start->id = PQgetvalue(round_rows, row, OUTBOX_ID);
	start->workflow = PQgetvalue(round_rows, row, OUTBOX_WORKFLOW);
	if (!PQgetisnull(round_rows, row, OUTBOX_CORRELATION))
		start->correlation_id = PQgetvalue(round_rows, row, OUTBOX_CORRELATION);
	start->context = PQgetvalue(round_rows, row, OUTBOX_CONTEXT);
	start->context_len = (size_t) PQgetlength(round_rows, row, OUTBOX_CONTEXT);
	waiting++;
	if (shard != NULL && shard_submit(shard, &delivery->item,
									  router_hash(start->id, strlen(start->id))) == SUBMIT_OK)
		return;
	if (log_gate_open(&gate))
		log_warn("outbox", "instance %s of a schedule waits for shard %d, which %s", start->id, number,
				 shard == NULL ? "this server does not serve" : "cannot be reached");
	waiting--;
}

static void
looked(struct question *asked, const PGresult *result, const struct refusal *refusal)
{
	(void) asked;
	if (result == NULL)
	{
		log_debug("outbox", "home could not be asked: %s", refusal->message);
		end_round(false);
		return;
	}
	round_rows = PQcopyResult(result, PG_COPYRES_ATTRS | PG_COPYRES_TUPLES);
	ndeliveries = PQntuples(result);
	deliveries = xcalloc((size_t) ndeliveries + 1, sizeof(*deliveries));
	waiting = 1;
	for (int i = 0; i < ndeliveries; i++)
		deliver(&deliveries[i], i);
	one_less();
}

void
outbox_look(void)
{
	struct shard *home = shard_at(shard_topology()->home);

	if (busy || drain_started())
	{
		again = true;
		return;
	}
	again = false;
	busy = true;
	question = (struct question) {
		.statement = SQL_OUTBOX,
		.nparams = 1,
		.params = {ROUND_TEXT},
		.done = looked,
	};
	if (shard_ask(home, &question) != SUBMIT_OK)
		end_round(false);
}

static void
look_due(struct deadline *deadline)
{
	(void) deadline;
	outbox_look();
}

static void
begin_drain(void)
{
	deadline_clear(&next_look);
}

static bool
idle(void)
{
	return !busy;
}

static void
stop(void)
{
	deadline_clear(&next_look);
	buf_free(&done_ids);
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
