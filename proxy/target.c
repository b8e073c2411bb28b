/*
 * target.c
 *	  A database's URL, parsed once, as libpq wants it for each attempt.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "config.h"
#include "conninfo.h"
#include "link.h"
#include "target.h"

/*
 * What a session relies on, whatever the database, the role or the URL have for
 * default: given with the start of the session, it counts from the first statement on,
 * and a read-only default is not taken for a standby.
 */
#define SESSION_OPTIONS \
	"-c default_transaction_isolation=read\\ committed -c default_transaction_read_only=off" \
	" -c statement_timeout=0 -c lock_timeout=0 -c idle_session_timeout=0"

/* So many places are remembered: a name may have other addresses every time. */
#define PAST_PLACES		32

struct target_past
{
	struct
	{
		struct target_place place;
		int64_t		rank;		/* below 0: good, and above: bad; the farther from it the later; 0 = free */
	}			known[PAST_PLACES];
	int64_t		events;
};

/* A value of the URL's options, NULL when it is not set. */
static const char *
option(const struct target *target, const char *keyword)
{
	for (PQconninfoOption *o = target->options; o->keyword != NULL; o++)
	{
		if (strcmp(o->keyword, keyword) == 0)
			return o->val != NULL && *o->val != '\0' ? o->val : NULL;
	}
	return NULL;
}

static char *
copy(const char *text)
{
	return text != NULL ? xstrdup(text) : NULL;
}

/* The n-th element of a comma-separated list: malloc'd, "" when there is none. */
static char *
element(const char *list, int n)
{
	while (list != NULL && n > 0)
	{
		list = strchr(list, ',');
		if (list != NULL)
			list++;
		n--;
	}
	return list ? xstrndup(list, strcspn(list, ",")) : xstrdup("");
}

static int
count_elements(const char *list)
{
	int			n = 1;

	for (; *list != '\0'; list++)
		n += *list == ',';
	return n;
}

/* One port given for several hosts serves all of them, as libpq has it. */
static void
split_hosts(struct target *target)
{
	const char *hosts = option(target, "host");
	const char *addresses = option(target, "hostaddr");
	const char *ports = option(target, "port");
	int			nports = ports ? count_elements(ports) : 0;

	target->nhosts = hosts ? count_elements(hosts) : addresses ? count_elements(addresses) : 1;
	target->hosts = xcalloc((size_t) target->nhosts, sizeof(*target->hosts));
	for (int i = 0; i < target->nhosts; i++)
	{
		struct target_host *host = &target->hosts[i];

		host->name = element(hosts, i);
		host->address = element(addresses, i);
		host->port = element(ports, nports == 1 ? 0 : i);
		host->resolve = *host->address == '\0' && *host->name != '\0' && *host->name != '/' &&
			*host->name != '@';
	}
}

struct target *
target_create(const char *what, const char *url, const char *user, const char *password,
			  enum session_kind kind, struct wig_error *err)
{
	struct target *target = xcalloc(1, sizeof(*target));
	struct buf	name = BUF_INIT;
	struct buf	options = BUF_INIT;
	const char *database;
	char		field[80];

	snprintf(field, sizeof(field), "%s url", what);
	target->options = conninfo_parse(field, url, err);
	if (target->options == NULL)
	{
		target_free(target);
		return NULL;
	}
	split_hosts(target);
	target->past = xcalloc(1, sizeof(*target->past));
	target->kind = kind;
	target->user = copy(option(target, "user") ? option(target, "user") : user);
	target->password = copy(option(target, "password") ? option(target, "password") : password);
	database = option(target, "dbname") ? option(target, "dbname") : target->user;
	for (int i = 0; i < target->nhosts; i++)
	{
		const struct target_host *host = &target->hosts[i];

		buf_printf(&name, "%s%s:%s", i > 0 ? "," : "",
				   *host->name ? host->name : *host->address ? host->address : "local",
				   *host->port ? host->port : "5432");
	}
	buf_printf(&name, "/%s", database ? database : "");
	target->name = xstrdup(buf_cstr(&name));
	buf_free(&name);

	/* of two values for one setting the server takes the last */
	if (option(target, "options") != NULL)
		buf_printf(&options, "%s ", option(target, "options"));
	buf_text(&options, SESSION_OPTIONS);
	target->session = xstrdup(buf_cstr(&options));
	buf_free(&options);
	return target;
}

void
target_free(struct target *target)
{
	if (target == NULL)
		return;
	for (int i = 0; i < target->nhosts; i++)
	{
		free(target->hosts[i].name);
		free(target->hosts[i].address);
		free(target->hosts[i].port);
	}
	free(target->hosts);
	free(target->name);
	free(target->user);
	free(target->password);
	free(target->session);
	free(target->past);
	PQconninfoFree(target->options);
	free(target);
}

const char *
target_name(const struct target *target)
{
	return target->name;
}

void
target_list_add(struct target_list *list, const struct target_host *host, const char *address)
{
	struct target_place *place;

	list->places = xrealloc(list->places, (size_t) (list->n + 1) * sizeof(*list->places));
	place = &list->places[list->n++];
	place->host = host;
	snprintf(place->address, sizeof(place->address), "%s", address);
}

void
target_list_free(struct target_list *list)
{
	free(list->places);
	list->places = NULL;
	list->n = 0;
}

static bool
is_same(const struct target_place *a, const struct target_place *b)
{
	return a->host == b->host && strcmp(a->address, b->address) == 0;
}

static int64_t
rank_of(const struct target *target, const struct target_place *place)
{
	for (int i = 0; i < PAST_PLACES; i++)
	{
		if (target->past->known[i].rank != 0 && is_same(&target->past->known[i].place, place))
			return target->past->known[i].rank;
	}
	return 0;
}

/* In the stead of what was heard of the place before, or of the one that was not heard of for longest. */
static void
remember(const struct target *target, const struct target_place *place, int sign)
{
	struct target_past *past = target->past;
	int			at = 0;

	for (int i = 1; i < PAST_PLACES; i++)
	{
		if (llabs(past->known[i].rank) < llabs(past->known[at].rank))
			at = i;
	}
	for (int i = 0; i < PAST_PLACES; i++)
	{
		if (past->known[i].rank != 0 && is_same(&past->known[i].place, place))
			at = i;
	}
	past->known[at].place = *place;
	past->known[at].rank = sign * ++past->events;
}

void
target_prefer(const struct target *target, const struct target_place *place)
{
	remember(target, place, -1);
}

void
target_defer(const struct target *target, const struct target_place *place)
{
	remember(target, place, 1);
}

void
target_list_sort(const struct target *target, struct target_list *list)
{
	for (int i = 1; i < list->n; i++)
	{
		struct target_place place = list->places[i];
		int			at = i;

		for (; at > 0 && rank_of(target, &list->places[at - 1]) > rank_of(target, &place); at--)
			list->places[at] = list->places[at - 1];
		list->places[at] = place;
	}
}

PGconn *
target_connect(const struct target *target, const struct target_place *place, const char *attrs, const char *purpose)
{
	const char *keywords[64];
	const char *values[64];
	char		application[80];
	int			n = 0;

#define SET(k, v) (keywords[n] = (k), values[n] = (v), n++)
	snprintf(application, sizeof(application), "wiggle-proxy %s %.40s", purpose, config.node_name);
	for (PQconninfoOption *o = target->options; o->keyword != NULL && n < 48; o++)
	{
		if (o->val == NULL || strcmp(o->keyword, "host") == 0 || strcmp(o->keyword, "hostaddr") == 0 ||
			strcmp(o->keyword, "port") == 0 || strcmp(o->keyword, "user") == 0 ||
			strcmp(o->keyword, "password") == 0 || strcmp(o->keyword, "options") == 0)
			continue;
		SET(o->keyword, o->val);
	}
	SET("host", place->host->name);
	SET("hostaddr", place->address);
	SET("port", place->host->port);
	if (target->user != NULL)
		SET("user", target->user);
	if (target->password != NULL)
		SET("password", target->password);
	if (option(target, "application_name") == NULL)
		SET("application_name", application);
	if (option(target, "tcp_user_timeout") == NULL)
		SET("tcp_user_timeout", "30000");
	if (option(target, "keepalives_idle") == NULL)
	{
		SET("keepalives_idle", "30");
		SET("keepalives_interval", "10");
		SET("keepalives_count", "3");
	}
	SET("options", target->session);
	SET("client_encoding", "UTF8");
	SET("target_session_attrs", attrs);
	keywords[n] = NULL;
	values[n] = NULL;
#undef SET
	return PQconnectStartParams(keywords, values, 0);
}
