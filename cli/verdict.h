/*
 * verdict.h
 *	  What the end of a step's process says about the step.
 */
#ifndef WIGGLE_CLI_VERDICT_H
#define WIGGLE_CLI_VERDICT_H

#include <stdbool.h>

#include "buf.h"
#include "step.h"

/* A command that ends so says that trying again is of no use. */
#define EXIT_PERMANENT 100

/* What kind of step the command ran. */
enum step_role
{
	ROLE_TASK,					/* its output is the next context, combines among them */
	ROLE_GATE,					/* its exit status decides */
	ROLE_COMPENSATOR			/* its output says nothing: what it undoes is not kept */
};

enum verdict_kind
{
	VERDICT_DONE,				/* a task is done; the context stays or is replaced */
	VERDICT_DECIDED,			/* a gate has decided */
	VERDICT_FAILED,				/* to be tried again by the step's policy */
	VERDICT_FAILED_FOR_GOOD
};

struct verdict
{
	enum verdict_kind kind;
	bool		decision;		/* of a gate */
	struct buf	value;			/* the next context as a Value; empty: it stays */
	struct buf	message;		/* why it failed, valid UTF-8, at most 1,000 bytes */
};

/* *verdict is filled whatever it held; free it with verdict_free. */
extern void verdict_judge(const struct step_result *result, enum step_role role,
						  int64_t timeout_ms, struct verdict *verdict);
extern void verdict_free(struct verdict *verdict);

#endif							/* WIGGLE_CLI_VERDICT_H */
