/*
 * own_clock.c
 *	  LD_PRELOAD: the calendar of a whole server, which a test sets while it runs.
 *
 * OWN_CLOCK names a file of eight bytes, the seconds to add. libfaketime does not do for a
 * server: it takes no notice of the file in what the postmaster forks from a signal handler
 * (before PostgreSQL 16 all background workers). The monotonic clock is left alone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static const volatile int64_t *offset;
static int	(*real_clock_gettime) (clockid_t id, struct timespec *now);

__attribute__((constructor))
static void
own_clock_open(void)
{
	const char *path = getenv("OWN_CLOCK");
	int			fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	void	   *page = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);

	if (page == MAP_FAILED)
		abort();
	*(void **) &real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
	offset = page;
}

int
clock_gettime(clockid_t id, struct timespec *now)
{
	int			rc;

	if (offset == NULL)
		own_clock_open();
	rc = real_clock_gettime(id, now);
	if (rc == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		now->tv_sec += *offset;
	return rc;
}

int
gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	struct timespec precise;
	int			rc = clock_gettime(CLOCK_REALTIME, &precise);

	(void) zone;
	now->tv_sec = precise.tv_sec;
	now->tv_usec = precise.tv_nsec / 1000;
	return rc;
}

time_t
time(time_t *now)
{
	struct timespec precise;

	clock_gettime(CLOCK_REALTIME, &precise);
	if (now != NULL)
		*now = precise.tv_sec;
	return precise.tv_sec;
}
