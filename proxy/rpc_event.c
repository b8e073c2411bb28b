/*
 * rpc_event.c
 *	  PollEvents: the logs of all shards as one, after a named consumer's place.
 *
 * A look is: the cursor from home, then the entries after it from every shard. A
 * consumer that is new, or to whom a shard is, is registered in between. When there
 * is nothing the call waits until there is something on any shard.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "drain.h"
#include "event_cursor.h"
#include "event_list.h"
#include "feed_watch.h"
#include "gather.h"
#include "loop.h"
#include "message.h"
#include "metrics.h"
#include "pressure.h"
#include "rpc.h"
#include "rpc_event.h"
#include "wiggle.pb-c.h"

#define MAX_EVENTS		1000

/* A look that a shard did not answer is made again, whether there is news or not. */
#define AGAIN_MS		2000

/* What all shards together answer a look with, about. */
#define LOOK_BYTES		REPLY_MAX_BYTES
#define LOOK_MIN_BYTES	((size_t) 64 * 1024)

typedef Com__Wiggle__Proto__PollEventsRequest PollEventsRequest;

struct event_poll
{
	struct gather gather;		/* first: it is handed back */
	struct question question;	/* of home */
	struct feed_watch watch;
	struct pending pending;
	struct deadline wait_end;
	struct deadline next_look;
	uint64_t	wait_until;		/* loop time */
	uint64_t	news;			/* when the look began */
	bool		looking;
	bool		looked;			/* a look has ended */
	bool		registered;		/* this call has registered the consumer */
	struct event_cursor acked;
	struct buf	shards;			/* texts of parameters */
	struct buf	seqs;
};

static int	total;
static struct metric *gauge;
static struct metric *looks;

static void look(struct event_poll *poll);

static struct event_poll *
of_question(struct question *question)
{
	return (struct event_poll *) ((char *) question - offsetof(struct event_poll, question));
}

/* ---- the end ---- */

static void
free_poll(struct event_poll *poll)
{
	deadline_clear(&poll->wait_end);
	deadline_clear(&poll->next_look);
	feed_watch_leave(&poll->watch);
	gather_free(&poll->gather);
	buf_free(&poll->shards);
	buf_free(&poll->seqs);
	pending_close(&poll->pending);
	free(poll);
	metric_set(gauge, --total);
}

static void
reply_empty(struct event_poll *poll)
{
	Com__Wiggle__Proto__EventList reply = COM__WIGGLE__PROTO__EVENT_LIST__INIT;

	pending_reply(&poll->pending, &reply.base);
}

static void
end_refused(struct event_poll *poll, const struct refusal *refusal)
{
	pending_refuse(&poll->pending, refusal);
	free_poll(poll);
}

static void
cancelled(struct call *call, void *arg)
{
	struct event_poll *poll = arg;

	(void) call;
	poll->pending.call = NULL;
	if (!poll->looking)
		free_poll(poll);
}

/* What the look in flight finds comes too late for this call, and stays unacknowledged. */
static void
wait_over(struct deadline *deadline)
{
	struct event_poll *poll = deadline_owner(deadline, struct event_poll, wait_end);

	if (poll->looking && !poll->looked)
		return;
	reply_empty(poll);
	if (!poll->looking)
		free_poll(poll);
}

/* ---- waiting ---- */

static void
look_due(struct deadline *deadline)
{
	struct event_poll *poll = deadline_owner(deadline, struct event_poll, next_look);

	feed_watch_leave(&poll->watch);
	look(poll);
}

/* Does any log go on behind the consumer's place? */
static bool
is_behind(const struct event_poll *poll)
{
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		if (feed_watch_horizon(slot) > cursor_get(&poll->acked, shard_by_slot(slot)->entry->id) + 1)
			return true;
	}
	return false;
}

static void
woken(struct feed_watch *watch)
{
	struct event_poll *poll =
		(struct event_poll *) ((char *) watch - offsetof(struct event_poll, watch));

	if (is_behind(poll))
		look(poll);
	else
		feed_watch_wait(watch, woken);
}

static void
wait_for_more(struct event_poll *poll)
{
	poll->looking = false;
	if (drain_started() || loop_now() >= poll->wait_until)
	{
		reply_empty(poll);
		free_poll(poll);
	}
	else if (poll->news != feed_watch_news() && is_behind(poll))
		look(poll);
	else
	{
		feed_watch_wait(&poll->watch, woken);
		if (gather_refusal(&poll->gather) != NULL)
			deadline_set(&poll->next_look, loop_now() + AGAIN_MS, look_due);
	}
}

/* ---- a look ---- */

static void
fed(struct gather *gather)
{
	struct event_poll *poll = (struct event_poll *) gather;
	const PollEventsRequest *request = (const PollEventsRequest *) poll->pending.request;
	struct event_list list;

	poll->looked = true;
	if (poll->pending.call == NULL)
	{
		poll->looking = false;
		free_poll(poll);
		return;
	}

	/* a shard that is down keeps its entries for later; the others' are served */
	if (gather_answers(gather) == 0)
	{
		end_refused(poll, gather_refusal(gather));
		return;
	}
	event_list_merge(&list, gather, &poll->acked, request->max > 0 ? request->max : 1, poll->pending.values);
	if (list.n == 0)
		wait_for_more(poll);
	else
	{
		pending_reply(&poll->pending, &list.message.base);
		free_poll(poll);
	}
	event_list_free(&list);
}

static void
ask_feeds(struct event_poll *poll)
{
	const PollEventsRequest *request = (const PollEventsRequest *) poll->pending.request;
	size_t		share = LOOK_BYTES / (size_t) shard_slots();
	char		after[24];
	char		max[12];
	char		bytes[24];
	char		number[12];

	snprintf(max, sizeof(max), "%" PRId32, request->max > 0 ? request->max : 1);
	snprintf(bytes, sizeof(bytes), "%zu", share > LOOK_MIN_BYTES ? share : LOOK_MIN_BYTES);
	gather_begin(&poll->gather, fed);
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		struct question *question = gather_question(&poll->gather, slot);
		const struct shard *shard = shard_by_slot(slot);
		bool		away = shard->index != shard_topology()->home;

		snprintf(after, sizeof(after), "%" PRId64, cursor_get(&poll->acked, shard->entry->id));
		snprintf(number, sizeof(number), "%" PRId32, shard->entry->id);
		question->statement = away ? SQL_FEED_AWAY : SQL_FEED;
		question->nparams = away ? 5 : 3;
		question->params[0] = after;
		question->params[1] = max;
		question->params[2] = bytes;
		question->params[3] = request->consumer;
		question->params[4] = number;
		gather_ask(&poll->gather, slot);
	}
	gather_hurry(&poll->gather, EVENT_PATIENCE_MS);
	gather_end(&poll->gather);
}

static bool
ask_home(struct event_poll *poll, enum statement statement, int nparams,
		 void (*done) (struct question *, const PGresult *, const struct refusal *))
{
	const PollEventsRequest *request = (const PollEventsRequest *) poll->pending.request;
	struct shard *home = shard_at(shard_topology()->home);
	struct refusal refusal;
	enum submit submitted;

	poll->question = (struct question) {
		.statement = statement,
		.nparams = nparams,
		.params = {request->consumer, (const char *) poll->shards.data, (const char *) poll->seqs.data},
		.writes = statement == SQL_CURSOR_REGISTER,
		.done = done,
	};
	submitted = shard_ask(home, &poll->question);
	if (submitted == SUBMIT_OK)
		return true;
	shard_refuse(home, submitted, &refusal);
	end_refused(poll, &refusal);
	return false;
}

/* ---- a consumer that is new, or new to a shard ---- */

static void
consumer_registered(struct question *question, const PGresult *result, const struct refusal *refusal)
{
	struct event_poll *poll = of_question(question);

	if (result == NULL)
		end_refused(poll, refusal);
	else
		look(poll);				/* another call may have registered it first */
}

static void
register_at(struct event_poll *poll, const struct event_cursor *places)
{
	poll->registered = true;
	cursor_arrays(places, &poll->shards, &poll->seqs);
	ask_home(poll, SQL_CURSOR_REGISTER, 3, consumer_registered);
}

/* From now on: each log's last number that is final. */
static void
heads_known(struct gather *gather)
{
	struct event_poll *poll = (struct event_poll *) gather;
	struct event_cursor places = {.n = 0};

	if (gather_refusal(gather) != NULL)
	{
		end_refused(poll, gather_refusal(gather));
		return;
	}
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		if (gather->parts[slot].result != NULL)
			cursor_set(&places, shard_by_slot(slot)->entry->id, event_head(gather->parts[slot].result));
	}
	register_at(poll, &places);
}

/*
 * Where the consumer is not registered: all shards when it is new. A shard that
 * joined later is read from its beginning, which is after the consumer's.
 */
static void
register_consumer(struct event_poll *poll)
{
	const PollEventsRequest *request = (const PollEventsRequest *) poll->pending.request;
	struct event_cursor places = {.n = 0};
	bool		fresh = poll->acked.n == 0;

	if (fresh && request->start_from > 0 && shard_slots() > 1)
	{
		pending_fail(&poll->pending, GRPC_INVALID_ARGUMENT,
					 "start_from %" PRId64 " is a place in one log, and there are %d shards; start with 0 (from"
					 " now on) or -1 (from the earliest)", request->start_from, shard_slots());
		free_poll(poll);
		return;
	}
	if (fresh && request->start_from == 0)
	{
		gather_all(&poll->gather, SQL_HORIZON, NULL, 0, false, NULL, heads_known);
		return;
	}
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		int32_t		shard = shard_by_slot(slot)->entry->id;

		if (shard_counts(shard_by_slot(slot)) && cursor_get(&poll->acked, shard) < 0)
			cursor_set(&places, shard, fresh && request->start_from > 0 ? request->start_from : 0);
	}
	register_at(poll, &places);
}

static void
cursor_known(struct question *question, const PGresult *result, const struct refusal *refusal)
{
	struct event_poll *poll = of_question(question);
	bool		complete = true;

	if (result == NULL)
	{
		end_refused(poll, refusal);
		return;
	}
	poll->acked.n = 0;
	for (int row = 0; row < PQntuples(result); row++)
		cursor_set(&poll->acked, (int32_t) strtol(PQgetvalue(result, row, 0), NULL, 10),
				   strtoll(PQgetvalue(result, row, 1), NULL, 10));
	for (int slot = 0; slot < shard_slots(); slot++)
		complete = complete && (!shard_counts(shard_by_slot(slot)) ||
								cursor_get(&poll->acked, shard_by_slot(slot)->entry->id) >= 0);
	if (complete)
		ask_feeds(poll);
	else if (!poll->registered)
		register_consumer(poll);
	else
	{
		pending_fail(&poll->pending, GRPC_INTERNAL, "the consumer could not be registered on every shard");
		free_poll(poll);
	}
}

static void
look(struct event_poll *poll)
{
	if (poll->pending.call == NULL)
	{
		free_poll(poll);
		return;
	}
	deadline_clear(&poll->next_look);
	poll->looking = true;
	poll->news = feed_watch_news();
	metric_add(looks, 1);
	ask_home(poll, SQL_CURSOR_READ, 1, cursor_known);
}

/* ---- the call ---- */

bool
rpc_event_consumer(const char *consumer, struct wig_error *err)
{
	if (consumer[strspn(consumer, " \t\r\n\f\v")] == '\0')
		return wig_fail(err, "a consumer name is required: the feed's cursor is named, so two consumers with"
						" no name would share one place in the log");
	return rpc_width("consumer", consumer, WIDTH_CONSUMER, err);
}

static void
shed(struct call *call, ProtobufCMessage *message)
{
	Com__Wiggle__Proto__EventList reply = COM__WIGGLE__PROTO__EVENT_LIST__INIT;

	protobuf_c_message_free_unpacked(message, NULL);
	reply.retry_after_millis = drain_started() ? 0 : pressure_pause(config.poll_retry_ms);
	message_reply(call, &reply.base);
}

void
rpc_poll_events(struct call *call)
{
	ProtobufCMessage *message =
		message_request(call, &com__wiggle__proto__poll_events_request__descriptor);
	PollEventsRequest *request = (PollEventsRequest *) message;
	struct wig_error err = {.message = ""};
	struct event_poll *poll;
	int64_t		wait;

	if (request == NULL)
		return;
	if (!rpc_event_consumer(request->consumer, &err))
	{
		protobuf_c_message_free_unpacked(message, NULL);
		call_fail(call, GRPC_INVALID_ARGUMENT, "%s", err.message);
		return;
	}
	if (drain_started() || total >= config.max_event_polls || pressure_sheds())
	{
		shed(call, message);
		return;
	}
	if (request->max > MAX_EVENTS)
		request->max = MAX_EVENTS;
	wait = request->wait_millis < 0 ? 0
		: request->wait_millis < config.longpoll_max_ms ? request->wait_millis : config.longpoll_max_ms;
	poll = xcalloc(1, sizeof(*poll));
	poll->wait_until = loop_now() + (uint64_t) wait;
	metric_set(gauge, ++total);
	pending_open(&poll->pending, call, message);
	call_on_cancel(call, cancelled, poll);
	deadline_set(&poll->wait_end, poll->wait_until, wait_over);
	look(poll);
}

/* ---- drain ---- */

static void
begin_drain(void)
{
	struct feed_watch *watch;

	while ((watch = feed_watch_first()) != NULL)
	{
		struct event_poll *poll =
			(struct event_poll *) ((char *) watch - offsetof(struct event_poll, watch));

		reply_empty(poll);
		free_poll(poll);
	}
}

static bool
idle(void)
{
	return total == 0;
}

void
rpc_event_start(void)
{
	static const struct drain_hook hook = {.name = "events", .begin = begin_drain, .idle = idle,
	.stop = feed_watch_stop};

	gauge = metric_gauge("wiggle_proxy_event_polls", NULL, "Polls for events that are being answered.");
	looks = metric_counter("wiggle_proxy_event_looks_total", NULL, "Looks at the event logs for a consumer.");
	drain_register(&hook);
}
