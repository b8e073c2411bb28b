/*
 * poll_place.c
 *	  Where polls stand: in line at a shard, parked, sated, or riding in a batch.
 */
#include "poll_place.h"

struct poll_places places;

void
line_append(struct line *line, struct poll *poll)
{
	poll->next = NULL;
	poll->prev = line->last;
	if (line->last != NULL)
		line->last->next = poll;
	else
		line->first = poll;
	line->last = poll;
}

void
line_remove(struct line *line, struct poll *poll)
{
	if (poll->prev != NULL)
		poll->prev->next = poll->next;
	else
		line->first = poll->next;
	if (poll->next != NULL)
		poll->next->prev = poll->prev;
	else
		line->last = poll->prev;
	poll->prev = poll->next = NULL;
}

static void
ring_join(struct subscription *subscription)
{
	if (places.ring == NULL)
	{
		places.ring = subscription->ring_next = subscription->ring_prev = subscription;
	}
	else
	{
		subscription->ring_next = places.ring;
		subscription->ring_prev = places.ring->ring_prev;
		places.ring->ring_prev->ring_next = subscription;
		places.ring->ring_prev = subscription;
	}
	places.ring_size++;
}

static void
ring_leave(struct subscription *subscription)
{
	places.ring_size--;
	if (places.ring_size == 0)
		places.ring = NULL;
	else
	{
		subscription->ring_prev->ring_next = subscription->ring_next;
		subscription->ring_next->ring_prev = subscription->ring_prev;
		if (places.ring == subscription)
			places.ring = subscription->ring_next;
	}
	subscription->ring_next = subscription->ring_prev = NULL;
}

void
place_recount(struct subscription *subscription)
{
	uint64_t	now = subscription->line.first != NULL ? subscription->ready & ~subscription->asking : 0;
	uint64_t	changed = now ^ subscription->wanted;

	for (int slot = 0; changed != 0; slot++, changed >>= 1)
	{
		if (changed & 1)
			places.wanting[slot] += now & BIT(slot) ? 1 : -1;
	}
	subscription->wanted = now;
}

void
place_leave(struct poll *poll)
{
	struct subscription *subscription = poll->subscription;

	switch (poll->place)
	{
		case IN_LINE:
			line_remove(&places.lines[poll->slot], poll);
			break;
		case SATED:
			line_remove(&places.sated, poll);
			break;
		case PARKED:
			line_remove(&subscription->line, poll);
			metric_add(places.gauge, -1);
			if (--subscription->parked == 0)
				ring_leave(subscription);
			place_recount(subscription);
			break;
		case RIDING:
			places.riding--;
			break;
	}
}

void
place_in_line(struct poll *poll, int slot)
{
	poll->place = IN_LINE;
	poll->slot = slot;
	line_append(&places.lines[slot], poll);
}

void
place_parked(struct poll *poll)
{
	struct subscription *subscription = poll->subscription;

	poll->place = PARKED;
	line_append(&subscription->line, poll);
	metric_add(places.gauge, 1);
	if (subscription->parked++ == 0)
		ring_join(subscription);
	place_recount(subscription);
}

void
place_sated(struct poll *poll)
{
	poll->place = SATED;
	line_append(&places.sated, poll);
}

void
place_riding(struct poll *poll, int slot)
{
	poll->place = RIDING;
	poll->slot = slot;
	places.riding++;
}

void
place_rotate(struct subscription *subscription)
{
	struct poll *poll = subscription->line.first;

	line_remove(&subscription->line, poll);
	line_append(&subscription->line, poll);
}
