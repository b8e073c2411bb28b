/*
 * launcher.c
 *	  The static worker that keeps clock workers running.
 *
 * Which databases have the extension cannot be read from outside: a worker is
 * started in each and leaves at once where it finds none. It is tried again
 * when something says that databases or extensions changed (lifecycle.c), so an
 * idle cluster sees no wake-ups.
 */
#include "wiggle.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "clock.h"
#include "clock_worker.h"
#include "launcher.h"
#include "shmem.h"

#define FIRST_RESTART_MS	1000
#define MAX_RESTART_MS		60000
/* No free background worker slot: try again after this. */
#define NO_SLOT_RETRY_MS	5000

typedef struct Served
{
	Oid			oid;
	BackgroundWorkerHandle *handle; /* NULL: no worker */
	TimestampTz restart_at;		/* WIG_NEVER: only when the lifecycle changes */
	int			restart_ms;
	bool		seen;			/* still in pg_database */
} Served;

static List *served = NIL;

static void
forget_latch(int code, Datum arg)
{
	LWLockAcquire(&wig_shared()->lock, LW_EXCLUSIVE);
	wig_shared()->launcher_latch = NULL;
	LWLockRelease(&wig_shared()->lock);
}

static Served *
find_served(Oid oid)
{
	ListCell   *lc;
	Served	   *s;

	foreach(lc, served)
		if (((Served *) lfirst(lc))->oid == oid)
			return (Served *) lfirst(lc);
	s = MemoryContextAllocZero(TopMemoryContext, sizeof(Served));
	s->oid = oid;
	s->restart_ms = FIRST_RESTART_MS;
	served = lappend(served, s);
	return s;
}

/* Every database that may be connected to is worth a look; templates are not:
 * a worker in one would stand in the way of CREATE DATABASE. */
static void
list_databases(void)
{
	Relation	rel;
	TableScanDesc scan;
	HeapTuple	tuple;
	ListCell   *lc;

	foreach(lc, served)
		((Served *) lfirst(lc))->seen = false;

	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	(void) GetTransactionSnapshot();
	rel = table_open(DatabaseRelationId, AccessShareLock);
	scan = table_beginscan_catalog(rel, 0, NULL);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Form_pg_database form = (Form_pg_database) GETSTRUCT(tuple);
		MemoryContext old;
		Served	   *s;

		if (!form->datallowconn || form->datistemplate)
			continue;
		old = MemoryContextSwitchTo(TopMemoryContext);
		s = find_served(form->oid);
		MemoryContextSwitchTo(old);
		s->seen = true;
		s->restart_at = Min(s->restart_at, wig_monotonic());
	}
	table_endscan(scan);
	table_close(rel, AccessShareLock);
	CommitTransactionCommand();

	foreach(lc, served)
	{
		Served	   *s = (Served *) lfirst(lc);

		if (s->seen || s->handle != NULL)
			continue;
		wig_database_forget(s->oid);
		pfree(s);
		served = foreach_delete_current(served, lc);
	}
}

/* While somebody drops, renames or copies a database, its worker keeps away. */
static TimestampTz
away_until(Oid oid)
{
	WigDatabase *db = wig_database_find(oid);
	TimestampTz until = 0;

	if (db != NULL)
	{
		SpinLockAcquire(&db->mutex);
		until = db->leave_until;
		SpinLockRelease(&db->mutex);
	}
	return until;
}

/* What shared memory says of a database's worker, whoever started it; that it
 * served is said once. */
static void
look_at_worker(Oid oid, bool *wanted, bool *running, bool *served)
{
	WigDatabase *db = wig_database_find(oid);

	*wanted = *running = *served = false;
	if (db == NULL)
		return;
	SpinLockAcquire(&db->mutex);
	*wanted = db->worker_wanted;
	*running = db->worker_pid != 0;
	*served = db->worker_served;
	db->worker_served = false;
	SpinLockRelease(&db->mutex);
}

static void
start_worker(Served *s, TimestampTz now)
{
	BackgroundWorker worker = {0};

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	worker.bgw_main_arg = ObjectIdGetDatum(s->oid);
	worker.bgw_notify_pid = MyProcPid;
	strlcpy(worker.bgw_library_name, "wiggle", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "wig_clock_worker_main", sizeof(worker.bgw_function_name));
	snprintf(worker.bgw_name, sizeof(worker.bgw_name), "wiggle clock worker %u", s->oid);
	strlcpy(worker.bgw_type, "wiggle clock worker", sizeof(worker.bgw_type));

	if (!RegisterDynamicBackgroundWorker(&worker, &s->handle))
	{
		s->handle = NULL;
		s->restart_at = TimestampTzPlusMilliseconds(now, NO_SLOT_RETRY_MS);
		ereport(LOG,
				(errmsg("no background worker slot is free for the wiggle clock worker of database %u", s->oid),
				 errhint("Raise max_worker_processes: one for the launcher and one for each database with the extension.")));
		return;
	}
	s->restart_at = WIG_NEVER;
}

/*
 * Learn that a worker ended, and when it is to be started again. A worker that a
 * former launcher started has no handle, but it is there: shared memory says so.
 */
static void
check_worker(Served *s, TimestampTz now)
{
	pid_t		pid;
	bool		wanted;
	bool		running;
	bool		worked;

	if (s->handle != NULL && GetBackgroundWorkerPid(s->handle, &pid) != BGWH_STOPPED)
		return;
	if (s->handle != NULL)
		pfree(s->handle);
	s->handle = NULL;

	look_at_worker(s->oid, &wanted, &running, &worked);
	if (running)
		s->restart_at = WIG_NEVER;
	else if (wanted && s->restart_at == WIG_NEVER)
	{
		/* The doubling is for workers that cannot get going. */
		if (worked)
			s->restart_ms = FIRST_RESTART_MS;
		s->restart_at = TimestampTzPlusMilliseconds(now, s->restart_ms);
		s->restart_ms = Min(s->restart_ms * 2, MAX_RESTART_MS);
	}
}

/* Start what is due; returns how long to wait, -1 = until the latch. */
static long
tend_workers(void)
{
	TimestampTz now = wig_monotonic();
	TimestampTz next = WIG_NEVER;
	ListCell   *lc;

	foreach(lc, served)
	{
		Served	   *s = (Served *) lfirst(lc);
		TimestampTz away = away_until(s->oid);

		check_worker(s, now);
		if (s->handle != NULL)
			continue;
		if (away > now && s->restart_at != WIG_NEVER)
			s->restart_at = Max(s->restart_at, away);
		if (s->restart_at <= now)
			start_worker(s, now);
		if (s->handle == NULL)
			next = Min(next, s->restart_at);
	}
	if (next == WIG_NEVER)
		return -1;
	return (long) Max((next - now + 999) / 1000, 1);
}

void
wig_launcher_main(Datum arg)
{
	uint32		lifecycle;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);

	before_shmem_exit(forget_latch, (Datum) 0);
	LWLockAcquire(&wig_shared()->lock, LW_EXCLUSIVE);
	wig_shared()->launcher_latch = MyLatch;
	LWLockRelease(&wig_shared()->lock);

	lifecycle = pg_atomic_read_u32(&wig_shared()->lifecycle) - 1;
	for (;;)
	{
		uint32		present = pg_atomic_read_u32(&wig_shared()->lifecycle);
		long		timeout;
		int			events = WL_LATCH_SET | WL_EXIT_ON_PM_DEATH;

		if (present != lifecycle)
		{
			lifecycle = present;
			list_databases();
		}
		timeout = tend_workers();
		if (timeout >= 0)
			events |= WL_TIMEOUT;
		(void) WaitLatch(MyLatch, events, timeout, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
	}
}

void
wig_launcher_register(void)
{
	BackgroundWorker worker = {0};

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = 5;
	strlcpy(worker.bgw_library_name, "wiggle", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "wig_launcher_main", sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, "wiggle launcher", sizeof(worker.bgw_name));
	strlcpy(worker.bgw_type, "wiggle launcher", sizeof(worker.bgw_type));
	RegisterBackgroundWorker(&worker);
}
