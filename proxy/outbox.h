/*
 * outbox.h
 *	  Instances that home has minted for other shards: started there, then ticked off.
 *
 * A schedule that fires mints an id by weight; when the id is another shard's, home
 * keeps what is to be started. Any proxy may deliver it, several at once too: a
 * start whose id exists changes nothing.
 */
#ifndef WIGGLE_PROXY_OUTBOX_H
#define WIGGLE_PROXY_OUTBOX_H

extern void outbox_start(void);

/* Something may wait there, or can be given to a shard again. */
extern void outbox_look(void);

#endif							/* WIGGLE_PROXY_OUTBOX_H */
