/*
 * tls_files.c
 *	  Certificates and keys from files: PEM and PKCS#12.
 */
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "tls_files.h"

#define FILE_BYTES (1 << 20)

/* What a file held; owned. */
struct content
{
	EVP_PKEY   *key;			/* NULL: none */
	STACK_OF(X509) *certificates;	/* ours first, when there is a key with it */
};

static void
free_content(struct content *content)
{
	EVP_PKEY_free(content->key);
	sk_X509_pop_free(content->certificates, X509_free);
}

static bool
is_set(const char *text)
{
	return text != NULL && *text != '\0';
}

static const char *
reason(void)
{
	unsigned long code = ERR_peek_last_error();
	const char *text = code != 0 ? ERR_reason_error_string(code) : NULL;

	return text != NULL ? text : "it is damaged";
}

/* ------------------------------------------------------------------ bytes */

static bool
check_private(const struct tls_file *file, const struct stat *st, struct wig_error *err)
{
	mode_t		forbidden = st->st_uid == 0 ? S_IWGRP | S_IXGRP | S_IRWXO : S_IRWXG | S_IRWXO;

	if (st->st_uid != geteuid() && st->st_uid != 0)
		return wig_fail(err, "%s: '%s' has a private key and must belong to the user that runs this program, or to root",
						file->name, file->path);
	if ((st->st_mode & forbidden) != 0)
		return wig_fail(err, "%s: '%s' has a private key, but others may use it: its mode must be 0600 or less,"
						" or 0640 or less when it belongs to root", file->name, file->path);
	return true;
}

static bool
read_all(int fd, const struct tls_file *file, struct stat *st, struct buf *out, struct wig_error *err)
{
	ssize_t		n;

	if (fstat(fd, st) != 0)
		return wig_fail(err, "%s: cannot look at '%s': %s", file->name, file->path, strerror(errno));
	if (!S_ISREG(st->st_mode) || st->st_size > FILE_BYTES)
		return wig_fail(err, "%s: '%s' is not a file of up to %d bytes", file->name, file->path, FILE_BYTES);
	buf_reserve(out, FILE_BYTES);
	while ((n = read(fd, out->data + out->len, FILE_BYTES - out->len)) > 0)
		out->len += (size_t) n;
	if (n < 0)
		return wig_fail(err, "%s: cannot read '%s': %s", file->name, file->path, strerror(errno));
	return true;
}

static bool
read_file(const struct tls_file *file, struct stat *st, struct buf *out, struct wig_error *err)
{
	int			fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool		ok;

	if (fd < 0)
		return wig_fail(err, "%s: cannot open '%s': %s", file->name, file->path, strerror(errno));
	ok = read_all(fd, file, st, out, err);
	close(fd);
	buf_cstr(out);
	return ok;
}

/* The bytes of a file are terminated. */
static bool
has_text(const struct buf *bytes, const char *text)
{
	return bytes->data != NULL && strstr((const char *) bytes->data, text) != NULL;
}

/* -------------------------------------------------------------------- PEM */

/* Never asks a person. */
static int
give_password(char *out, int cap, int writing, void *arg)
{
	const char *password = arg;
	size_t		len = is_set(password) ? strlen(password) : 0;

	(void) writing;
	if (len > (size_t) cap)
		return -1;
	memcpy(out, password, len);
	return (int) len;
}

static bool
take_pem_key(const struct buf *text, const struct tls_file *file, struct content *content, struct wig_error *err)
{
	BIO		   *bio;

	if (!has_text(text, "PRIVATE KEY-----"))
		return true;
	bio = BIO_new_mem_buf(text->data, (int) text->len);
	content->key = PEM_read_bio_PrivateKey(bio, NULL, give_password, (void *) file->password);
	BIO_free(bio);
	if (content->key != NULL)
		return true;
	return wig_fail(err, "%s: the private key in '%s' cannot be read (%s); if it is encrypted, %s must be its password",
					file->name, file->path, reason(), file->password_name);
}

static bool
take_pem_certificates(const struct buf *text, const struct tls_file *file, struct content *content,
					  struct wig_error *err)
{
	BIO		   *bio = BIO_new_mem_buf(text->data, (int) text->len);
	X509	   *certificate;
	bool		ok;

	while ((certificate = PEM_read_bio_X509_AUX(bio, NULL, give_password, NULL)) != NULL)
		sk_X509_push(content->certificates, certificate);
	ok = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
	BIO_free(bio);
	if (!ok)
		return wig_fail(err, "%s: a certificate in '%s' cannot be read: %s", file->name, file->path, reason());
	return true;
}

/* ----------------------------------------------------------------- PKCS#12 */

static bool
take_pkcs12(const struct buf *bytes, const struct tls_file *file, struct content *content, struct wig_error *err)
{
	const uint8_t *at = bytes->data;
	const char *password = file->password != NULL ? file->password : "";
	PKCS12	   *store = d2i_PKCS12(NULL, &at, (long) bytes->len);
	STACK_OF(X509) *others = NULL;
	X509	   *own = NULL;
	bool		ok;

	if (store == NULL)
		return wig_fail(err, "%s: '%s' is neither PEM nor PKCS#12", file->name, file->path);
	if (PKCS12_mac_present(store) && !PKCS12_verify_mac(store, password, -1) &&
		(*password != '\0' || !PKCS12_verify_mac(store, NULL, 0)))
	{
		PKCS12_free(store);
		return wig_fail(err, "%s: '%s' does not open with the password in %s", file->name, file->path,
						file->password_name);
	}
	ok = PKCS12_parse(store, password, &content->key, &own, &others);
	PKCS12_free(store);
	if (!ok)
		return wig_fail(err, "%s: the PKCS#12 file '%s' cannot be read (%s); when it has old ciphers, write it anew:"
						" openssl pkcs12 -legacy -in OLD -out FILE.pem", file->name, file->path, reason());
	if (own != NULL)
		sk_X509_push(content->certificates, own);
	while (others != NULL && sk_X509_num(others) > 0)
		sk_X509_push(content->certificates, sk_X509_shift(others));
	sk_X509_free(others);
	return true;
}

/* ------------------------------------------------------------- any of them */

static bool
is_java_store(const struct buf *bytes)
{
	static const uint8_t jks[] = {0xfe, 0xed, 0xfe, 0xed};
	static const uint8_t jceks[] = {0xce, 0xce, 0xce, 0xce};

	return bytes->len >= sizeof(jks) &&
		(memcmp(bytes->data, jks, sizeof(jks)) == 0 || memcmp(bytes->data, jceks, sizeof(jceks)) == 0);
}

static bool
take_bytes(const struct buf *bytes, const struct tls_file *file, bool private, struct content *content,
		   struct wig_error *err)
{
	if (is_java_store(bytes))
		return wig_fail(err, "%s: '%s' is a Java keystore (JKS), which only Java reads; convert it: keytool"
						" -importkeystore -srckeystore %s -destkeystore %s.p12 -deststoretype PKCS12",
						file->name, file->path, file->path, file->path);
	if (!has_text(bytes, "-----BEGIN "))
		return take_pkcs12(bytes, file, content, err);
	if (has_text(bytes, "-----BEGIN X509 CRL-----"))
		return wig_fail(err, "%s: '%s' has a revocation list, which is not looked at; take it out, and revoke what"
						" a certificate may do with \"wiggle auth\"", file->name, file->path);
	return take_pem_certificates(bytes, file, content, err) &&
		(!private || take_pem_key(bytes, file, content, err));
}

static bool
read_content(const struct tls_file *file, bool private, struct content *content, struct wig_error *err)
{
	struct buf	bytes = BUF_INIT;
	struct stat st;
	bool		ok;

	ERR_clear_error();
	content->key = NULL;
	content->certificates = sk_X509_new_null();
	ok = read_file(file, &st, &bytes, err) && take_bytes(&bytes, file, private, content, err) &&
		(content->key == NULL || !private || check_private(file, &st, err));
	if (bytes.data != NULL)
		OPENSSL_cleanse(bytes.data, bytes.len);
	buf_free(&bytes);
	ERR_clear_error();
	return ok;
}

/* ----------------------------------------------------------------- context */

static bool
use_identity(SSL_CTX *context, const struct tls_file *store, const struct tls_file *key,
			 const struct content *content, EVP_PKEY *private_key, struct wig_error *err)
{
	const struct tls_file *of_key = is_set(key->path) ? key : store;

	if (sk_X509_num(content->certificates) == 0)
		return wig_fail(err, "%s: there is no certificate in '%s'", store->name, store->path);
	if (private_key == NULL)
		return wig_fail(err, "%s: there is no private key in '%s'%s%s%s", of_key->name, of_key->path,
						of_key == store ? "; if it has a file of its own, " : "", of_key == store ? key->name : "",
						of_key == store ? " names it" : "");
	if (SSL_CTX_use_certificate(context, sk_X509_value(content->certificates, 0)) != 1)
		return wig_fail(err, "%s: the certificate in '%s' is not used: %s", store->name, store->path, reason());
	for (int i = 1; i < sk_X509_num(content->certificates); i++)
		SSL_CTX_add1_chain_cert(context, sk_X509_value(content->certificates, i));
	if (X509_check_private_key(sk_X509_value(content->certificates, 0), private_key) != 1)
		return wig_fail(err, "%s: the private key in '%s' does not belong to the first certificate in '%s'",
						of_key->name, of_key->path, store->path);
	if (SSL_CTX_use_PrivateKey(context, private_key) != 1)
		return wig_fail(err, "%s: the private key in '%s' is not used: %s", of_key->name, of_key->path, reason());
	return true;
}

bool
tls_load_identity(SSL_CTX *context, const struct tls_file *store, const struct tls_file *key,
				  struct wig_error *err)
{
	struct content main;
	struct content apart = {NULL, NULL};
	bool		split = is_set(key->path);
	bool		ok = read_content(store, !split, &main, err) && (!split || read_content(key, true, &apart, err)) &&
		use_identity(context, store, key, &main, split ? apart.key : main.key, err);

	free_content(&main);
	free_content(&apart);
	return ok;
}

bool
tls_load_trust(SSL_CTX *context, const struct tls_file *store, bool server, struct wig_error *err)
{
	struct content content;
	bool		ok = read_content(store, false, &content, err);

	if (ok && sk_X509_num(content.certificates) == 0)
		ok = wig_fail(err, "%s: there is no certificate in '%s'", store->name, store->path);
	for (int i = 0; ok && i < sk_X509_num(content.certificates); i++)
	{
		X509_STORE_add_cert(SSL_CTX_get_cert_store(context), sk_X509_value(content.certificates, i));
		if (server)
			SSL_CTX_add_client_CA(context, sk_X509_value(content.certificates, i));
	}
	free_content(&content);
	return ok;
}

SSL_CTX *
tls_context(bool server)
{
	SSL_CTX    *context = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());

	if (context == NULL ||
		SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1 ||
		SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20:!aNULL") != 1)
		abort();

	/*
	 * No resumption: connections live long, and a session that is resumed would bring
	 * along what was decided under other files, or at the other port.
	 */
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_num_tickets(context, 0);
	return context;
}
