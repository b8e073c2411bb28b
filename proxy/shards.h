/*
 * shards.h
 *	  All shards of the topology, which may change while the process runs.
 *
 * A shard is known by its index in the topology or by its slot among those that
 * have served; neither ever changes. There may be more of them after a turn of the
 * loop than before.
 */
#ifndef WIGGLE_PROXY_SHARDS_H
#define WIGGLE_PROXY_SHARDS_H

#include <stdbool.h>

#include "error.h"
#include "topology.h"

/*
 * Create every shard that is not retired and begin to set it up. The topology
 * is taken over. serving() runs when a shard can be used for the first time, refused()
 * when one is refused or left out for the first time, which has been logged (it is
 * tried again all the same).
 */
extern bool shards_start(struct topology *document, void (*serving) (void),
						 void (*refused) (void), struct wig_error *err);

/*
 * Do the generations of the document in force weigh active shards only, by home's clock? False
 * with *err. Its start could not judge that before home was heard.
 */
extern bool shards_judge(struct wig_error *err);

/*
 * May the document take the place of the one in force, as far as this process can say? It
 * is put in the running order then. False with *err. May be asked again of the same one.
 */
extern bool shards_may_replace(struct topology *document, struct wig_error *err);

/*
 * Go by another document from now on, of which shards_may_replace() was true. It is taken over,
 * or, short of memory, freed: false with *err then and nothing has changed. *changes counts
 * what is different, each of which is logged.
 */
extern bool shards_replace(struct topology *document, int *changes, struct wig_error *err);

#endif							/* WIGGLE_PROXY_SHARDS_H */
