/*
 * feed_watch.c
 *	  Who waits for entries of the event logs, and whether there are any.
 */
#include <stddef.h>
#include <stdlib.h>

#include "feed_watch.h"
#include "loop.h"
#include "shard.h"

/*
 * Not more often than this, however often a log grows behind an open transaction;
 * and at least so often, since an entry becomes visible without a word when the
 * transaction that held it back is rolled back.
 */
#define PAUSE_MS		20
#define SAFETY_MS		2000

/* How far a shard's log is final. */
struct horizon
{
	struct question question;
	bool		asked;
	bool		hinted;			/* since it was last asked */
	uint64_t	asked_at;
	int64_t		at;				/* as last told, 0 = not known */
	struct deadline next;
};

static struct horizon horizons[TOPOLOGY_MAX_SHARDS];	/* by slot */
static struct feed_watch *first;
static struct feed_watch *last;
static uint64_t news;

static void ask(struct deadline *deadline);

static void
arm(struct horizon *horizon)
{
	if (first != NULL && !horizon->asked)
		deadline_set(&horizon->next, horizon->asked_at + (horizon->hinted ? PAUSE_MS : SAFETY_MS), ask);
}

void
feed_watch_wait(struct feed_watch *watch, void (*woken) (struct feed_watch *watch))
{
	watch->woken = woken;
	watch->waiting = true;
	watch->since = news;
	watch->prev = last;
	watch->next = NULL;
	*(last ? &last->next : &first) = watch;
	last = watch;
	for (int slot = 0; slot < shard_slots(); slot++)
		arm(&horizons[slot]);
}

void
feed_watch_leave(struct feed_watch *watch)
{
	if (!watch->waiting)
		return;
	watch->waiting = false;
	*(watch->prev ? &watch->prev->next : &first) = watch->next;
	*(watch->next ? &watch->next->prev : &last) = watch->prev;
}

static void
wake_all(void)
{
	news++;

	/* whoever waits again stands behind those who have not been woken yet */
	while (first != NULL && first->since != news)
	{
		struct feed_watch *watch = first;

		feed_watch_leave(watch);
		watch->woken(watch);
	}
}

static void
told(struct question *question, const PGresult *result, const struct refusal *refusal)
{
	struct horizon *horizon = (struct horizon *) question;
	int64_t		was = horizon->at;

	(void) refusal;
	horizon->asked = false;
	horizon->at = result == NULL ? 0 : strtoll(PQgetvalue(result, 0, 0), NULL, 10);
	if (horizon->at != was && horizon->at != 0)
		wake_all();
	arm(horizon);
}

static void
ask(struct deadline *deadline)
{
	struct horizon *horizon = deadline_owner(deadline, struct horizon, next);

	if (first == NULL)
		return;
	horizon->hinted = false;
	horizon->asked_at = loop_now();
	horizon->question = (struct question) {.statement = SQL_HORIZON, .done = told};
	horizon->asked = shard_ask(shard_by_slot((int) (horizon - horizons)), &horizon->question) == SUBMIT_OK;

	/* what it has when it is back is news */
	if (!horizon->asked)
		horizon->at = 0;
	arm(horizon);
}

void
feed_watch_hint(int slot)
{
	horizons[slot].hinted = true;
	arm(&horizons[slot]);
}

int64_t
feed_watch_horizon(int slot)
{
	return horizons[slot].at;
}

uint64_t
feed_watch_news(void)
{
	return news;
}

struct feed_watch *
feed_watch_first(void)
{
	return first;
}

void
feed_watch_stop(void)
{
	for (int slot = 0; slot < shard_slots(); slot++)
		deadline_clear(&horizons[slot].next);
}
