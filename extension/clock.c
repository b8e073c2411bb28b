/*
 * clock.c
 *	  Real time in production, a hand-moved clock in tests.
 *
 * The stopped clock lives in shared memory so that the clock worker sees the
 * same instant as the session that moved it.
 */
#include "wiggle.h"

#include "portability/instr_time.h"
#include "utils/timestamp.h"

#include "clock.h"
#include "shmem.h"

#define EPOCH_DIFF_USECS \
	((int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY)

TimestampTz
wig_now(void)
{
	int64		stopped = (int64) pg_atomic_read_u64(&wig_database()->stopped_clock);

	return stopped != 0 ? stopped : GetCurrentTimestamp();
}

TimestampTz
wig_monotonic(void)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	return (TimestampTz) INSTR_TIME_GET_MICROSEC(now);
}

TimestampTz
wig_clock_set_back(void)
{
	static TimestampTz last = DT_NOBEGIN;
	static TimestampTz last_monotonic = 0;
	TimestampTz before = last;
	TimestampTz passed = wig_monotonic() - last_monotonic;

	last = GetCurrentTimestamp();
	last_monotonic += passed;
	return last < before ? before + passed - last : 0;
}

long
wig_millis_until(TimestampTz deadline)
{
	int64		usecs;

	if (deadline == WIG_NEVER ||
		pg_atomic_read_u64(&wig_database()->stopped_clock) != 0)
		return -1;
	usecs = deadline - GetCurrentTimestamp();
	if (usecs <= 0)
		return 0;
	/* A latch waits an int of milliseconds; longer waits are taken in turns. */
	return (long) Min((usecs + 999) / 1000, INT_MAX / 2);
}

void
wig_clock_set(TimestampTz at)
{
	pg_atomic_write_u64(&wig_database()->stopped_clock, (uint64) at);
}

int64
wig_to_micros(TimestampTz at)
{
	return at + EPOCH_DIFF_USECS;
}

int64
wig_to_millis(TimestampTz at)
{
	return wig_to_micros(at) / 1000;
}

TimestampTz
wig_from_millis(int64 millis)
{
	return millis * 1000 - EPOCH_DIFF_USECS;
}
