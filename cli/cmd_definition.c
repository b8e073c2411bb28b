/*
 * cmd_definition.c
 *	  wiggle validate, wiggle register.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "definition.h"
#include "output.h"
#include "registered.h"
#include "session.h"
#include "source.h"
#include "value.h"
#include "wiggle.pb-c.h"

static enum exit_status run_validate(struct session *session, const struct arguments *args);
static enum exit_status run_register(struct session *session, const struct arguments *args);

static const struct option validate_options[] = {
	{"show", 0, NULL, "print the definition that the file is compiled to"},
	{NULL, 0, NULL, NULL}
};

#define FILES \
	"FILE is a workflow in the authoring shorthand, as YAML or JSON, or a whole\n" \
	"definition as JSON; \"-\" is standard input. A workflow in YAML:\n" \
	"\n" \
	"  workflow: order\n" \
	"  version: 1\n" \
	"  steps:\n" \
	"    - gate: in-stock\n" \
	"    - task: charge\n" \
	"      retry: {max: 5, backoff: 200ms, multiplier: 2}\n" \
	"    - sleep: 300ms\n" \
	"    - effect: notify\n" \
	"\n" \
	"Steps are task, effect, gate, sleep, await_signal, sub_workflow, fork, fork_each,\n" \
	"choose and do_while, each with queue and retry beside it where it runs on workers.\n"

const struct command command_validate = {
	.name = "validate",
	.words = "FILE",
	.min_words = 1,
	.max_words = 1,
	.summary = "check a workflow file without a server",
	.details = FILES
	"\n"
	"What is wrong is said with its place (file:line:column), and the exit status is 2. A key\n"
	"that means nothing where it stands is wrong; in a whole definition it is ignored, as\n"
	"Wiggle ignores it.\n"
	"\n"
	"Examples:\n"
	"  wiggle validate order.yaml\n"
	"  wiggle validate order.yaml --show | jq .nodes\n",
	.options = validate_options,
	.run = run_validate
};

static const struct option register_options[] = {
	{"force", 0, NULL, "replace a different graph of the same version (development servers only)"},
	{NULL, 0, NULL, NULL}
};

const struct command command_register = {
	.name = "register",
	.words = "FILE",
	.min_words = 1,
	.max_words = 1,
	.summary = "check a workflow file and register it on the server",
	.details = FILES
	"\n"
	"Registering the same graph again changes nothing. Another graph under a version that\n"
	"exists is refused: give it a new version.\n"
	"\n"
	"Examples:\n"
	"  wiggle register order.yaml\n"
	"  wiggle --server wiggle.example:8080 --json register order.yaml\n",
	.options = register_options,
	.calls = true,
	.run = run_register
};

/* The definition in a file as JSON text (malloc); NULL after a complaint. */
static char *
load(const char *file)
{
	struct buf	text = BUF_INIT;
	struct wig_error err = {0};
	char	   *json = NULL;

	if (!source_read(file, &text, &err))
		complain(EXIT_USAGE, NULL, &err);
	else
	{
		json = source_definition(&text, &err);
		if (json == NULL)
			complain(EXIT_USAGE, file, &err);
	}
	buf_free(&text);
	return json;
}

static enum exit_status
run_validate(struct session *session, const struct arguments *args)
{
	char	   *json = load(args->words[0]);
	struct wig_definition *def;
	struct wig_error err;
	struct buf	out = BUF_INIT;
	char		fingerprint[65];

	if (json == NULL)
		return EXIT_USAGE;
	def = wig_definition_parse(json, strlen(json), &err);
	if (def == NULL || !wig_definition_fingerprint(def, fingerprint))
		return complain_text(EXIT_USAGE, "out of memory");
	if (options_has(args, "show"))
	{
		if (session->json)
			buf_text(&out, json);
		else
			json_indent(json, strlen(json), &out);
	}
	else if (session->json)
	{
		json_open(&out, NULL, '{');
		json_text(&out, "name", def->name);
		json_number(&out, "version", def->version);
		json_number(&out, "nodes", def->nnodes);
		json_text(&out, "fingerprint", fingerprint);
		json_close(&out, '}');
	}
	else
		buf_printf(&out, "%s: workflow %s, version %d, %d nodes: valid", args->words[0],
				   def->name, (int) def->version, def->nnodes);
	print_buf(&out);
	buf_free(&out);
	wig_definition_free(def);
	free(json);
	return EXIT_DONE;
}

/* Does the server have this very graph under this version? False when it cannot be learnt. */
static bool
is_registered(struct session *session, const struct wig_definition *def)
{
	struct wig_definition *there = registered_find(session, def->name, def->version);
	char		fingerprints[2][65];
	bool		same = there != NULL && wig_definition_fingerprint(def, fingerprints[0]) &&
		wig_definition_fingerprint(there, fingerprints[1]) && strcmp(fingerprints[0], fingerprints[1]) == 0;

	wig_definition_free(there);
	return same;
}

/* It is sent all the same when it was there before: a shard may lack it. */
static enum exit_status
send_definition(struct session *session, const struct buf *definition, bool force, bool there)
{
	PB(WorkflowDefinition) request = PB_INIT(WORKFLOW_DEFINITION);
	PB(RegisterWorkflowResponse) *reply;
	struct buf	out = BUF_INIT;
	enum grpc_status status;

	request.definition.data = definition->data;
	request.definition.len = definition->len;
	request.force = force;
	reply = (PB(RegisterWorkflowResponse) *)
		session_call(session, "RegisterWorkflow", &request.base,
					 PB_TYPE(register_workflow_response), NULL, &status);
	if (reply == NULL)
		return status_exit(status);
	if (session->json)
	{
		json_open(&out, NULL, '{');
		json_text(&out, "name", reply->name);
		json_number(&out, "version", strtol(reply->version, NULL, 10));
		json_number(&out, "nodes", reply->nodes);
		json_flag(&out, "created", !there);
		json_close(&out, '}');
	}
	else
		buf_printf(&out, "%s %s, version %s, %d nodes", there ? "already registered:" : "registered",
				   reply->name, reply->version, (int) reply->nodes);
	print_buf(&out);
	buf_free(&out);
	protobuf_c_message_free_unpacked(&reply->base, NULL);
	return EXIT_DONE;
}

static enum exit_status
run_register(struct session *session, const struct arguments *args)
{
	char	   *json = load(args->words[0]);
	struct buf	definition = BUF_INIT;
	struct wig_definition *def;
	struct wig_error err;
	enum exit_status status;

	if (json == NULL)
		return EXIT_USAGE;
	def = wig_definition_parse(json, strlen(json), &err);
	if (def != NULL && json_to_struct(json, strlen(json), &definition, &err))
		status = send_definition(session, &definition, options_has(args, "force"), is_registered(session, def));
	else
		status = complain(EXIT_USAGE, args->words[0], &err);
	wig_definition_free(def);
	buf_free(&definition);
	free(json);
	return status;
}
