/*
 * retention.h
 *	  What has ended long enough ago is deleted, in bounded batches.
 */
#ifndef WIGGLE_RETENTION_H
#define WIGGLE_RETENTION_H

#include "wiggle.h"

/*
 * Delete up to max instances that ended before wiggle.retention ago, and up to
 * ten times as many entries of the event log that are older than
 * wiggle.event_retention and acknowledged by every consumer. Live instances of
 * any age stay, and so do parents of live children. Needs SPI. Returns whether a
 * batch was filled; *next is when there may be something again.
 */
extern bool wig_retention_purge(TimestampTz now, int max, TimestampTz *next);

#endif							/* WIGGLE_RETENTION_H */
