/*
 * tour.c
 *	  Which of a database's servers is the primary of today.
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

/* One attempt, which goes to every place of a host since none will do. */
struct visit
{
	struct tour *tour;
	struct link link;
};

struct tour
{
	const struct target *target;
	struct visit *visits;		/* one for each host, all at once: a silent one takes its time */
	int			left;			/* that have not ended */
	struct deadline end;		/* the links' owner calls: it ends on a turn of its own */
	struct target_place best;	/* the one with the latest history */
	long		timeline;		/* its; 0 = no place has answered */
	uint64_t	wal;
	void		(*done) (void *owner);
	void	   *owner;
};

static bool
visit_greet(struct link *link)
{
	return PQsendQuery(link->conn, statement_text(SQL_TIMELINE));
}

static bool
visit_greeted(struct link *link, const PGresult *result, struct wig_error *err)
{
	struct tour *tour = ((struct visit *) link->owner)->tour;
	long		timeline = strtol(PQgetvalue(result, 0, 0), NULL, 10);
	uint64_t	wal = strtoull(PQgetvalue(result, 0, 1), NULL, 10);

	if (timeline > tour->timeline || (timeline == tour->timeline && wal > tour->wal))
	{
		tour->timeline = timeline;
		tour->wal = wal;
		tour->best = *link_place(link);
	}
	return wig_fail(err, "visited");
}

static void
finish(struct deadline *deadline)
{
	struct tour *tour = deadline_owner(deadline, struct tour, end);

	tour_stop(tour);
	if (tour->timeline > 0)
		target_prefer(tour->target, &tour->best);
	tour->done(tour->owner);
}

/* Whoever connects afterwards says why a place did not answer. */
static void
visit_failed(struct link *link, const char *sqlstate, const char *why)
{
	struct tour *tour = ((struct visit *) link->owner)->tour;

	(void) sqlstate;
	(void) why;
	link_stop(link);
	if (--tour->left == 0)
		deadline_set(&tour->end, loop_now(), finish);
}

static const struct link_ops visit_ops = {
	.greet = visit_greet,
	.greeted = visit_greeted,
	.failed = visit_failed,
};

struct tour *
tour_create(void (*done) (void *owner), void *owner)
{
	struct tour *tour = xcalloc(1, sizeof(*tour));

	tour->done = done;
	tour->owner = owner;
	return tour;
}

void
tour_start(struct tour *tour, const struct target *target)
{
	tour_stop(tour);
	tour->target = target;
	tour->timeline = 0;
	tour->wal = 0;
	tour->left = target->nhosts;
	tour->visits = xcalloc((size_t) target->nhosts, sizeof(*tour->visits));
	for (int i = 0; i < target->nhosts; i++)
	{
		struct visit *visit = &tour->visits[i];

		visit->tour = tour;
		link_init(&visit->link, &visit_ops, target, "tour", visit);
		visit->link.only = i;
		/* where there is one server alone nothing is to be found out */
		visit->link.fewest = target->nhosts == 1 ? 2 : 0;
		link_start(&visit->link);
	}
}

void
tour_stop(struct tour *tour)
{
	deadline_clear(&tour->end);
	for (int i = 0; tour->visits != NULL && i < tour->target->nhosts; i++)
		link_stop(&tour->visits[i].link);
	free(tour->visits);
	tour->visits = NULL;
}
