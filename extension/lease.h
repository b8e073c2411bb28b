/*
 * lease.h
 *	  Rows of wf_lease: tokens that a worker holds.
 *
 * A lease is inserted by a claim (or with a token minted already leased) and
 * deleted by whoever settles, fails, releases, expires or cancels, all under
 * the instance's lock. An expired lease that nobody has reclaimed is still good.
 */
#ifndef WIGGLE_LEASE_H
#define WIGGLE_LEASE_H

#include "wiggle.h"

#include "store.h"

typedef struct WigLease
{
	TimestampTz expires_at;
	TimestampTz claimed_at;
	char		owner[WIG_MAX_OWNER + 1];
} WigLease;

extern void wig_lease_insert(WigStore *store, int64 instance, int32 n, const char *owner,
							 TimestampTz claimed_at, TimestampTz expires_at);

/* Read the lease of a token; false when nobody holds it. */
extern bool wig_lease_read(WigStore *store, int64 instance, int32 n, WigLease *lease);

/* Delete, or move the expiry of, the lease that was read last. */
extern void wig_lease_delete(WigStore *store);
extern void wig_lease_extend(WigStore *store, TimestampTz expires_at);

/*
 * Look at every lease: collect up to max that expire at or before `now` (in
 * arrays of the caller) and learn when the earliest of the others expires.
 * Returns the number collected.
 */
extern int	wig_lease_scan_expired(WigStore *store, TimestampTz now, int max,
								   int64 *instances, int32 *ns, TimestampTz *next);

#endif							/* WIGGLE_LEASE_H */
