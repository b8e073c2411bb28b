/*
 * security.c
 *	  How to talk to the server: plaintext or TLS, and as whom.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "buf.h"
#include "security.h"
#include "tls_files.h"

static const char *
variable(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && *value != '\0' ? value : NULL;
}

/* An option ("--name"), else its variable; *name is which of them it was. */
static const char *
setting(const struct arguments *args, const char *option, const char *env, const char **name)
{
	const char *value = options_value(args, option + 2);

	*name = value != NULL ? option : env;
	return value != NULL ? value : variable(env);
}

static bool
read_switch(const struct arguments *args, bool *on, struct wig_error *err)
{
	const char *text = variable("WIGGLE_TLS");

	*on = options_has(args, "tls");
	if (text == NULL || *on)
		return true;
	*on = strcasecmp(text, "true") == 0;
	return *on || strcasecmp(text, "false") == 0 ||
		wig_fail(err, "WIGGLE_TLS is '%s', but must be true or false", text);
}

static bool
read_key(struct security *security, struct wig_error *err)
{
	const char *key = variable("WIGGLE_API_KEY");
	struct buf	text = BUF_INIT;

	if (key == NULL)
		return true;
	for (const char *p = key; *p != '\0'; p++)
		if (*p <= ' ' || *p >= 0x7f)
			return wig_fail(err, "WIGGLE_API_KEY is no key: it has blanks or characters that no key has");
	buf_printf(&text, "Bearer %s", key);
	buf_cstr(&text);
	security->authorization = (char *) buf_detach(&text, &(size_t) {0});
	return true;
}

/* Ours for the server, if there is one, and whose the server's may be. */
static bool
load(SSL_CTX *context, const struct tls_file *store, const struct tls_file *key, const struct tls_file *trust,
	 struct wig_error *err)
{
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
	if (key->path != NULL && store->path == NULL)
		return wig_fail(err, "%s is given, but not the certificate (--tls-keystore, WIGGLE_TLS_KEYSTORE)", key->name);
	if (store->path != NULL && !tls_load_identity(context, store, key, err))
		return false;
	if (trust->path != NULL)
		return tls_load_trust(context, trust, false, err);
	SSL_CTX_set_default_verify_paths(context);
	return true;
}

bool
security_read(const struct arguments *args, struct security *security, struct wig_error *err)
{
	struct tls_file store = {.password_name = "WIGGLE_TLS_KEYSTORE_PASSWORD"};
	struct tls_file key = {.password_name = "WIGGLE_TLS_KEYSTORE_PASSWORD"};
	struct tls_file trust = {.password_name = "WIGGLE_TLS_TRUSTSTORE_PASSWORD"};
	const char *unused;
	bool		on;

	store.path = setting(args, "--tls-keystore", "WIGGLE_TLS_KEYSTORE", &store.name);
	key.path = setting(args, "--tls-key", "WIGGLE_TLS_KEY", &key.name);
	trust.path = setting(args, "--tls-truststore", "WIGGLE_TLS_TRUSTSTORE", &trust.name);
	store.password = key.password = variable(store.password_name);
	trust.password = variable(trust.password_name);
	security->server_name = setting(args, "--tls-server-name", "WIGGLE_TLS_SERVER_NAME", &unused);
	if (!read_key(security, err) || !read_switch(args, &on, err))
		return false;
	if (!on && store.path == NULL && key.path == NULL && trust.path == NULL && security->server_name == NULL)
		return true;
	security->context = tls_context(false);
	return load(security->context, &store, &key, &trust, err);
}

void
security_free(struct security *security)
{
	SSL_CTX_free(security->context);
	security->context = NULL;
	if (security->authorization != NULL)
		OPENSSL_cleanse(security->authorization, strlen(security->authorization));
	free(security->authorization);
	security->authorization = NULL;
}
