/*
 * api.c
 *	  Reading the arguments of SQL functions.
 */
#include "wiggle.h"

#include "utils/jsonb.h"
#include "utils/timestamp.h"

#include "api.h"
#include "errors.h"

char *
wig_arg_json(FunctionCallInfo fcinfo, int n)
{
	Jsonb	   *jb;

	if (PG_ARGISNULL(n))
		return NULL;
	jb = PG_GETARG_JSONB_P(n);
	return JsonbToCString(NULL, &jb->root, VARSIZE(jb));
}

int64
wig_arg_millis(FunctionCallInfo fcinfo, int n, const char *name)
{
	Interval   *interval;
	double		ms;

	if (PG_ARGISNULL(n))
		return -1;
	interval = PG_GETARG_INTERVAL_P(n);
	ms = interval->month * (30.0 * 86400000.0) + interval->day * 86400000.0 +
		interval->time / 1000.0;
	if (ms < 0 || ms > (double) WIG_MAX_MILLIS)
		ereport(ERROR,
				(errcode(ERRCODE_WIG_INVALID),
				 errmsg("%s must be between zero and one hundred years", name)));
	return (int64) ms;
}
