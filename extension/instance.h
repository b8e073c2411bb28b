/*
 * instance.h
 *	  Rows of wf_instance, and the lock that makes one writer per instance.
 *
 * Locking protocol: every change of an instance or of its scopes, tokens,
 * leases and timers happens under the row lock (FOR NO KEY UPDATE) that
 * wig_instance_lock takes and the transaction keeps. Whoever needs several
 * instances locks them in the order of their ids. Two things are done without
 * it: starting (nobody knows the instance yet) and claiming (ready.c).
 */
#ifndef WIGGLE_INSTANCE_H
#define WIGGLE_INSTANCE_H

#include "wiggle.h"

#include "graph.h"
#include "store.h"
#include "transition.h"

typedef struct WigInstance
{
	int64		no;				/* key of all its rows; rises with age */
	char	   *id;
	char	   *workflow;
	int32		version;
	WigInstanceStatus status;
	TimestampTz created_at;
	char	   *correlation_id; /* NULL allowed */
	char	   *parent_token_id;	/* of the SUB_WORKFLOW token that waits, or NULL */
	char	   *error;			/* NULL allowed */
	int32		depth;			/* 0 for an instance that nobody's step started */
	const WigGraph *graph;
	int32		last_n;			/* highest token number, kept by token.c */
} WigInstance;

/*
 * Lock the instance with this id and read it; false when there is none, or,
 * with skip_locked, when another transaction holds it (*busy is then set).
 * Strings are palloc'd in the current context.
 */
extern bool wig_instance_lock(WigStore *store, const char *id, bool skip_locked,
							  WigInstance *inst, bool *busy);

/* The same by number. */
extern bool wig_instance_lock_no(WigStore *store, int64 no, bool skip_locked,
								 WigInstance *inst, bool *busy);

/* Read without a lock (claims, look-ups). The first is false, with a WARNING,
 * also when the instance's definition is missing. */
extern bool wig_instance_read(WigStore *store, int64 no, WigInstance *inst);
extern bool wig_instance_exists(WigStore *store, const char *id, WigInstance *inst);

/*
 * There is no such instance, as of now: it was purged. The look-ups above may in
 * theory miss a row that keeps moving; this asks one snapshot. Where there is none at
 * all nothing is known: a restore may have brought other tables first.
 */
extern bool wig_instance_gone(WigStore *store, int64 no);

/* The child that a token started, read without a lock; false when there is none. */
extern bool wig_instance_of_parent(WigStore *store, const char *token_id, WigInstance *inst);

/*
 * Insert a RUNNING instance; false when there is one with its id already. The
 * caller has set no, id, workflow, version, created_at, correlation_id,
 * parent_token_id and depth.
 */
extern bool wig_instance_insert(WigStore *store, const WigInstance *inst);

/*
 * The one function that changes an instance's status; reason and error may be
 * NULL. The instance must be locked and in the store's slot (just locked).
 */
extern void wig_instance_set_status(WigStore *store, WigInstance *inst,
									WigInstanceStatus status, const char *reason,
									const char *error, TimestampTz now);

/* The highest number in the table, 0 when it is empty. */
extern int64 wig_instance_last_no(WigStore *store);

#endif							/* WIGGLE_INSTANCE_H */
