/*
 * rpc_auth.c
 *	  AuthService: roles and credentials.
 *
 * Each call is one function of the auth shard. A new key passes through here once, on
 * its way to who asked for it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inquiry.h"
#include "pg_wiggle_auth.pb-c.h"
#include "principal.h"
#include "rpc_auth.h"

/* ------------------------------------------------------------------- common */

static void
ask(struct inquiry *inquiry, enum statement statement, int nparams, bool writes)
{
	inquiry->question.statement = statement;
	inquiry->question.nparams = nparams;
	inquiry->question.writes = writes;
	inquiry->question.once = writes;
	inquiry_ask_shard(inquiry, principal_shard());
}

/* 0 = never. */
static const char *
moment(struct inquiry *inquiry, int64_t ms)
{
	if (ms == 0)
		return NULL;
	snprintf(inquiry->number, sizeof(inquiry->number), "%lld", (long long) ms);
	return inquiry->number;
}

/* Who asks, for the audit, kept until the answer. */
static const char *
actor(struct inquiry *inquiry)
{
	struct buf *text = &inquiry->pending.json;

	buf_printf(text, "credential %s", call_caller(inquiry->pending.call));
	return buf_cstr(text);
}

static int64_t
number(const PGresult *result, int row, int column)
{
	return PQgetisnull(result, row, column) ? 0 : strtoll(PQgetvalue(result, row, column), NULL, 10);
}

/* ------------------------------------------------------------- credentials */

static void
answer_key(struct inquiry *inquiry, const PGresult *result)
{
	PgWiggle__V1__CreateKeyResponse reply = PG_WIGGLE__V1__CREATE_KEY_RESPONSE__INIT;

	reply.id = ((PgWiggle__V1__CreateKeyRequest *) inquiry->pending.request)->id;
	reply.key = PQgetvalue(result, 0, 0);
	pending_reply(&inquiry->pending, &reply.base);
}

void
rpc_create_key(struct call *call)
{
	struct inquiry *inquiry = inquiry_open(call, &pg_wiggle__v1__create_key_request__descriptor, answer_key);
	const PgWiggle__V1__CreateKeyRequest *request;

	if (inquiry == NULL)
		return;
	request = (const PgWiggle__V1__CreateKeyRequest *) inquiry->pending.request;
	inquiry->question.params[0] = request->id;
	inquiry->question.params[1] = request->role;
	inquiry->question.params[2] = moment(inquiry, request->expires_at);
	inquiry->question.params[3] = actor(inquiry);
	ask(inquiry, SQL_AUTH_CREATE_KEY, 4, true);
}

static void
answer_certificate(struct inquiry *inquiry, const PGresult *result)
{
	PgWiggle__V1__AddCertificateResponse reply = PG_WIGGLE__V1__ADD_CERTIFICATE_RESPONSE__INIT;

	(void) result;
	pending_reply(&inquiry->pending, &reply.base);
}

void
rpc_add_certificate(struct call *call)
{
	struct inquiry *inquiry = inquiry_open(call, &pg_wiggle__v1__add_certificate_request__descriptor,
										   answer_certificate);
	const PgWiggle__V1__AddCertificateRequest *request;

	if (inquiry == NULL)
		return;
	request = (const PgWiggle__V1__AddCertificateRequest *) inquiry->pending.request;
	inquiry->question.params[0] = request->id;
	inquiry->question.params[1] = request->subject;
	inquiry->question.params[2] = request->role;
	inquiry->question.params[3] = moment(inquiry, request->expires_at);
	inquiry->question.params[4] = actor(inquiry);
	ask(inquiry, SQL_AUTH_ADD_CERTIFICATE, 5, true);
}

static void
answer_credentials(struct inquiry *inquiry, const PGresult *result)
{
	PgWiggle__V1__ListCredentialsResponse reply = PG_WIGGLE__V1__LIST_CREDENTIALS_RESPONSE__INIT;
	size_t		n = (size_t) PQntuples(result);
	PgWiggle__V1__Credential *rows = xcalloc(n + 1, sizeof(*rows));
	PgWiggle__V1__Credential **pointers = xcalloc(n + 1, sizeof(*pointers));

	for (size_t i = 0; i < n; i++)
	{
		int			row = (int) i;

		pg_wiggle__v1__credential__init(&rows[i]);
		rows[i].id = PQgetvalue(result, row, 0);
		rows[i].role = PQgetvalue(result, row, 1);
		rows[i].key_prefix = PQgetvalue(result, row, 2);
		rows[i].subject = PQgetvalue(result, row, 3);
		rows[i].created_at = number(result, row, 4);
		rows[i].expires_at = number(result, row, 5);
		pointers[i] = &rows[i];
	}
	reply.credentials = pointers;
	reply.n_credentials = n;
	pending_reply(&inquiry->pending, &reply.base);
	free(rows);
	free(pointers);
}

void
rpc_list_credentials(struct call *call)
{
	struct inquiry *inquiry = inquiry_open(call, &pg_wiggle__v1__list_credentials_request__descriptor,
										   answer_credentials);

	if (inquiry != NULL)
		ask(inquiry, SQL_AUTH_CREDENTIALS, 0, false);
}

static void
answer_grant(struct inquiry *inquiry, const PGresult *result)
{
	PgWiggle__V1__GrantRoleResponse reply = PG_WIGGLE__V1__GRANT_ROLE_RESPONSE__INIT;

	(void) result;
	pending_reply(&inquiry->pending, &reply.base);
}

void
rpc_grant_role(struct call *call)
{
	struct inquiry *inquiry = inquiry_open(call, &pg_wiggle__v1__grant_role_request__descriptor, answer_grant);
	const PgWiggle__V1__GrantRoleRequest *request;

	if (inquiry == NULL)
		return;
	request = (const PgWiggle__V1__GrantRoleRequest *) inquiry->pending.request;
	inquiry->question.params[0] = request->id;
	inquiry->question.params[1] = request->role;
	inquiry->question.params[2] = actor(inquiry);
	ask(inquiry, SQL_AUTH_GRANT, 3, true);
}

static void
answer_revocation(struct inquiry *inquiry, const PGresult *result)
{
	PgWiggle__V1__RevokeCredentialResponse reply = PG_WIGGLE__V1__REVOKE_CREDENTIAL_RESPONSE__INIT;

	(void) result;
	pending_reply(&inquiry->pending, &reply.base);
}

void
rpc_revoke_credential(struct call *call)
{
	struct inquiry *inquiry = inquiry_open(call, &pg_wiggle__v1__revoke_credential_request__descriptor,
										   answer_revocation);

	if (inquiry == NULL)
		return;
	inquiry->question.params[0] = ((const PgWiggle__V1__RevokeCredentialRequest *) inquiry->pending.request)->id;
	inquiry->question.params[1] = actor(inquiry);
	ask(inquiry, SQL_AUTH_REVOKE, 2, true);
}

/* -------------------------------------------------------------------- roles */

static void
answer_role_put(struct inquiry *inquiry, const PGresult *result)
{
	PgWiggle__V1__PutRoleResponse reply = PG_WIGGLE__V1__PUT_ROLE_RESPONSE__INIT;

	(void) result;
	pending_reply(&inquiry->pending, &reply.base);
}

/* Line feeds part the permissions; one within a permission makes two that are none. */
void
rpc_put_role(struct call *call)
{
	struct inquiry *inquiry = inquiry_open(call, &pg_wiggle__v1__put_role_request__descriptor, answer_role_put);
	const PgWiggle__V1__PutRoleRequest *request;
	struct buf *text;
	size_t		start;

	if (inquiry == NULL)
		return;
	request = (const PgWiggle__V1__PutRoleRequest *) inquiry->pending.request;
	text = &inquiry->pending.json;
	actor(inquiry);
	buf_byte(text, '\0');
	start = text->len;
	for (size_t i = 0; i < request->n_permissions; i++)
		buf_printf(text, "%s%s", i > 0 ? "\n" : "", request->permissions[i]);
	buf_cstr(text);
	inquiry->question.params[0] = request->name;
	inquiry->question.params[1] = (const char *) text->data + start;
	inquiry->question.params[2] = (const char *) text->data;
	ask(inquiry, SQL_AUTH_PUT_ROLE, 3, true);
}

static void
answer_roles(struct inquiry *inquiry, const PGresult *result)
{
	PgWiggle__V1__ListRolesResponse reply = PG_WIGGLE__V1__LIST_ROLES_RESPONSE__INIT;
	size_t		n = (size_t) PQntuples(result);
	PgWiggle__V1__Role *rows = xcalloc(n + 1, sizeof(*rows));
	PgWiggle__V1__Role **pointers = xcalloc(n + 1, sizeof(*pointers));

	for (size_t i = 0; i < n; i++)
	{
		char	   *text = PQgetvalue(result, (int) i, 1);
		char	   *save = NULL;
		size_t		most = 1;

		pg_wiggle__v1__role__init(&rows[i]);
		rows[i].name = PQgetvalue(result, (int) i, 0);
		rows[i].builtin = *PQgetvalue(result, (int) i, 2) == 't';
		for (const char *p = text; *p != '\0'; p++)
			most += *p == '\n';
		rows[i].permissions = xcalloc(most, sizeof(char *));
		for (char *word = strtok_r(text, "\n", &save); word != NULL; word = strtok_r(NULL, "\n", &save))
			rows[i].permissions[rows[i].n_permissions++] = word;
		pointers[i] = &rows[i];
	}
	reply.roles = pointers;
	reply.n_roles = n;
	pending_reply(&inquiry->pending, &reply.base);
	for (size_t i = 0; i < n; i++)
		free(rows[i].permissions);
	free(rows);
	free(pointers);
}

void
rpc_list_roles(struct call *call)
{
	struct inquiry *inquiry = inquiry_open(call, &pg_wiggle__v1__list_roles_request__descriptor, answer_roles);

	if (inquiry != NULL)
		ask(inquiry, SQL_AUTH_ROLES, 0, false);
}

static void
answer_drop(struct inquiry *inquiry, const PGresult *result)
{
	PgWiggle__V1__DropRoleResponse reply = PG_WIGGLE__V1__DROP_ROLE_RESPONSE__INIT;

	(void) result;
	pending_reply(&inquiry->pending, &reply.base);
}

void
rpc_drop_role(struct call *call)
{
	struct inquiry *inquiry = inquiry_open(call, &pg_wiggle__v1__drop_role_request__descriptor, answer_drop);

	if (inquiry == NULL)
		return;
	inquiry->question.params[0] = ((const PgWiggle__V1__DropRoleRequest *) inquiry->pending.request)->name;
	inquiry->question.params[1] = actor(inquiry);
	ask(inquiry, SQL_AUTH_DROP_ROLE, 2, true);
}
