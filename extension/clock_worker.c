/*
 * clock_worker.c
 *	  Main loop of the clock worker.
 *
 * The worker sleeps until the nearest deadline. A transaction that commits an
 * earlier one, or makes a queue ready, sets its latch (wake.c). The worker
 * takes a published deadline away before it reads the tables, so that whoever
 * commits later publishes anew: nothing falls between the scan and the sleep.
 *
 * Its transactions commit asynchronously: they move rows that are found again
 * after a crash, and whoever acts on what they wrote in this database flushes them
 * with a commit of its own, which comes later in the log. What others act on waits
 * as an application's commit does: events (event.c) and instances for other shards
 * (schedule.c).
 */
#include "wiggle.h"

#include "access/xact.h"
#include "commands/async.h"
#include "libpq/pqsignal.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/pmsignal.h"
#include "storage/procsignal.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "clock.h"
#include "clock_worker.h"
#include "durable.h"
#include "expire.h"
#include "guard.h"
#include "guc.h"
#include "mark.h"
#include "pass.h"
#include "resting.h"
#include "schedule.h"
#include "shmem.h"
#include "version.h"

/* Under load notifications are this far apart: one covers many commits. */
#define NOTIFY_REST_MS		1
/* Nobody tells when the machine's clock is set: it is looked at as often as this. */
#define MAX_SLEEP_MS		5000
/* After an error the worker rests, doubling up to the maximum. */
#define ERROR_REST_MS		100
#define MAX_ERROR_REST_MS	30000

static WigDatabase *db;
static WigDuty duties[WIG_NPASSES];
static MemoryContext pass_context;
static uint32 database_settings;	/* with which this session began */

static void
detach(int code, Datum arg)
{
	SpinLockAcquire(&db->mutex);
	if (db->worker_pid == MyProcPid)
	{
		db->worker_latch = NULL;
		db->worker_pid = 0;
	}
	SpinLockRelease(&db->mutex);
	wig_launcher_wake();
}

/* False when another worker serves this database already. */
static bool
attach(void)
{
	bool		free_place;

	db = wig_database();
	SpinLockAcquire(&db->mutex);
	free_place = db->worker_pid == 0;
	if (free_place)
	{
		db->worker_latch = MyLatch;
		db->worker_pid = MyProcPid;
		db->worker_wanted = true;
	}
	SpinLockRelease(&db->mutex);
	if (free_place)
		before_shmem_exit(detach, (Datum) 0);
	return free_place;
}

static void
begin(const char *activity)
{
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	pgstat_report_activity(STATE_RUNNING, activity);
}

static void
commit(void)
{
	PopActiveSnapshot();
	CommitTransactionCommand();
	pgstat_report_stat(false);
	pgstat_report_activity(STATE_IDLE, NULL);
}

typedef enum Catalog
{
	CATALOG_GONE,				/* the extension is not installed */
	CATALOG_OTHER,				/* SQL objects that the library does not run with, or a logical replica: do nothing */
	CATALOG_OURS
} Catalog;

static Catalog
look_at_catalog(void)
{
	char	   *version;
	char	   *subscription = NULL;
	Catalog		result;

	begin("looking for the extension");
	version = wig_catalog_version();
	if (version != NULL)
		subscription = wig_copied_by();
	if (version == NULL)
		result = CATALOG_GONE;
	else if (subscription != NULL)
	{
		result = CATALOG_OTHER;
		ereport(LOG,
				(errmsg("wiggle clock worker waits: this database is a logical replica, whose tables the subscription \"%s\" writes",
						subscription)));
	}
	else if (wig_runs_with(version))
		result = CATALOG_OURS;
	else
	{
		result = CATALOG_OTHER;
		ereport(LOG,
				(errmsg("wiggle clock worker waits: the library is version %s, the extension version %s",
						wig_library_version, version),
				 errhint("Restart the server after installing a new package, then run ALTER EXTENSION wiggle UPDATE.")));
	}
	commit();
	return result;
}

/*
 * Settings of the database count from a session's start: when ours have changed
 * this one ends, and the launcher begins another.
 */
static bool
settings_changed(void)
{
	uint32		now;

	begin("looking at the database's settings");
	now = wig_guc_of_database();
	commit();
	return now != database_settings;
}

/* A sane session, whatever the database's or role's defaults are. */
static void
set_session(void)
{
	SetConfigOption("search_path", "pg_catalog, pg_temp", PGC_SUSET, PGC_S_OVERRIDE);
	wig_commit_lazily();
	SetConfigOption("statement_timeout", "0", PGC_SUSET, PGC_S_OVERRIDE);
	SetConfigOption("lock_timeout", "0", PGC_SUSET, PGC_S_OVERRIDE);
	SetConfigOption("idle_in_transaction_session_timeout", "0", PGC_SUSET, PGC_S_OVERRIDE);
	SetConfigOption("default_transaction_isolation", "read committed", PGC_SUSET, PGC_S_OVERRIDE);
	SetConfigOption("default_transaction_read_only", "off", PGC_SUSET, PGC_S_OVERRIDE);
	SetConfigOption("row_security", "off", PGC_SUSET, PGC_S_OVERRIDE);

	/* What it queries is found by key, whatever the statistics say at the moment. */
	SetConfigOption("enable_hashjoin", "off", PGC_SUSET, PGC_S_OVERRIDE);
	SetConfigOption("enable_mergejoin", "off", PGC_SUSET, PGC_S_OVERRIDE);
	SetConfigOption("enable_seqscan", "off", PGC_SUSET, PGC_S_OVERRIDE);

	/* A scan that is penalised looks dear enough to be compiled, each time anew. */
	SetConfigOption("jit", "off", PGC_SUSET, PGC_S_OVERRIDE);
}

/* Merge what others published into the duties. */
static void
read_deadlines(void)
{
	for (int i = 0; i < WIG_NPASSES; i++)
	{
		TimestampTz published =
			(TimestampTz) pg_atomic_read_u64(&db->deadlines[wig_passes[i].deadline]);

		duties[i].next = Min(duties[i].next, published);
		duties[i].from = Min(duties[i].from, published);
	}
}

static void
publish(WigDeadline kind, TimestampTz at)
{
	uint64		seen = pg_atomic_read_u64(&db->deadlines[kind]);

	while (at < (TimestampTz) seen)
		if (pg_atomic_compare_exchange_u64(&db->deadlines[kind], &seen, (uint64) at))
			break;
}

/* Run one duty's pass; true when it should be run again at once. */
static bool
run_pass(int i)
{
	const WigPass *pass = &wig_passes[i];
	WigDuty    *duty = &duties[i];
	TimestampTz published;
	bool		more;

	published = (TimestampTz) pg_atomic_exchange_u64(&db->deadlines[pass->deadline],
													 (uint64) WIG_NEVER);
	duty->from = Min(duty->from, published);

	begin(pass->name);
	MemoryContextSwitchTo(pass_context);
	more = pass->run(duty, wig_now());
	commit();
	MemoryContextSwitchTo(TopMemoryContext);
	MemoryContextReset(pass_context);
	pg_atomic_fetch_add_u64(&db->passes[pass->deadline], 1);
	duty->careful = wig_resting_count(wig_now()) > 0;
	publish(pass->deadline, duty->next);
	return more;
}

/* True when something is to be looked for sooner than was known. */
static bool
announce(void)
{
	char	   *payload;

	bool		queues;
	bool		events;

	MemoryContextSwitchTo(pass_context);
	queues = wig_mark_take_ready(wig_now(), &payload);
	events = pg_atomic_exchange_u32(&db->events_ready, 0) != 0;
	if (queues || events)
	{
		begin("announcing");
		if (queues)
			Async_Notify("wiggle_ready", payload);
		if (events)
			Async_Notify("wiggle_event", "");
		commit();
	}
	MemoryContextSwitchTo(TopMemoryContext);
	MemoryContextReset(pass_context);
	if (!queues || !wig_mark_is_divided(wig_now()))
		return false;
	publish(WIG_DEADLINE_LEFTOVER, wig_now() + WIG_LEFTOVER_PAUSE_USECS);
	return true;
}

static bool
told_to_leave(void)
{
	TimestampTz until;

	SpinLockAcquire(&db->mutex);
	until = db->leave_until;
	SpinLockRelease(&db->mutex);
	return until > wig_monotonic();
}

/*
 * One batch of every duty that is due; returns how long to sleep, -1 = until the
 * latch. A long backlog is worked off in turns, so that no duty, no announcement
 * and no request to leave waits for the end of another's.
 */
static long
do_duties(void)
{
	long		sleep = -1;

	read_deadlines();
	for (int i = 0; i < WIG_NPASSES; i++)
	{
		long		until;

		if (duties[i].next <= wig_now() && run_pass(i))
			duties[i].next = 0;	/* there is more */
		until = duties[i].next <= wig_now() ? 0 : wig_millis_until(duties[i].next);
		if (until >= 0 && (sleep < 0 || until < sleep))
			sleep = until;
	}
	return sleep;
}

/* What became due or ready, whoever has told of it. */
static void
look_at_everything(void)
{
	for (int i = 0; i < WIG_NPASSES; i++)
	{
		duties[i].next = 0;
		duties[i].from = DT_NOBEGIN;
	}
	pg_atomic_write_u32(&db->all_ready, 1);
	pg_atomic_write_u32(&db->any_ready, 1);
}

/* When to look again, to fire and to take back was reckoned by a clock that was ahead. */
static void
follow_clock(void)
{
	TimestampTz back = wig_clock_set_back();

	if (back <= 0)
		return;
	begin("following a clock that was set back");
	MemoryContextSwitchTo(pass_context);
	wig_schedule_set_back(wig_now(), back);
	wig_leases_set_back(wig_now());
	commit();
	MemoryContextSwitchTo(TopMemoryContext);
	MemoryContextReset(pass_context);
	ereport(back > USECS_PER_SEC ? LOG : DEBUG1,
			(errmsg("the clock was set back by " INT64_FORMAT " ms", back / 1000),
			 errdetail("Schedules and leases are reckoned from now. Timers of the time that it was ahead stay.")));
	look_at_everything();
}

/* The loop's one error boundary: abort, report, remember to be careful. */
static void
recover(void)
{
	HOLD_INTERRUPTS();
	pg_atomic_fetch_add_u64(&db->errors, 1);
	EmitErrorReport();
	AbortCurrentTransaction();
	MemoryContextSwitchTo(TopMemoryContext);
	FlushErrorState();
	MemoryContextReset(pass_context);
	for (int i = 0; i < WIG_NPASSES; i++)
	{
		duties[i].careful = true;
		duties[i].next = 0;
		duties[i].from = DT_NOBEGIN;	/* what was fired may be there again */
	}
	pgstat_report_activity(STATE_IDLE, NULL);
	RESUME_INTERRUPTS();
}

static void
rest(long ms)
{
	int			events = WL_LATCH_SET | WL_EXIT_ON_PM_DEATH;

	if (ms >= 0)
		events |= WL_TIMEOUT;
	(void) WaitLatch(MyLatch, events, ms, PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
	/* A latch that is set again and again hides the postmaster's death. */
	if (!PostmasterIsAlive())
		proc_exit(1);
	CHECK_FOR_INTERRUPTS();
}

static void
tell_launcher_it_works(void)
{
	SpinLockAcquire(&db->mutex);
	db->worker_served = true;
	SpinLockRelease(&db->mutex);
}

/*
 * After an error nothing is done for a while, but interrupts, and being told to
 * leave, are heard at once. True when the worker is to leave.
 */
static bool
rest_after_error(long ms)
{
	TimestampTz until = TimestampTzPlusMilliseconds(wig_monotonic(), ms);
	long		left = ms;

	while (left > 0)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, left,
						 PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (told_to_leave())
			return true;
		left = TimestampDifferenceMilliseconds(wig_monotonic(), until);
	}
	return false;
}

/* Serve until the extension or the database goes. */
static void
serve(void)
{
	uint32		lifecycle = pg_atomic_read_u32(&wig_shared()->lifecycle);
	TimestampTz notified_at = 0;
	volatile long error_rest = ERROR_REST_MS;
	volatile bool told = false;
	volatile Catalog catalog = CATALOG_OURS;
	sigjmp_buf	on_error;

	if (sigsetjmp(on_error, 1) != 0)
	{
		/* The callbacks on it lived in frames that are gone. */
		error_context_stack = NULL;
		PG_exception_stack = NULL;
		recover();
		PG_exception_stack = &on_error;
		if (rest_after_error(error_rest))
			return;
		error_rest = Min(error_rest * 2, MAX_ERROR_REST_MS);
		catalog = look_at_catalog();
	}
	PG_exception_stack = &on_error;

	for (;;)
	{
		long		sleep = -1;
		uint32		now_lifecycle = pg_atomic_read_u32(&wig_shared()->lifecycle);

		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			/* Settings say what is due: look at everything once. */
			for (int i = 0; i < WIG_NPASSES; i++)
				duties[i].next = 0;
		}
		if (told_to_leave())
			return;
		if (now_lifecycle != lifecycle)
		{
			Catalog		before = catalog;

			lifecycle = now_lifecycle;
			catalog = look_at_catalog();
			if (before != CATALOG_OURS)
				look_at_everything();
			if (catalog == CATALOG_OURS && settings_changed())
				return;
		}
		if (catalog == CATALOG_GONE)
		{
			SpinLockAcquire(&db->mutex);
			db->worker_wanted = false;
			SpinLockRelease(&db->mutex);
			return;
		}
		if (catalog == CATALOG_OURS)
		{
			follow_clock();
			sleep = do_duties();
			sleep = sleep < 0 ? MAX_SLEEP_MS : Min(sleep, MAX_SLEEP_MS);
			if (!told)
				tell_launcher_it_works();
			told = true;
			if (pg_atomic_read_u32(&db->any_ready) != 0 ||
				pg_atomic_read_u32(&db->events_ready) != 0)
			{
				if (TimestampDifferenceExceeds(notified_at, wig_monotonic(), NOTIFY_REST_MS))
				{
					if (announce())
						sleep = 0;
					notified_at = wig_monotonic();
				}
				else
					sleep = Min(sleep, NOTIFY_REST_MS);
			}
			error_rest = ERROR_REST_MS;
		}
		rest(sleep);
	}
}

void
wig_clock_worker_main(Datum arg)
{
	Oid			oid = DatumGetObjectId(arg);
	Catalog		catalog;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnectionByOid(oid, InvalidOid, 0);
	set_session();

	/* Taken anew: they may have changed since the session began. */
	begin("looking at the database's settings");
	database_settings = wig_guc_of_database();
	wig_guc_apply_database();
	commit();
	catalog = look_at_catalog();
	if (catalog == CATALOG_GONE)
		proc_exit(0);
	if (!attach())
		proc_exit(0);

	pass_context = AllocSetContextCreate(TopMemoryContext, "wiggle clock pass",
										 ALLOCSET_DEFAULT_SIZES);
	/* What was due, or became ready, while no worker ran. */
	look_at_everything();
	serve();
	proc_exit(0);
}
