/*
 * facts.h
 *	  What a step's command is told about its task: names and environment.
 */
#ifndef WIGGLE_CLI_FACTS_H
#define WIGGLE_CLI_FACTS_H

#include "buf.h"
#include "verdict.h"
#include "wiggle.pb-c.h"

#define FACTS_MAX 11

/* An environment and the texts in it that are its own. */
struct facts
{
	struct buf	texts[FACTS_MAX];
	char	  **environment;	/* NULL-terminated; the rest points into *inherited */
};

/*
 * The step's name as worker files write it: without its workflow, and with
 * "#compensate" behind it when it is to be undone. Points into the activation.
 */
extern const char *facts_step_name(const Com__Wiggle__Proto__TaskActivation *activation);

extern enum step_role facts_role(const Com__Wiggle__Proto__TaskActivation *activation);

/*
 * Fill *facts with the inherited environment and the task's facts, which hide what
 * has the same name; a fact that does not apply hides it as well. base_path is where
 * the command reads the context around it, used when there is one.
 */
extern void facts_make(struct facts *facts, const Com__Wiggle__Proto__TaskActivation *activation,
					   const char *base_path, char *const *inherited);
extern void facts_free(struct facts *facts);

#endif							/* WIGGLE_CLI_FACTS_H */
