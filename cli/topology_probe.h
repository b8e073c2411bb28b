/*
 * topology_probe.h
 *	  Do the databases of a topology agree with it, and with each other?
 */
#ifndef WIGGLE_CLI_TOPOLOGY_PROBE_H
#define WIGGLE_CLI_TOPOLOGY_PROBE_H

#include "buf.h"
#include "database.h"
#include "error.h"
#include "status.h"
#include "topology.h"

struct probe;

/*
 * Ask every database that a proxy would connect to, one after the other, and home what it knows
 * of them. The topology has to outlive it.
 */
extern struct probe *probe_run(const struct topology *topology);
extern void probe_free(struct probe *probe);

/* A table of what they said. */
extern void probe_print(const struct probe *probe);

/* The same and what is wrong as members of a JSON object. */
extern void probe_put(const struct probe *probe, struct buf *out);

/* A line for each thing that is wrong on standard error; what the command ends with. */
extern enum exit_status probe_complain(const struct probe *probe, const char *file);

#endif							/* WIGGLE_CLI_TOPOLOGY_PROBE_H */
