/*
 * pressure.c
 *	  Is this process short of memory?
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "drain.h"
#include "log.h"
#include "loop.h"
#include "metrics.h"
#include "pressure.h"
#include "random.h"

#define LOOK_MS 1000

static size_t held[PRESSURE_KINDS];
static int64_t limit;			/* of the process's memory; 0 = none is known */
static int64_t resident;
static bool told;
static struct deadline next_look;
static struct metric *resident_gauge;
static struct metric *starts;

/* The number that a file of the kernel begins with, behind some words; -1 for none. */
static int64_t
read_number(const char *path, int skip)
{
	char		text[128];
	char	   *at = text;
	int			fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t		n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	char	   *end;
	long long	number;

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	for (; skip > 0; skip--)
		at += strcspn(at, " "), at += *at == ' ';
	number = strtoll(at, &end, 10);
	return end == at ? -1 : number;
}

static int64_t
find_limit(void)
{
	static const char *const paths[] = {
		"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"
	};

	if (config.memory_limit_bytes > 0)
		return config.memory_limit_bytes;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
	{
		int64_t		number = read_number(paths[i], 0);

		/* without a bound version 1 gives a number near the largest */
		if (number > 0 && number < INT64_C(1) << 50)
			return number;
	}
	return 0;
}

static bool
is_over(int64_t bytes, int64_t bound)
{
	return bound > 0 && (double) bytes * 1000 >= (double) bound * (double) config.memory_threshold;
}

static bool
under_pressure(void)
{
	return is_over((int64_t) held[PRESSURE_REQUESTS], config.max_request_bytes) ||
		is_over((int64_t) held[PRESSURE_UNSENT], config.max_unsent_bytes) || is_over(resident, limit);
}

static void
look(struct deadline *deadline)
{
	int64_t		pages = read_number("/proc/self/statm", 1);
	bool		pressure;

	resident = pages < 0 ? 0 : pages * sysconf(_SC_PAGESIZE);
	metric_set(resident_gauge, resident);
	pressure = config.memory_shedding && under_pressure();
	if (pressure != told)
		log_line(pressure ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "pressure", pressure
				 ? "short of memory (%" PRId64 " of %" PRId64 " bytes, requests %zu, unsent replies %zu): polls and starts are sent away"
				 : "enough memory again (%" PRId64 " of %" PRId64 " bytes, requests %zu, unsent replies %zu)",
				 resident, limit, held[PRESSURE_REQUESTS], held[PRESSURE_UNSENT]);
	told = pressure;
	deadline_set(deadline, loop_now() + LOOK_MS, look);
}

void
pressure_held(enum pressure_of of, size_t bytes)
{
	held[of] = bytes;
}

bool
pressure_sheds(void)
{
	return config.memory_shedding && under_pressure() &&
		(int64_t) (random_u64() % 1000) < config.memory_reject_ratio;
}

void
pressure_shed_start(void)
{
	metric_add(starts, 1);
}

int64_t
pressure_pause(int64_t base_ms)
{
	int64_t		most = base_ms < config.memory_retry_jitter_ms ? base_ms : config.memory_retry_jitter_ms;

	return base_ms + (int64_t) (random_u64() % (uint64_t) (most + 1));
}

static void
stop(void)
{
	deadline_clear(&next_look);
}

void
pressure_start(void)
{
	static const struct drain_hook hook = {.name = "pressure", .stop = stop};

	drain_register(&hook);
	limit = find_limit();
	resident_gauge = metric_gauge("wiggle_proxy_resident_bytes", NULL, "Memory that the process has.");
	metric_set(metric_gauge("wiggle_proxy_memory_limit_bytes", NULL,
							"Memory that it may have (WIGGLE_MEMORY_LIMIT_BYTES, or the control group's); 0 = no bound is known."),
			   limit);
	starts = metric_counter("wiggle_proxy_shed_starts_total", NULL,
							"Starts refused: memory is short, or calls queue up at the shard.");
	look(&next_look);
}
