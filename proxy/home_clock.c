/*
 * home_clock.c
 *	  What time it is on the home shard.
 */
#include <time.h>
#include <uv.h>

#include "home_clock.h"
#include "log.h"

#define MS UINT64_C(1000000)

/* An answer that took so much longer than the one in use says less; but that one ages. */
#define WORSE_NS		(20 * MS)
#define AGE_NS			(60 * 1000 * MS)

/* From here on an operator wants to know that a clock is wrong. */
#define SKEW_TOLD_MS	1000

static bool known;
static int64_t home_ms_then;
static uint64_t then_ns;
static uint64_t round_trip_ns;
static bool skew_told;

static int64_t
own_clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void
tell_skew(void)
{
	int64_t		ahead = own_clock_ms() - home_clock_ms();

	if (skew_told || (ahead < SKEW_TOLD_MS && ahead > -SKEW_TOLD_MS))
		return;
	skew_told = true;
	log_warn("clock", "this host's clock is %lld ms %s home's, by which generations begin", (long long) (ahead > 0 ? ahead : -ahead),
			 ahead > 0 ? "ahead of" : "behind");
}

void
home_clock_set(int64_t home_ms, uint64_t asked_ns, uint64_t told_ns)
{
	uint64_t	took = told_ns - asked_ns;

	if (known && took > round_trip_ns + WORSE_NS && told_ns - then_ns < AGE_NS)
		return;
	known = true;
	home_ms_then = home_ms;
	then_ns = asked_ns + took / 2;
	round_trip_ns = took;
	tell_skew();
}

int64_t
home_clock_ms(void)
{
	return known ? home_ms_then + (int64_t) ((uv_hrtime() - then_ns) / MS) : own_clock_ms();
}

bool
home_clock_known(void)
{
	return known;
}
