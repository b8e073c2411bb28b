/*
 * rpc_event_ack.c
 *	  AckEvents, ForgetConsumer: a consumer's place moves forward, never beyond a
 *	  log's end, or goes.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "event_cursor.h"
#include "event_list.h"
#include "gather.h"
#include "message.h"
#include "rpc.h"
#include "rpc_event.h"
#include "wiggle.pb-c.h"

typedef Com__Wiggle__Proto__AckEventsRequest AckEventsRequest;

struct event_ack
{
	struct gather gather;		/* first: it is handed back */
	struct question question;
	struct pending pending;
	struct event_cursor asked;
	struct buf	shards;
	struct buf	seqs;
};

static void
end_ack(struct event_ack *ack)
{
	gather_free(&ack->gather);
	buf_free(&ack->shards);
	buf_free(&ack->seqs);
	pending_close(&ack->pending);
	free(ack);
}

static void
acked(struct question *question, const PGresult *result, const struct refusal *refusal)
{
	struct event_ack *ack =
		(struct event_ack *) ((char *) question - offsetof(struct event_ack, question));
	Com__Wiggle__Proto__Ack reply = COM__WIGGLE__PROTO__ACK__INIT;

	reply.ok = true;
	if (result == NULL)
		pending_refuse(&ack->pending, refusal);
	else
		pending_reply(&ack->pending, &reply.base);
	end_ack(ack);
}

/*
 * A shard that is down or hangs keeps its place until a later acknowledgement, so that its
 * entries come again: rather that than to believe a number that cannot be checked.
 */
static void
heads_known(struct gather *gather)
{
	struct event_ack *ack = (struct event_ack *) gather;
	struct shard *home = shard_at(shard_topology()->home);
	struct event_cursor places = {.n = 0};
	struct refusal refusal;
	enum submit submitted;

	for (int slot = 0; slot < shard_slots(); slot++)
	{
		int32_t		shard = shard_by_slot(slot)->entry->id;
		int64_t		wanted = cursor_get(&ack->asked, shard);
		int64_t		head;

		if (gather->parts[slot].result == NULL)
			continue;
		head = event_head(gather->parts[slot].result);
		cursor_set(&places, shard, wanted < head ? wanted : head);
	}
	cursor_arrays(&places, &ack->shards, &ack->seqs);
	ack->question = (struct question) {
		.statement = SQL_CURSOR_ACK,
		.nparams = 3,
		.params = {((const AckEventsRequest *) ack->pending.request)->consumer,
		(const char *) ack->shards.data, (const char *) ack->seqs.data},
		.writes = true,
		.done = acked,
	};
	submitted = shard_ask(home, &ack->question);
	if (submitted == SUBMIT_OK)
		return;
	shard_refuse(home, submitted, &refusal);
	acked(&ack->question, NULL, &refusal);
}

static bool
read_place(const AckEventsRequest *request, struct event_cursor *cursor, struct wig_error *err)
{
	if (!rpc_event_consumer(request->consumer, err))
		return false;
	if (*request->acked_cursor != '\0')
		return cursor_parse(request->acked_cursor, cursor, err);
	if (shard_slots() > 1)
		return wig_fail(err, "acked_seq %" PRId64 " is a place in one log, and there are %d shards; ack with the"
						" cursor of the last event you handled (acked_cursor)", request->acked_seq,
						shard_slots());
	cursor_set(cursor, shard_by_slot(0)->entry->id, request->acked_seq > 0 ? request->acked_seq : 0);
	return true;
}

void
rpc_ack_events(struct call *call)
{
	ProtobufCMessage *message =
		message_request(call, &com__wiggle__proto__ack_events_request__descriptor);
	struct wig_error err = {.message = ""};
	struct event_ack *ack;

	if (message == NULL)
		return;
	ack = xcalloc(1, sizeof(*ack));
	pending_open(&ack->pending, call, message);
	if (!read_place((const AckEventsRequest *) message, &ack->asked, &err))
	{
		pending_fail(&ack->pending, GRPC_INVALID_ARGUMENT, "%s", err.message);
		end_ack(ack);
		return;
	}
	gather_begin(&ack->gather, heads_known);
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		if (cursor_get(&ack->asked, shard_by_slot(slot)->entry->id) < 0)
			continue;
		gather_question(&ack->gather, slot)->statement = SQL_HORIZON;
		gather_ask(&ack->gather, slot);
	}
	gather_hurry(&ack->gather, EVENT_PATIENCE_MS);
	gather_end(&ack->gather);
}

/* ---- ForgetConsumer ---- */

struct forgetting
{
	struct gather gather;		/* first: it is handed back */
	struct pending pending;
};

static void
end_forgetting(struct forgetting *forgetting)
{
	gather_free(&forgetting->gather);
	pending_close(&forgetting->pending);
	free(forgetting);
}

static void
forgotten(struct gather *gather)
{
	struct forgetting *forgetting = (struct forgetting *) gather;
	Com__Wiggle__Proto__ForgetConsumerResponse reply =
		COM__WIGGLE__PROTO__FORGET_CONSUMER_RESPONSE__INIT;

	if (gather_refusal(gather) != NULL)
		pending_refuse(&forgetting->pending, gather_refusal(gather));
	else
	{
		for (int slot = 0; slot < shard_slots(); slot++)
			reply.existed |= gather->parts[slot].result != NULL &&
				strcmp(PQgetvalue(gather->parts[slot].result, 0, 0), "t") == 0;
		pending_reply(&forgetting->pending, &reply.base);
	}
	end_forgetting(forgetting);
}

/* On every shard: each keeps its log for the consumers that it was told of. */
void
rpc_forget_consumer(struct call *call)
{
	ProtobufCMessage *message =
		message_request(call, &com__wiggle__proto__forget_consumer_request__descriptor);
	const char *consumer;
	struct wig_error err = {.message = ""};
	struct forgetting *forgetting;

	if (message == NULL)
		return;
	consumer = ((Com__Wiggle__Proto__ForgetConsumerRequest *) message)->consumer;
	forgetting = xcalloc(1, sizeof(*forgetting));
	pending_open(&forgetting->pending, call, message);
	if (!rpc_event_consumer(consumer, &err))
	{
		pending_fail(&forgetting->pending, GRPC_INVALID_ARGUMENT, "%s", err.message);
		end_forgetting(forgetting);
		return;
	}
	gather_begin(&forgetting->gather, forgotten);
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		struct question *question = gather_question(&forgetting->gather, slot);

		question->statement = SQL_FORGET_CONSUMER;
		question->nparams = 1;
		question->params[0] = consumer;
		question->writes = true;
		gather_ask(&forgetting->gather, slot);
	}
	gather_end(&forgetting->gather);
}
