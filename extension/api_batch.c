/*
 * api_batch.c
 *	  SQL: batch, the proxy's one call a lane batch.
 */
#include "wiggle.h"

#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/tuplestore.h"

#include "api.h"
#include "batch.h"
#include "clock.h"
#include "guard.h"
#include "task.h"
#include "view.h"

PG_FUNCTION_INFO_V1(wig_batch);

enum
{
	RESULT_OP,
	RESULT_ITEM,
	RESULT_CODE,
	RESULT_MESSAGE,
	RESULT_TASK_ID,
	RESULT_INSTANCE_ID,
	RESULT_STATUS,
	RESULT_EXPIRES_AT,
	RESULT_LEASE_OWNER,
	RESULT_WORKFLOW,
	RESULT_VERSION,
	RESULT_NODE_ID,
	RESULT_STEP_NAME,
	RESULT_ACTIVITY,
	RESULT_KIND,
	RESULT_ATTEMPT,
	RESULT_MODE,
	RESULT_CONTEXT,
	RESULT_BASE_CONTEXT,
	RESULT_ITEM_INDEX,
	RESULT_ITEM_MAP_KEY,
	RESULT_COLLECT_KEY,
	RESULT_ARM_NAMES,
	RESULT_NATTS
};

/* The families that touch existing instances, in one list to be sorted. */
typedef struct Op
{
	char		op;				/* 'r', 'f', 'h', 'd' */
	int			item;
	const char *task_id;
} Op;

typedef struct Results
{
	ReturnSetInfo *rsinfo;
	WigWork    *work;
	Datum		values[RESULT_NATTS];
	bool		nulls[RESULT_NATTS];
} Results;

static void
begin_row(Results *r, char op, int item)
{
	memset(r->nulls, true, sizeof(r->nulls));
	r->values[RESULT_OP] = CharGetDatum(op);
	r->values[RESULT_ITEM] = Int32GetDatum(item);
	r->values[RESULT_CODE] = Int32GetDatum(0);
	r->nulls[RESULT_OP] = r->nulls[RESULT_ITEM] = r->nulls[RESULT_CODE] = false;
}

static void
set_column(Results *r, int column, Datum value)
{
	r->values[column] = value;
	r->nulls[column] = false;
}

static void
set_text(Results *r, int column, const char *value)
{
	if (value != NULL)
		set_column(r, column, CStringGetTextDatum(value));
}

static void
put_row(Results *r)
{
	tuplestore_putvalues(r->rsinfo->setResult, r->rsinfo->setDesc, r->values, r->nulls);
}

static void
put_refusal(Results *r, char op, int item, const WigRefusal *refusal)
{
	begin_row(r, op, item);
	r->values[RESULT_CODE] = Int32GetDatum(refusal->code);
	set_text(r, RESULT_MESSAGE, refusal->message);
	put_row(r);
}

static void
set_base(Results *r, const WigInstance *inst, const WigToken *token)
{
	WigBase		base;

	if (!wig_view_base(r->work->store, inst, token, &base))
		return;
	set_column(r, RESULT_BASE_CONTEXT, PointerGetDatum(base.context));
	set_column(r, RESULT_ITEM_INDEX, Int64GetDatum(base.item_index));
	set_text(r, RESULT_ITEM_MAP_KEY, base.map_key);
}

static void
set_combine(Results *r, const struct wig_node *node)
{
	set_text(r, RESULT_COLLECT_KEY, node->collect_key);
	if (node->narms > 0)
		set_column(r, RESULT_ARM_NAMES, wig_arm_names(node));
}

static void
put_task(void *arg, int poll, const WigInstance *inst, const WigToken *token,
		 text *context, const char *owner, TimestampTz expires_at)
{
	Results    *r = arg;
	WigActivation a = wig_activation(inst, token);

	begin_row(r, 't', poll);
	set_text(r, RESULT_TASK_ID, wig_task_id(inst, token->n));
	set_text(r, RESULT_INSTANCE_ID, inst->id);
	set_column(r, RESULT_EXPIRES_AT, Int64GetDatum(wig_to_millis(expires_at)));
	set_text(r, RESULT_LEASE_OWNER, owner);
	set_text(r, RESULT_WORKFLOW, inst->workflow);
	set_column(r, RESULT_VERSION, Int32GetDatum(inst->version));
	set_text(r, RESULT_NODE_ID, a.node->id);
	set_text(r, RESULT_STEP_NAME, a.step_name);
	set_text(r, RESULT_ACTIVITY, a.activity);
	set_text(r, RESULT_KIND, wig_kind_name(a.node->kind));
	set_column(r, RESULT_ATTEMPT, Int32GetDatum(token->attempt + 1));
	set_text(r, RESULT_MODE, a.mode);
	set_column(r, RESULT_CONTEXT, PointerGetDatum(context));
	set_base(r, inst, token);
	if (token->comp_seq == 0)
		set_combine(r, a.node);
	put_row(r);
}

static void
do_starts(WigWork *work, const WigBatch *batch, Results *r)
{
	for (int i = 0; i < batch->nstarts; i++)
	{
		WigStarted	started;
		WigRefusal	refusal;

		wig_work_tick(work);
		if (!wig_start(work, &batch->starts[i], &started, &refusal))
		{
			put_refusal(r, 's', i, &refusal);
			continue;
		}
		begin_row(r, 's', i);
		set_text(r, RESULT_INSTANCE_ID, started.id);
		set_text(r, RESULT_STATUS, wig_instance_status_name(started.status));
		put_row(r);
	}
}

static void
do_run(WigWork *work, const WigRun *run, int item, Results *r)
{
	WigApplied	applied;
	WigRefusal	refusal;

	if (!wig_report(work, run, &applied, &refusal))
	{
		put_refusal(r, 'r', item, &refusal);
		return;
	}
	begin_row(r, 'r', item);
	set_text(r, RESULT_STATUS, wig_instance_status_name(applied.status));
	set_text(r, RESULT_TASK_ID, applied.next_task_id);
	if (applied.lease_expires_at != 0)
		set_column(r, RESULT_EXPIRES_AT, Int64GetDatum(wig_to_millis(applied.lease_expires_at)));
	put_row(r);
}

static void
do_op(WigWork *work, const WigBatch *batch, const Op *op, Results *r)
{
	WigRefusal	refusal;
	TimestampTz expires_at = 0;
	bool		ok;

	if (op->op == 'r')
	{
		do_run(work, &batch->runs[op->item], op->item, r);
		return;
	}
	if (op->op == 'f')
	{
		const WigFail *f = &batch->fails[op->item];

		ok = wig_task_fail(work, f->task_id, f->owner, f->message, f->retryable,
						   f->asked_again, &refusal);
	}
	else if (op->op == 'h')
	{
		const WigBeat *b = &batch->beats[op->item];

		ok = wig_task_heartbeat(work, b->task_id, b->owner, b->extend_ms, &expires_at, &refusal);
	}
	else
	{
		const WigRelease *d = &batch->releases[op->item];

		ok = wig_task_release(work, d->task_id, d->owner, &refusal);
	}
	if (!ok)
	{
		put_refusal(r, op->op, op->item, &refusal);
		return;
	}
	begin_row(r, op->op, op->item);
	if (expires_at != 0)
		set_column(r, RESULT_EXPIRES_AT, Int64GetDatum(wig_to_millis(expires_at)));
	put_row(r);
}

static int
op_cmp(const void *a, const void *b)
{
	const Op   *x = a;
	const Op   *y = b;
	int			cmp = strcmp(x->task_id ? x->task_id : "", y->task_id ? y->task_id : "");

	if (cmp != 0)
		return cmp;
	return x->op != y->op ? x->op - y->op : x->item - y->item;
}

/*
 * Instances are locked in the order of their ids, which is the order of task
 * ids: two batches that share instances wait for each other, never in a circle.
 */
static void
do_ops(WigWork *work, const WigBatch *batch, Results *r)
{
	int			n = 0;
	Op		   *ops = palloc(sizeof(Op) * (batch->nruns + batch->nfails + batch->nbeats +
										   batch->nreleases + 1));

	for (int i = 0; i < batch->nruns; i++)
		ops[n++] = (Op) {'r', i, batch->runs[i].task_id};
	for (int i = 0; i < batch->nfails; i++)
		ops[n++] = (Op) {'f', i, batch->fails[i].task_id};
	for (int i = 0; i < batch->nbeats; i++)
		ops[n++] = (Op) {'h', i, batch->beats[i].task_id};
	for (int i = 0; i < batch->nreleases; i++)
		ops[n++] = (Op) {'d', i, batch->releases[i].task_id};
	qsort(ops, n, sizeof(Op), op_cmp);

	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		wig_work_tick(work);
		do_op(work, batch, &ops[i], r);
	}
}

/* A poll that is not acceptable gets one row that says why, and asks for nothing. */
static void
do_polls(WigWork *work, const WigBatch *batch, Results *r)
{
	bool	   *refused = palloc0(sizeof(bool) * (batch->npolls + 1));

	for (int i = 0; i < batch->npolls; i++)
	{
		WigRefusal	refusal;

		refused[i] = !wig_poll_check(&batch->polls[i], &refusal);
		if (refused[i])
			put_refusal(r, 't', i, &refusal);
	}
	wig_claim(work, batch->polls, refused, batch->npolls, put_task, r);
}

Datum
wig_batch(PG_FUNCTION_ARGS)
{
	WigBatch	batch;
	WigWork    *work;
	Results		results;

	wig_guard_write("wiggle.batch()");
	wig_batch_unpack(fcinfo->args, &batch);
	InitMaterializedSRF(fcinfo, 0);
	results.rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	work = wig_work_begin(batch.npolls > 0);
	results.work = work;
	if (batch.divided)
		wig_mark_divided(work->now);
	do_starts(work, &batch, &results);
	do_ops(work, &batch, &results);
	do_polls(work, &batch, &results);
	wig_work_end(work);
	return (Datum) 0;
}
