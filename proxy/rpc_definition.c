/*
 * rpc_definition.c
 *	  ListWorkflows, RegisterWorkflow, GetWorkflow.
 *
 * Every shard holds every definition. What is read is read from home, or from
 * another shard while home cannot be reached.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gather.h"
#include "message.h"
#include "rpc.h"
#include "rpc_definition.h"
#include "value.h"
#include "wiggle.pb-c.h"

typedef Com__Wiggle__Proto__WorkflowDefinition WorkflowDefinition;
typedef Com__Wiggle__Proto__GetWorkflowRequest GetWorkflowRequest;

/* ---- a question that any shard can answer ---- */

struct lookup
{
	struct question question;	/* first: the side pool hands it back */
	struct pending pending;
	int			next;			/* shards tried so far: home, then the others by slot */
	char		version[16];
	void		(*answer) (struct lookup *lookup, const PGresult *result);
};

static void
free_lookup(struct lookup *lookup)
{
	pending_close(&lookup->pending);
	free(lookup);
}

/* The n-th shard to ask: home first. */
static struct shard *
candidate(int n)
{
	struct shard *home = shard_at(shard_topology()->home);

	if (n == 0)
		return home;
	return shard_by_slot(n - 1 < home->slot ? n - 1 : n);
}

/* Ask the next shard that can be asked; the last refusal is the answer when none can. */
static void
ask_next(struct lookup *lookup, struct refusal refusal)
{
	while (lookup->next < shard_slots())
	{
		struct shard *shard = candidate(lookup->next++);
		enum submit submitted = shard_ask(shard, &lookup->question);

		if (submitted == SUBMIT_OK)
			return;
		shard_refuse(shard, submitted, &refusal);
	}
	pending_refuse(&lookup->pending, &refusal);
	free_lookup(lookup);
}

static void
looked_up(struct question *question, const PGresult *result, const struct refusal *refusal)
{
	struct lookup *lookup = (struct lookup *) question;

	if (result == NULL && refusal->status == GRPC_UNAVAILABLE && lookup->pending.call != NULL)
	{
		ask_next(lookup, *refusal);
		return;
	}
	if (result == NULL)
		pending_refuse(&lookup->pending, refusal);
	else
		lookup->answer(lookup, result);
	free_lookup(lookup);
}

static struct lookup *
open_lookup(struct call *call, const ProtobufCMessageDescriptor *type,
			void (*answer) (struct lookup *lookup, const PGresult *result))
{
	ProtobufCMessage *message = message_request(call, type);
	struct lookup *lookup;

	if (message == NULL)
		return NULL;
	lookup = xcalloc(1, sizeof(*lookup));
	pending_open(&lookup->pending, call, message);
	lookup->question.done = looked_up;
	lookup->answer = answer;
	return lookup;
}

/* ---- ListWorkflows ---- */

static void
answer_names(struct lookup *lookup, const PGresult *result)
{
	Com__Wiggle__Proto__WorkflowNames reply = COM__WIGGLE__PROTO__WORKFLOW_NAMES__INIT;
	int			n = PQntuples(result);
	char	  **names = xcalloc((size_t) n + 1, sizeof(*names));

	for (int i = 0; i < n; i++)
		names[i] = PQgetvalue(result, i, 0);
	reply.workflows = names;
	reply.n_workflows = (size_t) n;
	pending_reply(&lookup->pending, &reply.base);
	free(names);
}

void
rpc_list_workflows(struct call *call)
{
	struct lookup *lookup = open_lookup(call, &com__wiggle__proto__empty__descriptor, answer_names);

	if (lookup == NULL)
		return;
	lookup->question.statement = SQL_WORKFLOWS;
	ask_next(lookup, (struct refusal) {.status = GRPC_UNAVAILABLE});
}

/* ---- GetWorkflow ---- */

static void
answer_definition(struct lookup *lookup, const PGresult *result)
{
	WorkflowDefinition reply = COM__WIGGLE__PROTO__WORKFLOW_DEFINITION__INIT;
	struct buf	definition = BUF_INIT;
	struct wig_error err = {.message = ""};

	if (PQntuples(result) != 1 || PQgetisnull(result, 0, 0))
		pending_fail(&lookup->pending, GRPC_NOT_FOUND, "workflow not found");
	else if (!(lookup->pending.values == VALUE_TEXT ? json_to_text : json_to_struct)
			 (PQgetvalue(result, 0, 0), (size_t) PQgetlength(result, 0, 0), &definition, &err))
		pending_fail(&lookup->pending, GRPC_INTERNAL, "the stored definition cannot be sent: %s",
					 err.message);
	else
	{
		reply.definition.data = definition.data;
		reply.definition.len = definition.len;
		pending_reply(&lookup->pending, &reply.base);
	}
	buf_free(&definition);
}

void
rpc_get_workflow(struct call *call)
{
	struct lookup *lookup = open_lookup(call, &com__wiggle__proto__get_workflow_request__descriptor,
										answer_definition);
	const GetWorkflowRequest *request;

	if (lookup == NULL)
		return;
	request = (const GetWorkflowRequest *) lookup->pending.request;
	lookup->question.statement = SQL_DEFINITION;
	lookup->question.nparams = 2;
	lookup->question.params[0] = request->name;
	if (request->has_version_case != COM__WIGGLE__PROTO__GET_WORKFLOW_REQUEST__HAS_VERSION__NOT_SET)
	{
		snprintf(lookup->version, sizeof(lookup->version), "%d", request->version);
		lookup->question.params[1] = lookup->version;
	}
	ask_next(lookup, (struct refusal) {.status = GRPC_UNAVAILABLE});
}

/* ---- RegisterWorkflow ---- */

/*
 * Three rounds: every shard says whether it would take the definition, so that a
 * refusal by one leaves nothing on the others; then home writes it, which decides
 * between registrations that meet; then all the others at once. What stops in between
 * is completed by a repeat, since what is there already is a success that changes
 * nothing, and by the proxies that bring shards up to what home has.
 */
struct registration
{
	struct gather gather;		/* first: it is handed back */
	struct pending pending;
	char		name[WIDTH_WORKFLOW * 4 + 1];
	char		version[16];
	int64_t		nodes;
};

static void
end_registration(struct registration *registration)
{
	gather_free(&registration->gather);
	pending_close(&registration->pending);
	free(registration);
}

static int
home_slot(void)
{
	return shard_at(shard_topology()->home)->slot;
}

/*
 * Home speaks for all, so its own refusal stands as it is; any other one is of use
 * only with the shard's name.
 */
static void
refuse_registration(struct registration *registration, int slot, const struct refusal *why)
{
	struct refusal refusal = *why;
	size_t		len = strlen(refusal.message);

	if (shard_slots() > 1 && (refusal.storage || slot != home_slot()))
		snprintf(refusal.message + len, sizeof(refusal.message) - len, " (shard %d)",
				 shard_by_slot(slot)->entry->id);
	pending_refuse(&registration->pending, &refusal);
}

/* Refuse the call when a shard did, home's word first. */
static bool
round_refused(struct registration *registration)
{
	const struct gather_part *parts = registration->gather.parts;
	int			slot = home_slot();

	for (int i = 0; i < shard_slots() && !(parts[slot].asked && parts[slot].result == NULL); i++)
		slot = i;
	if (!parts[slot].asked || parts[slot].result != NULL)
		return false;
	refuse_registration(registration, slot, parts[slot].refusal);
	return true;
}

static void
ask_registration(struct registration *registration, int slot, enum statement statement)
{
	const WorkflowDefinition *request = (const WorkflowDefinition *) registration->pending.request;
	struct question *question = gather_question(&registration->gather, slot);

	question->statement = statement;
	question->nparams = 2;
	question->params[0] = (const char *) registration->pending.json.data;
	question->params[1] = request->force ? "t" : "f";
	question->writes = statement == SQL_REGISTER;
	gather_ask(&registration->gather, slot);
}

static void
written_on_the_others(struct gather *gather)
{
	struct registration *registration = (struct registration *) gather;
	Com__Wiggle__Proto__RegisterWorkflowResponse reply =
		COM__WIGGLE__PROTO__REGISTER_WORKFLOW_RESPONSE__INIT;

	if (!round_refused(registration))
	{
		reply.name = registration->name;
		reply.version = registration->version;
		reply.nodes = registration->nodes;
		pending_reply(&registration->pending, &reply.base);
	}
	end_registration(registration);
}

static void
written_on_home(struct gather *gather)
{
	struct registration *registration = (struct registration *) gather;
	const PGresult *result = gather->parts[home_slot()].result;

	if (round_refused(registration))
	{
		end_registration(registration);
		return;
	}
	snprintf(registration->name, sizeof(registration->name), "%s", PQgetvalue(result, 0, 0));
	snprintf(registration->version, sizeof(registration->version), "%s", PQgetvalue(result, 0, 1));
	registration->nodes = strtoll(PQgetvalue(result, 0, 2), NULL, 10);
	gather_begin(gather, written_on_the_others);
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		if (slot != home_slot() && !shard_retired(shard_by_slot(slot)))
			ask_registration(registration, slot, SQL_REGISTER);
	}
	gather_end(gather);
}

static void
checked(struct gather *gather)
{
	struct registration *registration = (struct registration *) gather;

	if (round_refused(registration))
	{
		end_registration(registration);
		return;
	}
	gather_begin(gather, written_on_home);
	ask_registration(registration, home_slot(), SQL_REGISTER);
	gather_end(gather);
}

void
rpc_register_workflow(struct call *call)
{
	ProtobufCMessage *message =
		message_request(call, &com__wiggle__proto__workflow_definition__descriptor);
	const WorkflowDefinition *request = (const WorkflowDefinition *) message;
	struct registration *registration;
	struct wig_error err = {.message = ""};

	if (request == NULL)
		return;
	registration = xcalloc(1, sizeof(*registration));
	pending_open(&registration->pending, call, message);
	if (!struct_to_json(request->definition.data, request->definition.len, &registration->pending.json,
						&err))
	{
		pending_fail(&registration->pending, GRPC_INVALID_ARGUMENT, "definition: %s", err.message);
		end_registration(registration);
		return;
	}
	buf_cstr(&registration->pending.json);
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		struct refusal refusal;

		if (shard_usable(shard_by_slot(slot)) || shard_retired(shard_by_slot(slot)))
			continue;
		refusal_unavailable(&refusal, shard_by_slot(slot)->entry->id, "",
							"a definition is registered on every shard, and this one is down");
		refuse_registration(registration, slot, &refusal);
		end_registration(registration);
		return;
	}
	gather_begin(&registration->gather, checked);
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		if (!shard_retired(shard_by_slot(slot)))
			ask_registration(registration, slot, SQL_REGISTER_CHECK);
	}
	gather_end(&registration->gather);
}
