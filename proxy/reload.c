/*
 * reload.c
 *	  The topology document, read again while the process runs.
 *
 * The file is looked at by name every second: notifications of the file system say
 * nothing about a link two levels up, which is what a mounted ConfigMap changes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "accord.h"
#include "drain.h"
#include "health.h"
#include "log.h"
#include "loop.h"
#include "member.h"
#include "metrics.h"
#include "reload.h"
#include "shard.h"
#include "shards.h"
#include "topology_merge.h"

#define LOOK_MS		1000

/* Whoever writes in place is given this time to come to an end. */
#define SETTLE_MS	200

#define HOME_FIRST	"; it gives home another url, too: change that alone first"

static struct topology *(*read_document) (struct wig_error *err);
static const char *path;		/* NULL: not in a file */
static uv_fs_poll_t watch;
static struct deadline settled;
static bool is_open;
static bool wanted;				/* once what is being looked at has been decided */
static bool quiet;				/* say nothing when nothing has changed */

static struct topology *candidate;	/* NULL unless it is being asked about */
static struct accord accord;	/* home's, on it */
static bool waits;				/* home does not answer */

static void has_settled(struct deadline *deadline);

static struct health *health;
static struct metric *applied;
static struct metric *refused;
static struct metric *refused_last;
static struct metric *waiting;

static void
refuse(const char *why)
{
	char		detail[640];

	log_error("topology", "the changed document is refused as a whole, and the former one stays in force: %s", why);
	snprintf(detail, sizeof(detail), "the changed document is refused: %s", why);
	health_set(health, true, detail);
	metric_add(refused, 1);
	metric_set(refused_last, 1);
}

static void
apply(struct topology *document)
{
	struct wig_error err = {.message = ""};
	int			changes = 0;

	if (drain_started())
	{
		topology_free(document);
		return;
	}
	if (!shards_replace(document, &changes, &err))
	{
		refuse(err.message);
		return;
	}
	health_set(health, true, "read");
	metric_set(refused_last, 0);
	if (changes > 0)
		metric_add(applied, 1);
	if (changes > 0 || !quiet)
		log_info("topology", "the document has been read again, with %d change(s)", changes);
	member_tell_topology();
}

static void
wait_over(void)
{
	waits = false;
	metric_set(waiting, 0);
}

/* Another one takes its place. False: home is being asked, and may have taken it over already. */
static bool
drop_candidate(void)
{
	if (!accord_cancel(&accord))
		return false;
	topology_free(candidate);
	candidate = NULL;
	wait_over();
	member_hold_topology(false);
	return true;
}

/* ---- home must agree ---- */

static const struct topology *
still_good(struct wig_error *err)
{
	return shards_may_replace(candidate, err) ? candidate : NULL;
}

/* Home is asked where the topology in force has it. */
static bool
home_moves(void)
{
	const struct topology *running = shard_topology();
	const struct topology_shard *home = &running->shards[running->home];
	int			index = topology_find(candidate, home->id);

	return index >= 0 && !topology_same_target(home, &candidate->shards[index]);
}

static void
home_is_away(const char *why)
{
	char		detail[640];

	if (wanted)
	{
		drop_candidate();
		reload_now("it has been asked for meanwhile");
		return;
	}
	snprintf(detail, sizeof(detail), "the changed document waits for home: %s%s", why, home_moves() ? HOME_FIRST : "");
	health_set(health, true, detail);
	metric_set(waiting, 1);
	if (!waits)
		log_warn("topology", "the changed document waits for home, which has to agree and is asked until it answers; the former"
				 " one stays in force: %s%s", why, home_moves() ? HOME_FIRST : "");
	waits = true;
}

/* Home has taken all of it over, or nothing. */
static void
home_has_judged(const char *refusal)
{
	struct topology *document = candidate;

	candidate = NULL;
	if (document == NULL)
		return;					/* the process ends */
	if (waits)
		log_info("topology", "home has answered about the changed document");
	wait_over();
	if (refusal != NULL)
	{
		topology_free(document);
		refuse(refusal);
	}
	else
		apply(document);
	member_hold_topology(false);
	if (wanted)
		reload_now("it has been asked for meanwhile");
}

/* What moves a shard to another state, leaves one out or says anew where instances go. */
static bool
concerns_home(const struct topology *document)
{
	const struct topology *running = shard_topology();

	for (int i = 0; i < running->nshards; i++)
	{
		int			index = topology_find(document, running->shards[i].id);

		if (index < 0 || document->shards[index].state != running->shards[i].state)
			return true;
	}
	for (int i = 0; i < running->ngenerations && i < document->ngenerations; i++)
	{
		if (!topology_same_generation(running, &running->generations[i], document, &document->generations[i]))
			return true;
	}
	for (int i = 0; i < document->nshards; i++)
	{
		if (topology_find(running, document->shards[i].id) < 0 && document->shards[i].state != SHARD_ACTIVE)
			return true;
	}
	return running->ngenerations != document->ngenerations;
}

/* ---- reading ---- */

static void
read_again(void)
{
	static const struct accord_ops ops = {still_good, home_has_judged, home_is_away};
	struct wig_error err = {.message = ""};
	struct topology *document = read_document(&err);
	const struct topology *running = shard_topology();

	wanted = false;
	if (document == NULL)
	{
		refuse(err.message);
		return;
	}
	if (!shards_may_replace(document, &err))
	{
		topology_free(document);
		refuse(err.message);
	}
	else if (!concerns_home(document))
		apply(document);
	else if (!member_hold_topology(true))
	{
		topology_free(document);
		deadline_set(&settled, loop_now() + LOOK_MS, has_settled);
	}
	else
	{
		candidate = document;
		metric_set(refused_last, 0);
		accord_ask(&accord, &ops, document->generations[document->ngenerations - 1].id <
				   running->generations[running->ngenerations - 1].id);
	}
}

void
reload_now(const char *why)
{
	if (drain_started())
		return;
	if (path == NULL)
	{
		log_info("topology", "%s: nothing to read again, since the topology is given by the environment, which does not change"
				 " while the server runs", why);
		return;
	}
	wanted = true;
	if (!is_open || (candidate != NULL && !drop_candidate()))
		return;
	log_info("topology", "%s: reading %s", why, path);
	quiet = false;
	read_again();
}

static void
has_settled(struct deadline *deadline)
{
	(void) deadline;
	reload_now("the document has changed");
}

static void
looked(uv_fs_poll_t *handle, int status, const uv_stat_t *was, const uv_stat_t *is)
{
	(void) handle;
	(void) was;
	(void) is;
	if (status < 0)
		log_warn("topology", "%s cannot be looked at (%s); what was read from it stays in force", path, uv_strerror(status));
	else
		deadline_set(&settled, loop_now() + SETTLE_MS, has_settled);
}

void
reload_open(void)
{
	is_open = true;
	if (path == NULL || drain_started())
		return;
	quiet = !wanted;
	read_again();
}

/* ---- from start to end ---- */

static void
stop(void)
{
	deadline_clear(&settled);
	accord_cancel(&accord);
	topology_free(candidate);
	candidate = NULL;
	uv_fs_poll_stop(&watch);
	uv_close((uv_handle_t *) &watch, NULL);
}

void
reload_start(const char *document, struct topology *(*read) (struct wig_error *err))
{
	static const struct drain_hook hook = {.name = "reload", .stop = stop};

	read_document = read;
	applied = metric_counter("wiggle_proxy_topology_reloads_total", "outcome=\"applied\"",
							 "Changed topology documents read while running.");
	refused = metric_counter("wiggle_proxy_topology_reloads_total", "outcome=\"refused\"",
							 "Changed topology documents read while running.");
	refused_last = metric_gauge("wiggle_proxy_topology_refused", NULL,
								"1 while the document as it is now is refused and a former one in force.");
	waiting = metric_gauge("wiggle_proxy_topology_waiting", NULL,
						   "1 while the document as it is now waits for home to agree and a former one is in force.");
	if (document == NULL || *document == '\0' || document[strspn(document, " \t\r\n")] == '{')
		return;
	path = document;
	health = health_add("topology", HEALTH_TOLD);
	health_set(health, true, "read");
	uv_fs_poll_init(loop_get(), &watch);
	uv_fs_poll_start(&watch, looked, path, LOOK_MS);
	uv_unref((uv_handle_t *) &watch);
	drain_register(&hook);
}
