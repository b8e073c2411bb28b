/*
 * item_queue.h
 *	  Items in the order in which they came, with their number and bytes.
 */
#ifndef WIGGLE_PROXY_ITEM_QUEUE_H
#define WIGGLE_PROXY_ITEM_QUEUE_H

#include <stddef.h>

#include "config.h"
#include "item.h"

/* The last quarter of a lane's queue is kept for what settles tasks and holds leases. */
#define QUEUE_CROWDED 3

struct item_queue
{
	struct item *head;			/* oldest first */
	struct item **tail;
	int			n;
	size_t		bytes;
};

static inline void
queue_init(struct item_queue *queue)
{
	*queue = (struct item_queue) {.tail = &queue->head};
}

static inline void
queue_push(struct item_queue *queue, struct item *item)
{
	item->next = NULL;
	*queue->tail = item;
	queue->tail = &item->next;
	queue->n++;
	queue->bytes += item->bytes;
}

/* The queue must not be empty. */
static inline struct item *
queue_pop(struct item_queue *queue)
{
	struct item *item = queue->head;

	queue->head = item->next;
	if (queue->head == NULL)
		queue->tail = &queue->head;
	queue->n--;
	queue->bytes -= item->bytes;
	item->next = NULL;
	return item;
}

/* Over so many quarters of its bounds, with so many bytes more? */
static inline bool
queue_filled(const struct item_queue *queue, int quarters, size_t bytes)
{
	return queue->n >= config.lane_queue_items * quarters / 4 ||
		(queue->n > 0 && queue->bytes + bytes > (size_t) config.lane_queue_bytes / 4 * (size_t) quarters);
}

#endif							/* WIGGLE_PROXY_ITEM_QUEUE_H */
