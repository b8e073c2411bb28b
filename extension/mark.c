/*
 * mark.c
 *	  Low-water marks and ready marks of the queues, in shared memory.
 */
#include "wiggle.h"

#include "lib/stringinfo.h"
#include "utils/json.h"

#include "clock.h"
#include "mark.h"

/* A NOTIFY payload must stay under 8000 bytes. */
#define MAX_PAYLOAD 7900

/* With more buckets than these a queue is announced as a whole. */
#define NEWS_BUCKETS 16

/* Proxies that divide the tasks look at least every ten seconds. */
#define DIVIDED_USECS (INT64CONST(60) * USECS_PER_SEC)

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
	if (oldest->became_ready || oldest->watch_at != 0)
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
wig_mark_set_ready(const char *queue, const uint8 *buckets)
{
	WigDatabase *db = wig_database();
	WigQueue   *q;

	LWLockAcquire(&db->queue_lock, LW_EXCLUSIVE);
	q = find_queue(db, queue, strlen(queue));
	if (q != NULL)
	{
		q->became_ready = true;
		q->anywhere |= buckets == NULL;
		for (int i = 0; buckets != NULL && i < WIG_BUCKETS / 8; i++)
			q->buckets[i] |= buckets[i];
	}
	LWLockRelease(&db->queue_lock);

	if (q == NULL)
		pg_atomic_write_u32(&db->all_ready, 1);
	return pg_atomic_exchange_u32(&db->any_ready, 1) == 0;
}

/* ---- the notification ---- */

/* One queue as it is announced. */
typedef struct News
{
	char		name[WIG_MAX_QUEUE + 1];
	bool		left;
	int			nbuckets;		/* 0: any */
	int16		buckets[NEWS_BUCKETS];
} News;

/* The buckets that became ready, if they are few. */
static void
take_buckets(WigQueue *q, News *news)
{
	news->nbuckets = 0;
	for (int i = 0; !q->anywhere && i < WIG_BUCKETS; i++)
	{
		if (q->buckets[i / 8] == 0)
			i += 7;
		else if ((q->buckets[i / 8] & 1 << i % 8) == 0)
			continue;
		else if (news->nbuckets < NEWS_BUCKETS)
			news->buckets[news->nbuckets++] = i;
		else
		{
			news->nbuckets = 0;
			return;
		}
	}
}

/* Look at the queue by then, if not before. A look is never farther away, unless the clock was set back. */
static void
watch(WigQueue *q, TimestampTz at)
{
	if (q->watch_at != 0 && q->watch_at <= at)
		return;
	q->watch_at = at;
	q->watching = false;
}

/* Called with queue_lock held exclusively. */
static void
take_news(WigQueue *q, bool divided, TimestampTz now, News *news)
{
	memcpy(news->name, q->name, q->name_len);
	news->name[q->name_len] = '\0';
	news->left = divided && q->left;
	news->nbuckets = 0;
	if (divided && !q->left)
		take_buckets(q, news);
	if (divided && !q->left)
		watch(q, now + WIG_LEFTOVER_PAUSE_USECS);
	q->became_ready = q->anywhere = q->left = false;
	memset(q->buckets, 0, sizeof(q->buckets));
}

static void
write_news(StringInfo out, const News *news)
{
	bool		is_array = news->left || news->nbuckets > 0;

	if (is_array)
		appendStringInfoChar(out, '[');
	escape_json(out, news->name);
	for (int i = 0; i < news->nbuckets; i++)
		appendStringInfo(out, ",%d", news->buckets[i]);
	if (is_array)
		appendStringInfoChar(out, ']');
}

bool
wig_mark_take_ready(TimestampTz now, char **payload)
{
	WigDatabase *db = wig_database();
	StringInfoData out;
	bool		divided = wig_mark_is_divided(now);
	bool		all;
	News	   *news;
	int			n = 0;

	if (pg_atomic_exchange_u32(&db->any_ready, 0) == 0)
		return false;
	all = pg_atomic_exchange_u32(&db->all_ready, 0) != 0;

	/* Copied out first: escaping may allocate, which must not fail under the lock. */
	news = palloc(sizeof(*news) * wig_shmem_max_queues());
	LWLockAcquire(&db->queue_lock, LW_EXCLUSIVE);
	for (int i = 0; i < db->nqueues; i++)
		if (db->queues[i].became_ready)
			take_news(&db->queues[i], divided, now, &news[n++]);
	LWLockRelease(&db->queue_lock);

	initStringInfo(&out);
	appendStringInfoChar(&out, '[');
	for (int i = 0; i < n && !all; i++)
	{
		if (i > 0)
			appendStringInfoChar(&out, ',');
		write_news(&out, &news[i]);
		all = out.len > MAX_PAYLOAD;
	}
	appendStringInfoChar(&out, ']');
	pfree(news);

	*payload = all ? pstrdup("*") : out.data;
	return all || n > 0;
}

/* ---- tasks left over ---- */

void
wig_mark_divided(TimestampTz now)
{
	pg_atomic_uint64 *until = &wig_database()->divided_until;

	/* Each batch says so; the memory that all read is written now and then. */
	if ((TimestampTz) pg_atomic_read_u64(until) < now + DIVIDED_USECS / 2)
		pg_atomic_write_u64(until, (uint64) (now + DIVIDED_USECS));
}

bool
wig_mark_is_divided(TimestampTz now)
{
	return (TimestampTz) pg_atomic_read_u64(&wig_database()->divided_until) > now;
}

void
wig_mark_watch(const char *queue, TimestampTz at)
{
	WigDatabase *db = wig_database();
	WigQueue   *q;

	LWLockAcquire(&db->queue_lock, LW_EXCLUSIVE);
	q = find_queue(db, queue, strlen(queue));
	if (q != NULL)
		watch(q, at);
	LWLockRelease(&db->queue_lock);
}

char *
wig_mark_next_watched(TimestampTz now, TimestampTz *next)
{
	WigDatabase *db = wig_database();
	char		name[WIG_MAX_QUEUE + 1];
	bool		found = false;

	*next = WIG_NEVER;
	LWLockAcquire(&db->queue_lock, LW_EXCLUSIVE);
	for (int i = 0; i < db->nqueues && !found; i++)
	{
		WigQueue   *q = &db->queues[i];

		if (q->watch_at == 0)
			continue;
		if (q->watch_at > now)
		{
			*next = Min(*next, q->watch_at);
			continue;
		}
		found = true;
		/* Should the look fail, there is another. */
		q->watch_at = now + WIG_LEFTOVER_PAUSE_USECS;
		memcpy(name, q->name, q->name_len);
		name[q->name_len] = '\0';
	}
	LWLockRelease(&db->queue_lock);
	return found ? pstrdup(name) : NULL;
}

bool
wig_mark_looked(const char *queue, const WigKey *oldest, TimestampTz again)
{
	WigDatabase *db = wig_database();
	WigQueue   *q;
	bool		left = false;

	LWLockAcquire(&db->queue_lock, LW_EXCLUSIVE);
	q = find_queue(db, queue, strlen(queue));
	if (q != NULL)
	{
		left = oldest != NULL && q->watching && wig_key_cmp(*oldest, q->watched) == 0;
		q->watching = oldest != NULL && !left;
		q->watch_at = q->watching ? again : 0;
		if (q->watching)
			q->watched = *oldest;
		if (left)
			q->left = q->became_ready = true;
	}
	LWLockRelease(&db->queue_lock);

	if (left)
		pg_atomic_write_u32(&db->any_ready, 1);
	return left;
}
