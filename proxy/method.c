/*
 * method.c
 *	  The RPCs that this server answers.
 */
#include <string.h>

#include "call.h"
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

/* The ones called most come first: the search is linear. */
static const struct method methods[] = {
	{"PollTasks", rpc_poll_tasks},
	{"ReportSteps", rpc_report_steps},
	{"CompleteTask", rpc_complete_task},
	{"HeartbeatTask", rpc_heartbeat_task},
	{"FailTask", rpc_fail_task},
	{"StartInstance", rpc_start_instance},
	{"GetInstance", rpc_get_instance},
	{"ListInstances", rpc_list_instances},
	{"AdvanceRun", rpc_advance_run},
	{"AdvanceMany", rpc_advance_many},
	{"PollEvents", rpc_poll_events},
	{"AckEvents", rpc_ack_events},
	{"ForgetConsumer", rpc_forget_consumer},
	{"SignalInstance", rpc_signal_instance},
	{"CancelInstance", rpc_cancel_instance},
	{"GetWorkflow", rpc_get_workflow},
	{"RegisterWorkflow", rpc_register_workflow},
	{"ListWorkflows", rpc_list_workflows},
	{"CreateSchedule", rpc_create_schedule},
	{"ListSchedules", rpc_list_schedules},
	{"DeleteSchedule", rpc_delete_schedule},
	{"GetStepStats", rpc_get_step_stats},
	{"GetBacklogCoverage", rpc_get_backlog_coverage},
	{"SearchInstances", rpc_search_instances},
	{"GetCluster", rpc_get_cluster},
	{"HealthCheck", rpc_health_check},
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

static const struct
{
	struct method method;
	enum method_shape shape;
	bool		open;			/* to Connect as well */
}			standard[] = {
	{{"pg_wiggle.v1.ShardService/ListShards", rpc_list_shards}, METHOD_UNARY, true},
	{{"pg_wiggle.v1.ShardService/RetireShard", rpc_retire_shard}, METHOD_UNARY, true},
	{{"grpc.health.v1.Health/Check", rpc_probe_check}, METHOD_UNARY, false},
	{{"grpc.health.v1.Health/Watch", rpc_probe_watch}, METHOD_WATCH, false},
	{{"grpc.reflection.v1.ServerReflection/ServerReflectionInfo", rpc_reflection}, METHOD_CHAT, false},
	{{"grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", rpc_reflection}, METHOD_CHAT, false},
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
