/*
 * worker.h
 *	  The exec worker: poll for tasks, run a command for each, report.
 */
#ifndef WIGGLE_CLI_WORKER_H
#define WIGGLE_CLI_WORKER_H

#include "session.h"
#include "worker_config.h"

/*
 * Serve until SIGTERM or SIGINT, then finish what runs; a second signal kills it.
 * The config outlives the call.
 */
extern enum exit_status worker_run(struct session *session, const struct worker_config *config);

#endif							/* WIGGLE_CLI_WORKER_H */
