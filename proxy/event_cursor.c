/*
 * event_cursor.c
 *	  A consumer's place in the event logs of all shards.
 */
#include <inttypes.h>

#include "event_cursor.h"
#include "ids.h"

/* Digits up to `end`, without a sign; -1 when there are none or too many. */
static int64_t
read_number(const char **at, char end)
{
	int64_t		value = 0;
	const char *p = *at;

	if (*p < '0' || *p > '9')
		return -1;
	for (; *p >= '0' && *p <= '9'; p++)
	{
		if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *p - '0', &value))
			return -1;
	}
	if (*p != end && !(end == ',' && *p == '\0'))
		return -1;
	*at = p;
	return value;
}

static bool
read_places(const char *text, struct event_cursor *cursor)
{
	cursor->n = 0;
	for (const char *p = text;; p++)
	{
		int64_t		shard = read_number(&p, ':');
		int64_t		seq;

		if (shard < 0 || shard > WIG_MAX_SHARD || cursor_get(cursor, (int32_t) shard) >= 0 ||
			cursor->n == CURSOR_MAX_SHARDS)
			return false;
		p++;
		seq = read_number(&p, ',');
		if (seq < 0)
			return false;
		cursor_set(cursor, (int32_t) shard, seq);
		if (*p == '\0')
			return true;
	}
}

bool
cursor_parse(const char *text, struct event_cursor *cursor, struct wig_error *err)
{
	return read_places(text, cursor) ||
		wig_fail(err, "not an event cursor: '%.200s'; ack with the cursor of the last event you handled",
				 text);
}

void
cursor_write(const struct event_cursor *cursor, struct buf *out)
{
	for (int i = 0; i < cursor->n; i++)
		buf_printf(out, "%s%" PRId32 ":%" PRId64, i > 0 ? "," : "", cursor->places[i].shard,
				   cursor->places[i].seq);
}

void
cursor_set(struct event_cursor *cursor, int32_t shard, int64_t seq)
{
	int			at = 0;

	while (at < cursor->n && cursor->places[at].shard < shard)
		at++;
	if (at == cursor->n || cursor->places[at].shard != shard)
	{
		if (cursor->n == CURSOR_MAX_SHARDS)
			return;
		memmove(&cursor->places[at + 1], &cursor->places[at],
				(size_t) (cursor->n - at) * sizeof(cursor->places[0]));
		cursor->n++;
	}
	cursor->places[at] = (struct cursor_place) {shard, seq};
}

int64_t
cursor_get(const struct event_cursor *cursor, int32_t shard)
{
	for (int i = 0; i < cursor->n; i++)
	{
		if (cursor->places[i].shard == shard)
			return cursor->places[i].seq;
	}
	return -1;
}

void
cursor_arrays(const struct event_cursor *cursor, struct buf *shards, struct buf *seqs)
{
	buf_reset(shards);
	buf_reset(seqs);
	for (int i = 0; i < cursor->n; i++)
	{
		buf_printf(shards, "%c%" PRId32, i > 0 ? ',' : '{', cursor->places[i].shard);
		buf_printf(seqs, "%c%" PRId64, i > 0 ? ',' : '{', cursor->places[i].seq);
	}
	buf_text(shards, cursor->n > 0 ? "}" : "{}");
	buf_text(seqs, cursor->n > 0 ? "}" : "{}");
	buf_cstr(shards);
	buf_cstr(seqs);
}
