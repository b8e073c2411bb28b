/*
 * loop.h
 *	  The event loop's turn, and deadlines on one timer.
 *
 * Handlers only queue. At the end of each turn, just before the loop would wait,
 * every turn function runs in order of its stage: lanes form and send their
 * batches, then connections flush. Nothing else writes to a socket.
 */
#ifndef WIGGLE_PROXY_LOOP_H
#define WIGGLE_PROXY_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

extern uv_loop_t *loop_get(void);

/* uv_now: ms, monotonic, constant within a turn. */
extern uint64_t loop_now(void);

enum turn_stage
{
	TURN_POLLS,					/* offer parked polls to lanes */
	TURN_LANES,					/* form and send batches */
	TURN_FLUSH,					/* one write for each connection */
	TURN_END					/* drain's check, housekeeping */
};
#define TURN_STAGES (TURN_END + 1)

/* Run fn in every turn, for ever. Several of one stage run in order of registration. */
extern void loop_turn(enum turn_stage stage, void (*fn) (void));

/*
 * A deadline is embedded in its owner and zero-initialised. due() runs once, in
 * the loop, at or after the moment; it may set the deadline again or free the
 * owner. All deadlines share one uv_timer and one binary heap (O(log n)), so
 * ten thousand parked polls cost ten thousand pointers.
 */
struct deadline
{
	uint64_t	when;			/* loop_now() milliseconds */
	size_t		slot;			/* place in the heap + 1; 0 = not set */
	void		(*due) (struct deadline *deadline);
};

extern void deadline_set(struct deadline *deadline, uint64_t when,
						 void (*due) (struct deadline *deadline));
extern void deadline_clear(struct deadline *deadline);

#define deadline_owner(ptr, type, member) \
	((type *) ((char *) (ptr) - offsetof(type, member)))

/* Called once by main before and after uv_run. */
extern void loop_open(void);
extern void loop_close(void);

#endif							/* WIGGLE_PROXY_LOOP_H */
