/*
 * guc.c
 *	  Definition of every setting, with the text that documents it.
 *
 * All but those that size shared memory can be set for one database (ALTER DATABASE
 * ... SET), which a proxy does for the variables that it is given (settings_push).
 */
#include "wiggle.h"

#include <limits.h>

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_db_role_setting.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "guc.h"

int			wig_default_lease = 30000;
int			wig_retry_park = 1000;
int			wig_loop_max_iterations = 10000;
int			wig_max_depth = 4000;
int			wig_clock_batch = 500;
int			wig_retention = 24 * 60;
int			wig_event_retention = 7 * 24 * 60;
int			wig_max_databases = 8;
int			wig_max_queues = 128;
bool		wig_allow_graph_replace = false;
bool		wig_record_step_io = true;
bool		wig_test_clock = false;

/* What is shorter than the unit would be rounded to none, and nothing would be kept. */
static bool
check_retention(int *newval, void **extra, GucSource source)
{
	if (*newval != 0)
		return true;
	GUC_check_errdetail("It is at least one minute ('1min'), or -1 to keep all.");
	return false;
}

/* Settings that size shared memory exist only while the postmaster preloads us. */
static void
define_postmaster_settings(void)
{
	DefineCustomIntVariable("wiggle.max_databases",
							"Databases of this cluster that can hold the extension at a time.",
							NULL,
							&wig_max_databases, 8, 1, 1024,
							PGC_POSTMASTER, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("wiggle.max_queues",
							"Queues of a database whose low-water mark is remembered.",
							"Further queues work, but a claim looks for their first task from the start of the index.",
							&wig_max_queues, 128, 1, 65536,
							PGC_POSTMASTER, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("wiggle.test_clock",
							 "Allows wiggle.test_set_clock() to stop the clock and move it by hand.",
							 "For tests only: timers then fire by the stopped clock.",
							 &wig_test_clock, false,
							 PGC_POSTMASTER, 0, NULL, NULL, NULL);
}

void
wig_guc_define(void)
{
	if (process_shared_preload_libraries_in_progress)
		define_postmaster_settings();

	DefineCustomBoolVariable("wiggle.allow_graph_replace",
							 "Lets a forced registration replace the graph of an existing version.",
							 "Development only: instances in flight continue on the new graph.",
							 &wig_allow_graph_replace, false,
							 PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("wiggle.clock_batch",
							"Timers and leases that the clock worker moves in one transaction.",
							NULL,
							&wig_clock_batch, 500, 1, 100000,
							PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("wiggle.default_lease",
							"Lease of a claim that names none, and of steps that a report leases back.",
							NULL,
							&wig_default_lease, 30000, 1, INT_MAX,
							PGC_SUSET, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("wiggle.event_retention",
							"How long entries of the event log are kept.",
							"At least one minute. Those that a registered consumer has not acknowledged are kept longer. -1 keeps all.",
							&wig_event_retention, 7 * 24 * 60, -1, INT_MAX,
							PGC_SUSET, GUC_UNIT_MIN, check_retention, NULL, NULL);
	DefineCustomIntVariable("wiggle.loop_max_iterations",
							"Iterations of a loop whose definition sets no budget of its own.",
							NULL,
							&wig_loop_max_iterations, 10000, 1, INT_MAX,
							PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("wiggle.max_depth",
							"Sub-workflows inside sub-workflows, before an instance fails.",
							"It stops a workflow that starts itself without end.",
							&wig_max_depth, 4000, 1, 1000000,
							PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("wiggle.record_step_io",
							 "Keeps the input and output of each step with its token.",
							 "Off, a step writes about half as much.",
							 &wig_record_step_io, true,
							 PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("wiggle.retention",
							"How long instances are kept after they ended.",
							"At least one minute. Live instances of any age stay. -1 keeps all.",
							&wig_retention, 24 * 60, -1, INT_MAX,
							PGC_SUSET, GUC_UNIT_MIN, check_retention, NULL, NULL);
	DefineCustomIntVariable("wiggle.retry_park",
							"A retry delayed at least this long is shown as WAITING, a shorter one as READY.",
							NULL,
							&wig_retry_park, 1000, 0, INT_MAX,
							PGC_SUSET, GUC_UNIT_MS, NULL, NULL, NULL);

	MarkGUCPrefixReserved("wiggle");
}

static uint32
hash_of_ours(ArrayType *config)
{
	Datum	   *entries;
	uint32		hash = 0;
	int			n;

	deconstruct_array(config, TEXTOID, -1, false, TYPALIGN_INT, &entries, NULL, &n);
	for (int i = 0; i < n; i++)
	{
		char	   *entry = TextDatumGetCString(entries[i]);

		if (strncmp(entry, "wiggle.", 7) == 0)
			hash = hash_combine(hash, hash_bytes((unsigned char *) entry, (int) strlen(entry)));
	}
	return hash;
}

uint32
wig_guc_of_database(void)
{
	Relation	settings = table_open(DbRoleSettingRelationId, AccessShareLock);
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;
	uint32		hash = 0;

	ScanKeyInit(&keys[0], Anum_pg_db_role_setting_setdatabase, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(MyDatabaseId));
	ScanKeyInit(&keys[1], Anum_pg_db_role_setting_setrole, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(InvalidOid));
	scan = systable_beginscan(settings, DbRoleSettingDatidRolidIndexId, true, NULL, 2, keys);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		bool		isnull;
		Datum		config = heap_getattr(tuple, Anum_pg_db_role_setting_setconfig,
										  RelationGetDescr(settings), &isnull);

		if (!isnull)
			hash = hash_of_ours(DatumGetArrayTypeP(config));
	}
	systable_endscan(scan);
	table_close(settings, AccessShareLock);
	return hash;
}

void
wig_guc_apply_database(void)
{
	Relation	settings = table_open(DbRoleSettingRelationId, AccessShareLock);
	Snapshot	snapshot = RegisterSnapshot(GetCatalogSnapshot(DbRoleSettingRelationId));

	ApplySetting(snapshot, MyDatabaseId, InvalidOid, settings, PGC_S_DATABASE);
	UnregisterSnapshot(snapshot);
	table_close(settings, AccessShareLock);
}
