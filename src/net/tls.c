#include "net/tls.h"

#ifdef ABX_TLS_NONE

#include "base/str.h"

bool tls_make(Str ca_file, Tls **out, Err *err)
{
    (void)ca_file, (void)out;
    return err_set(err, ERR_UNSENT, E5001, "this abx was built without TLS");
}

void tls_free(Tls *t)
{
    (void)t;
}

bool tls_connect(Tls *t, Stream *under, Str host, int cancel_fd, Deadline deadline, Stream **out, Err *err)
{
    (void)t, (void)host, (void)cancel_fd, (void)deadline, (void)out;
    stream_close(under);
    return err_set(err, ERR_UNSENT, E5001, "this abx was built without TLS");
}

#else

#include "base/buf.h"
#include "base/mem.h"
#include "base/sha1.h"
#include "base/str.h"
#include "base/time.h"
#include "net/roots.h"
#include "net/url.h"
#include "os/clock.h"
#include "os/poll.h"
#include "os/random.h"
#include <arpa/inet.h>
#include <mbedtls/error.h>
#include <mbedtls/oid.h>
#include <mbedtls/sha1.h>
#include <mbedtls/ssl.h>
#include <psa/crypto.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    TLS_IN = 64 << 10,              /* read at once: several records a call */
    TLS_OUT = 64 << 10,             /* gathered, then written at once */
    TLS_NAMES = 8,                  /* names of a certificate that a refusal lists */
    TLS_UNDER_FAILED = -0x7001,     /* what our own callbacks return; below Mbed TLS's numbers for them */
};

struct Tls {
    mbedtls_ssl_config config;
    Roots              roots;
};

typedef struct TlsStream {
    Stream              stream;
    Stream             *under;
    Tls                *tls;
    mbedtls_ssl_context ssl;
    Str                 host;       /* good during the handshake */
    char               *in;         /* TLS_IN bytes; [at, n) are not taken apart yet */
    size_t              at, n;
    char                begin[5];   /* the first bytes that came: what speaks there? */
    size_t              begun;
    char               *out;        /* TLS_OUT bytes; [out_at, out_n) are still to be written */
    size_t              out_at, out_n;
    bool                ended;      /* the stream below ended */
    int                 stopped;    /* why no more can be read: Mbed TLS says it once only */
    Err                 failure;    /* of the stream below, when a callback said TLS_UNDER_FAILED */
    Buf                 faults;     /* of the certificates, in words */
} TlsStream;

/* --- what is shared -------------------------------------------------------------- */

/* Mbed TLS's one source of entropy (MBEDTLS_ENTROPY_HARDWARE_ALT). */
int mbedtls_hardware_poll(void *data, unsigned char *out, size_t len, size_t *olen);
int mbedtls_hardware_poll(void *data, unsigned char *out, size_t len, size_t *olen)
{
    (void)data;
    random_bytes(out, len);
    *olen = len;
    return 0;
}

/* Its SHA-1 is ours (MBEDTLS_SHA1_PROCESS_ALT): one block. */
int mbedtls_internal_sha1_process(mbedtls_sha1_context *ctx, const unsigned char data[64])
{
    Sha1 s = {.n = 0};

    memcpy(s.h, ctx->MBEDTLS_PRIVATE(state), sizeof s.h);
    sha1_add(&s, (Str){(const char *)data, SHA1_BLOCK});
    memcpy(ctx->MBEDTLS_PRIVATE(state), s.h, sizeof s.h);
    return 0;
}

static int tls__random(void *ctx, unsigned char *out, size_t len)
{
    (void)ctx;
    random_bytes(out, len);
    return 0;
}

static bool tls__candidate(mbedtls_x509_crt **list, const RootsCert *c)
{
    if (!*list) {
        /* Freed by Mbed TLS with its own allocator, which is calloc and free. */
        if (!(*list = calloc(1, sizeof **list)))
            base_no_memory();
        mbedtls_x509_crt_init(*list);
    }
    return mbedtls_x509_crt_parse_der(*list, (const unsigned char *)c->der.p, c->der.n) == 0;
}

/* The roots that may have signed `child`. Names are compared byte by byte first;
 * only when no root has that name are all of them handed over, because two
 * spellings of a name can mean the same (RFC 5280, 7.1). */
static int tls__roots(void *ctx, const mbedtls_x509_crt *child, mbedtls_x509_crt **candidates)
{
    const Roots *r = ctx;
    Str          issuer = {(const char *)child->issuer_raw.p, child->issuer_raw.len};
    size_t       at = 0;
    bool         found = false;

    *candidates = NULL;
    for (const RootsCert *c; (c = roots_next(r, issuer, &at));)
        found = tls__candidate(candidates, c) || found;
    for (size_t i = 0; !found && i < r->n; i++)
        tls__candidate(candidates, &r->certs[i]);
    return 0;
}

bool tls_make(Str ca_file, Tls **out, Err *err)
{
    static const char *protocols[] = {"http/1.1", NULL};
    Tls *t = mem_new(sizeof *t);

    mbedtls_ssl_config_init(&t->config);
    if (!roots_load(ca_file, &t->roots, err)) {
        mem_free(t);
        return false;
    }
    if (psa_crypto_init() != PSA_SUCCESS ||
        mbedtls_ssl_config_defaults(&t->config, MBEDTLS_SSL_IS_CLIENT, MBEDTLS_SSL_TRANSPORT_STREAM,
                                    MBEDTLS_SSL_PRESET_DEFAULT) != 0 ||
        mbedtls_ssl_conf_alpn_protocols(&t->config, protocols) != 0)
        base_no_memory();       /* there is nothing else that they want */
    mbedtls_ssl_conf_authmode(&t->config, MBEDTLS_SSL_VERIFY_REQUIRED);
    mbedtls_ssl_conf_min_tls_version(&t->config, MBEDTLS_SSL_VERSION_TLS1_2);
    mbedtls_ssl_conf_max_tls_version(&t->config, MBEDTLS_SSL_VERSION_TLS1_3);
    mbedtls_ssl_conf_rng(&t->config, tls__random, NULL);
    mbedtls_ssl_conf_ca_cb(&t->config, tls__roots, &t->roots);
    *out = t;
    return true;
}

void tls_free(Tls *t)
{
    if (!t)
        return;
    mbedtls_ssl_config_free(&t->config);
    roots_free(&t->roots);
    mem_free(t);
}

/* --- the bytes below -------------------------------------------------------------- */

/* What is gathered goes out. STEP_MORE: not all of it yet. */
static Step tls__flush(TlsStream *t, Err *err)
{
    while (t->out_at < t->out_n) {
        size_t n;
        Step   step = stream_write(t->under, t->out + t->out_at, t->out_n - t->out_at, &n, err);
        if (step != STEP_DONE)
            return step;
        t->out_at += n;
    }
    t->out_at = t->out_n = 0;
    return STEP_DONE;
}

static int tls__send(void *ctx, const unsigned char *p, size_t len)
{
    TlsStream *t = ctx;

    if (t->out_n == TLS_OUT) {
        Step step = tls__flush(t, &t->failure);
        if (step != STEP_DONE)
            return step == STEP_MORE ? MBEDTLS_ERR_SSL_WANT_WRITE : TLS_UNDER_FAILED;
    }
    if (len > TLS_OUT - t->out_n)
        len = TLS_OUT - t->out_n;
    memcpy(t->out + t->out_n, p, len);
    t->out_n += len;
    return (int)len;
}

static int tls__receive(void *ctx, unsigned char *p, size_t len)
{
    TlsStream *t = ctx;

    if (t->at == t->n) {
        t->at = t->n = 0;
        Step step = stream_read(t->under, t->in, TLS_IN, &t->n, &t->failure);
        if (step != STEP_DONE) {
            t->n = 0;
            return step == STEP_MORE ? MBEDTLS_ERR_SSL_WANT_READ : TLS_UNDER_FAILED;
        }
        t->ended = t->n == 0;
        for (size_t i = 0; i < t->n && t->begun < sizeof t->begin; i++)
            t->begin[t->begun++] = t->in[i];
    }
    if (len > t->n - t->at)
        len = t->n - t->at;
    memcpy(p, t->in + t->at, len);
    t->at += len;
    return (int)len;        /* 0: the end, MBEDTLS_ERR_SSL_CONN_EOF */
}

/* --- what is wrong with a certificate ------------------------------------------------ */

/* Text out of a certificate, fit for a message. */
static void tls__put(Buf *b, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_addc(b, p[i] >= ' ' && p[i] <= '~' ? p[i] : '?');
}

static void tls__fault(TlsStream *t)
{
    if (t->faults.n)
        buf_add(&t->faults, STR("; "));
}

static bool tls__same_name(const mbedtls_x509_buf *a, const mbedtls_x509_buf *b)
{
    return str_eq((Str){(const char *)a->p, a->len}, (Str){(const char *)b->p, b->len});
}

/* "*.example.com, 10.0.0.1" */
static void tls__names(Buf *b, const mbedtls_x509_crt *c)
{
    const mbedtls_x509_sequence *at = &c->subject_alt_names;
    size_t listed = 0;

    for (; at && at->buf.p; at = at->next) {
        int  kind = at->buf.tag & 0x1f;
        ABX_UNSET char text[INET6_ADDRSTRLEN];
        bool address = kind == MBEDTLS_X509_SAN_IP_ADDRESS && (at->buf.len == 4 || at->buf.len == 16);
        if (!address && kind != MBEDTLS_X509_SAN_DNS_NAME)
            continue;
        if (listed++ == TLS_NAMES) {
            buf_add(b, STR(" and more"));
            return;
        }
        buf_add(b, listed > 1 ? STR(", ") : STR(""));
        if (address && inet_ntop(at->buf.len == 4 ? AF_INET : AF_INET6, at->buf.p, text, sizeof text))
            tls__put(b, text, strlen(text));
        else
            tls__put(b, (const char *)at->buf.p, at->buf.len < 64 ? at->buf.len : 64);
    }
    if (listed == 0)
        buf_add(b, STR("none"));
}

static void tls__subject(Buf *b, const mbedtls_x509_name *name)
{
    ABX_UNSET char text[256];
    int  n = mbedtls_x509_dn_gets(text, sizeof text, name);

    tls__put(b, n > 0 ? text : "?", n > 0 ? (size_t)n : 1);
}

static void tls__date(Buf *b, const mbedtls_x509_time *t)
{
    buf_addf(b, "%04d-%02d-%02d %02d:%02d UTC", t->year, t->mon, t->day, t->hour, t->min);
}

/* "it", or which certificate of the chain is meant. */
static void tls__which(Buf *b, const mbedtls_x509_crt *c, int depth)
{
    if (depth == 0) {
        buf_add(b, STR("it"));
        return;
    }
    buf_add(b, STR("its issuer's certificate ("));
    tls__subject(b, &c->subject);
    buf_addc(b, ')');
}

static void tls__untrusted(TlsStream *t, const mbedtls_x509_crt *c, int depth)
{
    Buf *b = &t->faults;
    bool self = tls__same_name(&c->issuer_raw, &c->subject_raw);

    tls__fault(t);
    if (self && depth == 0) {
        buf_add(b, STR("it is self-signed"));
    } else {
        buf_add(b, self ? STR("its chain ends in a certificate that signed itself (") : STR("its issuer ("));
        tls__subject(b, self ? &c->subject : &c->issuer);
        buf_add(b, self ? STR(") and is not") : STR(") is not"));
        buf_addf(b, " among the trusted roots of %s", t->tls->roots.from);
    }
}

/* An address must stand among the alternative names as an address (RFC 9110, 4.3.5). */
static bool tls__has_address(const mbedtls_x509_crt *c, const unsigned char *bytes, size_t n)
{
    for (const mbedtls_x509_sequence *at = &c->subject_alt_names; at && at->buf.p; at = at->next)
        if ((at->buf.tag & 0x1f) == MBEDTLS_X509_SAN_IP_ADDRESS && at->buf.len == n && memcmp(at->buf.p, bytes, n) == 0)
            return true;
    return false;
}

/* The certificate itself was named as a root: trusted, even when it is no CA. */
static bool tls__is_root(const TlsStream *t, const mbedtls_x509_crt *c)
{
    Str    subject = {(const char *)c->subject_raw.p, c->subject_raw.len};
    size_t at = 0;

    for (const RootsCert *root; (root = roots_next(&t->tls->roots, subject, &at));)
        if (str_eq(root->der, (Str){(const char *)c->raw.p, c->raw.len}))
            return true;
    return false;
}

/* Called for each certificate, the server's own last (depth 0). Mbed TLS leaves
 * the address in a URL to us: given as a name it would be sent as SNI, which
 * RFC 6066, 3 forbids. */
static int tls__check(void *ctx, mbedtls_x509_crt *c, int depth, uint32_t *flags)
{
    TlsStream    *t = ctx;
    Buf          *b = &t->faults;
    unsigned char bytes[16];
    size_t        n = url_address(t->host, bytes);

    if (depth == 0 && n > 0 && !tls__has_address(c, bytes, n))
        *flags |= MBEDTLS_X509_BADCERT_CN_MISMATCH;
    if (depth == 0 && (*flags & MBEDTLS_X509_BADCERT_NOT_TRUSTED) && tls__is_root(t, c))
        *flags &= ~(uint32_t)MBEDTLS_X509_BADCERT_NOT_TRUSTED;
    if (*flags & MBEDTLS_X509_BADCERT_NOT_TRUSTED)
        tls__untrusted(t, c, depth);
    if (*flags & MBEDTLS_X509_BADCERT_CN_MISMATCH) {
        tls__fault(t);
        buf_addf(b, "it is not for %.*s (its names: ", STR_ARG(t->host));
        tls__names(b, c);
        buf_addc(b, ')');
    }
    if (*flags & (MBEDTLS_X509_BADCERT_EXPIRED | MBEDTLS_X509_BADCERT_FUTURE)) {
        bool past = *flags & MBEDTLS_X509_BADCERT_EXPIRED;
        tls__fault(t);
        tls__which(b, c, depth);
        buf_add(b, past ? STR(" expired on ") : STR(" is not valid before "));
        tls__date(b, past ? &c->valid_to : &c->valid_from);
    }
    if (*flags & (MBEDTLS_X509_BADCERT_BAD_MD | MBEDTLS_X509_BADCERT_BAD_PK | MBEDTLS_X509_BADCERT_BAD_KEY)) {
        tls__fault(t);
        tls__which(b, c, depth);
        buf_add(b, *flags & MBEDTLS_X509_BADCERT_BAD_MD ? STR(" is signed with a hash that is too weak")
                                                        : STR(" has a key that is too weak"));
    }
    return 0;
}

/* --- the handshake ---------------------------------------------------------------------- */

static const char *tls__alert(int kind)
{
    switch (kind) {
    case MBEDTLS_SSL_ALERT_MSG_PROTOCOL_VERSION:
        return "the server speaks neither TLS 1.2 nor 1.3";
    case MBEDTLS_SSL_ALERT_MSG_HANDSHAKE_FAILURE:
    case MBEDTLS_SSL_ALERT_MSG_INSUFFICIENT_SECURITY:
        return "the server and this abx have no cipher in common";
    case MBEDTLS_SSL_ALERT_MSG_UNRECOGNIZED_NAME:
        return "the server has no certificate for this name";
    case MBEDTLS_SSL_ALERT_MSG_NO_APPLICATION_PROTOCOL:
        return "the server does not speak HTTP/1.1";
    case 116:       /* certificate_required */
        return "the server wants a client's certificate, which abx does not have";
    default:
        return NULL;
    }
}

static bool tls__bad_certificate(TlsStream *t, Err *err)
{
    uint32_t  flags = mbedtls_ssl_get_verify_result(&t->ssl);
    char      date[TIME_SIZE] = "?";

    if (flags & (MBEDTLS_X509_BADCERT_KEY_USAGE | MBEDTLS_X509_BADCERT_EXT_KEY_USAGE)) {
        tls__fault(t);      /* found after tls__check() saw it */
        buf_add(&t->faults, STR("it is not meant for a server"));
    }
    err_set(err, ERR_UNSENT, E5001, "the server's certificate is refused: %.*s",
            STR_ARG(t->faults.n ? buf_str(&t->faults) : STR("it cannot be verified")));
    if (!time_text(clock_unix_ms(), false, date))
        date[0] = '?';
    if (memmem(t->faults.p, t->faults.n, " valid before ", 14) || memmem(t->faults.p, t->faults.n, " expired on ", 12))
        return err_hint(err, "Check the clock of this machine, too: it says %s.", date);
    if (memmem(t->faults.p, t->faults.n, "self-signed", 11) || memmem(t->faults.p, t->faults.n, "trusted roots", 13))
        return err_hint(err, "If you trust its issuer, name the issuer's certificate with ABX_CA_FILE.");
    return false;
}

static bool tls__refusal(TlsStream *t, int failed, Err *err)
{
    const char *alert = NULL;

    if (failed == TLS_UNDER_FAILED) {
        *err = t->failure;
        err->kind = ERR_UNSENT;     /* no request goes out before the handshake is over */
        err->code = E5001;
        return err_wrap(err, "in the TLS handshake");
    }
    if (failed == MBEDTLS_ERR_X509_CERT_VERIFY_FAILED || failed == MBEDTLS_ERR_SSL_BAD_CERTIFICATE)
        return tls__bad_certificate(t, err);
    if (failed == MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE)
        alert = tls__alert(t->ssl.MBEDTLS_PRIVATE(in_msg)[1]);
    if (alert)
        return err_set(err, ERR_UNSENT, E5001, "%s", alert);
    if (t->begun >= 5 && memcmp(t->begin, "HTTP/", 5) == 0)
        return err_set(err, ERR_UNSENT, E5001, "the server speaks plain http on this port, not https");
    if (t->begun && (t->begin[0] < 20 || t->begin[0] > 23))
        return err_set(err, ERR_UNSENT, E5001, "what answers on this port does not speak TLS");
    if (failed == MBEDTLS_ERR_SSL_BAD_PROTOCOL_VERSION)
        return err_set(err, ERR_UNSENT, E5001, "the server speaks neither TLS 1.2 nor 1.3");
    if (t->ended)
        return err_set(err, ERR_UNSENT, E5001, "the connection was closed in the TLS handshake");
    if (failed == MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE)
        return err_set(err, ERR_UNSENT, E5001, "the server ended the TLS handshake with alert %d",
                       t->ssl.MBEDTLS_PRIVATE(in_msg)[1]);
    return err_set(err, ERR_UNSENT, E5001, "the TLS handshake failed (Mbed TLS -0x%04x)", (unsigned)-failed);
}

static bool tls__handshake(TlsStream *t, int cancel_fd, Deadline deadline, Err *err)
{
    for (;;) {
        int  got = mbedtls_ssl_handshake(&t->ssl);
        /* Also after a failure: the alert is owed to the server. */
        Step flushed = tls__flush(t, &t->failure);
        if (got != 0 && got != MBEDTLS_ERR_SSL_WANT_READ && got != MBEDTLS_ERR_SSL_WANT_WRITE)
            return tls__refusal(t, got, err);
        if (flushed == STEP_ERR)
            return tls__refusal(t, TLS_UNDER_FAILED, err);
        if (got == 0)
            return true;
        StreamSide side = flushed == STEP_MORE ? STREAM_WRITE : STREAM_READ;
        if (!stream_wait(t->under, side, cancel_fd, deadline, err))
            return err->kind == ERR_TIMEOUT
                       ? err_set(err, ERR_TIMEOUT, E5001, "the server did not end the TLS handshake in time") : false;
    }
}

/* --- the stream --------------------------------------------------------------------------- */

static Step tls__failed(TlsStream *t, int failed, Err *err)
{
    if (failed == TLS_UNDER_FAILED)
        *err = t->failure;
    else if (failed == MBEDTLS_ERR_SSL_CONN_EOF)
        err_set(err, ERR_CLOSED, E5000, "the connection was cut: TLS had not been ended");
    else if (failed == MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE)
        err_set(err, ERR_CLOSED, E5000, "the server broke off with TLS alert %d", t->ssl.MBEDTLS_PRIVATE(in_msg)[1]);
    else
        err_set(err, ERR_CLOSED, E5000, "what came is no TLS (Mbed TLS -0x%04x)", (unsigned)-failed);
    return STEP_ERR;
}

/* Nothing can be read or written now; STEP_MORE, unless the rest of what is
 * gathered cannot go out. */
static Step tls__later(TlsStream *t, Err *err)
{
    return tls__flush(t, err) == STEP_ERR ? STEP_ERR : STEP_MORE;
}

static Step tls__read(Stream *s, char *p, size_t cap, size_t *n, Err *err)
{
    TlsStream *t = (TlsStream *)s;

    *n = 0;
    /* A server that takes no more may have answered before. */
    if (tls__flush(t, &t->failure) == STEP_ERR)
        t->out_at = t->out_n = 0;
    while (*n < cap && !t->stopped) {
        int got = mbedtls_ssl_read(&t->ssl, (unsigned char *)p + *n, cap - *n);
        if (got > 0) {
            *n += (size_t)got;
            if (t->at == t->n && !mbedtls_ssl_check_pending(&t->ssl))
                break;          /* not worth another look at the socket */
        } else if (got == MBEDTLS_ERR_SSL_WANT_READ || got == MBEDTLS_ERR_SSL_WANT_WRITE) {
            return *n ? STEP_DONE : tls__later(t, err);
        } else if (got != MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET) {
            t->stopped = got ? got : MBEDTLS_ERR_SSL_CONN_EOF;
        }
    }
    if (*n || cap == 0 || t->stopped == MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY)
        return STEP_DONE;
    return tls__failed(t, t->stopped, err);
}

/* Bytes are taken when they are sealed and gathered; the last of them may go out
 * only with the next call of either side. */
static Step tls__write(Stream *s, const char *p, size_t len, size_t *n, Err *err)
{
    TlsStream *t = (TlsStream *)s;
    Step       flushed = tls__flush(t, err);

    *n = 0;
    if (flushed != STEP_DONE)
        return flushed;
    while (*n < len) {
        int put = mbedtls_ssl_write(&t->ssl, (const unsigned char *)p + *n, len - *n);
        if (put == MBEDTLS_ERR_SSL_WANT_READ || put == MBEDTLS_ERR_SSL_WANT_WRITE)
            break;
        if (put < 0)
            return tls__failed(t, put, err);
        *n += (size_t)put;
    }
    if (tls__flush(t, err) == STEP_ERR)
        return STEP_ERR;
    return *n ? STEP_DONE : STEP_MORE;
}

static StreamWant tls__want(const Stream *s, StreamSide side)
{
    const TlsStream *t = (const TlsStream *)s;
    bool             waiting = t->out_at < t->out_n;

    if (side == STREAM_READ && (t->stopped || t->at < t->n || mbedtls_ssl_check_pending(&t->ssl)))
        return (StreamWant){.fd = -1};
    StreamWant want = stream_want(t->under, side);
    if (side == STREAM_READ && waiting)
        want.events |= stream_want(t->under, STREAM_WRITE).events;
    return want;
}

static void tls__free(TlsStream *t)
{
    mbedtls_ssl_free(&t->ssl);
    stream_close(t->under);
    buf_free(&t->faults);
    mem_free(t->in);
    mem_free(t->out);
    mem_free(t);
}

static void tls__close(Stream *s)
{
    TlsStream *t = (TlsStream *)s;
    ABX_UNSET Err ignored;

    mbedtls_ssl_close_notify(&t->ssl);
    if (tls__flush(t, &ignored) != STEP_DONE)
        t->out_at = t->out_n = 0;       /* a farewell is not worth waiting for */
    tls__free(t);
}

static bool tls__begin(TlsStream *t, Str host)
{
    unsigned char bytes[16];
    bool          literal = url_address(host, bytes) > 0;

    if (mbedtls_ssl_setup(&t->ssl, &t->tls->config) != 0)
        base_no_memory();
    if (host.n && host.p[host.n - 1] == '.')
        host.n--;
    char *name = mem_str(host);
    bool  ok = mbedtls_ssl_set_hostname(&t->ssl, literal ? NULL : name) == 0;
    mem_free(name);
    mbedtls_ssl_set_verify(&t->ssl, tls__check, t);
    mbedtls_ssl_set_bio(&t->ssl, t, tls__send, tls__receive, NULL);
    return ok;
}

bool tls_connect(Tls *tls, Stream *under, Str host, int cancel_fd, Deadline deadline, Stream **out, Err *err)
{
    static const StreamOps ops = {tls__read, tls__write, tls__want, tls__close};
    TlsStream *t = mem_new(sizeof *t);

    t->stream.ops = &ops;
    t->under = under;
    t->tls = tls;
    t->host = host;
    t->in = mem_new(TLS_IN);
    t->out = mem_new(TLS_OUT);
    t->faults = buf_make(1800);
    mbedtls_ssl_init(&t->ssl);
    if (!(tls__begin(t, host) || err_set(err, ERR_UNSENT, E5001, "the host's name is too long for TLS")) ||
        !tls__handshake(t, cancel_fd, deadline, err)) {
        tls__free(t);
        return false;
    }
    *out = &t->stream;
    return true;
}

#endif
