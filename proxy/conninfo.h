/*
 * conninfo.h
 *	  What libpq makes of a URL, before anything is connected to.
 *
 * Whoever starts, reads a document again or only checks one asks here, so that all
 * refuse the same in the same words. No message has a part of a URL in it.
 */
#ifndef WIGGLE_PROXY_CONNINFO_H
#define WIGGLE_PROXY_CONNINFO_H

#include <stdbool.h>
#include <libpq-fe.h>

#include "error.h"
#include "topology.h"

/* The URL's parts, freed with PQconninfoFree; NULL with *err, which begins with `what`: "shard 1 primary url". */
extern PQconninfoOption *conninfo_parse(const char *what, const char *url, struct wig_error *err);

/* Does libpq take the URL of every database that is connected to? False with *err. */
extern bool conninfo_check(const struct topology *topology, struct wig_error *err);

/* The parameters that the libpq in use takes in a URL, but for those for its developers; ends with NULL. */
extern const char *const *conninfo_parameters(void);

#endif							/* WIGGLE_PROXY_CONNINFO_H */
