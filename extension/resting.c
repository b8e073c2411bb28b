/*
 * resting.c
 *	  A small table of items and times.
 */
#include "wiggle.h"

#include "utils/hsearch.h"
#include "utils/timestamp.h"

#include "resting.h"

#define REST_USECS		(5 * USECS_PER_SEC)
/* Asked for no more since then: it is gone, or somebody moved it. */
#define FORGET_USECS	(60 * USECS_PER_SEC)

typedef struct Resting
{
	char		key[WIG_RESTING_KEY_MAX];
	TimestampTz until;
} Resting;

static HTAB *table = NULL;

TimestampTz
wig_rest(const char *key, TimestampTz now)
{
	Resting    *entry;

	if (table == NULL)
	{
		HASHCTL		control = {.keysize = WIG_RESTING_KEY_MAX, .entrysize = sizeof(Resting)};

		table = hash_create("wiggle resting items", 64, &control, HASH_ELEM | HASH_STRINGS);
	}
	entry = hash_search(table, key, HASH_ENTER, NULL);
	entry->until = now + REST_USECS;
	return entry->until;
}

TimestampTz
wig_resting_until(const char *key, TimestampTz now)
{
	Resting    *entry;

	if (table == NULL || hash_get_num_entries(table) == 0)
		return now;
	entry = hash_search(table, key, HASH_FIND, NULL);
	if (entry == NULL)
		return now;
	if (entry->until > now)
		return entry->until;
	(void) hash_search(table, key, HASH_REMOVE, NULL);
	return now;
}

int
wig_resting_count(TimestampTz now)
{
	HASH_SEQ_STATUS scan;
	Resting    *entry;

	if (table == NULL || hash_get_num_entries(table) == 0)
		return 0;
	hash_seq_init(&scan, table);
	while ((entry = hash_seq_search(&scan)) != NULL)
		/* A test may have set the clock back. */
		if (entry->until < now - FORGET_USECS || entry->until > now + REST_USECS)
			(void) hash_search(table, entry->key, HASH_REMOVE, NULL);
	return (int) hash_get_num_entries(table);
}
