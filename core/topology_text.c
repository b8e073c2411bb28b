/*
 * topology_text.c
 *	  The small grammars inside a topology: URLs, ${NAME}, instants.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "nearest.h"
#include "topology.h"
#include "topology_impl.h"

/* What becomes of a parameter that only the JDBC driver knows. */
struct jdbc_parameter
{
	const char *name;
	const char *libpq;			/* NULL: has no meaning here, left out */
};

static const struct jdbc_parameter jdbc_parameters[] = {
	{"ApplicationName", "application_name"},
	{"connectTimeout", "connect_timeout"},
	{"sslcert", "sslcert"},
	{"sslkey", "sslkey"},
	{"sslrootcert", "sslrootcert"},
	{"sslpassword", "sslpassword"},
	{"sslmode", "sslmode"},
	{"gssEncMode", "gssencmode"},
	{"channelBinding", "channel_binding"},
	{"user", "user"},
	{"password", "password"},
	{"adaptiveFetch", NULL},
	{"autosave", NULL},
	{"binaryTransfer", NULL},
	{"cancelSignalTimeout", NULL},
	{"defaultRowFetchSize", NULL},
	{"loadBalanceHosts", NULL},
	{"logUnclosedConnections", NULL},
	{"loginTimeout", NULL},
	{"preferQueryMode", NULL},
	{"prepareThreshold", NULL},
	{"preparedStatementCacheQueries", NULL},
	{"preparedStatementCacheSizeMiB", NULL},
	{"reWriteBatchedInserts", NULL},
	{"socketTimeout", NULL},
	{"stringtype", NULL},
	{"targetServerType", NULL},
	{"tcpKeepAlive", NULL},
};

/*
 * What libpq or the JDBC driver takes and the proxy does not. A name that ends with '_' stands
 * for all that begin so.
 */
static const struct
{
	const char *name;
	const char *why;
}			refused_parameters[] = {
	{"currentSchema", "which the proxy decides itself"},
	{"options", "which the proxy decides itself"},
	{"target_session_attrs", "which the proxy decides itself"},
	{"replication", "which the proxy decides itself"},
	{"client_encoding", "which the proxy decides itself"},
	{"load_balance_hosts", "but of several hosts the proxy looks at each and takes the one that has written most"},
	{"oauth_", "but no person is there to log in"},
};

/* Append len bytes of text to a growing string; false when memory is short. */
static bool
append(char **out, size_t *used, const char *text, size_t len)
{
	char	   *grown = realloc(*out, *used + len + 1);

	if (grown == NULL)
		return false;
	memcpy(grown + *used, text, len);
	*used += len;
	grown[*used] = '\0';
	*out = grown;
	return true;
}

/*
 * A name that nobody knows may be the end of a password with an '&' or a '?' in it:
 * it is shown only where the URL has no password.
 */
static bool
refuse_unknown(const char *key, bool has_password, const char *const *parameters, const char *what,
			   struct wig_error *err)
{
	const char *near = wig_nearest(key, parameters);

	if (has_password)
		return wig_fail(err, "%s has an unknown parameter, or a password in which '?', '&', '@', '/' or ':' are"
						" not written as %%3F, %%26, %%40, %%2F, %%3A; better use the keys user and password", what);
	return wig_fail(err, "%s has the unknown parameter '%s'%s%s%s; remove it or correct it", what, key,
					near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

/* NULL when the proxy has nothing against it. */
static const char *
why_refused(const char *key)
{
	for (size_t i = 0; i < sizeof(refused_parameters) / sizeof(refused_parameters[0]); i++)
	{
		const char *name = refused_parameters[i].name;
		size_t		len = strlen(name);

		if (name[len - 1] == '_' ? strncmp(key, name, len) == 0 : strcmp(key, name) == 0)
			return refused_parameters[i].why;
	}
	return NULL;
}

/* As PostgreSQL's JDBC driver takes it: the server's certificate is verified, and
 * sslmode, where there is one, says it all. */
static bool
translate_ssl(char **out, size_t *used, const char *value, size_t value_len, bool has_sslmode,
			  const char *what, struct wig_error *err)
{
	bool		on = value_len == 0 || (value_len == 4 && memcmp(value, "true", 4) == 0);
	const char *mode = on ? "sslmode=verify-full&" : "sslmode=prefer&";

	if (!on && (value_len != 5 || memcmp(value, "false", 5) != 0))
		return wig_fail(err, "%s has the parameter ssl, which is true or false; better use sslmode", what);
	return has_sslmode || append(out, used, mode, strlen(mode)) || wig_fail(err, "out of memory");
}

/*
 * Write "name=value&" as libpq takes it into *out, or nothing. False when the
 * parameter is one that would change what the proxy relies on.
 */
static bool
translate_parameter(char **out, size_t *used, const char *name, size_t name_len,
					const char *value, size_t value_len, bool has_password, bool has_sslmode,
					const char *const *parameters, const char *what, struct wig_error *err)
{
	char		key[64];

	if (name_len >= sizeof(key))
		return wig_fail(err, "%s has a parameter whose name is %zu characters long; remove it", what, name_len);
	memcpy(key, name, name_len);
	key[name_len] = '\0';

	if (strcmp(key, "ssl") == 0)
		return translate_ssl(out, used, value, value_len, has_sslmode, what, err);
	/* What the proxy wants of a shard's primary anyway, the usual way to write several hosts. */
	if (strcmp(key, "target_session_attrs") == 0 &&
		((value_len == 10 && memcmp(value, "read-write", 10) == 0) ||
		 (value_len == 7 && memcmp(value, "primary", 7) == 0)))
		return true;
	if (why_refused(key) != NULL)
		return wig_fail(err, "%s sets the parameter '%s', %s; remove it", what, key, why_refused(key));
	for (size_t i = 0; i < sizeof(jdbc_parameters) / sizeof(jdbc_parameters[0]); i++)
	{
		if (strcmp(key, jdbc_parameters[i].name) != 0)
			continue;
		if (jdbc_parameters[i].libpq == NULL)
			return true;
		return (append(out, used, jdbc_parameters[i].libpq, strlen(jdbc_parameters[i].libpq)) &&
				append(out, used, "=", 1) && append(out, used, value, value_len) &&
				append(out, used, "&", 1)) || wig_fail(err, "out of memory");
	}
	for (int i = 0; parameters[i] != NULL; i++)
	{
		if (strcmp(key, parameters[i]) == 0)
			return (append(out, used, name, name_len) && append(out, used, "=", 1) &&
					append(out, used, value, value_len) &&
					append(out, used, "&", 1)) || wig_fail(err, "out of memory");
	}
	return refuse_unknown(key, has_password, parameters, what, err);
}

/* Says which scheme it is instead, if it is one: else it may be part of a password. */
static char *
refuse_scheme(const char *url, const char *what, struct wig_error *err)
{
	size_t		jdbc = strncmp(url, "jdbc:", 5) == 0 ? 5 : 0;
	size_t		letters = strspn(url + jdbc, "abcdefghijklmnopqrstuvwxyz");
	bool		scheme = letters > 0 && letters < 20 && strncmp(url + jdbc + letters, "://", 3) == 0;

	wig_fail(err, "%s must begin with postgresql:// or jdbc:postgresql://%s%.*s", what,
			 scheme ? ", not with " : "", scheme ? (int) (jdbc + letters + 3) : 0, url);
	return NULL;
}

/*
 * What follows the scheme up to the '?'. libpq would take an '@' or '/' of a password for
 * the end of the user or of the host, and what is behind it for names to be shown.
 */
static bool
check_authority(const char *rest, size_t len, const char *what, struct wig_error *err)
{
	size_t		authority = strcspn(rest, "/?");
	const char *at = memchr(rest, '@', len);

	if (at == NULL || (at < rest + authority && memchr(at + 1, '@', len - (size_t) (at + 1 - rest)) == NULL))
		return true;
	return wig_fail(err, "%s has a user or password in which '@' or '/' is not written as %%40 or %%2F; better use"
					" the keys user and password", what);
}

/* Move behind a prefix if it is there. */
static bool
skip(const char **text, const char *prefix)
{
	size_t		len = strlen(prefix);

	if (strncmp(*text, prefix, len) != 0)
		return false;
	*text += len;
	return true;
}

char *
topology_url(const char *url, const char *what, const char *const *parameters, struct wig_error *err)
{
	const char *rest = url;
	const char *query;
	char	   *out = NULL;
	size_t		used = 0;
	bool		has_password;
	bool		has_sslmode;

	if (!skip(&rest, "postgresql://") && !skip(&rest, "postgres://") &&
		!skip(&rest, "jdbc:postgresql://"))
		return refuse_scheme(url, what, err);
	has_password = strchr(rest, '@') != NULL || strstr(rest, "password=") != NULL;
	query = strchr(rest, '?');
	if (!check_authority(rest, query ? (size_t) (query - rest) : strlen(rest), what, err))
		return NULL;
	if (!append(&out, &used, "postgresql://", 13) ||
		!append(&out, &used, rest, query ? (size_t) (query - rest) : strlen(rest)))
		goto no_memory;
	if (query == NULL)
		return out;
	if (!append(&out, &used, "?", 1))
		goto no_memory;
	has_sslmode = strstr(query, "?sslmode=") != NULL || strstr(query, "&sslmode=") != NULL;
	for (const char *name = query + 1; *name != '\0';)
	{
		size_t		len = strcspn(name, "&");
		const char *equals = memchr(name, '=', len);
		size_t		name_len = equals ? (size_t) (equals - name) : len;
		const char *value = equals ? equals + 1 : "";
		size_t		value_len = equals ? len - name_len - 1 : 0;

		if (len > 0 && !translate_parameter(&out, &used, name, name_len, value, value_len, has_password,
											has_sslmode, parameters, what, err))
		{
			free(out);
			return NULL;
		}
		name += len;
		if (*name == '&')
			name++;
	}
	out[used - 1] = '\0';		/* the last '&', or the '?' when nothing followed */
	return out;

no_memory:
	free(out);
	wig_fail(err, "out of memory");
	return NULL;
}

/* What may be in front of the '}' of ${NAME}. */
static bool
is_name(const char *text, const char *end)
{
	size_t		len = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");

	return len > 0 && text + len == end && (*text < '0' || *text > '9');
}

char *
topology_interpolate(const char *text, const char *what,
					 const char *(*variable) (const char *name), struct wig_error *err)
{
	char	   *out = strdup("");
	size_t		used = 0;

	while (out != NULL && *text != '\0')
	{
		const char *start = strstr(text, "${");
		const char *end = start ? strchr(start, '}') : NULL;
		char		name[128];
		const char *value;

		if (start == NULL)
		{
			if (!append(&out, &used, text, strlen(text)))
				break;
			return out;
		}
		if (end == NULL || (size_t) (end - start) - 2 >= sizeof(name) || !is_name(start + 2, end))
		{
			wig_fail(err, "%s has a '${' without a variable's name and a '}' behind it; a '${' that stands"
					 " for itself goes into a variable", what);
			free(out);
			return NULL;
		}
		memcpy(name, start + 2, (size_t) (end - start) - 2);
		name[end - start - 2] = '\0';
		value = variable(name);
		if (value == NULL)
		{
			wig_fail(err, "%s refers to ${%s}, which is not set; set it in the environment, or correct the name",
					 what, name);
			free(out);
			return NULL;
		}
		if (!append(&out, &used, text, (size_t) (start - text)) ||
			!append(&out, &used, value, strlen(value)))
			break;
		text = end + 1;
	}
	if (out == NULL || *text != '\0')
	{
		free(out);
		wig_fail(err, "out of memory");
		return NULL;
	}
	return out;
}

/* Days from 1970-01-01 to the given day of the proleptic Gregorian calendar. */
static int64_t
days_from_civil(int year, int month, int day)
{
	static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
	int			y = year - 1;
	bool		leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return (int64_t) y * 365 + y / 4 - y / 100 + y / 400 - 719162 +
		before[month - 1] + (month > 2 && leap) + day - 1;
}

static int
days_in_month(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool		leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return days[month - 1] + (month == 2 && leap);
}

/* "Z", "+02:00" or "-0530" to minutes east of UTC; false when it is neither. */
static bool
parse_offset(const char *text, int *minutes)
{
	int			hours;
	int			mins;
	int			used = 0;

	*minutes = 0;
	if (strcmp(text, "Z") == 0 || strcmp(text, "z") == 0)
		return true;
	if (text[0] != '+' && text[0] != '-')
		return false;
	if ((sscanf(text + 1, "%2d:%2d%n", &hours, &mins, &used) != 2 || text[1 + used] != '\0') &&
		(sscanf(text + 1, "%2d%2d%n", &hours, &mins, &used) != 2 || text[1 + used] != '\0'))
		return false;
	if (hours < 0 || hours > 18 || mins < 0 || mins > 59)
		return false;
	*minutes = (text[0] == '-' ? -1 : 1) * (hours * 60 + mins);
	return true;
}

bool
topology_instant(const char *text, int64_t *unix_ms)
{
	int			year,
				month,
				day,
				hour,
				minute,
				second = 0;
	int			used = 0;
	int			offset;
	int64_t		millis = 0;
	const char *rest;

	if (strlen(text) > 40 ||
		sscanf(text, "%4d-%2d-%2d%*1[Tt]%2d:%2d%n", &year, &month, &day, &hour, &minute, &used) != 5 ||
		used != 16)
		return false;
	rest = text + used;
	if (*rest == ':')
	{
		used = 0;
		if (sscanf(rest, ":%2d%n", &second, &used) != 1 || used != 3)
			return false;
		rest += used;
		if (*rest == '.')
		{
			int64_t		unit = 100;

			for (rest++; *rest >= '0' && *rest <= '9'; rest++, unit /= 10)
				millis += unit * (*rest - '0');
		}
	}
	if (year < 1970 || month < 1 || month > 12 || day < 1 || day > days_in_month(year, month) ||
		hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59 ||
		!parse_offset(rest, &offset))
		return false;
	*unix_ms = ((days_from_civil(year, month, day) * 24 + hour) * 60 + minute - offset) * 60000 +
		(int64_t) second * 1000 + millis;
	return true;
}
