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

#define LOOK_MS		1000
#define PATH_BYTES	4096

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

/* The least bound of a control group and those around it; 0 for none. group is cut on the way. */
static int64_t
least_bound(const char *mount, char *group, const char *file)
{
	int64_t		least = 0;

	for (;;)
	{
		char		path[PATH_BYTES];
		char	   *slash;
		int64_t		number;

		snprintf(path, sizeof(path), "%s%s/%s", mount, group, file);
		number = read_number(path, 0);

		/* without a bound version 1 gives a number near the largest */
		if (number > 0 && number < INT64_C(1) << 50 && (least == 0 || number < least))
			least = number;
		slash = strrchr(group, '/');
		if (slash == NULL)
			return least;
		*slash = '\0';
	}
}

/*
 * A line of /proc/self/cgroup is "number:controllers:/group", "0::/group" in version 2.
 * Groups that cannot be seen from here, as in a container, have no file, those around them do.
 */
static int64_t
find_limit(void)
{
	char		line[PATH_BYTES];
	FILE	   *file = config.memory_limit_bytes > 0 ? NULL : fopen("/proc/self/cgroup", "re");
	int64_t		least = config.memory_limit_bytes;

	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
	{
		char	   *controllers = strchr(line, ':');
		char	   *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
		int64_t		bound = 0;

		line[strcspn(line, "\n")] = '\0';
		if (group == NULL)
			continue;
		*group++ = '\0';
		if (controllers[1] == '\0')
			bound = least_bound("/sys/fs/cgroup", group, "memory.max");
		else if (strcmp(controllers + 1, "memory") == 0)
			bound = least_bound("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes");
		if (bound > 0 && (least == 0 || bound < least))
			least = bound;
	}
	if (file != NULL)
		fclose(file);
	return least;
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
