/*
 * fleet.h
 *	  The proxies as home listed them last, and this one's share of each queue.
 *
 * Members are those that divide the tasks (WIGGLE_TASK_PARTITIONING) and were heard from
 * within 60 s. A queue's buckets (bucket.h) are split among the members whose workers poll
 * it, in order of their ids: all that have read the same list agree. A proxy without a
 * share takes from the whole queue. No I/O: member.c tells what home said.
 */
#ifndef WIGGLE_PROXY_FLEET_H
#define WIGGLE_PROXY_FLEET_H

#include <stdbool.h>
#include <stdint.h>

/* What this proxy takes from a queue; all but the first mean everything. */
enum fleet_state
{
	FLEET_DIVIDES,				/* its share */
	FLEET_OFF,					/* WIGGLE_TASK_PARTITIONING is false */
	FLEET_UNREGISTERED,			/* home has not listed the members yet */
	FLEET_NAME_TAKEN,			/* another member bears this one's name */
	FLEET_NOBODY,				/* no member is live */
	FLEET_ABSENT,				/* others are, this one is not among them */
	FLEET_STALE,				/* the list is older than 60 s */
	FLEET_UNPOLLED				/* home does not know yet that it polls the queue */
};
#define FLEET_STATES (FLEET_UNPOLLED + 1)

/* "off", "unregistered", …: a metric's label. And a sentence for people. */
extern const char *fleet_state_name(enum fleet_state state);
extern const char *fleet_state_text(enum fleet_state state);

struct fleet_node
{
	char	   *id;
	char	   *name;
	int64_t		first_ms;		/* heartbeats, by home's clock */
	int64_t		last_ms;
	int			workers;
	bool		alive;			/* heard from lately enough for GetCluster */
	bool		leader;
	bool		partition;		/* divides the tasks */
	bool		member;			/* does, and was heard from within 60 s */
	int			start;			/* of the members: the share of a queue that all of them poll */
	int			end;
};

struct fleet_queue
{
	char	   *name;
	int			start;			/* this proxy's share */
	int			end;
	bool		polled;			/* by its workers */
};

/* Once; wants_beat() is called when home should hear what the workers poll for. */
extern void fleet_start(bool divides, void (*wants_beat) (void));

/*
 * Home's list: begin, each node with the JSON of what its workers poll for, end. What
 * node points to is copied. self is this process's id.
 */
extern void fleet_list_begin(void);
extern void fleet_list_add(const struct fleet_node *node, const char *polls);
extern void fleet_list_end(const char *self);

/* Does this proxy divide the tasks, and if not why. */
extern enum fleet_state fleet_state(void);

/* The same for a poll of these queues (none: every queue): has it a share of any of them? */
extern enum fleet_state fleet_divides(const char *const *names, int n);

/* This proxy's share; false: all of it. queue NULL: of those that nobody names. */
extern bool fleet_share(const char *queue, int *start, int *end);

/* Is any of these buckets of the queue in what this proxy takes of it? */
extern bool fleet_takes(const char *queue, const int *buckets, int n);

/* By id, and by name; valid until the next list. */
extern const struct fleet_node *fleet_nodes(int *n);
extern const struct fleet_queue *fleet_queues(int *n);

/* Milliseconds since the list was read; -1: it never was. */
extern int64_t fleet_age_ms(void);

#endif							/* WIGGLE_PROXY_FLEET_H */
