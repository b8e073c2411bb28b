/*
 * options.c
 *	  Command line options by table.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "definition.h"
#include "options.h"

static const struct option *
find_long(const struct option *table, const char *name, size_t len)
{
	for (; table->name != NULL; table++)
	{
		if (strlen(table->name) == len && memcmp(table->name, name, len) == 0)
			return table;
	}
	return NULL;
}

static const struct option *
find_short(const struct option *table, char letter)
{
	for (; table->name != NULL; table++)
	{
		if (table->letter != 0 && table->letter == letter)
			return table;
	}
	return NULL;
}

/* The option that a word names, and a value that is attached to it. */
static const struct option *
recognise(const struct option *own, const struct option *global, const char *word,
		  const char **attached)
{
	const struct option *option;
	const char *equals;
	size_t		len;

	*attached = NULL;
	if (word[1] != '-')
	{
		option = find_short(own, word[1]);
		if (option == NULL)
			option = find_short(global, word[1]);
		if (word[2] != '\0')
			*attached = word[2] == '=' ? word + 3 : word + 2;
		return option;
	}
	equals = strchr(word, '=');
	len = equals == NULL ? strlen(word + 2) : (size_t) (equals - word - 2);
	if (equals != NULL)
		*attached = equals + 1;
	option = find_long(own, word + 2, len);
	return option != NULL ? option : find_long(global, word + 2, len);
}

/* Take the option at argv[*at]; moves *at over a value of its own. */
static bool
take_option(const struct option *own, const struct option *global, int argc,
			char *const *argv, int *at, struct arguments *args, struct wig_error *err)
{
	const char *word = argv[*at];
	struct given *given = &args->given[args->ngiven];

	given->option = recognise(own, global, word, &given->value);
	if (given->option == NULL)
		return wig_fail(err, "unknown option %s", word);
	if (given->option->value == NULL && given->value != NULL)
		return wig_fail(err, "--%s takes no value", given->option->name);
	if (given->option->value != NULL && given->value == NULL)
	{
		if (*at + 1 >= argc)
			return wig_fail(err, "--%s needs a value: %s", given->option->name,
							given->option->value);
		given->value = argv[++*at];
	}
	args->ngiven++;
	return true;
}

bool
options_parse(const struct option *own, const struct option *global,
			  int argc, char *const *argv, struct arguments *args, struct wig_error *err)
{
	bool		words_only = false;

	memset(args, 0, sizeof(*args));
	for (int i = 0; i < argc; i++)
	{
		if (args->ngiven >= OPTIONS_MAX_GIVEN || args->nwords >= OPTIONS_MAX_GIVEN)
			return wig_fail(err, "too many arguments");
		if (!words_only && strcmp(argv[i], "--") == 0)
			words_only = true;
		else if (words_only || argv[i][0] != '-' || argv[i][1] == '\0')
			args->words[args->nwords++] = argv[i];
		else if (!take_option(own, global, argc, argv, &i, args, err))
			return false;
	}
	return true;
}

bool
options_has(const struct arguments *args, const char *name)
{
	for (int i = 0; i < args->ngiven; i++)
	{
		if (strcmp(args->given[i].option->name, name) == 0)
			return true;
	}
	return false;
}

const char *
options_value(const struct arguments *args, const char *name)
{
	for (int i = args->ngiven - 1; i >= 0; i--)
	{
		if (strcmp(args->given[i].option->name, name) == 0)
			return args->given[i].value;
	}
	return NULL;
}

bool
options_number(const struct arguments *args, const char *name, int64_t min, int64_t max,
			   int64_t *result, struct wig_error *err)
{
	const char *text = options_value(args, name);
	char	   *end;
	long long	value;

	if (text == NULL)
		return true;
	errno = 0;
	value = strtoll(text, &end, 10);
	if (end == text || *end != '\0' || errno != 0 || value < min || value > max)
		return wig_fail(err, "--%s must be a whole number between %" PRId64 " and %" PRId64
						", got '%s'", name, min, max, text);
	*result = value;
	return true;
}

bool
parse_duration(const char *text, int64_t *ms)
{
	static const struct
	{
		const char *unit;
		int64_t		factor;
	}			units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
	size_t		digits = strspn(text, "0123456789");
	const char *unit = text + digits + strspn(text + digits, " ");
	long long	n;

	errno = 0;
	n = strtoll(text, NULL, 10);
	for (size_t i = 0; digits > 0 && i < sizeof(units) / sizeof(units[0]); i++)
	{
		if (strcmp(unit, units[i].unit) != 0)
			continue;
		if (errno != 0 || n > WIG_MAX_DELAY_MS / units[i].factor)
			return false;
		*ms = n * units[i].factor;
		return true;
	}
	return false;
}

bool
options_duration(const struct arguments *args, const char *name, int64_t *ms,
				 struct wig_error *err)
{
	const char *text = options_value(args, name);

	return text == NULL || parse_duration(text, ms) ||
		wig_fail(err, "--%s must be a number with unit ms, s, m or h, got '%s'", name, text);
}

/* "YYYY-MM-DD" or "YYYY-MM-DDThh:mm:ssZ", nothing else. */
static bool
parse_date(const char *text, int64_t *ms)
{
	struct tm	tm = {0};
	char		shown[32];
	time_t		seconds;
	int			used = 0;

	if (sscanf(text, "%4d-%2d-%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &used) != 3)
		return false;
	if (text[used] != '\0' && sscanf(text + used, "T%2d:%2d:%2dZ", &tm.tm_hour, &tm.tm_min, &tm.tm_sec) != 3)
		return false;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	seconds = timegm(&tm);

	/* The calendar accepts 31 February, and scanf signs and blanks: show it again. */
	if (gmtime_r(&seconds, &tm) == NULL ||
		strftime(shown, sizeof(shown), text[used] == '\0' ? "%Y-%m-%d" : "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		return false;
	*ms = (int64_t) seconds * 1000;
	return strcmp(shown, text) == 0;
}

bool
options_moment(const struct arguments *args, const char *name, int64_t now_ms, int64_t *ms,
			   struct wig_error *err)
{
	const char *text = options_value(args, name);
	int64_t		before;

	if (text == NULL || parse_date(text, ms))
		return true;
	if (!parse_duration(text, &before))
		return wig_fail(err, "--%s must be a duration such as 1h, or a time in UTC such as 2026-10-01 or "
						"2026-10-01T12:30:00Z, got '%s'", name, text);
	*ms = now_ms - before;
	return true;
}
