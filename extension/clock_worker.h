/*
 * clock_worker.h
 *	  The background worker of one database: what is due happens, what became
 *	  ready is announced.
 */
#ifndef WIGGLE_CLOCK_WORKER_H
#define WIGGLE_CLOCK_WORKER_H

#include "wiggle.h"

/* bgw_main; the argument is the database's oid. */
extern PGDLLEXPORT void wig_clock_worker_main(Datum arg);

#endif							/* WIGGLE_CLOCK_WORKER_H */
