/*
 * compat.h
 *	  Differences between versions of libraries, each with its reason.
 */
#ifndef WIGGLE_PROXY_COMPAT_H
#define WIGGLE_PROXY_COMPAT_H

#include <nghttp2/nghttp2.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/*
 * nghttp2 1.57 brought the bound on stream resets and 1.61 the one on CONTINUATION
 * frames; Debian 12's 1.52 has both as security fixes. A build against an older one
 * says so with HAVE_NGHTTP2_FLOOD_OPTIONS=0 (proxy/Makefile looks at the header) and
 * relies on conn.c's own bounds alone.
 */
#ifndef HAVE_NGHTTP2_FLOOD_OPTIONS
#define HAVE_NGHTTP2_FLOOD_OPTIONS 1
#endif

#if HAVE_NGHTTP2_FLOOD_OPTIONS
#define h2_option_floods(option, burst, rate, continuations) \
	do { \
		nghttp2_option_set_stream_reset_rate_limit((option), (burst), (rate)); \
		nghttp2_option_set_max_continuations((option), (continuations)); \
	} while (0)
#else
#define h2_option_floods(option, burst, rate, continuations) \
	((void) (option), (void) (burst), (void) (rate), (void) (continuations))
#endif

/* glibc keeps what it once got from the system until it is asked; others give back
 * by themselves. */
#ifdef __GLIBC__
#define return_free_memory()	((void) malloc_trim(0))
#else
#define return_free_memory()	((void) 0)
#endif

#endif							/* WIGGLE_PROXY_COMPAT_H */
