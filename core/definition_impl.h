/*
 * definition_impl.h
 *	  What the files that make a struct wig_definition share among themselves.
 */
#ifndef WIGGLE_CORE_DEFINITION_IMPL_H
#define WIGGLE_CORE_DEFINITION_IMPL_H

#include <stdbool.h>
#include <stddef.h>

#include "definition.h"

/* Longest texts, in characters: what storage and protocol are laid out for. */
#define WIG_MAX_NAME		200	/* workflow, step, queue, reason */
#define WIG_MAX_NODE_ID		64
#define WIG_MAX_ACTIVITY	300

/* How the collect key of a combine starts whose branches a step creates. */
#define WIG_SPAWN_PREFIX	"__spawn__"

/*
 * Read JSON text into an empty *def whose arena exists: every field filled, legacy
 * combines rewritten, edges resolved, nodes sorted, single values checked. What
 * concerns several nodes is left to wig_definition_check.
 */
extern bool wig_definition_decode(struct wig_definition *def, const char *json,
								  size_t len, struct wig_error *err);

/* Obligations of each kind, unique names, reachability, forks and joins. */
extern bool wig_definition_check(const struct wig_definition *def, struct wig_error *err);

/*
 * Compare two strings as Java does, by UTF-16 code units: nodes are sorted that
 * way, and so fingerprints agree.
 */
extern int	wig_compare_utf16(const char *a, size_t a_len, const char *b, size_t b_len);

#endif							/* WIGGLE_CORE_DEFINITION_IMPL_H */
