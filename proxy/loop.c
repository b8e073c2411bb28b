/*
 * loop.c
 *	  The turn of the event loop, and deadlines in one binary heap.
 */
#include <stdlib.h>

#include "buf.h"
#include "loop.h"

#define TURN_FUNCTIONS	16		/* of one stage */

static uv_loop_t *loop;
static uv_prepare_t turn_handle;
static uv_timer_t timer_handle;

static struct
{
	void		(*fn[TURN_FUNCTIONS]) (void);
	int			count;
} stages[TURN_STAGES];

static struct deadline **heap;
static size_t heap_len;
static size_t heap_cap;

uv_loop_t *
loop_get(void)
{
	return loop;
}

uint64_t
loop_now(void)
{
	return uv_now(loop);
}

void
loop_turn(enum turn_stage stage, void (*fn) (void))
{
	if (stages[stage].count == TURN_FUNCTIONS)
		abort();
	stages[stage].fn[stages[stage].count++] = fn;
}

static void
place(struct deadline *d, size_t at)
{
	heap[at] = d;
	d->slot = at + 1;
}

static void
sift_up(size_t at)
{
	struct deadline *d = heap[at];

	while (at > 0 && heap[(at - 1) / 2]->when > d->when)
	{
		place(heap[(at - 1) / 2], at);
		at = (at - 1) / 2;
	}
	place(d, at);
}

static void
sift_down(size_t at)
{
	struct deadline *d = heap[at];

	for (;;)
	{
		size_t		child = 2 * at + 1;

		if (child >= heap_len)
			break;
		if (child + 1 < heap_len && heap[child + 1]->when < heap[child]->when)
			child++;
		if (heap[child]->when >= d->when)
			break;
		place(heap[child], at);
		at = child;
	}
	place(d, at);
}

void
deadline_clear(struct deadline *d)
{
	size_t		at = d->slot - 1;

	if (d->slot == 0)
		return;
	d->slot = 0;
	if (at == --heap_len)
		return;
	place(heap[heap_len], at);
	sift_down(at);
	sift_up(at);
}

void
deadline_set(struct deadline *d, uint64_t when, void (*due) (struct deadline *))
{
	deadline_clear(d);
	if (heap_len == heap_cap)
	{
		heap_cap = heap_cap > 0 ? heap_cap * 2 : 64;
		heap = xrealloc(heap, heap_cap * sizeof(heap[0]));
	}
	d->when = when;
	d->due = due;
	place(d, heap_len++);
	sift_up(heap_len - 1);
}

/* Each that is due now, but none twice: one set again for now waits a turn. */
static void
timer_due(uv_timer_t *timer)
{
	uint64_t	now = uv_now(loop);
	size_t		left = heap_len;

	(void) timer;
	while (left-- > 0 && heap_len > 0 && heap[0]->when <= now)
	{
		struct deadline *d = heap[0];

		deadline_clear(d);
		d->due(d);
	}
}

/*
 * Runs just before the loop waits, after every other callback of the turn, so a
 * reply queued by a timer is written as promptly as one queued by a read.
 */
static void
turn(uv_prepare_t *handle)
{
	(void) handle;
	for (int stage = 0; stage < TURN_STAGES; stage++)
		for (int i = 0; i < stages[stage].count; i++)
			stages[stage].fn[i] ();
	if (heap_len == 0)
		uv_timer_stop(&timer_handle);
	else
	{
		uint64_t	now = uv_now(loop);

		uv_timer_start(&timer_handle, timer_due, heap[0]->when > now ? heap[0]->when - now : 0, 0);
	}
}

void
loop_open(void)
{
	loop = uv_default_loop();
	uv_prepare_init(loop, &turn_handle);
	uv_prepare_start(&turn_handle, turn);
	uv_timer_init(loop, &timer_handle);
}

static void
close_handle(uv_handle_t *handle, void *arg)
{
	(void) arg;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

void
loop_close(void)
{
	/* Handles of parts that did not come to an end within the grace period. */
	uv_walk(loop, close_handle, NULL);
	uv_run(loop, UV_RUN_DEFAULT);
	uv_loop_close(loop);
	free(heap);
	heap = NULL;
	heap_len = heap_cap = 0;
	for (int stage = 0; stage < TURN_STAGES; stage++)
		stages[stage].count = 0;
}
