/*
 * random.c
 *	  Random bits that nobody can guess, for ids and nonces.
 */
#include <stdlib.h>
#include <sys/random.h>

#include "log.h"
#include "random.h"

/* One call of the kernel fills a stock for many numbers. */
static uint64_t stock[32];
static unsigned left;

uint64_t
random_u64(void)
{
	if (left == 0)
	{
		/* requests up to 256 bytes are served whole and cannot be interrupted */
		if (getrandom(stock, sizeof(stock), 0) != (ssize_t) sizeof(stock))
		{
			log_error("random", "the system gives no random numbers");
			abort();
		}
		left = sizeof(stock) / sizeof(stock[0]);
	}
	return stock[--left];
}
