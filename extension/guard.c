/*
 * guard.c
 *	  Entry checks: preload, version handshake, writability.
 */
#include "wiggle.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_subscription.h"
#include "catalog/pg_subscription_rel.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "guard.h"
#include "mark.h"
#include "shmem.h"
#include "version.h"
#include "wake.h"

/*
 * The check reads pg_extension, which has no syscache. Its outcome is kept
 * until the extension's namespace is touched: creating, dropping or updating
 * the extension writes pg_proc, whose invalidations reach every backend; and
 * until any extension or database came or went, for scripts that touch no function.
 */
static bool version_checked = false;
static uint32 checked_at;		/* lifecycle counter (shmem.h) at the check */

static void
forget_version(Datum arg, int cacheid, uint32 hashvalue)
{
	version_checked = false;
}

char *
wig_catalog_version(void)
{
	Relation	rel = table_open(ExtensionRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	char	   *version = NULL;

	ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber, F_NAMEEQ,
				CStringGetDatum("wiggle"));
	scan = systable_beginscan(rel, ExtensionNameIndexId, true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		bool		isnull;
		Datum		value = heap_getattr(tuple, Anum_pg_extension_extversion,
										 RelationGetDescr(rel), &isnull);

		if (!isnull)
			version = TextDatumGetCString(value);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return version;
}

static void
check_version(void)
{
	static bool registered = false;
	char	   *version;

	uint32		lifecycle = pg_atomic_read_u32(&wig_shared()->lifecycle);

	if (version_checked && checked_at == lifecycle)
		return;
	if (!registered)
	{
		CacheRegisterSyscacheCallback(PROCOID, forget_version, (Datum) 0);
		registered = true;
	}

	version = wig_catalog_version();
	if (!wig_runs_with(version))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the loaded wiggle library is version %s, but the extension in this database is version %s",
						wig_library_version, version ? version : "(none)"),
				 errhint("Restart the server after installing a new package, then run ALTER EXTENSION wiggle UPDATE.")));
	version_checked = true;
	checked_at = lifecycle;
}

/*
 * A subscription that writes wiggle's tables makes the database a copy: whatever
 * stands in them is being worked on where it comes from. Kept until a subscription
 * takes in a table or lets it go.
 */
static bool copy_checked = false;

static void
forget_copy(Datum arg, int cacheid, uint32 hashvalue)
{
	copy_checked = false;
}

/* A table of ours that a subscription writes: its subscription's oid, or InvalidOid. */
static Oid
find_subscription(void)
{
	Oid			namespace = get_namespace_oid(WIG_SCHEMA, true);
	Relation	rel = table_open(SubscriptionRelRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(rel, InvalidOid, false, NULL, 0, NULL);
	HeapTuple	tuple;
	Oid			found = InvalidOid;

	while (!OidIsValid(found) && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_subscription_rel form = (Form_pg_subscription_rel) GETSTRUCT(tuple);

		if (OidIsValid(namespace) && get_rel_namespace(form->srrelid) == namespace)
			found = form->srsubid;
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return found;
}

/* What shared memory knows was true before the subscription wrote past it. */
static void
become_original(WigDatabase *db)
{
	pg_atomic_write_u64(&db->last_no, 0);
	pg_atomic_write_u64(&db->last_event, 0);
	(void) wig_mark_forget();
	wig_wake_rewritten();
}

char *
wig_copied_by(void)
{
	WigDatabase *db = wig_database();
	Oid			subscription = find_subscription();

	if (OidIsValid(subscription))
	{
		pg_atomic_write_u32(&db->copied, 1);
		return get_subscription_name(subscription, true);
	}
	if (pg_atomic_exchange_u32(&db->copied, 0) != 0)
		become_original(db);
	return NULL;
}

static void
check_copy(void)
{
	static bool registered = false;
	char	   *subscription;

	if (copy_checked)
		return;
	if (!registered)
	{
		CacheRegisterSyscacheCallback(SUBSCRIPTIONRELMAP, forget_copy, (Datum) 0);
		registered = true;
	}
	subscription = wig_copied_by();
	if (subscription != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("this database is a logical replica: the subscription \"%s\" writes the tables of wiggle",
						subscription),
				 errhint("Work goes on where they come from. To work here instead, stop it there, then drop the subscription.")));
	copy_checked = true;
}

void
wig_guard_read(void)
{
	(void) wig_database();
	check_version();
}

void
wig_guard_write(const char *function)
{
	PreventCommandIfReadOnly(function);
	PreventCommandIfParallelMode(function);
	PreventCommandDuringRecovery(function);
	(void) wig_database();
	check_version();
	check_copy();
}

void
wig_guard_feed(void)
{
	wig_guard_read();
	if (RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the event feed cannot be read on a standby"),
				 errdetail("Only the primary knows which entries are still to come before others."),
				 errhint("Read the feed on the primary; the table wiggle.wf_event can be read here.")));
	check_copy();
}
