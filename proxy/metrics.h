/*
 * metrics.h
 *	  Named counters, gauges and histograms, shown at /metrics.
 *
 * Every metric is created once (at start, or when a shard or lane appears) and
 * lives as long as the process; callers keep the pointer. One thread uses them:
 * the loop. Names follow Prometheus: wiggle_proxy_<what>_<unit>[_total], and wiggle_shard_…
 * for what a shard has told; units are Prometheus' base units: seconds, bytes.
 */
#ifndef WIGGLE_PROXY_METRICS_H
#define WIGGLE_PROXY_METRICS_H

#include <stdint.h>

#include "buf.h"

enum metric_kind
{
	METRIC_COUNTER,
	METRIC_GAUGE,
	METRIC_GAUGE_MILLIS,		/* set in milliseconds, shown in seconds */
	METRIC_HISTOGRAM			/* of durations: 100 µs … 60 s, shown in seconds */
};

#define METRIC_BUCKETS 18
#define METRIC_GONE INT64_MIN	/* the value of a gauge that is not shown: what it told of has gone */

struct metric
{
	enum metric_kind kind;
	const char *name;
	char	   *labels;			/* "shard=\"0\"" or NULL */
	const char *help;
	int64_t		value;			/* counter and gauge; count of a histogram */
	uint64_t	sum_us;
	uint64_t	buckets[METRIC_BUCKETS + 1];
	struct metric *next;
};

/*
 * Create a metric, or find it when one of this name and these labels exists.
 * name and help must live for ever (literals); labels (NULL or NAME="VALUE" pairs,
 * already escaped) are copied. A label's values come from a small fixed set:
 * never from requests.
 */
extern struct metric *metric_counter(const char *name, const char *labels, const char *help);
extern struct metric *metric_gauge(const char *name, const char *labels, const char *help);
extern struct metric *metric_gauge_millis(const char *name, const char *labels, const char *help);
extern struct metric *metric_histogram(const char *name, const char *labels, const char *help);

static inline void
metric_add(struct metric *metric, int64_t n)
{
	metric->value += n;
}

static inline void
metric_set(struct metric *metric, int64_t n)
{
	metric->value = n;
}

extern void metric_observe(struct metric *metric, uint64_t micros);

/*
 * For numbers whose labels come and go: write adds whole families to each answer, each with
 * metric_head() first. metric_label() writes a label's value with its quotes.
 */
extern void metrics_also(void (*write) (struct buf *out));
extern void metric_head(struct buf *out, enum metric_kind kind, const char *name, const char *help);
extern void metric_label(struct buf *out, const char *value);

/* All of them in the Prometheus text format, metrics of one name together. */
extern void metrics_write(struct buf *out);

#endif							/* WIGGLE_PROXY_METRICS_H */
