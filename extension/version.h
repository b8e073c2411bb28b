/*
 * version.h
 *	  Which version the library is, and which SQL objects it runs with.
 *
 * A server runs a new library from its restart on, and has the SQL objects of the
 * version before until "alter extension wiggle update": in between everything
 * works. A C function that those objects name stays for one version more, with its
 * arguments and its row, and so does what they expect of it.
 */
#ifndef WIGGLE_VERSION_H
#define WIGGLE_VERSION_H

#include "wiggle.h"

extern const char wig_library_version[];

/* Does the library run with the SQL objects of this version? NULL: there are none. */
extern bool wig_runs_with(const char *catalog_version);

#endif							/* WIGGLE_VERSION_H */
