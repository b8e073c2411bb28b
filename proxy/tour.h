/*
 * tour.h
 *	  Which of a database's servers is the primary of today.
 *
 * After a failover the former primary may come back as it was, writable and left
 * behind: what tells it from its successor is the timeline it writes, which a
 * promotion raises. Who has seen the successor refuses it, and home's registry
 * does for the other shards; who starts afresh asks each server first.
 */
#ifndef WIGGLE_PROXY_TOUR_H
#define WIGGLE_PROXY_TOUR_H

#include "link.h"

struct tour;

/*
 * done runs later, once: links to the target begin with the server that writes the highest
 * timeline of those that answer.
 */
extern struct tour *tour_create(void (*done) (void *owner), void *owner);
extern void tour_start(struct tour *tour, const struct target *target);
extern void tour_stop(struct tour *tour);

#endif							/* WIGGLE_PROXY_TOUR_H */
