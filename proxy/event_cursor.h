/*
 * event_cursor.h
 *	  A consumer's place in the event logs of all shards. Pure.
 *
 * Its text is "shard:seq" pairs in order of shards: "0:12,3:40".
 */
#ifndef WIGGLE_PROXY_EVENT_CURSOR_H
#define WIGGLE_PROXY_EVENT_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "error.h"

/* More than a topology can list, since retired shards may be among them. */
#define CURSOR_MAX_SHARDS 256

struct cursor_place
{
	int32_t		shard;			/* its id */
	int64_t		seq;
};

struct event_cursor
{
	struct cursor_place places[CURSOR_MAX_SHARDS];	/* by shard */
	int			n;
};

/* False with the text for the client; *cursor is undefined then. */
extern bool cursor_parse(const char *text, struct event_cursor *cursor, struct wig_error *err);

/* Append its text. */
extern void cursor_write(const struct event_cursor *cursor, struct buf *out);

/* Set or add a place; one too many is left out. */
extern void cursor_set(struct event_cursor *cursor, int32_t shard, int64_t seq);

/* -1 when the cursor does not name the shard. */
extern int64_t cursor_get(const struct event_cursor *cursor, int32_t shard);

/* Its shards and numbers as the texts of two SQL arrays: "{0,3}" and "{12,40}". */
extern void cursor_arrays(const struct event_cursor *cursor, struct buf *shards, struct buf *seqs);

#endif							/* WIGGLE_PROXY_EVENT_CURSOR_H */
