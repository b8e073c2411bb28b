/*
 * settings_topology.c
 *	  The topology that the settings name.
 */
#include <stdlib.h>

#include "config.h"
#include "conninfo.h"
#include "settings_topology.h"
#include "topology_source.h"

static const char *
variable(const char *name)
{
	return getenv(name);
}

struct topology *
settings_topology(struct wig_error *err)
{
	struct topology_source source = {
		.document = config.storage_topology,
		.url = config.jdbc_url,
		.user = config.jdbc_user,
		.password = config.jdbc_password,
		.pool = (int) config.jdbc_pool_size,
		.replica_urls = config.jdbc_replica_urls,
		.replica_pool = (int) config.jdbc_replica_pool_size,
		.max_replica_lag_ms = config.jdbc_max_replica_lag_ms,
		.replica_fallback = (enum replica_fallback) config.jdbc_replica_fallback,
		.replica_settings = config_given("jdbc-replica-pool-size") ||
		config_given("jdbc-max-replica-lag-millis") || config_given("jdbc-replica-fallback"),
		.variable = variable,
		.parameters = conninfo_parameters(),
	};
	struct topology *topology;

	topology = topology_read(&source, err);
	if (topology == NULL || conninfo_check(topology, err))
		return topology;
	topology_free(topology);
	return NULL;
}
