/*
 * work.c
 *	  Life cycle of a unit of work and its pending tokens.
 */
#include "wiggle.h"

#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

#include "bucket.h"
#include "clock.h"
#include "ids.h"
#include "ready.h"
#include "work.h"

WigWork *
wig_work_begin(bool deferring)
{
	WigWork    *work = palloc0(sizeof(WigWork));

	work->store = wig_store_open(true);
	work->now = wig_now();
	work->deferring = deferring;
	return work;
}

void
wig_work_end(WigWork *work)
{
	for (int i = 0; i < work->npending; i++)
	{
		WigPending *p = &work->pending[i];

		if (!p->settled)
			wig_ready_insert(work->store, p->queue, p->key, p->inst.graph->definition_id,
							 wig_task_bucket(&p->inst, p->key.n));
	}
	wig_store_close(work->store);
	if (work->pending != NULL)
		pfree(work->pending);
	pfree(work);
}

void
wig_work_tick(WigWork *work)
{
	wig_store_step(work->store);
	work->now = wig_now();
}

void
wig_work_add_errand(WigWork *work, bool drive_child, const WigInstance *inst)
{
	WigErrand  *errand = palloc(sizeof(WigErrand));

	errand->drive_child = drive_child;
	errand->inst = *inst;
	errand->advances = work->advances;
	errand->allowance = work->allowance;
	work->errands = lappend(work->errands, errand);
}

const char *
wig_node_queue(const struct wig_node *node)
{
	return node->queue != NULL ? node->queue : "";
}

void
wig_work_offer(WigWork *work, const WigInstance *inst, const WigToken *token)
{
	const char *queue = wig_node_queue(wig_graph_node(inst->graph, token->node));
	WigKey		key = {inst->no, token->n};
	WigPending *p;

	if (!work->deferring)
	{
		wig_ready_insert(work->store, queue, key, inst->graph->definition_id, wig_task_bucket(inst, key.n));
		return;
	}

	if (work->npending == work->maxpending)
	{
		work->maxpending = Max(work->maxpending * 2, 64);
		if (work->pending == NULL)
			work->pending = palloc(work->maxpending * sizeof(WigPending));
		else
			work->pending = repalloc(work->pending, work->maxpending * sizeof(WigPending));
	}
	p = &work->pending[work->npending++];
	p->settled = false;
	p->key = key;
	p->queue = queue;
	p->inst = *inst;
	p->token = *token;
}

bool
wig_work_withdraw(WigWork *work, int64 instance, int32 n)
{
	for (int i = 0; i < work->npending; i++)
	{
		WigPending *p = &work->pending[i];

		if (!p->settled && p->key.instance == instance && p->key.n == n)
		{
			p->settled = true;
			return true;
		}
	}
	return false;
}

bool
wig_work_attempt(void (*action) (void *arg), void *arg)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	volatile bool ok = true;

	BeginInternalSubTransaction(NULL);
	PG_TRY();
	{
		MemoryContextSwitchTo(context);
		action(arg);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		EmitErrorReport();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		ok = false;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return ok;
}

static int
format_task_id(char buf[WIG_ID_MAX + 1], const WigInstance *inst, int32 n)
{
	int			len = wig_task_id_format(buf, inst->id, strlen(inst->id), n);

	if (len < 0)
		elog(ERROR, "instance id \"%s\" is not one of this engine", inst->id);
	return len;
}

char *
wig_task_id(const WigInstance *inst, int32 n)
{
	char		buf[WIG_ID_MAX + 1];

	format_task_id(buf, inst, n);
	return pstrdup(buf);
}

int
wig_task_bucket(const WigInstance *inst, int32 n)
{
	char		buf[WIG_ID_MAX + 1];

	return wig_bucket(buf, format_task_id(buf, inst, n));
}
