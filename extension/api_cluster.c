/*
 * api_cluster.c
 *	  SQL: version, transitions, the clock worker's counters, the test clock, the launcher's door bell.
 */
#include "wiggle.h"

#include "access/htup_details.h"
#include "commands/trigger.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "api.h"
#include "clock.h"
#include "errors.h"
#include "guard.h"
#include "guc.h"
#include "shmem.h"
#include "transition.h"
#include "version.h"
#include "wake.h"

PG_FUNCTION_INFO_V1(wig_version);
PG_FUNCTION_INFO_V1(wig_transition_table);
PG_FUNCTION_INFO_V1(wig_test_set_clock);
PG_FUNCTION_INFO_V1(wig_worker_wanted);
PG_FUNCTION_INFO_V1(wig_rows_rewritten);
PG_FUNCTION_INFO_V1(wig_clock_stats);

/* Answers whatever the SQL objects are, and so has the same row in every version. */
Datum
wig_version(PG_FUNCTION_ARGS)
{
	TupleDesc	desc;
	Datum		values[4] = {0};
	bool		nulls[4] = {false};
	char	   *catalog = wig_catalog_version();

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	values[0] = CStringGetTextDatum(wig_library_version);
	nulls[1] = catalog == NULL;
	if (catalog != NULL)
		values[1] = CStringGetTextDatum(catalog);
	values[2] = TimestampTzGetDatum(wig_now());
	values[3] = BoolGetDatum(wig_runs_with(catalog));
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

Datum
wig_transition_table(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	wig_guard_read();
	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < wig_ntransitions; i++)
	{
		const WigTransition *t = &wig_transitions[i];
		Datum		values[4];
		bool		nulls[4] = {false};

		values[0] = CStringGetTextDatum(t->of_token ? "token" : "instance");
		values[1] = CStringGetTextDatum(t->of_token ? wig_token_status_name(t->from)
										: wig_instance_status_name(t->from));
		values[2] = CStringGetTextDatum(t->of_token ? wig_token_status_name(t->to)
										: wig_instance_status_name(t->to));
		values[3] = CStringGetTextDatum(t->rule);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

Datum
wig_test_set_clock(PG_FUNCTION_ARGS)
{
	wig_guard_read();
	if (!wig_test_clock)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the test clock is not enabled"),
				 errhint("Set wiggle.test_clock = on in postgresql.conf and restart the server.")));
	wig_clock_set(PG_ARGISNULL(0) ? 0 : PG_GETARG_TIMESTAMPTZ(0));
	wig_worker_poke(wig_database());
	PG_RETURN_VOID();
}

Datum
wig_worker_wanted(PG_FUNCTION_ARGS)
{
	/* The script calls this: CREATE EXTENSION fails where nothing could run. */
	wig_shmem_require();
	wig_wake_lifecycle();
	PG_RETURN_VOID();
}

Datum
wig_rows_rewritten(PG_FUNCTION_ARGS)
{
	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("wiggle.rows_rewritten() is a trigger function")));
	/* The clock worker's own SQL (retention) is no news to it. */
	if (wig_shared() != NULL && !wig_is_clock_worker())
		wig_wake_rewritten();
	return PointerGetDatum(NULL);
}

Datum
wig_clock_stats(PG_FUNCTION_ARGS)
{
	static const char *const duties[WIG_NDEADLINES] = {
		[WIG_DEADLINE_TIMER] = "timers",
		[WIG_DEADLINE_LEASE] = "leases",
		[WIG_DEADLINE_SCHEDULE] = "schedules",
		[WIG_DEADLINE_RETENTION] = "retention",
		[WIG_DEADLINE_LEFTOVER] = "leftover",
	};
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	WigDatabase *db = wig_database_find(MyDatabaseId);
	bool		running = false;

	wig_guard_read();
	InitMaterializedSRF(fcinfo, 0);
	if (db == NULL)
		return (Datum) 0;
	SpinLockAcquire(&db->mutex);
	running = db->worker_pid != 0;
	SpinLockRelease(&db->mutex);
	for (int i = 0; i < WIG_NDEADLINES; i++)
	{
		Datum		values[4];
		bool		nulls[4] = {false};

		values[0] = CStringGetTextDatum(duties[i]);
		values[1] = BoolGetDatum(running);
		values[2] = Int64GetDatum((int64) pg_atomic_read_u64(&db->passes[i]));
		values[3] = Int64GetDatum((int64) pg_atomic_read_u64(&db->errors));
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
