/*
 * work.c
 *	  The outbound half, as main sees it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "admission.h"
#include "config.h"
#include "drain.h"
#include "home_clock.h"
#include "log.h"
#include "loop.h"
#include "member.h"
#include "outbox.h"
#include "poller.h"
#include "position.h"
#include "principal.h"
#include "random.h"
#include "reload.h"
#include "rpc_event.h"
#include "rpc_probe.h"
#include "settings_topology.h"
#include "setup.h"
#include "shard.h"
#include "shards.h"
#include "watch.h"
#include "work.h"

/* How long a refused start waits for what the other shards have to say. */
#define REFUSED_GRACE_MS 2000

#define BUSY_MORE_MS 500

/* An update that is done is followed by what takes moments: so many looks in a row must find nobody at work. */
#define QUIET_LOOKS	4

/* How soon after the first shard the port opens when no shard was there in time. */
#define NONE_MORE_MS 1000

static void (*tell_opened) (void);
static void (*tell_failed) (const char *reason);
static bool decided;			/* opened or failed */
static int	serving;
static bool hurries;			/* does not wait for the shards that have not been heard any more */
static struct deadline patience;

static void patience_over(struct deadline *deadline);

/* Those that no process may start with: the topology is wrong about them. */
static int
refused_shards(void)
{
	int			n = 0;

	for (int slot = 0; slot < shard_slots(); slot++)
		n += shard_by_slot(slot)->refused;
	return n;
}

/* Is it known of every shard whether it can be used? One that is left out keeps nobody from starting. */
static bool
all_are_heard(void)
{
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		const struct shard *shard = shard_by_slot(slot);

		if (!shard->told && !shard->refused && !shard->left_out)
			return false;
	}
	return true;
}

/* Nobody waits for these any more: without them all is not set up. */
static void
name_missing(void)
{
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		const struct shard *shard = shard_by_slot(slot);
		const char *problem = setup_problem(shard->setup);

		if (!shard->told && !shard->refused && !shard->left_out)
			log_error("work", "shard %d (%s) was not set up: %s", shard->entry->id, target_name(shard->target),
					  *problem == '\0' ? "it was not reached in time" : problem);
	}
}

static void
decide(void)
{
	char		reason[96];

	decided = true;
	admission_decided();
	deadline_clear(&patience);
	snprintf(reason, sizeof(reason), "%d of %d shards cannot be used as they are", refused_shards(), shard_slots());
	if (config.migrate_only && serving < shard_slots())
	{
		name_missing();
		snprintf(reason, sizeof(reason), "%d of %d shards could not be set up", shard_slots() - serving, shard_slots());
		tell_failed(reason);
	}
	else if (refused_shards() > 0)
		tell_failed(reason);
	else
	{
		if (serving < shard_slots() && !config.migrate_only)
			log_warn("work", "%d of %d shards can be used; the others are tried again until they can be",
					 serving, shard_slots());
		if (!config.migrate_only)
			member_tell_topology();
		tell_opened();
		reload_open();
	}
}

/*
 * Home must have said what time it is, since by the generation of its own clock a server would
 * mint on other shards, and have taken the topology over. Who only sets up mints nothing, and
 * never asks.
 */
static void
decide_when_all_are_heard(void)
{
	if (decided || (!all_are_heard() && !hurries))
		return;
	if (refused_shards() > 0 || config.migrate_only || (serving > 0 && member_topology_told()))
		decide();
	else if (home_clock_known())
		member_tell_topology();
}

/* Later nothing that serves is closed for it. */
static void
on_topology_refused(const char *why)
{
	if (decided)
	{
		log_error("topology", "home was told nothing of this server's topology, which is refused as a whole: %s", why);
		return;
	}
	decided = true;
	admission_decided();
	deadline_clear(&patience);
	tell_failed(why);
}

static void
on_serving(void)
{
	serving++;
	decide_when_all_are_heard();
}

/* A shard refused after the start, or left out at any time, is told by its health and tried again. */
static void
on_refused(void)
{
	uint64_t	grace = loop_now() + REFUSED_GRACE_MS;

	if (decided)
		return;
	decide_when_all_are_heard();
	if (!decided && refused_shards() > 0 && patience.when > grace)
		deadline_set(&patience, grace, patience_over);
}

static bool
any_busy(void)
{
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		if (setup_busy(shard_by_slot(slot)->setup))
			return true;
	}
	return false;
}

static void
patience_over(struct deadline *deadline)
{
	static bool told_none;
	static int	quiet;

	/* an update is not cut off, however long it takes */
	quiet = any_busy() ? 0 : quiet + 1;
	if (config.migrate_only && quiet < QUIET_LOOKS)
	{
		deadline_set(deadline, loop_now() + BUSY_MORE_MS, patience_over);
		return;
	}
	/* An open port says that there is somebody to talk to: who probes it alone must not be told so yet. */
	if (refused_shards() == 0 && serving == 0 && !config.migrate_only)
	{
		if (!told_none)
			log_warn("work", "%d of %d shards can be used; the port for clients stays closed until one can be",
					 serving, shard_slots());
		told_none = true;
		deadline_set(deadline, loop_now() + NONE_MORE_MS, patience_over);
		return;
	}
	if (refused_shards() == 0 && !config.migrate_only && home_clock_known() && !hurries)
	{
		/* what home has to say about the topology may still come before the port opens */
		hurries = true;
		deadline_set(deadline, loop_now() + REFUSED_GRACE_MS, patience_over);
		decide_when_all_are_heard();
		return;
	}
	decide();
}

bool
work_start(void (*on_opened) (void), void (*on_failed) (const char *reason), struct wig_error *err)
{
	struct topology *topology = settings_topology(err);

	if (topology == NULL)
		return false;
	tell_opened = on_opened;
	tell_failed = on_failed;
	srandom((unsigned) random_u64());
	rpc_probe_open();
	poller_start();
	member_start(decide_when_all_are_heard, on_topology_refused, on_failed);
	outbox_start();
	watch_start();
	position_start();
	rpc_event_start();
	if (!shards_start(topology, on_serving, on_refused, err))
		return false;
	principal_start();
	reload_start(config.storage_topology, settings_topology);
	deadline_set(&patience, loop_now() + (uint64_t) config.startup_timeout_ms, patience_over);
	return true;
}

void
work_reload(void)
{
	reload_now("SIGHUP");
}

int
work_shard_count(void)
{
	return shard_slots();
}
