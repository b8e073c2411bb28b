/*
 * step_check.h
 *	  Do a worker's steps and those of the registered workflows know each other?
 *
 * Says in the log what does not: a mistyped step is never asked for, and a step
 * that the worker is given without having a command for it fails for good.
 */
#ifndef WIGGLE_CLI_STEP_CHECK_H
#define WIGGLE_CLI_STEP_CHECK_H

#include <stdbool.h>

#include "definition.h"
#include "worker_config.h"

struct step_check;

/* The configuration outlives it. */
extern struct step_check *step_check_new(const struct worker_config *config);
extern void step_check_free(struct step_check *check);

/*
 * Look at a version that has not been looked at before: at the worker's steps of
 * that workflow, and at the version's steps when the worker would be given them. named:
 * the worker has steps of this very workflow.
 */
extern void step_check_version(struct step_check *check, const struct wig_definition *def, bool named);

/* All workflows there are have been looked at: what of the steps of any workflow none has. */
extern void step_check_rest(struct step_check *check);

#endif							/* WIGGLE_CLI_STEP_CHECK_H */
