/*
 * credential.c
 *	  What a caller presents: an API key or its certificate.
 */
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "credential.h"

static void
hash(struct credential *credential, const char *text, size_t len)
{
	if (EVP_Digest(text, len, credential->hash, NULL, EVP_sha256(), NULL) != 1)
		abort();
}

void
credential_from_header(struct credential *credential, const char *value, size_t len)
{
	static const char scheme[] = "Bearer ";
	size_t		n = sizeof(scheme) - 1;

	credential->kind = CREDENTIAL_MALFORMED;
	if (len <= n || strncasecmp(value, scheme, n) != 0)
		return;
	value += n;
	len -= n;
	while (len > 0 && *value == ' ')
	{
		value++;
		len--;
	}
	while (len > 0 && value[len - 1] == ' ')
		len--;
	if (len == 0)
		return;
	credential->kind = CREDENTIAL_KEY;
	hash(credential, value, len);
}

void
credential_from_subject(struct credential *credential, const char *subject)
{
	if (subject == NULL || credential->kind != CREDENTIAL_NONE)
		return;
	credential->kind = CREDENTIAL_CERTIFICATE;
	credential->subject = subject;
	hash(credential, subject, strlen(subject));
}

bool
credential_equal(const struct credential *a, const struct credential *b)
{
	return a->kind == b->kind && CRYPTO_memcmp(a->hash, b->hash, CREDENTIAL_HASH) == 0;
}
