/*
 * metrics.c
 *	  Named counters, gauges and histograms in Prometheus' text format.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "metrics.h"

static const uint64_t bounds_us[METRIC_BUCKETS] = {
	100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000,
	1000000, 2500000, 5000000, 10000000, 30000000, 60000000
};

#define WRITERS 4

static void (*writers[WRITERS]) (struct buf *out);
static int	nwriters;
static struct metric *first;
static struct metric **last = &first;

static bool
same_text(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static struct metric *
find_or_create(enum metric_kind kind, const char *name, const char *labels, const char *help)
{
	struct metric *metric;

	for (metric = first; metric != NULL; metric = metric->next)
		if (strcmp(metric->name, name) == 0 && same_text(metric->labels, labels))
			return metric;
	metric = xcalloc(1, sizeof(*metric));
	metric->kind = kind;
	metric->name = name;
	metric->labels = labels != NULL ? xstrdup(labels) : NULL;
	metric->help = help;
	*last = metric;
	last = &metric->next;
	return metric;
}

struct metric *
metric_counter(const char *name, const char *labels, const char *help)
{
	return find_or_create(METRIC_COUNTER, name, labels, help);
}

struct metric *
metric_gauge(const char *name, const char *labels, const char *help)
{
	return find_or_create(METRIC_GAUGE, name, labels, help);
}

struct metric *
metric_gauge_millis(const char *name, const char *labels, const char *help)
{
	return find_or_create(METRIC_GAUGE_MILLIS, name, labels, help);
}

struct metric *
metric_histogram(const char *name, const char *labels, const char *help)
{
	return find_or_create(METRIC_HISTOGRAM, name, labels, help);
}

void
metric_observe(struct metric *metric, uint64_t micros)
{
	int			i = 0;

	while (i < METRIC_BUCKETS && micros > bounds_us[i])
		i++;
	metric->buckets[i]++;
	metric->value++;
	metric->sum_us += micros;
}

static void
write_histogram(const struct metric *m, struct buf *out)
{
	const char *labels = m->labels != NULL ? m->labels : "";
	const char *comma = m->labels != NULL ? "," : "";
	uint64_t	below = 0;

	for (int i = 0; i < METRIC_BUCKETS; i++)
	{
		below += m->buckets[i];
		buf_printf(out, "%s_bucket{%s%sle=\"%g\"} %" PRIu64 "\n", m->name, labels, comma,
				   (double) bounds_us[i] / 1e6, below);
	}
	buf_printf(out, "%s_bucket{%s%sle=\"+Inf\"} %" PRId64 "\n", m->name, labels, comma, m->value);
	buf_printf(out, m->labels != NULL ? "%s_sum{%s} %.6f\n" : "%s_sum%s %.6f\n", m->name, labels,
			   (double) m->sum_us / 1e6);
	buf_printf(out, m->labels != NULL ? "%s_count{%s} %" PRId64 "\n" : "%s_count%s %" PRId64 "\n",
			   m->name, labels, m->value);
}

static void
write_one(const struct metric *m, struct buf *out)
{
	if (m->kind == METRIC_HISTOGRAM)
		write_histogram(m, out);
	else if (m->value != METRIC_GONE)
	{
		const char *form = m->labels != NULL ? "%s{%s} " : "%s%s ";

		buf_printf(out, form, m->name, m->labels != NULL ? m->labels : "");
		if (m->kind == METRIC_GAUGE_MILLIS)
			buf_printf(out, "%.15g\n", (double) m->value / 1000);
		else
			buf_printf(out, "%" PRId64 "\n", m->value);
	}
}

/* The first metric of its name writes all of that name. */
static bool
is_first_of_name(const struct metric *metric)
{
	const struct metric *m = first;

	while (strcmp(m->name, metric->name) != 0)
		m = m->next;
	return m == metric;
}

void
metrics_also(void (*write) (struct buf *out))
{
	if (nwriters == WRITERS)
		abort();
	writers[nwriters++] = write;
}

void
metric_head(struct buf *out, enum metric_kind kind, const char *name, const char *help)
{
	static const char *const kinds[] = {"counter", "gauge", "gauge", "histogram"};

	buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kinds[kind]);
}

void
metric_label(struct buf *out, const char *value)
{
	buf_byte(out, '"');
	for (; *value != '\0'; value++)
	{
		if (*value == '\n')
			buf_text(out, "\\n");
		else
		{
			if (*value == '"' || *value == '\\')
				buf_byte(out, '\\');
			buf_byte(out, (uint8_t) *value);
		}
	}
	buf_byte(out, '"');
}

void
metrics_write(struct buf *out)
{
	for (const struct metric *m = first; m != NULL; m = m->next)
	{
		if (!is_first_of_name(m))
			continue;
		metric_head(out, m->kind, m->name, m->help);
		for (const struct metric *same = m; same != NULL; same = same->next)
			if (strcmp(same->name, m->name) == 0)
				write_one(same, out);
	}
	for (int i = 0; i < nwriters; i++)
		writers[i] (out);
}
