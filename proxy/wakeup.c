/*
 * wakeup.c
 *	  The session of a shard that hears what happened there.
 *
 * A firewall may drop an idle session without a word, and a listener never
 * sends. So it asks something from time to time and expects an answer.
 */
#include <stdio.h>
#include <string.h>

#include "buf.h"
#include "feed_watch.h"
#include "log.h"
#include "loop.h"
#include "member.h"
#include "metrics.h"
#include "outbox.h"
#include "poller.h"
#include "position.h"
#include "shard.h"
#include "wakeup.h"

#define PROBE_MS		20000
#define PROBE_WAIT_MS	10000

struct wakeup
{
	struct shard *shard;
	struct link link;
	struct deadline probe;
	struct metric *heard;
};

static void probe(struct deadline *deadline);

static void
silent(struct deadline *deadline)
{
	struct wakeup *wakeup = deadline_owner(deadline, struct wakeup, probe);

	link_next_host(&wakeup->link);
	link_break(&wakeup->link, "the database does not answer on the wake-up session");
	shard_doubt(wakeup->shard);
}

static void
ask(struct wakeup *wakeup, enum statement statement)
{
	if (!PQsendQuery(wakeup->link.conn, statement_text(statement)))
	{
		link_break(&wakeup->link, PQerrorMessage(wakeup->link.conn));
		return;
	}
	deadline_set(&wakeup->probe, loop_now() + PROBE_WAIT_MS, silent);
	link_flush(&wakeup->link);
}

static void
probe(struct deadline *deadline)
{
	ask(deadline_owner(deadline, struct wakeup, probe), SQL_PROBE);
}

static bool
wakeup_greet(struct link *link)
{
	const struct wakeup *wakeup = link->owner;
	const char *const values[] = {"5000", "20000", position_known(wakeup->shard)};

	return PQsendQueryParams(link->conn, statement_text(SQL_SESSION_SIDE), 3, NULL, values, NULL, NULL, 0);
}

static bool
wakeup_greeted(struct link *link, const PGresult *result, struct wig_error *err)
{
	struct wakeup *wakeup = link->owner;

	return shard_check_identity(wakeup->shard, result, err);
}

static void
wakeup_up(struct link *link)
{
	struct wakeup *wakeup = link->owner;

	shard_connected(wakeup->shard);
	ask(wakeup, SQL_LISTEN);
}

static bool
is_home(const struct wakeup *wakeup)
{
	return wakeup->shard->index == shard_topology()->home;
}

/* Answers of LISTEN and of probes, then what has been notified. */
static void
wakeup_ready(struct link *link)
{
	struct wakeup *wakeup = link->owner;
	PGnotify   *notify;
	bool		answered = false;

	while (PQstatus(link->conn) == CONNECTION_OK && !PQisBusy(link->conn))
	{
		PGresult   *result = PQgetResult(link->conn);

		if (result == NULL)
			break;
		if (PQresultStatus(result) == PGRES_COMMAND_OK)
		{
			/*
			 * With the last of them the LISTENs are committed: what was notified
			 * before is lost, so look at everything.
			 */
			poller_wake_all(wakeup->shard->slot);
			feed_watch_hint(wakeup->shard->slot);
			if (is_home(wakeup))
			{
				outbox_look();
				member_look();
			}
			answered = true;
		}
		else if (PQresultStatus(result) == PGRES_TUPLES_OK)
			answered = true;
		PQclear(result);
	}
	while ((notify = PQnotifies(link->conn)) != NULL)
	{
		metric_add(wakeup->heard, 1);
		if (strcmp(notify->relname, "wiggle_event") == 0)
			feed_watch_hint(wakeup->shard->slot);
		else if (strcmp(notify->relname, "wiggle_outbox") == 0)
			outbox_look();
		else if (strcmp(notify->relname, "wiggle_members") == 0)
			member_look();
		else
			poller_wake(wakeup->shard->slot, notify->extra);
		PQfreemem(notify);
	}
	if (answered)
		deadline_set(&wakeup->probe, loop_now() + PROBE_MS, probe);
}

static void
wakeup_down(struct link *link, const char *why)
{
	struct wakeup *wakeup = link->owner;

	deadline_clear(&wakeup->probe);
	log_info("wakeup", "shard %d: wake-up session lost: %s", wakeup->shard->entry->id, why);
}

static void
wakeup_failed(struct link *link, const char *sqlstate, const char *why)
{
	struct wakeup *wakeup = link->owner;

	(void) sqlstate;
	log_debug("wakeup", "shard %d: cannot connect: %s", wakeup->shard->entry->id, why);
}

static const struct link_ops wakeup_ops = {
	.greet = wakeup_greet,
	.greeted = wakeup_greeted,
	.up = wakeup_up,
	.ready = wakeup_ready,
	.down = wakeup_down,
	.failed = wakeup_failed,
};

struct wakeup *
wakeup_create(struct shard *shard)
{
	struct wakeup *wakeup = xcalloc(1, sizeof(*wakeup));
	char		labels[32];

	snprintf(labels, sizeof(labels), "shard=\"%d\"", shard->entry->id);
	wakeup->shard = shard;
	wakeup->heard = metric_counter("wiggle_proxy_wakeups_total", labels,
								   "Notifications from the shard.");
	link_init(&wakeup->link, &wakeup_ops, shard->target, "wakeup", wakeup);
	return wakeup;
}

void
wakeup_start(struct wakeup *wakeup)
{
	link_start(&wakeup->link);
}

void
wakeup_hurry(struct wakeup *wakeup)
{
	link_hurry(&wakeup->link);
}

void
wakeup_stop(struct wakeup *wakeup)
{
	deadline_clear(&wakeup->probe);
	link_stop(&wakeup->link);
}

void
wakeup_aim(struct wakeup *wakeup)
{
	link_aim(&wakeup->link, wakeup->shard->target);
	if (link_up(&wakeup->link))
		link_break(&wakeup->link, "renewed for another url or role");
}

bool
wakeup_connected(const struct wakeup *wakeup)
{
	return link_up(&wakeup->link);
}
