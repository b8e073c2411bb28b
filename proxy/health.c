/*
 * health.c
 *	  The parts of this process and whether they work.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "config.h"
#include "drain.h"
#include "health.h"
#include "loop.h"

struct health
{
	char	   *name;
	enum health_need need;
	bool		ready;
	char	   *detail;
	struct health *next;
};

static struct health *parts;
static uint64_t started_at;
static struct health **last_part = &parts;

void
health_open(void)
{
	started_at = loop_now();
}

struct health *
health_add(const char *name, enum health_need need)
{
	struct health *health = xcalloc(1, sizeof(*health));

	health->name = xstrdup(name);
	health->need = need;
	health->detail = xstrdup("starting");
	*last_part = health;
	last_part = &health->next;
	return health;
}

void
health_set(struct health *health, bool ready, const char *detail)
{
	health->ready = ready;
	free(health->detail);
	health->detail = xstrdup(detail);
}

void
health_need(struct health *health, enum health_need need)
{
	health->need = need;
}

static bool
works(void)
{
	for (const struct health *h = parts; h != NULL; h = h->next)
		if (h->ready && (h->need == HEALTH_WORK || h->need == HEALTH_HOME))
			return true;
	return false;
}

static bool
lacks(const struct health *health)
{
	return !health->ready && (health->need == HEALTH_ALWAYS || health->need == HEALTH_HOME);
}

bool
health_ready(void)
{
	if (drain_started() || !works())
		return false;
	for (const struct health *h = parts; h != NULL; h = h->next)
		if (lacks(h))
			return false;
	return true;
}

/* Why it is not ready, for whoever reads a probe's answer. */
static void
write_missing(struct buf *out)
{
	const char *comma = "";

	buf_text(out, "\"missing\":[");
	for (const struct health *h = parts; h != NULL; h = h->next)
	{
		if (!lacks(h))
			continue;
		buf_text(out, comma);
		buf_json(out, h->name);
		comma = ",";
	}
	if (!works())
		buf_printf(out, "%s\"a shard that takes instances\"", comma);
	buf_text(out, "],");
}

void
health_write(struct buf *out, void (*more) (struct buf *out))
{
	buf_byte(out, '{');
	if (more != NULL)
	{
		buf_text(out, "\"node\":");
		buf_json(out, config.node_name);
		buf_printf(out, ",\"version\":\"%s\",\"uptimeMillis\":%" PRIu64 ",", WIGGLE_VERSION,
				   loop_now() - started_at);
	}
	buf_printf(out, "\"ready\":%s,\"draining\":%s,", health_ready() ? "true" : "false",
			   drain_started() ? "true" : "false");
	write_missing(out);
	buf_text(out, "\"parts\":[");
	for (const struct health *h = parts; h != NULL; h = h->next)
	{
		buf_text(out, h == parts ? "{\"name\":" : ",{\"name\":");
		buf_json(out, h->name);
		buf_printf(out, ",\"ready\":%s,\"detail\":", h->ready ? "true" : "false");
		buf_json(out, h->detail);
		buf_byte(out, '}');
	}
	buf_byte(out, ']');
	if (more != NULL)
		more(out);
	buf_text(out, "}\n");
}
