/*
 * event_list.h
 *	  What shards answered SQL_FEED with, as one list for a consumer.
 */
#ifndef WIGGLE_PROXY_EVENT_LIST_H
#define WIGGLE_PROXY_EVENT_LIST_H

#include "event_cursor.h"
#include "gather.h"
#include "value.h"
#include "wiggle.pb-c.h"

struct event_list
{
	Com__Wiggle__Proto__EventList message;
	Com__Wiggle__Proto__EventView *views;	/* texts point into the gather's results */
	int			n;
};

/*
 * Up to max entries in order of time, each shard's own in the order of their numbers,
 * as many as an answer can carry and at least one. Each bears the consumer's place
 * after it, beginning at acked. Payloads take the given form.
 */
extern void event_list_merge(struct event_list *list, const struct gather *gather,
							 const struct event_cursor *acked, int max, enum value_form form);

extern void event_list_free(struct event_list *list);

/* The last final number of a log, from SQL_HORIZON's answer. */
extern int64_t event_head(const PGresult *result);

#endif							/* WIGGLE_PROXY_EVENT_LIST_H */
