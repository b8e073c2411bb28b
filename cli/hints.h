/*
 * hints.h
 *	  What a workflow file says to no effect.
 *
 * Wiggle ignores keys that it does not know. A misspelled one is therefore a valid
 * workflow, and rarely the one that was meant.
 */
#ifndef WIGGLE_CLI_HINTS_H
#define WIGGLE_CLI_HINTS_H

#include "buf.h"
#include "error.h"

typedef void (*hint_fn) (void *arg, const struct wig_error *hint);

/*
 * Call back for each key in the authoring shorthand that means nothing where it
 * stands, in the order of the text. Whole definitions, and what the compiler
 * refuses, are passed over.
 */
extern void hints_find(const struct buf *text, hint_fn tell, void *arg);

#endif							/* WIGGLE_CLI_HINTS_H */
