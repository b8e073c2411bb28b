/*
 * cron.h
 *	  Five-field cron expressions and when they fire next, in UTC.
 *
 * The fields are minute 0-59, hour 0-23, day of the month 1-31, month 1-12 and
 * day of the week 0-7, where 0 and 7 are both Sunday. Each is a list, separated
 * by commas, of "*", N or A-B, any of them with "/step" behind it; N/step runs to
 * the field's largest value. No names, no "?", no "L". When neither of the two
 * day fields is exactly "*", a day that suits either of them fires.
 */
#ifndef WIGGLE_CORE_CRON_H
#define WIGGLE_CORE_CRON_H

#include <stdbool.h>
#include <stdint.h>

#include "error.h"

#define WIG_CRON_MAX	120		/* longest expression, in characters */

/* Sets of values as bits. A plain value: copy it, keep it, nothing to free. */
struct wig_cron
{
	uint64_t	minutes;
	uint32_t	hours;
	uint32_t	days;			/* bits 1 to 31 */
	uint32_t	months;			/* bits 1 to 12 */
	uint32_t	weekdays;		/* bits 0 (Sunday) to 6 */
	bool		any_day;		/* the field is exactly "*" */
	bool		any_weekday;
	char		text[WIG_CRON_MAX + 1];	/* as given, for messages */
};

/* False with *err (naming the field and the value) when expr is refused. */
extern bool wig_cron_parse(const char *expr, struct wig_cron *out, struct wig_error *err);

/*
 * The first whole minute strictly after a moment at which the expression fires;
 * both are seconds since 1970-01-01 00:00 UTC, before it negative. False with
 * "cron 'X' never fires" when there is none within nine years, which is enough
 * for 29 February from 2096 to 2104.
 */
extern bool wig_cron_next(const struct wig_cron *cron, int64_t after, int64_t *next,
						  struct wig_error *err);

#endif							/* WIGGLE_CORE_CRON_H */
