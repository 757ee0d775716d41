#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

// OpenSSL defines some calls as macros, which Swift does not import. The functions below wrap them.

static inline int tambour_ssl_ctx_set_min_version(SSL_CTX *context, int version) {
    return (int)SSL_CTX_set_min_proto_version(context, version);
}

static inline void tambour_ssl_ctx_set_max_version(SSL_CTX *context, int version) {
    SSL_CTX_set_max_proto_version(context, version);
}

static inline void tambour_ssl_ctx_set_cache_mode(SSL_CTX *context, long mode) {
    SSL_CTX_set_session_cache_mode(context, mode);
}

static inline int tambour_ssl_ctx_set_groups(SSL_CTX *context, const char *groups) {
    return (int)SSL_CTX_set1_groups_list(context, groups);
}

static inline void tambour_ssl_ctx_set_server_name_callback(
    SSL_CTX *context, int (*callback)(SSL *, int *, void *), void *argument) {
    SSL_CTX_set_tlsext_servername_callback(context, callback);
    SSL_CTX_set_tlsext_servername_arg(context, argument);
}

static inline int tambour_ssl_set_server_name(SSL *ssl, const char *name) {
    return (int)SSL_set_tlsext_host_name(ssl, name);
}

// Sets the options that all contexts use. Swift does not import these constants.
static inline void tambour_ssl_ctx_set_rules(SSL_CTX *context) {
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
        SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
}

// Turns off TLS 1.2 session tickets. `SSL_CTX_set_num_tickets` sets the number of TLS 1.3 tickets.
static inline void tambour_ssl_ctx_no_tickets(SSL_CTX *context) {
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
}

static inline void tambour_ssl_set_message_callback(
    SSL *ssl, void (*callback)(int, int, int, const void *, size_t, SSL *, void *), void *argument) {
    SSL_set_msg_callback(ssl, callback);
    SSL_set_msg_callback_arg(ssl, argument);
}

static const long tambour_no_session_cache = SSL_SESS_CACHE_OFF;
static const long tambour_client_session_cache =
    SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL;

// Prepares HMAC with SHA-256. The parameters only point to `key` and `digest`, so both must stay
// valid until OpenSSL has read them.
static inline int tambour_mac_set_key(EVP_MAC_CTX *context, unsigned char *key, size_t count) {
    char digest[] = "SHA256";
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, key, count),
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end(),
    };
    return EVP_MAC_CTX_set_params(context, parameters);
}

static inline void tambour_bio_want_read(BIO *bio) {
    BIO_clear_retry_flags(bio);
    BIO_set_retry_read(bio);
}

static inline void tambour_bio_done(BIO *bio) {
    BIO_clear_retry_flags(bio);
}

// Returns a copy of the DNS name at `index` in the certificate; NULL after the last name.
static inline char *tambour_x509_dns_name(X509 *certificate, int index) {
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    char *found = NULL;
    for (int i = 0; i < sk_GENERAL_NAME_num(names) && found == NULL; i++) {
        GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        if (name->type != GEN_DNS || index-- > 0) continue;
        const unsigned char *text = ASN1_STRING_get0_data(name->d.dNSName);
        found = OPENSSL_strndup((const char *)text, (size_t)ASN1_STRING_length(name->d.dNSName));
    }
    GENERAL_NAMES_free(names);
    return found;
}

static inline void tambour_free(void *pointer) {
    OPENSSL_free(pointer);
}
