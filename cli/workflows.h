/*
 * workflows.h
 *	  The registered workflows that a worker's steps belong to, asked of the server.
 *
 * A worker that is told no queues takes the steps of its own workflows only: what
 * others wait for in other queues is not for it to fail. Workflows that are not
 * registered yet are asked for again every few seconds, all of them each minute.
 *
 * Of each version that is seen for the first time the log tells which of the
 * worker's steps it does not have, and which of its own the worker would be given and
 * has no command for.
 */
#ifndef WIGGLE_CLI_WORKFLOWS_H
#define WIGGLE_CLI_WORKFLOWS_H

#include <stddef.h>

#include <uv.h>

#include "client.h"
#include "worker_config.h"

struct workflows;

/* Begin to ask. found(arg) runs when queues have come to be known, never before this returns. */
extern struct workflows *workflows_new(uv_loop_t *loop, struct client *client,
									   const struct worker_config *config,
									   void (*found) (void *arg), void *arg);

/*
 * Are the queues to be found? Not when the configuration names them, or a step of any
 * workflow, which may be in any queue.
 */
extern bool workflows_give_queues(const struct workflows *workflows);

/* The queues known so far, *n of them, valid until the loop runs again. */
extern const char *const *workflows_queues(const struct workflows *workflows, size_t *n);

/* Ask no more and free, on the loop. */
extern void workflows_stop(struct workflows *workflows);

#endif							/* WIGGLE_CLI_WORKFLOWS_H */
