/*
 * topology_source.h
 *	  The topology that the settings name: a document, a file or a single database.
 */
#ifndef WIGGLE_PROXY_TOPOLOGY_SOURCE_H
#define WIGGLE_PROXY_TOPOLOGY_SOURCE_H

#include "topology.h"

/* What the settings say; NULL or "" = not set. */
struct topology_source
{
	const char *document;		/* WIGGLE_STORAGE_TOPOLOGY: JSON text when its first
								 * character other than white space is '{', else a path */
	const char *url;			/* WIGGLE_JDBC_URL: the single database */
	const char *user;
	const char *password;
	int			pool;			/* 0: the default */

	/* its replicas, reached as the same user */
	const char *replica_urls;	/* WIGGLE_JDBC_REPLICA_URLS: separated by commas */
	int			replica_pool;	/* 0: the default */
	int64_t		max_replica_lag_ms;
	enum replica_fallback replica_fallback;
	bool		replica_settings;	/* one of those three is set */

	const char *(*variable) (const char *name); /* for ${NAME}; NULL when unset */
	const char *const *parameters;	/* that libpq takes in a URL, then NULL */
};

/*
 * Read and check the topology. NULL with *err, which names the field, the
 * value and what to do; never a credential. Freed with topology_free.
 */
extern struct topology *topology_read(const struct topology_source *source,
									  struct wig_error *err);

#endif							/* WIGGLE_PROXY_TOPOLOGY_SOURCE_H */
