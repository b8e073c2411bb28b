/*
 * rpc_task.c
 *	  PollTasks, CompleteTask, FailTask, HeartbeatTask.
 */
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "definition.h"
#include "message.h"
#include "poller.h"
#include "router.h"
#include "rpc.h"
#include "rpc_task.h"
#include "wiggle.pb-c.h"

/* More than any worker serves; a claim looks at each of them. */
#define MAX_QUEUES		1000
#define MAX_VERSIONS	1000

typedef Com__Wiggle__Proto__PollRequest PollRequest;
typedef Com__Wiggle__Proto__TaskResultRequest TaskResultRequest;
typedef Com__Wiggle__Proto__FailTaskRequest FailTaskRequest;
typedef Com__Wiggle__Proto__HeartbeatRequest HeartbeatRequest;

/* ---- PollTasks ---- */

static bool
check_poll(const PollRequest *request, struct wig_error *err)
{
	if (strlen(request->worker_id) > WIDTH_WORKER)
		return wig_fail(err, "worker_id has %zu bytes; up to %d are allowed", strlen(request->worker_id),
						WIDTH_WORKER);
	if (request->n_queues > MAX_QUEUES)
		return wig_fail(err, "a poll names %zu queues; up to %d are allowed", request->n_queues,
						MAX_QUEUES);
	if (request->n_versions > MAX_VERSIONS)
		return wig_fail(err, "a poll names %zu versions; up to %d are allowed", request->n_versions,
						MAX_VERSIONS);
	if (request->lease_millis > WIG_MAX_DELAY_MS)
		return wig_fail(err, "lease_millis is %lld; up to %lld (a hundred years) are allowed",
						(long long) request->lease_millis, (long long) WIG_MAX_DELAY_MS);
	for (size_t i = 0; i < request->n_queues; i++)
	{
		if (!rpc_width("a queue's name", request->queues[i], WIDTH_QUEUE, err))
			return false;
	}
	for (size_t i = 0; i < request->n_versions; i++)
	{
		if (!rpc_width("a workflow's name", request->versions[i]->workflow, WIDTH_WORKFLOW, err))
			return false;
	}
	return true;
}

void
rpc_poll_tasks(struct call *call)
{
	ProtobufCMessage *message =
		message_request(call, &com__wiggle__proto__poll_request__descriptor);
	const PollRequest *request = (const PollRequest *) message;
	struct wig_error err = {.message = ""};
	struct item_version *versions;
	struct poll_request poll;

	if (request == NULL)
		return;
	if (!check_poll(request, &err))
	{
		protobuf_c_message_free_unpacked(message, NULL);
		call_fail(call, GRPC_INVALID_ARGUMENT, "%s", err.message);
		return;
	}
	versions = xcalloc(request->n_versions + 1, sizeof(*versions));
	for (size_t i = 0; i < request->n_versions; i++)
	{
		versions[i].workflow = request->versions[i]->workflow;
		versions[i].version = request->versions[i]->version;
	}
	poll = (struct poll_request) {
		.worker_id = request->worker_id,
		.max = request->max > 0 ? request->max : 1,
		.lease_ms = request->lease_millis > 0 ? request->lease_millis : config.lease_ms,
		.wait_ms = request->wait_millis < 0 ? 0
		: request->wait_millis < config.longpoll_max_ms ? request->wait_millis : config.longpoll_max_ms,
		.queues = (const char *const *) request->queues,
		.nqueues = (int) request->n_queues,
		.versions = versions,
		.nversions = (int) request->n_versions,
	};
	call_drop_request(call);
	poller_add(call, &poll);
	free(versions);
	protobuf_c_message_free_unpacked(message, NULL);
}

/* ---- what settles or prolongs one task ---- */

struct settle
{
	struct item item;			/* first: the lane hands it back */
	struct pending pending;
	struct item_step step;		/* of CompleteTask */
};

static void
free_settle(struct settle *settle)
{
	pending_close(&settle->pending);
	free(settle);
}

static void
settled(struct item *item, const struct outcome *outcome)
{
	struct settle *settle = (struct settle *) item;
	Com__Wiggle__Proto__Ack ack = COM__WIGGLE__PROTO__ACK__INIT;

	ack.ok = true;
	if (outcome->status == GRPC_OK)
		pending_reply(&settle->pending, &ack.base);
	else
		pending_outcome(&settle->pending, outcome);
	free_settle(settle);
}

static void
prolonged(struct item *item, const struct outcome *outcome)
{
	struct settle *settle = (struct settle *) item;
	Com__Wiggle__Proto__HeartbeatResponse reply = COM__WIGGLE__PROTO__HEARTBEAT_RESPONSE__INIT;

	reply.lease_expires_at = outcome->expires_at;
	if (outcome->status == GRPC_OK)
		pending_reply(&settle->pending, &reply.base);
	else
		pending_outcome(&settle->pending, outcome);
	free_settle(settle);
}

/* Send the item to its task's shard, or answer why not. */
static void
submit(struct settle *settle, const char *task_id)
{
	struct refusal refusal;
	struct shard *shard = rpc_route(task_id, "task", &refusal);
	enum submit submitted;

	if (shard != NULL)
	{
		submitted = shard_submit(shard, &settle->item, router_hash(task_id, strlen(task_id)));
		if (submitted == SUBMIT_OK)
			return;
		shard_refuse(shard, submitted, &refusal);
	}
	pending_refuse(&settle->pending, &refusal);
	free_settle(settle);
}

/* The state for a call whose request has been decoded; NULL when it was refused. */
static struct settle *
open_settle(struct call *call, const ProtobufCMessageDescriptor *type)
{
	ProtobufCMessage *message = message_request(call, type);
	struct settle *settle;

	if (message == NULL)
		return NULL;
	settle = xcalloc(1, sizeof(*settle));
	pending_open(&settle->pending, call, message);
	settle->item.done = settled;
	return settle;
}

void
rpc_complete_task(struct call *call)
{
	struct settle *settle =
		open_settle(call, &com__wiggle__proto__task_result_request__descriptor);
	const TaskResultRequest *request;
	struct wig_error err = {.message = ""};
	size_t		start;

	if (settle == NULL)
		return;
	request = (const TaskResultRequest *) settle->pending.request;
	if (!rpc_json(&request->result, "result", &settle->pending.json, &start, &err))
	{
		pending_fail(&settle->pending, GRPC_INVALID_ARGUMENT, "%s", err.message);
		free_settle(settle);
		return;
	}
	if (!rpc_json_null(&settle->pending.json, start))
	{
		settle->step.outcome = STEP_MERGE;
		settle->step.value = (const char *) settle->pending.json.data;
		settle->step.value_len = settle->pending.json.len;
	}
	settle->item.kind = ITEM_RUN;
	settle->item.mode = ITEM_FINAL | ITEM_COMPLETE;
	settle->item.run = (struct item_run) {
		.task_id = request->task_id,
		.owner = request->lease_owner,
		.steps = &settle->step,
		.nsteps = 1,
	};
	submit(settle, request->task_id);
}

void
rpc_fail_task(struct call *call)
{
	struct settle *settle = open_settle(call, &com__wiggle__proto__fail_task_request__descriptor);
	const FailTaskRequest *request;

	if (settle == NULL)
		return;
	request = (const FailTaskRequest *) settle->pending.request;
	settle->item.kind = ITEM_FAIL;
	settle->item.fail = (struct item_fail) {
		.task_id = request->task_id,
		.owner = request->lease_owner,
		.message = request->message,
		.retryable = request->retryable,
	};
	submit(settle, request->task_id);
}

void
rpc_heartbeat_task(struct call *call)
{
	struct settle *settle = open_settle(call, &com__wiggle__proto__heartbeat_request__descriptor);
	const HeartbeatRequest *request;

	if (settle == NULL)
		return;
	request = (const HeartbeatRequest *) settle->pending.request;
	if (request->extend_millis > WIG_MAX_DELAY_MS)
	{
		pending_fail(&settle->pending, GRPC_INVALID_ARGUMENT,
					 "extend_millis is %lld; up to %lld (a hundred years) are allowed",
					 (long long) request->extend_millis, (long long) WIG_MAX_DELAY_MS);
		free_settle(settle);
		return;
	}
	settle->item.kind = ITEM_BEAT;
	settle->item.done = prolonged;
	settle->item.beat = (struct item_beat) {
		.task_id = request->task_id,
		.owner = request->lease_owner,
		.extend_ms = request->extend_millis > 0 ? request->extend_millis : 0,
	};
	submit(settle, request->task_id);
}
