/*
 * signals.h
 *	  SIGTERM, SIGINT and SIGHUP begin the drain; SIGPIPE is ignored.
 */
#ifndef WIGGLE_PROXY_SIGNALS_H
#define WIGGLE_PROXY_SIGNALS_H

extern void signals_open(void);

#endif							/* WIGGLE_PROXY_SIGNALS_H */
