/*
 * roster.c
 *	  Who has polled this proxy lately, and for what.
 */
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "config.h"
#include "loop.h"
#include "roster.h"

#define BUCKETS			4096	/* a power of two */
#define POLLERS_MAX		20000

/* What a heartbeat carries at most. */
#define POLLS_MAX		2000
#define NAMES_MAX		20000

struct poller
{
	struct poller *chain;
	struct poller *older;		/* by the last poll */
	struct poller *newer;
	struct subscription *subscription;
	uint64_t	until;			/* loop time */
	int			open;			/* polls that wait for their answers */
	uint32_t	hash;
	char		worker_id[];
};

static struct poller *table[BUCKETS];
static struct poller *oldest;
static struct poller *newest;
static int	count;
static void (*on_less) (void);

static uint32_t
hash_of(const char *worker_id, size_t len, const struct subscription *subscription)
{
	uint32_t	hash = subscription->hash;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char) worker_id[i]) * 16777619u;
	return hash ^ (hash >> 15);
}

static void
unlink_age(struct poller *poller)
{
	*(poller->older ? &poller->older->newer : &oldest) = poller->newer;
	*(poller->newer ? &poller->newer->older : &newest) = poller->older;
}

static void
link_newest(struct poller *poller)
{
	poller->newer = NULL;
	poller->older = newest;
	*(newest ? &newest->newer : &oldest) = poller;
	newest = poller;
}

static void
drop(struct poller *poller)
{
	struct poller **at = &table[poller->hash & (BUCKETS - 1)];

	while (*at != poller)
		at = &(*at)->chain;
	*at = poller->chain;
	unlink_age(poller);
	poller->subscription->pollers--;
	subscription_unref(poller->subscription);
	free(poller);
	count--;
}

static void
expire(void)
{
	struct poller *next;

	for (struct poller *poller = oldest; poller != NULL; poller = next)
	{
		next = poller->newer;
		if (poller->until <= loop_now())
			drop(poller);
	}
}

/* NULL: it is not there. */
static struct poller *
find(const char *worker_id, size_t len, const struct subscription *subscription)
{
	struct poller *poller = table[hash_of(worker_id, len, subscription) & (BUCKETS - 1)];

	while (poller != NULL && (poller->subscription != subscription ||
							  strncmp(poller->worker_id, worker_id, len) != 0 || poller->worker_id[len] != '\0'))
		poller = poller->chain;
	return poller;
}

/* One that is not linked by age yet. */
static struct poller *
add(const char *worker_id, size_t len, struct subscription *subscription)
{
	struct poller *poller;

	if (count >= POLLERS_MAX)
		drop(oldest);
	poller = xcalloc(1, sizeof(*poller) + len + 1);
	memcpy(poller->worker_id, worker_id, len);
	poller->hash = hash_of(worker_id, len, subscription);
	poller->subscription = subscription;
	subscription->refs++;
	subscription->pollers++;
	poller->chain = table[poller->hash & (BUCKETS - 1)];
	table[poller->hash & (BUCKETS - 1)] = poller;
	count++;
	return poller;
}

void
roster_note(const char *worker_id, struct subscription *subscription, int64_t wait_ms)
{
	size_t		len = strlen(worker_id);
	struct poller *poller = find(worker_id, len, subscription);

	if (poller != NULL)
		unlink_age(poller);
	else
		poller = add(worker_id, len, subscription);
	link_newest(poller);
	poller->open++;
	poller->until = loop_now() + (uint64_t) (wait_ms + config.poller_ttl_ms);

	/* one a poll keeps the roster from growing with workers that never come back */
	if (oldest->until <= loop_now())
		drop(oldest);
}

void
roster_end(const char *worker_id, size_t worker_len, struct subscription *subscription, bool answered)
{
	struct poller *poller = find(worker_id, worker_len, subscription);
	bool		last = subscription->pollers == 1;

	if (poller == NULL)
		return;					/* it was too old, or one too many */
	if (poller->open > 0)
		poller->open--;
	if (answered || poller->open > 0)
		return;
	drop(poller);
	if (last && on_less != NULL)
		on_less();
}

void
roster_watch(void (*less) (void))
{
	on_less = less;
}

static int
compare_ids(const void *a, const void *b)
{
	const struct poller *x = *(struct poller *const *) a;
	const struct poller *y = *(struct poller *const *) b;

	return strcmp(x->worker_id, y->worker_id);
}

int
roster_count(void)
{
	struct poller **all;
	int			n = 0;
	int			workers = 0;

	expire();
	all = xcalloc((size_t) count + 1, sizeof(*all));
	for (struct poller *poller = newest; poller != NULL; poller = poller->older)
		all[n++] = poller;
	qsort(all, (size_t) n, sizeof(*all), compare_ids);
	for (int i = 0; i < n; i++)
		workers += i == 0 || strcmp(all[i]->worker_id, all[i - 1]->worker_id) != 0;
	free(all);
	return workers;
}

static json_t *
describe(const struct subscription *subscription)
{
	json_t	   *queues = json_array();
	json_t	   *versions = json_array();

	for (int i = 0; i < subscription->nqueues; i++)
		json_array_append_new(queues, json_string(subscription->queues[i]));
	for (int i = 0; i < subscription->nversions; i++)
		json_array_append_new(versions, json_pack("[si]", subscription->versions[i].workflow,
												  (int) subscription->versions[i].version));
	return json_pack("{soso}", "queues", queues, "versions", versions);
}

static int
compare_pointers(const void *a, const void *b)
{
	const struct subscription *x = *(struct subscription *const *) a;
	const struct subscription *y = *(struct subscription *const *) b;

	return x < y ? -1 : x > y;
}

json_t *
roster_polls(void)
{
	json_t	   *polls = json_array();
	struct subscription **all;
	int			n = 0;
	int			names = 0;

	expire();
	all = xcalloc((size_t) count + 1, sizeof(struct subscription *));
	for (struct poller *poller = newest; poller != NULL; poller = poller->older)
		all[n++] = poller->subscription;
	qsort(all, (size_t) n, sizeof(struct subscription *), compare_pointers);
	for (int i = 0; i < n && json_array_size(polls) < POLLS_MAX && names < NAMES_MAX; i++)
	{
		if (i > 0 && all[i] == all[i - 1])
			continue;
		json_array_append_new(polls, describe(all[i]));
		names += all[i]->nqueues + all[i]->nversions;
	}
	free(all);
	return polls;
}

static bool
takes_queue(const json_t *queues, const char *queue)
{
	size_t		i;
	json_t	   *name;

	if (json_array_size(queues) == 0)
		return json_is_array(queues);
	json_array_foreach(queues, i, name)
	{
		if (json_is_string(name) && strcmp(json_string_value(name), queue) == 0)
			return true;
	}
	return false;
}

static bool
takes_version(const json_t *versions, const char *workflow, int64_t version)
{
	size_t		i;
	json_t	   *pair;

	if (json_array_size(versions) == 0)
		return json_is_array(versions);
	json_array_foreach(versions, i, pair)
	{
		const char *name = json_string_value(json_array_get(pair, 0));

		if (name != NULL && strcmp(name, workflow) == 0 &&
			json_integer_value(json_array_get(pair, 1)) == version)
			return true;
	}
	return false;
}

bool
roster_takes(const json_t *polls, const char *queue)
{
	size_t		i;
	json_t	   *poll;

	json_array_foreach(polls, i, poll)
	{
		if (takes_queue(json_object_get(poll, "queues"), queue))
			return true;
	}
	return false;
}

bool
roster_covers(const json_t *polls, const char *workflow, int64_t version, const char *queue)
{
	size_t		i;
	json_t	   *poll;

	json_array_foreach(polls, i, poll)
	{
		if (takes_queue(json_object_get(poll, "queues"), queue) &&
			takes_version(json_object_get(poll, "versions"), workflow, version))
			return true;
	}
	return false;
}
