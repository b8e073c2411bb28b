/*
 * log.c
 *	  One line for each event, on standard error.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "log.h"

#define LINE_MAX_BYTES	1024
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

/* Copy a message, escaping what would break the line (or the JSON string). */
static size_t
escape(char *out, size_t cap, const char *text, bool json)
{
	size_t		n = 0;

	for (; *text != '\0' && n + 7 < cap; text++)
	{
		unsigned char c = (unsigned char) *text;

		if (json && (c == '"' || c == '\\'))
		{
			out[n++] = '\\';
			out[n++] = (char) c;
		}
		else if (c < 0x20 || c == 0x7f)
			n += (size_t) snprintf(out + n, cap - n, json ? "\\u%04x" : "\\x%02x", c);
		else
			out[n++] = (char) c;
	}
	out[n] = '\0';
	return n;
}

void
log_line(enum log_level level, const char *source, const char *fmt,...)
{
	static const char *const names[] = {"debug", "info", "warn", "error"};
	static const char *const padded[] = {"DEBUG", "INFO ", "WARN ", "ERROR"};
	char		message[LINE_MAX_BYTES];
	char		clean[LINE_MAX_BYTES + 512];
	char		line[sizeof(clean) + 256];
	char		stamp[32];
	struct timespec now;
	struct tm	utc;
	va_list		args;
	int			n;

	if (!log_wanted(level))
		return;
	va_start(args, fmt);
	vsnprintf(message, sizeof(message), fmt, args);
	va_end(args);
	escape(clean, sizeof(clean), message, line_format == LOG_FORMAT_JSON);

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &utc);
	n = snprintf(line, sizeof(line),
				 line_format == LOG_FORMAT_JSON
				 ? "{\"time\":\"%s.%03ldZ\",\"level\":\"%s\",\"source\":\"%s\",\"message\":\"%s\"}\n"
				 : "%s.%03ldZ %s %s: %s\n",
				 stamp, now.tv_nsec / 1000000,
				 line_format == LOG_FORMAT_JSON ? names[level] : padded[level], source, clean);

	/* One write keeps lines of several processes on one pipe whole. */
	while (write(STDERR_FILENO, line, (size_t) n) < 0 && errno == EINTR)
		;
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
