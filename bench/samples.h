/*
 * samples.h
 *	  Durations of one kind of event, and their percentiles.
 */
#ifndef WIGGLE_BENCH_SAMPLES_H
#define WIGGLE_BENCH_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

struct samples
{
	int64_t    *us;
	size_t		n;
	size_t		cap;
};

extern void samples_add(struct samples *s, int64_t us);

/* Nearest-rank percentile in milliseconds, 0 without samples. Sorts in place. */
extern double samples_ms(struct samples *s, double percent);

#endif							/* WIGGLE_BENCH_SAMPLES_H */
