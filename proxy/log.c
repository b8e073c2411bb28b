/*
 * log.c
 *	  One line for each event, on standard error.
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "log.h"
#include "utf8.h"

/* A pipe takes so much at once (PIPE_BUF). */
#define LINE_MAX_BYTES	4096

/* A message as it was written; of the others what they are once they are escaped. */
#define MESSAGE_BYTES	1024
#define SOURCE_BYTES	1700	/* "workflow/step instance", with names of 200 characters */
#define FIELD_BYTES		64

#define GATE_LINES		10
#define GATE_MS			10000

static enum log_level threshold = LOG_LEVEL_INFO;
static enum log_format line_format = LOG_FORMAT_TEXT;

void
log_setup(enum log_level level, enum log_format format)
{
	threshold = level;
	line_format = format;
}

bool
log_wanted(enum log_level level)
{
	return level >= threshold;
}

/*
 * Escape what is not a whole character of UTF-8, or would break the line: control
 * characters, and in JSON what its strings may not hold. Returns the bytes of text that it
 * stands for; *out becomes the escape, "" when those bytes may stay as they are.
 */
static size_t
escape(const char *text, size_t left, char out[8])
{
	const uint8_t *p = (const uint8_t *) text;
	bool		json = line_format == LOG_FORMAT_JSON;
	size_t		n = utf8_sequence(p, left);

	out[0] = '\0';
	if (n == 0)
	{
		snprintf(out, 8, json ? "\\ufffd" : "\\x%02x", p[0]);
		return 1;
	}
	if (p[0] < 0x20 || p[0] == 0x7f)
		snprintf(out, 8, json ? "\\u%04x" : "\\x%02x", p[0]);
	else if (n == 2 && p[0] == 0xc2 && p[1] < 0xa0)
		snprintf(out, 8, "\\u%04x", p[1]);
	else if (json && (p[0] == '"' || p[0] == '\\'))
		snprintf(out, 8, "\\%c", p[0]);
	return n;
}

/* A line, or a part of one, with an end that nothing is written behind. */
struct line
{
	char		text[LINE_MAX_BYTES];
	size_t		len;
};

/* Append text until it ends or the line has `upto` bytes; neither characters nor escapes are cut. */
static void
put(struct line *line, size_t upto, const char *text)
{
	size_t		left = strlen(text);

	while (left > 0)
	{
		char		escaped[8];
		size_t		taken = escape(text, left, escaped);
		size_t		n = *escaped != '\0' ? strlen(escaped) : taken;

		if (line->len + n > upto)
			return;
		memcpy(line->text + line->len, *escaped != '\0' ? escaped : text, n);
		line->len += n;
		text += taken;
		left -= taken;
	}
}

/* Append what is known to fit, as it is. */
static void
put_own(struct line *line, const char *fmt,...)
			__attribute__((format(printf, 2, 3)));

static void
put_own(struct line *line, const char *fmt,...)
{
	size_t		room = sizeof(line->text) - line->len;
	va_list		args;
	int			n;

	va_start(args, fmt);
	n = vsnprintf(line->text + line->len, room, fmt, args);
	va_end(args);
	line->len += n < 0 ? 0 : (size_t) n < room ? (size_t) n : room - 1;
}

static void
put_field(struct line *line, const char *name, const char *value)
{
	if (value == NULL || *value == '\0')
		return;
	put_own(line, ",\"%s\":\"", name);
	put(line, line->len + FIELD_BYTES, value);
	put_own(line, "\"");
}

/* By the convention of log.h. */
static void
put_shard(struct line *line, const char *message)
{
	static const char word[] = "shard ";
	const char *digits = message + sizeof(word) - 1;

	if (strncmp(message, word, sizeof(word) - 1) == 0 && isdigit((unsigned char) *digits))
		put_own(line, ",\"shard\":%ld", strtol(digits, NULL, 10));
}

static void
write_line(enum log_level level, const char *source, const struct log_facts *facts, const char *message)
{
	static const char *const names[] = {"debug", "info", "warn", "error"};
	static const char *const padded[] = {"DEBUG", "INFO ", "WARN ", "ERROR"};
	bool		json = line_format == LOG_FORMAT_JSON;
	struct line line = {.len = 0};
	char		stamp[32];
	struct timespec now;
	struct tm	utc;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &utc);
	put_own(&line, json ? "{\"time\":\"%s.%03ldZ\",\"level\":\"%s\",\"source\":\"" : "%s.%03ldZ %s ", stamp,
			now.tv_nsec / 1000000, json ? names[level] : padded[level]);
	put(&line, line.len + SOURCE_BYTES, source);
	if (json)
	{
		put_own(&line, "\"");
		put_shard(&line, message);
		put_field(&line, "sqlstate", facts->sqlstate);
		put_field(&line, "ref", facts->ref);
		put_own(&line, ",\"message\":\"");
	}
	else
		put_own(&line, ": ");
	put(&line, sizeof(line.text) - sizeof("\"}\n"), message);
	put_own(&line, json ? "\"}\n" : "\n");

	/* One write keeps lines of several processes on one pipe whole. */
	while (write(STDERR_FILENO, line.text, line.len) < 0 && errno == EINTR)
		;
}

void
log_line(enum log_level level, const char *source, const char *fmt,...)
{
	char		message[MESSAGE_BYTES + 1];
	va_list		args;

	if (!log_wanted(level))
		return;
	va_start(args, fmt);
	utf8_vformat(message, sizeof(message), fmt, args);
	va_end(args);
	write_line(level, source, &(const struct log_facts) {0}, message);
}

void
log_with(enum log_level level, const char *source, const struct log_facts *facts, const char *fmt,...)
{
	char		message[MESSAGE_BYTES + 1];
	va_list		args;

	if (!log_wanted(level))
		return;
	va_start(args, fmt);
	utf8_vformat(message, sizeof(message), fmt, args);
	va_end(args);
	write_line(level, source, facts, message);
}

bool
log_gate_open(struct log_gate *gate)
{
	struct timespec now;
	uint64_t	ms;

	clock_gettime(CLOCK_MONOTONIC, &now);
	ms = (uint64_t) now.tv_sec * 1000 + (uint64_t) now.tv_nsec / 1000000;
	if (ms - gate->since_ms >= GATE_MS)
	{
		if (gate->held > 0)
			log_line(LOG_LEVEL_WARN, "log", "%u similar lines were not shown", gate->held);
		gate->since_ms = ms;
		gate->passed = 0;
		gate->held = 0;
	}
	if (gate->passed < GATE_LINES)
	{
		gate->passed++;
		return true;
	}
	gate->held++;
	return false;
}

void
log_ref(char ref[9])
{
	uint32_t	r;

	if (getrandom(&r, sizeof(r), 0) != sizeof(r))
		r = (uint32_t) time(NULL);
	snprintf(ref, 9, "%08x", r);
}
