/*
 * view.h
 *	  What a token sees of its instance's contexts, and where it writes.
 */
#ifndef WIGGLE_VIEW_H
#define WIGGLE_VIEW_H

#include "wiggle.h"

#include "token.h"

/* The view of a scope: its own context, or what it shows of its parents'. */
extern text *wig_view_read(WigStore *store, int64 instance, int32 scope);

/* Do branches of a fork without a combine write this view side by side? */
extern bool wig_view_shared(WigStore *store, int64 instance, int32 scope);

/*
 * The view that wig_view_write replaces, with an object merged into it key by key;
 * a null member deletes the key. `whole`: the object is a whole context as a worker
 * hands it on, so what it was only shown, the element of a shared item, is not taken.
 */
extern char *wig_view_merged(WigStore *store, int64 instance, int32 scope, const char *object,
							 size_t len, bool whole, size_t *merged_len);

/* Replace a view. In a shared arm or item that is the view of the scope that
 * its group shares. last_step may be NULL. */
extern void wig_view_write(WigStore *store, int64 instance, int32 scope,
						   const char *context, size_t len, const char *last_step);

/*
 * Merge a document from outside (a signal's payload, a sub-workflow's result)
 * into a view: an object merges key-wise, a null member deletes the key; any
 * other document replaces the view; NULL and JSON null leave it (Wiggle).
 */
extern void wig_view_merge(WigStore *store, int64 instance, int32 scope,
						   const char *document, size_t len);

/* What a worker is given: the view with the token's staged members laid over it;
 * for a compensator the staged {input, result} alone. */
extern text *wig_view_dispatched(WigStore *store, const WigToken *token);

/*
 * The base of a token (TaskActivation.base_context): for a step of an item, the
 * view around the innermost item; for a combine inside a scope, its scope's
 * view. False when there is none.
 */
typedef struct WigBase
{
	text	   *context;
	int32		item_index;
	char	   *map_key;		/* item of a map, else NULL */
} WigBase;

extern bool wig_view_base(WigStore *store, const WigInstance *inst, const WigToken *token,
						  WigBase *base);

#endif							/* WIGGLE_VIEW_H */
