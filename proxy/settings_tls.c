/*
 * settings_tls.c
 *	  The certificates and keys that the settings name.
 */
#include "config.h"
#include "settings_tls.h"

SSL_CTX *
settings_tls(struct wig_error *err)
{
	const struct tls_file store = {
		"WIGGLE_TLS_KEYSTORE", config.tls_keystore, "WIGGLE_TLS_KEYSTORE_PASSWORD", config.tls_keystore_password
	};
	const struct tls_file key = {
		"WIGGLE_TLS_KEY", config.tls_key, "WIGGLE_TLS_KEYSTORE_PASSWORD", config.tls_keystore_password
	};
	const struct tls_file trust = {
		"WIGGLE_TLS_TRUSTSTORE", config.tls_truststore, "WIGGLE_TLS_TRUSTSTORE_PASSWORD",
		config.tls_truststore_password
	};
	SSL_CTX    *context = tls_context(true);

	if (tls_load_identity(context, &store, &key, err) &&
		(*config.tls_truststore == '\0' || tls_load_trust(context, &trust, true, err)))
		return context;
	SSL_CTX_free(context);
	return NULL;
}
