/*
 * config.c
 *	  Reading the settings from the environment and the flags.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "address.h"
#include "config.h"
#include "setting.h"
#include "utf8.h"

extern char **environ;

struct config config;

static enum config_source sources[SETTINGS_MAX];	/* by the table's order */

/* Units that a value may be written with, where the setting has this one. */
static const struct
{
	const char *of;
	const char *name;
	int64_t		factor;
}			units[] = {
	{"ms", "ms", 1},
	{"ms", "s", 1000},
	{"ms", "min", 60000},
	{"ms", "h", 3600000},
	{"ms", "d", 86400000},
	{"bytes", "B", 1},
	{"bytes", "kB", 1024},
	{"bytes", "MB", 1048576},
	{"bytes", "GB", 1073741824},
};

/* How others call a choice of ours. */
static const char *const synonyms[][2] = {{"warning", "warn"}, {"trace", "debug"}};

/* What follows a number; 0 when it is no unit of the setting. */
static int64_t
unit_factor(const struct setting *s, const char *name)
{
	if (strcmp(name, s->unit) == 0)
		return 1;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(units[i].of, s->unit) == 0 && strcasecmp(units[i].name, name) == 0)
			return units[i].factor;
	return 0;
}

static bool
refuse_unit(const struct setting *s, const char *from, const char *value, const char *unit, struct wig_error *err)
{
	char		list[64] = "";
	size_t		n = 0;

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(units[i].of, s->unit) == 0)
			n += (size_t) snprintf(list + n, sizeof(list) - n, "%s%s", n > 0 ? ", " : "", units[i].name);
	return wig_fail(err, "%s is '%s', but '%s' is no unit of it: a plain number is %s, others are %s", from, value,
					unit, s->unit, list);
}

static bool
set_number(const struct setting *s, const char *from, const char *value, struct wig_error *err)
{
	int64_t    *slot = (int64_t *) ((char *) &config + s->offset);
	char	   *end;
	long long	n;
	int64_t		factor = 1;

	errno = 0;
	n = strtoll(value, &end, 10);
	if (end != value && errno == 0 && *end != '\0' && (strcmp(s->unit, "ms") == 0 || strcmp(s->unit, "bytes") == 0))
	{
		const char *unit = end + strspn(end, " ");

		factor = unit_factor(s, unit);
		if (factor == 0)
			return refuse_unit(s, from, value, unit, err);
		end += strlen(end);
	}
	if (end == value || *end != '\0' || errno != 0 || __builtin_mul_overflow(n, factor, &n))
		return wig_fail(err, "%s is not a whole number: '%s'", from, value);
	if (n < s->min || n > s->max)
		return wig_fail(err, "%s is %lld, but must be from %lld to %lld%s%s", from, n,
						(long long) s->min, (long long) s->max, *s->unit ? " " : "", s->unit);
	*slot = n;
	return true;
}

static bool
set_ratio(const struct setting *s, const char *from, const char *value, struct wig_error *err)
{
	int64_t    *slot = (int64_t *) ((char *) &config + s->offset);
	char	   *end;
	double		ratio = strtod(value, &end);

	if (end == value || *end != '\0' || !(ratio * 1000 >= (double) s->min && ratio <= 1))
		return wig_fail(err, "%s is '%s', but must be a number from %g to 1", from, value, (double) s->min / 1000);
	*slot = (int64_t) (ratio * 1000 + 0.5);
	return true;
}

static bool
set_choice(const struct setting *s, const char *from, const char *value, struct wig_error *err)
{
	int64_t    *slot = (int64_t *) ((char *) &config + s->offset);
	const char *name = value;
	char		list[64];

	for (size_t i = 0; i < sizeof(synonyms) / sizeof(synonyms[0]); i++)
		if (strcasecmp(synonyms[i][0], value) == 0)
			name = synonyms[i][1];
	for (int i = 0; s->choices[i] != NULL; i++)
	{
		if (strcasecmp(s->choices[i], name) == 0)
		{
			*slot = i;
			return true;
		}
	}
	setting_choices(s, list, sizeof(list));
	return wig_fail(err, "%s is '%s', but must be one of %s", from, value, list);
}

static bool
set(const struct setting *s, enum config_source source, const char *from, const char *value, struct wig_error *err)
{
	sources[s - settings] = source;
	switch (s->kind)
	{
		case SETTING_INTEGER:
			return set_number(s, from, value, err);
		case SETTING_RATIO:
			return set_ratio(s, from, value, err);
		case SETTING_CHOICE:
			return set_choice(s, from, value, err);
		case SETTING_TEXT:
			break;
	}
	*(const char **) ((char *) &config + s->offset) = value;
	return true;
}

static void
set_defaults(void)
{
	for (size_t i = 0; i < nsettings; i++)
	{
		const struct setting *s = &settings[i];

		sources[i] = CONFIG_DEFAULT;
		if (s->kind == SETTING_TEXT)
			*(const char **) ((char *) &config + s->offset) = s->text;
		else
			*(int64_t *) ((char *) &config + s->offset) = s->number;
	}
}

static bool
read_environment(struct wig_error *err)
{
	char		name[SETTING_NAME_MAX];

	for (size_t i = 0; i < nsettings; i++)
	{
		const char *value;

		setting_variable(&settings[i], name);
		value = getenv(name);
		if (value == NULL || (*value == '\0' && settings[i].kind != SETTING_TEXT) ||
			setting_is_link(name, strlen(name), value))
			continue;
		if (!set(&settings[i], CONFIG_ENVIRONMENT, name, value, err))
			return false;
	}
	return true;
}

static const struct setting *
find_flag(const char *name, size_t len)
{
	for (size_t i = 0; i < nsettings; i++)
		if (strlen(settings[i].name) == len && memcmp(settings[i].name, name, len) == 0)
			return &settings[i];
	return NULL;
}

bool
config_given(const char *name)
{
	const struct setting *s = find_flag(name, strlen(name));

	return s != NULL && sources[s - settings] != CONFIG_DEFAULT;
}

/* One flag with its value from "--name=value" or from the argument behind it. */
static bool
read_flag(int argc, char *const *argv, int *at, struct wig_error *err)
{
	const char *arg = argv[*at];
	const char *value = strchr(arg, '=');
	size_t		len = value != NULL ? (size_t) (value - arg) : strlen(arg);
	const struct setting *s;
	char		from[SETTING_NAME_MAX];

	s = len > 2 && arg[0] == '-' && arg[1] == '-' ? find_flag(arg + 2, len - 2) : NULL;
	if (s == NULL)
		return wig_fail(err, "unknown argument '%.*s'; --help lists them", (int) len, arg);
	if (s->secret)
	{
		setting_variable(s, from);
		return wig_fail(err, "--%s is read from %s only: arguments are visible to other users", s->name, from);
	}
	snprintf(from, sizeof(from), "--%s", s->name);
	if (value != NULL)
		value++;
	else if (*at + 1 < argc)
		value = argv[++*at];
	else
		return wig_fail(err, "%s needs a value", from);
	return set(s, CONFIG_FLAG, from, value, err);
}

static bool
check_tls(struct wig_error *err)
{
	const char *without = *config.tls_key != '\0' ? "WIGGLE_TLS_KEY" :
		*config.tls_truststore != '\0' ? "WIGGLE_TLS_TRUSTSTORE" : NULL;

	if (*config.tls_keystore == '\0' && without != NULL)
		return wig_fail(err, "%s is set, but not WIGGLE_TLS_KEYSTORE, which turns TLS on", without);
	if (*config.tls_truststore == '\0' && config.tls_client_auth == TLS_CLIENT_OPTIONAL)
		return wig_fail(err, "WIGGLE_TLS_CLIENT_AUTH is optional, but WIGGLE_TLS_TRUSTSTORE, which says whose"
						" certificates hold, is not set");
	return true;
}

static bool
is_any(const char *bind)
{
	return strcmp(bind, "0.0.0.0") == 0 || strcmp(bind, "::") == 0;
}

/* Said before a database is set up, not when the first one can be used. */
static bool
check_ports(struct wig_error *err)
{
	struct sockaddr_storage addr;

	if (config.migrate_only)
		return true;
	if (!address_parse("WIGGLE_BIND", config.bind, config.port, &addr, err))
		return false;
	if (config.dashboard_port >= 0 &&
		!address_parse("WIGGLE_DASHBOARD_BIND", config.dashboard_bind, config.dashboard_port, &addr, err))
		return false;
	if (config.port > 0 && config.port == config.dashboard_port &&
		(is_any(config.bind) || is_any(config.dashboard_bind) || strcmp(config.bind, config.dashboard_bind) == 0))
		return wig_fail(err, "WIGGLE_PORT and WIGGLE_DASHBOARD_PORT are both %lld; give each a port of its own",
						(long long) config.port);
	return true;
}

/* Home is told it: a database takes no text that is none. */
static bool
check_name(struct wig_error *err)
{
	const char *name = config.node_name;
	size_t		len = strlen(name);

	for (size_t i = 0, n; i < len; i += n)
	{
		n = utf8_sequence((const uint8_t *) name + i, len - i);
		if (n == 0 || (unsigned char) name[i] < ' ')
			return wig_fail(err, "WIGGLE_NODE_NAME must be text in UTF-8 without control characters");
	}
	return true;
}

/* What no single range can say. */
static bool
check_together(struct wig_error *err)
{
	if (!check_tls(err) || !check_ports(err) || !check_name(err))
		return false;
	if (config.max_request_bytes < 2 * config.max_message_bytes)
		return wig_fail(err, "WIGGLE_MAX_REQUEST_BYTES must be at least twice WIGGLE_MAX_MESSAGE_BYTES (%lld)",
						(long long) config.max_message_bytes);
	if (config.max_unsent_bytes < config.max_unsent_conn_bytes)
		return wig_fail(err, "WIGGLE_MAX_UNSENT_BYTES must be at least WIGGLE_MAX_UNSENT_CONN_BYTES (%lld)",
						(long long) config.max_unsent_conn_bytes);
	return true;
}

static bool
accepts(const struct foreign *foreign, const char *value)
{
	const char *list = foreign->accepts;
	size_t		len = strlen(value);

	if (len == 0)
		return true;
	for (; list != NULL && *list != '\0'; list += strcspn(list, "|"), list += *list == '|')
		if (strcspn(list, "|") == len && strncasecmp(list, value, len) == 0)
			return true;
	return false;
}

static bool
check_foreign(struct wig_error *err)
{
	for (char **entry = environ; entry != NULL && *entry != NULL; entry++)
	{
		size_t		len = strcspn(*entry, "=");
		const struct foreign *foreign = setting_is(*entry, len) ? NULL : setting_foreign(*entry, len);

		if (foreign == NULL || foreign->fate != FOREIGN_REFUSED || (*entry)[len] == '\0' ||
			setting_is_link(*entry, len, *entry + len + 1) || accepts(foreign, *entry + len + 1))
			continue;
		if (foreign->accepts != NULL)
			return wig_fail(err, "%.*s is '%s', but may only be %s: %s", (int) len, *entry, *entry + len + 1,
							foreign->accepts, foreign->why);
		return wig_fail(err, "%.*s is set, but there is nothing for it here: %s", (int) len, *entry, foreign->why);
	}
	return true;
}

enum config_outcome
config_load(int argc, char *const *argv, struct wig_error *err)
{
	static char host[256];

	for (int i = 1; i < argc; i++)
	{
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return CONFIG_HELP;
		if (strcmp(argv[i], "--version") == 0)
			return CONFIG_VERSION;
	}
	set_defaults();
	if (!read_environment(err))
		return CONFIG_REFUSED;
	for (int i = 1; i < argc; i++)
		if (!read_flag(argc, argv, &i, err))
			return CONFIG_REFUSED;
	if (!check_together(err) || !check_foreign(err))
		return CONFIG_REFUSED;
	if (*config.node_name == '\0')
	{
		if (gethostname(host, sizeof(host) - 1) != 0 || host[0] == '\0')
			snprintf(host, sizeof(host), "wiggle-proxy");
		config.node_name = host;
	}
	return CONFIG_RUN;
}

enum config_source
config_source(const struct setting *s)
{
	return sources[s - settings];
}
