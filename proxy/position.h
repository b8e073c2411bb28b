/*
 * position.h
 *	  How far the write-ahead log of each shard had come when it was looked at.
 *
 * An older physical copy of a shard differs from it in nothing else. So each proxy looks
 * every few seconds, and tells home, whose registry passes it on. A new session gives
 * what is known to its server, which says whether it lies behind: positions of the same
 * identity and timeline only, since a promotion may go back.
 */
#ifndef WIGGLE_PROXY_POSITION_H
#define WIGGLE_PROXY_POSITION_H

#include <stdbool.h>

struct shard;

/* "X/Y", as SQL_SESSION_* and SQL_SETUP_IDENTITY take it; "0/0" while nothing is known. */
extern const char *position_known(const struct shard *shard);

/* The present identity and timeline of the shard had come so far. Is that news? */
extern bool position_raise(struct shard *shard, const char *wal);

/* Another identity or timeline begins here. */
extern void position_begin(struct shard *shard, const char *wal);

extern void position_start(void);

#endif							/* WIGGLE_PROXY_POSITION_H */
