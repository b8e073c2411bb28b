/*
 * target.h
 *	  The parts of a struct target that link.c needs while it resolves names.
 */
#ifndef WIGGLE_PROXY_TARGET_H
#define WIGGLE_PROXY_TARGET_H

#include <stdbool.h>
#include <libpq-fe.h>

#include "buf.h"
#include "link.h"

struct target_host
{
	char	   *name;			/* host name, socket folder or "" */
	char	   *address;		/* from the URL, "" when it gives none */
	char	   *port;			/* "" = the default */
	bool		resolve;		/* name must be resolved before libpq sees it */
};

/* Where one connection goes: an address of one of the hosts, "" for a local socket. */
struct target_place
{
	const struct target_host *host;
	char		address[80];
};

struct target
{
	PQconninfoOption *options;
	struct target_host *hosts;
	int			nhosts;
	enum session_kind kind;
	char	   *user;			/* NULL = libpq's default */
	char	   *password;
	char	   *name;
	char	   *session;		/* libpq's "options": the URL's, then what the proxy relies on */
	struct target_past *past;	/* what became of its places */
};

/* The places of one attempt, in their order. */
struct target_list
{
	struct target_place *places;
	int			n;
};

extern void target_list_add(struct target_list *list, const struct target_host *host,
							const char *address);
extern void target_list_free(struct target_list *list);

/*
 * All links to a target learn from one another where to begin: with the place where a
 * session came up last, and last of all with the one that failed last. So a place that
 * says nothing holds them up once, and whatever the order in which a name's addresses
 * come, each of them gets its turn.
 */
extern void target_prefer(const struct target *target, const struct target_place *place);
extern void target_defer(const struct target *target, const struct target_place *place);
extern void target_list_sort(const struct target *target, struct target_list *list);

/* PQconnectStartParams with the place, the URL's options, what the proxy decides and which server (attrs) will do. */
extern PGconn *target_connect(const struct target *target, const struct target_place *place, const char *attrs,
							  const char *purpose);

#endif							/* WIGGLE_PROXY_TARGET_H */
