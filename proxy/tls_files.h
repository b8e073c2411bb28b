/*
 * tls_files.h
 *	  Certificates and keys from files: PEM and PKCS#12.
 *
 * A file's content tells its form, whatever it is called. Java's own form (JKS) is
 * refused with the command that converts it. A file with a private key must be as
 * PostgreSQL wants it: no access for others, nor for its group unless root owns it.
 */
#ifndef WIGGLE_PROXY_TLS_FILES_H
#define WIGGLE_PROXY_TLS_FILES_H

#include <openssl/ssl.h>
#include <stdbool.h>

#include "error.h"

/* NULL or "" = not set. The names are those of the settings, for messages. */
struct tls_file
{
	const char *name;
	const char *path;
	const char *password_name;
	const char *password;
};

/*
 * Our certificate with its chain, and its key: all from `store`, or the key from
 * `key` (PEM), whose password is the store's.
 */
extern bool tls_load_identity(SSL_CTX *context, const struct tls_file *store,
							  const struct tls_file *key, struct wig_error *err);

/* The authorities that a peer's certificate must come from; a server also names them
 * to its clients. */
extern bool tls_load_trust(SSL_CTX *context, const struct tls_file *store, bool server,
						   struct wig_error *err);

/* TLS 1.2 at least, ciphers that HTTP/2 allows, no resumption, no renegotiation. */
extern SSL_CTX *tls_context(bool server);

#endif							/* WIGGLE_PROXY_TLS_FILES_H */
