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
 * there is none. palloc'd.
 */
extern bool wig_mark_take_ready(char **payload);

/* Rows came or went without us: look from the lowest key everywhere, and announce
 * every queue. True when the clock worker was not yet told of any. */
extern bool wig_mark_forget(void);

/* Announce a queue; true when the clock worker was not yet told of any. */
extern bool wig_mark_set_ready(const char *queue);

#endif							/* WIGGLE_MARK_H */
