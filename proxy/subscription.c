/*
 * subscription.c
 *	  What polls ask for, kept once for all polls that ask for the same.
 */
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "subscription.h"

#define BUCKETS 1024			/* a power of two */

static struct subscription *table[BUCKETS];

/* Queues and versions as one run of bytes; texts are terminated in it. */
static void
write_key(struct buf *key, const char *const *queues, int nqueues,
		  const struct item_version *versions, int nversions)
{
	buf_u32(key, (uint32_t) nqueues);
	for (int i = 0; i < nqueues; i++)
		buf_append(key, queues[i], strlen(queues[i]) + 1);
	for (int i = 0; i < nversions; i++)
	{
		buf_append(key, versions[i].workflow, strlen(versions[i].workflow) + 1);
		buf_u32(key, (uint32_t) versions[i].version);
	}
}

static uint32_t
hash_bytes(const uint8_t *data, size_t len)
{
	uint32_t	hash = 2166136261u;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ data[i]) * 16777619u;
	return hash ^ (hash >> 15);
}

/* Point queues and versions into the key. */
static void
read_key(struct subscription *subscription, int nqueues, const struct item_version *versions,
		 int nversions)
{
	const char **queues = xcalloc((size_t) nqueues + 1, sizeof(*queues));
	struct item_version *copies = xcalloc((size_t) nversions + 1, sizeof(*copies));
	const char *at = subscription->key + 4;

	for (int i = 0; i < nqueues; i++)
	{
		queues[i] = at;
		at += strlen(at) + 1;
	}
	for (int i = 0; i < nversions; i++)
	{
		copies[i].workflow = at;
		copies[i].version = versions[i].version;
		at += strlen(at) + 1 + 4;
	}
	subscription->queues = queues;
	subscription->nqueues = nqueues;
	subscription->versions = copies;
	subscription->nversions = nversions;
}

struct subscription *
subscription_get(const char *const *queues, int nqueues, const struct item_version *versions,
				 int nversions)
{
	struct buf	key = BUF_INIT;
	struct subscription *subscription;
	uint32_t	hash;

	write_key(&key, queues, nqueues, versions, nversions);
	hash = hash_bytes(key.data, key.len);
	for (subscription = table[hash & (BUCKETS - 1)]; subscription != NULL;
		 subscription = subscription->chain)
	{
		if (subscription->hash == hash && subscription->key_len == key.len &&
			memcmp(subscription->key, key.data, key.len) == 0)
		{
			buf_free(&key);
			subscription->refs++;
			return subscription;
		}
	}
	subscription = xcalloc(1, sizeof(*subscription));
	subscription->key = (char *) buf_detach(&key, &subscription->key_len);
	subscription->hash = hash;
	subscription->refs = 1;
	read_key(subscription, nqueues, versions, nversions);
	subscription->chain = table[hash & (BUCKETS - 1)];
	table[hash & (BUCKETS - 1)] = subscription;
	return subscription;
}

void
subscription_unref(struct subscription *subscription)
{
	struct subscription **at = &table[subscription->hash & (BUCKETS - 1)];

	if (--subscription->refs > 0)
		return;
	while (*at != subscription)
		at = &(*at)->chain;
	*at = subscription->chain;
	free((void *) subscription->queues);
	free((void *) subscription->versions);
	free(subscription->key);
	free(subscription);
}

bool
subscription_concerns(const struct subscription *subscription, const char *queue)
{
	if (subscription->nqueues == 0)
		return true;
	for (int i = 0; i < subscription->nqueues; i++)
	{
		if (strcmp(subscription->queues[i], queue) == 0)
			return true;
	}
	return false;
}

void
subscription_each(void (*fn) (struct subscription *subscription, void *arg), void *arg)
{
	for (int i = 0; i < BUCKETS; i++)
	{
		for (struct subscription *s = table[i]; s != NULL; s = s->chain)
			fn(s, arg);
	}
}
