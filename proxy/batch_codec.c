/*
 * batch_codec.c
 *	  Items to the binary composites of wiggle.batch, and its rows back.
 *
 * A composite is: number of columns, then for each the type's oid, length and
 * data. An array is: dimensions, has-nulls flag, element oid, length, lower
 * bound, then length and data of each element. The column types are all built
 * in, so their oids are constants; PostgreSQL checks them and a catalog of
 * another shape is refused rather than misread.
 */
#include <stdlib.h>
#include <string.h>

#include "fleet.h"
#include "statement.h"

#define OID_BOOL	16
#define OID_INT8	20
#define OID_INT4	23
#define OID_TEXT	25
#define OID_BOOL_ARRAY	1000
#define OID_INT4_ARRAY	1007
#define OID_TEXT_ARRAY	1009
#define OID_INT8_ARRAY	1016

enum batch_column
{
	COL_OP, COL_ITEM, COL_CODE, COL_MESSAGE, COL_TASK_ID, COL_INSTANCE_ID, COL_STATUS,
	COL_EXPIRES_AT, COL_LEASE_OWNER, COL_WORKFLOW, COL_VERSION, COL_NODE_ID, COL_STEP_NAME,
	COL_ACTIVITY, COL_KIND, COL_ATTEMPT, COL_MODE, COL_CONTEXT, COL_BASE_CONTEXT,
	COL_ITEM_INDEX, COL_ITEM_MAP_KEY, COL_COLLECT_KEY, COL_ARM_NAMES
};
#define BATCH_COLUMNS (COL_ARM_NAMES + 1)

/* What a column of this array type looks like; elements follow. */
static void
open_array(struct buf *out, uint32_t element_oid, int n)
{
	buf_u32(out, n > 0 ? 1 : 0);
	buf_u32(out, 1);			/* may hold NULLs: only a hint for the reader */
	buf_u32(out, element_oid);
	if (n > 0)
	{
		buf_u32(out, (uint32_t) n);
		buf_u32(out, 1);
	}
}

/* Begin a column; the length is filled in by close_column at the returned mark. */
static size_t
open_column(struct buf *out, uint32_t array_oid, int n)
{
	uint32_t	element_oid =
		array_oid == OID_TEXT_ARRAY ? OID_TEXT :
		array_oid == OID_INT4_ARRAY ? OID_INT4 :
		array_oid == OID_INT8_ARRAY ? OID_INT8 : OID_BOOL;
	size_t		mark;

	buf_u32(out, array_oid);
	mark = out->len;
	buf_u32(out, 0);
	open_array(out, element_oid, n);
	return mark;
}

static void
close_column(struct buf *out, size_t mark)
{
	uint32_t	len = (uint32_t) (out->len - mark - 4);

	out->data[mark] = (uint8_t) (len >> 24);
	out->data[mark + 1] = (uint8_t) (len >> 16);
	out->data[mark + 2] = (uint8_t) (len >> 8);
	out->data[mark + 3] = (uint8_t) len;
}

static void
put_bytes(struct buf *out, const char *data, size_t len)
{
	if (data == NULL)
	{
		buf_u32(out, UINT32_MAX);
		return;
	}
	buf_u32(out, (uint32_t) len);
	buf_append(out, data, len);
}

static void
put_text(struct buf *out, const char *text)
{
	put_bytes(out, text, text ? strlen(text) : 0);
}

static void
put_int4(struct buf *out, int32_t value)
{
	buf_u32(out, 4);
	buf_u32(out, (uint32_t) value);
}

static void
put_int8(struct buf *out, int64_t value)
{
	buf_u32(out, 8);
	buf_u64(out, (uint64_t) value);
}

static void
put_bool(struct buf *out, bool value)
{
	buf_u32(out, 1);
	buf_byte(out, value);
}

/* One column over the items of a family: expr sees `item`. */
#define COLUMN(out, oid, items, n, put) \
	do { \
		size_t mark_ = open_column(out, oid, n); \
		for (int i_ = 0; i_ < (n); i_++) \
		{ \
			const struct item *item = (items)[i_]; \
			put; \
		} \
		close_column(out, mark_); \
	} while (0)

static void
encode_starts(struct buf *out, struct item *const *items, int n)
{
	buf_u32(out, 5);
	COLUMN(out, OID_TEXT_ARRAY, items, n, put_text(out, item->start.id));
	COLUMN(out, OID_TEXT_ARRAY, items, n, put_text(out, item->start.workflow));
	COLUMN(out, OID_INT4_ARRAY, items, n,
		   if (item->start.has_version) put_int4(out, item->start.version);
		   else put_bytes(out, NULL, 0));
	COLUMN(out, OID_TEXT_ARRAY, items, n, put_text(out, item->start.correlation_id));
	COLUMN(out, OID_TEXT_ARRAY, items, n,
		   put_bytes(out, item->start.context, item->start.context_len));
}

/* One column over all steps of all runs: put sees `step` and `run`. */
#define STEP_COLUMN(out, oid, items, n, total, put) \
	do { \
		size_t mark_ = open_column(out, oid, total); \
		for (int run = 0; run < (n); run++) \
		{ \
			for (int s_ = 0; s_ < (items)[run]->run.nsteps; s_++) \
			{ \
				const struct item_step *step = &(items)[run]->run.steps[s_]; \
				(void) step; \
				put; \
			} \
		} \
		close_column(out, mark_); \
	} while (0)

static void
encode_runs(struct buf *out, struct item *const *items, int n)
{
	int			total = 0;

	for (int i = 0; i < n; i++)
		total += items[i]->run.nsteps;
	buf_u32(out, 9);
	COLUMN(out, OID_TEXT_ARRAY, items, n, put_text(out, item->run.task_id));
	COLUMN(out, OID_TEXT_ARRAY, items, n, put_text(out, item->run.owner));
	COLUMN(out, OID_INT4_ARRAY, items, n, put_int4(out, item->mode));
	STEP_COLUMN(out, OID_INT4_ARRAY, items, n, total, put_int4(out, run));
	STEP_COLUMN(out, OID_TEXT_ARRAY, items, n, total, put_text(out, step->node_id));
	STEP_COLUMN(out, OID_INT4_ARRAY, items, n, total, put_int4(out, (int32_t) step->outcome));
	STEP_COLUMN(out, OID_TEXT_ARRAY, items, n, total, put_bytes(out, step->value, step->value_len));
	STEP_COLUMN(out, OID_INT8_ARRAY, items, n, total, put_int8(out, step->started_at));
	STEP_COLUMN(out, OID_INT8_ARRAY, items, n, total, put_int8(out, step->finished_at));
}

/* Events name their step by its place in the flattened steps of all runs. */
#define EVENT_COLUMN(out, oid, items, n, total, put) \
	do { \
		size_t mark_ = open_column(out, oid, total); \
		int step = 0; \
		for (int r_ = 0; r_ < (n); r_++) \
		{ \
			for (int s_ = 0; s_ < (items)[r_]->run.nsteps; s_++, step++) \
			{ \
				const struct item_step *of_ = &(items)[r_]->run.steps[s_]; \
				for (int e_ = 0; e_ < of_->nevents; e_++) \
				{ \
					const struct item_event *event = &of_->events[e_]; \
					(void) event; \
					put; \
				} \
			} \
		} \
		close_column(out, mark_); \
	} while (0)

/* Nothing is written when no step emits any. */
static void
encode_events(struct buf *out, struct item *const *runs, int n)
{
	int			total = 0;

	for (int i = 0; i < n; i++)
	{
		for (int j = 0; j < runs[i]->run.nsteps; j++)
			total += runs[i]->run.steps[j].nevents;
	}
	if (total == 0)
		return;
	buf_u32(out, 3);
	EVENT_COLUMN(out, OID_INT4_ARRAY, runs, n, total, put_int4(out, step));
	EVENT_COLUMN(out, OID_TEXT_ARRAY, runs, n, total, put_text(out, event->type));
	EVENT_COLUMN(out, OID_TEXT_ARRAY, runs, n, total,
				 put_bytes(out, event->payload, event->payload_len));
}

static void
encode_fails(struct buf *out, struct item *const *items, int n)
{
	buf_u32(out, 5);
	COLUMN(out, OID_TEXT_ARRAY, items, n, put_text(out, item->fail.task_id));
	COLUMN(out, OID_TEXT_ARRAY, items, n, put_text(out, item->fail.owner));
	COLUMN(out, OID_TEXT_ARRAY, items, n, put_text(out, item->fail.message));
	COLUMN(out, OID_BOOL_ARRAY, items, n, put_bool(out, item->fail.retryable));
	COLUMN(out, OID_INT4_ARRAY, items, n, put_int4(out, item->mode));
}

static void
encode_beats(struct buf *out, struct item *const *items, int n)
{
	buf_u32(out, 3);
	COLUMN(out, OID_TEXT_ARRAY, items, n, put_text(out, item->beat.task_id));
	COLUMN(out, OID_TEXT_ARRAY, items, n, put_text(out, item->beat.owner));
	COLUMN(out, OID_INT8_ARRAY, items, n, put_int8(out, item->beat.extend_ms));
}

static void
encode_releases(struct buf *out, struct item *const *items, int n)
{
	buf_u32(out, 2);
	COLUMN(out, OID_TEXT_ARRAY, items, n, put_text(out, item->release.task_id));
	COLUMN(out, OID_TEXT_ARRAY, items, n, put_text(out, item->release.owner));
}

static void
encode_polls(struct buf *out, struct item *const *items, int n)
{
	int			queues = 0;
	int			versions = 0;
	size_t		mark;

	for (int i = 0; i < n; i++)
	{
		queues += items[i]->poll.nqueues;
		versions += items[i]->poll.nversions;
	}
	buf_u32(out, 8);
	COLUMN(out, OID_TEXT_ARRAY, items, n, put_text(out, item->poll.owner));
	COLUMN(out, OID_INT4_ARRAY, items, n, put_int4(out, item->poll.max));
	COLUMN(out, OID_INT8_ARRAY, items, n, put_int8(out, item->poll.lease_ms));

#define PAIRS(oid, total, count, put) \
	mark = open_column(out, oid, total); \
	for (int i = 0; i < n; i++) \
	{ \
		for (int j = 0; j < items[i]->poll.count; j++) \
			put; \
	} \
	close_column(out, mark)

	PAIRS(OID_INT4_ARRAY, queues, nqueues, put_int4(out, i));
	PAIRS(OID_TEXT_ARRAY, queues, nqueues, put_text(out, items[i]->poll.queues[j]));
	PAIRS(OID_INT4_ARRAY, versions, nversions, put_int4(out, i));
	PAIRS(OID_TEXT_ARRAY, versions, nversions, put_text(out, items[i]->poll.versions[j].workflow));
	PAIRS(OID_INT4_ARRAY, versions, nversions, put_int4(out, items[i]->poll.versions[j].version));
#undef PAIRS
}

/* The names of queues whose shares are told; NULL stands for those that nobody names. */
struct names
{
	const char **all;
	int			n;
	int			cap;
};

static void
add_name(struct names *names, const char *name)
{
	int			start;
	int			end;

	if (!fleet_share(name, &start, &end))
		return;
	for (int i = 0; i < names->n; i++)
	{
		if (names->all[i] == name || (name != NULL && names->all[i] != NULL && strcmp(names->all[i], name) == 0))
			return;
	}
	if (names->n == names->cap)
	{
		names->cap = names->cap == 0 ? 16 : names->cap * 2;
		names->all = xrealloc(names->all, (size_t) names->cap * sizeof(*names->all));
	}
	names->all[names->n++] = name;
}

static void
collect_names(struct names *names, struct item *const *items, int n)
{
	const char *const *last = NULL;

	for (int i = 0; i < n; i++)
	{
		const struct item_poll *poll = &items[i]->poll;
		int			nqueues;
		const struct fleet_queue *queues;

		/* polls that ask for the same have one list of queues */
		if (!poll->narrow || (last != NULL && poll->queues == last))
			continue;
		last = poll->queues;
		for (int j = 0; j < poll->nqueues; j++)
			add_name(names, poll->queues[j]);
		if (poll->nqueues > 0)
			continue;
		queues = fleet_queues(&nqueues);
		for (int j = 0; j < nqueues; j++)
			add_name(names, queues[j].name);
		add_name(names, NULL);
	}
}

/* Nothing is written when every poll takes what there is. */
static void
encode_shares(struct buf *out, struct item *const *polls, int n)
{
	struct names names = {NULL, 0, 0};
	int			start = 0;
	int			end = 0;
	int			narrow = 0;
	size_t		mark;

	for (int i = 0; i < n; i++)
		narrow += polls[i]->poll.narrow;
	if (narrow == 0)
		return;
	collect_names(&names, polls, n);
	buf_u32(out, 4);
	mark = open_column(out, OID_INT4_ARRAY, narrow);
	for (int i = 0; i < n; i++)
	{
		if (polls[i]->poll.narrow)
			put_int4(out, i);
	}
	close_column(out, mark);

#define NAMES(oid, put) \
	mark = open_column(out, oid, names.n); \
	for (int i = 0; i < names.n; i++) \
	{ \
		fleet_share(names.all[i], &start, &end); \
		put; \
	} \
	close_column(out, mark)

	NAMES(OID_TEXT_ARRAY, put_text(out, names.all[i]));
	NAMES(OID_INT4_ARRAY, put_int4(out, start));
	NAMES(OID_INT4_ARRAY, put_int4(out, end));
#undef NAMES
	free(names.all);
}

static void
bind(struct batch_params *params, int n)
{
	for (int i = 0; i < n; i++)
	{
		const struct buf *bytes = &params->family[i];

		params->formats[i] = 1;
		params->values[i] = bytes->len > 0 ? (const char *) bytes->data : NULL;
		params->lengths[i] = (int) bytes->len;
	}
}

void
batch_encode(struct batch_params *params, struct item *const *items, int nitems)
{
	static void (*const encoders[ITEM_KINDS]) (struct buf *, struct item *const *, int) = {
		[ITEM_START] = encode_starts,
		[ITEM_RUN] = encode_runs,
		[ITEM_FAIL] = encode_fails,
		[ITEM_BEAT] = encode_beats,
		[ITEM_RELEASE] = encode_releases,
		[ITEM_POLL] = encode_polls,
	};
	struct item **family = xmalloc(sizeof(*family) * (size_t) (nitems > 0 ? nitems : 1));

	buf_reset(&params->family[BATCH_EVENTS]);
	buf_reset(&params->family[BATCH_SHARES]);
	for (int kind = 0; kind < ITEM_KINDS; kind++)
	{
		int			n = 0;

		for (int i = 0; i < nitems; i++)
		{
			if ((int) items[i]->kind == kind)
				family[n++] = items[i];
		}
		buf_reset(&params->family[kind]);
		if (n > 0)
			encoders[kind] (&params->family[kind], family, n);
		if (kind == ITEM_RUN)
			encode_events(&params->family[BATCH_EVENTS], family, n);
		if (kind == ITEM_POLL)
			encode_shares(&params->family[BATCH_SHARES], family, n);
	}
	bind(params, BATCH_PARAMS);
	free(family);
}

void
release_encode(struct batch_params *params, const char *const *owners, int n, int backend_pid)
{
	struct buf *array = &params->family[0];

	buf_reset(array);
	open_array(array, OID_TEXT, n);
	for (int i = 0; i < n; i++)
		put_text(array, owners[i]);
	buf_reset(&params->family[1]);
	buf_u32(&params->family[1], (uint32_t) backend_pid);
	bind(params, RELEASE_PARAMS);
}

size_t
batch_params_bytes(const struct batch_params *params)
{
	size_t		bytes = 0;

	for (int i = 0; i < BATCH_PARAMS; i++)
		bytes += params->family[i].len;
	return bytes;
}

void
batch_params_free(struct batch_params *params)
{
	for (int i = 0; i < BATCH_PARAMS; i++)
		buf_free(&params->family[i]);
}

static size_t
length(const char *text)
{
	return text ? strlen(text) : 0;
}

static size_t
step_bytes(const struct item_step *step)
{
	size_t		bytes = 64 + length(step->node_id) + step->value_len;

	for (int i = 0; i < step->nevents; i++)
		bytes += 24 + length(step->events[i].type) + step->events[i].payload_len;
	return bytes;
}

size_t
item_measure(const struct item *item)
{
	size_t		bytes = 64;

	switch (item->kind)
	{
		case ITEM_START:
			return bytes + length(item->start.id) + length(item->start.workflow) +
				length(item->start.correlation_id) + item->start.context_len;
		case ITEM_RUN:
			for (int i = 0; i < item->run.nsteps; i++)
				bytes += step_bytes(&item->run.steps[i]);
			return bytes + length(item->run.task_id) + length(item->run.owner);
		case ITEM_FAIL:
			return bytes + length(item->fail.task_id) + length(item->fail.owner) +
				length(item->fail.message);
		case ITEM_BEAT:
			return bytes + length(item->beat.task_id) + length(item->beat.owner);
		case ITEM_RELEASE:
			return bytes + length(item->release.task_id) + length(item->release.owner);
		case ITEM_POLL:
			for (int i = 0; i < item->poll.nqueues; i++)
				bytes += 16 + length(item->poll.queues[i]);
			for (int i = 0; i < item->poll.nversions; i++)
				bytes += 24 + length(item->poll.versions[i].workflow);
			return bytes + length(item->poll.owner);
	}
	return bytes;
}

int
batch_row_kind(char op)
{
	switch (op)
	{
		case 's':
			return ITEM_START;
		case 'r':
			return ITEM_RUN;
		case 'f':
			return ITEM_FAIL;
		case 'h':
			return ITEM_BEAT;
		case 'd':
			return ITEM_RELEASE;
		case 't':
			return ITEM_POLL;
		default:
			return -1;
	}
}

static const char *
get_text(const PGresult *result, int row, int column)
{
	return PQgetisnull(result, row, column) ? NULL : PQgetvalue(result, row, column);
}

/* An integer of `size` bytes; 0 for NULL, false when the column has another size. */
static bool
get_int(const PGresult *result, int row, int column, int size, int64_t *out)
{
	const uint8_t *data = (const uint8_t *) PQgetvalue(result, row, column);
	uint64_t	value = 0;

	*out = 0;
	if (PQgetisnull(result, row, column))
		return true;
	if (PQgetlength(result, row, column) != size)
		return false;
	for (int i = 0; i < size; i++)
		value = value << 8 | data[i];
	*out = size == 4 ? (int64_t) (int32_t) (uint32_t) value : (int64_t) value;
	return true;
}

bool
batch_result_valid(const PGresult *result, struct wig_error *err)
{
	if (PQnfields(result) != BATCH_COLUMNS)
		return wig_fail(err, "wiggle.batch gave %d columns, %d are expected", PQnfields(result),
						BATCH_COLUMNS);
	if (PQbinaryTuples(result) != 1)
		return wig_fail(err, "wiggle.batch gave text rows, binary ones are expected");
	return true;
}

bool
batch_row_decode(const PGresult *result, int n, struct batch_row *row)
{
	int64_t		item;
	int64_t		code;
	int64_t		version;
	int64_t		attempt;

	if (PQgetlength(result, n, COL_OP) != 1 ||
		!get_int(result, n, COL_ITEM, 4, &item) ||
		!get_int(result, n, COL_CODE, 4, &code) ||
		!get_int(result, n, COL_EXPIRES_AT, 8, &row->expires_at) ||
		!get_int(result, n, COL_VERSION, 4, &version) ||
		!get_int(result, n, COL_ATTEMPT, 4, &attempt) ||
		!get_int(result, n, COL_ITEM_INDEX, 8, &row->item_index))
		return false;
	row->op = PQgetvalue(result, n, COL_OP)[0];
	row->item = (int32_t) item;
	row->code = (int32_t) code;
	row->version = (int32_t) version;
	row->attempt = (int32_t) attempt;
	row->message = get_text(result, n, COL_MESSAGE);
	row->task_id = get_text(result, n, COL_TASK_ID);
	row->instance_id = get_text(result, n, COL_INSTANCE_ID);
	row->status = get_text(result, n, COL_STATUS);
	row->lease_owner = get_text(result, n, COL_LEASE_OWNER);
	row->workflow = get_text(result, n, COL_WORKFLOW);
	row->node_id = get_text(result, n, COL_NODE_ID);
	row->step_name = get_text(result, n, COL_STEP_NAME);
	row->activity = get_text(result, n, COL_ACTIVITY);
	row->kind = get_text(result, n, COL_KIND);
	row->mode = get_text(result, n, COL_MODE);
	row->context = get_text(result, n, COL_CONTEXT);
	row->context_len = (size_t) PQgetlength(result, n, COL_CONTEXT);
	row->base_context = get_text(result, n, COL_BASE_CONTEXT);
	row->base_context_len = (size_t) PQgetlength(result, n, COL_BASE_CONTEXT);
	row->item_map_key = get_text(result, n, COL_ITEM_MAP_KEY);
	row->collect_key = get_text(result, n, COL_COLLECT_KEY);
	row->arm_names = (const uint8_t *) get_text(result, n, COL_ARM_NAMES);
	row->arm_names_len = (size_t) PQgetlength(result, n, COL_ARM_NAMES);
	return true;
}

static uint32_t
read_u32(const uint8_t *data)
{
	return (uint32_t) data[0] << 24 | (uint32_t) data[1] << 16 | (uint32_t) data[2] << 8 | data[3];
}

bool
text_array_next(const uint8_t *array, size_t len, size_t *pos, const char **text, size_t *text_len)
{
	if (*pos == 0)
	{
		if (array == NULL || len < 20 || read_u32(array) != 1 || read_u32(array + 8) != OID_TEXT)
			return false;
		*pos = 20;
	}
	while (len - *pos >= 4)
	{
		uint32_t	size = read_u32(array + *pos);

		*pos += 4;
		if (size == UINT32_MAX)
			continue;
		if (size > len - *pos)
			break;
		*text = (const char *) array + *pos;
		*text_len = size;
		*pos += size;
		return true;
	}
	return false;
}
