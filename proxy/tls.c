/*
 * tls.c
 *	  One TLS session as bytes in, bytes out; both sides.
 *
 * OpenSSL reads from the bytes just fed and writes into the session's own buffer
 * through a BIO of ours: a pair of memory BIOs for each session would copy once
 * more and keep the size of the largest reply for ever.
 */
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tls.h"

#define KEPT_BYTES 4096			/* of an empty output buffer */

struct tls
{
	SSL		   *ssl;
	const uint8_t *in;			/* fed and not yet taken */
	size_t		in_len;
	struct buf	out;
	bool		ready;
	bool		failed;
	char		failure[200];
	char	   *peer;
};

/* --------------------------------------------------------------- the BIO */

static int
bio_read(BIO *bio, char *out, int cap)
{
	struct tls *tls = BIO_get_data(bio);
	size_t		n = tls->in_len < (size_t) cap ? tls->in_len : (size_t) cap;

	BIO_clear_retry_flags(bio);
	if (n == 0)
	{
		BIO_set_retry_read(bio);
		return -1;
	}
	memcpy(out, tls->in, n);
	tls->in += n;
	tls->in_len -= n;
	return (int) n;
}

static int
bio_write(BIO *bio, const char *data, int len)
{
	struct tls *tls = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	buf_append(&tls->out, data, (size_t) len);
	return len;
}

static long
bio_ctrl(BIO *bio, int command, long number, void *pointer)
{
	(void) bio;
	(void) number;
	(void) pointer;
	return command == BIO_CTRL_FLUSH;
}

static BIO *
new_bio(struct tls *tls)
{
	static BIO_METHOD *method;
	BIO		   *bio;

	if (method == NULL)
	{
		method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "wiggle");
		if (method == NULL)
			abort();
		BIO_meth_set_read(method, bio_read);
		BIO_meth_set_write(method, bio_write);
		BIO_meth_set_ctrl(method, bio_ctrl);
	}
	bio = BIO_new(method);
	if (bio == NULL)
		abort();
	BIO_set_data(bio, tls);
	BIO_set_init(bio, 1);
	return bio;
}

/* --------------------------------------------------------------- session */

struct tls *
tls_open(SSL_CTX *context, bool server)
{
	struct tls *tls = xcalloc(1, sizeof(*tls));
	BIO		   *bio = new_bio(tls);

	tls->ssl = SSL_new(context);
	if (tls->ssl == NULL)
		abort();
	SSL_set_bio(tls->ssl, bio, bio);
	SSL_set_mode(tls->ssl, SSL_MODE_RELEASE_BUFFERS);
	if (server)
		SSL_set_accept_state(tls->ssl);
	else
		SSL_set_connect_state(tls->ssl);
	return tls;
}

void
tls_free(struct tls *tls)
{
	if (tls == NULL)
		return;
	SSL_free(tls->ssl);
	buf_free(&tls->out);
	free(tls->peer);
	free(tls);
}

SSL *
tls_ssl(struct tls *tls)
{
	return tls->ssl;
}

/* The certificate's verdict says more than the error that it ended in. */
static void
fail(struct tls *tls)
{
	unsigned long code = ERR_peek_error();
	long		verdict = SSL_get_verify_result(tls->ssl);
	const char *reason = code != 0 ? ERR_reason_error_string(code) : NULL;

	if (tls->failed)
		return;
	tls->failed = true;
	if (ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED)
		snprintf(tls->failure, sizeof(tls->failure), "the peer's certificate is refused: %s",
				 X509_verify_cert_error_string(verdict));
	else
		snprintf(tls->failure, sizeof(tls->failure), "TLS: %s", reason != NULL ? reason : "protocol error");
	ERR_clear_error();
}

static void
note_peer(struct tls *tls)
{
	X509	   *certificate = SSL_get0_peer_certificate(tls->ssl);
	BIO		   *text = certificate != NULL ? BIO_new(BIO_s_mem()) : NULL;
	char	   *data;
	long		len;

	if (text == NULL)
		return;
	if (X509_NAME_print_ex(text, X509_get_subject_name(certificate), 0,
						   XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB) >= 0)
	{
		len = BIO_get_mem_data(text, &data);
		tls->peer = xstrndup(len > 0 ? data : "", (size_t) (len > 0 ? len : 0));
	}
	BIO_free(text);
}

void
tls_feed(struct tls *tls, const uint8_t *data, size_t len)
{
	tls->in = data;
	tls->in_len = len;
}

static enum tls_event
outcome(struct tls *tls, int rc)
{
	switch (SSL_get_error(tls->ssl, rc))
	{
		case SSL_ERROR_WANT_READ:
		case SSL_ERROR_WANT_WRITE:
			return TLS_WANT;
		case SSL_ERROR_ZERO_RETURN:
			return TLS_EOF;
		default:
			fail(tls);
			return TLS_FAILED;
	}
}

enum tls_event
tls_read(struct tls *tls, uint8_t *out, size_t cap, size_t *n)
{
	int			rc;

	if (tls->failed)
		return TLS_FAILED;
	ERR_clear_error();
	if (!tls->ready)
	{
		rc = SSL_do_handshake(tls->ssl);
		if (rc != 1)
			return outcome(tls, rc);
		tls->ready = true;
		note_peer(tls);
		return TLS_READY;
	}
	rc = SSL_read_ex(tls->ssl, out, cap, n);
	return rc == 1 ? TLS_DATA : outcome(tls, rc);
}

void
tls_greet(struct tls *tls)
{
	size_t		none;

	tls_feed(tls, NULL, 0);
	tls_read(tls, NULL, 0, &none);
}

bool
tls_ready(const struct tls *tls)
{
	return tls->ready && !tls->failed;
}

bool
tls_write(struct tls *tls, const uint8_t *data, size_t len)
{
	size_t		written;
	int			rc;

	if (!tls_ready(tls))
		return false;
	if (len == 0)
		return true;
	ERR_clear_error();
	rc = SSL_write_ex(tls->ssl, data, len, &written);
	if (rc != 1)
		fail(tls);
	return rc == 1;
}

void
tls_goodbye(struct tls *tls)
{
	if (!tls_ready(tls))
		return;
	ERR_clear_error();
	SSL_shutdown(tls->ssl);
	ERR_clear_error();
}

struct buf *
tls_sealed(struct tls *tls)
{
	return &tls->out;
}

void
tls_sent(struct tls *tls)
{
	if (tls->out.cap > KEPT_BYTES)
		buf_free(&tls->out);
	else
		buf_reset(&tls->out);
}

const char *
tls_failure(const struct tls *tls)
{
	return tls->failure;
}

const char *
tls_peer(const struct tls *tls)
{
	return tls->peer;
}
