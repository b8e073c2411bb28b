/*
 * cron.c
 *	  Reading cron expressions; calendar arithmetic in UTC.
 */
#include <limits.h>
#include <string.h>

#include "cron.h"

#define SPACES			" \t\n\v\f\r"

#define SECONDS_PER_DAY	INT64_C(86400)
#define SEARCH_DAYS		(9 * 366)

/* Far beyond any database's calendar, and far from overflow. */
#define LATEST_SECONDS	INT64_C(1000000000000000)

/* A piece of the expression. */
struct span
{
	const char *text;
	int			len;
};

#define SPAN(s)		(s).len, (s).text

static const struct
{
	int			min;
	int			max;
}			limits[5] =
{
	{0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 7}
};

/* What precedes the first c, which is taken off *rest; false when there is no c. */
static bool
split(struct span *rest, char c, struct span *head)
{
	const char *at = memchr(rest->text, c, (size_t) rest->len);

	if (at == NULL)
		return false;
	head->text = rest->text;
	head->len = (int) (at - rest->text);
	rest->len -= head->len + 1;
	rest->text = at + 1;
	return true;
}

static bool
read_number(struct span field, struct span text, int64_t *value, struct wig_error *err)
{
	int			i = 0;
	bool		negative = false;

	if (text.len > 0 && (text.text[0] == '-' || text.text[0] == '+'))
		negative = text.text[i++] == '-';
	if (i == text.len)
		return wig_fail(err, "cron field '%.*s': '%.*s' is not a number", SPAN(field), SPAN(text));
	*value = 0;
	for (; i < text.len; i++)
	{
		if (text.text[i] < '0' || text.text[i] > '9' || *value > INT_MAX)
			return wig_fail(err, "cron field '%.*s': '%.*s' is not a number",
							SPAN(field), SPAN(text));
		*value = *value * 10 + (text.text[i] - '0');
	}
	if (negative)
		*value = -*value;
	return true;
}

/* One part of a list: which values from..to in steps it selects. */
static bool
read_part(struct span field, struct span part, int min, int max, uint64_t *set,
		  struct wig_error *err)
{
	struct span range;
	struct span first;
	int64_t		from = min;
	int64_t		to = max;
	int64_t		step = 1;
	bool		stepped = split(&part, '/', &range);

	if (!stepped)
		range = part;
	else if (!read_number(field, part, &step, err))
		return false;
	if (step < 1)
		return wig_fail(err, "cron field '%.*s': step must be >= 1", SPAN(field));

	if (range.len != 1 || range.text[0] != '*')
	{
		/* A sign in front is a number's, not a range's. */
		if (range.len > 1 && memchr(range.text + 1, '-', (size_t) range.len - 1) != NULL &&
			range.text[0] != '-' && split(&range, '-', &first))
		{
			if (!read_number(field, first, &from, err) || !read_number(field, range, &to, err))
				return false;
		}
		else
		{
			if (!read_number(field, range, &from, err))
				return false;
			if (!stepped)
				to = from;
		}
	}
	if (from < min || to > max || from > to)
		return wig_fail(err, "cron field '%.*s': out of range %d-%d", SPAN(field), min, max);
	for (int64_t value = from; value <= to; value += step)
		*set |= UINT64_C(1) << value;
	return true;
}

static bool
read_field(struct span field, int min, int max, uint64_t *set, struct wig_error *err)
{
	struct span rest = field;
	struct span part;

	/* Commas at the end mean nothing, unless there is nothing else. */
	while (rest.len > 1 && rest.text[rest.len - 1] == ',')
		rest.len--;
	*set = 0;
	while (split(&rest, ',', &part))
	{
		if (!read_part(field, part, min, max, set, err))
			return false;
	}
	return read_part(field, rest, min, max, set, err);
}

static bool
is_star(struct span field)
{
	return field.len == 1 && field.text[0] == '*';
}

/* The expression's fields; how many there are, 6 standing for all above 5. */
static int
cut_fields(const char *expr, struct span fields[5])
{
	const char *at = expr + strspn(expr, SPACES);
	int			n = 0;

	while (*at != '\0')
	{
		if (n == 5)
			return 6;
		fields[n].text = at;
		fields[n].len = (int) strcspn(at, SPACES);
		at += fields[n].len;
		at += strspn(at, SPACES);
		n++;
	}
	return n;
}

bool
wig_cron_parse(const char *expr, struct wig_cron *out, struct wig_error *err)
{
	struct span fields[5];
	uint64_t	sets[5];
	size_t		len;
	int			n;

	if (expr == NULL || expr[strspn(expr, SPACES)] == '\0')
		return wig_fail(err, "cron expression is required");
	len = strlen(expr);
	if (len > WIG_CRON_MAX)
		return wig_fail(err, "cron expression is %zu bytes long, at most %d are allowed",
						len, WIG_CRON_MAX);
	n = cut_fields(expr, fields);
	if (n != 5)
		return wig_fail(err, "cron '%s' must have 5 fields "
						"(minute hour day-of-month month day-of-week)", expr);
	for (int i = 0; i < 5; i++)
	{
		if (!read_field(fields[i], limits[i].min, limits[i].max, &sets[i], err))
			return false;
	}
	memset(out, 0, sizeof(*out));
	out->minutes = sets[0];
	out->hours = (uint32_t) sets[1];
	out->days = (uint32_t) sets[2];
	out->months = (uint32_t) sets[3];
	out->weekdays = (uint32_t) ((sets[4] | sets[4] >> 7) & 0x7F);
	out->any_day = is_star(fields[2]);
	out->any_weekday = is_star(fields[4]);
	memcpy(out->text, expr, len + 1);
	return true;
}

/* Rounded towards the past, as times before 1970 need it. */
static int64_t
floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

struct date
{
	int64_t		year;
	int			month;			/* 1 to 12 */
	int			day;
};

/*
 * The Gregorian date of a day counted from 1970-01-01. Years are taken to begin
 * in March, so that the leap day is a year's last and months have fixed offsets.
 */
static struct date
date_of(int64_t days)
{
	int64_t		shifted = days + 719468;	/* from 0000-03-01 */
	int64_t		era = floor_div(shifted, 146097);	/* 400 years */
	int			of_era = (int) (shifted - era * 146097);
	int			year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int			of_year = of_era - (365 * year + year / 4 - year / 100);
	int			month = (5 * of_year + 2) / 153;
	struct date date;

	date.day = of_year - (153 * month + 2) / 5 + 1;
	date.month = month < 10 ? month + 3 : month - 9;
	date.year = era * 400 + year + (date.month <= 2);
	return date;
}

static int
days_of_month(const struct date *date)
{
	static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool		leap = (date->year % 4 == 0 && date->year % 100 != 0) || date->year % 400 == 0;

	return lengths[date->month - 1] + (leap && date->month == 2);
}

static bool
day_suits(const struct wig_cron *cron, int64_t days, const struct date *date)
{
	int			weekday = (int) (((days + 4) % 7 + 7) % 7);	/* 1970-01-01: Thursday */
	bool		day = (cron->days >> date->day & 1) != 0;
	bool		of_week = (cron->weekdays >> weekday & 1) != 0;

	if (!cron->any_day && !cron->any_weekday)
		return day || of_week;
	return day && of_week;
}

/* The lowest value of a set that is at least from, -1 when there is none. */
static int
at_least(uint64_t set, int from)
{
	for (int value = from; value < 64; value++)
	{
		if (set >> value & 1)
			return value;
	}
	return -1;
}

/* The first time of day from a minute of the day on, -1 when none is left. */
static int
time_from(const struct wig_cron *cron, int minute_of_day)
{
	int			hour = at_least(cron->hours, minute_of_day / 60);
	int			minute;

	if (hour == minute_of_day / 60)
	{
		minute = at_least(cron->minutes, minute_of_day % 60);
		if (minute >= 0)
			return hour * 60 + minute;
		hour = at_least(cron->hours, hour + 1);
	}
	if (hour < 0)
		return -1;
	return hour * 60 + at_least(cron->minutes, 0);
}

bool
wig_cron_next(const struct wig_cron *cron, int64_t after, int64_t *next, struct wig_error *err)
{
	int64_t		minute;
	int64_t		days;
	int64_t		last;
	int			of_day;

	if (after < -LATEST_SECONDS || after > LATEST_SECONDS)
		return wig_fail(err, "cron '%s' never fires", cron->text);
	minute = floor_div(after, 60) + 1;
	days = floor_div(minute, 24 * 60);
	of_day = (int) (minute - days * 24 * 60);
	last = days + SEARCH_DAYS;
	while (days <= last)
	{
		struct date date = date_of(days);
		int			time = -1;

		if ((cron->months >> date.month & 1) == 0)
			days += days_of_month(&date) - date.day;
		else if (day_suits(cron, days, &date))
			time = time_from(cron, of_day);
		if (time >= 0)
		{
			*next = days * SECONDS_PER_DAY + time * INT64_C(60);
			return true;
		}
		days++;
		of_day = 0;
	}
	return wig_fail(err, "cron '%s' never fires", cron->text);
}
