/*
 * queue_finder.h
 *	  The queues of the workflows that a worker's steps name, asked of the server.
 *
 * A worker that is told no queues takes the steps of its own workflows only: what
 * others wait for in other queues is not for it to fail. Workflows that are not
 * registered yet are asked for again every few seconds, all of them each minute.
 */
#ifndef WIGGLE_CLI_QUEUE_FINDER_H
#define WIGGLE_CLI_QUEUE_FINDER_H

#include <stddef.h>

#include <uv.h>

#include "client.h"
#include "worker_config.h"

struct queue_finder;

/*
 * Begin to ask. found(arg) runs when queues have come to be known, never before this
 * returns. NULL when nothing is to be found: the configuration names queues, or a
 * step of any workflow.
 */
extern struct queue_finder *queue_finder_new(uv_loop_t *loop, struct client *client,
											 const struct worker_config *config,
											 void (*found) (void *arg), void *arg);

/* The queues known so far, *n of them, valid until the loop runs again. */
extern const char *const *queue_finder_queues(const struct queue_finder *finder, size_t *n);

/* Ask no more and free, on the loop. NULL is fine. */
extern void queue_finder_stop(struct queue_finder *finder);

#endif							/* WIGGLE_CLI_QUEUE_FINDER_H */
