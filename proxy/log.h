/*
 * log.h
 *	  One line for each event, on standard error.
 *
 * text:  2026-10-01T12:00:00.123Z INFO  lane: shard 0: connected
 * json:  {"time":"…","level":"info","source":"lane","shard":0,"message":"shard 0: connected"}
 *
 * Messages never hold contexts, results, passwords or SQL with values. They are
 * cut at 1 KiB, between characters. Source and message may hold any bytes: control
 * characters and what is not UTF-8 are escaped, so that one event stays one line, of
 * 4 KiB at most.
 *
 * A message about a shard begins with "shard" and its id: in JSON that is a field, too.
 */
#ifndef WIGGLE_PROXY_LOG_H
#define WIGGLE_PROXY_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum log_level
{
	LOG_LEVEL_DEBUG,
	LOG_LEVEL_INFO,
	LOG_LEVEL_WARN,
	LOG_LEVEL_ERROR
};

enum log_format
{
	LOG_FORMAT_TEXT,
	LOG_FORMAT_JSON
};

/* Before this call: info and above, as text. */
extern void log_setup(enum log_level level, enum log_format format);
extern bool log_wanted(enum log_level level);

/* source is the part that speaks ("listener", "lane", "topology"), or the step of a worker. */
extern void log_line(enum log_level level, const char *source, const char *fmt,...)
			__attribute__((format(printf, 3, 4)));

/* What the message says and JSON has as fields beside it; NULL and "": none. */
struct log_facts
{
	const char *sqlstate;
	const char *ref;			/* of log_ref() */
};
extern void log_with(enum log_level level, const char *source, const struct log_facts *facts,
					 const char *fmt,...)
			__attribute__((format(printf, 4, 5)));

#define log_debug(source, ...) \
	do { if (log_wanted(LOG_LEVEL_DEBUG)) log_line(LOG_LEVEL_DEBUG, source, __VA_ARGS__); } while (0)
#define log_info(source, ...)	log_line(LOG_LEVEL_INFO, source, __VA_ARGS__)
#define log_warn(source, ...)	log_line(LOG_LEVEL_WARN, source, __VA_ARGS__)
#define log_error(source, ...)	log_line(LOG_LEVEL_ERROR, source, __VA_ARGS__)

/*
 * A gate for lines that a peer can provoke at will: true for the first ten of
 * each ten seconds. Zero-initialised, one static for each place.
 */
struct log_gate
{
	uint64_t	since_ms;
	unsigned	passed;
	unsigned	held;			/* lines kept back since the last that passed */
};
extern bool log_gate_open(struct log_gate *gate);

/*
 * A new reference of 8 hex digits that goes both into an answer ("internal error
 * (ref 1f0c22d9)") and into the log line with the cause. Terminated.
 */
extern void log_ref(char ref[9]);

#endif							/* WIGGLE_PROXY_LOG_H */
