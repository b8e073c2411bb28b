/*
 * view.h
 *	  Rows of the database to the messages that show them.
 */
#ifndef WIGGLE_PROXY_VIEW_H
#define WIGGLE_PROXY_VIEW_H

#include <libpq-fe.h>

#include "error.h"
#include "value.h"
#include "wiggle.pb-c.h"

/*
 * Fill an initialised message from columns of enum instance_column; texts point
 * into the result, the context is malloc'd. False when the context cannot be sent.
 */
extern bool view_instance(const PGresult *result, int row, enum value_form form,
						  Com__Wiggle__Proto__InstanceView *view, struct wig_error *err);

/*
 * The same from columns of enum token_column; input and output are malloc'd, and
 * absent when they cannot be sent.
 */
extern void view_token(const PGresult *result, int row, enum value_form form,
					   Com__Wiggle__Proto__Token *token);

/* The same from columns of enum schedule_column, nothing allocated. */
extern void view_schedule(const PGresult *result, int row, Com__Wiggle__Proto__ScheduleView *view);

/* An integer of a row, 0 for NULL. */
extern int64_t view_number(const PGresult *result, int row, int column);

#endif							/* WIGGLE_PROXY_VIEW_H */
