/*
 * drain.c
 *	  The orderly end of the process.
 */
#include <stdlib.h>

#include "config.h"
#include "drain.h"
#include "log.h"
#include "loop.h"

#define MAX_HOOKS	16

static const struct drain_hook *hooks[MAX_HOOKS];
static int	nhooks;
static bool started;
static bool ended;
static int	status;
static struct deadline grace;
static uint64_t started_at;

void
drain_register(const struct drain_hook *hook)
{
	if (nhooks == MAX_HOOKS)
		abort();
	hooks[nhooks++] = hook;
}

static void
end(int exit_status)
{
	ended = true;
	status = exit_status;
	deadline_clear(&grace);
	for (int i = nhooks - 1; i >= 0; i--)
		if (hooks[i]->stop != NULL)
			hooks[i]->stop();
	uv_stop(loop_get());
}

static const char *
first_busy(void)
{
	for (int i = 0; i < nhooks; i++)
		if (hooks[i]->idle != NULL && !hooks[i]->idle())
			return hooks[i]->name;
	return NULL;
}

static void
look(void)
{
	if (!started || ended || first_busy() != NULL)
		return;
	log_info("drain", "finished after %llu ms", (unsigned long long) (loop_now() - started_at));
	end(0);
}

static void
grace_over(struct deadline *d)
{
	const char *busy = first_busy();

	(void) d;
	if (ended)
		return;
	log_warn("drain", "the grace period is over, work in flight is cut off (%s)", busy != NULL ? busy : "none");
	end(busy != NULL ? 1 : 0);
}

void
drain_begin(const char *reason)
{
	if (ended)
		return;
	if (started)
	{
		log_warn("drain", "%s again: not waiting any longer", reason);
		end(first_busy() != NULL ? 1 : 0);
		return;
	}
	log_info("drain", "%s: no new work, finishing what is in flight", reason);
	started = true;
	started_at = loop_now();
	loop_turn(TURN_END, look);
	deadline_set(&grace, started_at + (uint64_t) config.drain_grace_ms, grace_over);
	for (int i = 0; i < nhooks; i++)
		if (hooks[i]->begin != NULL)
			hooks[i]->begin();
}

bool
drain_started(void)
{
	return started;
}

int
drain_status(void)
{
	return status;
}
