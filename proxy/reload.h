/*
 * reload.h
 *	  The topology document, read again while the process runs.
 *
 * On SIGHUP, and when the file that WIGGLE_STORAGE_TOPOLOGY names has become another
 * one: written in place, renamed over, or behind a symbolic link that leads elsewhere
 * now. What is wrong is refused as a whole and the former document stays in force; one that
 * home has to agree to waits until home answers, or until the file changes again.
 */
#ifndef WIGGLE_PROXY_RELOAD_H
#define WIGGLE_PROXY_RELOAD_H

#include "error.h"
#include "topology.h"

/* document is the setting; read gives what it holds now, NULL with *err. Before the loop runs. */
extern void reload_start(const char *document, struct topology *(*read) (struct wig_error *err));

/* The start is over: what has changed meanwhile is read, and from now on all that changes. */
extern void reload_open(void);

/* Read it; why is for the log. */
extern void reload_now(const char *why);

#endif							/* WIGGLE_PROXY_RELOAD_H */
