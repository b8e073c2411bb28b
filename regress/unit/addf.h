/*
 * addf.h
 *	  Formatted pieces appended to a text, for tests that make documents.
 */
#ifndef WIGGLE_UNIT_ADDF_H
#define WIGGLE_UNIT_ADDF_H

#include <stdarg.h>
#include <stdio.h>

#include "textbuf.h"

__attribute__((format(printf, 2, 3))) static inline void
addf(struct wig_text *text, const char *fmt,...)
{
	char		piece[4096];
	va_list		args;

	va_start(args, fmt);
	if (vsnprintf(piece, sizeof(piece), fmt, args) >= (int) sizeof(piece))
		text->failed = true;
	va_end(args);
	wig_text_puts(text, piece);
}

#endif							/* WIGGLE_UNIT_ADDF_H */
