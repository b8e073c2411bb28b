/*
 * cmd_auth.c
 *	  wiggle auth: API keys, certificates, roles.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "output.h"
#include "pg_wiggle_auth.pb-c.h"
#include "session.h"

#define AUTH "/pg_wiggle.v1.AuthService/"
#define PERMISSIONS 200			/* of a role */

typedef PgWiggle__V1__Credential Credential;
typedef PgWiggle__V1__Role Role;

static enum exit_status run_auth(struct session *session, const struct arguments *args);

static const struct option auth_options[] = {
	{"role", 'r', "ROLE", "key, certificate: what its holder may do"},
	{"expires", 0, "DURATION", "key, certificate: for how long it is good, such as 720h (default: for ever)"},
	{NULL, 0, NULL, NULL}
};

const struct command command_auth = {
	.name = "auth",
	.words = "key ID | certificate ID SUBJECT | list | grant ID ROLE | revoke ID | roles | role NAME PERMISSION... | drop NAME",
	.min_words = 1,
	.max_words = PERMISSIONS + 2,
	.summary = "API keys, certificates and roles of the proxies' clients",
	.details =
	"The server must run with WIGGLE_GRPC_AUTH=enforce, and the caller's role must have\n"
	"user.manage, as admin has. The first key is made with SQL, on the auth shard:\n"
	"  select wiggle.auth_create_key('me', 'admin')\n"
	"\n"
	"  key ID                    make an API key and print it: this once\n"
	"  certificate ID SUBJECT    let in who has a certificate of this subject (RFC 2253)\n"
	"  list                      credentials; of keys their first characters\n"
	"  grant ID ROLE             give a credential another role\n"
	"  revoke ID                 remove a credential; proxies know within about a second\n"
	"  roles                     roles and their permissions\n"
	"  role NAME PERMISSION...   create or replace a role\n"
	"  drop NAME                 drop a role that nobody holds\n"
	"\n"
	"A permission is an action: read, workflow.register, instance.start, instance.cancel,\n"
	"instance.signal, schedule.write, task.poll, event.read, user.manage, shard.manage, or *\n"
	"for all. Those up to task.poll may be for one workflow, task.poll for one queue:\n"
	"instance.start:order, or a prefix: task.poll:eu.*\n"
	"\n"
	"Examples:\n"
	"  wiggle auth role worker task.poll:orders task.poll:payments read:order\n"
	"  wiggle auth key worker-1 --role worker --expires 2160h\n"
	"  wiggle auth certificate shop CN=shop,O=Acme --role starter\n"
	"  wiggle auth revoke worker-1\n",
	.options = auth_options,
	.calls = true,
	.run = run_auth
};

/* A change: nothing of its reply is of interest. */
static enum exit_status
change(struct session *session, const char *method, const ProtobufCMessage *request,
	   const ProtobufCMessageDescriptor *reply_type, const char *done, const char *subject)
{
	static const struct client_options once = {.once = true};
	enum grpc_status status;
	ProtobufCMessage *reply = session_call(session, method, request, reply_type, &once, &status);
	struct buf	out = BUF_INIT;

	if (reply == NULL)
		return status_exit(status);
	protobuf_c_message_free_unpacked(reply, NULL);
	if (session->json)
	{
		json_open(&out, NULL, '{');
		json_text(&out, done, subject);
		json_close(&out, '}');
	}
	else
		buf_printf(&out, "%s %s", done, subject);
	print_buf(&out);
	buf_free(&out);
	return EXIT_DONE;
}

/* ---- credentials ---- */

/* The role, and when it ends: 0 = never. */
static bool
take_options(const struct arguments *args, const char **role, int64_t *expires_at)
{
	struct wig_error err;
	int64_t		lasts = 0;

	*role = options_value(args, "role");
	*expires_at = 0;
	if (*role == NULL)
		complain_text(EXIT_USAGE, "--role is needed; \"wiggle auth roles\" shows which there are");
	else if (!options_duration(args, "expires", &lasts, &err))
		complain(EXIT_USAGE, NULL, &err);
	else
	{
		if (options_has(args, "expires"))
			*expires_at = (int64_t) time(NULL) * 1000 + lasts;
		return true;
	}
	return false;
}

static enum exit_status
create_key(struct session *session, const struct arguments *args)
{
	static const struct client_options once = {.once = true};
	PgWiggle__V1__CreateKeyRequest request = PG_WIGGLE__V1__CREATE_KEY_REQUEST__INIT;
	PgWiggle__V1__CreateKeyResponse *reply;
	enum grpc_status status;
	struct buf	out = BUF_INIT;

	request.id = (char *) args->words[1];
	if (!take_options(args, (const char **) &request.role, &request.expires_at))
		return EXIT_USAGE;
	reply = (PgWiggle__V1__CreateKeyResponse *)
		session_call(session, AUTH "CreateKey", &request.base, &pg_wiggle__v1__create_key_response__descriptor,
					 &once, &status);
	if (reply == NULL)
		return status_exit(status);
	if (session->json)
	{
		json_open(&out, NULL, '{');
		json_text(&out, "id", reply->id);
		json_text(&out, "key", reply->key);
		json_close(&out, '}');
	}
	else
		buf_text(&out, reply->key);
	print_buf(&out);
	buf_free(&out);
	if (!session->json)
		fprintf(stderr, "wiggle: keep it now: it is not shown again; clients present it from WIGGLE_API_KEY\n");
	protobuf_c_message_free_unpacked(&reply->base, NULL);
	return EXIT_DONE;
}

static enum exit_status
add_certificate(struct session *session, const struct arguments *args)
{
	PgWiggle__V1__AddCertificateRequest request = PG_WIGGLE__V1__ADD_CERTIFICATE_REQUEST__INIT;

	request.id = (char *) args->words[1];
	request.subject = (char *) args->words[2];
	if (!take_options(args, (const char **) &request.role, &request.expires_at))
		return EXIT_USAGE;
	return change(session, AUTH "AddCertificate", &request.base,
				  &pg_wiggle__v1__add_certificate_response__descriptor, "added", request.id);
}

static void
print_credentials_json(const PgWiggle__V1__ListCredentialsResponse *list)
{
	struct buf	out = BUF_INIT;

	json_open(&out, NULL, '[');
	for (size_t i = 0; i < list->n_credentials; i++)
	{
		const Credential *credential = list->credentials[i];

		json_open(&out, NULL, '{');
		json_text(&out, "id", credential->id);
		json_text(&out, "role", credential->role);
		json_text(&out, "key_prefix", credential->key_prefix[0] == '\0' ? NULL : credential->key_prefix);
		json_text(&out, "subject", credential->subject[0] == '\0' ? NULL : credential->subject);
		json_time(&out, "created_at", credential->created_at);
		json_time(&out, "expires_at", credential->expires_at);
		json_close(&out, '}');
	}
	json_close(&out, ']');
	print_buf(&out);
	buf_free(&out);
}

static void
print_credentials_text(const PgWiggle__V1__ListCredentialsResponse *list)
{
	static const char *const headings[] = {"ID", "ROLE", "KEY OR SUBJECT", "CREATED", "EXPIRES"};
	struct table table;

	table_start(&table, 5, headings);
	for (size_t i = 0; i < list->n_credentials; i++)
	{
		const Credential *credential = list->credentials[i];
		char		created[40];
		char		expires[40];
		struct buf	shown = BUF_INIT;

		format_time(credential->created_at, created);
		format_time(credential->expires_at, expires);
		buf_text(&shown, credential->subject);
		if (credential->key_prefix[0] != '\0')
			buf_printf(&shown, "%s...", credential->key_prefix);
		table_row(&table, (const char *[]) {credential->id, credential->role, buf_cstr(&shown), created, expires});
		buf_free(&shown);
	}
	table_print(&table, stdout);
	table_free(&table);
}

static enum exit_status
list_credentials(struct session *session, const struct arguments *args)
{
	PgWiggle__V1__ListCredentialsRequest request = PG_WIGGLE__V1__LIST_CREDENTIALS_REQUEST__INIT;
	PgWiggle__V1__ListCredentialsResponse *list;
	enum grpc_status status;

	(void) args;
	list = (PgWiggle__V1__ListCredentialsResponse *)
		session_call(session, AUTH "ListCredentials", &request.base,
					 &pg_wiggle__v1__list_credentials_response__descriptor, NULL, &status);
	if (list == NULL)
		return status_exit(status);
	if (session->json)
		print_credentials_json(list);
	else
		print_credentials_text(list);
	protobuf_c_message_free_unpacked(&list->base, NULL);
	return EXIT_DONE;
}

static enum exit_status
grant(struct session *session, const struct arguments *args)
{
	PgWiggle__V1__GrantRoleRequest request = PG_WIGGLE__V1__GRANT_ROLE_REQUEST__INIT;

	request.id = (char *) args->words[1];
	request.role = (char *) args->words[2];
	return change(session, AUTH "GrantRole", &request.base, &pg_wiggle__v1__grant_role_response__descriptor,
				  "granted", request.role);
}

static enum exit_status
revoke(struct session *session, const struct arguments *args)
{
	PgWiggle__V1__RevokeCredentialRequest request = PG_WIGGLE__V1__REVOKE_CREDENTIAL_REQUEST__INIT;

	request.id = (char *) args->words[1];
	return change(session, AUTH "RevokeCredential", &request.base,
				  &pg_wiggle__v1__revoke_credential_response__descriptor, "revoked", request.id);
}

/* ---- roles ---- */

static void
print_roles_json(const PgWiggle__V1__ListRolesResponse *list)
{
	struct buf	out = BUF_INIT;

	json_open(&out, NULL, '[');
	for (size_t i = 0; i < list->n_roles; i++)
	{
		const Role *role = list->roles[i];

		json_open(&out, NULL, '{');
		json_text(&out, "name", role->name);
		json_open(&out, "permissions", '[');
		for (size_t p = 0; p < role->n_permissions; p++)
			json_text(&out, NULL, role->permissions[p]);
		json_close(&out, ']');
		json_flag(&out, "builtin", role->builtin);
		json_close(&out, '}');
	}
	json_close(&out, ']');
	print_buf(&out);
	buf_free(&out);
}

static void
print_roles_text(const PgWiggle__V1__ListRolesResponse *list)
{
	static const char *const headings[] = {"ROLE", "PERMISSIONS"};
	struct table table;

	table_start(&table, 2, headings);
	for (size_t i = 0; i < list->n_roles; i++)
	{
		const Role *role = list->roles[i];
		struct buf	permissions = BUF_INIT;

		for (size_t p = 0; p < role->n_permissions; p++)
			buf_printf(&permissions, "%s%s", p > 0 ? " " : "", role->permissions[p]);
		table_row(&table, (const char *[]) {role->name, buf_cstr(&permissions)});
		buf_free(&permissions);
	}
	table_print(&table, stdout);
	table_free(&table);
}

static enum exit_status
list_roles(struct session *session, const struct arguments *args)
{
	PgWiggle__V1__ListRolesRequest request = PG_WIGGLE__V1__LIST_ROLES_REQUEST__INIT;
	PgWiggle__V1__ListRolesResponse *list;
	enum grpc_status status;

	(void) args;
	list = (PgWiggle__V1__ListRolesResponse *)
		session_call(session, AUTH "ListRoles", &request.base, &pg_wiggle__v1__list_roles_response__descriptor, NULL,
					 &status);
	if (list == NULL)
		return status_exit(status);
	if (session->json)
		print_roles_json(list);
	else
		print_roles_text(list);
	protobuf_c_message_free_unpacked(&list->base, NULL);
	return EXIT_DONE;
}

static enum exit_status
put_role(struct session *session, const struct arguments *args)
{
	PgWiggle__V1__PutRoleRequest request = PG_WIGGLE__V1__PUT_ROLE_REQUEST__INIT;

	request.name = (char *) args->words[1];
	request.permissions = (char **) &args->words[2];
	request.n_permissions = (size_t) args->nwords - 2;
	return change(session, AUTH "PutRole", &request.base, &pg_wiggle__v1__put_role_response__descriptor, "role",
				  request.name);
}

static enum exit_status
drop_role(struct session *session, const struct arguments *args)
{
	PgWiggle__V1__DropRoleRequest request = PG_WIGGLE__V1__DROP_ROLE_REQUEST__INIT;

	request.name = (char *) args->words[1];
	return change(session, AUTH "DropRole", &request.base, &pg_wiggle__v1__drop_role_response__descriptor, "dropped",
				  request.name);
}

/* ---- which of them ---- */

static const struct
{
	const char *name;
	int			min_words;		/* with the name itself */
	int			max_words;
	bool		options;		/* takes --role and --expires */
	enum exit_status (*run) (struct session *session, const struct arguments *args);
}			actions[] =
{
	{"key", 2, 2, true, create_key},
	{"certificate", 3, 3, true, add_certificate},
	{"list", 1, 1, false, list_credentials},
	{"grant", 3, 3, false, grant},
	{"revoke", 2, 2, false, revoke},
	{"roles", 1, 1, false, list_roles},
	{"role", 3, PERMISSIONS + 2, false, put_role},
	{"drop", 2, 2, false, drop_role}
};

static enum exit_status
run_auth(struct session *session, const struct arguments *args)
{
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
	{
		if (strcmp(actions[i].name, args->words[0]) != 0)
			continue;
		if (args->nwords < actions[i].min_words || args->nwords > actions[i].max_words)
			break;
		if (!actions[i].options && (options_has(args, "role") || options_has(args, "expires")))
			return complain_text(EXIT_USAGE, "--role and --expires go with auth key and auth certificate");
		return actions[i].run(session, args);
	}
	return complain_text(EXIT_USAGE, "usage: wiggle auth %s; see wiggle auth --help", command_auth.words);
}
