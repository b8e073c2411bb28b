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

/*
 * One arm of a fork, or one item of a forEach, works in a scope of its own. The
 * scopes of one group have consecutive numbers, in the order of arms or
 * elements. What is above a scope is reached through its parent, never copied:
 * a scope without a context of its own shows its parent's.
 */
typedef enum WigScopeKind
{
	WIG_SCOPE_ROOT = 'r',
	WIG_SCOPE_ARM = 'a',		/* isolated: begins with the parent's view */
	WIG_SCOPE_ITEM = 'i',		/* isolated: begins with the element */
	WIG_SCOPE_SHARED_ARM = 's', /* no combine follows: writes go to the parent */
	WIG_SCOPE_SHARED_ITEM = 'o' /* likewise; its context is laid over the parent's */
} WigScopeKind;

typedef struct WigScope
{
	int32		scope;
	int32		parent;			/* -1 for the root */
	WigScopeKind kind;
	int32		idx;			/* place among its siblings */
	int32		group;			/* the fork's token */
	int32		arrived;		/* token that arrived at the join, 0 = none yet */
	char	   *map_key;		/* item of a map, raw JSON string; else NULL */
	char	   *last_step;		/* name of the last worker step, or NULL */
} WigScope;

extern void wig_scope_insert(WigStore *store, int64 instance, int32 scope,
							 const char *context, size_t len);
/* context may be NULL. */
extern void wig_scope_insert_child(WigStore *store, int64 instance, const WigScope *scope,
								   const char *context, size_t len);

/* The number that the next group of scopes starts with. */
extern int32 wig_scope_next(WigStore *store, int64 instance);

/* Everything but the context; the scope must exist. */
extern void wig_scope_read(WigStore *store, int64 instance, int32 scope, WigScope *out);

/* The scope's token has arrived at the join. */
extern void wig_scope_set_arrived(WigStore *store, int64 instance, int32 scope, int32 token);

extern void wig_scope_delete(WigStore *store, int64 instance, int32 scope);

/* The scope's own context, detoasted into the current memory context; NULL when
 * it has none. */
extern text *wig_scope_context(WigStore *store, int64 instance, int32 scope);

/* Replace the context (NULL: leave it) and, when given, the last step's name. */
extern void wig_scope_write(WigStore *store, int64 instance, int32 scope,
							const char *context, size_t len, const char *last_step);

#endif							/* WIGGLE_SCOPE_H */
