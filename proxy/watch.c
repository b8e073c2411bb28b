/*
 * watch.c
 *	  What /metrics shows of the shards, and the warning of queues that wait.
 *
 * Every proxy asks and shows; the one that leads tells of a queue whose oldest ready
 * task waits for longer than WIGGLE_QUEUE_LAG_WARN_MILLIS, once, with what home knows of
 * who polls it, and once that it is over.
 */
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "config.h"
#include "drain.h"
#include "log.h"
#include "loop.h"
#include "member.h"
#include "metrics.h"
#include "roster.h"
#include "shard.h"
#include "watch.h"

#define SLOTS			64
#define KEPT_INTERVALS	3
#define PATIENCE_MS		5000

/* A number that the question brings, by name, and how it is shown. */
struct family
{
	const char *metric;			/* WATCH_METRIC */
	enum metric_kind kind;
	const char *name;
	const char *label;			/* its name, beside shard; NULL = none */
	const char *help;
};

#define FAMILY(metric, kind, name, label, help) {metric, kind, name, label, help}

static const struct family families[] = {
	FAMILY("queue_ready", METRIC_GAUGE, "wiggle_shard_queue_ready_tasks", "queue",
		   "Ready tasks of a queue, counted up to 10000."),
	FAMILY("queue_oldest", METRIC_GAUGE, "wiggle_shard_queue_oldest_seconds", "queue",
		   "How long the oldest of them has waited."),
	FAMILY("clock_running", METRIC_GAUGE, "wiggle_shard_clock_running", NULL, "1 while the shard's clock worker runs."),
	FAMILY("clock_lag", METRIC_GAUGE, "wiggle_shard_clock_lag_seconds", "duty",
		   "How long the oldest timer or schedule is overdue."),
	FAMILY("clock_passes", METRIC_COUNTER, "wiggle_shard_clock_passes_total", "duty",
		   "Passes of the clock worker's duties since the server's start."),
	FAMILY("clock_errors", METRIC_COUNTER, "wiggle_shard_clock_errors_total", NULL, "Those that raised an error."),
	FAMILY("oldest_xmin_age", METRIC_GAUGE, "wiggle_shard_oldest_xmin_age_transactions", NULL,
		   "Transactions since the oldest snapshot, slot or prepared transaction: what it keeps from being vacuumed."),
	FAMILY("oldest_snapshot", METRIC_GAUGE, "wiggle_shard_oldest_snapshot_seconds", NULL,
		   "How long the oldest transaction with a snapshot has run."),
	FAMILY("table_rows", METRIC_GAUGE, "wiggle_shard_table_rows", "table",
		   "Live rows of a busy table, by the statistics."),
	FAMILY("table_dead", METRIC_GAUGE, "wiggle_shard_table_dead_rows", "table", "Its dead rows."),
	FAMILY("outbox_rows", METRIC_GAUGE, "wiggle_shard_outbox_instances", NULL,
		   "Instances of schedules that wait to be started on another shard, counted up to 10000."),
	FAMILY("outbox_oldest", METRIC_GAUGE, "wiggle_shard_outbox_oldest_seconds", NULL,
		   "How long the oldest of them has waited."),
};

struct number
{
	const struct family *family;
	char	   *label;			/* "" = none */
	double		value;
};

/* A queue whose oldest task waits for too long, from when it was noticed. */
struct lag
{
	struct question question;	/* first: home's answer, who polls */
	struct watch *watch;
	char	   *queue;
	double		seconds;
	bool		asking;
	bool		over;			/* while home was asked */
	struct lag *next;
};

struct watch
{
	struct question question;	/* first */
	int			slot;
	bool		asking;
	uint64_t	heard_at;		/* 0 = never */
	struct number *numbers;
	int			n;
	struct lag *lags;
};

static struct watch watches[SLOTS];
static struct deadline next_round;
static struct metric *workers;

static int
shard_of(const struct watch *watch)
{
	return shard_by_slot(watch->slot)->entry->id;
}

/* ---- queues that wait ---- */

static void
free_lag(struct lag *lag)
{
	free(lag->queue);
	free(lag);
}

static void
tell_lag(const struct lag *lag, const PGresult *nodes)
{
	int			polling = 0;

	for (int row = 0; nodes != NULL && row < PQntuples(nodes); row++)
	{
		json_t	   *polls = json_loads(PQgetvalue(nodes, row, NODE_POLLS), 0, NULL);

		polling += strcmp(PQgetvalue(nodes, row, NODE_ALIVE), "t") == 0 && roster_takes(polls, lag->queue);
		json_decref(polls);
	}
	log_warn("watch", "shard %d: the oldest ready task of queue '%s' has waited for %.0f s (WIGGLE_QUEUE_LAG_WARN_MILLIS);"
			 " %s", shard_of(lag->watch), lag->queue, lag->seconds,
			 nodes == NULL ? "home cannot be asked who polls it" :
			 polling == 0 ? "no worker polls it" : "workers poll it: they are too few, or slow");
}

static void
tell_over(const struct lag *lag)
{
	log_info("watch", "shard %d: no task of queue '%s' waits for so long any more", shard_of(lag->watch), lag->queue);
}

static void
nodes_known(struct question *question, const PGresult *result, const struct refusal *refusal)
{
	struct lag *lag = (struct lag *) question;

	(void) refusal;
	lag->asking = false;
	tell_lag(lag, result);
	if (!lag->over)
		return;
	tell_over(lag);
	free_lag(lag);
}

static void
begin_lag(struct watch *watch, const char *queue, double seconds)
{
	struct lag *lag = xcalloc(1, sizeof(*lag));

	lag->watch = watch;
	lag->queue = xstrdup(queue);
	lag->seconds = seconds;
	lag->next = watch->lags;
	watch->lags = lag;
	lag->question = (struct question) {.statement = SQL_NODES, .unawaited = true, .done = nodes_known};
	lag->asking = shard_ask(shard_at(shard_topology()->home), &lag->question) == SUBMIT_OK;
	if (!lag->asking)
		tell_lag(lag, NULL);
}

static bool
is_late(const struct number *number)
{
	return config.queue_lag_warn_ms > 0 && strcmp(number->family->metric, "queue_oldest") == 0 &&
		number->value * 1000 > (double) config.queue_lag_warn_ms;
}

static void
judge_queues(struct watch *watch)
{
	struct lag **at = &watch->lags;

	while (*at != NULL)
	{
		struct lag *lag = *at;
		bool		late = false;

		for (int i = 0; i < watch->n; i++)
			late = late || (is_late(&watch->numbers[i]) && strcmp(watch->numbers[i].label, lag->queue) == 0);
		if (late)
		{
			at = &lag->next;
			continue;
		}
		*at = lag->next;
		lag->over = true;
		if (lag->asking)
			continue;
		tell_over(lag);
		free_lag(lag);
	}
	for (int i = 0; i < watch->n && member_leads(); i++)
	{
		const struct number *number = &watch->numbers[i];
		const struct lag *lag = watch->lags;

		while (lag != NULL && strcmp(lag->queue, number->label) != 0)
			lag = lag->next;
		if (lag == NULL && is_late(number))
			begin_lag(watch, number->label, number->value);
	}
}

/* ---- the question ---- */

static void
forget_numbers(struct watch *watch)
{
	for (int i = 0; i < watch->n; i++)
		free(watch->numbers[i].label);
	free(watch->numbers);
	watch->numbers = NULL;
	watch->n = 0;
}

static const struct family *
family_of(const char *metric)
{
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		if (strcmp(families[i].metric, metric) == 0)
			return &families[i];
	return NULL;
}

static void
heard(struct question *question, const PGresult *result, const struct refusal *refusal)
{
	struct watch *watch = (struct watch *) question;

	watch->asking = false;
	if (result == NULL)
	{
		log_debug("watch", "shard %d: not heard: %s", shard_of(watch), refusal->message);
		return;
	}
	forget_numbers(watch);
	watch->heard_at = loop_now();
	watch->numbers = xcalloc((size_t) PQntuples(result) + 1, sizeof(*watch->numbers));
	for (int row = 0; row < PQntuples(result); row++)
	{
		const struct family *family = family_of(PQgetvalue(result, row, WATCH_METRIC));

		if (family != NULL)
			watch->numbers[watch->n++] = (struct number) {
				family, xstrdup(PQgetvalue(result, row, WATCH_LABEL)),
				strtod(PQgetvalue(result, row, WATCH_VALUE), NULL)
			};
	}
	judge_queues(watch);
}

static void
ask_all(struct deadline *deadline)
{
	for (int slot = 0; slot < shard_slots(); slot++)
	{
		struct watch *watch = &watches[slot];
		struct shard *shard = shard_by_slot(slot);

		watch->slot = slot;
		if (watch->asking || shard_retired(shard))
			continue;
		watch->question = (struct question) {.statement = SQL_WATCH, .unawaited = true, .done = heard};
		watch->asking = shard_ask(shard, &watch->question) == SUBMIT_OK;
	}
	metric_set(workers, roster_count());
	deadline_set(deadline, loop_now() + (uint64_t) config.queue_lag_check_ms, ask_all);
}

/* ---- /metrics ---- */

static bool
is_fresh(const struct watch *watch)
{
	return watch->heard_at != 0 && shard_usable(shard_by_slot(watch->slot)) &&
		loop_now() - watch->heard_at <= KEPT_INTERVALS * (uint64_t) config.queue_lag_check_ms + PATIENCE_MS;
}

static void
write_family(const struct family *family, struct buf *out)
{
	bool		headed = false;

	for (int slot = 0; slot < shard_slots(); slot++)
	{
		const struct watch *watch = &watches[slot];

		for (int i = 0; i < watch->n && is_fresh(watch); i++)
		{
			const struct number *number = &watch->numbers[i];

			if (number->family != family)
				continue;
			if (!headed)
				metric_head(out, family->kind, family->name, family->help);
			headed = true;
			buf_printf(out, "%s{shard=\"%d\"", family->name, shard_of(watch));
			if (family->label != NULL)
			{
				buf_printf(out, ",%s=", family->label);
				metric_label(out, number->label);
			}
			buf_printf(out, "} %.15g\n", number->value);
		}
	}
}

static void
write_shards(struct buf *out)
{
	static const struct family up =
		FAMILY("", METRIC_GAUGE, "wiggle_shard_up", NULL, "1 while the shard is connected and tells what is here of it.");

	metric_head(out, up.kind, up.name, up.help);
	for (int slot = 0; slot < shard_slots(); slot++)
		if (!shard_retired(shard_by_slot(slot)))
			buf_printf(out, "%s{shard=\"%d\"} %d\n", up.name, shard_by_slot(slot)->entry->id, is_fresh(&watches[slot]));
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		write_family(&families[i], out);
}

/* ---- the end ---- */

static void
begin_drain(void)
{
	deadline_clear(&next_round);
}

static void
stop(void)
{
	deadline_clear(&next_round);
	for (int slot = 0; slot < SLOTS; slot++)
		forget_numbers(&watches[slot]);
}

void
watch_start(void)
{
	static const struct drain_hook hook = {.name = "watch", .begin = begin_drain, .stop = stop};

	drain_register(&hook);
	metrics_also(write_shards);
	workers = metric_gauge("wiggle_proxy_workers", NULL, "Workers that have polled lately (WIGGLE_POLLER_TTL_MILLIS).");
	deadline_set(&next_round, loop_now() + 100, ask_all);
}
