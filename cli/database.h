/*
 * database.h
 *	  What a database says of itself, asked over a connection of our own.
 */
#ifndef WIGGLE_CLI_DATABASE_H
#define WIGGLE_CLI_DATABASE_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"

#define DATABASE_PROBLEM 320

struct database
{
	bool		reached;
	bool		pooled;			/* by way of a pooler, which may be all that was reached */
	bool		in_recovery;	/* a standby: it follows a primary and takes no writes */
	char		problem[DATABASE_PROBLEM];	/* why it was not reached or did not answer; or empty */
	char		server[32];		/* PostgreSQL's version */
	char		available[32];	/* the extension that the server could install; or empty */
	char		extension[32];	/* the one that is installed there; or empty */
	char		library[32];	/* the one that the server runs */
	char		system[32];		/* the cluster's identifier, which copies of its files share */
	char		oid[16];		/* the database in it */
	char		started[40];	/* when its server started, which copies do not share */
	char		shard[16];		/* the shard that it has been claimed for; or empty */
	char		facts[512];		/* of a shard: which database it is, for home's registry, in JSON; or empty */
	bool		copied;			/* from another database, which is the shard */
	bool		may_serve;		/* the role may run what a proxy needs */
	bool		compatible;		/* the library runs with the extension as it is */
	bool		may_create;		/* it may create the extension */
	char		role[64];
	int64_t		lag_ms;			/* of a standby: how old its last change is while it has not all; -1: unknown */
};

/*
 * "host:port/name" of a URL: false when libpq cannot take the URL. Nothing is
 * connected to, and no credential gets into the name.
 */
extern bool database_name(const char *url, const char *user, struct buf *out);

/* Connect, ask and leave. Of several hosts a primary is the one that takes writes. */
extern void database_ask(const char *url, const char *user, const char *password, bool primary,
						 struct database *database);

/* What home's registry refuses of a shard; wal: the position that its database lies behind, or empty. */
typedef void (*database_refusal_fn) (int shard, const char *refusal, const char *wal, void *arg);

/*
 * Have home's registry judge the shards of a topology, as a proxy does when it starts
 * (entries: as wiggle.shard_admit takes them, all of them); what it notes is rolled back. False with
 * the reason in `problem` when it cannot.
 */
extern bool database_judge(const char *url, const char *user, const char *password, const char *entries,
						   database_refusal_fn tell, void *arg, char problem[DATABASE_PROBLEM]);

/* Has it written up to `wal` meanwhile? */
extern bool database_reaches(const char *url, const char *user, const char *password, const char *wal);

#endif							/* WIGGLE_CLI_DATABASE_H */
