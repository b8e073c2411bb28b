/*
 * guard.h
 *	  What every entry point checks before it touches anything.
 */
#ifndef WIGGLE_GUARD_H
#define WIGGLE_GUARD_H

#include "wiggle.h"

/*
 * Refuse to write where writing is impossible (read-only transaction, recovery,
 * parallel worker), where the library was not preloaded, where the installed SQL
 * objects are not of a version that the library runs with, or in a logical replica.
 * `function` names the caller in messages.
 */
extern void wig_guard_write(const char *function);

/* The same for functions that only read: preload and version. */
extern void wig_guard_read(void);

/* For the event feed, whose final part neither a standby nor a logical replica knows. */
extern void wig_guard_feed(void);

/* The subscription that writes the tables of this database, which is a logical
 * replica then; NULL when there is none. palloc'd. */
extern char *wig_copied_by(void);

/* The version of the extension's SQL objects in this database, NULL when it is
 * not installed. Needs a transaction. palloc'd. */
extern char *wig_catalog_version(void);

#endif							/* WIGGLE_GUARD_H */
