/*
 * activation.h
 *	  Claimed tasks to the bytes of a TaskList.
 */
#ifndef WIGGLE_PROXY_ACTIVATION_H
#define WIGGLE_PROXY_ACTIVATION_H

#include <stddef.h>

#include "buf.h"
#include "error.h"
#include "statement.h"
#include "value.h"

/* What every client can receive without settings of its own. */
#define TASK_LIST_MAX_BYTES ((size_t) 4 * 1024 * 1024)

enum activation_fate
{
	ACTIVATION_PACKED,
	ACTIVATION_LATER,			/* no room in this list any more */
	ACTIVATION_NEVER			/* no list can ever carry it; see why */
};

/*
 * Append the rows as the field "tasks" of a TaskList while the list stays within
 * TASK_LIST_MAX_BYTES; out may hold `before` bytes that are not part of it. fates
 * has room for n. why says what is wrong with the first one that can never be
 * sent. Contexts take the given form. Returns how many were packed.
 */
extern int activation_pack(const struct batch_row *rows, int n, size_t before, enum value_form form,
						   struct buf *out, enum activation_fate *fates, struct wig_error *why);

/* A list without tasks that asks for a pause (0 = none). */
extern void activation_empty(struct buf *out, int64_t retry_after_ms);

#endif							/* WIGGLE_PROXY_ACTIVATION_H */
