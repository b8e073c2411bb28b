/*
 * options.h
 *	  Command line options by table.
 *
 * "--name value", "--name=value", "-n value"; options and words in any order, "--"
 * ends the options.
 */
#ifndef WIGGLE_CLI_OPTIONS_H
#define WIGGLE_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"

#define OPTIONS_MAX_GIVEN 256

struct option
{
	const char *name;			/* without dashes; NULL ends a table */
	char		letter;			/* short form, 0 = none */
	const char *value;			/* what its argument is called; NULL: a switch */
	const char *help;
};

struct given
{
	const struct option *option;
	const char *value;			/* NULL for a switch; points into argv */
};

struct arguments
{
	struct given given[OPTIONS_MAX_GIVEN];
	int			ngiven;
	const char *words[OPTIONS_MAX_GIVEN];	/* what is no option */
	int			nwords;
};

/*
 * Sort argv[0..argc-1] into options of either table and words. False with *err
 * when an option is unknown, lacks its value or has one it does not take.
 */
extern bool options_parse(const struct option *own, const struct option *global,
						  int argc, char *const *argv, struct arguments *args,
						  struct wig_error *err);

extern bool options_has(const struct arguments *args, const char *name);

/* The last value given, or NULL. */
extern const char *options_value(const struct arguments *args, const char *name);

/*
 * The last value given as a whole number between min and max, *result untouched
 * when the option was not given.
 */
extern bool options_number(const struct arguments *args, const char *name, int64_t min,
						   int64_t max, int64_t *result, struct wig_error *err);

/* The same for "<number><ms|s|m|h>", in milliseconds. */
extern bool options_duration(const struct arguments *args, const char *name, int64_t *ms,
							 struct wig_error *err);

/*
 * The last value given as a moment in ms since 1970: a duration before now_ms, or
 * "2026-10-01" or "2026-10-01T12:30:00Z" in UTC.
 */
extern bool options_moment(const struct arguments *args, const char *name, int64_t now_ms,
						   int64_t *ms, struct wig_error *err);

/* "<number><ms|s|m|h>"; false when the text is none or above a hundred years. */
extern bool parse_duration(const char *text, int64_t *ms);

#endif							/* WIGGLE_CLI_OPTIONS_H */
