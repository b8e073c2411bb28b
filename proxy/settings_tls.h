/*
 * settings_tls.h
 *	  The certificates and keys that the settings name.
 */
#ifndef WIGGLE_PROXY_SETTINGS_TLS_H
#define WIGGLE_PROXY_SETTINGS_TLS_H

#include "tls_files.h"

/* Read them, for a server; NULL with *err. Only when WIGGLE_TLS_KEYSTORE is set. */
extern SSL_CTX *settings_tls(struct wig_error *err);

#endif							/* WIGGLE_PROXY_SETTINGS_TLS_H */
