/*
 * api.h
 *	  Arguments and rows of the SQL functions.
 */
#ifndef WIGGLE_API_H
#define WIGGLE_API_H

#include "wiggle.h"

#include "fmgr.h"
#include "utils/builtins.h"

#include "errors.h"

/* A text argument as a C string; NULL when it is SQL null. */
#define WIG_ARG_CSTRING(n) \
	(PG_ARGISNULL(n) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(n)))

/* A jsonb argument as JSON text; NULL when it is SQL null. */
extern char *wig_arg_json(FunctionCallInfo fcinfo, int n);

/* An interval argument in milliseconds; -1 when it is SQL null. WG400 when it is
 * negative or over one hundred years. */
extern int64 wig_arg_millis(FunctionCallInfo fcinfo, int n, const char *name);

/* Why there is nothing of this id here: another shard's ids say so. palloc'd. */
extern char *wig_absence(const char *kind, const char *id);

/* Raise a refusal of what was asked for an id; one that was not found is named, and whose it is. */
extern void wig_raise_about(const WigRefusal *refusal, const char *kind, const char *id)
			__attribute__((noreturn));

#endif							/* WIGGLE_API_H */
