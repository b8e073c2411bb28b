/*
 * report.h
 *	  Reports of finished steps: one run is the steps of one task, in order.
 */
#ifndef WIGGLE_REPORT_H
#define WIGGLE_REPORT_H

#include "wiggle.h"

#include "errors.h"
#include "work.h"

typedef enum WigOutcome
{
	WIG_OUTCOME_NONE,			/* the context stays as it is */
	WIG_OUTCOME_MERGE,			/* value is JSON text */
	WIG_OUTCOME_PREDICATE		/* value is "true" or "false" */
} WigOutcome;

/* An entry that a handler adds to the event log. */
typedef struct WigEmitted
{
	const char *type;
	const char *payload;		/* JSON object text, or NULL */
	size_t		payload_len;
} WigEmitted;

typedef struct WigStep
{
	const char *node_id;		/* NULL: whatever node the token is at */
	WigOutcome	outcome;
	const char *value;
	size_t		value_len;
	int64		started_ms;		/* worker's clock, Unix ms; 0 = not given */
	int64		finished_ms;
	const WigEmitted *events;
	int			nevents;
} WigStep;

typedef struct WigRun
{
	const char *task_id;
	const char *owner;
	bool		final;			/* the worker wants nothing leased back */
	bool		complete;		/* CompleteTask: one step, its node not named */
	bool		merge;			/* a task's object is merged: CompleteTask, AdvanceRun */
	bool		asked_again;	/* the first answer was lost */
	bool		grouped;		/* came with other runs in one call: stricter rules */
	const WigStep *steps;
	int			nsteps;
} WigRun;

typedef struct WigApplied
{
	WigInstanceStatus status;
	TimestampTz lease_expires_at;	/* 0 = none */
	char	   *next_task_id;	/* leased back to the same owner, or NULL */
} WigApplied;

/*
 * Apply a run under its instance's lock. Everything that can be refused is
 * refused before the first write: 404 unknown task, 409 lost lease or a step
 * that is not where the token stands, 400 an unacceptable result. An instance
 * that is no longer RUNNING answers its status and nothing is written.
 */
extern bool wig_report(WigWork *work, const WigRun *run, WigApplied *applied,
					   WigRefusal *refusal);

#endif							/* WIGGLE_REPORT_H */
