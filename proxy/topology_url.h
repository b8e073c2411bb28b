/*
 * topology_url.h
 *	  The small grammars inside a topology: ${NAME}, and "did you mean".
 */
#ifndef WIGGLE_PROXY_TOPOLOGY_URL_H
#define WIGGLE_PROXY_TOPOLOGY_URL_H

#include "error.h"

/*
 * Replace every ${NAME} by the variable's value: malloc'd, or NULL with *err
 * that begins with `what` and names the variable.
 */
extern char *topology_interpolate(const char *text, const char *what,
								  const char *(*variable) (const char *name),
								  struct wig_error *err);

/* The candidate (a NULL-terminated list) nearest to the word, NULL if none is near. */
extern const char *topology_nearest(const char *word, const char *const *candidates);

#endif							/* WIGGLE_PROXY_TOPOLOGY_URL_H */
