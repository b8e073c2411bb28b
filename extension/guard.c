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
#include "catalog/pg_extension.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "guard.h"
#include "shmem.h"

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
	if (version == NULL || strcmp(version, WIG_LIBRARY_VERSION) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the loaded wiggle library is version %s, but the extension in this database is version %s",
						WIG_LIBRARY_VERSION, version ? version : "(none)"),
				 errhint("Restart the server after installing a new package, then run ALTER EXTENSION wiggle UPDATE.")));
	version_checked = true;
	checked_at = lifecycle;
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
}
