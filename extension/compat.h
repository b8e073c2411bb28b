/*
 * compat.h
 *	  Every difference between PostgreSQL 15 and 18 that the sources meet.
 */
#ifndef WIGGLE_COMPAT_H
#define WIGGLE_COMPAT_H

#include "wiggle.h"

#include "access/genam.h"
#include "catalog/pg_database.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "parser/parse_relation.h"
#include "storage/proc.h"
#include "utils/acl.h"

#if PG_VERSION_NUM < 150000
#error "wiggle needs PostgreSQL 15 or later"
#endif

/* 18 counts index searches for EXPLAIN in an extra argument. */
#if PG_VERSION_NUM >= 180000
#define wig_index_beginscan(heap, index, snapshot, nkeys) \
	index_beginscan(heap, index, snapshot, NULL, nkeys, 0)
#else
#define wig_index_beginscan(heap, index, snapshot, nkeys) \
	index_beginscan(heap, index, snapshot, nkeys, 0)
#endif

/* 16 split permissions off the range table, which says too what columns an update
 * sets; 18 added the unpruned relids. */
static inline void
wig_init_range_table(EState *estate, List *rtes)
{
#if PG_VERSION_NUM >= 160000
	List	   *permissions = NIL;
	ListCell   *lc;

	foreach(lc, rtes)
		addRTEPermissionInfo(&permissions, lfirst_node(RangeTblEntry, lc));
#endif
#if PG_VERSION_NUM >= 180000
	ExecInitRangeTable(estate, rtes, permissions, NULL);
#elif PG_VERSION_NUM >= 160000
	ExecInitRangeTable(estate, rtes, permissions);
#else
	ExecInitRangeTable(estate, rtes);
#endif
}

/* 16 added the result relations that a plan's recheck must not read. */
#if PG_VERSION_NUM >= 160000
#define wig_eval_plan_qual_init(epq, estate) \
	EvalPlanQualInit(epq, estate, NULL, NIL, -1, NIL)
#else
#define wig_eval_plan_qual_init(epq, estate) EvalPlanQualInit(epq, estate, NULL, NIL, -1)
#endif

/* 17 numbers processes from the outside. */
#if PG_VERSION_NUM >= 170000
#define wig_proc_number() MyProcNumber
#else
#define wig_proc_number() (MyProc->pgprocno)
#endif

/* 16 tells of BRIN-only updates, 18 names the row that a check is for. */
#if PG_VERSION_NUM >= 160000
#define wig_insert_index_tuples(result, slot, estate, conflict, arbiters) \
	ExecInsertIndexTuples(result, slot, estate, false, true, conflict, arbiters, false)
#else
#define wig_insert_index_tuples(result, slot, estate, conflict, arbiters) \
	ExecInsertIndexTuples(result, slot, estate, false, true, conflict, arbiters)
#endif

#if PG_VERSION_NUM >= 180000
#define wig_check_index_constraints(result, slot, estate, present, arbiters) \
	ExecCheckIndexConstraints(result, slot, estate, present, NULL, arbiters)
#else
#define wig_check_index_constraints(result, slot, estate, present, arbiters) \
	ExecCheckIndexConstraints(result, slot, estate, present, arbiters)
#endif

/* 16 has one function for all kinds of objects. */
#if PG_VERSION_NUM >= 160000
#define wig_owns_database(oid, role) object_ownercheck(DatabaseRelationId, oid, role)
#else
#define wig_owns_database(oid, role) pg_database_ownercheck(oid, role)
#endif

/* 17 can flush a message at once. */
#if PG_VERSION_NUM >= 170000
#define wig_log_message(prefix, text, len) LogLogicalMessage(prefix, text, len, true, false)
#else
#define wig_log_message(prefix, text, len) LogLogicalMessage(prefix, text, len, true)
#endif

/* 17 knows processes by their kind. */
#if PG_VERSION_NUM >= 170000
#define wig_is_background_worker() AmBackgroundWorkerProcess()
#else
#define wig_is_background_worker() IsBackgroundWorker
#endif

#endif							/* WIGGLE_COMPAT_H */
