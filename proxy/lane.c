/*
 * lane.c
 *	  One pipelined connection to a shard: queue, batches, answers, losses.
 *
 * What a batch did is decided by its Sync alone. Three cases:
 *  - Sync without an error before it: committed, every item gets its row.
 *  - An error with an SQLSTATE: rolled back as a whole, nothing was applied.
 *  - The connection broke before either: not known. Items are asked again and
 *    say so; what the batch's polls had claimed is given back by their owners.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "config.h"
#include "item_queue.h"
#include "lane.h"
#include "lane_batch.h"
#include "log.h"
#include "loop.h"
#include "metrics.h"
#include "poller.h"
#include "position.h"
#include "shard.h"

/* How long an item may wait for a session: nothing sent yet, or its fate unknown. */
#define FRESH_PATIENCE_MS	3000
#define UNKNOWN_PATIENCE_MS 15000

/* How long an item may stand in the queue of a lane whose batch does not end. */
#define QUEUE_PATIENCE_MS	10000
#define SWEEP_MS			250

#define LOCK_TIMEOUT		"5000"
#define STATEMENT_TIMEOUT	"20000"

/*
 * Once a batch has waited for a lock in vain, that patience is spent for a while: otherwise
 * each half with the culprit in it would wait as long again, and everybody behind with it.
 */
#define IMPATIENT_MS		10000

/* A batch not answered for so long: its polls look elsewhere; the connection is dropped. */
#define SLOW_MS				1000
#define SILENCE_MS			30000

#define RETRIES_MAX			4

/* libpq never gives buffer memory back: after a batch like this the session is renewed. */
#define BLOATED_BYTES		((size_t) 8 * 1024 * 1024)
#define RENEW_MS			60000
#define LOST_OWNERS_MAX		4096

#define BATCH_NAME			"wiggle_batch"
#define LOCK_NOT_AVAILABLE	"55P03"

enum lane_state
{
	LANE_DOWN,
	LANE_PREPARING,				/* statement and lost owners are on their way */
	LANE_FREE,
	LANE_BUSY
};

struct lane
{
	struct shard *shard;
	int			number;
	struct link link;
	enum lane_state state;
	bool		closing;
	bool		slow;			/* the batch in flight takes long */
	bool		bloated;		/* libpq's buffers have grown beyond use */
	bool		outdated;		/* the session is one to a former target */
	uint64_t	down_since;		/* 0: was never up */

	struct item_queue queue;
	struct batch *replays;		/* to be sent before the queue; a stack */
	struct batch *current;		/* in flight when LANE_BUSY */

	PGresult   *result;			/* of the group being read */
	bool		failed;
	char		sqlstate[6];
	char		error[256];
	int			syncs;			/* expected while LANE_PREPARING */
	bool		replan;			/* prepare anew in the next batch */
	uint64_t	impatient_until;	/* batches give up soon on a lock */

	char	   *lost[LOST_OWNERS_MAX];	/* owners of polls whose batch was lost */
	int			nlost;
	int			backend_pid;	/* of the session, kept after it is lost */

	struct deadline sweep;
	struct deadline silence;
	struct batch_params params;
	uint64_t	sent_at_us;
	struct metric *batches;
	struct metric *items;
	struct metric *replayed;
	struct metric *duration;
	struct metric *waiting;
};

static void arm_sweep(struct lane *lane);

/* ---- the queue ---- */

static void
enqueue(struct lane *lane, struct item *item)
{
	queue_push(&lane->queue, item);
	metric_set(lane->waiting, lane->queue.n);
}

static struct item *
dequeue(struct lane *lane)
{
	struct item *item = queue_pop(&lane->queue);

	metric_set(lane->waiting, lane->queue.n);
	return item;
}

bool
lane_submit(struct lane *lane, struct item *item)
{
	item->bytes = item_measure(item);
	if (queue_filled(&lane->queue, item->kind == ITEM_START ? QUEUE_CROWDED : 4, item->bytes))
		return false;
	item->since = loop_now();
	item->unknown = false;
	enqueue(lane, item);
	arm_sweep(lane);
	return true;
}

bool
lane_up(const struct lane *lane)
{
	return lane->state != LANE_DOWN;
}

bool
lane_ready_to_send(const struct lane *lane)
{
	return lane->state == LANE_FREE;
}

bool
lane_prompt(const struct lane *lane)
{
	return lane->state != LANE_DOWN && !lane->slow;
}

bool
lane_usable(const struct lane *lane)
{
	return lane->state != LANE_DOWN || (lane->down_since > 0 && loop_now() - lane->down_since < FRESH_PATIENCE_MS);
}

bool
lane_crowded(const struct lane *lane)
{
	return queue_filled(&lane->queue, QUEUE_CROWDED, 0);
}

bool
lane_idle(const struct lane *lane)
{
	return lane->queue.head == NULL && lane->replays == NULL && lane->current == NULL;
}

void
lane_move(struct lane *from, struct lane *to)
{
	while (from->queue.head != NULL)
		enqueue(to, dequeue(from));
	while (from->replays != NULL)
	{
		struct batch *batch = from->replays;

		from->replays = batch->next;
		batch->next = to->replays;
		to->replays = batch;
	}
	arm_sweep(to);
}

void
lane_spread(struct lane *from, struct lane *const *lanes, int n)
{
	int			count = from->queue.n;

	for (int i = 0; i < count; i++)
	{
		struct item *item = dequeue(from);
		struct lane *to = lanes[item->hash % (uint32_t) n];

		enqueue(to, item);
		arm_sweep(to);
	}
}

/* ---- patience ---- */

/*
 * Fail what has waited too long. Items of a replay were sent once and rolled back
 * or are unknown; those of the queue were never sent.
 */
static void
sweep(struct deadline *deadline)
{
	struct lane *lane = deadline_owner(deadline, struct lane, sweep);
	uint64_t	now = loop_now();
	bool		down = lane->state == LANE_DOWN || lane->state == LANE_PREPARING;
	uint64_t	patience = down ? FRESH_PATIENCE_MS : QUEUE_PATIENCE_MS;
	struct item *expired = NULL;
	struct item **last = &expired;

	while (lane->queue.head != NULL && now - lane->queue.head->since >= patience)
	{
		struct item *item = dequeue(lane);

		*last = item;
		last = &item->next;
	}
	for (struct batch **at = &lane->replays; down && *at != NULL;)
	{
		struct batch *batch = *at;
		uint64_t	limit = batch->unknown ? UNKNOWN_PATIENCE_MS : FRESH_PATIENCE_MS;

		if (now - batch->since < limit)
		{
			at = &batch->next;
			continue;
		}
		*at = batch->next;
		for (int i = 0; i < batch->nitems; i++)
		{
			*last = batch->items[i];
			last = &batch->items[i]->next;
		}
		batch_free(batch);
	}
	*last = NULL;
	arm_sweep(lane);
	batch_abandon(expired, lane->shard->entry->id,
				  down ? "no connection to the database" : "the database does not answer");
}

static void
arm_sweep(struct lane *lane)
{
	if (lane->sweep.slot == 0 && (lane->queue.head != NULL || lane->replays != NULL))
		deadline_set(&lane->sweep, loop_now() + SWEEP_MS, sweep);
}

static void
silent(struct deadline *deadline)
{
	struct lane *lane = deadline_owner(deadline, struct lane, silence);

	link_next_host(&lane->link);
	link_break(&lane->link, "the database has not answered for 30 s");
}

/*
 * The batch takes too long for those who only ask whether there is work: its
 * polls go to other shards, and new ones stay away until it has ended.
 */
static void
slow(struct deadline *deadline)
{
	struct lane *lane = deadline_owner(deadline, struct lane, silence);

	deadline_set(&lane->silence, loop_now() + SILENCE_MS - SLOW_MS, silent);
	if (lane->state != LANE_BUSY)
		return;
	lane->slow = true;
	shard_lane_changed(lane->shard);
	for (int i = 0; i < lane->current->nitems; i++)
	{
		if (lane->current->items[i]->kind == ITEM_POLL)
			poller_detach(lane->current->items[i]);
	}
}

/* ---- sending ---- */

static bool
send_prepare(struct lane *lane)
{
	return PQsendPrepare(lane->link.conn, BATCH_NAME, statement_text(SQL_BATCH), 0, NULL);
}

static void
send_batch(struct lane *lane, struct batch *batch)
{
	PGconn	   *conn = lane->link.conn;
	bool		sent = true;

	lane->current = batch;
	lane->state = LANE_BUSY;
	lane->failed = false;
	lane->sqlstate[0] = lane->error[0] = '\0';
	lane->sent_at_us = uv_hrtime() / 1000;
	batch_encode(&lane->params, batch->items, batch->nitems);
	if (lane->replan)
	{
		lane->replan = false;
		sent = PQsendQueryParams(conn, statement_text(SQL_DEALLOCATE), 0, NULL, NULL, NULL, NULL, 1) &&
			send_prepare(lane);
	}
	if (loop_now() < lane->impatient_until)
		sent = sent && PQsendQueryParams(conn, statement_text(SQL_IMPATIENT), 0, NULL, NULL, NULL, NULL, 1);
	sent = sent && PQsendQueryPrepared(conn, BATCH_NAME, BATCH_PARAMS, lane->params.values,
									   lane->params.lengths, lane->params.formats, 1) &&
		PQpipelineSync(conn);
	if (!sent)
	{
		link_break(&lane->link, PQerrorMessage(conn));
		return;
	}
	metric_add(lane->batches, 1);
	metric_add(lane->items, batch->nitems);
	deadline_set(&lane->silence, loop_now() + SLOW_MS, slow);
	link_flush(&lane->link);
}

/* Fill a batch from the queue, then with polls; NULL when there is nothing to do. */
static struct batch *
form_batch(struct lane *lane)
{
	struct batch *batch;
	int			most = (int) config.lane_batch_items;
	size_t		bytes = 0;
	int			taken = 0;
	int			minting = 0;
	bool		polls = poller_wants(lane->shard->slot);

	if (lane->queue.head == NULL && !polls)
		return NULL;
	batch = batch_create(most);
	while (lane->queue.head != NULL && taken < most &&
		   (taken == 0 || bytes + lane->queue.head->bytes <= (size_t) config.lane_batch_bytes))
	{
		struct item *item = dequeue(lane);

		bytes += item->bytes;
		minting += item->kind == ITEM_START || item->kind == ITEM_RUN;
		batch->items[taken++] = item;
	}
	batch->nitems = taken;

	/*
	 * Polls travel in the lanes that are in use, and at least in the first: with
	 * starts or runs, parked ones too, since a token minted in the batch goes
	 * straight to a poll that rides along.
	 */
	batch->nitems += poller_collect(lane->shard->slot, &batch->items[taken], most - taken, minting);
	if (batch->nitems > 0)
		return batch;
	batch_free(batch);
	return NULL;
}

/* Drop a session that nobody uses at the moment; another is opened. */
static void
renew(struct lane *lane)
{
	lane->closing = true;
	batch_params_free(&lane->params);
	link_break(&lane->link, "renewed");
	lane->closing = false;
}

void
lane_turn(struct lane *lane)
{
	struct batch *batch;

	if (lane->state != LANE_FREE)
		return;
	if (lane->outdated)
	{
		renew(lane);
		return;
	}
	while (lane->replays != NULL)
	{
		batch = lane->replays;
		lane->replays = batch->next;
		if (batch->nitems == 0)
		{
			batch_free(batch);
			continue;
		}
		metric_add(lane->replayed, batch->nitems);
		send_batch(lane, batch);
		return;
	}
	batch = form_batch(lane);
	if (batch == NULL)
	{
		if (lane->bloated && loop_now() - lane->link.up_since >= RENEW_MS)
			renew(lane);
		return;
	}
	send_batch(lane, batch);
	shard_crowding(lane->shard, lane->queue.n);
}

/* ---- answers ---- */

static void
push_replay(struct lane *lane, struct batch *batch)
{
	batch->since = loop_now();
	batch->next = lane->replays;
	lane->replays = batch;
	arm_sweep(lane);
}

/* Two halves, to be sent one after the other; the first on top. */
static void
replay_halves(struct lane *lane, struct batch *batch)
{
	struct batch *second = batch_split(batch);

	push_replay(lane, second);
	push_replay(lane, batch);
}

/* The batch was rolled back with an error that bears an SQLSTATE. */
static void
batch_failed(struct lane *lane, struct batch *batch)
{
	enum error_class error_class = error_classify_statement(lane->sqlstate, lane->error);
	int			id = lane->shard->entry->id;
	struct refusal refusal;

	log_debug("lane", "shard %d: a batch of %d was rolled back: %s, SQLSTATE %s", id, batch->nitems,
			  lane->error, lane->sqlstate);
	if (strcmp(lane->sqlstate, LOCK_NOT_AVAILABLE) == 0 && loop_now() >= lane->impatient_until)
		lane->impatient_until = loop_now() + IMPATIENT_MS;
	switch (error_class)
	{
		case ERROR_CONNECTION:
		case ERROR_SCHEMA:
			push_replay(lane, batch);
			if (error_class == ERROR_SCHEMA)
				shard_schema_lost(lane->shard, lane->error);
			link_break(&lane->link, lane->error);
			return;
		case ERROR_PLAN:
		case ERROR_RETRY:
			if (batch->tries++ < RETRIES_MAX)
			{
				lane->replan = error_class == ERROR_PLAN;
				push_replay(lane, batch);
				return;
			}
			break;
		default:
			break;
	}
	if (batch->nitems > 1 && (error_class != ERROR_BUSY || strncmp(lane->sqlstate, "53", 2) != 0))
	{
		replay_halves(lane, batch);
		return;
	}
	refusal_from_error(&refusal, id, lane->sqlstate, lane->error);
	batch_refuse(batch, &refusal);
}

/* The Sync of the batch in flight has come. */
static void
batch_ended(struct lane *lane)
{
	struct batch *batch = lane->current;
	PGresult   *result = lane->result;
	PGTransactionStatusType status = PQtransactionStatus(lane->link.conn);

	deadline_clear(&lane->silence);
	metric_observe(lane->duration, uv_hrtime() / 1000 - lane->sent_at_us);
	lane->current = NULL;
	lane->result = NULL;
	lane->state = LANE_FREE;
	if (lane->slow)
	{
		lane->slow = false;
		shard_lane_changed(lane->shard);
	}
	if (lane->failed)
		batch_failed(lane, batch);
	else
		batch_deliver(batch, result, lane->shard->entry->id);
	lane->bloated = lane->bloated || PQresultMemorySize(result) > BLOATED_BYTES ||
		batch_params_bytes(&lane->params) > BLOATED_BYTES;
	PQclear(result);
	if (status == PQTRANS_INTRANS || status == PQTRANS_INERROR)
		link_break(&lane->link, "a transaction was left open on a lane");
}

static void
preparing_ended(struct lane *lane)
{
	PQclear(lane->result);
	lane->result = NULL;
	if (lane->failed)
	{
		/* the statement is prepared first: an error of the second group is the release's */
		if (lane->syncs == 2 || lane->nlost == 0)
		{
			if (error_classify(lane->sqlstate) == ERROR_SCHEMA)
				shard_schema_lost(lane->shard, lane->error);
			link_break(&lane->link, lane->error);
			return;
		}
		log_warn("lane", "shard %d: claims of a lost batch are left to their leases: %s",
				 lane->shard->entry->id, lane->error);
	}
	lane->failed = false;
	if (--lane->syncs > 0)
		return;
	for (int i = 0; i < lane->nlost; i++)
		free(lane->lost[i]);
	lane->nlost = 0;
	deadline_clear(&lane->silence);
	lane->state = LANE_FREE;
	shard_lane_changed(lane->shard);
}

static void
note_error(struct lane *lane, const PGresult *result)
{
	const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

	lane->failed = true;
	if (lane->sqlstate[0] != '\0' || sqlstate == NULL)
		return;
	snprintf(lane->sqlstate, sizeof(lane->sqlstate), "%s", sqlstate);
	snprintf(lane->error, sizeof(lane->error), "%s", message ? message : "");
}

static void
lane_ready(struct link *link)
{
	struct lane *lane = link->owner;
	int			nothing = 0;

	/*
	 * On a broken connection PQgetResult gives NULL for ever, within a group it
	 * gives one NULL behind each statement: two in a row are the end.
	 */
	while (link_up(link) && (lane->state == LANE_BUSY || lane->state == LANE_PREPARING) &&
		   !PQisBusy(link->conn) && nothing < 2)
	{
		PGresult   *result = PQgetResult(link->conn);

		if (result == NULL)
		{
			nothing++;
			continue;
		}
		nothing = 0;
		switch (PQresultStatus(result))
		{
			case PGRES_PIPELINE_SYNC:
				PQclear(result);
				if (lane->state == LANE_BUSY)
					batch_ended(lane);
				else
					preparing_ended(lane);
				continue;
			case PGRES_TUPLES_OK:
				PQclear(lane->result);
				lane->result = result;
				continue;
			case PGRES_FATAL_ERROR:
				note_error(lane, result);
				break;
			case PGRES_PIPELINE_ABORTED:
				lane->failed = true;
				break;
			default:
				break;
		}
		PQclear(result);
	}
}

/* ---- connecting ---- */

static bool
lane_greet(struct link *link)
{
	const struct lane *lane = link->owner;
	const char *const values[] = {LOCK_TIMEOUT, STATEMENT_TIMEOUT, position_known(lane->shard)};

	return PQsendQueryParams(link->conn, statement_text(SQL_SESSION_LANE), 3, NULL, values, NULL, NULL, 0);
}

static bool
lane_greeted(struct link *link, const PGresult *result, struct wig_error *err)
{
	struct lane *lane = link->owner;

	return shard_check_identity(lane->shard, result, err);
}

static void
lane_link_up(struct link *link)
{
	struct lane *lane = link->owner;
	int			former_pid = lane->backend_pid;
	bool		sent;

	shard_connected(lane->shard);
	lane->backend_pid = PQbackendPID(link->conn);
	lane->state = LANE_PREPARING;
	lane->syncs = 1;
	lane->failed = false;
	lane->replan = false;
	lane->sqlstate[0] = lane->error[0] = '\0';
	sent = PQenterPipelineMode(link->conn) && send_prepare(lane) && PQpipelineSync(link->conn);
	if (sent && lane->nlost > 0)
	{
		/* The session that was lost may still wait for a lock, and claim afterwards: it is ended first. */
		release_encode(&lane->params, (const char *const *) lane->lost, lane->nlost, former_pid);
		sent = PQsendQueryParams(link->conn, statement_text(SQL_RELEASE_OWNERS), RELEASE_PARAMS, NULL,
								 lane->params.values, lane->params.lengths, lane->params.formats, 1) &&
			PQpipelineSync(link->conn);
		lane->syncs = 2;
	}
	if (!sent)
	{
		link_break(link, PQerrorMessage(link->conn));
		return;
	}
	deadline_set(&lane->silence, loop_now() + SILENCE_MS, silent);
	link_flush(link);
}

/* Remember whose claims to give back, then let the polls go. */
static void
lose_polls(struct lane *lane, struct batch *batch, bool unknown)
{
	for (int i = 0; unknown && i < batch->nitems; i++)
	{
		if (batch->items[i]->kind == ITEM_POLL && lane->nlost < LOST_OWNERS_MAX)
			lane->lost[lane->nlost++] = xstrdup(batch->items[i]->poll.owner);
	}
	batch_drop_polls(batch);
}

static void
lane_link_down(struct link *link, const char *why)
{
	struct lane *lane = link->owner;
	struct batch *batch = lane->current;
	bool		was_serving = lane->state == LANE_FREE || lane->state == LANE_BUSY;

	deadline_clear(&lane->silence);
	PQclear(lane->result);
	lane->result = NULL;
	lane->state = LANE_DOWN;
	lane->slow = false;
	lane->bloated = lane->outdated = false;
	if (was_serving)
		lane->down_since = loop_now();
	if (!lane->closing)
		log_warn("lane", "shard %d: lane %d lost: %s", lane->shard->entry->id, lane->number, why);
	if (batch != NULL)
	{
		/* an error that bears an SQLSTATE proves that nothing was applied */
		bool		unknown = lane->sqlstate[0] == '\0';

		lane->current = NULL;
		lose_polls(lane, batch, unknown);
		if (unknown)
			batch_mark_unknown(batch);
		if (unknown && !lane->closing)
			shard_doubt(lane->shard);
		if (batch->nitems > 0)
			push_replay(lane, batch);
		else
			batch_free(batch);
	}
	for (struct batch *replay = lane->replays; replay != NULL; replay = replay->next)
		batch_drop_polls(replay);
	arm_sweep(lane);
	shard_lane_changed(lane->shard);
}

static void
lane_link_failed(struct link *link, const char *sqlstate, const char *why)
{
	struct lane *lane = link->owner;
	static struct log_gate gate;

	snprintf(lane->shard->problem, sizeof(lane->shard->problem), "%s", why);
	if (log_gate_open(&gate))
		log_warn("lane", "shard %d: cannot connect to %s: %s", lane->shard->entry->id,
				 target_name(link->target), why);
	if (error_classify(sqlstate) == ERROR_SCHEMA)
		shard_schema_lost(lane->shard, why);
}

static const struct link_ops lane_ops = {
	.greet = lane_greet,
	.greeted = lane_greeted,
	.up = lane_link_up,
	.ready = lane_ready,
	.down = lane_link_down,
	.failed = lane_link_failed,
};

struct lane *
lane_create(struct shard *shard, int number)
{
	struct lane *lane = xcalloc(1, sizeof(*lane));
	char		labels[48];

	lane->shard = shard;
	lane->number = number;
	queue_init(&lane->queue);
	link_init(&lane->link, &lane_ops, shard->target, "lane", lane);
	snprintf(labels, sizeof(labels), "shard=\"%d\",lane=\"%d\"", shard->entry->id, number);
	lane->batches = metric_counter("wiggle_proxy_lane_batches_total", labels,
								   "Batches sent, replays included.");
	lane->items = metric_counter("wiggle_proxy_lane_items_total", labels,
								 "Items in batches sent: starts, runs, fails, heartbeats, releases, polls.");
	lane->replayed = metric_counter("wiggle_proxy_lane_replayed_items_total", labels,
									"Items sent again after their batch failed or was lost.");
	lane->duration = metric_histogram("wiggle_proxy_lane_batch_seconds", labels,
									  "From sending a batch to its commit.");
	lane->waiting = metric_gauge("wiggle_proxy_lane_waiting_items", labels,
								 "Items left in the queue when the last batch was formed.");
	return lane;
}

void
lane_start(struct lane *lane)
{
	if (lane->link.state == LINK_STOPPED)
		lane->down_since = loop_now();	/* what comes now may wait for the connection */
	link_start(&lane->link);
}

void
lane_hurry(struct lane *lane)
{
	link_hurry(&lane->link);
}

void
lane_stop(struct lane *lane)
{
	if (lane->link.state == LINK_STOPPED)
		return;
	lane->closing = true;
	if (link_up(&lane->link))
		link_break(&lane->link, "closing");
	link_stop(&lane->link);
	lane->state = LANE_DOWN;
	lane->closing = false;
}

void
lane_free(struct lane *lane)
{
	lane_stop(lane);
	deadline_clear(&lane->sweep);
	deadline_clear(&lane->silence);
	batch_params_free(&lane->params);
	for (int i = 0; i < lane->nlost; i++)
		free(lane->lost[i]);
	free(lane);
}

void
lane_aim(struct lane *lane)
{
	link_aim(&lane->link, lane->shard->target);
}

void
lane_renew(struct lane *lane)
{
	lane->outdated = link_up(&lane->link);
}
