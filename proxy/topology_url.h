/*
 * topology_url.h
 *	  The small grammars inside a topology: ${NAME}.
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

#endif							/* WIGGLE_PROXY_TOPOLOGY_URL_H */
