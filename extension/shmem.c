/*
 * shmem.c
 *	  Life cycle of the shared memory; see shmem.h for who may touch what.
 */
#include "wiggle.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"

#include "clock.h"
#include "compat.h"
#include "guc.h"
#include "shmem.h"

static shmem_request_hook_type prev_request_hook = NULL;
static shmem_startup_hook_type prev_startup_hook = NULL;
static WigShared *shared = NULL;
static WigDatabase *mine = NULL;

static int	tranche_shared;
static int	tranche_queues;

static Size
database_size(void)
{
	return MAXALIGN(add_size(offsetof(WigDatabase, queues),
							 mul_size(sizeof(WigQueue), wig_max_queues)));
}

static Size
shared_size(void)
{
	return add_size(add_size(MAXALIGN(offsetof(WigShared, databases)),
							 mul_size(database_size(), wig_max_databases)),
					mul_size(sizeof(WigOpenEvent), MaxBackends));
}

static WigDatabase *
database_at(int i)
{
	return (WigDatabase *) ((char *) shared + MAXALIGN(offsetof(WigShared, databases)) +
							i * database_size());
}

static WigOpenEvent *
open_events(void)
{
	return (WigOpenEvent *) database_at(wig_max_databases);
}

static void
shmem_request(void)
{
	if (prev_request_hook)
		prev_request_hook();
	RequestAddinShmemSpace(shared_size());
}

static void
shmem_startup(void)
{
	bool		found;

	if (prev_startup_hook)
		prev_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct("wiggle", shared_size(), &found);
	tranche_shared = LWLockNewTrancheId();
	tranche_queues = LWLockNewTrancheId();
	if (!found)
	{
		memset(shared, 0, shared_size());
		LWLockInitialize(&shared->lock, tranche_shared);
		pg_atomic_init_u32(&shared->lifecycle, 0);
		shared->nopen_events = MaxBackends;
		for (int i = 0; i < MaxBackends; i++)
			pg_atomic_init_u64(&open_events()[i].first, 0);
		for (int i = 0; i < wig_max_databases; i++)
		{
			WigDatabase *db = database_at(i);

			SpinLockInit(&db->mutex);
			LWLockInitialize(&db->queue_lock, tranche_queues);
			for (int duty = 0; duty < WIG_NDEADLINES; duty++)
				pg_atomic_init_u64(&db->passes[duty], 0);
			pg_atomic_init_u64(&db->errors, 0);
			pg_atomic_init_u64(&db->last_no, 0);
			pg_atomic_init_u64(&db->last_event, 0);
			pg_atomic_init_u32(&db->copied, 0);
			pg_atomic_init_u32(&db->events_ready, 0);
			for (int d = 0; d < WIG_NDEADLINES; d++)
				pg_atomic_init_u64(&db->deadlines[d], (uint64) WIG_NEVER);
			pg_atomic_init_u64(&db->stopped_clock, 0);
			pg_atomic_init_u32(&db->any_ready, 0);
			pg_atomic_init_u32(&db->all_ready, 0);
			pg_atomic_init_u64(&db->divided_until, 0);
		}
	}
	LWLockRelease(AddinShmemInitLock);

	LWLockRegisterTranche(tranche_shared, "wiggle_shared");
	LWLockRegisterTranche(tranche_queues, "wiggle_queues");
}

void
wig_shmem_init(void)
{
	prev_request_hook = shmem_request_hook;
	shmem_request_hook = shmem_request;
	prev_startup_hook = shmem_startup_hook;
	shmem_startup_hook = shmem_startup;
}

WigShared *
wig_shared(void)
{
	return shared;
}

int
wig_shmem_max_queues(void)
{
	return wig_max_queues;
}

/* Called with shared->lock held. */
static WigDatabase *
find_locked(Oid oid)
{
	for (int i = 0; i < wig_max_databases; i++)
		if (database_at(i)->oid == oid)
			return database_at(i);
	return NULL;
}

WigDatabase *
wig_database_find(Oid oid)
{
	WigDatabase *db;

	LWLockAcquire(&shared->lock, LW_SHARED);
	db = find_locked(oid);
	LWLockRelease(&shared->lock);
	return db;
}

/* A reused entry starts as an empty one: marks at the lowest key. */
static void
reset_entry(WigDatabase *db, Oid oid)
{
	db->oid = oid;
	db->leave_until = 0;
	db->worker_latch = NULL;
	db->worker_pid = 0;
	db->worker_wanted = false;
	db->nqueues = 0;
	for (int duty = 0; duty < WIG_NDEADLINES; duty++)
		pg_atomic_write_u64(&db->passes[duty], 0);
	pg_atomic_write_u64(&db->errors, 0);
	pg_atomic_write_u64(&db->last_no, 0);
	pg_atomic_write_u64(&db->last_event, 0);
	pg_atomic_write_u32(&db->copied, 0);
	pg_atomic_write_u32(&db->events_ready, 0);
	for (int d = 0; d < WIG_NDEADLINES; d++)
		pg_atomic_write_u64(&db->deadlines[d], (uint64) WIG_NEVER);
	pg_atomic_write_u64(&db->stopped_clock, 0);
	pg_atomic_write_u32(&db->any_ready, 0);
	pg_atomic_write_u32(&db->all_ready, 0);
	pg_atomic_write_u64(&db->divided_until, 0);
}

void
wig_shmem_require(void)
{
	if (shared == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("wiggle must be loaded via shared_preload_libraries"),
				 errhint("Add wiggle to shared_preload_libraries and restart the server.")));
}

WigDatabase *
wig_database(void)
{
	WigDatabase *db;

	if (mine != NULL && mine->oid == MyDatabaseId)
		return mine;

	wig_shmem_require();
	LWLockAcquire(&shared->lock, LW_EXCLUSIVE);
	db = find_locked(MyDatabaseId);
	if (db == NULL)
	{
		db = find_locked(InvalidOid);
		if (db != NULL)
			reset_entry(db, MyDatabaseId);
	}
	LWLockRelease(&shared->lock);

	if (db == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("more than %d databases of this cluster use wiggle", wig_max_databases),
				 errhint("Raise wiggle.max_databases and restart the server.")));
	mine = db;
	return db;
}

void
wig_database_forget(Oid oid)
{
	WigDatabase *db;

	LWLockAcquire(&shared->lock, LW_EXCLUSIVE);
	db = find_locked(oid);
	if (db != NULL)
		db->oid = InvalidOid;
	LWLockRelease(&shared->lock);
}

void
wig_lifecycle_poke(void)
{
	Latch	   *launcher;

	if (shared == NULL)
		return;
	pg_atomic_fetch_add_u32(&shared->lifecycle, 1);

	LWLockAcquire(&shared->lock, LW_SHARED);
	launcher = shared->launcher_latch;
	for (int i = 0; i < wig_max_databases; i++)
		if (OidIsValid(database_at(i)->oid))
			wig_worker_poke(database_at(i));
	LWLockRelease(&shared->lock);

	if (launcher != NULL)
		SetLatch(launcher);
}

bool
wig_is_clock_worker(void)
{
	return mine != NULL && mine->worker_pid == MyProcPid;
}

void
wig_launcher_wake(void)
{
	Latch	   *launcher;

	LWLockAcquire(&shared->lock, LW_SHARED);
	launcher = shared->launcher_latch;
	LWLockRelease(&shared->lock);
	if (launcher != NULL)
		SetLatch(launcher);
}

void
wig_worker_poke(WigDatabase *db)
{
	Latch	   *latch;

	SpinLockAcquire(&db->mutex);
	latch = db->worker_latch;
	SpinLockRelease(&db->mutex);
	if (latch != NULL)
		SetLatch(latch);
}

/*
 * Microseconds since the Unix epoch, so that numbers rise over restarts,
 * restores and failovers without a sequence to carry over; bumped by one where
 * several are taken within the same microsecond or the clock was set back.
 */
static int64
next_number(pg_atomic_uint64 *counter, int64 (*floor) (void *arg), void *arg, TimestampTz now)
{
	uint64		last = pg_atomic_read_u64(counter);
	uint64		next;
	uint64		seen;

	if (last == 0)
		last = Max(floor(arg), 1);
	do
	{
		seen = pg_atomic_read_u64(counter);
		next = Max(Max(last, seen) + 1, (uint64) wig_to_micros(now));
	} while (!pg_atomic_compare_exchange_u64(counter, &seen, next));
	return (int64) next;
}

int64
wig_next_no(int64 (*floor) (void *arg), void *arg, TimestampTz now)
{
	return next_number(&wig_database()->last_no, floor, arg, now);
}

int64
wig_next_event(int64 (*floor) (void *arg), void *arg, TimestampTz now)
{
	return next_number(&wig_database()->last_event, floor, arg, now);
}

bool
wig_event_counter_known(void)
{
	return pg_atomic_read_u64(&wig_database()->last_event) != 0;
}

void
wig_event_counter_init(int64 highest)
{
	uint64		unknown = 0;

	(void) pg_atomic_compare_exchange_u64(&wig_database()->last_event, &unknown,
										  (uint64) Max(highest, 1));
}

void
wig_event_publish(void)
{
	WigOpenEvent *mine_open = &open_events()[wig_proc_number() % shared->nopen_events];
	WigDatabase *db = wig_database();

	mine_open->database = MyDatabaseId;
	/* A full barrier: whoever reads a later counter sees this first. */
	pg_atomic_exchange_u64(&mine_open->first, pg_atomic_read_u64(&db->last_event) + 1);
}

void
wig_event_withdraw(void)
{
	pg_atomic_exchange_u64(&open_events()[wig_proc_number() % shared->nopen_events].first, 0);
}

int64
wig_lowest_open_event(void)
{
	uint64		lowest = pg_atomic_fetch_add_u64(&wig_database()->last_event, 0) + 1;

	for (int i = 0; i < shared->nopen_events; i++)
	{
		uint64		first = pg_atomic_read_u64(&open_events()[i].first);

		if (first != 0 && open_events()[i].database == MyDatabaseId)
			lowest = Min(lowest, first);
	}
	return (int64) lowest;
}
