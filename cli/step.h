/*
 * step.h
 *	  One step of a workflow as a child process.
 *
 * The command runs in a session and process group of its own, so that a signal to
 * the worker's terminal does not reach it and one to the group reaches its children.
 * It reads the context from standard input; its standard output is collected, its
 * standard error is passed on line by line and the end of it remembered.
 */
#ifndef WIGGLE_CLI_STEP_H
#define WIGGLE_CLI_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "buf.h"

#define STEP_BASE_PATH	"/dev/fd/3"	/* where a command reads setup.base */

#define STEP_MAX_OUTPUT (3u << 20)	/* a report must fit a message of 4 MiB */

struct step;

struct step_setup
{
	char	  **argv;
	const char *dir;			/* NULL: the worker's */
	char	  **environment;	/* NULL-terminated */
	const char *input;
	size_t		input_len;
	const char *base;			/* a second text, in a file; NULL: none */
	size_t		base_len;
	int64_t		timeout_ms;		/* 0: none */
	const char *label;			/* of log lines; copied */
};

/* How it ended. Texts are valid during the callback. */
struct step_result
{
	const char *spawn_error;	/* the command could not be started, or NULL */
	const char *program;		/* its name, with spawn_error */
	int			exit_status;
	int			term_signal;	/* 0: it ended by itself */
	bool		timed_out;
	bool		output_too_large;	/* it was killed for it */
	bool		killed;			/* step_kill ended it */
	const char *output;
	size_t		output_len;
	const char *last_words;		/* the last line on standard error, or "" */
};

typedef void (*step_done_fn) (void *arg, const struct step_result *result);

/* done runs once, from the loop, when the process and its output have ended. */
extern struct step *step_start(uv_loop_t *loop, const struct step_setup *setup,
							   step_done_fn done, void *arg);

/* Ask the group to end; insist after a few seconds. done still runs. */
extern void step_kill(struct step *step);

#endif							/* WIGGLE_CLI_STEP_H */
