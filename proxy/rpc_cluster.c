/*
 * rpc_cluster.c
 *	  HealthCheck, GetCluster, and search, which is not there.
 */
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "inquiry.h"
#include "member.h"
#include "message.h"
#include "rpc_cluster.h"
#include "view.h"

typedef Com__Wiggle__Proto__ClusterMember ClusterMember;

void
rpc_health_check(struct call *call)
{
	Com__Wiggle__Proto__HealthStatus reply = COM__WIGGLE__PROTO__HEALTH_STATUS__INIT;

	reply.status = (char *) "UP";
	reply.node = (char *) config.node_name;
	reply.leader = member_leads();
	message_reply(call, &reply.base);
}

static void
view_member(const PGresult *result, int row, ClusterMember *member)
{
	com__wiggle__proto__cluster_member__init(member);
	member->id = PQgetvalue(result, row, NODE_ID);
	member->name = PQgetvalue(result, row, NODE_NAME);
	member->first_heartbeat = view_number(result, row, NODE_FIRST);
	member->last_heartbeat = view_number(result, row, NODE_LAST);
	member->workers = (int32_t) view_number(result, row, NODE_WORKERS);
	member->leader = strcmp(PQgetvalue(result, row, NODE_LEADER), "t") == 0;
	member->alive = strcmp(PQgetvalue(result, row, NODE_ALIVE), "t") == 0;
}

static void
answer_cluster(struct inquiry *inquiry, const PGresult *result)
{
	Com__Wiggle__Proto__ClusterView reply = COM__WIGGLE__PROTO__CLUSTER_VIEW__INIT;
	int			n = PQntuples(result);
	ClusterMember *members = xcalloc((size_t) n + 1, sizeof(*members));
	ClusterMember **pointers = xcalloc((size_t) n + 1, sizeof(*pointers));

	for (int row = 0; row < n; row++)
	{
		view_member(result, row, &members[row]);
		pointers[row] = &members[row];
		if (strcmp(members[row].id, member_id()) == 0)
			reply.leader = members[row].leader;
	}
	reply.self = (char *) member_id();
	reply.members = pointers;
	reply.n_members = (size_t) n;
	pending_reply(&inquiry->pending, &reply.base);
	free(members);
	free(pointers);
}

void
rpc_get_cluster(struct call *call)
{
	struct inquiry *inquiry = inquiry_open(call, &com__wiggle__proto__empty__descriptor, answer_cluster);

	if (inquiry == NULL)
		return;
	inquiry->question.statement = SQL_NODES;
	inquiry_ask_home(inquiry);
}

void
rpc_search_instances(struct call *call)
{
	call_fail(call, GRPC_FAILED_PRECONDITION, "search is not enabled: give a shard the search role, or set"
			  " WIGGLE_SEARCH_ENABLED=true on a single database");
}
