/*
 * mark.h
 *	  Low-water marks: where the claim of a queue begins to look.
 *
 * Without them a claim walks over the dead entries at the head of wf_ready's
 * index, which a held snapshot keeps from being cleaned. The mark says where
 * the live keys begin; keys minted below it (the next step of an old instance)
 * stand in a small ring and are looked up exactly. shmem.h has the invariant.
 */
#ifndef WIGGLE_MARK_H
#define WIGGLE_MARK_H

#include "wiggle.h"

#include "shmem.h"

/*
 * Rows that arrive without us (a data-only restore) are unknown to the marks:
 * after this long a claim looks from the lowest key once more.
 */
#define WIG_FULL_WALK_USECS		(INT64CONST(300) * USECS_PER_SEC)

/* What a claim knows of its queue when it begins. */
typedef struct WigMarkView
{
	bool		remembered;		/* false: no entry, the mark may not be raised */
	bool		full;			/* this claim starts from the lowest key */
	WigKey		mark;
	uint64		ninserts;
	int			nring;
	WigKey		ring[WIG_RING]; /* ascending */
} WigMarkView;

extern void wig_mark_read(const char *queue, TimestampTz now, WigMarkView *view);

/*
 * After a claim that found rows or not: `gone` are ring keys that are live no more, and every key
 * below `reached` that is not in the ring is known to be dead. The mark rises
 * to `reached`, or less where rows were inserted meanwhile.
 */
extern void wig_mark_raise(const char *queue, const WigMarkView *view, bool found, WigKey reached,
						   const WigKey *gone, int ngone);

/* A row was inserted (not yet committed), or a deletion was rolled back. */
extern void wig_mark_note(const char *queue, WigKey key);

/*
 * The queues that became ready since the last call, as a JSON array for the
 * notification ("*" when that is longer than a payload may be); false when
 * there is none. palloc'd. While proxies divide the tasks, an element is [name, bucket…]
 * where only these became ready, and [name] where tasks are left over; what is
 * announced then is watched from `now` on.
 */
extern bool wig_mark_take_ready(TimestampTz now, char **payload);

/* A batch came that divides the tasks: for a while from now on proxies are taken to do so. */
extern void wig_mark_divided(TimestampTz now);
extern bool wig_mark_is_divided(TimestampTz now);

/*
 * Tasks left over. A queue whose tasks were announced to some members only, or where a claim
 * saw others' tasks and could have taken more, is looked at after a pause, and again after
 * another: a task that is the oldest both times is announced to everybody.
 */
#define WIG_LEFTOVER_PAUSE_USECS	(50 * 1000)

extern void wig_mark_watch(const char *queue, TimestampTz at);

/* A queue to be looked at by now: its name (palloc'd) or NULL, and when the next one is. */
extern char *wig_mark_next_watched(TimestampTz now, TimestampTz *next);

/* What the look found: the oldest task, or NULL. Looked at again at `again`, if need be. True
 * when it is left over; the clock worker is to announce it. */
extern bool wig_mark_looked(const char *queue, const WigKey *oldest, TimestampTz again);

/* Rows came or went without us: look from the lowest key everywhere, and announce
 * every queue. True when the clock worker was not yet told of any. */
extern bool wig_mark_forget(void);

/* Announce a queue, or those buckets of it when they are given; true when the clock worker
 * was not yet told of any. */
extern bool wig_mark_set_ready(const char *queue, const uint8 *buckets);

#endif							/* WIGGLE_MARK_H */
