/*
 * worker_config.h
 *	  What a worker serves: which command runs which step, and how.
 */
#ifndef WIGGLE_CLI_WORKER_CONFIG_H
#define WIGGLE_CLI_WORKER_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "buf.h"
#include "error.h"

#define WORKER_MAX_CONCURRENCY	1000

/* The command of one step. */
struct handler
{
	const char *workflow;		/* NULL: of any workflow */
	const char *step;
	char	  **argv;			/* NULL-terminated */
	int64_t		timeout_ms;		/* 0: no limit of its own */
	struct handler *next;
};

struct worker_config
{
	struct wig_arena *arena;	/* owns every text here */
	const char *worker_id;		/* NULL: host name and process id */
	const char *dir;			/* where commands run; NULL: here */
	const char **queues;
	size_t		nqueues;		/* 0: every queue */
	int			concurrency;
	int64_t		lease_ms;
	int64_t		timeout_ms;		/* of a step without one of its own, 0 = none */
	struct handler *handlers;
};

/* Defaults: 4 at a time, leases of 30 s, no timeout. */
extern void worker_config_init(struct worker_config *config);
extern void worker_config_free(struct worker_config *config);

/*
 * Read a YAML document into *config over what is there. dir is set to the folder
 * of `path` unless the document names one (relative ones are below that folder).
 */
extern bool worker_config_read(struct worker_config *config, const char *path,
							   const struct buf *text, struct wig_error *err);

/*
 * "STEP=COMMAND" or "WORKFLOW/STEP=COMMAND" from the command line; the command is
 * run by /bin/sh. It goes before what a file says.
 */
extern bool worker_config_step(struct worker_config *config, const char *text,
							   struct wig_error *err);

extern bool worker_config_queue(struct worker_config *config, const char *queue,
								struct wig_error *err);

/*
 * The command for a step of a workflow: one that names the workflow before one for
 * any, else NULL.
 */
extern const struct handler *worker_config_find(const struct worker_config *config,
												const char *workflow, const char *step);

#endif							/* WIGGLE_CLI_WORKER_CONFIG_H */
