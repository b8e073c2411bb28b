/*
 * member.h
 *	  This process among the proxies of its home shard.
 *
 * A heartbeat every few seconds tells home that it is there and what its workers
 * poll for; it leaves when the process ends in order. Home is also told where the
 * topology places new instances, since it starts those of schedules. After each heartbeat,
 * and when home says that members came or went, it lists them (fleet.h).
 */
#ifndef WIGGLE_PROXY_MEMBER_H
#define WIGGLE_PROXY_MEMBER_H

#include <stdbool.h>

/*
 * Once, before any shard is set up. heard() runs each time when home has answered a heartbeat
 * (and, to divide the tasks, has listed the members) and when it has taken the topology over;
 * refused() when it has not, failed() when another live process bears this one's name.
 */
extern void member_start(void (*heard) (void), void (*refused) (const char *why),
						 void (*failed) (const char *reason));

/* Members came or went: have home list them. */
extern void member_look(void);

/* Home has been set up, for the first time or anew. */
extern void member_home_ready(void);

/*
 * Tell home of the topology in force, unless it has been told: which states the shards have and
 * where new instances go. From then on again each time that home has been set up anew.
 */
extern void member_tell_topology(void);

/* Has it been told, and has it taken all of it over? */
extern bool member_topology_told(void);

/*
 * hold: while another document is before home, that in force is not told of: it could come
 * behind it. False when its question is on its way already.
 */
extern bool member_hold_topology(bool hold);

/* "node_…", minted for this process. */
extern const char *member_id(void);

/* Was this the longest-lived member at its last heartbeat? */
extern bool member_leads(void);

#endif							/* WIGGLE_PROXY_MEMBER_H */
