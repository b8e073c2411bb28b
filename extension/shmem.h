/*
 * shmem.h
 *	  What the backends and the clock worker of one database tell each other.
 *
 * Nothing here is the truth: rows are. Losing all of it (a crash restarts the
 * cluster with empty shared memory) loses nothing but one fast path: marks
 * start at the lowest key and the clock worker looks at its tables once.
 *
 * Who may touch what:
 *	 WigShared.lock (LWLock)		which entry of databases[] belongs to whom
 *	 WigDatabase.queue_lock			queues[], everything inside them
 *	 WigDatabase.mutex				worker_latch, worker_pid, worker_wanted, worker_served, leave_until
 *	 atomics						by anyone
 * Locks are never held together, and never across anything that can wait.
 */
#ifndef WIGGLE_SHMEM_H
#define WIGGLE_SHMEM_H

#include "wiggle.h"

#include "port/atomics.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/spin.h"

#include "bucket.h"

/* Order of wf_ready inside a queue: oldest instance first. */
typedef struct WigKey
{
	int64		instance;
	int32		n;
} WigKey;

#define WIG_MAX_QUEUE	200		/* bytes of a name; the mark of a longer one is not remembered */
#define WIG_RING	128			/* remembered keys below the mark */
#define WIG_LOG		64			/* remembered recent insertions */

/*
 * One queue's low-water mark. Invariant: every row of wf_ready of this queue
 * that is live, or whose insertion is in progress, has a key >= mark or stands
 * in ring[]. A row whose deletion is in progress may be missed: whoever
 * deletes restores its key when it aborts.
 */
typedef struct WigQueue
{
	uint16		name_len;
	char		name[WIG_MAX_QUEUE];
	bool		became_ready;	/* to be announced by the clock worker */
	bool		anywhere;		/* in any bucket, not only those of buckets[] */
	bool		left;			/* tasks are left over, to be announced to everybody */
	bool		watching;		/* watched is the oldest task of the last look */
	WigKey		watched;
	TimestampTz watch_at;		/* when to look for tasks left over; 0: not */
	uint8		buckets[WIG_BUCKETS / 8];	/* of what became ready */
	WigKey		mark;
	TimestampTz walked_at;		/* when a claim last looked from the lowest key */
	uint64		last_note;		/* WigDatabase.notes at the last one: the oldest gives way */
	uint64		ninserts;		/* counts insertions; the last WIG_LOG are in log[] */
	WigKey		log[WIG_LOG];
	int			nring;
	WigKey		ring[WIG_RING];
} WigQueue;

/* What the clock worker waits for; each kind is looked for in a table of its own. */
typedef enum WigDeadline
{
	WIG_DEADLINE_TIMER,
	WIG_DEADLINE_LEASE,
	WIG_DEADLINE_SCHEDULE,
	WIG_DEADLINE_RETENTION,
	WIG_DEADLINE_LEFTOVER,
	WIG_NDEADLINES
} WigDeadline;

typedef struct WigDatabase
{
	Oid			oid;			/* InvalidOid: free */

	slock_t		mutex;
	Latch	   *worker_latch;	/* NULL while no clock worker runs */
	int			worker_pid;		/* 0 while none runs */
	bool		worker_wanted;	/* the extension was found: restart the worker */
	bool		worker_served;	/* it went through all its duties since it was started */
	TimestampTz leave_until;	/* the worker keeps away (DROP DATABASE …); by wig_monotonic() */

	pg_atomic_uint64 passes[WIG_NDEADLINES];	/* of the clock worker's duties, since the server's start */
	pg_atomic_uint64 errors;	/* passes that raised one */

	pg_atomic_uint64 last_no;	/* highest instance number handed out, 0 = unknown */
	pg_atomic_uint64 last_event;	/* highest event number handed out, 0 = unknown */
	pg_atomic_uint32 copied;	/* a subscription was seen to write the tables */
	pg_atomic_uint32 events_ready;	/* entries were appended: to be announced */
	pg_atomic_uint64 deadlines[WIG_NDEADLINES]; /* TimestampTz of the worker's next duties */
	pg_atomic_uint64 stopped_clock; /* TimestampTz of a test's clock, 0 = runs */
	pg_atomic_uint32 any_ready; /* some queue has became_ready set */
	pg_atomic_uint32 all_ready; /* a queue without an entry became ready */
	pg_atomic_uint64 divided_until; /* TimestampTz until which proxies are taken to divide the tasks */

	LWLock		queue_lock;
	uint64		notes;			/* insertions ever noted, of all queues */
	uint64		entries;		/* queue entries ever made */
	int			nqueues;
	WigQueue	queues[FLEXIBLE_ARRAY_MEMBER];	/* wiggle.max_queues */
} WigDatabase;

/* The first event number that a backend's open transaction may have taken. */
typedef struct WigOpenEvent
{
	Oid			database;
	pg_atomic_uint64 first;		/* 0: none */
} WigOpenEvent;

typedef struct WigShared
{
	LWLock		lock;
	Latch	   *launcher_latch;	/* under lock */
	int			nopen_events;	/* one for each backend the server can have */
	pg_atomic_uint32 lifecycle; /* bumped when databases or extensions come and go */
	char		databases[FLEXIBLE_ARRAY_MEMBER];	/* wiggle.max_databases, open events */
} WigShared;

/* Install the request and startup hooks; called while preloading. */
extern void wig_shmem_init(void);

/* Raises an ERROR with a hint when the library was not preloaded. */
extern void wig_shmem_require(void);

/* The entry of the current database, made on first use. Raises an ERROR with a
 * hint when the library was not preloaded or every entry is taken. */
extern WigDatabase *wig_database(void);

/* The entry of a database by oid, NULL when it has none. */
extern WigDatabase *wig_database_find(Oid oid);

/* Give an entry back once its database is dropped, so that nobody can be using it. */
extern void wig_database_forget(Oid oid);

extern WigShared *wig_shared(void);

/* wiggle.max_queues as shared memory was sized with. */
extern int	wig_shmem_max_queues(void);

/* Databases or extensions came or went: the launcher and all workers look again. */
extern void wig_lifecycle_poke(void);

/* Is this process the clock worker of its database? */
extern bool wig_is_clock_worker(void);

/* Set the launcher's latch: a worker has gone. */
extern void wig_launcher_wake(void);

/* Set the clock worker's latch, if it runs. */
extern void wig_worker_poke(WigDatabase *db);

/* The next instance number: rises with time, unique in the database. `floor` is
 * the highest number in the table, asked for once after a restart. */
extern int64 wig_next_no(int64 (*floor) (void *arg), void *arg, TimestampTz now);

/* The next event number, likewise. */
extern int64 wig_next_event(int64 (*floor) (void *arg), void *arg, TimestampTz now);

/* Is the highest number known, or must the log be asked after a restart? */
extern bool wig_event_counter_known(void);
extern void wig_event_counter_init(int64 highest);

/* Say, before taking one, that this transaction takes event numbers from here on;
 * take it back once it has ended. */
extern void wig_event_publish(void);
extern void wig_event_withdraw(void);

/* The lowest number that an open transaction of this database may have taken,
 * or the next one to be handed out when there is none. */
extern int64 wig_lowest_open_event(void);

static inline int
wig_key_cmp(WigKey a, WigKey b)
{
	if (a.instance != b.instance)
		return a.instance < b.instance ? -1 : 1;
	if (a.n != b.n)
		return a.n < b.n ? -1 : 1;
	return 0;
}

#endif							/* WIGGLE_SHMEM_H */
