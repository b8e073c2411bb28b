/*
 * registered.h
 *	  Registered definitions, as the server shows them.
 */
#ifndef WIGGLE_CLI_REGISTERED_H
#define WIGGLE_CLI_REGISTERED_H

#include <stddef.h>
#include <stdint.h>

#include "definition.h"
#include "session.h"

/* GetWorkflow's answer decoded (wig_definition_free it); NULL when it cannot be. */
extern struct wig_definition *registered_read(const uint8_t *data, size_t len);

/* A version of a workflow; NULL when there is none, or after a complaint. */
extern struct wig_definition *registered_find(struct session *session, const char *workflow,
											  int32_t version);

/* The step of a node as worker files call it: its name, else what its activity ends with. */
extern const char *registered_step(const struct wig_definition *def, const struct wig_node *node);

#endif							/* WIGGLE_CLI_REGISTERED_H */
