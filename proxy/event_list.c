/*
 * event_list.c
 *	  What shards answered SQL_FEED with, as one list for a consumer.
 */
#include <stdlib.h>
#include <string.h>

#include "event_list.h"
#include "rpc.h"
#include "view.h"

typedef Com__Wiggle__Proto__EventView EventView;

/* Tag and length in front of an entry. */
#define ENTRY_OVERHEAD 6

/* One shard's entries, read from the front. */
struct source
{
	const PGresult *result;
	int			row;
	int			rows;
	bool		more;			/* the log has more than was sent */
};

/*
 * The source whose next entry is the oldest, NULL when there is none, or when it is not
 * known because a shard has older ones that were not sent.
 */
static struct source *
oldest(struct source *sources, int n)
{
	struct source *best = NULL;
	int64_t		best_time = 0;

	for (int i = 0; i < n; i++)
	{
		struct source *source = &sources[i];
		int64_t		at;

		if (source->row == source->rows)
		{
			if (source->more)
				return NULL;
			continue;
		}
		at = view_number(source->result, source->row, FEED_CREATED_EXACT);
		if (best == NULL || at < best_time)
		{
			best = source;
			best_time = at;
		}
	}
	return best;
}

/* In place of what no answer could carry. */
static void
put_marker(EventView *view, int bytes, enum value_form form)
{
	struct buf	json = BUF_INIT;
	struct wig_error ignored;

	free(view->payload.data);
	buf_printf(&json, "{\"$truncated\":%d}", bytes);
	rpc_value(form, (const char *) json.data, json.len, &view->payload, &ignored);
	buf_free(&json);
}

static void
put_payload(EventView *view, const PGresult *result, int row, enum value_form form)
{
	const char *json = PQgetvalue(result, row, FEED_PAYLOAD);
	int			len = PQgetlength(result, row, FEED_PAYLOAD);
	struct wig_error ignored;

	if (PQgetisnull(result, row, FEED_PAYLOAD) || strcmp(json, "{}") == 0)
		return;
	if (!rpc_value(form, json, (size_t) len, &view->payload, &ignored) ||
		view->payload.len > REPLY_MAX_BYTES - 16384)
		put_marker(view, len, form);
}

static void
put_view(EventView *view, const struct source *source, int32_t shard, struct event_cursor *cursor,
		 enum value_form form)
{
	const PGresult *result = source->result;
	int			row = source->row;
	struct buf	text = BUF_INIT;

	com__wiggle__proto__event_view__init(view);
	view->seq = view_number(result, row, FEED_SEQ);
	view->instance_id = PQgetvalue(result, row, FEED_INSTANCE);
	view->workflow = PQgetvalue(result, row, FEED_WORKFLOW);
	view->version = (int32_t) view_number(result, row, FEED_VERSION);
	view->correlation_id = PQgetvalue(result, row, FEED_CORRELATION);
	view->type = PQgetvalue(result, row, FEED_TYPE);
	view->created_at = view_number(result, row, FEED_CREATED_AT);
	view->node_id = PQgetvalue(result, row, FEED_NODE);
	view->shard = shard;
	put_payload(view, result, row, form);
	cursor_set(cursor, shard, view->seq);
	cursor_write(cursor, &text);
	buf_cstr(&text);
	view->cursor = (char *) buf_detach(&text, &(size_t) {0});
}

static void
free_view(EventView *view)
{
	free(view->payload.data);
	free(view->cursor);
}

void
event_list_merge(struct event_list *list, const struct gather *gather,
				 const struct event_cursor *acked, int max, enum value_form form)
{
	struct event_cursor cursor = *acked;
	struct source sources[TOPOLOGY_MAX_SHARDS] = {{0}};
	size_t		bytes = 0;

	for (int slot = 0; slot < shard_slots(); slot++)
	{
		const PGresult *result = gather->parts[slot].result;

		if (result == NULL || PQntuples(result) == 0)
			continue;
		sources[slot].result = result;
		sources[slot].rows = PQntuples(result);
		sources[slot].more = view_number(result, 0, FEED_FOUND) > sources[slot].rows;
	}
	com__wiggle__proto__event_list__init(&list->message);
	list->n = 0;
	list->views = xcalloc((size_t) max, sizeof(*list->views));
	list->message.events = xcalloc((size_t) max, sizeof(*list->message.events));
	while (list->n < max)
	{
		struct source *source = oldest(sources, shard_slots());
		EventView  *view = &list->views[list->n];

		if (source == NULL)
			break;
		put_view(view, source, shard_by_slot((int) (source - sources))->entry->id, &cursor, form);
		bytes += protobuf_c_message_get_packed_size(&view->base) + ENTRY_OVERHEAD;
		if (list->n > 0 && bytes > REPLY_MAX_BYTES)
		{
			free_view(view);
			break;
		}
		list->message.events[list->n++] = view;
		source->row++;
	}
	list->message.n_events = (size_t) list->n;
}

void
event_list_free(struct event_list *list)
{
	for (int i = 0; i < list->n; i++)
		free_view(&list->views[i]);
	free(list->views);
	free(list->message.events);
}

int64_t
event_head(const PGresult *result)
{
	int64_t		horizon = PQntuples(result) == 1 ? view_number(result, 0, 0) : 0;

	return horizon > 0 ? horizon - 1 : 0;
}
