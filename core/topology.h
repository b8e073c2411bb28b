/*
 * topology.h
 *	  Which databases there are, what each holds, and where new instances go.
 *
 * A topology comes from one JSON document (docs/shards.md has its keys). It is
 * checked as a whole when it is read and immutable afterwards. No file and no
 * database is looked at here.
 */
#ifndef WIGGLE_CORE_TOPOLOGY_H
#define WIGGLE_CORE_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"

/* A poll keeps one bit a shard; retired shards are not counted. */
#define TOPOLOGY_MAX_SHARDS		64
#define TOPOLOGY_MAX_BYTES		(1024 * 1024)
#define TOPOLOGY_MAX_WEIGHT		1000000
#define TOPOLOGY_MAX_REPLICAS	16	/* of one shard */
#define TOPOLOGY_MAX_POOL		1000
#define TOPOLOGY_MAX_LAG_MS		INT32_MAX

/* For what a document does not say. */
#define TOPOLOGY_POOL			10
#define TOPOLOGY_REPLICA_POOL	16
#define TOPOLOGY_REPLICA_LAG_MS	5000

/* About a url, whoever finds out: proxy and command say the same. */
#define TOPOLOGY_POOLER \
	"the url leads through a connection pooler, such as PgBouncer, behind which sessions are not what the proxy" \
	" takes them for; give the server's own host and port: the proxy is itself a pool"

/* About a database, with the shard's id. */
#define TOPOLOGY_COPY \
	"this is a copy of the database that shard %d is; correct the topology, or, when the original is gone for good and" \
	" the copy is to take its place, run \"select wiggle.shard_adopt()\" in it"

/* The same with the role, twice. */
#define TOPOLOGY_MAY_NOT_SERVE \
	"the role \"%s\" may not run what the proxy needs; run \"grant wiggle_server to %s\" there"

/* What such a pooler says of a session that brings settings, unless it is told to ignore them. */
#define TOPOLOGY_POOLER_SAYS	"unsupported startup parameter"

enum shard_state
{
	SHARD_ACTIVE,				/* takes new instances when a generation says so */
	SHARD_DRAINING,				/* serves what it holds, takes nothing new */
	SHARD_RETIRED				/* gone; its ids are not found any more */
};

enum shard_role
{
	ROLE_INSTANCES = 1,
	ROLE_HOME = 2,
	ROLE_AUTH = 4,
	ROLE_SEARCH = 8
};

/* What becomes of a read for a replica when none is there or recent enough. */
enum replica_fallback
{
	FALLBACK_PRIMARY,			/* the primary answers it */
	FALLBACK_FAIL				/* it is refused, which spares the primary */
};

/* A streaming copy of a shard's primary, for reads that may be a little behind. */
struct topology_replica
{
	char	   *url;			/* postgresql://… as libpq takes it */
	char	   *user;			/* NULL: what the URL or the environment says */
	char	   *password;
	int			pool;			/* connections, at most */
};

struct topology_shard
{
	int32_t		id;
	enum shard_state state;
	unsigned	roles;			/* of enum shard_role */
	char	   *url;			/* postgresql://… as libpq takes it; NULL when retired
								 * and without a primary */
	char	   *user;			/* NULL: what the URL or the environment says */
	char	   *password;
	int			pool;
	struct topology_replica *replicas;	/* in the order of the document */
	int			nreplicas;
	int64_t		max_replica_lag_ms; /* a replica further behind serves no reads */
	enum replica_fallback replica_fallback;
};

struct generation_weight
{
	int			shard;			/* index into topology.shards */
	int32_t		weight;			/* 0..TOPOLOGY_MAX_WEIGHT */
};

struct generation
{
	int64_t		id;
	int64_t		active_from_ms; /* Unix milliseconds */
	struct generation_weight *weights;	/* in the order of the document */
	int			nweights;
};

struct topology
{
	struct topology_shard *shards;	/* in the order of the document */
	int			nshards;
	int			home;			/* index into shards */
	struct generation *generations; /* rising in id and in active_from_ms */
	int			ngenerations;
	bool		single;			/* made of one URL; its ids carry the shard number 0 */
};

/*
 * Read and check a document. NULL with *err, which names the shard or the
 * generation, the field, the value and what to do; never a credential. `variable`
 * gives what stands for ${NAME}, NULL when it is not set; `parameters`, then NULL, are
 * those that libpq takes in a URL. Freed with topology_free.
 */
extern struct topology *topology_parse(const char *json, size_t len,
									   const char *(*variable) (const char *name),
									   const char *const *parameters, struct wig_error *err);

/* NULL is allowed. */
extern void topology_free(struct topology *topology);

/* Index of the shard with this id, -1 when it is not listed. */
extern int	topology_find(const struct topology *topology, int32_t id);

/* Index of the shard with the role auth, which a document that names none gives to home. */
extern int	topology_auth(const struct topology *topology);

/*
 * Is there anything to connect for (active or draining, role instances, home or auth)? One with auth
 * alone is set up and asked like any other, and holds no instance.
 */
extern bool topology_serves(const struct topology_shard *shard);

/* "ACTIVE", "DRAINING" or "RETIRED". */
extern const char *topology_state_name(enum shard_state state);

/*
 * "jdbc:postgresql://…" and "postgresql://…" to what libpq takes: malloc'd, or
 * NULL with *err. Parameters that only the JDBC driver knows are translated,
 * left out when they do not matter here, or refused by name; those of libpq (`parameters`)
 * stay, but for what the proxy decides itself. `what` names the setting in the message.
 */
extern char *topology_url(const char *url, const char *what, const char *const *parameters,
						  struct wig_error *err);

/* An ISO-8601 instant ("2026-10-01T00:00:00Z", fractions and offsets allowed). */
extern bool topology_instant(const char *text, int64_t *unix_ms);

/* The moment as documents have it, "2026-11-02T09:00:00.000Z". */
#define TOPOLOGY_INSTANT_LEN 40
extern void topology_write_instant(int64_t unix_ms, char *out);

#endif							/* WIGGLE_CORE_TOPOLOGY_H */
