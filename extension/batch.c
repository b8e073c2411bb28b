/*
 * batch.c
 *	  Unpacking wiggle.batch()'s composites of parallel arrays.
 */
#include "wiggle.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "batch.h"
#include "errors.h"

/* One array of a family; text elements are read as terminated strings. */
typedef struct Column
{
	Datum	   *values;
	bool	   *nulls;
	int			n;
} Column;

#define MAX_COLUMNS 9

static void
length_error(const char *family)
{
	ereport(ERROR,
			(errcode(ERRCODE_WIG_INVALID),
			 errmsg("the arrays of batch_%s differ in length, or an index is out of range", family)));
}

/* Read the arrays of one composite; false when the family is absent. */
static bool
read_family(const NullableDatum *arg, Column *columns, int ncolumns)
{
	HeapTupleHeader record;
	HeapTupleData tuple;
	TupleDesc	desc;
	Datum		values[MAX_COLUMNS];
	bool		nulls[MAX_COLUMNS];

	memset(columns, 0, ncolumns * sizeof(Column));
	if (arg->isnull)
		return false;
	record = DatumGetHeapTupleHeader(arg->value);
	desc = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(record),
								  HeapTupleHeaderGetTypMod(record));
	tuple.t_len = HeapTupleHeaderGetDatumLength(record);
	ItemPointerSetInvalid(&tuple.t_self);
	tuple.t_tableOid = InvalidOid;
	tuple.t_data = record;
	heap_deform_tuple(&tuple, desc, values, nulls);

	for (int i = 0; i < ncolumns; i++)
	{
		ArrayType  *array;
		int16		len;
		bool		byval;
		char		align;

		if (nulls[i])
			continue;
		array = DatumGetArrayTypeP(values[i]);
		get_typlenbyvalalign(ARR_ELEMTYPE(array), &len, &byval, &align);
		deconstruct_array(array, ARR_ELEMTYPE(array), len, byval, align,
						  &columns[i].values, &columns[i].nulls, &columns[i].n);
	}
	ReleaseTupleDesc(desc);
	return true;
}

static void
check_lengths(const char *family, const Column *columns, int from, int to)
{
	for (int i = from + 1; i < to; i++)
		if (columns[i].n != columns[from].n)
			length_error(family);
}

static const char *
get_text(const Column *c, int i)
{
	return c->nulls[i] ? NULL : TextDatumGetCString(c->values[i]);
}

/* Text that may be large: not copied, not terminated. */
static const char *
get_bytes(const Column *c, int i, size_t *len)
{
	text	   *t;

	*len = 0;
	if (c->nulls[i])
		return NULL;
	t = DatumGetTextPP(c->values[i]);
	*len = VARSIZE_ANY_EXHDR(t);
	return VARDATA_ANY(t);
}

static int32
get_int4(const Column *c, int i)
{
	return c->nulls[i] ? 0 : DatumGetInt32(c->values[i]);
}

static int64
get_int8(const Column *c, int i)
{
	return c->nulls[i] ? 0 : DatumGetInt64(c->values[i]);
}

static void
unpack_starts(const NullableDatum *arg, WigBatch *batch)
{
	Column		c[5];

	if (!read_family(arg, c, 5))
		return;
	check_lengths("starts", c, 0, 5);
	batch->nstarts = c[0].n;
	batch->starts = palloc0(sizeof(WigStart) * (c[0].n + 1));
	for (int i = 0; i < c[0].n; i++)
	{
		WigStart   *s = &batch->starts[i];

		s->id = get_text(&c[0], i);
		s->workflow = get_text(&c[1], i);
		s->version = get_int4(&c[2], i);
		s->correlation_id = get_text(&c[3], i);
		s->context = get_bytes(&c[4], i, &s->context_len);
	}
}

/* Emitted events come flattened, grouped by step in the steps' order. */
static void
unpack_events(const NullableDatum *arg, WigStep *steps, int nsteps)
{
	Column		c[3];
	WigEmitted *events;
	int			next = 0;

	if (!read_family(arg, c, 3))
		return;
	check_lengths("events", c, 0, 3);
	events = palloc0(sizeof(WigEmitted) * (c[0].n + 1));
	for (int i = 0; i < nsteps; i++)
	{
		steps[i].events = &events[next];
		for (; next < c[0].n && get_int4(&c[0], next) == i; next++)
		{
			events[next].type = get_text(&c[1], next);
			events[next].payload = get_bytes(&c[2], next, &events[next].payload_len);
			steps[i].nevents++;
		}
	}
	if (next != c[0].n)
		length_error("events");
}

static void
unpack_runs(const NullableDatum *arg, const NullableDatum *events_arg, WigBatch *batch)
{
	Column		c[9];
	WigStep    *steps;
	int			next = 0;

	if (!read_family(arg, c, 9))
		return;
	check_lengths("runs", c, 0, 3);
	check_lengths("runs", c, 3, 9);
	batch->nruns = c[0].n;
	batch->runs = palloc0(sizeof(WigRun) * (c[0].n + 1));
	steps = palloc0(sizeof(WigStep) * (c[3].n + 1));
	for (int i = 0; i < c[0].n; i++)
	{
		WigRun	   *run = &batch->runs[i];
		int			mode = get_int4(&c[2], i);

		run->task_id = get_text(&c[0], i);
		run->owner = get_text(&c[1], i);
		run->final = (mode & WIG_MODE_BIT_FINAL) != 0;
		run->complete = (mode & WIG_MODE_BIT_COMPLETE) != 0;
		run->asked_again = (mode & WIG_MODE_BIT_ASKED_AGAIN) != 0;
		run->grouped = (mode & WIG_MODE_BIT_GROUPED) != 0;
		run->merge = (mode & (WIG_MODE_BIT_MERGE | WIG_MODE_BIT_COMPLETE)) != 0;
		run->steps = &steps[next];
		for (; next < c[3].n && get_int4(&c[3], next) == i; next++)
		{
			WigStep    *step = &steps[next];

			step->node_id = get_text(&c[4], next);
			step->outcome = (WigOutcome) get_int4(&c[5], next);
			step->value = get_bytes(&c[6], next, &step->value_len);
			step->started_ms = get_int8(&c[7], next);
			step->finished_ms = get_int8(&c[8], next);
			if (step->value == NULL)
				step->outcome = WIG_OUTCOME_NONE;
			else if (step->outcome == WIG_OUTCOME_PREDICATE)
				step->value = get_text(&c[6], next);
			run->nsteps++;
		}
	}
	/* Steps must be grouped by run, in the runs' order. */
	if (next != c[3].n)
		length_error("runs");
	unpack_events(events_arg, steps, c[3].n);
}

static void
unpack_fails(const NullableDatum *arg, WigBatch *batch)
{
	Column		c[5];

	if (!read_family(arg, c, 5))
		return;
	check_lengths("fails", c, 0, 5);
	batch->nfails = c[0].n;
	batch->fails = palloc0(sizeof(WigFail) * (c[0].n + 1));
	for (int i = 0; i < c[0].n; i++)
	{
		WigFail    *f = &batch->fails[i];

		f->task_id = get_text(&c[0], i);
		f->owner = get_text(&c[1], i);
		f->message = get_text(&c[2], i);
		f->retryable = !c[3].nulls[i] && DatumGetBool(c[3].values[i]);
		f->asked_again = (get_int4(&c[4], i) & WIG_MODE_BIT_ASKED_AGAIN) != 0;
	}
}

static void
unpack_beats(const NullableDatum *arg, WigBatch *batch)
{
	Column		c[3];

	if (!read_family(arg, c, 3))
		return;
	check_lengths("beats", c, 0, 3);
	batch->nbeats = c[0].n;
	batch->beats = palloc0(sizeof(WigBeat) * (c[0].n + 1));
	for (int i = 0; i < c[0].n; i++)
	{
		batch->beats[i].task_id = get_text(&c[0], i);
		batch->beats[i].owner = get_text(&c[1], i);
		batch->beats[i].extend_ms = get_int8(&c[2], i);
	}
}

static void
unpack_releases(const NullableDatum *arg, WigBatch *batch)
{
	Column		c[2];

	if (!read_family(arg, c, 2))
		return;
	check_lengths("releases", c, 0, 2);
	batch->nreleases = c[0].n;
	batch->releases = palloc0(sizeof(WigRelease) * (c[0].n + 1));
	for (int i = 0; i < c[0].n; i++)
	{
		batch->releases[i].task_id = get_text(&c[0], i);
		batch->releases[i].owner = get_text(&c[1], i);
	}
}

/* Queues and versions come flattened, grouped by poll in the polls' order. */
static void
unpack_polls(const NullableDatum *arg, WigBatch *batch)
{
	Column		c[8];
	const char **queues;
	WigVersion *versions;
	int			q = 0;
	int			v = 0;

	if (!read_family(arg, c, 8))
		return;
	check_lengths("polls", c, 0, 3);
	check_lengths("polls", c, 3, 5);
	check_lengths("polls", c, 5, 8);
	batch->npolls = c[0].n;
	batch->polls = palloc0(sizeof(WigPoll) * (c[0].n + 1));
	queues = palloc(sizeof(char *) * (c[3].n + 1));
	versions = palloc(sizeof(WigVersion) * (c[5].n + 1));
	for (int i = 0; i < c[0].n; i++)
	{
		WigPoll    *poll = &batch->polls[i];

		poll->owner = get_text(&c[0], i);
		poll->max = get_int4(&c[1], i);
		poll->lease_ms = get_int8(&c[2], i);
		poll->queues = &queues[q];
		for (; q < c[3].n && get_int4(&c[3], q) == i; q++)
		{
			const char *name = get_text(&c[4], q);

			queues[q] = name ? name : "";
			poll->nqueues++;
		}
		poll->versions = &versions[v];
		for (; v < c[5].n && get_int4(&c[5], v) == i; v++)
		{
			const char *workflow = get_text(&c[6], v);

			versions[v].workflow = workflow ? workflow : "";
			versions[v].version = get_int4(&c[7], v);
			poll->nversions++;
		}
	}
	if (q != c[3].n || v != c[5].n)
		length_error("polls");
}

/* Shares are those of all polls that are listed. */
static void
unpack_shares(const NullableDatum *arg, WigBatch *batch)
{
	Column		c[4];
	WigShare   *shares;

	if (!read_family(arg, c, 4))
		return;
	check_lengths("shares", c, 1, 4);
	shares = palloc(sizeof(WigShare) * (c[1].n + 1));
	for (int i = 0; i < c[1].n; i++)
	{
		shares[i] = (WigShare) {get_text(&c[1], i), get_int4(&c[2], i), get_int4(&c[3], i)};
		if (shares[i].start < 0 || shares[i].end < shares[i].start || shares[i].end > WIG_BUCKETS)
			ereport(ERROR,
					(errcode(ERRCODE_WIG_INVALID),
					 errmsg("a share of [%d, %d) is none of %d buckets", shares[i].start, shares[i].end,
							WIG_BUCKETS)));
	}
	for (int i = 0; i < c[0].n; i++)
	{
		int			poll = get_int4(&c[0], i);

		if (poll < 0 || poll >= batch->npolls)
			length_error("shares");
		batch->polls[poll].shares = shares;
		batch->polls[poll].nshares = c[1].n;
	}
	batch->divided = true;
}

void
wig_batch_unpack(const NullableDatum *families, WigBatch *batch)
{
	memset(batch, 0, sizeof(*batch));
	unpack_starts(&families[0], batch);
	unpack_runs(&families[1], &families[6], batch);
	unpack_fails(&families[2], batch);
	unpack_beats(&families[3], batch);
	unpack_releases(&families[4], batch);
	unpack_polls(&families[5], batch);
	unpack_shares(&families[7], batch);
}
