/*
 * error.c
 *	  Filling in a refusal.
 */
#include <stdio.h>

#include "error.h"

bool
wig_fail(struct wig_error *err, const char *fmt,...)
{
	va_list		args;

	if (err == NULL)
		return false;
	err->line = 0;
	err->column = 0;
	va_start(args, fmt);
	vsnprintf(err->message, sizeof(err->message), fmt, args);
	va_end(args);
	return false;
}
