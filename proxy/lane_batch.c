/*
 * lane_batch.c
 *	  A batch of items: made, split, answered.
 */
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "lane_batch.h"
#include "loop.h"
#include "statement.h"

struct batch *
batch_create(int cap)
{
	struct batch *batch = xcalloc(1, sizeof(*batch));

	batch->items = xcalloc((size_t) cap, sizeof(*batch->items));
	batch->cap = cap;
	batch->since = loop_now();
	return batch;
}

void
batch_free(struct batch *batch)
{
	free(batch->items);
	free(batch);
}

struct batch *
batch_split(struct batch *batch)
{
	int			half = batch->nitems / 2;
	struct batch *second = batch_create(batch->nitems - half);

	second->nitems = batch->nitems - half;
	memcpy(second->items, batch->items + half, (size_t) second->nitems * sizeof(*second->items));
	second->unknown = batch->unknown;
	batch->nitems = half;
	batch->tries = 0;
	return second;
}

void
batch_mark_unknown(struct batch *batch)
{
	batch->unknown = true;
	for (int i = 0; i < batch->nitems; i++)
	{
		batch->items[i]->unknown = true;
		if (batch->items[i]->kind == ITEM_RUN || batch->items[i]->kind == ITEM_FAIL)
			batch->items[i]->mode |= ITEM_ASKED_AGAIN;
	}
}

void
batch_drop_polls(struct batch *batch)
{
	static const struct outcome lost = {.status = GRPC_UNAVAILABLE, .lost = true, .message = "",
	.instance_status = "", .next_task = ""};
	int			kept = 0;

	for (int i = 0; i < batch->nitems; i++)
	{
		struct item *item = batch->items[i];

		if (item->kind != ITEM_POLL)
			batch->items[kept++] = item;
		else
			item->done(item, &lost);
	}
	batch->nitems = kept;
}

static void
answer_with(struct item *item, const struct refusal *refusal)
{
	struct outcome outcome = {
		.status = refusal->status,
		.code = refusal->code,
		.storage = refusal->storage,
		.message = refusal->message,
		.instance_status = "",
		.next_task = "",
	};

	item->done(item, &outcome);
}

void
batch_refuse(struct batch *batch, const struct refusal *refusal)
{
	for (int i = 0; i < batch->nitems; i++)
		answer_with(batch->items[i], refusal);
	batch_free(batch);
}

void
batch_abandon(struct item *list, int shard_id, const char *cause)
{
	struct refusal unavailable = {.status = GRPC_OK};
	struct refusal internal = {.status = GRPC_OK};

	while (list != NULL)
	{
		struct item *item = list;

		list = item->next;
		if (item->unknown && internal.status == GRPC_OK)
			refusal_internal(&internal, shard_id, "", "an answer was lost and could not be learnt again");
		else if (!item->unknown && unavailable.status == GRPC_OK)
			refusal_unavailable(&unavailable, shard_id, "", cause);
		answer_with(item, item->unknown ? &internal : &unavailable);
	}
}

static void
answer_row(struct item *item, const struct batch_row *row)
{
	struct outcome outcome = {
		.status = grpc_status_from_code(row->code),
		.code = row->code,
		.message = row->message ? row->message : "",
		.instance_status = row->status ? row->status : "",
		.expires_at = row->expires_at,
		.next_task = row->task_id ? row->task_id : "",
	};

	item->done(item, &outcome);
}

/* The rows of a result by item: a stable counting sort over (kind, item). */
struct sorted
{
	struct batch_row *rows;
	int		   *first;			/* by position in the batch; [n] is the end */
};

/* Position in the batch of the item that a row answers, -1 when there is none. */
static int
row_position(const struct batch *batch, const int *positions, const int *counts,
			 const struct batch_row *row)
{
	int			kind = batch_row_kind(row->op);

	if (kind < 0 || row->item < 0 || row->item >= counts[kind])
		return -1;
	return positions[kind * batch->cap + row->item];
}

static bool
sort_rows(const struct batch *batch, const PGresult *result, struct sorted *sorted)
{
	int			nrows = PQntuples(result);
	int			counts[ITEM_KINDS] = {0};
	int		   *positions = xmalloc(sizeof(int) * (size_t) (ITEM_KINDS * batch->cap));
	int		   *position = xmalloc(sizeof(int) * (size_t) (nrows + 1));
	struct batch_row *decoded = xmalloc(sizeof(*decoded) * (size_t) (nrows + 1));
	bool		ok = true;

	for (int i = 0; i < batch->nitems; i++)
	{
		int			kind = (int) batch->items[i]->kind;

		positions[kind * batch->cap + counts[kind]++] = i;
	}
	sorted->first = xcalloc((size_t) batch->nitems + 2, sizeof(int));
	sorted->rows = xmalloc(sizeof(*sorted->rows) * (size_t) (nrows + 1));
	for (int n = 0; n < nrows && ok; n++)
	{
		ok = batch_row_decode(result, n, &decoded[n]);
		position[n] = ok ? row_position(batch, positions, counts, &decoded[n]) : -1;
		ok = ok && position[n] >= 0;
		if (ok)
			sorted->first[position[n] + 2]++;
	}
	for (int i = 2; i < batch->nitems + 2; i++)
		sorted->first[i] += sorted->first[i - 1];
	for (int n = 0; n < nrows && ok; n++)
		sorted->rows[sorted->first[position[n] + 1]++] = decoded[n];
	free(positions);
	free(position);
	free(decoded);
	return ok;
}

void
batch_deliver(struct batch *batch, const PGresult *result, int shard_id)
{
	struct wig_error err = {.message = "rows of another shape than expected"};
	struct refusal refusal = {.status = GRPC_OK};
	struct sorted sorted = {NULL, NULL};

	if (result == NULL || !batch_result_valid(result, &err) || !sort_rows(batch, result, &sorted))
	{
		refusal_internal(&refusal, shard_id, "", err.message);
		batch_refuse(batch, &refusal);
		free(sorted.rows);
		free(sorted.first);
		return;
	}
	for (int i = 0; i < batch->nitems; i++)
	{
		struct item *item = batch->items[i];
		const struct batch_row *rows = &sorted.rows[sorted.first[i]];
		int			n = sorted.first[i + 1] - sorted.first[i];

		if (item->kind == ITEM_POLL)
		{
			struct outcome outcome = {.message = "", .instance_status = "", .next_task = "",
			.tasks = rows, .ntasks = n};

			item->done(item, &outcome);
		}
		else if (n == 1)
			answer_row(item, rows);
		else
		{
			if (refusal.status == GRPC_OK)
				refusal_internal(&refusal, shard_id, "", "a batch gave no row, or several, for an item");
			answer_with(item, &refusal);
		}
	}
	free(sorted.rows);
	free(sorted.first);
	batch_free(batch);
}
