/*
 * wiggle.h
 *	  Names that every file of the extension shares.
 *
 * The nouns, used the same way in tables, structs, files and messages:
 *
 * definition	a workflow's graph under a name and a version
 * node			a point of the graph; a step is a node that workers run
 * instance		one run of a definition; lives entirely in one database
 * token		where an instance stands; minted once, settled once
 * scope		a view of the context that a token works in; 0 is the instance's
 * ready		a token that a worker may claim (a row of wf_ready)
 * lease		a token that a worker holds (a row of wf_lease)
 * timer		a token that time will move (a row of wf_timer)
 *
 * Layers, each including only itself and those before it: ground (this file,
 * version, errors, guc, compat, clock, shmem, wake, guard, faultpoint, store) < pure
 * (graph, transition, loops) < rows (definition_row, instance, scope, token,
 * ready, lease, timer) < moves (work, drive, start, report, fail, cancel,
 * claim, expire) < engine (pass, clock_worker, launcher) < api (api_*.c, the
 * only files with PG_FUNCTION_INFO_V1).
 */
#ifndef WIGGLE_H
#define WIGGLE_H

#include "postgres.h"

#include "datatype/timestamp.h"

#define WIG_SCHEMA			"wiggle"

/* Widths of the columns that clients fill, in characters (Wiggle's schema). */
#define WIG_MAX_NAME			200
#define WIG_MAX_NAME_BYTES		(WIG_MAX_NAME * 4)
#define WIG_MAX_CORRELATION		200
#define WIG_MAX_REASON			200
#define WIG_MAX_NODE_ID			64
/* In bytes, for it is a part of every lease. */
#define WIG_MAX_WORKER_ID		120
#define WIG_MAX_OWNER			(WIG_MAX_WORKER_ID + 1 + 13)

/* The longest delay, lease or timer that is accepted: one hundred years. */
#define WIG_MAX_MILLIS			INT64CONST(3155760000000)

#endif							/* WIGGLE_H */
