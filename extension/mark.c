/*
 * mark.c
 *	  Low-water marks and ready marks of the queues, in shared memory.
 */
#include "wiggle.h"

#include "lib/stringinfo.h"
#include "utils/json.h"

#include "mark.h"

/* A NOTIFY payload must stay under 8000 bytes. */
#define MAX_PAYLOAD 7900

/* Called with queue_lock held. */
static WigQueue *
find_queue(WigDatabase *db, const char *name, size_t len)
{
	for (int i = 0; i < db->nqueues; i++)
	{
		WigQueue   *q = &db->queues[i];

		if (q->name_len == len && memcmp(q->name, name, len) == 0)
			return q;
	}
	return NULL;
}

/* The place for a new entry: a free one, or that of the queue noted longest ago. */
static WigQueue *
place_for_queue(WigDatabase *db)
{
	WigQueue   *oldest = &db->queues[0];

	if (db->nqueues < wig_shmem_max_queues())
		return &db->queues[db->nqueues++];
	for (int i = 1; i < db->nqueues; i++)
		if (db->queues[i].last_note < oldest->last_note)
			oldest = &db->queues[i];
	if (oldest->became_ready)
		pg_atomic_write_u32(&db->all_ready, 1);
	return oldest;
}

/*
 * Called with queue_lock held exclusively. An entry is made for a queue that has,
 * or had, rows; a name that somebody only asks for takes no place.
 */
static WigQueue *
make_queue(WigDatabase *db, const char *name, size_t len)
{
	WigQueue   *q;

	if (len > WIG_MAX_QUEUE)
		return NULL;
	q = place_for_queue(db);
	memset(q, 0, sizeof(WigQueue));
	q->name_len = (uint16) len;
	memcpy(q->name, name, len);
	q->last_note = ++db->notes;
	/* What a claim knows of a former entry of that name must not fit this one. */
	q->ninserts = ++db->entries << 32;
	return q;
}

static int
key_cmp_qsort(const void *a, const void *b)
{
	return wig_key_cmp(*(const WigKey *) a, *(const WigKey *) b);
}

void
wig_mark_read(const char *queue, TimestampTz now, WigMarkView *view)
{
	WigDatabase *db = wig_database();
	WigQueue   *q;

	memset(view, 0, offsetof(WigMarkView, ring));

	LWLockAcquire(&db->queue_lock, LW_EXCLUSIVE);
	q = find_queue(db, queue, strlen(queue));
	if (q != NULL)
	{
		view->remembered = true;
		if (now - q->walked_at >= WIG_FULL_WALK_USECS || now < q->walked_at)
		{
			view->full = true;
			q->walked_at = now;
		}
		else
			view->mark = q->mark;
		view->ninserts = q->ninserts;
		view->nring = q->nring;
		memcpy(view->ring, q->ring, q->nring * sizeof(WigKey));
	}
	LWLockRelease(&db->queue_lock);

	if (view->nring > 1)
		qsort(view->ring, view->nring, sizeof(WigKey), key_cmp_qsort);
}

static void
ring_remove(WigQueue *q, WigKey key)
{
	for (int i = 0; i < q->nring; i++)
		if (wig_key_cmp(q->ring[i], key) == 0)
		{
			q->ring[i] = q->ring[--q->nring];
			return;
		}
}

static bool
noted_since(const WigQueue *q, uint64 since, WigKey key)
{
	for (uint64 i = since; i < q->ninserts; i++)
		if (wig_key_cmp(q->log[i % WIG_LOG], key) == 0)
			return true;
	return false;
}

void
wig_mark_raise(const char *queue, const WigMarkView *view, bool found, WigKey reached,
			   const WigKey *gone, int ngone)
{
	WigDatabase *db = wig_database();
	WigQueue   *q;

	LWLockAcquire(&db->queue_lock, LW_EXCLUSIVE);
	q = find_queue(db, queue, strlen(queue));
	if (q == NULL && found)
		q = make_queue(db, queue, strlen(queue));

	/* More insertions than the log holds: learn nothing, stay where it is. */
	if (q != NULL && view->remembered && q->ninserts - view->ninserts <= WIG_LOG)
	{
		/* A key that was noted meanwhile is live again, whatever we saw. */
		for (int i = 0; i < ngone; i++)
			if (!noted_since(q, view->ninserts, gone[i]))
				ring_remove(q, gone[i]);
		for (uint64 i = view->ninserts; i < q->ninserts; i++)
			if (wig_key_cmp(q->log[i % WIG_LOG], reached) < 0)
				reached = q->log[i % WIG_LOG];
		if (wig_key_cmp(reached, q->mark) > 0)
			q->mark = reached;
	}
	LWLockRelease(&db->queue_lock);
}

void
wig_mark_note(const char *queue, WigKey key)
{
	WigDatabase *db = wig_database();
	WigQueue   *q;

	LWLockAcquire(&db->queue_lock, LW_EXCLUSIVE);
	q = find_queue(db, queue, strlen(queue));
	if (q == NULL)
		q = make_queue(db, queue, strlen(queue));
	if (q != NULL)
	{
		q->last_note = ++db->notes;
		if (wig_key_cmp(key, q->mark) < 0)
		{
			ring_remove(q, key);
			if (q->nring < WIG_RING)
				q->ring[q->nring++] = key;
			else
				q->mark = key;
		}
		/* Logged in any case: a claim may be about to raise the mark past it. */
		q->log[q->ninserts++ % WIG_LOG] = key;
	}
	LWLockRelease(&db->queue_lock);
}

bool
wig_mark_forget(void)
{
	WigDatabase *db = wig_database();

	LWLockAcquire(&db->queue_lock, LW_EXCLUSIVE);
	for (int i = 0; i < db->nqueues; i++)
	{
		WigQueue   *q = &db->queues[i];

		q->mark = (WigKey) {0, 0};
		q->nring = 0;
		/* More than the log holds: a claim under way learns nothing. */
		q->ninserts += WIG_LOG + 1;
	}
	LWLockRelease(&db->queue_lock);

	pg_atomic_write_u32(&db->all_ready, 1);
	return pg_atomic_exchange_u32(&db->any_ready, 1) == 0;
}

bool
wig_mark_set_ready(const char *queue)
{
	WigDatabase *db = wig_database();
	WigQueue   *q;

	LWLockAcquire(&db->queue_lock, LW_EXCLUSIVE);
	q = find_queue(db, queue, strlen(queue));
	if (q != NULL)
		q->became_ready = true;
	LWLockRelease(&db->queue_lock);

	if (q == NULL)
		pg_atomic_write_u32(&db->all_ready, 1);
	return pg_atomic_exchange_u32(&db->any_ready, 1) == 0;
}

bool
wig_mark_take_ready(char **payload)
{
	WigDatabase *db = wig_database();
	StringInfoData out;
	bool		all;
	char	  (*names)[WIG_MAX_QUEUE + 1];
	int			n = 0;

	if (pg_atomic_exchange_u32(&db->any_ready, 0) == 0)
		return false;
	all = pg_atomic_exchange_u32(&db->all_ready, 0) != 0;

	/* Copied out first: escaping may allocate, which must not fail under the lock. */
	names = palloc(sizeof(*names) * wig_shmem_max_queues());
	LWLockAcquire(&db->queue_lock, LW_EXCLUSIVE);
	for (int i = 0; i < db->nqueues; i++)
	{
		WigQueue   *q = &db->queues[i];

		if (!q->became_ready)
			continue;
		q->became_ready = false;
		memcpy(names[n], q->name, q->name_len);
		names[n++][q->name_len] = '\0';
	}
	LWLockRelease(&db->queue_lock);

	initStringInfo(&out);
	appendStringInfoChar(&out, '[');
	for (int i = 0; i < n && !all; i++)
	{
		if (i > 0)
			appendStringInfoChar(&out, ',');
		escape_json(&out, names[i]);
		all = out.len > MAX_PAYLOAD;
	}
	appendStringInfoChar(&out, ']');
	pfree(names);

	*payload = all ? pstrdup("*") : out.data;
	return all || n > 0;
}
