/*
 * rpc_list.c
 *	  ListInstances: every shard asked at once, merged newest first, page by page.
 *
 * The order is that of wf_instance.no, the microsecond of creation made unique in its
 * shard, and of one number that of the shards: total, the same for ever, and walked by
 * each shard's index. It does not go by created_at, which a clock that was set back
 * gives to later instances again. A cursor is the last place that was given.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gather.h"
#include "home_clock.h"
#include "message.h"
#include "rpc.h"
#include "rpc_instance.h"
#include "view.h"
#include "wiggle.pb-c.h"

#define DEFAULT_LIMIT	50

/* What one listing holds in memory is bounded, whatever a client asks for. */
#define MAX_LIMIT		10000

typedef Com__Wiggle__Proto__ListInstancesRequest ListInstancesRequest;
typedef Com__Wiggle__Proto__InstanceView InstanceView;

#define PARAMS			6		/* of SQL_INSTANCES; the last one is each shard's */

#define CURSOR_FORMAT	"%" PRId64 ".%" PRId32
#define CURSOR_BYTES	40

/* The cursor of who goes page by page and has none yet. */
#define FIRST_PAGE		"begin"

/* How much later than a shard says a replica may be found to be too far behind. */
#define LAG_SLACK_MS	10000

/* Tag and length of each instance in the answer, at most. */
#define FRAMING_BYTES	6

struct place
{
	int64_t		number;
	int32_t		shard;
};

/* A row of one of the results, for sorting. */
struct listed
{
	const PGresult *result;
	int			row;
	struct place place;
};

struct listing
{
	struct gather gather;		/* first: it is handed back */
	struct pending pending;
	int			limit;
	bool		by_page;		/* the caller goes on where an answer ends */
	bool		goes_on;		/* behind this place */
	struct place after;
	char		limit_text[16];
	char		bytes_text[24];
	char	   *status;
	bool		by_correlation;
};

static const char *const statuses[] = {
	"RUNNING", "COMPLETED", "FAILED", "CANCELLED", "COMPENSATING", "COMPENSATED",
	"COMPENSATION_FAILED", NULL
};

static void
free_listing(struct listing *listing)
{
	gather_free(&listing->gather);
	free(listing->status);
	pending_close(&listing->pending);
	free(listing);
}

/* Newest first. */
static int
compare_listed(const void *a, const void *b)
{
	const struct place *x = &((const struct listed *) a)->place;
	const struct place *y = &((const struct listed *) b)->place;

	if (x->number != y->number)
		return x->number > y->number ? -1 : 1;
	return x->shard > y->shard ? -1 : 1;
}

/* All rows of all shards in order, up to the limit; how many is set. */
static struct listed *
merge(const struct listing *listing, int *n)
{
	struct listed *rows;
	int			total = 0;

	*n = 0;
	for (int slot = 0; slot < shard_slots(); slot++)
		total += PQntuples(listing->gather.parts[slot].result);
	rows = xcalloc((size_t) total + 1, sizeof(*rows));
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		const PGresult *result = listing->gather.parts[slot].result;

		for (int row = 0; row < PQntuples(result); row++)
		{
			rows[(*n)++] = (struct listed) {
				.result = result,
				.row = row,
				.place.number = strtoll(PQgetvalue(result, row, INSTANCE_NUMBER), NULL, 10),
				.place.shard = shard_by_slot(slot)->entry->id,
			};
		}
	}
	qsort(rows, (size_t) *n, sizeof(*rows), compare_listed);
	if (*n > listing->limit)
		*n = listing->limit;
	return rows;
}

/*
 * Fill views with as many of the first rows as one answer carries; how many is
 * returned, or -1 with *err set. The contexts are malloc'ed.
 */
static int
view_rows(const struct listing *listing, const struct listed *rows, int n, InstanceView *views,
		  struct wig_error *err)
{
	size_t		bytes = 0;

	for (int i = 0; i < n; i++)
	{
		com__wiggle__proto__instance_view__init(&views[i]);
		if (!view_instance(rows[i].result, rows[i].row, listing->pending.values, &views[i], err))
			return -1;
		bytes += protobuf_c_message_get_packed_size(&views[i].base) + FRAMING_BYTES;
		if (strcmp(PQgetvalue(rows[i].result, rows[i].row, INSTANCE_OVER), "t") == 0 || bytes > REPLY_MAX_BYTES)
			return i;
	}
	return n;
}

static void
reply_views(struct listing *listing, const struct listed *rows, InstanceView *views, int n, bool goes_on)
{
	Com__Wiggle__Proto__InstanceList reply = COM__WIGGLE__PROTO__INSTANCE_LIST__INIT;
	InstanceView **pointers = xcalloc((size_t) n + 1, sizeof(*pointers));

	for (int i = 0; i < n; i++)
		pointers[i] = &views[i];
	reply.instances = pointers;
	reply.n_instances = (size_t) n;
	if (goes_on)
	{
		char		cursor[CURSOR_BYTES];

		snprintf(cursor, sizeof(cursor), CURSOR_FORMAT, rows[n - 1].place.number, rows[n - 1].place.shard);
		call_next(listing->pending.call, cursor);
	}
	pending_reply(&listing->pending, &reply.base);
	free(pointers);
}

static void
reply_rows(struct listing *listing, const struct listed *rows, int n)
{
	InstanceView *views = xcalloc((size_t) n + 1, sizeof(*views));
	struct wig_error err = {.message = ""};
	int			fit = view_rows(listing, rows, n, views, &err);

	if (fit == 0 && n > 0 && listing->by_page)
	{
		/* One that no answer carries must not bar the way to those behind it. */
		free(views[0].context.data);
		views[0].context = (ProtobufCBinaryData) {0};
		fit = 1;
	}
	if (fit < 0)
		pending_fail(&listing->pending, GRPC_INTERNAL, "an instance's context cannot be sent: %s",
					 err.message);
	else if (fit < n && !listing->by_page)
		pending_fail(&listing->pending, GRPC_RESOURCE_EXHAUSTED,
					 "the instances have more than %zu bytes of context; ask for fewer with limit,"
					 " or page by page with wiggle-after", REPLY_MAX_BYTES);
	else
		reply_views(listing, rows, views, fit, fit < n || n == listing->limit);
	for (int i = 0; i < n; i++)
		free(views[i].context.data);
	free(views);
}

static bool
finds(const struct listing *listing)
{
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		if (PQntuples(listing->gather.parts[slot].result) > 0)
			return true;
	}
	return false;
}

static void
listed(struct gather *gather)
{
	struct listing *listing = (struct listing *) gather;
	struct listed *rows;
	int			n;

	/*
	 * A list without one shard's instances would be a lie to who does not know; what
	 * a correlation id has found was asked for.
	 */
	if (!gather_suffices(gather, listing->pending.call, listing->by_correlation && finds(listing)))
		pending_refuse(&listing->pending, gather_refusal(gather));
	else if (listing->pending.call != NULL)
	{
		rows = merge(listing, &n);
		reply_rows(listing, rows, n);
		free(rows);
	}
	free_listing(listing);
}

/* The status in capitals; false when there is none of this name. */
static bool
read_status(const char *text, char **out, struct wig_error *err)
{
	char	   *status = xstrdup(text);

	for (char *p = status; *p != '\0'; p++)
		*p = (char) toupper((unsigned char) *p);
	for (int i = 0; statuses[i] != NULL; i++)
	{
		if (strcmp(statuses[i], status) == 0)
		{
			*out = status;
			return true;
		}
	}
	wig_fail(err, "No enum constant com.wiggle.core.InstanceStatus.%.100s", status);
	free(status);
	return false;
}

/* What is written again as it was read is a cursor. */
static bool
read_after(struct listing *listing, const char *text, struct wig_error *err)
{
	char		again[CURSOR_BYTES];
	char	   *end;

	if (text == NULL)
		return true;
	listing->by_page = true;
	if (strcmp(text, FIRST_PAGE) == 0)
		return true;
	listing->goes_on = true;
	listing->after.number = strtoll(text, &end, 10);
	listing->after.shard = *end == '.' ? (int32_t) strtol(end + 1, NULL, 10) : -1;
	snprintf(again, sizeof(again), CURSOR_FORMAT, listing->after.number, listing->after.shard);
	return (strcmp(again, text) == 0 && listing->after.number > 0 && listing->after.number < INT64_MAX &&
			listing->after.shard >= 0) ||
		wig_fail(err, "wiggle-after '%s' is not what an answer had as wiggle-next; leave it out to begin with the"
				 " newest", text);
}

static bool
fill_params(struct listing *listing, const char **params, struct wig_error *err)
{
	const ListInstancesRequest *request = (const ListInstancesRequest *) listing->pending.request;

	listing->limit = request->limit <= 0 ? DEFAULT_LIMIT
		: request->limit < MAX_LIMIT ? request->limit : MAX_LIMIT;
	snprintf(listing->limit_text, sizeof(listing->limit_text), "%d", listing->limit);
	snprintf(listing->bytes_text, sizeof(listing->bytes_text), "%zu", REPLY_MAX_BYTES);
	params[3] = listing->limit_text;
	params[4] = listing->bytes_text;
	if (!read_after(listing, call_after(listing->pending.call), err))
		return false;
	if (request->has_correlation_id_case !=
		COM__WIGGLE__PROTO__LIST_INSTANCES_REQUEST__HAS_CORRELATION_ID__NOT_SET)
	{
		params[2] = request->correlation_id;
		listing->by_correlation = true;
		return true;
	}
	if (request->has_workflow_case !=
		COM__WIGGLE__PROTO__LIST_INSTANCES_REQUEST__HAS_WORKFLOW__NOT_SET)
		params[0] = request->workflow;
	if (request->has_status_case !=
		COM__WIGGLE__PROTO__LIST_INSTANCES_REQUEST__HAS_STATUS__NOT_SET)
	{
		if (!read_status(request->status, &listing->status, err))
			return false;
		params[1] = listing->status;
	}
	return true;
}

/*
 * May a replica answer? The replica of the page before may have had more than another
 * has now, whose page would lack what is behind the cursor: not of what is old enough.
 */
static bool
may_lag(const struct listing *listing, const struct shard *shard)
{
	/* who asks by correlation may have started it a moment ago */
	if (listing->by_correlation)
		return false;
	return !listing->goes_on ||
		listing->after.number / 1000 + shard->entry->max_replica_lag_ms + LAG_SLACK_MS < home_clock_ms();
}

static void
ask_shards(struct listing *listing, const char *const *params)
{
	gather_begin(&listing->gather, listed);
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		struct question *question = gather_question(&listing->gather, slot);
		char		before[24];

		question->statement = SQL_INSTANCES;
		question->nparams = PARAMS;
		memcpy(question->params, params, PARAMS * sizeof(*params));
		question->may_lag = may_lag(listing, shard_by_slot(slot));
		if (listing->goes_on)
		{
			snprintf(before, sizeof(before), "%" PRId64, listing->after.number +
					 (shard_by_slot(slot)->entry->id < listing->after.shard));
			question->params[PARAMS - 1] = before;
		}
		gather_ask(&listing->gather, slot);
	}
	gather_hurry_part(&listing->gather, listing->pending.call);
	gather_end(&listing->gather);
}

void
rpc_list_instances(struct call *call)
{
	ProtobufCMessage *message =
		message_request(call, &com__wiggle__proto__list_instances_request__descriptor);
	const char *params[PARAMS] = {NULL};
	struct wig_error err = {.message = ""};
	struct listing *listing;

	if (message == NULL)
		return;
	listing = xcalloc(1, sizeof(*listing));
	pending_open(&listing->pending, call, message);
	if (!fill_params(listing, params, &err))
	{
		pending_fail(&listing->pending, GRPC_INVALID_ARGUMENT, "%s", err.message);
		free_listing(listing);
		return;
	}
	ask_shards(listing, params);
}
