/*
 * launcher.h
 *	  Starts one clock worker for each database that has the extension.
 */
#ifndef WIGGLE_LAUNCHER_H
#define WIGGLE_LAUNCHER_H

#include "wiggle.h"

/* Register the launcher; called while the postmaster preloads libraries. */
extern void wig_launcher_register(void);

/* bgw_main of the launcher. */
extern PGDLLEXPORT void wig_launcher_main(Datum arg);

#endif							/* WIGGLE_LAUNCHER_H */
