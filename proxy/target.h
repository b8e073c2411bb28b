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
};

/* The three parallel lists of one attempt. */
struct target_list
{
	struct buf	hosts;
	struct buf	addresses;
	struct buf	ports;
	int			n;
};

extern void target_list_add(struct target_list *list, const struct target_host *host,
							const char *address);
extern void target_list_free(struct target_list *list);

/* PQconnectStartParams with the list, the URL's options and what the proxy decides. */
extern PGconn *target_connect(const struct target *target, struct target_list *list,
							  const char *purpose);

#endif							/* WIGGLE_PROXY_TARGET_H */
