/*
 * wake.c
 *	  Wake-ups at commit, restored marks at abort.
 */
#include "wiggle.h"

#include "access/xact.h"
#include "nodes/pg_list.h"
#include "utils/memutils.h"

#include "clock.h"
#include "mark.h"
#include "wake.h"

typedef struct Touched
{
	char	   *queue;
	bool		inserted;		/* rows were left ready: announce at commit */
	int			nclaimed;
	int			maxclaimed;
	WigKey	   *claimed;		/* deleted rows, restored at abort */
	uint8		buckets[WIG_BUCKETS / 8];	/* of the inserted rows */
} Touched;

/* State of the running transaction, in TopTransactionContext. */
static List *touched = NIL;
static Touched *last = NULL;
static TimestampTz earliest[WIG_NDEADLINES] = {[0 ... WIG_NDEADLINES - 1] = WIG_NEVER};
static bool due = false;		/* one of earliest[] is set */
static bool lifecycle = false;
static bool writing = false;
static bool appended = false;
static bool rewritten = false;

static Touched *
touch(const char *queue)
{
	MemoryContext old;
	ListCell   *lc;

	if (last != NULL && strcmp(last->queue, queue) == 0)
		return last;
	foreach(lc, touched)
	{
		last = (Touched *) lfirst(lc);
		if (strcmp(last->queue, queue) == 0)
			return last;
	}

	old = MemoryContextSwitchTo(TopTransactionContext);
	last = palloc0(sizeof(Touched));
	last->queue = pstrdup(queue);
	touched = lappend(touched, last);
	MemoryContextSwitchTo(old);
	return last;
}

void
wig_wake_ready(const char *queue, WigKey key, int bucket)
{
	Touched    *t = touch(queue);

	t->inserted = true;
	t->buckets[bucket / 8] |= 1 << bucket % 8;
	wig_mark_note(queue, key);
}

void
wig_wake_claimed(const char *queue, WigKey key)
{
	Touched    *t = touch(queue);

	if (t->nclaimed == t->maxclaimed)
	{
		int			max = Max(t->maxclaimed * 2, 64);

		if (t->claimed == NULL)
			t->claimed = MemoryContextAlloc(TopTransactionContext, max * sizeof(WigKey));
		else
			t->claimed = repalloc(t->claimed, max * sizeof(WigKey));
		t->maxclaimed = max;
	}
	t->claimed[t->nclaimed++] = key;
}

void
wig_wake_at(WigDeadline kind, TimestampTz at)
{
	if (at < earliest[kind])
		earliest[kind] = at;
	due = true;
}

void
wig_wake_writing(void)
{
	writing = true;
}

void
wig_wake_rewritten(void)
{
	rewritten = true;
	/* Before whatever is there. */
	for (int kind = 0; kind < WIG_NDEADLINES; kind++)
		wig_wake_at(kind, DT_NOBEGIN);
}

void
wig_wake_lifecycle(void)
{
	lifecycle = true;
}

void
wig_wake_event(void)
{
	appended = true;
}

static void
publish_deadlines(void)
{
	WigDatabase *db = wig_database();
	bool		poke = false;

	for (int kind = 0; kind < WIG_NDEADLINES; kind++)
	{
		uint64		seen = pg_atomic_read_u64(&db->deadlines[kind]);

		while (earliest[kind] < (TimestampTz) seen)
			if (pg_atomic_compare_exchange_u64(&db->deadlines[kind], &seen,
											   (uint64) earliest[kind]))
			{
				poke = true;
				break;
			}
	}
	if (poke)
		wig_worker_poke(db);
}

static void
at_commit(void)
{
	bool		poke = false;
	ListCell   *lc;

	if (rewritten)
		poke = wig_mark_forget();
	foreach(lc, touched)
	{
		Touched    *t = (Touched *) lfirst(lc);

		if (t->inserted)
			poke |= wig_mark_set_ready(t->queue, t->buckets);
	}
	if (appended && pg_atomic_exchange_u32(&wig_database()->events_ready, 1) == 0)
		poke = true;
	if (poke)
		wig_worker_poke(wig_database());
	if (due)
		publish_deadlines();
	if (lifecycle)
		wig_lifecycle_poke();
}

/* The rows are claimable again: others must find and be told of them. */
static void
restore_claimed(void)
{
	bool		poke = false;
	ListCell   *lc;

	foreach(lc, touched)
	{
		Touched    *t = (Touched *) lfirst(lc);

		for (int i = 0; i < t->nclaimed; i++)
			wig_mark_note(t->queue, t->claimed[i]);
		if (t->nclaimed > 0)
			poke |= wig_mark_set_ready(t->queue, NULL);
	}
	if (poke)
		wig_worker_poke(wig_database());
}

static void
forget(void)
{
	touched = NIL;
	last = NULL;
	for (int kind = 0; kind < WIG_NDEADLINES; kind++)
		earliest[kind] = WIG_NEVER;
	due = false;
	lifecycle = false;
	writing = false;
	appended = false;
	rewritten = false;
}

static void
xact_callback(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_COMMIT:
			if (touched != NIL || due || lifecycle || appended)
				at_commit();
			forget();
			break;
		case XACT_EVENT_ABORT:
			if (touched != NIL)
				restore_claimed();
			forget();
			break;
		case XACT_EVENT_PRE_PREPARE:
			if (writing)
				ereport(ERROR,
						(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						 errmsg("cannot PREPARE a transaction that has moved workflow instances")));
			break;
		default:
			break;
	}
}

static void
subxact_callback(SubXactEvent event, SubTransactionId mySubid,
				 SubTransactionId parentSubid, void *arg)
{
	/*
	 * Which claims belong to the subtransaction is not kept: a restored key
	 * that is not live is dropped by the next claim that looks at it.
	 */
	if (event == SUBXACT_EVENT_ABORT_SUB && touched != NIL)
		restore_claimed();
}

void
wig_wake_init(void)
{
	RegisterXactCallback(xact_callback, NULL);
	RegisterSubXactCallback(subxact_callback, NULL);
}
