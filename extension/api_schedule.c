/*
 * api_schedule.c
 *	  SQL: schedule.
 */
#include "wiggle.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "utils/timestamp.h"

#include "api.h"
#include "clock.h"
#include "errors.h"
#include "graph.h"
#include "guard.h"
#include "ids.h"
#include "jsontext.h"
#include "mint.h"
#include "schedule.h"
#include "shmem.h"
#include "wake.h"

PG_FUNCTION_INFO_V1(wig_schedule);

#define MAX_CRON 120

static void
check_workflow(const char *workflow)
{
	WigStore   *store;

	if (workflow == NULL || workflow[0] == '\0')
		ereport(ERROR, (errcode(ERRCODE_WIG_INVALID), errmsg("workflow name is required")));
	store = wig_store_open(false);
	if (wig_graph_latest(store, workflow) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_WIG_NOT_FOUND),
				 errmsg("workflow '%s' not found", wig_clip(workflow, WIG_MAX_NAME)),
				 errhint(WIG_HINT_WORKFLOWS)));
	wig_store_close(store);
}

/* A schedule elsewhere would fire, and no list of schedules would show it. */
static void
check_home(void)
{
	if (SPI_execute("select shard_id, home from wiggle.wf_shard where home <> shard_id", false, 1) != SPI_OK_SELECT)
		elog(ERROR, "could not read wf_shard");
	if (SPI_processed > 0)
		ereport(ERROR,
				(errcode(ERRCODE_WIG_INVALID),
				 errmsg("schedules live in the home database, shard %s; this one is shard %s",
						SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 2),
						SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1)),
				 errhint("Call wiggle.schedule() there, or use \"wiggle schedule create\", which finds it.")));
}

static WigCadence
read_cadence(FunctionCallInfo fcinfo)
{
	WigCadence	cadence = {0, WIG_ARG_CSTRING(2)};

	if (PG_ARGISNULL(1) == (cadence.cron == NULL))
		ereport(ERROR,
				(errcode(ERRCODE_WIG_INVALID),
				 errmsg("a schedule has either an interval or a cron expression"),
				 errhint("Give one of every => '15 min' and cron => '30 6 * * 1-5'.")));
	if (cadence.cron != NULL && wig_longer(cadence.cron, MAX_CRON))
		ereport(ERROR,
				(errcode(ERRCODE_WIG_INVALID),
				 errmsg("cron expression is longer than %d characters", MAX_CRON)));
	if (!PG_ARGISNULL(1))
	{
		Interval   *interval = PG_GETARG_INTERVAL_P(1);

		if (interval->month < 0 || interval->day < 0 || interval->time < 0 ||
			(interval->month == 0 && interval->day == 0 && interval->time < 1000))
			ereport(ERROR,
					(errcode(ERRCODE_WIG_INVALID),
					 errmsg("schedule interval must be positive")));
		cadence.every_millis = wig_arg_millis(fcinfo, 1, "every");
	}
	return cadence;
}

/* A schedule id has the form of an instance's, under its own prefix. */
static char *
mint_schedule_id(void)
{
	char	   *id = wig_mint_id(wig_shard_id());

	return psprintf("sched%s", id + strlen("wfi"));
}

Datum
wig_schedule(PG_FUNCTION_ARGS)
{
	char	   *workflow = WIG_ARG_CSTRING(0);
	char	   *context = wig_arg_json(fcinfo, 3);
	struct wig_json_info info;
	struct wig_error err;
	WigCadence	cadence;
	TimestampTz now;
	TimestampTz next;
	Datum		values[7];
	char		nulls[7] = {' ', ' ', ' ', ' ', ' ', ' ', ' '};
	Oid			types[] = {TEXTOID, TEXTOID, INT8OID, TEXTOID, TEXTOID, TIMESTAMPTZOID, TIMESTAMPTZOID};
	MemoryContext caller = CurrentMemoryContext;
	HeapTuple	row;
	TupleDesc	desc;

	wig_guard_write("wiggle.schedule()");
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if (context == NULL)
		context = pstrdup("{}");
	if (!wig_json_check(context, strlen(context), &info, &err))
		ereport(ERROR, (errcode(ERRCODE_WIG_INVALID), errmsg("context: %s", err.message)));
	cadence = read_cadence(fcinfo);
	check_workflow(workflow);
	now = wig_now();
	next = cadence.cron != NULL ? wig_schedule_next(&cadence, now, now)
		: TimestampTzPlusMilliseconds(now, cadence.every_millis);

	values[0] = CStringGetTextDatum(mint_schedule_id());
	values[1] = CStringGetTextDatum(workflow);
	values[2] = Int64GetDatum(cadence.every_millis);
	nulls[2] = cadence.cron != NULL ? 'n' : ' ';
	values[3] = cadence.cron != NULL ? CStringGetTextDatum(cadence.cron) : (Datum) 0;
	nulls[3] = cadence.cron != NULL ? ' ' : 'n';
	values[4] = CStringGetTextDatum(context);
	values[5] = TimestampTzGetDatum(next);
	values[6] = TimestampTzGetDatum(now);

	SPI_connect();
	check_home();
	if (SPI_execute_with_args("insert into wiggle.wf_schedule as s"
							  " (id, workflow, every_millis, cron, context, next_fire_at, created_at)"
							  " values ($1, $2, $3, $4, $5::json, $6, $7)"
							  " on conflict (workflow) do update set every_millis = excluded.every_millis,"
							  " cron = excluded.cron, context = excluded.context,"
							  " next_fire_at = excluded.next_fire_at"
							  " returning id, workflow, every_millis, cron, context::jsonb,"
							  " next_fire_at, created_at",
							  lengthof(types), types, values, nulls, false, 0) != SPI_OK_INSERT_RETURNING)
		elog(ERROR, "could not write wf_schedule");
	{
		MemoryContext spi = MemoryContextSwitchTo(caller);

		row = heap_copytuple(SPI_tuptable->vals[0]);
		MemoryContextSwitchTo(spi);
	}
	SPI_finish();
	wig_wake_at(WIG_DEADLINE_SCHEDULE, next);
	PG_RETURN_DATUM(heap_copy_tuple_as_datum(row, BlessTupleDesc(desc)));
}
