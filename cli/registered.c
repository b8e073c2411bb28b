/*
 * registered.c
 *	  Registered definitions, as the server shows them.
 */
#include <string.h>

#include "registered.h"
#include "value.h"
#include "wiggle.pb-c.h"

static struct wig_definition *
parse(const PB(WorkflowDefinition) *message)
{
	struct wig_definition *def = NULL;
	struct buf	json = BUF_INIT;

	if (struct_to_json(message->definition.data, message->definition.len, &json, NULL))
		def = wig_definition_parse((const char *) json.data, json.len, NULL);
	buf_free(&json);
	return def;
}

struct wig_definition *
registered_read(const uint8_t *data, size_t len)
{
	PB(WorkflowDefinition) *message = (PB(WorkflowDefinition) *)
		protobuf_c_message_unpack(PB_TYPE(workflow_definition), NULL, len, data);
	struct wig_definition *def;

	if (message == NULL)
		return NULL;
	def = parse(message);
	protobuf_c_message_free_unpacked(&message->base, NULL);
	return def;
}

struct wig_definition *
registered_find(struct session *session, const char *workflow, int32_t version)
{
	PB(GetWorkflowRequest) request = PB_INIT(GET_WORKFLOW_REQUEST);
	PB(WorkflowDefinition) *reply;
	struct wig_definition *def;
	enum grpc_status status;

	request.name = (char *) workflow;
	request.has_version_case = COM__WIGGLE__PROTO__GET_WORKFLOW_REQUEST__HAS_VERSION_VERSION;
	request.version = version;
	reply = (PB(WorkflowDefinition) *)
		session_find(session, "GetWorkflow", &request.base, PB_TYPE(workflow_definition), &status);
	if (reply == NULL)
		return NULL;
	def = parse(reply);
	protobuf_c_message_free_unpacked(&reply->base, NULL);
	return def;
}

const char *
registered_step(const struct wig_definition *def, const struct wig_node *node)
{
	size_t		len = strlen(def->name);

	if (node->name != NULL)
		return node->name;
	if (node->activity == NULL)
		return node->id;
	return strncmp(node->activity, def->name, len) == 0 && node->activity[len] == '#'
		? node->activity + len + 1 : node->activity;
}
