// The limit of TLS: OpenSSL with memory BIOs and without sockets. Measures only the processor time
// and the memory of the server's side.
#define _GNU_SOURCE
#include "common.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <unistd.h>

enum { RECORD = 16384, PASSES = 5 };

struct side {
    SSL *ssl;
    BIO *in, *out;
};

static SSL_CTX *server_context, *client_context;
static SSL_SESSION *session;
static int64_t spent; // by the server's side, nanoseconds

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static int keep_session(SSL *ssl, SSL_SESSION *fresh) {
    (void)ssl;
    SSL_SESSION_free(session);
    session = fresh;
    return 1;
}

static struct side open_side(SSL_CTX *context, int is_server) {
    struct side side = {SSL_new(context), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem())};
    SSL_set_bio(side.ssl, side.in, side.out);
    if (is_server) SSL_set_accept_state(side.ssl);
    else SSL_set_connect_state(side.ssl);
    return side;
}

// Moves the bytes that one side has written to the other side.
static void move(struct side *from, struct side *to) {
    static char bytes[4 * RECORD];
    int count;
    while ((count = BIO_read(from->out, bytes, sizeof bytes)) > 0) BIO_write(to->in, bytes, count);
}

static void handshake(struct side *server, struct side *client, int resumes) {
    int64_t start = now();
    *server = open_side(server_context, 1);
    spent += now() - start;
    *client = open_side(client_context, 0);
    if (resumes && session) SSL_set_session(client->ssl, session);
    for (int round = 0; round < 4; round++) {
        SSL_do_handshake(client->ssl);
        move(client, server);
        start = now();
        SSL_do_handshake(server->ssl);
        spent += now() - start;
        move(server, client);
    }
    if (!SSL_is_init_finished(server->ssl) || !SSL_is_init_finished(client->ssl)) die("no handshake");
    char byte;
    SSL_read(client->ssl, &byte, 1); // takes the session ticket
}

// Echoes `count` bytes, and measures the server's side of this echo.
static void echo(struct side *server, struct side *client, char *bytes, int count) {
    SSL_write(client->ssl, bytes, count);
    move(client, server);
    int64_t start = now();
    int read, total = 0;
    static char text[RECORD];
    while ((read = SSL_read(server->ssl, text, sizeof text)) > 0) {
        SSL_write(server->ssl, text, read);
        total += read;
    }
    spent += now() - start;
    if (total != count) die("an echo of %d bytes instead of %d", total, count);
    move(server, client);
    while ((read = SSL_read(client->ssl, text, sizeof text)) > 0) {}
}

static void close_side(struct side *side) {
    SSL_set_shutdown(side->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(side->ssl);
}

// Returns the time that the server needs for one handshake, in microseconds: the best result of
// several passes.
static double handshakes(int64_t count, int resumes) {
    int64_t best = INT64_MAX;
    for (int pass = 0; pass < PASSES; pass++) {
        spent = 0;
        for (int64_t i = 0; i < count; i++) {
            struct side server, client;
            handshake(&server, &client, resumes);
            int64_t start = now();
            close_side(&server);
            spent += now() - start;
            close_side(&client);
        }
        if (spent < best) best = spent;
    }
    return best / 1e3 / count;
}

static double echoes(int64_t count, int bytes) {
    struct side server, client;
    handshake(&server, &client, 0);
    char text[RECORD] = {0};
    int64_t best = INT64_MAX;
    for (int pass = 0; pass < PASSES; pass++) {
        spent = 0;
        for (int64_t i = 0; i < count; i++) echo(&server, &client, text, bytes);
        if (spent < best) best = spent;
    }
    close_side(&server);
    close_side(&client);
    return best / 1e3 / count;
}

static int64_t resident(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    long size, pages;
    if (!file || fscanf(file, "%ld %ld", &size, &pages) != 2) die("no /proc/self/statm");
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

// Returns the number of resident bytes that the server needs for one idle session after an echo.
static double idle(int count) {
    struct side *servers = calloc(count, sizeof *servers);
    int64_t before = resident();
    char text[1024] = {0};
    for (int i = 0; i < count; i++) {
        struct side client;
        handshake(&servers[i], &client, 0);
        echo(&servers[i], &client, text, sizeof text);
        close_side(&client);
    }
    double bytes = (double)(resident() - before) / count;
    for (int i = 0; i < count; i++) close_side(&servers[i]);
    free(servers);
    return bytes;
}

int main(int argc, char **argv) {
    const char *certificate = NULL, *key = NULL, *count = "500", *sessions = "2000";
    struct option options[] = {
        {"--certificate", &certificate}, {"--key", &key}, {"--count", &count}, {"--sessions", &sessions}, {0},
    };
    const char *usage = "tls --certificate FILE --key FILE [--count N] [--sessions N]";
    parse_options(argc, argv, options, usage);
    if (!certificate || !key) die("usage: %s", usage);
    server_context = SSL_CTX_new(TLS_server_method());
    client_context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_mode(server_context, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(server_context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(server_context, 1);
    SSL_CTX_set_ciphersuites(server_context, "TLS_AES_128_GCM_SHA256");
    SSL_CTX_set1_groups_list(server_context, "X25519");
    if (SSL_CTX_use_certificate_chain_file(server_context, certificate) != 1 ||
        SSL_CTX_use_PrivateKey_file(server_context, key, SSL_FILETYPE_PEM) != 1)
        die("cannot load %s and %s", certificate, key);
    SSL_CTX_set_session_cache_mode(client_context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(client_context, keep_session);
    int64_t n = parse_number(count);
    printf("idle_bytes %.0f\n", idle((int)parse_number(sessions)));
    printf("handshake_us %.2f\n", handshakes(n, 0));
    printf("resumed_us %.2f\n", handshakes(n, 1));
    printf("echo_74_us %.3f\n", echoes(n * 20, 74));
    printf("echo_1024_us %.3f\n", echoes(n * 20, 1024));
    printf("echo_16384_us %.3f\n", echoes(n * 4, 16384));
    return 0;
}
