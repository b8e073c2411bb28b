/*
 * security.h
 *	  How to talk to the server: plaintext or TLS, and as whom.
 *
 * The options --tls..., else the variables of the same names, which are those of the
 * proxy and of Wiggle's own clients.
 */
#ifndef WIGGLE_CLI_SECURITY_H
#define WIGGLE_CLI_SECURITY_H

#include <openssl/ssl.h>
#include <stdbool.h>

#include "error.h"
#include "options.h"

struct security
{
	SSL_CTX    *context;		/* NULL: plaintext; owned */
	const char *server_name;	/* whom the certificate must name; NULL: the host */
	char	   *authorization;	/* "Bearer <key>" of WIGGLE_API_KEY; NULL: none; owned */
};

/* The options, for the tables of main.c. */
#define SECURITY_OPTIONS \
	{"tls", 0, NULL, "speak TLS; any of the next four does, too"}, \
	{"tls-truststore", 0, "FILE", "authorities that the server's certificate may come from"}, \
	{"tls-keystore", 0, "FILE", "certificate of one's own for the server, with its key"}, \
	{"tls-key", 0, "FILE", "the key (PEM), when it is not in the keystore"}, \
	{"tls-server-name", 0, "NAME", "whom the server's certificate must name, instead of the host"}

/* Read the files, too. False with *err. */
extern bool security_read(const struct arguments *args, struct security *security, struct wig_error *err);
extern void security_free(struct security *security);

#endif							/* WIGGLE_CLI_SECURITY_H */
