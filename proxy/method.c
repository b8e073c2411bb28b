/*
 * method.c
 *	  The RPCs that this server answers.
 */
#include <string.h>

#include "call.h"
#include "rpc_auth.h"
#include "rpc_cluster.h"
#include "rpc_definition.h"
#include "rpc_event.h"
#include "rpc_instance.h"
#include "rpc_probe.h"
#include "rpc_reflection.h"
#include "rpc_schedule.h"
#include "rpc_shard.h"
#include "rpc_stats.h"
#include "rpc_task.h"
#include "wiggle.pb-c.h"

/* What a call needs, which is Wiggle's: nothing, an action on every scope, on any scope, or on
 * what a field of the request names. */
#define OPEN		{.kind = NEED_NOTHING}
#define ALL(what)	{.kind = NEED_ACTION, .action = what}
#define SOME(what)	{.kind = NEED_SOME, .action = what}
#define MANAGER		{.kind = NEED_MANAGER, .action = "user.manage"}
#define OF(how, what, type, in) \
	{NEED_##how, what, &com__wiggle__proto__##type##__descriptor, in}

/* The ones called most come first: the search is linear. */
static const struct method methods[] = {
	{"PollTasks", rpc_poll_tasks, OF(EACH, "task.poll", poll_request, "queues")},
	{"ReportSteps", rpc_report_steps, SOME("task.poll")},
	{"CompleteTask", rpc_complete_task, SOME("task.poll")},
	{"HeartbeatTask", rpc_heartbeat_task, SOME("task.poll")},
	{"FailTask", rpc_fail_task, SOME("task.poll")},
	{"StartInstance", rpc_start_instance, OF(NAMED, "instance.start", start_instance_request, "workflow")},
	{"GetInstance", rpc_get_instance, OF(INSTANCE, "read", get_instance_request, "instance_id")},
	{"ListInstances", rpc_list_instances, OF(FILTER, "read", list_instances_request, "workflow")},
	{"AdvanceRun", rpc_advance_run, SOME("task.poll")},
	{"AdvanceMany", rpc_advance_many, SOME("task.poll")},
	{"PollEvents", rpc_poll_events, ALL("event.read")},
	{"AckEvents", rpc_ack_events, ALL("event.read")},
	{"ForgetConsumer", rpc_forget_consumer, ALL("event.read")},
	{"SignalInstance", rpc_signal_instance, OF(INSTANCE, "instance.signal", signal_instance_request, "instance_id")},
	{"CancelInstance", rpc_cancel_instance, OF(INSTANCE, "instance.cancel", cancel_instance_request, "instance_id")},
	{"GetWorkflow", rpc_get_workflow, OF(NAMED, "read", get_workflow_request, "name")},
	{"RegisterWorkflow", rpc_register_workflow, OF(DEFINITION, "workflow.register", workflow_definition, "definition")},
	{"ListWorkflows", rpc_list_workflows, ALL("read")},
	{"CreateSchedule", rpc_create_schedule, OF(NAMED, "schedule.write", create_schedule_request, "workflow")},
	{"ListSchedules", rpc_list_schedules, ALL("read")},
	{"DeleteSchedule", rpc_delete_schedule, OF(SCHEDULE, "schedule.write", delete_schedule_request, "id")},
	{"GetStepStats", rpc_get_step_stats, OF(NAMED, "read", step_stats_request, "workflow")},
	{"GetBacklogCoverage", rpc_get_backlog_coverage, ALL("read")},
	{"SearchInstances", rpc_search_instances, SOME("read")},
	{"GetCluster", rpc_get_cluster, ALL("read")},
	{"HealthCheck", rpc_health_check, OPEN},
};

const struct method *
method_find(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
	{
		if (strlen(methods[i].name) == len && memcmp(methods[i].name, name, len) == 0)
			return &methods[i];
	}
	return NULL;
}

bool
method_waits(const struct method *method)
{
	return method->start == rpc_poll_tasks || method->start == rpc_poll_events;
}

static const struct
{
	struct method method;
	enum method_shape shape;
	bool		open;			/* to Connect as well */
}			standard[] = {
	{{"pg_wiggle.v1.ShardService/ListShards", rpc_list_shards, ALL("read")}, METHOD_UNARY, true},
	{{"pg_wiggle.v1.ShardService/RetireShard", rpc_retire_shard, ALL("shard.manage")}, METHOD_UNARY, true},
	{{"pg_wiggle.v1.AuthService/CreateKey", rpc_create_key, MANAGER}, METHOD_UNARY, true},
	{{"pg_wiggle.v1.AuthService/AddCertificate", rpc_add_certificate, MANAGER}, METHOD_UNARY, true},
	{{"pg_wiggle.v1.AuthService/ListCredentials", rpc_list_credentials, MANAGER}, METHOD_UNARY, true},
	{{"pg_wiggle.v1.AuthService/GrantRole", rpc_grant_role, MANAGER}, METHOD_UNARY, true},
	{{"pg_wiggle.v1.AuthService/RevokeCredential", rpc_revoke_credential, MANAGER}, METHOD_UNARY, true},
	{{"pg_wiggle.v1.AuthService/PutRole", rpc_put_role, MANAGER}, METHOD_UNARY, true},
	{{"pg_wiggle.v1.AuthService/ListRoles", rpc_list_roles, MANAGER}, METHOD_UNARY, true},
	{{"pg_wiggle.v1.AuthService/DropRole", rpc_drop_role, MANAGER}, METHOD_UNARY, true},
	{{"grpc.health.v1.Health/Check", rpc_probe_check, OPEN}, METHOD_UNARY, false},
	{{"grpc.health.v1.Health/Watch", rpc_probe_watch, OPEN}, METHOD_WATCH, false},
	{{"grpc.reflection.v1.ServerReflection/ServerReflectionInfo", rpc_reflection, OPEN}, METHOD_CHAT, false},
	{{"grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", rpc_reflection, OPEN}, METHOD_CHAT, false},
};

const struct method *
method_find_standard(const char *path, size_t len, enum method_shape *shape, bool *grpc_only)
{
	for (size_t i = 0; i < sizeof(standard) / sizeof(standard[0]); i++)
	{
		const char *name = standard[i].method.name;

		if (len > 0 && *path == '/' && strlen(name) == len - 1 && memcmp(name, path + 1, len - 1) == 0)
		{
			*shape = standard[i].shape;
			*grpc_only = !standard[i].open;
			return &standard[i].method;
		}
	}
	return NULL;
}

const char *
method_name(size_t i)
{
	size_t		ours = sizeof(methods) / sizeof(methods[0]);

	if (i < ours)
		return methods[i].name;
	return i - ours < sizeof(standard) / sizeof(standard[0]) ? standard[i - ours].method.name : NULL;
}
