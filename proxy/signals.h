/*
 * signals.h
 *	  SIGTERM and SIGINT begin the drain, SIGHUP has files read again; SIGPIPE is
 *	  ignored.
 */
#ifndef WIGGLE_PROXY_SIGNALS_H
#define WIGGLE_PROXY_SIGNALS_H

extern void signals_open(void (*on_hangup) (void));

#endif							/* WIGGLE_PROXY_SIGNALS_H */
