/*
 * lifecycle.c
 *	  A utility hook that gets the clock worker out of the way.
 *
 * A connected worker would make DROP DATABASE, RENAME and CREATE DATABASE …
 * TEMPLATE fail. Before such a statement the database's worker is told to
 * leave, and it keeps away until the statement is over.
 */
#include "wiggle.h"

#include "catalog/pg_database.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "tcop/utility.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "clock.h"
#include "compat.h"
#include "lifecycle.h"
#include "shmem.h"
#include "wake.h"

/* A worker leaves within a pass; the server itself waits 5 s for the rest. */
#define LEAVE_WAIT_MS	2000
/* Should the statement's backend die, the worker may come back after this. */
#define LEAVE_USECS		(60 * USECS_PER_SEC)

static ProcessUtility_hook_type prev_utility = NULL;

/* The database that a statement needs to have for itself, or NULL. */
static const char *
wanted_database(Node *statement)
{
	ListCell   *lc;

	switch (nodeTag(statement))
	{
		case T_DropdbStmt:
			return ((DropdbStmt *) statement)->dbname;
		case T_RenameStmt:
			if (((RenameStmt *) statement)->renameType == OBJECT_DATABASE)
				return ((RenameStmt *) statement)->subname;
			return NULL;
		case T_AlterDatabaseStmt:
			foreach(lc, ((AlterDatabaseStmt *) statement)->options)
				if (strcmp(((DefElem *) lfirst(lc))->defname, "tablespace") == 0)
					return ((AlterDatabaseStmt *) statement)->dbname;
			return NULL;
		case T_CreatedbStmt:
			foreach(lc, ((CreatedbStmt *) statement)->options)
			{
				DefElem    *option = (DefElem *) lfirst(lc);

				if (strcmp(option->defname, "template") == 0 && option->arg != NULL)
					return defGetString(option);
			}
			return NULL;
		default:
			return NULL;
	}
}

/* May databases, their settings, the extension or who writes its tables be others after this statement? */
static bool
changes_lifecycle(Node *statement)
{
	switch (nodeTag(statement))
	{
		case T_CreateExtensionStmt:
			return strcmp(((CreateExtensionStmt *) statement)->extname, "wiggle") == 0;
		case T_AlterExtensionStmt:
			return strcmp(((AlterExtensionStmt *) statement)->extname, "wiggle") == 0;
		case T_DropStmt:
			return ((DropStmt *) statement)->removeType == OBJECT_EXTENSION ||
				((DropStmt *) statement)->removeType == OBJECT_SCHEMA;
		case T_DropOwnedStmt:
		case T_CreateSubscriptionStmt:
		case T_AlterSubscriptionStmt:
		case T_DropSubscriptionStmt:
		case T_CreatedbStmt:
		case T_DropdbStmt:
		case T_AlterDatabaseStmt:
		case T_AlterDatabaseSetStmt:
			return true;
		case T_RenameStmt:
			return ((RenameStmt *) statement)->renameType == OBJECT_DATABASE;
		default:
			return false;
	}
}

static void
set_leave(WigDatabase *db, TimestampTz until)
{
	SpinLockAcquire(&db->mutex);
	db->leave_until = until;
	SpinLockRelease(&db->mutex);
}

static bool
worker_runs(WigDatabase *db)
{
	int			pid;

	SpinLockAcquire(&db->mutex);
	pid = db->worker_pid;
	SpinLockRelease(&db->mutex);
	return pid != 0;
}

static void
send_away(WigDatabase *db)
{
	set_leave(db, wig_monotonic() + LEAVE_USECS);
	wig_worker_poke(db);
	for (int waited = 0; worker_runs(db) && waited < LEAVE_WAIT_MS; waited += 10)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, 10,
						 PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

/* The statement is over: the worker may come back. */
static void
come_back(int code, Datum arg)
{
	set_leave((WigDatabase *) DatumGetPointer(arg), 0);
	wig_lifecycle_poke();
}

static bool
may_move(Oid database)
{
	return superuser() || wig_owns_database(database, GetUserId());
}

static void
utility(PlannedStmt *pstmt, const char *query, bool read_only_tree,
		ProcessUtilityContext context, ParamListInfo params,
		QueryEnvironment *env, DestReceiver *dest, QueryCompletion *qc)
{
	ProcessUtility_hook_type next = prev_utility ? prev_utility : standard_ProcessUtility;
	const char *name = wanted_database(pstmt->utilityStmt);
	bool		changes = changes_lifecycle(pstmt->utilityStmt);
	Oid			oid = name != NULL ? get_database_oid(name, true) : InvalidOid;
	WigDatabase *db = OidIsValid(oid) ? wig_database_find(oid) : NULL;

	/* Whom the statement will refuse must not disturb anybody first. */
	if (db != NULL && !may_move(oid))
		db = NULL;
	if (db == NULL)
		next(pstmt, query, read_only_tree, context, params, env, dest, qc);
	else
	{
		/* Also when the backend is told to die meanwhile. */
		PG_ENSURE_ERROR_CLEANUP(come_back, PointerGetDatum(db));
		{
			send_away(db);
			next(pstmt, query, read_only_tree, context, params, env, dest, qc);
		}
		PG_END_ENSURE_ERROR_CLEANUP(come_back, PointerGetDatum(db));
		come_back(0, PointerGetDatum(db));
	}

	/* Told at commit: before it, the others would still see the old state. */
	if (changes)
		wig_wake_lifecycle();
}

void
wig_lifecycle_init(void)
{
	prev_utility = ProcessUtility_hook;
	ProcessUtility_hook = utility;
}
