/*
 * admission.h
 *	  Does home's registry know a database as the shard that it says it is?
 *
 * Home is asked once a shard's own setup is over, and again when its server was
 * promoted. Home itself is asked in its setup's session, with the whole topology.
 */
#ifndef WIGGLE_PROXY_ADMISSION_H
#define WIGGLE_PROXY_ADMISSION_H

#include <stdbool.h>
#include <libpq-fe.h>

#include "buf.h"
#include "topology.h"

struct admission;
struct shard;

extern struct admission *admission_create(struct shard *shard);

/*
 * The shard's own setup is over, its facts are fresh. Ends in shard_setup_done or
 * shard_refused_by_home; when home cannot be asked in time in the former, and home is
 * asked as soon as it can be.
 */
extern void admission_begin(struct admission *admission);

/* Its state or its facts have changed while it serves: tell the shard, read the facts and tell home. */
extern void admission_renew(struct admission *admission);
extern void admission_stop(struct admission *admission);

/* The topology's entry of the shard, or all entries, as SQL_ADMIT takes them, with the shard's facts. */
extern void admission_entries(const struct shard *shard, bool whole, struct buf *out);

/* All entries of a topology, without facts, as SQL_TOPOLOGY_ADMIT takes them. */
extern void admission_topology(const struct topology *topology, struct buf *out);

/*
 * What home has refused, when its setup asked with the whole topology: logged. True
 * when it concerns home itself or this process has not begun to serve: such a
 * topology is not started with, while later nothing that serves is closed for it.
 */
extern bool admission_forbids(const PGresult *result);

/* This process serves, or not: what is refused from now on is no reason to give up. */
extern void admission_decided(void);

#endif							/* WIGGLE_PROXY_ADMISSION_H */
