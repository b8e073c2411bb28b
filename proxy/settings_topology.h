/*
 * settings_topology.h
 *	  The topology that the settings name.
 */
#ifndef WIGGLE_PROXY_SETTINGS_TOPOLOGY_H
#define WIGGLE_PROXY_SETTINGS_TOPOLOGY_H

#include "error.h"
#include "topology.h"

/*
 * The document, or the single database, as it is now, with URLs that libpq takes; NULL with
 * *err. What a start asks besides, placement_check, goes by a clock. Freed with topology_free.
 */
extern struct topology *settings_topology(struct wig_error *err);

#endif							/* WIGGLE_PROXY_SETTINGS_TOPOLOGY_H */
