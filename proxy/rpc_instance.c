/*
 * rpc_instance.c
 *	  StartInstance, GetInstance, CancelInstance, SignalInstance.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "home_clock.h"
#include "ids.h"
#include "inquiry.h"
#include "log.h"
#include "message.h"
#include "pressure.h"
#include "random.h"
#include "router.h"
#include "rpc.h"
#include "rpc_instance.h"
#include "view.h"
#include "wiggle.pb-c.h"

typedef Com__Wiggle__Proto__StartInstanceRequest StartInstanceRequest;
typedef Com__Wiggle__Proto__GetInstanceRequest GetInstanceRequest;
typedef Com__Wiggle__Proto__CancelInstanceRequest CancelInstanceRequest;
typedef Com__Wiggle__Proto__SignalInstanceRequest SignalInstanceRequest;

/* ---- StartInstance ---- */

struct start
{
	struct item item;			/* first: the lane hands it back */
	struct pending pending;
	struct shard *shard;		/* where it was sent */
	char		id[WIG_ID_MAX + 1];
};

static void
free_start(struct start *start)
{
	pending_close(&start->pending);
	free(start);
}

/* Mint an id where new instances go now and start it there; every refusal ends it. */
static void
place(struct start *start)
{
	struct shard *shard = shard_for_instance();
	struct refusal refusal;
	enum submit submitted;
	char		part[WIG_PART_LEN];

	start->shard = shard;
	if (shard == NULL || shard->closed)
	{
		pending_fail(&start->pending, GRPC_UNAVAILABLE,
					 "the generation in force places new instances on a shard that is retired");
		free_start(start);
		return;
	}
	if (shard_claims(shard) && shard->definitions == DEFINITIONS_BEHIND)
	{
		refusal_unavailable(&refusal, shard->entry->id, "", "the shard lacks definitions that home has");
		pending_refuse(&start->pending, &refusal);
		free_start(start);
		return;
	}
	wig_part_encode(part, (uint64_t) home_clock_ms(), random_u64());
	wig_id_format(start->id, "wfi", shard->entry->id, part, sizeof(part));
	submitted = shard_submit(shard, &start->item, router_hash(start->id, strlen(start->id)));
	if (submitted == SUBMIT_OK)
		return;
	if (submitted == SUBMIT_FULL)
		pressure_shed_start();
	shard_refuse(shard, submitted, &refusal);
	pending_refuse(&start->pending, &refusal);
	free_start(start);
}

static void
started(struct item *item, const struct outcome *outcome)
{
	struct start *start = (struct start *) item;
	const StartInstanceRequest *request = (const StartInstanceRequest *) start->pending.request;
	Com__Wiggle__Proto__StartInstanceResponse reply =
		COM__WIGGLE__PROTO__START_INSTANCE_RESPONSE__INIT;

	/* with a new id nothing conflicts but a database that was retired, of which this process is yet to be told */
	if (outcome->status == GRPC_FAILED_PRECONDITION && outcome->code == 409 && start->pending.call != NULL)
	{
		log_warn("start", "shard %d takes nothing new: %s; it needs another document here", start->shard->entry->id,
				 outcome->message);
		start->shard->closed = true;
		start->item = (struct item) {.kind = ITEM_START, .done = started, .start = start->item.start};
		place(start);
		return;
	}
	reply.instance_id = start->id;
	reply.workflow = request->workflow;
	if (outcome->status == GRPC_OK)
		pending_reply(&start->pending, &reply.base);
	else
		pending_outcome(&start->pending, outcome);
	free_start(start);
}

static bool
fill_start(struct start *start, struct wig_error *err)
{
	const StartInstanceRequest *request = (const StartInstanceRequest *) start->pending.request;
	struct buf *json = &start->pending.json;
	size_t		from;

	if (!rpc_width("workflow", request->workflow, WIDTH_WORKFLOW, err) ||
		!rpc_json(&request->context, "context", json, &from, err))
		return false;
	if (rpc_json_null(json, from))
	{
		json->len = from;
		buf_text(json, "{}");
	}
	start->item.kind = ITEM_START;
	start->item.done = started;
	start->item.start = (struct item_start) {
		.id = start->id,
		.workflow = request->workflow,
		.context = (const char *) json->data,
		.context_len = json->len,
	};
	if (request->has_version_case != COM__WIGGLE__PROTO__START_INSTANCE_REQUEST__HAS_VERSION__NOT_SET)
	{
		start->item.start.has_version = true;
		start->item.start.version = request->version;
	}
	if (request->has_correlation_id_case !=
		COM__WIGGLE__PROTO__START_INSTANCE_REQUEST__HAS_CORRELATION_ID__NOT_SET)
	{
		start->item.start.correlation_id = request->correlation_id;
		return rpc_width("correlation_id", request->correlation_id, WIDTH_CORRELATION, err);
	}
	return true;
}

void
rpc_start_instance(struct call *call)
{
	ProtobufCMessage *message =
		message_request(call, &com__wiggle__proto__start_instance_request__descriptor);
	struct wig_error err = {.message = ""};
	struct start *start;

	if (message == NULL)
		return;
	if (pressure_sheds())
	{
		protobuf_c_message_free_unpacked(message, NULL);
		pressure_shed_start();
		call_fail(call, GRPC_UNAVAILABLE, "the server is short of memory; try again later");
		return;
	}
	start = xcalloc(1, sizeof(*start));
	pending_open(&start->pending, call, message);
	if (!fill_start(start, &err))
	{
		pending_fail(&start->pending, GRPC_INVALID_ARGUMENT, "%s", err.message);
		free_start(start);
		return;
	}
	place(start);
}

/* ---- GetInstance ---- */

static bool
fits(const Com__Wiggle__Proto__InstanceDetail *reply)
{
	return protobuf_c_message_get_packed_size(&reply->base) <= REPLY_MAX_BYTES;
}

static bool
is_settled(const char *status)
{
	return strcmp(status, "DONE") == 0 || strcmp(status, "JOINED") == 0 ||
		strcmp(status, "FAILED") == 0 || strcmp(status, "CANCELLED") == 0;
}

/*
 * An instance with very many tokens must still be answered, since clients learn
 * from this call that it has ended: recorded inputs and outputs go first, then tokens
 * that are settled.
 */
static void
fit_tokens(Com__Wiggle__Proto__InstanceDetail *reply)
{
	size_t		kept = 0;

	if (fits(reply))
		return;
	for (size_t i = 0; i < reply->n_tokens; i++)
		reply->tokens[i]->input.len = reply->tokens[i]->output.len = 0;
	if (fits(reply))
		return;
	for (size_t i = 0; i < reply->n_tokens; i++)
	{
		if (!is_settled(reply->tokens[i]->status))
			reply->tokens[kept++] = reply->tokens[i];
	}
	reply->n_tokens = kept;
}

static void
answer_instance(struct inquiry *inquiry, const PGresult *result)
{
	Com__Wiggle__Proto__InstanceDetail reply = COM__WIGGLE__PROTO__INSTANCE_DETAIL__INIT;
	Com__Wiggle__Proto__InstanceView view = COM__WIGGLE__PROTO__INSTANCE_VIEW__INIT;
	Com__Wiggle__Proto__Token *tokens;
	Com__Wiggle__Proto__Token **pointers;
	struct wig_error err = {.message = ""};
	int			n = PQntuples(result);

	if (n == 0)
	{
		pending_fail(&inquiry->pending, GRPC_NOT_FOUND, "instance not found");
		return;
	}
	if (strcmp(PQgetvalue(result, 0, INSTANCE_OVER), "t") == 0)
	{
		pending_fail(&inquiry->pending, GRPC_RESOURCE_EXHAUSTED,
					 "the instance's context has more than %zu bytes; read it with SQL", REPLY_MAX_BYTES);
		return;
	}
	if (!view_instance(result, 0, inquiry->pending.values, &view, &err))
	{
		pending_fail(&inquiry->pending, GRPC_INTERNAL, "the instance's context cannot be sent: %s",
					 err.message);
		return;
	}
	tokens = xcalloc((size_t) n, sizeof(*tokens));
	pointers = xcalloc((size_t) n, sizeof(*pointers));
	for (int i = 0; i < n; i++)
	{
		if (PQgetisnull(result, i, TOKEN_ID))
			continue;
		com__wiggle__proto__token__init(&tokens[i]);
		view_token(result, i, inquiry->pending.values, &tokens[i]);
		pointers[reply.n_tokens++] = &tokens[i];
	}
	reply.instance = &view;
	reply.tokens = pointers;
	fit_tokens(&reply);
	pending_reply(&inquiry->pending, &reply.base);
	free(view.context.data);
	for (int i = 0; i < n; i++)
	{
		free(tokens[i].input.data);
		free(tokens[i].output.data);
	}
	free(tokens);
	free(pointers);
}

void
rpc_get_instance(struct call *call)
{
	struct inquiry *inquiry =
		inquiry_open(call, &com__wiggle__proto__get_instance_request__descriptor, answer_instance);
	const GetInstanceRequest *request;

	if (inquiry == NULL)
		return;
	request = (const GetInstanceRequest *) inquiry->pending.request;
	inquiry->question.statement = SQL_INSTANCE;
	inquiry->question.nparams = 2;
	inquiry->question.params[0] = request->instance_id;
	snprintf(inquiry->number, sizeof(inquiry->number), "%zu", REPLY_MAX_BYTES);
	inquiry->question.params[1] = inquiry->number;
	inquiry_ask_id(inquiry, request->instance_id);
}

/* ---- CancelInstance, SignalInstance ---- */

static void
answer_cancel(struct inquiry *inquiry, const PGresult *result)
{
	const CancelInstanceRequest *request =
		(const CancelInstanceRequest *) inquiry->pending.request;
	Com__Wiggle__Proto__CancelInstanceResponse reply =
		COM__WIGGLE__PROTO__CANCEL_INSTANCE_RESPONSE__INIT;

	(void) result;
	reply.cancelled = request->instance_id;
	pending_reply(&inquiry->pending, &reply.base);
}

void
rpc_cancel_instance(struct call *call)
{
	struct inquiry *inquiry =
		inquiry_open(call, &com__wiggle__proto__cancel_instance_request__descriptor, answer_cancel);
	const CancelInstanceRequest *request;
	struct wig_error err = {.message = ""};

	if (inquiry == NULL)
		return;
	request = (const CancelInstanceRequest *) inquiry->pending.request;
	if (!rpc_width("reason", request->reason, WIDTH_REASON, &err))
	{
		inquiry_refuse(inquiry, &err);
		return;
	}
	inquiry->question.statement = SQL_CANCEL;
	inquiry->question.nparams = 2;
	inquiry->question.params[0] = request->instance_id;
	inquiry->question.params[1] = *request->reason != '\0' ? request->reason : NULL;
	inquiry->question.writes = true;
	inquiry_ask_id(inquiry, request->instance_id);
}

void
rpc_signal_instance(struct call *call)
{
	struct inquiry *inquiry =
		inquiry_open(call, &com__wiggle__proto__signal_instance_request__descriptor, inquiry_ack);
	const SignalInstanceRequest *request;
	struct wig_error err = {.message = ""};

	if (inquiry == NULL)
		return;
	request = (const SignalInstanceRequest *) inquiry->pending.request;
	if (!rpc_width("signal", request->signal, WIDTH_SIGNAL, &err) ||
		!inquiry_json(inquiry, &request->payload, "payload", 2, &err))
	{
		inquiry_refuse(inquiry, &err);
		return;
	}
	inquiry->question.statement = SQL_SIGNAL;
	inquiry->question.nparams = 3;
	inquiry->question.params[0] = request->instance_id;
	inquiry->question.params[1] = request->signal;
	inquiry->question.writes = true;

	/* delivered twice it would reach a second wait of the same name */
	inquiry->question.once = true;
	inquiry_ask_id(inquiry, request->instance_id);
}
