/*
 * setting.h
 *	  The one table of settings: the environment, the flags, --help, wiggle config
 *	  and the pages of docs/ are made from it.
 */
#ifndef WIGGLE_PROXY_SETTING_H
#define WIGGLE_PROXY_SETTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SETTING_NAME_MAX 64
#define SETTINGS_MAX	128		/* more than the table has */

enum setting_kind
{
	SETTING_TEXT,
	SETTING_INTEGER,
	SETTING_RATIO,				/* "0.9", kept in thousandths */
	SETTING_CHOICE
};

struct setting
{
	const char *name;			/* the flag; the variable is WIGGLE_ + upper case */
	enum setting_kind kind;
	size_t		offset;			/* in struct config */
	const char *text;			/* default of a text */
	int64_t		number;			/* default of the others */
	int64_t		min;
	int64_t		max;
	const char *unit;			/* of a plain number: "ms", "bytes", "/s" or "" */
	const char *const *choices;	/* NULL-terminated; the value is the index */
	bool		secret;			/* only from the environment: flags show in ps; never shown */
	bool		common;			/* most installations set it: the README has it */
	const char *guc;			/* the engine's setting that it is in each database; or NULL */
	const char *help;
};

extern const struct setting settings[];
extern const size_t nsettings;

/* "WIGGLE_LONGPOLL_MAX_MILLIS" of "longpoll-max-millis". */
extern void setting_variable(const struct setting *s, char out[SETTING_NAME_MAX]);

/* Is it the variable of one of them? */
extern bool setting_is(const char *variable, size_t len);

/* "off|log|enforce" */
extern void setting_choices(const struct setting *s, char *out, size_t cap);

/* Variables of Wiggle's own server and of its clients that are no settings here. */
enum foreign_fate
{
	FOREIGN_IGNORED,			/* without a meaning here; why says what is instead */
	FOREIGN_REFUSED,			/* no start with it: what it asks for would be missing */
	FOREIGN_CLIENTS				/* not the server's: nothing is said of it */
};

struct foreign
{
	const char *name;			/* the variable; a '*' at the end stands for any rest */
	enum foreign_fate fate;
	const char *accepts;		/* values, by '|', that are as good as none; or NULL */
	const char *why;			/* or what replaces it */
};

extern const struct foreign foreigns[];
extern const size_t nforeigns;

/* NULL: nobody's. */
extern const struct foreign *setting_foreign(const char *variable, size_t len);

/*
 * Is the variable what Kubernetes tells each pod of a Service whose name begins with wiggle (enableServiceLinks)?
 * It is none of the settings then, not even where it is called WIGGLE_PORT: no port is written tcp://…
 */
extern bool setting_is_link(const char *variable, size_t len, const char *value);

#endif							/* WIGGLE_PROXY_SETTING_H */
