/*
 * scope.h
 *	  Rows of wf_scope: contexts as validated JSON text.
 *
 * Scope 0 is the instance's context. The text in a row has passed
 * wig_json_check at the door it came through and is not parsed again.
 */
#ifndef WIGGLE_SCOPE_H
#define WIGGLE_SCOPE_H

#include "wiggle.h"

#include "store.h"

#define WIG_ROOT_SCOPE 0

extern void wig_scope_insert(WigStore *store, int64 instance, int32 scope,
							 const char *context, size_t len);

/* The context as a json (text) datum, detoasted into the current context. */
extern text *wig_scope_context(WigStore *store, int64 instance, int32 scope);

/* Replace the context. */
extern void wig_scope_write(WigStore *store, int64 instance, int32 scope,
							const char *context, size_t len);

#endif							/* WIGGLE_SCOPE_H */
