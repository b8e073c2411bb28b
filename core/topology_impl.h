/*
 * topology_impl.h
 *	  What the pieces that read a topology share.
 *
 * topology.c reads the document and checks it as a whole, topology_shard.c one
 * shard, topology_generation.c one generation; topology_text.c has the small
 * grammars. Nothing in a message comes out of a URL or a password.
 */
#ifndef WIGGLE_CORE_TOPOLOGY_IMPL_H
#define WIGGLE_CORE_TOPOLOGY_IMPL_H

#include <jansson.h>

#include "error.h"
#include "topology.h"

#define TOPOLOGY_MAX_SHARD_ID	999999999

/* Where in a document something stands: "shard 12 replica 3". */
#define TOPOLOGY_PLACE			64

/* A value as a message shows it. */
#define TOPOLOGY_SHOWN			80

/*
 * What a level says of its connections, and of those below it that say nothing
 * themselves: the document's defaults, a shard, a primary or a replica.
 */
struct topology_settings
{
	char	   *user;			/* malloc'd, as all texts here; NULL: not set */
	char	   *password;
	int			pool;
	int			replica_pool;
	bool		has_pool;		/* the level itself has a pool */
	int64_t		max_replica_lag_ms;
	enum replica_fallback replica_fallback;
};

/* What one pass over the document carries along. */
struct topology_reader
{
	struct topology *topology;
	struct topology_settings defaults;
	const char *(*variable) (const char *name);
	const char *const *parameters;	/* that libpq takes in a URL */
	struct wig_error *err;
};

/* topology_shard.c */
extern bool topology_read_defaults(struct topology_reader *reader, json_t *defaults);
/* nth: its place in the array, from 1, for one that has no id yet. */
extern bool topology_read_shard(const struct topology_reader *reader, json_t *object, size_t nth,
								struct topology_shard *shard);
extern void topology_settings_free(struct topology_settings *settings);

/* topology_generation.c; the shards have been read. */
extern bool topology_read_generations(const struct topology_reader *reader, json_t *generations);

/*
 * Are all keys of the object known? A NULL-terminated list. One that is known elsewhere is
 * told where.
 */
extern bool topology_check_keys(json_t *object, const char *const *known, const char *where,
								struct wig_error *err);

/* A value for a message: short, in ASCII, without what objects and arrays hold. */
extern const char *topology_shown(json_t *value, char out[TOPOLOGY_SHOWN]);

/* What kind of value it is, and nothing of it, where it may be a secret: "a number". */
extern const char *topology_kind(json_t *value);

/*
 * Replace every ${NAME} by the variable's value: malloc'd, or NULL with *err
 * that begins with `what` and names the variable.
 */
extern char *topology_interpolate(const char *text, const char *what,
								  const char *(*variable) (const char *name),
								  struct wig_error *err);

#endif							/* WIGGLE_CORE_TOPOLOGY_IMPL_H */
