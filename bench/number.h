/*
 * number.h
 *	  Numbers on the load programs' command lines.
 */
#ifndef WIGGLE_BENCH_NUMBER_H
#define WIGGLE_BENCH_NUMBER_H

#include <err.h>
#include <stdlib.h>

/* The number from 1 to max in text; anything else ends the program. */
static inline int
number(const char *name, const char *text, int max)
{
	char	   *end;
	long		n = strtol(text, &end, 10);

	if (*text == '\0' || *end != '\0' || n < 1 || n > max)
		errx(2, "--%s is 1 to %d, not '%s'", name, max, text);
	return (int) n;
}

#endif							/* WIGGLE_BENCH_NUMBER_H */
