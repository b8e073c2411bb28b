/*
 * config_show.c
 *	  What the settings are, for people and for the shards: values without secrets,
 *	  --help, and variables that have no effect.
 */
#define _GNU_SOURCE				/* memrchr */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "nearest.h"
#include "setting.h"

extern char **environ;

static const char *
nearest_variable(const char *name)
{
	static char names[SETTINGS_MAX][SETTING_NAME_MAX];
	const char *candidates[SETTINGS_MAX + 1];

	for (size_t i = 0; i < nsettings; i++)
	{
		setting_variable(&settings[i], names[i]);
		candidates[i] = names[i];
	}
	candidates[nsettings] = NULL;
	return wig_nearest(name, candidates);
}

/* All in one line: there are seven for each port of a Service. */
static void
tell_links(config_foreign_fn tell, void *arg)
{
	struct buf	text = BUF_INIT;
	const char *one = NULL;
	int			more = -1;

	for (char **entry = environ; entry != NULL && *entry != NULL; entry++)
	{
		size_t		len = strcspn(*entry, "=");

		if ((*entry)[len] == '\0' || !setting_is_link(*entry, len, *entry + len + 1))
			continue;
		/* the one that could be taken for a setting */
		if (one == NULL || setting_is(*entry, len))
			one = *entry;
		more++;
	}
	if (one != NULL)
	{
		buf_printf(&text, "%.*s", (int) strcspn(one, "="), one);
		if (more > 0)
			buf_printf(&text, " and %d more", more);
		buf_text(&text, more > 0 ? " are what Kubernetes tells pods of its Services, and have no effect;"
				 : " is what Kubernetes tells pods of its Services, and has no effect;");
		buf_text(&text, " with enableServiceLinks: false in the pod's spec it does not");
		tell(true, buf_cstr(&text), arg);
	}
	buf_free(&text);
}

void
config_foreign(config_foreign_fn tell, void *arg)
{
	struct buf	text = BUF_INIT;

	for (char **entry = environ; entry != NULL && *entry != NULL; entry++)
	{
		size_t		len = strcspn(*entry, "=");
		const struct foreign *foreign = setting_foreign(*entry, len);
		char		name[SETTING_NAME_MAX];
		const char *near;

		if (strncmp(*entry, "WIGGLE_", 7) != 0 || setting_is(*entry, len) ||
			((*entry)[len] == '=' && setting_is_link(*entry, len, *entry + len + 1)))
			continue;
		if (foreign != NULL && (foreign->fate != FOREIGN_IGNORED || (*entry)[len] == '\0' || (*entry)[len + 1] == '\0'))
			continue;
		buf_reset(&text);
		snprintf(name, sizeof(name), "%.*s", (int) len, *entry);
		near = foreign == NULL ? nearest_variable(name) : NULL;
		if (foreign != NULL)
			buf_printf(&text, "%s has no effect: %s", name, foreign->why);
		else if (near != NULL)
			buf_printf(&text, "%s is no setting, did you mean %s? It has no effect, unless the topology names it", name, near);
		else
			buf_printf(&text, "%s is no setting and has no effect, unless the topology names it; --help lists them", name);
		tell(foreign != NULL, buf_cstr(&text), arg);
	}
	buf_free(&text);
	tell_links(tell, arg);
}

/*
 * The text without what stands between "//user:" and the last "@" before the next URL of a
 * list, or behind "password=". Rather too much than a part of a password.
 */
static void
write_veiled(const char *text, struct buf *out)
{
	while (*text != '\0')
	{
		const char *next = strncmp(text, "//", 2) == 0 ? strstr(text + 2, "://") : NULL;
		size_t		len = next != NULL ? (size_t) (next - text) : strlen(text);
		const char *at = strncmp(text, "//", 2) == 0 ? memrchr(text, '@', len) : NULL;
		const char *colon = at != NULL ? memchr(text, ':', (size_t) (at - text)) : NULL;

		if (colon != NULL)
		{
			buf_append(out, text, (size_t) (colon - text) + 1);
			buf_text(out, "***");
			text = at;
		}
		else if (strncasecmp(text, "password=", 9) == 0)
		{
			buf_text(out, "password=***");
			text += strcspn(text, "&");
		}
		else
			buf_byte(out, (uint8_t) *text++);
	}
}

void
config_value(const struct setting *s, struct buf *out)
{
	const char *text = s->kind == SETTING_TEXT ? *(const char **) ((char *) &config + s->offset) : NULL;
	int64_t		number = s->kind == SETTING_TEXT ? 0 : *(int64_t *) ((char *) &config + s->offset);

	switch (s->kind)
	{
		case SETTING_TEXT:
			if (*text != '\0' && s->secret)
				buf_text(out, "***");
			else if (text[strspn(text, " \t\r\n")] == '{')
				buf_printf(out, "(a document of %zu bytes)", strlen(text));
			else
				write_veiled(text, out);
			break;
		case SETTING_INTEGER:
			buf_printf(out, "%lld", (long long) number);
			break;
		case SETTING_RATIO:
			buf_printf(out, "%g", (double) number / 1000);
			break;
		case SETTING_CHOICE:
			buf_text(out, s->choices[number]);
			break;
	}
}

bool
config_pushed(struct buf *out)
{
	bool		any = false;

	buf_byte(out, '{');
	for (size_t i = 0; i < nsettings; i++)
	{
		const struct setting *s = &settings[i];

		if (s->guc == NULL || config_source(s) == CONFIG_DEFAULT)
			continue;
		buf_printf(out, "%s\"%s\":\"", any ? "," : "", s->guc);
		config_value(s, out);
		buf_printf(out, "%s\"", s->unit);
		any = true;
	}
	buf_byte(out, '}');
	return any;
}

static void
describe(const struct setting *s, struct buf *out)
{
	char		name[SETTING_NAME_MAX];
	char		list[64];

	setting_variable(s, name);
	if (s->secret)
		buf_printf(out, "  %s\n", name);
	else
		buf_printf(out, "  --%s, %s\n", s->name, name);
	buf_printf(out, "      %s\n", s->help);
	if (s->guc != NULL)
		buf_printf(out, "      given: %s of every shard is set to it\n", s->guc);
	switch (s->kind)
	{
		case SETTING_TEXT:
			if (*s->text != '\0')
				buf_printf(out, "      default %s\n", s->text);
			break;
		case SETTING_INTEGER:
			buf_printf(out, "      default %lld%s%s, from %lld to %lld\n", (long long) s->number,
					   *s->unit ? " " : "", s->unit, (long long) s->min, (long long) s->max);
			break;
		case SETTING_RATIO:
			buf_printf(out, "      default %g, from %g to 1\n", (double) s->number / 1000, (double) s->min / 1000);
			break;
		case SETTING_CHOICE:
			setting_choices(s, list, sizeof(list));
			buf_printf(out, "      default %s, one of %s\n", s->choices[s->number], list);
			break;
	}
}

void
config_help(struct buf *out)
{
	buf_text(out,
			 "wiggle-proxy serves Wiggle's gRPC protocol from PostgreSQL databases that have\n"
			 "the extension wiggle.\n"
			 "\n"
			 "Usage: wiggle-proxy [--setting=value]...\n"
			 "       wiggle-proxy --help | --version\n"
			 "\n"
			 "Each setting is an environment variable or a flag; the flag wins. A plain number is in\n"
			 "the setting's unit; times may be written as 500ms, 30s, 5min, 12h or 7d, sizes as 64kB,\n"
			 "16MB or 1GB.\n"
			 "\n"
			 "Example\n"
			 "  WIGGLE_JDBC_URL=postgresql://wiggle@localhost/wiggle wiggle-proxy --port 8080\n"
			 "\n"
			 "Settings\n");
	for (size_t i = 0; i < nsettings; i++)
		describe(&settings[i], out);
	buf_text(out,
			 "\n"
			 "Signals\n"
			 "  SIGHUP has the topology document and the certificates read again, which also\n"
			 "  happens when they change.\n"
			 "  SIGTERM and SIGINT end the process after the calls in flight; a second one\n"
			 "  skips the wait.\n"
			 "\n"
			 "Exit status\n"
			 "  0 after an orderly end, 1 when it could not start or calls were cut off at the\n"
			 "  end, 2 for settings that are refused.\n");
}
