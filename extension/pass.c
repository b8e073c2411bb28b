/*
 * pass.c
 *	  One bounded pass over due timers, one over expired leases.
 */
#include "wiggle.h"

#include "miscadmin.h"
#include "utils/timestamp.h"

#include "clock.h"
#include "expire.h"
#include "guc.h"
#include "lease.h"
#include "leftover.h"
#include "pass.h"
#include "resting.h"
#include "retention.h"
#include "schedule.h"
#include "timer.h"

/* An instance whose lock somebody holds is looked at again after this. */
#define BUSY_RETRY_USECS	(20 * 1000)
typedef struct ClockItem
{
	bool		is_timer;
	WigTimer	timer;			/* due_at is not used for a lease */
	WigExpiry	outcome;
} ClockItem;

static WigExpiry
move_item(WigWork *work, const ClockItem *item)
{
	if (item->is_timer)
		return wig_fire_timer(work, &item->timer);
	return wig_expire_lease(work, item->timer.instance, item->timer.n);
}

/* A unit of work of its own for one item, in a subtransaction. */
static void
attempt_item(void *arg)
{
	ClockItem  *item = arg;
	WigWork    *work = wig_work_begin(false);

	item->outcome = move_item(work, item);
	wig_work_end(work);
}

/* Where nothing can be moved, because somebody holds the locks of a whole batch,
 * the next pass reaches further: what lies behind must not wait for them. */
static int
batch_size(const WigDuty *duty)
{
	return wig_clock_batch << Min(duty->stuck, 10);
}

static const char *
item_key(const ClockItem *item)
{
	return psprintf("%c " INT64_FORMAT " %d", item->is_timer ? 't' : 'l', item->timer.instance,
					item->timer.n);
}

/* Each item on its own: one that raises an error rests, and the others go on. The
 * time until which it does, or WIG_NEVER. */
static TimestampTz
move_carefully(ClockItem *item)
{
	const char *key = item_key(item);
	TimestampTz now = wig_now();
	TimestampTz until = wig_resting_until(key, now);

	if (until > now)
		return until;
	return wig_work_attempt(attempt_item, item) ? WIG_NEVER : wig_rest(key, now);
}

/*
 * Move the items; *first_left is the index of the first that could not be moved
 * (n: none), *again when to look at such items again. True when some moved.
 */
static bool
move_items(WigDuty *duty, ClockItem *items, int n, int *first_left, TimestampTz *again)
{
	bool		careful = duty->careful;
	WigWork    *work = careful ? NULL : wig_work_begin(false);
	int			nleft = 0;

	*first_left = n;
	*again = WIG_NEVER;
	for (int i = 0; i < n; i++)
	{
		TimestampTz left = WIG_NEVER;

		CHECK_FOR_INTERRUPTS();
		if (careful)
			left = move_carefully(&items[i]);
		else
		{
			wig_work_tick(work);
			items[i].outcome = move_item(work, &items[i]);
		}
		if (items[i].outcome == WIG_EXPIRY_BUSY)
			left = wig_now() + BUSY_RETRY_USECS;
		if (left == WIG_NEVER)
			continue;
		nleft++;
		*first_left = Min(*first_left, i);
		*again = Min(*again, left);
	}
	if (work != NULL)
		wig_work_end(work);
	duty->stuck = nleft < n || n == 0 ? 0 : duty->stuck + 1;
	return nleft < n;
}

/* When to look again. What lies behind a full batch that could not be moved waits
 * for the batch, which is a larger one then; what is due later does not. */
static TimestampTz
next_look(bool moved, TimestampTz again, TimestampTz next, TimestampTz now)
{
	return moved || next > now ? Min(again, next) : again;
}

static bool
pass_timers(WigDuty *duty, TimestampTz now)
{
	int			max = batch_size(duty);
	WigTimer   *due = palloc(sizeof(WigTimer) * max);
	ClockItem  *items = palloc(sizeof(ClockItem) * max);
	WigStore   *store = wig_store_open(false);
	TimestampTz next;
	TimestampTz again;
	bool		moved;
	int			left;
	int			n = wig_timer_scan_due(store, duty->from, now, max, due, &next);

	wig_store_close(store);
	for (int i = 0; i < n; i++)
		items[i] = (ClockItem) {true, due[i], WIG_EXPIRY_DONE};
	moved = move_items(duty, items, n, &left, &again);

	/* Not before the first timer that is still there, however old it is. */
	duty->from = left < n ? due[left].due_at : next;
	if (duty->from == WIG_NEVER)
		duty->from = now;
	duty->next = next_look(moved, again, next, now);
	return n == max && moved;
}

static bool
pass_leases(WigDuty *duty, TimestampTz now)
{
	int			max = batch_size(duty);
	int64	   *instances = palloc(sizeof(int64) * max);
	int32	   *ns = palloc(sizeof(int32) * max);
	ClockItem  *items = palloc(sizeof(ClockItem) * max);
	WigStore   *store = wig_store_open(false);
	TimestampTz next;
	TimestampTz again;
	bool		moved;
	int			left;
	int			n = wig_lease_scan_expired(store, now, max, instances, ns, &next);

	wig_store_close(store);
	for (int i = 0; i < n; i++)
		items[i] = (ClockItem) {false, {0, instances[i], ns[i]}, WIG_EXPIRY_DONE};
	moved = move_items(duty, items, n, &left, &again);
	duty->next = next_look(moved, again, next, now);
	return n == max && moved;
}

static bool
pass_schedules(WigDuty *duty, TimestampTz now)
{
	return wig_schedule_fire_due(now, wig_clock_batch, &duty->next);
}

static bool
pass_retention(WigDuty *duty, TimestampTz now)
{
	return wig_retention_purge(now, wig_clock_batch, &duty->next);
}

static bool
pass_leftover(WigDuty *duty, TimestampTz now)
{
	return wig_leftover_look(now, wig_clock_batch, &duty->next);
}

const WigPass wig_passes[WIG_NPASSES] = {
	{"firing timers", WIG_DEADLINE_TIMER, pass_timers},
	{"expiring leases", WIG_DEADLINE_LEASE, pass_leases},
	{"firing schedules", WIG_DEADLINE_SCHEDULE, pass_schedules},
	{"purging what has ended", WIG_DEADLINE_RETENTION, pass_retention},
	{"looking for tasks left over", WIG_DEADLINE_LEFTOVER, pass_leftover},
};
