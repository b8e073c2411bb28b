/*
 * poll_wake.c
 *	  Whose polls a shard's notification concerns.
 */
#include <jansson.h>
#include <string.h>

#include "fleet.h"
#include "poll_place.h"
#include "poller.h"

/* A wake-up that names more buckets of a queue than these concerns everybody. */
#define BUCKETS_MAX 64

struct wake
{
	int			slot;
	json_t	   *queues;			/* NULL: all */
};

/* [queue, bucket…]: is any of them in what this proxy takes? Without buckets it is left over. */
static bool
takes_any(const json_t *news)
{
	int			buckets[BUCKETS_MAX];
	int			n = 0;
	size_t		i;
	json_t	   *bucket;

	json_array_foreach(news, i, bucket)
	{
		if (i > 0 && n < BUCKETS_MAX)
			buckets[n++] = (int) json_integer_value(bucket);
	}
	return n == 0 || n == BUCKETS_MAX || fleet_takes(json_string_value(json_array_get(news, 0)), buckets, n);
}

static void
wake_one(struct subscription *subscription, void *arg)
{
	const struct wake *wake = arg;
	bool		concerned = wake->queues == NULL;
	bool		left = false;
	size_t		i;
	json_t	   *queue;

	json_array_foreach(wake->queues, i, queue)
	{
		const char *name = json_string_value(json_is_array(queue) ? json_array_get(queue, 0) : queue);

		if (name == NULL || !subscription_concerns(subscription, name))
			continue;
		left = left || (json_is_array(queue) && json_array_size(queue) == 1);
		concerned = concerned || !json_is_array(queue) || takes_any(queue);
	}
	if (!concerned)
		return;
	if (left)
		subscription->beyond |= BIT(wake->slot);
	subscription->wakes++;
	subscription->ready |= BIT(wake->slot);
	place_recount(subscription);
}

void
poller_wake(int slot, const char *payload)
{
	struct wake wake = {.slot = slot};

	/* what cannot be read is taken for "everything": a wake-up is only a hint */
	if (strcmp(payload, "*") != 0)
		wake.queues = json_loads(payload, 0, NULL);
	subscription_each(wake_one, &wake);
	json_decref(wake.queues);
}

void
poller_wake_all(int slot)
{
	struct wake wake = {.slot = slot};

	subscription_each(wake_one, &wake);
}
