/*
 * work.c
 *	  The outbound half, as main sees it.
 */
#include <stdlib.h>

#include "config.h"
#include "log.h"
#include "loop.h"
#include "member.h"
#include "outbox.h"
#include "poller.h"
#include "random.h"
#include "rpc_event.h"
#include "rpc_instance.h"
#include "shard.h"
#include "shards.h"
#include "topology.h"
#include "work.h"

static void (*tell_opened) (void);
static void (*tell_failed) (const char *reason);
static bool opened;
static int	serving;
static struct deadline patience;

static const char *
variable(const char *name)
{
	return getenv(name);
}

static void
open_once(void)
{
	if (opened)
		return;
	opened = true;
	deadline_clear(&patience);
	tell_opened();
}

static void
on_serving(void)
{
	if (++serving == shard_slots())
		open_once();
}

/* A shard refused after the start is told by its health and tried again. */
static void
on_refused(const char *reason)
{
	if (!opened)
		tell_failed(reason);
}

static void
waited_enough(struct deadline *deadline)
{
	(void) deadline;
	log_warn("work", "%d of %d shards can be used; the others are tried again until they can be",
			 serving, shard_slots());
	open_once();
}

bool
work_start(void (*on_opened) (void), void (*on_failed) (const char *reason), struct wig_error *err)
{
	struct topology_source source = {
		.document = config.storage_topology,
		.url = config.jdbc_url,
		.user = config.jdbc_user,
		.password = config.jdbc_password,
		.variable = variable,
	};
	struct topology *topology = topology_read(&source, err);

	if (topology == NULL)
		return false;
	tell_opened = on_opened;
	tell_failed = on_failed;
	srandom((unsigned) random_u64());
	poller_start();
	member_start();
	outbox_start();
	rpc_event_start();
	if (!shards_start(topology, on_serving, on_refused, err))
		return false;
	rpc_instance_start();
	deadline_set(&patience, loop_now() + (uint64_t) config.startup_timeout_ms, waited_enough);
	return true;
}

int
work_shard_count(void)
{
	return shard_slots();
}
