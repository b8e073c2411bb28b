/*
 * fleet.c
 *	  The proxies as home listed them last, and this one's share of each queue.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "bucket.h"
#include "buf.h"
#include "fleet.h"
#include "loop.h"

#define STALE_MS	60000

/* A poll of every queue tells the shard all shares, so they must be few. */
#define SHARES_MAX	256

static const struct
{
	const char *name;
	const char *text;
} states[FLEET_STATES] = {
	[FLEET_DIVIDES] = {"none", ""},
	[FLEET_OFF] = {"off", "WIGGLE_TASK_PARTITIONING is false"},
	[FLEET_UNREGISTERED] = {"unregistered", "home has not listed the members yet"},
	[FLEET_NAME_TAKEN] = {"name_taken", "another member bears this server's WIGGLE_NODE_NAME"},
	[FLEET_NOBODY] = {"no_members", "home lists no live member"},
	[FLEET_ABSENT] = {"absent", "this server is not among the live members that home lists"},
	[FLEET_STALE] = {"stale", "home has not listed the members for 60 s"},
	[FLEET_UNPOLLED] = {"unpolled", "home does not know yet that this server's workers poll the queue"},
};

/* One queue that a member's workers name. */
struct naming
{
	const char *queue;			/* of its polls */
	int			place;			/* among the members */
};

static bool on;
static void (*ask_for_beat) (void);

static struct fleet_node *nodes;
static json_t **node_polls;		/* while a list is read: of each node */
static int	nnodes;
static int	room;

static int	members;
static bool *polls_all;			/* by member's place: its workers poll every queue */
static int	own;				/* this proxy's place, -1: it is none */
static bool name_taken;

static struct fleet_queue *queues;
static int	nqueues;
static struct fleet_queue others;	/* the queues that nobody names */

static uint64_t listed_at;
static bool listed;

const char *
fleet_state_name(enum fleet_state state)
{
	return states[state].name;
}

const char *
fleet_state_text(enum fleet_state state)
{
	return states[state].text;
}

void
fleet_start(bool divides, void (*wants_beat) (void))
{
	on = divides;
	ask_for_beat = wants_beat;
}

/* ---- reading the list ---- */

static void
forget_queues(void)
{
	for (int i = 0; i < nqueues; i++)
		free(queues[i].name);
	free(queues);
	queues = NULL;
	nqueues = 0;
}

void
fleet_list_begin(void)
{
	for (int i = 0; i < nnodes; i++)
	{
		free(nodes[i].id);
		free(nodes[i].name);
	}
	nnodes = 0;
	forget_queues();
}

void
fleet_list_add(const struct fleet_node *node, const char *polls)
{
	if (nnodes == room)
	{
		room = room == 0 ? 16 : room * 2;
		nodes = xrealloc(nodes, (size_t) room * sizeof(*nodes));
		node_polls = xrealloc(node_polls, (size_t) room * sizeof(json_t *));
	}
	nodes[nnodes] = *node;
	nodes[nnodes].id = xstrdup(node->id);
	nodes[nnodes].name = xstrdup(node->name);
	node_polls[nnodes++] = node->member ? json_loads(polls, 0, NULL) : NULL;
}

static int
compare_nodes(const void *a, const void *b)
{
	const struct fleet_node *x = a;
	const struct fleet_node *y = b;

	return strcmp(x->id, y->id);
}

/* By id, each with its polls. */
static void
sort_nodes(void)
{
	struct pair
	{
		struct fleet_node node;
		json_t	   *polls;
	}		   *pairs = xcalloc((size_t) nnodes + 1, sizeof(*pairs));

	for (int i = 0; i < nnodes; i++)
		pairs[i] = (struct pair) {nodes[i], node_polls[i]};
	qsort(pairs, (size_t) nnodes, sizeof(*pairs), compare_nodes);
	for (int i = 0; i < nnodes; i++)
	{
		nodes[i] = pairs[i].node;
		node_polls[i] = pairs[i].polls;
	}
	free(pairs);
}

static void
place_members(const char *self)
{
	int			place = 0;

	members = 0;
	own = -1;
	name_taken = false;
	for (int i = 0; i < nnodes; i++)
		members += nodes[i].member;
	for (int i = 0; i < nnodes; i++)
	{
		bool		mine = strcmp(nodes[i].id, self) == 0;

		nodes[i].start = nodes[i].end = 0;
		name_taken = name_taken || (mine && !nodes[i].partition);
		if (!nodes[i].member)
			continue;
		if (mine)
			own = place;
		wig_bucket_range(place++, members, &nodes[i].start, &nodes[i].end);
	}
}

/* What the members' workers name; polls_all is set on the way. The number of namings. */
static int
collect_namings(struct naming **namings)
{
	int			n = 0;
	int			cap = 0;
	int			place = -1;

	free(polls_all);
	polls_all = xcalloc((size_t) members + 1, sizeof(*polls_all));
	*namings = NULL;
	for (int i = 0; i < nnodes; i++)
	{
		size_t		p;
		json_t	   *poll;

		if (!nodes[i].member)
			continue;
		place++;
		json_array_foreach(node_polls[i], p, poll)
		{
			json_t	   *names = json_object_get(poll, "queues");
			size_t		q;
			json_t	   *name;

			if (json_is_array(names) && json_array_size(names) == 0)
				polls_all[place] = true;
			json_array_foreach(names, q, name)
			{
				if (!json_is_string(name))
					continue;
				if (n == cap)
				{
					cap = cap == 0 ? 64 : cap * 2;
					*namings = xrealloc(*namings, (size_t) cap * sizeof(**namings));
				}
				(*namings)[n++] = (struct naming) {json_string_value(name), place};
			}
		}
	}
	return n;
}

static int
compare_namings(const void *a, const void *b)
{
	const struct naming *x = a;
	const struct naming *y = b;
	int			cmp = strcmp(x->queue, y->queue);

	return cmp != 0 ? cmp : x->place - y->place;
}

/* Split a queue among those who poll every queue and these, who name it. */
static void
split_queue(const struct naming *namings, int n, struct fleet_queue *queue)
{
	int			before = 0;
	int			all = 0;
	int			next = 0;

	queue->polled = false;
	queue->start = queue->end = 0;
	for (int place = 0; place < members; place++)
	{
		bool		polls = polls_all[place];

		for (; namings != NULL && next < n && namings[next].place <= place; next++)
			polls = polls || namings[next].place == place;
		if (!polls)
			continue;
		all++;
		before += place < own;
		queue->polled = queue->polled || place == own;
	}
	if (queue->polled)
		wig_bucket_range(before, all, &queue->start, &queue->end);
}

static void
split_queues(void)
{
	struct naming *namings;
	int			n = collect_namings(&namings);

	if (n > 0)
		qsort(namings, (size_t) n, sizeof(*namings), compare_namings);
	queues = xcalloc((size_t) n + 1, sizeof(*queues));
	for (int i = 0, next; i < n; i = next)
	{
		for (next = i + 1; next < n && strcmp(namings[next].queue, namings[i].queue) == 0; next++)
			;
		queues[nqueues].name = xstrdup(namings[i].queue);
		split_queue(&namings[i], next - i, &queues[nqueues++]);
	}
	split_queue(NULL, 0, &others);
	free(namings);
}

void
fleet_list_end(const char *self)
{
	sort_nodes();
	place_members(self);
	split_queues();
	for (int i = 0; i < nnodes; i++)
		json_decref(node_polls[i]);
	listed = true;
	listed_at = loop_now();
}

/* ---- what this proxy takes ---- */

enum fleet_state
fleet_state(void)
{
	if (!on)
		return FLEET_OFF;
	if (!listed)
		return FLEET_UNREGISTERED;
	if (loop_now() - listed_at > STALE_MS)
		return FLEET_STALE;
	if (name_taken)
		return FLEET_NAME_TAKEN;
	if (members == 0)
		return FLEET_NOBODY;
	return own < 0 ? FLEET_ABSENT : FLEET_DIVIDES;
}

static int
compare_name(const void *name, const void *queue)
{
	return strcmp(name, ((const struct fleet_queue *) queue)->name);
}

bool
fleet_share(const char *queue, int *start, int *end)
{
	const struct fleet_queue *found = NULL;

	if (queue != NULL && nqueues > 0)
		found = bsearch(queue, queues, (size_t) nqueues, sizeof(*queues), compare_name);
	if (found == NULL)
		found = &others;
	*start = found->start;
	*end = found->end;
	return found->polled;
}

enum fleet_state
fleet_divides(const char *const *names, int n)
{
	enum fleet_state state = fleet_state();
	int			start;
	int			end;
	int			shares = 0;

	if (state != FLEET_DIVIDES)
		return state;
	for (int i = 0; i < n; i++)
		shares += fleet_share(names[i], &start, &end);
	if (n == 0)
		shares = others.polled;
	if (shares < n || shares == 0)
		ask_for_beat();
	if (n == 0 && nqueues > SHARES_MAX)
		return FLEET_UNPOLLED;
	return shares > 0 ? FLEET_DIVIDES : FLEET_UNPOLLED;
}

bool
fleet_takes(const char *queue, const int *buckets, int n)
{
	int			start;
	int			end;

	if (fleet_state() != FLEET_DIVIDES || !fleet_share(queue, &start, &end))
		return true;
	for (int i = 0; i < n; i++)
	{
		if (buckets[i] >= start && buckets[i] < end)
			return true;
	}
	return false;
}

/* ---- for people ---- */

const struct fleet_node *
fleet_nodes(int *n)
{
	*n = nnodes;
	return nodes;
}

const struct fleet_queue *
fleet_queues(int *n)
{
	*n = nqueues;
	return queues;
}

int64_t
fleet_age_ms(void)
{
	return listed ? (int64_t) (loop_now() - listed_at) : -1;
}
