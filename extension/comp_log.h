/*
 * comp_log.h
 *	  Rows of wf_comp_log: completed compensable steps, to be undone newest first.
 */
#ifndef WIGGLE_COMP_LOG_H
#define WIGGLE_COMP_LOG_H

#include "wiggle.h"

#include "instance.h"

typedef struct WigCompEntry
{
	int32		seq;			/* 1, 2, … within the instance */
	int			node;
	char	   *input;			/* JSON texts: context before, context after */
	char	   *result;
} WigCompEntry;

extern void wig_comp_log_append(WigStore *store, const WigInstance *inst, int node,
								const text *input, const text *result);

/* The entry with this number, or the newest (seq 0); false when there is none. */
extern bool wig_comp_log_read(WigStore *store, const WigInstance *inst, int32 seq,
							  WigCompEntry *entry);

extern void wig_comp_log_set_compensated(WigStore *store, const WigInstance *inst, int32 seq);

#endif							/* WIGGLE_COMP_LOG_H */
