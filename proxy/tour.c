/*
 * tour.c
 *	  Which of a database's hosts is the primary of today.
 *
 * That is the one with the latest history: a former primary writes an older timeline, and
 * an older copy of the data directory has written less of the same.
 */
#include <stdlib.h>

#include "buf.h"
#include "loop.h"
#include "statement.h"
#include "target.h"
#include "tour.h"

struct tour
{
	struct link link;			/* to one host after the other */
	struct deadline next;		/* the link's owner calls: it is moved on a turn of its own */
	int			best;			/* host with the latest history */
	long		timeline;
	uint64_t	wal;
	void		(*done) (void *owner, int host);
	void	   *owner;
};

static void
visit_next(struct deadline *deadline)
{
	struct tour *tour = deadline_owner(deadline, struct tour, next);

	link_stop(&tour->link);
	if (++tour->link.first < tour->link.target->nhosts)
		link_start(&tour->link);
	else
		tour->done(tour->owner, tour->best);
}

static void
move_on(struct link *link)
{
	struct tour *tour = link->owner;

	deadline_set(&tour->next, loop_now(), visit_next);
}

static bool
tour_greet(struct link *link)
{
	return PQsendQuery(link->conn, statement_text(SQL_TIMELINE));
}

static bool
tour_greeted(struct link *link, const PGresult *result, struct wig_error *err)
{
	struct tour *tour = link->owner;
	long		timeline = strtol(PQgetvalue(result, 0, 0), NULL, 10);
	uint64_t	wal = strtoull(PQgetvalue(result, 0, 1), NULL, 10);

	(void) err;
	if (timeline > tour->timeline || (timeline == tour->timeline && wal > tour->wal))
	{
		tour->timeline = timeline;
		tour->wal = wal;
		tour->best = link->first;
	}
	return true;
}

static void
tour_ready(struct link *link)
{
	(void) link;
}

static void
tour_down(struct link *link, const char *why)
{
	(void) why;
	move_on(link);
}

/* A standby, or one that is down: whoever connects afterwards says why. */
static void
tour_failed(struct link *link, const char *sqlstate, const char *why)
{
	(void) sqlstate;
	(void) why;
	move_on(link);
}

static const struct link_ops tour_ops = {
	.greet = tour_greet,
	.greeted = tour_greeted,
	.up = move_on,
	.ready = tour_ready,
	.down = tour_down,
	.failed = tour_failed,
};

struct tour *
tour_create(const struct target *target, void (*done) (void *owner, int host), void *owner)
{
	struct tour *tour = xcalloc(1, sizeof(*tour));

	tour->done = done;
	tour->owner = owner;
	link_init(&tour->link, &tour_ops, target, "tour", tour);
	tour->link.one_host = true;
	return tour;
}

void
tour_start(struct tour *tour, const struct target *target)
{
	tour->link.target = target;
	tour->best = 0;
	tour->timeline = 0;
	tour->wal = 0;
	tour->link.first = 0;
	link_start(&tour->link);
}

void
tour_stop(struct tour *tour)
{
	deadline_clear(&tour->next);
	link_stop(&tour->link);
}
