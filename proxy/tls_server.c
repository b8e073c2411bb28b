/*
 * tls_server.c
 *	  TLS of the ports: the certificate in use, and its successor.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "config.h"
#include "log.h"
#include "loop.h"
#include "metrics.h"
#include "settings_tls.h"
#include "tls_server.h"

#define LOOK_MS		2000
#define FILES		3
#define HANDSHAKE	0x16		/* the first byte of a ClientHello's record */

/* What a file looked like when it was read. */
struct look
{
	dev_t		device;
	ino_t		inode;
	off_t		size;
	struct timespec changed;
	bool		there;
};

static SSL_CTX *current;
static struct look looks[FILES];
static struct deadline next_look;

static struct metric *failures;
static struct metric *reloads;
static struct metric *refused;
static struct metric *refused_last;
static struct metric *expires;

/* ------------------------------------------------------------------- files */

static bool
has_truststore(void)
{
	return *config.tls_truststore != '\0';
}

/* Symbolic links are followed: Kubernetes changes a Secret by changing one. */
static struct look
look_at(const char *path)
{
	struct stat st;
	struct look look;

	memset(&look, 0, sizeof(look));
	if (*path == '\0' || stat(path, &st) != 0)
		return look;
	look.device = st.st_dev;
	look.inode = st.st_ino;
	look.size = st.st_size;
	look.changed = st.st_ctim;
	look.there = true;
	return look;
}

static bool
same_look(const struct look *a, const struct look *b)
{
	return a->there == b->there && a->device == b->device && a->inode == b->inode && a->size == b->size &&
		a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

/* Note how the files look; have they changed? */
static bool
look_again(void)
{
	const char *paths[FILES] = {config.tls_keystore, config.tls_key, config.tls_truststore};
	bool		changed = false;

	for (int i = 0; i < FILES; i++)
	{
		struct look look = look_at(paths[i]);

		changed = changed || !same_look(&look, &looks[i]);
		looks[i] = look;
	}
	return changed;
}

/* --------------------------------------------------------------------- ALPN */

static enum tls_port
port_of(SSL *ssl)
{
	return (enum tls_port) (intptr_t) SSL_get_app_data(ssl);
}

/* Runs only when the client offers something. */
static int
choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len, const unsigned char *offered,
				unsigned offered_len, void *arg)
{
	static const char *const wanted[] = {"h2", "http/1.1"};
	const char *name = wanted[port_of(ssl)];
	size_t		len = strlen(name);

	(void) arg;
	for (unsigned at = 0; at < offered_len; at += 1u + offered[at])
	{
		if (offered[at] != len || at + 1u + len > offered_len || memcmp(offered + at + 1, name, len) != 0)
			continue;
		*out = offered + at + 1;
		*out_len = offered[at];
		return SSL_TLSEXT_ERR_OK;
	}
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* gRPC needs ALPN: a client that offers nothing is told so as one that offers something else. */
static int
look_at_hello(SSL *ssl, int *alert, void *arg)
{
	const unsigned char *extension;
	size_t		len;

	(void) arg;
	if (port_of(ssl) == TLS_PORT_SECOND ||
		SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &extension, &len) == 1)
		return SSL_CLIENT_HELLO_SUCCESS;
	*alert = SSL_AD_NO_APPLICATION_PROTOCOL;
	return SSL_CLIENT_HELLO_ERROR;
}

/* ------------------------------------------------------------------ context */

static SSL_CTX *
read_files(struct wig_error *err)
{
	SSL_CTX    *context = settings_tls(err);

	if (context == NULL)
		return NULL;
	SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
	SSL_CTX_set_client_hello_cb(context, look_at_hello, NULL);
	return context;
}

static int64_t
unix_time(const ASN1_TIME *when)
{
	struct tm	tm;

	return ASN1_TIME_to_tm(when, &tm) == 1 ? (int64_t) timegm(&tm) : 0;
}

/* One that is out of date is used all the same: some clients do not look. */
static void
tell(SSL_CTX *context)
{
	X509	   *certificate = SSL_CTX_get0_certificate(context);
	int64_t		until = unix_time(X509_get0_notAfter(certificate));
	struct tm	tm = {0};
	char		text[32];

	ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	metric_set(expires, until);
	if (until <= (int64_t) time(NULL))
		log_warn("tls", "the certificate in '%s' has expired (%s): clients will refuse it", config.tls_keystore, text);
	else if (unix_time(X509_get0_notBefore(certificate)) > (int64_t) time(NULL))
		log_warn("tls", "the certificate in '%s' is not valid yet: clients will refuse it", config.tls_keystore);
	else
		log_info("tls", "using the certificate in '%s', valid until %s", config.tls_keystore, text);
}

static void
take(SSL_CTX *context)
{
	SSL_CTX_free(current);
	current = context;
	metric_set(refused_last, 0);
	tell(context);
}

void
tls_server_reload(void)
{
	struct wig_error err;
	SSL_CTX    *context;

	if (current == NULL)
		return;
	look_again();
	context = read_files(&err);
	if (context != NULL)
	{
		metric_add(reloads, 1);
		take(context);
		return;
	}
	metric_add(refused, 1);
	metric_set(refused_last, 1);
	log_error("tls", "the certificates in use stay: %s", err.message);
}

static void
look_for_change(struct deadline *d)
{
	if (look_again())
		tls_server_reload();
	deadline_set(d, loop_now() + LOOK_MS, look_for_change);
}

bool
tls_server_open(struct wig_error *err)
{
	SSL_CTX    *context;

	if (*config.tls_keystore == '\0')
		return true;
	failures = metric_counter("wiggle_proxy_tls_failures_total", NULL, "TLS handshakes that failed.");
	reloads = metric_counter("wiggle_proxy_tls_reloads_total", NULL, "Times that new certificates were taken.");
	refused = metric_counter("wiggle_proxy_tls_reloads_refused_total", NULL,
							 "Times that changed certificate files were refused and the old ones kept.");
	refused_last = metric_gauge("wiggle_proxy_tls_files_refused", NULL,
								"1 while the certificate files as they are now are refused and former ones in use.");
	expires = metric_gauge("wiggle_proxy_tls_certificate_expiration_timestamp_seconds", NULL,
						   "When the certificate in use expires, in seconds since 1970.");
	look_again();
	context = read_files(err);
	if (context == NULL)
		return false;
	take(context);
	deadline_set(&next_look, loop_now() + LOOK_MS, look_for_change);
	return true;
}

/* -------------------------------------------------------------- connections */

bool
tls_server_on(void)
{
	return current != NULL;
}

bool
tls_server_needs_peer(void)
{
	return has_truststore() && config.tls_client_auth == TLS_CLIENT_REQUIRED;
}

const char *
tls_server_mode(void)
{
	if (current == NULL)
		return "plaintext";
	if (!has_truststore())
		return "TLS";
	return tls_server_needs_peer() ? "TLS with client certificates" : "TLS, client certificates optional";
}

/* Probes have no certificate: the second port asks, and its calls are refused without. */
struct tls *
tls_server_accept(enum tls_port port)
{
	struct tls *tls = tls_open(current, true);
	int			verify = SSL_VERIFY_NONE;

	SSL_set_app_data(tls_ssl(tls), (void *) (intptr_t) port);
	if (has_truststore())
		verify = SSL_VERIFY_PEER;
	if (tls_server_needs_peer() && port == TLS_PORT_CALLS)
		verify |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
	SSL_set_verify(tls_ssl(tls), verify, NULL);
	return tls;
}

void
tls_server_failed(void)
{
	metric_add(failures, 1);
}

bool
tls_server_hello(const uint8_t *data, size_t len)
{
	return len > 0 && data[0] == HANDSHAKE;
}
