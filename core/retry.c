/*
 * retry.c
 *	  How long to wait before the next attempt.
 */
#include <math.h>

#include "definition.h"

const struct wig_retry wig_retry_forever = {
	.max_attempts = INT32_MAX,
	.initial_ms = 1000,
	.multiplier = 1.0,
	.max_ms = 60000,
	.jitter = 0.0
};

int64_t
wig_retry_backoff(const struct wig_retry *retry, int64_t failures, double unit)
{
	const double limit = (double) WIG_MAX_DELAY_MS;
	double		delay;

	if (retry->initial_ms <= 0)
		return 0;
	if (failures < 1)
		failures = 1;
	delay = (double) retry->initial_ms * pow(retry->multiplier, (double) (failures - 1));

	/* Written so that an infinite or undefined product ends at the cap too. */
	if (!(delay < limit))
		delay = limit;
	if (retry->max_ms > 0 && delay > (double) retry->max_ms)
		delay = (double) retry->max_ms;
	delay = trunc(delay);
	if (retry->jitter > 0)
		delay = trunc(delay * (1.0 - retry->jitter + 2.0 * retry->jitter * unit));
	if (!(delay > 0))
		return 0;
	return delay < limit ? (int64_t) delay : WIG_MAX_DELAY_MS;
}
