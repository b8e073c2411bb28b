/*
 * home_clock.h
 *	  What time it is on the home shard.
 *
 * Generations begin by home's clock, so that proxies whose own clocks differ change at
 * the same moment, as home's schedules do. Each heartbeat brings home's time; in
 * between this process's monotonic clock counts on. Until home has been heard for the
 * first time it is this host's clock that counts.
 */
#ifndef WIGGLE_PROXY_HOME_CLOCK_H
#define WIGGLE_PROXY_HOME_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Home said that it was home_ms at some moment between these two of uv_hrtime(). */
extern void home_clock_set(int64_t home_ms, uint64_t asked_ns, uint64_t told_ns);

/* Unix milliseconds. */
extern int64_t home_clock_ms(void);

/* Has home been heard? */
extern bool home_clock_known(void);

#endif							/* WIGGLE_PROXY_HOME_CLOCK_H */
