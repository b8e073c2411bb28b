/*
 * watch.h
 *	  What /metrics shows of the shards, and the warning of queues that wait.
 *
 * Each shard is asked one bounded question every WIGGLE_QUEUE_LAG_CHECK_INTERVAL_MILLIS;
 * a scrape is answered from what was last heard and waits for nothing. A shard that
 * has not answered for three such intervals and five seconds is shown as not up, without its numbers.
 */
#ifndef WIGGLE_PROXY_WATCH_H
#define WIGGLE_PROXY_WATCH_H

extern void watch_start(void);

#endif							/* WIGGLE_PROXY_WATCH_H */
