/*
 * link.h
 *	  One libpq connection on the loop: connect, greet, watch, lose, connect again.
 *
 * Nothing here blocks: names are resolved by uv_getaddrinfo, everything else is
 * libpq's asynchronous interface. A started link connects again by itself with
 * backoff and jitter until it is stopped.
 *
 * While a link is up its owner alone sends on `conn` and reads results from
 * ready(); the link consumes input, flushes output and notices the loss.
 */
#ifndef WIGGLE_PROXY_LINK_H
#define WIGGLE_PROXY_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <libpq-fe.h>
#include <uv.h>

#include "error.h"
#include "loop.h"
#include "topology.h"

/* Where to connect: a parsed URL, made once for each database. */
struct target;

/* Which of the URL's hosts will do. */
enum session_kind
{
	SESSION_WRITES,				/* a primary */
	SESSION_ANY					/* a standby where there is one */
};

/* `what` names the entry in a message: "shard 1 primary". user and password: where the URL has none. */
extern struct target *target_create(const char *what, const char *url, const char *user, const char *password,
									enum session_kind kind, struct wig_error *err);
extern void target_free(struct target *target);

/* "host:port/database" for the log, without credentials. */
extern const char *target_name(const struct target *target);

enum link_state
{
	LINK_STOPPED,
	LINK_WAITING,				/* for the next attempt */
	LINK_RESOLVING,
	LINK_CONNECTING,
	LINK_GREETING,				/* session settings and the shard's identity */
	LINK_UP
};

struct link;

struct link_ops
{
	/*
	 * The statement (text parameters, one row with the column LINK_BACKEND) that a new
	 * session runs first, and the judge of its row; NULL: none, up at once. False with *err
	 * refuses the connection: the attempt goes on with the next place, and later ones come to this
	 * one last. One that a pooler stands in is refused before the judge is asked.
	 */
	bool		(*greet) (struct link *link);
	bool		(*greeted) (struct link *link, const PGresult *result, struct wig_error *err);

	/* The session can be used. */
	void		(*up) (struct link *link);

	/* Input has come or the connection has broken: read what PQisBusy allows. */
	void		(*ready) (struct link *link);

	/* It was up and is gone, `conn` included; why is for the log. */
	void		(*down) (struct link *link, const char *why);

	/* An attempt failed at every place; sqlstate is "" when no server gave one. */
	void		(*failed) (struct link *link, const char *sqlstate, const char *why);
};

struct link
{
	const struct link_ops *ops;
	const struct target *target;
	void	   *owner;
	const char *purpose;		/* "lane", "side", "listen", "setup": application_name */
	enum link_state state;
	PGconn	   *conn;			/* NULL unless connecting, greeting or up */
	unsigned	attempts;		/* failed since it was last up for a while */
	int			only;			/* of the target's hosts, -1 = all of them */
	int			fewest;			/* an attempt at fewer places than these fails at once */

	/* the link's own */
	struct attempt *attempt;	/* the one under way or that came up; NULL = none, or at a former target */
	uv_poll_t  *watch;
	int			fd;
	int			events;
	uint64_t	up_since;
	struct deadline timer;
};

/* The column that holds pg_backend_pid(). */
#define LINK_BACKEND "backend"

/*
 * Does another process carry out statements than the one that the session was told of? Then
 * a pooler stands between: what a session is made of (prepared statements, LISTEN, locks)
 * may end up anywhere, and a lost one cannot be ended by its process id.
 */
extern bool link_pooled(const struct link *link, const PGresult *result);

extern void link_init(struct link *link, const struct link_ops *ops, const struct target *target,
					  const char *purpose, void *owner);

/* Begin to connect; nothing happens when it has been started before. */
extern void link_start(struct link *link);

/*
 * Connect to another target from now on: an attempt on its way begins anew, a session
 * that is up stays until its owner breaks it. The former target is not used any more.
 * Not from within a callback of this link.
 */
extern void link_aim(struct link *link, const struct target *target);

/* The server answers others: make the attempt that is waited for now. */
extern void link_hurry(struct link *link);

/* Close without another attempt; down() is not called. */
extern void link_stop(struct link *link);

/* Send what libpq has buffered; watches for room when it does not fit. */
extern void link_flush(struct link *link);

/*
 * Give the connection up, with why for the log: down() runs at once when it was up
 * (inside this call), and another attempt follows.
 */
extern void link_break(struct link *link, const char *why);

/* The place it is connected to will not do: attempts at the target come to it last. */
extern void link_next_host(struct link *link);

/* And the place where it stands, within greeted() or while it is up; NULL when the target is another by now. */
struct target_place;
extern const struct target_place *link_place(const struct link *link);

static inline bool
link_up(const struct link *link)
{
	return link->state == LINK_UP;
}

#endif							/* WIGGLE_PROXY_LINK_H */
