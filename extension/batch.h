/*
 * batch.h
 *	  The arguments of wiggle.batch(), unpacked.
 */
#ifndef WIGGLE_BATCH_H
#define WIGGLE_BATCH_H

#include "wiggle.h"

#include "fmgr.h"

#include "claim.h"
#include "report.h"
#include "start.h"

typedef struct WigFail
{
	const char *task_id;
	const char *owner;
	const char *message;
	bool		retryable;
	bool		asked_again;
} WigFail;

typedef struct WigBeat
{
	const char *task_id;
	const char *owner;
	int64		extend_ms;
} WigBeat;

typedef struct WigRelease
{
	const char *task_id;
	const char *owner;
} WigRelease;

typedef struct WigBatch
{
	WigStart   *starts;
	int			nstarts;
	WigRun	   *runs;
	int			nruns;
	WigFail    *fails;
	int			nfails;
	WigBeat    *beats;
	int			nbeats;
	WigRelease *releases;
	int			nreleases;
	WigPoll    *polls;
	int			npolls;
	bool		divided;		/* some polls look in shares only */
} WigBatch;

/* Unpack the eight composites. Raises WG400 when arrays of one family
 * differ in length or an index points outside. */
extern void wig_batch_unpack(const NullableDatum *families, WigBatch *batch);

/* Bits of the modes arrays. */
#define WIG_MODE_BIT_FINAL			1
#define WIG_MODE_BIT_COMPLETE		2
#define WIG_MODE_BIT_ASKED_AGAIN	4
#define WIG_MODE_BIT_GROUPED		8
#define WIG_MODE_BIT_MERGE			16

#endif							/* WIGGLE_BATCH_H */
