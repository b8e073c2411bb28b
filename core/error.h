/*
 * error.h
 *	  What a function of core/ says when it refuses its input.
 *
 * core/ is plain C shared by the extension, the proxy and the command line. It
 * does no I/O, never exits and never prints: a refusal is a return value and
 * a filled struct wig_error, which the caller turns into an ereport, a gRPC
 * status or a line for a person.
 */
#ifndef WIGGLE_CORE_ERROR_H
#define WIGGLE_CORE_ERROR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct wig_error
{
	int			line;			/* 1-based position in the text, 0 = unknown */
	int			column;
	char		message[512];	/* one sentence, no trailing period or newline */
	char		place[96];		/* where, for input without lines: "step 2 ('greet')"; or empty */
};

/*
 * Fill *err with a formatted message and no position; always returns false so
 * that callers can write "return wig_fail(err, ...)". A NULL err is ignored.
 */
extern bool wig_fail(struct wig_error *err, const char *fmt,...)
			__attribute__((format(printf, 2, 3)));

/* The same with a position in the text. */
extern bool wig_fail_at(struct wig_error *err, int line, int column, const char *fmt,...)
			__attribute__((format(printf, 4, 5)));

#endif							/* WIGGLE_CORE_ERROR_H */
