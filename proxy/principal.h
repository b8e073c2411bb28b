/*
 * principal.h
 *	  Who a caller is: credentials and their roles, as read from the auth shard.
 *
 * What was read counts for WIGGLE_AUTH_CACHE_MILLIS, no longer, also when the shard
 * cannot be reached. The end of the audit is asked for once a second; when it has moved,
 * everything is read anew.
 */
#ifndef WIGGLE_PROXY_PRINCIPAL_H
#define WIGGLE_PROXY_PRINCIPAL_H

#include <stdbool.h>
#include <stdint.h>

#include "credential.h"
#include "error.h"

struct shard;

struct principal
{
	int			refs;
	char	   *id;
	const char **permissions;
	int			npermissions;
	uint64_t	expires_at;		/* loop time, as the auth shard's clock had it; UINT64_MAX = never */
};

enum principal_answer
{
	PRINCIPAL_KNOWN,
	PRINCIPAL_UNKNOWN,			/* there is no such credential */
	PRINCIPAL_UNREACHABLE,		/* the auth shard does not answer */
	PRINCIPAL_ASK				/* it must be asked: principal_ask */
};

/* From what is known. *principal is valid until the loop's turn ends, unless held. */
extern enum principal_answer principal_find(const struct credential *credential,
											struct principal **principal);

/* Embedded in whoever waits. done() gets any answer but PRINCIPAL_ASK, never within
 * principal_ask. */
struct principal_wait
{
	struct principal_wait *next;
	struct principal_wait **prev;	/* NULL: does not wait */
	void		(*done) (struct principal_wait *wait, enum principal_answer answer,
						 struct principal *principal);
};

/* False when it cannot be asked: PRINCIPAL_UNREACHABLE. */
extern bool principal_ask(const struct credential *credential, struct principal_wait *wait);
extern void principal_forget(struct principal_wait *wait);

extern void principal_hold(struct principal *principal);
extern void principal_release(struct principal *principal);

/* Where roles and credentials are; home when no shard has the role. */
extern struct shard *principal_shard(void);

/* Registers the watch on the audit, unless permissions are off. Runs behind shards_start. */
extern void principal_start(void);

#endif							/* WIGGLE_PROXY_PRINCIPAL_H */
