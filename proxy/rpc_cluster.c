/*
 * rpc_cluster.c
 *	  HealthCheck.
 */
#include "config.h"
#include "message.h"
#include "rpc_cluster.h"
#include "wiggle.pb-c.h"

void
rpc_health_check(struct call *call)
{
	Com__Wiggle__Proto__HealthStatus reply = COM__WIGGLE__PROTO__HEALTH_STATUS__INIT;

	reply.status = (char *) "UP";
	reply.node = (char *) config.node_name;
	message_reply(call, &reply.base);
}
