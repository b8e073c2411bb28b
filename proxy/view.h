/*
 * view.h
 *	  Rows of instances and tokens to the messages that show them.
 */
#ifndef WIGGLE_PROXY_VIEW_H
#define WIGGLE_PROXY_VIEW_H

#include <libpq-fe.h>

#include "error.h"
#include "wiggle.pb-c.h"

/*
 * Fill an initialised message from columns of enum instance_column; texts point
 * into the result, the context is malloc'd. False when the context cannot be sent.
 */
extern bool view_instance(const PGresult *result, int row, Com__Wiggle__Proto__InstanceView *view,
						  struct wig_error *err);

/* The same from columns of enum token_column. */
extern void view_token(const PGresult *result, int row, Com__Wiggle__Proto__Token *token);

#endif							/* WIGGLE_PROXY_VIEW_H */
