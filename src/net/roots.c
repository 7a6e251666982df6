#include "net/roots.h"

#ifndef ABX_TLS_NONE

#include "base/base64.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/inflate.h"
#include "os/env.h"
#include "os/fs.h"
#include <dirent.h>
#ifndef ABX_CA_NONE
#include <roots_data.h>
#endif

static const char *const roots__places[] = {
    "/etc/ssl/certs/ca-certificates.crt",                   /* Debian, Ubuntu, Alpine, Arch */
    "/etc/pki/tls/certs/ca-bundle.crt",                     /* Fedora, RHEL */
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",                               /* SUSE */
    "/etc/ssl/cert.pem",                                    /* Alpine, the BSDs */
    "/usr/local/share/certs/ca-root-nss.crt",
    "/etc/certs/ca-certificates.crt",
    "/system/etc/security/cacerts",                         /* Android, a folder */
};

/* --- certificates out of bytes --------------------------------------------------- */

enum { ROOTS_INTEGER = 0x02, ROOTS_SEQUENCE = 0x30, ROOTS_VERSION = 0xa0 };

/* One DER element (X.690, 8.1) from the front of *in: its tag, its contents, and
 * the whole of it. */
static bool roots__element(Str *in, int *tag, Str *contents, Str *whole)
{
    size_t head = 2, n;

    if (in->n < 2)
        return false;
    n = (unsigned char)in->p[1];
    if (n >= 0x80) {
        size_t digits = n & 0x7f;
        if (digits < 1 || digits > 3 || in->n < 2 + digits)
            return false;
        n = 0;
        for (size_t i = 0; i < digits; i++)
            n = n << 8 | (unsigned char)in->p[2 + i];
        head += digits;
    }
    if (n > in->n - head)
        return false;
    *tag = (unsigned char)in->p[0];
    *contents = (Str){in->p + head, n};
    *whole = (Str){in->p, head + n};
    str_skip(in, head + n);
    return true;
}

/* Certificate { TBSCertificate { [0] version?, serialNumber, signature, issuer,
 * validity, subject, ... }, ... } (RFC 5280, 4.1), with nothing behind it. */
static bool roots__subject(Str der, Str *subject)
{
    static const int order[] = {ROOTS_INTEGER, ROOTS_SEQUENCE, ROOTS_SEQUENCE, ROOTS_SEQUENCE, ROOTS_SEQUENCE};
    Str in = der, contents, whole;
    int tag;

    if (!roots__element(&in, &tag, &contents, &whole) || tag != ROOTS_SEQUENCE || in.n)
        return false;
    in = contents;
    if (!roots__element(&in, &tag, &contents, &whole) || tag != ROOTS_SEQUENCE)
        return false;
    in = contents;
    if (in.n && (unsigned char)in.p[0] == ROOTS_VERSION && !roots__element(&in, &tag, &contents, &whole))
        return false;
    for (size_t i = 0; i < COUNT_OF(order); i++)
        if (!roots__element(&in, &tag, &contents, &whole) || tag != order[i])
            return false;
    *subject = whole;
    return true;
}

static bool roots__add(Roots *r, Str der)
{
    Str subject;

    if (r->n == LIMIT_ROOTS || !roots__subject(der, &subject))
        return false;
    r->certs[r->n++] = (RootsCert){der, subject};
    return true;
}

/* The text between two lines of a PEM block (RFC 7468), without blanks. */
static bool roots__block(Roots *r, Str text)
{
    Arena  before = r->a;
    size_t n = 0;
    Str    der;

    if (text.n > (r->a.size - r->a.used) / 4)
        return false;
    char *digits = arena_alloc(&r->a, text.n + 1);
    for (size_t i = 0; i < text.n; i++)
        if (!(text.p[i] == '\n' || text.p[i] == '\r' || text.p[i] == ' ' || text.p[i] == '\t'))
            digits[n++] = text.p[i];
    if (base64_decode(&r->a, (Str){digits, n}, &der) && roots__add(r, der))
        return true;
    r->a = before;
    return false;
}

/* All certificates of a file's bytes. *bad: blocks that are none. */
static void roots__read(Roots *r, Str bytes, size_t *bad)
{
    static const Str begin = {"-----BEGIN CERTIFICATE-----", 27}, end = {"-----END CERTIFICATE-----", 25};

    *bad = 0;
    if (bytes.n && bytes.p[0] == ROOTS_SEQUENCE) {
        *bad = bytes.n > (r->a.size - r->a.used) / 4 || !roots__add(r, arena_str(&r->a, bytes));
        return;
    }
    for (;;) {
        const char *from = memmem(bytes.p, bytes.n, begin.p, begin.n);
        if (!from)
            return;
        str_skip(&bytes, (size_t)(from - bytes.p) + begin.n);
        const char *to = memmem(bytes.p, bytes.n, end.p, end.n);
        if (!to) {
            ++*bad;
            return;
        }
        *bad += !roots__block(r, (Str){bytes.p, (size_t)(to - bytes.p)});
        str_skip(&bytes, (size_t)(to - bytes.p) + end.n);
    }
}

/* --- where they are ----------------------------------------------------------------- */

/* False: nothing of it can be used, or, when `strict`, not all of it. */
static bool roots__file(Roots *r, const char *path, bool strict, Err *err)
{
    Buf    bytes = buf_make(LIMIT_ROOTS_FILE);
    size_t before = r->n, bad;
    bool   ok = fs_read(path, &bytes, err);

    if (ok) {
        roots__read(r, buf_str(&bytes), &bad);
        if (r->n == before)
            ok = err_set(err, ERR_INPUT, E0000, "%s: there is no certificate in it", path);
        else if (bad && strict)
            ok = err_set(err, ERR_INPUT, E0000, "%s: %zu of its certificates cannot be read", path, bad);
    }
    buf_free(&bytes);
    return ok;
}

/* "9d04f354.0": how OpenSSL finds a certificate in a folder. Where there are such
 * names the others are the same certificates once more. */
static bool roots__hashed(Str name)
{
    size_t dot = str_find(name, '.');

    for (size_t i = 0; i < dot; i++)
        if (!strchr("0123456789abcdef", name.p[i]))
            return false;
    return dot == 8 && name.n > 9 && name.p[9] >= '0' && name.p[9] <= '9';
}

static bool roots__dir_pass(Roots *r, const char *path, bool hashed)
{
    DIR           *dir = opendir(path);
    struct dirent *entry;
    size_t         before = r->n;
    ABX_UNSET Err err;

    while (dir && (entry = readdir(dir))) {
        Str name = str_from(entry->d_name);
        if (hashed ? !roots__hashed(name) : !str_ends(name, STR(".pem")) && !str_ends(name, STR(".crt")))
            continue;
        if (r->a.size - r->a.used < LIMIT_ROOTS_FILE / 2)
            break;
        if (!roots__file(r, arena_fmt(&r->a, "%s/%s", path, entry->d_name).p, false, &err))
            continue;       /* one bad file of many */
    }
    if (dir)
        closedir(dir);
    return r->n > before;
}

static bool roots__dir(Roots *r, const char *path)
{
    return roots__dir_pass(r, path, true) || roots__dir_pass(r, path, false);
}

static bool roots__named(Roots *r, const char *path, const char *name, Err *err)
{
    if (!roots__file(r, path, true, err)) {
        err_wrap(err, "cannot use the root certificates of %s", name);
        err->kind = ERR_UNSENT;
        err->code = E5001;
        return false;
    }
    r->from = mem_str(str_from(path));
    return true;
}

static bool roots__named_dirs(Roots *r, Str paths, Err *err)
{
    Str rest = paths, path;

    while (str_cut(&rest, ':', &path))
        if (path.n)
            roots__dir(r, arena_cstr(&r->a, path));
    if (r->n == 0)
        return err_set(err, ERR_UNSENT, E5001, "cannot use the root certificates of SSL_CERT_DIR: there is none in %.*s",
                       STR_ARG(paths));
    r->from = mem_str(paths);
    return true;
}

static bool roots__system(Roots *r)
{
    ABX_UNSET Err err;

    for (size_t i = 0; i < COUNT_OF(roots__places); i++)
        if (i + 1 < COUNT_OF(roots__places) ? roots__file(r, roots__places[i], false, &err) : roots__dir(r, roots__places[i])) {
            r->from = mem_str(str_from(roots__places[i]));
            return true;
        }
    return false;
}

#ifdef ABX_CA_NONE
static bool roots__embedded(Roots *r)
{
    (void)r;
    return false;
}
#else
static bool roots__embedded(Roots *r)
{
    Buf raw = buf_make(ROOTS_RAW_SIZE);
    ABX_UNSET Err err;

    if (!inflate_gzip((Str){(const char *)roots_data, sizeof roots_data}, &raw, &err))
        BUG("embedded roots");
    Str in = arena_str(&r->a, buf_str(&raw));
    buf_free(&raw);
    while (in.n >= 4) {
        size_t n = (size_t)(unsigned char)in.p[0] << 24 | (size_t)(unsigned char)in.p[1] << 16 |
                   (size_t)(unsigned char)in.p[2] << 8 | (unsigned char)in.p[3];
        str_skip(&in, 4);
        if (n > in.n || !roots__add(r, (Str){in.p, n}))
            BUG("embedded roots");
        str_skip(&in, n);
    }
    r->from = mem_str(STR("the embedded roots"));
    return true;
}
#endif

/* What was set by somebody wins, and must be good. *set: there was such a thing. */
static bool roots__chosen(Roots *r, Str ca_file, bool *set, Err *err)
{
    Str abx = env_get("ABX_CA_FILE"), file = env_get("SSL_CERT_FILE"), dir = env_get("SSL_CERT_DIR");

    *set = ca_file.n || abx.n || file.n || dir.n;
    if (ca_file.n)
        return roots__named(r, arena_cstr(&r->a, ca_file), "ca_file", err);
    if (abx.n)
        return roots__named(r, arena_cstr(&r->a, abx), "ABX_CA_FILE", err);
    if (file.n)
        return roots__named(r, arena_cstr(&r->a, file), "SSL_CERT_FILE", err);
    return dir.n && roots__named_dirs(r, dir, err);
}

static bool roots__none(Err *err)
{
    Buf tried = buf_make(1024);

    for (size_t i = 0; i < COUNT_OF(roots__places); i++)
        buf_addf(&tried, "%s%s", i ? ", " : "", roots__places[i]);
    err_set(err, ERR_UNSENT, E5001,
            "no root certificates to check the server with; tried: ABX_CA_FILE, SSL_CERT_FILE and SSL_CERT_DIR (not set), "
            "%.*s; this abx has none built in", STR_ARG(buf_str(&tried)));
    buf_free(&tried);
    return err_hint(err, "Name a file of root certificates with ABX_CA_FILE.");
}

bool roots_load(Str ca_file, Roots *out, Err *err)
{
    Roots r = {.a = arena_make(4 * LIMIT_ROOTS_FILE)};
    bool  set;

    r.certs = arena_array(&r.a, LIMIT_ROOTS, sizeof *r.certs);
    bool ok = roots__chosen(&r, ca_file, &set, err) ||
              (!set && (roots__system(&r) || roots__embedded(&r) || roots__none(err)));
    if (ok)
        *out = r;
    else
        roots_free(&r);
    return ok;
}

void roots_free(Roots *r)
{
    mem_free(r->from);
    arena_free(&r->a);
    *r = (Roots){0};
}

const RootsCert *roots_next(const Roots *r, Str subject, size_t *at)
{
    while (*at < r->n) {
        const RootsCert *c = &r->certs[(*at)++];
        if (str_eq(c->subject, subject))
            return c;
    }
    return NULL;
}

#endif
