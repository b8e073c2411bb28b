/*
 * samples.c
 *	  Durations of one kind of event, and their percentiles.
 */
#include <err.h>
#include <math.h>
#include <stdlib.h>

#include "samples.h"

void
samples_add(struct samples *s, int64_t us)
{
	if (s->n == s->cap)
	{
		s->cap = s->cap > 0 ? s->cap * 2 : 4096;
		s->us = realloc(s->us, s->cap * sizeof(*s->us));
		if (s->us == NULL)
			err(1, "realloc");
	}
	s->us[s->n++] = us;
}

static int
compare(const void *a, const void *b)
{
	int64_t		x = *(const int64_t *) a;
	int64_t		y = *(const int64_t *) b;

	return (x > y) - (x < y);
}

double
samples_ms(struct samples *s, double percent)
{
	size_t		rank;

	if (s->n == 0)
		return 0;
	qsort(s->us, s->n, sizeof(*s->us), compare);
	rank = (size_t) ceil(percent / 100.0 * (double) s->n);
	return (double) s->us[rank > 0 ? rank - 1 : 0] / 1000.0;
}
