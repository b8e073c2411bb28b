/*
 * api.c
 *	  Reading the arguments of SQL functions, and refusing them.
 */
#include "wiggle.h"

#include "utils/jsonb.h"
#include "utils/timestamp.h"

#include "api.h"
#include "ids.h"
#include "mint.h"

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

char *
wig_absence(const char *kind, const char *id)
{
	int32		shard = wig_id_shard(id, strlen(id));
	int32		mine = wig_shard_id();

	if (shard == WIG_NO_SHARD || shard == mine)
		return psprintf("No %s has the id \"%s\".", kind, id);
	if (mine == WIG_NO_SHARD)
		return psprintf("The id \"%s\" names shard %d; this database is no shard yet.", id, shard);
	return psprintf("The id \"%s\" names shard %d; this database is shard %d.", id, shard, mine);
}

void
wig_raise_about(const WigRefusal *refusal, const char *kind, const char *id)
{
	wig_raise(refusal, refusal->code == 404 && id != NULL ? wig_absence(kind, id) : NULL);
}
