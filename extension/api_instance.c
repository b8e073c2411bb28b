/*
 * api_instance.c
 *	  SQL: start, mint, cancel, signal; whereabouts; the event horizon.
 */
#include "wiggle.h"

#include "funcapi.h"
#include "miscadmin.h"
#include "utils/tuplestore.h"

#include "api.h"
#include "cancel.h"
#include "event.h"
#include "guard.h"
#include "mint.h"
#include "signal_instance.h"
#include "start.h"

PG_FUNCTION_INFO_V1(wig_start_instance);
PG_FUNCTION_INFO_V1(wig_mint);
PG_FUNCTION_INFO_V1(wig_cancel_instance);
PG_FUNCTION_INFO_V1(wig_signal_sql);
PG_FUNCTION_INFO_V1(wig_whereabouts);
PG_FUNCTION_INFO_V1(wig_event_horizon_sql);

Datum
wig_start_instance(PG_FUNCTION_ARGS)
{
	WigStart	start = {0};
	WigStarted	started;
	WigRefusal	refusal;
	WigWork    *work;

	wig_guard_write("wiggle.start()");
	start.workflow = WIG_ARG_CSTRING(0);
	start.context = wig_arg_json(fcinfo, 1);
	start.context_len = start.context ? strlen(start.context) : 0;
	start.version = PG_ARGISNULL(2) ? 0 : PG_GETARG_INT32(2);
	start.correlation_id = WIG_ARG_CSTRING(3);
	start.id = WIG_ARG_CSTRING(4);

	work = wig_work_begin(false);
	if (!wig_start(work, &start, &started, &refusal))
		wig_raise(&refusal, NULL);
	wig_work_end(work);
	PG_RETURN_TEXT_P(cstring_to_text(started.id));
}

Datum
wig_mint(PG_FUNCTION_ARGS)
{
	int			n = PG_ARGISNULL(0) ? 1 : PG_GETARG_INT32(0);
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	wig_guard_read();
	if (n < 0)
		ereport(ERROR,
				(errcode(ERRCODE_WIG_INVALID),
				 errmsg("cannot mint %d ids", n)));
	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	for (int i = 0; i < n; i++)
	{
		Datum		value = CStringGetTextDatum(wig_mint_id(wig_shard_id()));
		bool		isnull = false;

		CHECK_FOR_INTERRUPTS();
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, &value, &isnull);
	}
	return (Datum) 0;
}

Datum
wig_cancel_instance(PG_FUNCTION_ARGS)
{
	WigRefusal	refusal;
	WigWork    *work;

	wig_guard_write("wiggle.cancel()");
	work = wig_work_begin(false);
	if (!wig_cancel(work, WIG_ARG_CSTRING(0), WIG_ARG_CSTRING(1), &refusal))
		wig_raise_about(&refusal, "instance", WIG_ARG_CSTRING(0));
	wig_work_end(work);
	PG_RETURN_VOID();
}

Datum
wig_signal_sql(PG_FUNCTION_ARGS)
{
	char	   *payload = wig_arg_json(fcinfo, 2);
	WigRefusal	refusal;
	WigWork    *work;

	wig_guard_write("wiggle.signal()");
	work = wig_work_begin(false);
	if (!wig_signal(work, WIG_ARG_CSTRING(0), WIG_ARG_CSTRING(1), payload,
					payload ? strlen(payload) : 0, &refusal))
		wig_raise_about(&refusal, "instance", WIG_ARG_CSTRING(0));
	wig_work_end(work);
	PG_RETURN_VOID();
}

Datum
wig_whereabouts(PG_FUNCTION_ARGS)
{
	wig_guard_read();
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(wig_absence(WIG_ARG_CSTRING(0), WIG_ARG_CSTRING(1))));
}

Datum
wig_event_horizon_sql(PG_FUNCTION_ARGS)
{
	wig_guard_feed();
	PG_RETURN_INT64(wig_event_horizon());
}
