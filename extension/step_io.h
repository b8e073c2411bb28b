/*
 * step_io.h
 *	  What is kept of a step's input and output, for people.
 */
#ifndef WIGGLE_STEP_IO_H
#define WIGGLE_STEP_IO_H

#include "wiggle.h"

#include "token.h"

/*
 * Set token->input to the dispatched context and token->output to the result (a
 * predicate's boolean; NULL for an untouched context). A text over 65,536
 * characters is kept as {"$truncated": length, "head": first 4,096} (Wiggle).
 */
extern void wig_step_io_record(WigToken *token, const text *input,
							   const char *output, size_t output_len);

#endif							/* WIGGLE_STEP_IO_H */
