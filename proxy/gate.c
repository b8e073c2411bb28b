/*
 * gate.c
 *	  From a complete request to its handler: may the caller do this?
 */
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "config.h"
#include "credential.h"
#include "gate.h"
#include "log.h"
#include "loop.h"
#include "message.h"
#include "permission.h"
#include "principal.h"
#include "rpc.h"
#include "utf8.h"

#define TOLD_ONCE 10000			/* distinct refusals that log mode remembers */

/* A call that waits: for its caller, then perhaps for what it is about. */
struct visit
{
	struct question question;	/* first: the side pool hands it back */
	struct principal_wait wait;
	struct call *call;			/* NULL: gone */
	const struct method *method;
	struct principal *principal;
	bool		asking;			/* the question is the pool's */
	char	   *subject;		/* the instance's or schedule's id */
};

/* ----------------------------------------------------------------- verdicts */

static void
tell_once(const char *text)
{
	static uint64_t told[TOLD_ONCE];
	static int	ntold;
	uint64_t	hash = UINT64_C(14695981039346656037);

	for (const char *p = text; *p != '\0'; p++)
		hash = (hash ^ (uint8_t) *p) * UINT64_C(1099511628211);
	for (int i = 0; i < ntold; i++)
		if (told[i] == hash)
			return;
	if (ntold == TOLD_ONCE)
		return;
	told[ntold++] = hash;
	log_warn("auth", "enforce would refuse %s", text);
}

/* Refuse, or, in log mode, say so and let the call pass. */
static void
refuse(struct call *call, const struct method *method, enum grpc_status status, const char *fmt,...)
			__attribute__((format(printf, 4, 5)));

static void
refuse(struct call *call, const struct method *method, enum grpc_status status, const char *fmt,...)
{
	char		text[1024];
	size_t		len;
	va_list		args;

	len = (size_t) snprintf(text, sizeof(text), "%s: ", method->name);
	va_start(args, fmt);
	utf8_vformat(text + len, sizeof(text) - len, fmt, args);
	va_end(args);
	if (config.grpc_auth == GRPC_AUTH_ENFORCE)
		call_fail(call, status, "%s", text + len);
	else
	{
		tell_once(text);
		method->start(call);
	}
}

static void
refuse_permission(struct call *call, const struct method *method, const struct principal *principal,
				  const char *scope)
{
	refuse(call, method, GRPC_PERMISSION_DENIED, "credential '%s' has not the permission '%s%s%s'", principal->id,
		   method->need.action, scope != NULL ? ":" : "", scope != NULL ? scope : "");
}

static bool
allows(const struct principal *principal, const struct method *method, const char *scope)
{
	return permission_allows(principal->permissions, principal->npermissions, method->need.action, scope);
}

static void
judge(struct call *call, const struct method *method, const struct principal *principal, const char *scope)
{
	if (allows(principal, method, scope))
		method->start(call);
	else
		refuse_permission(call, method, principal, scope);
}

/* ------------------------------------------------------------ visits */

static void
free_visit(struct visit *visit)
{
	principal_forget(&visit->wait);
	principal_release(visit->principal);
	free(visit->subject);
	free(visit);
}

static void
call_gone(struct call *call, void *arg)
{
	struct visit *visit = arg;

	(void) call;
	visit->call = NULL;
	if (!visit->asking)
		free_visit(visit);
}

static struct visit *
open_visit(struct call *call, const struct method *method)
{
	struct visit *visit = xcalloc(1, sizeof(*visit));

	visit->call = call;
	visit->method = method;
	call_on_cancel(call, call_gone, visit);
	return visit;
}

/* ---------------------------------------------- scopes that must be asked for */

static void
scope_known(struct question *question, const PGresult *result, const struct refusal *refusal)
{
	struct visit *visit = (struct visit *) question;
	struct call *call = visit->call;

	visit->asking = false;
	if (call != NULL)
	{
		call_on_cancel(call, NULL, NULL);
		if (result == NULL && refusal->status != GRPC_NOT_FOUND)
			call_fail(call, refusal->status, "%s", refusal->message);
		else if (result == NULL || PQntuples(result) == 0)
			visit->method->start(call); /* which says so */
		else
			judge(call, visit->method, visit->principal, PQgetvalue(result, 0, 0));
	}
	free_visit(visit);
}

static void
ask_scope(struct call *call, const struct method *method, struct principal *principal, const char *id)
{
	bool		schedule = method->need.kind == NEED_SCHEDULE;
	struct refusal refusal;
	struct shard *shard = schedule ? shard_at(shard_topology()->home) : rpc_route(id, "instance", &refusal);
	struct visit *visit;
	enum submit submitted;

	if (shard == NULL)
	{
		call_fail(call, refusal.status, "%s", refusal.message);
		return;
	}
	visit = open_visit(call, method);
	visit->principal = principal;
	principal_hold(principal);
	visit->subject = xstrdup(id);
	visit->question.statement = schedule ? SQL_SCHEDULE_WORKFLOW : SQL_INSTANCE_WORKFLOW;
	visit->question.nparams = 1;
	visit->question.params[0] = visit->subject;
	visit->question.done = scope_known;
	submitted = shard_ask(shard, &visit->question);
	visit->asking = submitted == SUBMIT_OK;
	if (visit->asking)
		return;
	shard_refuse(shard, submitted, &refusal);
	scope_known(&visit->question, NULL, &refusal);
}

/* ------------------------------------------------------ what a request names */

static const ProtobufCFieldDescriptor *
field_of(const ProtobufCMessage *message, const char *name)
{
	const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);

	if (field == NULL)
		abort();
	return field;
}

static const void *
place_of(const ProtobufCMessage *message, unsigned offset)
{
	return (const char *) message + offset;
}

/* Is an optional field there? It may be empty. */
static bool
is_given(const ProtobufCMessage *message, const char *name)
{
	const ProtobufCFieldDescriptor *field = field_of(message, name);

	return *(const uint32_t *) place_of(message, field->quantifier_offset) == field->id;
}

/* A string field, "" when it is absent. */
static const char *
text_field(const ProtobufCMessage *message, const char *name)
{
	const ProtobufCFieldDescriptor *field = field_of(message, name);

	if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 && !is_given(message, name))
		return "";
	return *(const char *const *) place_of(message, field->offset);
}

/* A list is of instances of one workflow, unless it is of all that have a correlation id. */
static const char *
list_scope(const ProtobufCMessage *message, const char *field)
{
	const char *workflow = text_field(message, field);

	return *workflow == '\0' || is_given(message, "correlation_id") ? NULL : workflow;
}

static void
judge_each(struct call *call, const struct method *method, const struct principal *principal,
		   const ProtobufCMessage *message)
{
	const ProtobufCFieldDescriptor *field = field_of(message, method->need.field);
	size_t		n = *(const size_t *) place_of(message, field->quantifier_offset);
	const char *const *names = *(const char *const *const *) place_of(message, field->offset);

	for (size_t i = 0; i < n; i++)
	{
		if (allows(principal, method, names[i]))
			continue;
		refuse_permission(call, method, principal, names[i]);
		return;
	}
	if (n > 0)
		method->start(call);
	else
		refuse_permission(call, method, principal, NULL);
}

/* The name in a definition, or in the authoring form, which may stand for one. */
static void
judge_definition(struct call *call, const struct method *method, const struct principal *principal,
				 const ProtobufCMessage *message)
{
	const ProtobufCBinaryData *data = place_of(message, field_of(message, method->need.field)->offset);
	struct buf	text = BUF_INIT;
	struct wig_error err;
	json_t	   *definition = NULL;
	const char *name;
	const char *workflow;

	if (struct_to_json(data->data, data->len, &text, &err))
		definition = json_loadb((const char *) text.data, text.len, JSON_REJECT_DUPLICATES, NULL);
	name = json_string_value(json_object_get(definition, "name"));
	workflow = json_string_value(json_object_get(definition, "workflow"));
	if (name != NULL && workflow != NULL && !allows(principal, method, name))
		refuse_permission(call, method, principal, name);
	else
		judge(call, method, principal, workflow != NULL ? workflow : name != NULL ? name : "");
	json_decref(definition);
	buf_free(&text);
}

static void
judge_request(struct call *call, const struct method *method, struct principal *principal)
{
	const struct need *need = &method->need;
	ProtobufCMessage *message = message_request(call, need->request);

	if (message == NULL)
		return;
	switch (need->kind)
	{
		case NEED_EACH:
			judge_each(call, method, principal, message);
			break;
		case NEED_DEFINITION:
			judge_definition(call, method, principal, message);
			break;
		case NEED_INSTANCE:
		case NEED_SCHEDULE:
			ask_scope(call, method, principal, text_field(message, need->field));
			break;
		case NEED_FILTER:
			judge(call, method, principal, list_scope(message, need->field));
			break;
		default:
			judge(call, method, principal, text_field(message, need->field));
			break;
	}
	protobuf_c_message_free_unpacked(message, NULL);
}

/* The caller is known. Only what some scope alone is allowed has a look at the request. */
static void
admit(struct call *call, const struct method *method, struct principal *principal)
{
	bool		some;

	if (loop_now() >= principal->expires_at)
	{
		refuse(call, method, GRPC_UNAUTHENTICATED, "credential '%s' has expired", principal->id);
		return;
	}
	call_set_caller(call, principal->id);
	some = permission_allows_some(principal->permissions, principal->npermissions, method->need.action);
	if (allows(principal, method, NULL) || (some && method->need.kind == NEED_SOME))
		method->start(call);
	else if (!some || method->need.kind == NEED_ACTION || method->need.kind == NEED_MANAGER)
		refuse_permission(call, method, principal, NULL);
	else
		judge_request(call, method, principal);
}

static void
answer(struct call *call, const struct method *method, enum principal_answer answer, struct principal *principal)
{
	const struct credential *credential = call_credential(call);

	switch (answer)
	{
		case PRINCIPAL_KNOWN:
			admit(call, method, principal);
			break;
		case PRINCIPAL_UNKNOWN:
			if (credential->kind == CREDENTIAL_KEY)
				refuse(call, method, GRPC_UNAUTHENTICATED, "the API key is not known");
			else
				refuse(call, method, GRPC_UNAUTHENTICATED, "no credential has the certificate's subject '%s'",
					   credential->subject);
			break;
		default:
			refuse(call, method, GRPC_UNAVAILABLE, "the shard that knows the credentials does not answer; try again later");
			break;
	}
}

static void
caller_known(struct principal_wait *wait, enum principal_answer known, struct principal *principal)
{
	struct visit *visit = (struct visit *) ((char *) wait - offsetof(struct visit, wait));
	struct call *call = visit->call;
	const struct method *method = visit->method;

	call_on_cancel(call, NULL, NULL);
	free_visit(visit);
	answer(call, method, known, principal);
}

void
gate_start(struct call *call, const struct method *method)
{
	const struct credential *credential;
	struct principal *principal = NULL;
	enum principal_answer known;
	struct visit *visit;

	if (method->need.kind == NEED_MANAGER && config.grpc_auth != GRPC_AUTH_ENFORCE)
		call_fail(call, GRPC_FAILED_PRECONDITION, "roles and credentials are managed here only when WIGGLE_GRPC_AUTH is"
				  " enforce; without it use SQL on the auth shard (wiggle.auth_create_key)");
	else if (config.grpc_auth == GRPC_AUTH_OFF || method->need.kind == NEED_NOTHING)
		method->start(call);
	else if (method->need.kind == NEED_UNKNOWN)
		call_fail(call, GRPC_INTERNAL, "%s has no permission that it needs", method->name);
	else if ((credential = call_credential(call))->kind == CREDENTIAL_NONE)
		refuse(call, method, GRPC_UNAUTHENTICATED, "no credential came: an API key (authorization: Bearer KEY) or a client"
			   " certificate");
	else if (credential->kind == CREDENTIAL_MALFORMED)
		refuse(call, method, GRPC_UNAUTHENTICATED, "the authorization field is not \"Bearer\" and a key");
	else if ((known = principal_find(credential, &principal)) != PRINCIPAL_ASK)
		answer(call, method, known, principal);
	else
	{
		visit = open_visit(call, method);
		visit->wait.done = caller_known;
		if (!principal_ask(credential, &visit->wait))
			caller_known(&visit->wait, PRINCIPAL_UNREACHABLE, NULL);
	}
}
