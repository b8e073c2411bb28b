/*
 * start.h
 *	  Starting instances.
 */
#ifndef WIGGLE_START_H
#define WIGGLE_START_H

#include "wiggle.h"

#include "errors.h"
#include "work.h"

typedef struct WigStart
{
	const char *id;				/* minted before, or NULL: minted here */
	const char *workflow;
	int32		version;		/* 0: the highest registered */
	const char *correlation_id; /* NULL allowed */
	const char *context;		/* JSON text; NULL: {} */
	size_t		context_len;
} WigStart;

typedef struct WigStarted
{
	char	   *id;
	WigInstanceStatus status;
} WigStarted;

/*
 * Start an instance, in the caller's transaction. An id that was started before
 * is answered with its present status and nothing changes. False with *refusal
 * (400, 404, 409) before anything is written.
 */
extern bool wig_start(WigWork *work, const WigStart *start, WigStarted *started,
					  WigRefusal *refusal);

#endif							/* WIGGLE_START_H */
