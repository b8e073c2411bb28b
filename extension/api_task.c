/*
 * api_task.c
 *	  SQL: poll, complete, decide, fail, heartbeat.
 */
#include "wiggle.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/jsonb.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "api.h"
#include "claim.h"
#include "guard.h"
#include "guc.h"
#include "report.h"
#include "task.h"
#include "view.h"

PG_FUNCTION_INFO_V1(wig_poll);
PG_FUNCTION_INFO_V1(wig_complete);
PG_FUNCTION_INFO_V1(wig_decide);
PG_FUNCTION_INFO_V1(wig_fail_task);
PG_FUNCTION_INFO_V1(wig_heartbeat);

#define TASK_NATTS 18
#define OUTCOME_NATTS 6

static void
versions_error(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_WIG_INVALID),
			 errmsg("versions must be an array of [workflow, version] pairs"),
			 errhint("For example '[[\"order\", 3]]'.")));
}

/* [["order", 3], …] */
static void
read_versions(Jsonb *jb, WigPoll *poll)
{
	JsonbIterator *it;
	JsonbIteratorToken token;
	JsonbValue	v;
	WigVersion *versions = palloc(sizeof(WigVersion) * (JB_ROOT_COUNT(jb) + 1));
	int			field = 0;
	int			depth = 0;

	if (!JB_ROOT_IS_ARRAY(jb) || JB_ROOT_IS_SCALAR(jb))
		versions_error();
	it = JsonbIteratorInit(&jb->root);
	while ((token = JsonbIteratorNext(&it, &v, false)) != WJB_DONE)
	{
		if (token == WJB_BEGIN_ARRAY)
		{
			if (++depth > 2)
				versions_error();
			field = 0;
		}
		else if (token == WJB_END_ARRAY)
		{
			if (depth-- == 2 && field != 2)
				versions_error();
			else if (depth == 1)
				poll->nversions++;
		}
		else if (token == WJB_ELEM && depth == 2 && field == 0 && v.type == jbvString)
		{
			versions[poll->nversions].workflow = pnstrdup(v.val.string.val, v.val.string.len);
			field++;
		}
		else if (token == WJB_ELEM && depth == 2 && field == 1 && v.type == jbvNumeric)
		{
			int64		version =
				DatumGetInt64(DirectFunctionCall1(numeric_int8, NumericGetDatum(v.val.numeric)));

			if (version < 1 || version > PG_INT32_MAX)
				versions_error();
			versions[poll->nversions].version = (int32) version;
			field++;
		}
		else
			versions_error();
	}
	poll->versions = versions;
}

static void
read_queues(ArrayType *array, WigPoll *poll)
{
	Datum	   *elems;
	bool	   *nulls;
	int			n;
	const char **queues;

	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &elems, &nulls, &n);
	queues = palloc(sizeof(char *) * (n + 1));
	for (int i = 0; i < n; i++)
		queues[i] = nulls[i] ? "" : TextDatumGetCString(elems[i]);
	poll->queues = queues;
	poll->nqueues = n;
}

typedef struct PollRows
{
	ReturnSetInfo *rsinfo;
	WigWork    *work;

	/* The last base context: the items of one forEach have the same. */
	MemoryContext kept;
	text	   *base;
	Datum		base_jsonb;
} PollRows;

static Datum
jsonb_of(text *context)
{
	return DirectFunctionCall1(jsonb_in, CStringGetDatum(text_to_cstring(context)));
}

static Datum
base_jsonb(PollRows *rows, text *context)
{
	MemoryContext old;

	if (rows->base != NULL && VARSIZE_ANY_EXHDR(rows->base) == VARSIZE_ANY_EXHDR(context) &&
		memcmp(VARDATA_ANY(rows->base), VARDATA_ANY(context), VARSIZE_ANY_EXHDR(context)) == 0)
		return rows->base_jsonb;
	MemoryContextReset(rows->kept);
	old = MemoryContextSwitchTo(rows->kept);
	rows->base = cstring_to_text_with_len(VARDATA_ANY(context), VARSIZE_ANY_EXHDR(context));
	rows->base_jsonb = jsonb_of(context);
	MemoryContextSwitchTo(old);
	return rows->base_jsonb;
}

static void
put_task(void *arg, int poll, const WigInstance *inst, const WigToken *token,
		 text *context, const char *owner, TimestampTz expires_at)
{
	PollRows   *rows = arg;
	ReturnSetInfo *rsinfo = rows->rsinfo;
	WigBase		base;
	bool		has_base = wig_view_base(rows->work->store, inst, token, &base);
	bool		combine = token->comp_seq == 0;
	WigActivation a = wig_activation(inst, token);
	Datum		values[TASK_NATTS];
	bool		nulls[TASK_NATTS] = {false};
	int			i = 0;

	values[i++] = CStringGetTextDatum(wig_task_id(inst, token->n));
	values[i++] = CStringGetTextDatum(inst->id);
	values[i++] = CStringGetTextDatum(inst->workflow);
	values[i++] = Int32GetDatum(inst->version);
	values[i++] = CStringGetTextDatum(a.node->id);
	nulls[i] = a.step_name == NULL;
	values[i++] = a.step_name ? CStringGetTextDatum(a.step_name) : (Datum) 0;
	nulls[i] = a.activity == NULL;
	values[i++] = a.activity ? CStringGetTextDatum(a.activity) : (Datum) 0;
	values[i++] = CStringGetTextDatum(wig_kind_name(a.node->kind));
	values[i++] = Int32GetDatum(token->attempt + 1);
	values[i++] = CStringGetTextDatum(owner);
	values[i++] = TimestampTzGetDatum(expires_at);
	values[i++] = CStringGetTextDatum(a.mode);
	values[i++] = jsonb_of(context);
	nulls[i] = !has_base;
	values[i++] = has_base ? base_jsonb(rows, base.context) : (Datum) 0;
	nulls[i] = !has_base;
	values[i++] = has_base ? Int32GetDatum(base.item_index) : (Datum) 0;
	nulls[i] = !has_base || base.map_key == NULL;
	values[i] = nulls[i] ? (Datum) 0 : CStringGetTextDatum(base.map_key);
	i++;
	nulls[i] = !combine || a.node->collect_key == NULL;
	values[i] = nulls[i] ? (Datum) 0 : CStringGetTextDatum(a.node->collect_key);
	i++;
	nulls[i] = !combine || a.node->narms == 0;
	values[i] = nulls[i] ? (Datum) 0 : wig_arm_names(a.node);
	i++;
	Assert(i == TASK_NATTS);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

Datum
wig_poll(PG_FUNCTION_ARGS)
{
	char	   *worker_id = WIG_ARG_CSTRING(0);
	WigPoll		poll = {0};
	PollRows	rows;
	WigRefusal	refusal;
	WigWork    *work;

	wig_guard_write("wiggle.poll()");
	if (worker_id == NULL || worker_id[0] == '\0')
		ereport(ERROR, (errcode(ERRCODE_WIG_INVALID), errmsg("a worker id is required")));
	poll.owner = wig_make_owner(worker_id);
	if (!PG_ARGISNULL(1))
		read_queues(PG_GETARG_ARRAYTYPE_P(1), &poll);
	poll.max = PG_ARGISNULL(2) ? 1 : PG_GETARG_INT32(2);
	poll.lease_ms = wig_arg_millis(fcinfo, 3, "lease");
	if (!PG_ARGISNULL(4))
		read_versions(PG_GETARG_JSONB_P(4), &poll);
	if (!wig_poll_check(&poll, &refusal))
		wig_raise(&refusal, NULL);

	InitMaterializedSRF(fcinfo, 0);
	work = wig_work_begin(false);
	rows = (PollRows) {
		.rsinfo = (ReturnSetInfo *) fcinfo->resultinfo,
		.work = work,
		.kept = AllocSetContextCreate(CurrentMemoryContext, "wiggle base context", ALLOCSET_DEFAULT_SIZES)
	};
	wig_claim(work, &poll, NULL, 1, put_task, &rows);
	wig_work_end(work);
	return (Datum) 0;
}

/* One step of one task, as complete() and decide() report it. */
static Datum
report_one(FunctionCallInfo fcinfo, const WigStep *step)
{
	WigRun		run = {.final = true, .steps = step, .nsteps = 1};
	WigApplied	applied;
	WigRefusal	refusal;
	WigWork    *work;
	TupleDesc	desc;
	Datum		values[OUTCOME_NATTS] = {0};
	bool		nulls[OUTCOME_NATTS] = {false};

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	run.task_id = WIG_ARG_CSTRING(0);
	run.owner = WIG_ARG_CSTRING(1);

	work = wig_work_begin(false);
	if (!wig_report(work, &run, &applied, &refusal))
		wig_raise_about(&refusal, "task", run.task_id);
	wig_work_end(work);

	values[0] = CStringGetTextDatum(run.task_id);
	values[1] = CStringGetTextDatum(wig_instance_status_name(applied.status));
	nulls[2] = applied.lease_expires_at == 0;
	values[2] = TimestampTzGetDatum(applied.lease_expires_at);
	nulls[3] = applied.next_task_id == NULL;
	if (applied.next_task_id != NULL)
		values[3] = CStringGetTextDatum(applied.next_task_id);
	values[4] = Int32GetDatum(0);
	nulls[5] = true;
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls));
}

Datum
wig_complete(PG_FUNCTION_ARGS)
{
	WigStep		step = {0};

	wig_guard_write("wiggle.complete()");
	step.value = wig_arg_json(fcinfo, 2);
	if (step.value != NULL)
	{
		step.outcome = WIG_OUTCOME_MERGE;
		step.value_len = strlen(step.value);
	}
	PG_RETURN_DATUM(report_one(fcinfo, &step));
}

Datum
wig_decide(PG_FUNCTION_ARGS)
{
	WigStep		step = {0};

	wig_guard_write("wiggle.decide()");
	if (!PG_ARGISNULL(2))
	{
		step.outcome = WIG_OUTCOME_PREDICATE;
		step.value = PG_GETARG_BOOL(2) ? "true" : "false";
		step.value_len = strlen(step.value);
	}
	PG_RETURN_DATUM(report_one(fcinfo, &step));
}

Datum
wig_fail_task(PG_FUNCTION_ARGS)
{
	WigRefusal	refusal;
	WigWork    *work;

	wig_guard_write("wiggle.fail()");
	work = wig_work_begin(false);
	if (!wig_task_fail(work, WIG_ARG_CSTRING(0), WIG_ARG_CSTRING(1), WIG_ARG_CSTRING(2),
					   PG_ARGISNULL(3) || PG_GETARG_BOOL(3), false, &refusal))
		wig_raise_about(&refusal, "task", WIG_ARG_CSTRING(0));
	wig_work_end(work);
	PG_RETURN_VOID();
}

Datum
wig_heartbeat(PG_FUNCTION_ARGS)
{
	int64		extend_ms;
	TimestampTz expires_at;
	WigRefusal	refusal;
	WigWork    *work;

	wig_guard_write("wiggle.heartbeat()");
	extend_ms = wig_arg_millis(fcinfo, 2, "extend");
	if (extend_ms < 0)
		extend_ms = wig_default_lease;
	work = wig_work_begin(false);
	if (!wig_task_heartbeat(work, WIG_ARG_CSTRING(0), WIG_ARG_CSTRING(1), extend_ms,
							&expires_at, &refusal))
		wig_raise_about(&refusal, "task", WIG_ARG_CSTRING(0));
	wig_work_end(work);
	PG_RETURN_TIMESTAMPTZ(expires_at);
}
