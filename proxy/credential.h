/*
 * credential.h
 *	  What a caller presents: an API key or its certificate. Pure.
 *
 * Of a key only its SHA-256 leaves the header field.
 */
#ifndef WIGGLE_PROXY_CREDENTIAL_H
#define WIGGLE_PROXY_CREDENTIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CREDENTIAL_HASH 32

enum credential_kind
{
	CREDENTIAL_NONE,
	CREDENTIAL_KEY,
	CREDENTIAL_CERTIFICATE,
	CREDENTIAL_MALFORMED		/* a header field that is no key */
};

struct credential
{
	enum credential_kind kind;
	uint8_t		hash[CREDENTIAL_HASH];	/* of the key, or of the subject */
	const char *subject;		/* of the certificate; the call's, in a cache its own */
};

/* The value of an authorization field: "Bearer <key>". */
extern void credential_from_header(struct credential *credential, const char *value, size_t len);

/* A certificate's, unless a key came. */
extern void credential_from_subject(struct credential *credential, const char *subject);

/* In a time that does not depend on where they differ. */
extern bool credential_equal(const struct credential *a, const struct credential *b);

#endif							/* WIGGLE_PROXY_CREDENTIAL_H */
