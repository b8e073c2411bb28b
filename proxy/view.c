/*
 * view.c
 *	  Rows of the database to the messages that show them.
 */
#include <stdlib.h>

#include "rpc.h"
#include "statement.h"
#include "view.h"

int64_t
view_number(const PGresult *result, int row, int column)
{
	return PQgetisnull(result, row, column) ? 0 : strtoll(PQgetvalue(result, row, column), NULL, 10);
}

/* libpq gives "" for NULL, which is what an absent text is on the wire. */
static char *
text(const PGresult *result, int row, int column)
{
	return PQgetvalue(result, row, column);
}

/* What a step saw and gave, for a person: left out rather than refused. */
static void
record(const PGresult *result, int row, int column, enum value_form form, ProtobufCBinaryData *out)
{
	struct wig_error ignored;

	if (!PQgetisnull(result, row, column))
		rpc_value(form, text(result, row, column), (size_t) PQgetlength(result, row, column), out, &ignored);
}

bool
view_instance(const PGresult *result, int row, enum value_form form,
			  Com__Wiggle__Proto__InstanceView *view, struct wig_error *err)
{
	view->id = text(result, row, INSTANCE_ID);
	view->workflow = text(result, row, INSTANCE_WORKFLOW);
	view->version = (int32_t) view_number(result, row, INSTANCE_VERSION);
	view->status = text(result, row, INSTANCE_STATUS);
	if (!PQgetisnull(result, row, INSTANCE_REASON))
	{
		view->has_termination_reason_case =
			COM__WIGGLE__PROTO__INSTANCE_VIEW__HAS_TERMINATION_REASON_TERMINATION_REASON;
		view->termination_reason = text(result, row, INSTANCE_REASON);
	}
	if (!PQgetisnull(result, row, INSTANCE_ERROR))
	{
		view->has_error_case = COM__WIGGLE__PROTO__INSTANCE_VIEW__HAS_ERROR_ERROR;
		view->error = text(result, row, INSTANCE_ERROR);
	}
	view->created_at = view_number(result, row, INSTANCE_CREATED_AT);
	view->updated_at = view_number(result, row, INSTANCE_UPDATED_AT);
	return PQgetisnull(result, row, INSTANCE_CONTEXT) ||
		rpc_value(form, text(result, row, INSTANCE_CONTEXT),
				  (size_t) PQgetlength(result, row, INSTANCE_CONTEXT), &view->context, err);
}

void
view_token(const PGresult *result, int row, enum value_form form, Com__Wiggle__Proto__Token *token)
{
	token->id = text(result, row, TOKEN_ID);
	token->node_id = text(result, row, TOKEN_NODE_ID);
	token->kind = text(result, row, TOKEN_KIND);
	token->status = text(result, row, TOKEN_STATUS);
	token->activity = text(result, row, TOKEN_ACTIVITY);
	token->attempt = (int32_t) view_number(result, row, TOKEN_ATTEMPT);
	token->available_at = view_number(result, row, TOKEN_AVAILABLE_AT);
	token->created_at = view_number(result, row, TOKEN_CREATED_AT);
	if (!PQgetisnull(result, row, TOKEN_LEASE_OWNER))
	{
		token->has_lease_owner_case = COM__WIGGLE__PROTO__TOKEN__HAS_LEASE_OWNER_LEASE_OWNER;
		token->lease_owner = text(result, row, TOKEN_LEASE_OWNER);
	}
	if (!PQgetisnull(result, row, TOKEN_LAST_ERROR))
	{
		token->has_last_error_case = COM__WIGGLE__PROTO__TOKEN__HAS_LAST_ERROR_LAST_ERROR;
		token->last_error = text(result, row, TOKEN_LAST_ERROR);
	}
	if (!PQgetisnull(result, row, TOKEN_STARTED_AT))
	{
		token->has_started_at_case = COM__WIGGLE__PROTO__TOKEN__HAS_STARTED_AT_STARTED_AT;
		token->started_at = view_number(result, row, TOKEN_STARTED_AT);
	}
	if (!PQgetisnull(result, row, TOKEN_FINISHED_AT))
	{
		token->has_finished_at_case = COM__WIGGLE__PROTO__TOKEN__HAS_FINISHED_AT_FINISHED_AT;
		token->finished_at = view_number(result, row, TOKEN_FINISHED_AT);
	}
	record(result, row, TOKEN_INPUT, form, &token->input);
	record(result, row, TOKEN_OUTPUT, form, &token->output);
}

void
view_schedule(const PGresult *result, int row, Com__Wiggle__Proto__ScheduleView *view)
{
	view->id = text(result, row, SCHEDULE_ID);
	view->workflow = text(result, row, SCHEDULE_WORKFLOW);
	view->every_millis = view_number(result, row, SCHEDULE_EVERY);
	view->cron = text(result, row, SCHEDULE_CRON);
	view->next_fire_at = view_number(result, row, SCHEDULE_NEXT);
	view->created_at = view_number(result, row, SCHEDULE_CREATED);
}
