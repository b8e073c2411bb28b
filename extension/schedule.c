/*
 * schedule.c
 *	  Cadences, and the firing of due schedules by the clock worker.
 */
#include "wiggle.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "commands/async.h"
#include "common/pg_prng.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "clock.h"
#include "cron.h"
#include "durable.h"
#include "errors.h"
#include "mint.h"
#include "resting.h"
#include "schedule.h"
#include "start.h"
#include "work.h"

/* One whose row somebody holds is looked at again after this. */
#define BUSY_RETRY_USECS	(20 * 1000)
/* One due row, copied out of SPI's memory. */
typedef struct DueSchedule
{
	char	   *id;
	char	   *workflow;
	char	   *context;
	WigCadence	cadence;
	TimestampTz due_at;
} DueSchedule;

TimestampTz
wig_schedule_next(const WigCadence *cadence, TimestampTz last, TimestampTz after)
{
	struct wig_cron cron;
	struct wig_error err = {0};
	int64		period = cadence->every_millis * 1000;
	int64		next;

	if (cadence->cron == NULL)
		return after < last ? last : last + ((after - last) / period + 1) * period;

	if (!wig_cron_parse(cadence->cron, &cron, &err))
		ereport(ERROR,
				(errcode(ERRCODE_WIG_INVALID), errmsg("%s", err.message),
				 errhint("The five fields, in UTC, are minute 0-59, hour 0-23, day of the month 1-31, month 1-12 and weekday 0-7.")));
	if (!wig_cron_next(&cron, wig_to_micros(after) / USECS_PER_SEC, &next, &err))
		ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("%s", err.message)));
	return wig_from_millis(next * 1000);
}

/* The shard for the next instance, by the generation in force; -1: this one. */
static int32
pick_shard(TimestampTz now)
{
	Oid			types[] = {TIMESTAMPTZOID, FLOAT8OID};
	/* By chance, in proportion to the weights: a schedule's share needs no memory. */
	Datum		values[] = {
		TimestampTzGetDatum(now), Float8GetDatum(pg_prng_double(&pg_global_prng_state))
	};
	bool		isnull;

	/* The newest that has begun, before any has begun the first, as proxies have it. */
	if (SPI_execute_with_args("with present as (select generation from wiggle.wf_placement"
							  "  order by active_from <= $1 desc,"
							  "  case when active_from <= $1 then -generation else generation end limit 1),"
							  " slots as (select shard, sum(weight) over (order by shard) as upto,"
							  "  sum(weight) over () as total from wiggle.wf_placement"
							  "  where generation = (select generation from present))"
							  " select shard from slots where upto > $2 * total order by upto limit 1",
							  2, types, values, NULL, true, 1) != SPI_OK_SELECT)
		elog(ERROR, "could not read wf_placement");
	if (SPI_processed == 0)
		return -1;
	return DatumGetInt32(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull));
}

static void
start_here(const DueSchedule *s, const char *correlation)
{
	WigStart	start = {
		.workflow = s->workflow,
		.correlation_id = correlation,
		.context = s->context,
		.context_len = strlen(s->context)
	};
	WigStarted	started;
	WigRefusal	refusal;
	WigWork    *work = wig_work_begin(false);

	if (!wig_start(work, &start, &started, &refusal))
		wig_raise(&refusal, NULL);
	wig_work_end(work);
}

static void
leave_in_outbox(const DueSchedule *s, const char *correlation, int32 shard, TimestampTz now)
{
	Oid			types[] = {TEXTOID, INT4OID, TEXTOID, TEXTOID, TEXTOID, TIMESTAMPTZOID};
	Datum		values[] = {
		CStringGetTextDatum(wig_mint_id(shard)), Int32GetDatum(shard),
		CStringGetTextDatum(s->workflow), CStringGetTextDatum(correlation),
		CStringGetTextDatum(s->context), TimestampTzGetDatum(now)
	};

	if (SPI_execute_with_args("insert into wiggle.wf_outbox values ($1, $2, $3, $4, $5::json, $6)",
							  lengthof(types), types, values, NULL, false, 0) != SPI_OK_INSERT)
		elog(ERROR, "could not insert into wf_outbox");
	/* A proxy acts on the row in another database: a crash or a failover must not fire again. */
	wig_commit_durably();
	Async_Notify("wiggle_outbox", "");
}

/* Move the due time on, if it still is what was read; false: somebody changed it. */
static bool
move_on(const DueSchedule *s, TimestampTz next)
{
	Oid			types[] = {TEXTOID, TIMESTAMPTZOID, TIMESTAMPTZOID};
	Datum		values[] = {
		CStringGetTextDatum(s->id), TimestampTzGetDatum(s->due_at), TimestampTzGetDatum(next)
	};

	if (SPI_execute_with_args("update wiggle.wf_schedule set next_fire_at = $3"
							  " where id = $1 and next_fire_at = $2",
							  lengthof(types), types, values, NULL, false, 0) != SPI_OK_UPDATE)
		elog(ERROR, "could not update wf_schedule");
	return SPI_processed == 1;
}

static void
fire(void *arg)
{
	const DueSchedule *s = arg;
	TimestampTz now = wig_now();
	char	   *correlation = psprintf("schedule:%s", s->id);
	int32		shard;

	/* One catch-up fire after a pause, then on time again. */
	if (!move_on(s, wig_schedule_next(&s->cadence, s->due_at, now)))
		return;
	shard = pick_shard(now);
	if (shard < 0 || shard == wig_shard_id())
		start_here(s, correlation);
	else
		leave_in_outbox(s, correlation, shard, now);
}

/* Those that are due (ahead: that are not), locked, up to max of them (0: all). */
static DueSchedule *
read_schedules(bool ahead, TimestampTz now, int max, int *n)
{
	Oid			types[] = {TIMESTAMPTZOID, BOOLOID};
	Datum		values[] = {TimestampTzGetDatum(now), BoolGetDatum(ahead)};
	DueSchedule *due;

	if (SPI_execute_with_args("select id, workflow, context, every_millis, cron, next_fire_at"
							  " from wiggle.wf_schedule where (next_fire_at > $1) = $2"
							  " order by next_fire_at, id for update skip locked",
							  2, types, values, NULL, false, max) != SPI_OK_SELECT)
		elog(ERROR, "could not read wf_schedule");
	*n = (int) SPI_processed;
	due = palloc0(sizeof(DueSchedule) * (*n + 1));
	for (int i = 0; i < *n; i++)
	{
		HeapTuple	row = SPI_tuptable->vals[i];
		TupleDesc	desc = SPI_tuptable->tupdesc;
		bool		isnull;

		due[i].id = SPI_getvalue(row, desc, 1);
		due[i].workflow = SPI_getvalue(row, desc, 2);
		due[i].context = SPI_getvalue(row, desc, 3);
		due[i].cadence.every_millis = DatumGetInt64(SPI_getbinval(row, desc, 4, &isnull));
		due[i].cadence.cron = SPI_getvalue(row, desc, 5);
		due[i].due_at = DatumGetTimestampTz(SPI_getbinval(row, desc, 6, &isnull));
	}
	return due;
}

/* When the first that is not due yet will be; *left is how many are due. */
static TimestampTz
next_due(TimestampTz now, int64 *left)
{
	Oid			types[] = {TIMESTAMPTZOID};
	Datum		values[] = {TimestampTzGetDatum(now)};
	HeapTuple	row;
	TupleDesc	desc;
	bool		isnull;
	Datum		value;

	if (SPI_execute_with_args("select count(*) filter (where next_fire_at <= $1),"
							  " min(next_fire_at) filter (where next_fire_at > $1) from wiggle.wf_schedule",
							  1, types, values, NULL, false, 1) != SPI_OK_SELECT)
		elog(ERROR, "could not read wf_schedule");
	row = SPI_tuptable->vals[0];
	desc = SPI_tuptable->tupdesc;
	*left = DatumGetInt64(SPI_getbinval(row, desc, 1, &isnull));
	value = SPI_getbinval(row, desc, 2, &isnull);
	return isnull ? WIG_NEVER : DatumGetTimestampTz(value);
}

bool
wig_schedule_fire_due(TimestampTz now, int max, TimestampTz *next)
{
	TimestampTz again = WIG_NEVER;
	int64		left;
	int			resting = 0;
	int			n;
	DueSchedule *due;

	SPI_connect();
	max += wig_resting_count(now);
	due = read_schedules(false, now, max, &n);
	for (int i = 0; i < n; i++)
	{
		TimestampTz until = wig_resting_until(due[i].id, now);

		CHECK_FOR_INTERRUPTS();
		if (until <= now && wig_work_attempt(fire, &due[i]))
			continue;
		/* It cannot fire (its workflow is not registered): the others do. */
		again = Min(again, until > now ? until : wig_rest(due[i].id, now));
		resting++;
	}
	*next = Min(again, next_due(now, &left));
	SPI_finish();
	/* Those whose row somebody holds. */
	if (n < max && left > resting)
		*next = Min(*next, now + BUSY_RETRY_USECS);
	return n == max;
}

void
wig_schedule_set_back(TimestampTz now, TimestampTz back)
{
	int			n;
	DueSchedule *ahead;

	SPI_connect();
	ahead = read_schedules(true, now, 0, &n);
	for (int i = 0; i < n; i++)
	{
		TimestampTz next;

		/* A cron's next minute may have been fired for, when it is so near. */
		if (ahead[i].cadence.cron != NULL && back <= USECS_PER_MINUTE)
			continue;
		next = wig_schedule_next(&ahead[i].cadence, now, now);
		if (next < ahead[i].due_at)
			move_on(&ahead[i], next);
	}
	SPI_finish();
}
