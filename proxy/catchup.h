/*
 * catchup.h
 *	  A shard is given the definitions that home has and it lacks.
 *
 * Registrations reach every shard, but one may have been down, new to the topology, or
 * a proxy may have died in between; and "select wiggle.register()" on home reaches
 * home alone. A shard takes new instances once it has all.
 */
#ifndef WIGGLE_PROXY_CATCHUP_H
#define WIGGLE_PROXY_CATCHUP_H

struct catchup;
struct shard;

extern struct catchup *catchup_create(struct shard *shard);

/*
 * The shard came up: look soon. Sets shard->definitions and then calls shard_lane_changed;
 * when home cannot be asked, by what the shard was known to have before.
 */
extern void catchup_look(struct catchup *catchup);
extern void catchup_stop(struct catchup *catchup);

/* What home has now, as a mark that changes with it: every shard that was not looked at since is. */
extern void catchup_home_has(const char *mark);

#endif							/* WIGGLE_PROXY_CATCHUP_H */
