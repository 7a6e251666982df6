#include "net/roots.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* A root of our own, made with openssl; only its shape counts here. */
static const char roots_test__pem[] =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBqjCCAU+gAwIBAgIUUQWKtwM++EkyKzl/dmjtd6lnIeYwCgYIKoZIzj0EAwIw\n"
    "KjEQMA4GA1UECgwHVGVzdCBDQTEWMBQGA1UEAwwNYWJ4IHRlc3Qgcm9vdDAeFw0y\n"
    "NjExMzAwNTM3MThaFw0yNjEyMzAwNTM3MThaMCoxEDAOBgNVBAoMB1Rlc3QgQ0Ex\n"
    "FjAUBgNVBAMMDWFieCB0ZXN0IHJvb3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC\n"
    "AAR3MGmOKO2UYO6kMTytLujDahsdBF/ZVmtB+WHAHoTTxFE5y+OpsTaSxJ2vYLa9\n"
    "I8A4ya7gi0Up6uEYkb1HIGvMo1MwUTAdBgNVHQ4EFgQUoNyHH7OStruP9MVU8qax\n"
    "qpflu8IwHwYDVR0jBBgwFoAUoNyHH7OStruP9MVU8qaxqpflu8IwDwYDVR0TAQH/\n"
    "BAUwAwEB/zAKBggqhkjOPQQDAgNJADBGAiEAmQn/Bp43RW9k8IKVwMdpoLEtTHcC\n"
    "3LouABdhXPvO9FECIQDTuMFs0YxGI/N/KknftLmrP4U623D0iNs63mf+utQ7YQ==\n"
    "-----END CERTIFICATE-----\n";

static char roots_test__dir[] = "/tmp/abx-roots-XXXXXX";

static const char *roots_test__path(const char *name)
{
    static char path[128];

    snprintf(path, sizeof path, "%s/%s", roots_test__dir, name);
    return path;
}

static const char *roots_test__file(const char *name, Str bytes)
{
    const char *path = roots_test__path(name);
    FILE       *f = fopen(path, "w");

    assert_non_null(f);
    assert_int_equal(fwrite(bytes.p, 1, bytes.n, f), bytes.n);
    assert_int_equal(fclose(f), 0);
    return path;
}

static int roots_test__begin(void **state)
{
    (void)state;
    unsetenv("ABX_CA_FILE");
    unsetenv("SSL_CERT_FILE");
    unsetenv("SSL_CERT_DIR");
    return mkdtemp(roots_test__dir) == NULL;
}

static int roots_test__end(void **state)
{
    char command[128];

    (void)state;
    unsetenv("SSL_CERT_FILE");
    unsetenv("SSL_CERT_DIR");
    snprintf(command, sizeof command, "rm -rf %s", roots_test__dir);
    return system(command);
}

/* The DER of the certificate above. */
static Str roots_test__der(Arena *a)
{
    Roots r;
    Err   err;

    assert_true(roots_load(str_from(roots_test__file("one.pem", str_from(roots_test__pem))), &r, &err));
    Str der = arena_str(a, r.certs[0].der);
    roots_free(&r);
    return der;
}

static void roots_named_test(void **state)
{
    Arena a = arena_make((size_t)16 << 20);
    Str   der = roots_test__der(&a), pem = str_from(roots_test__pem);
    Str   two = arena_fmt(&a, "# comment\r\n%s\n\n  text\n%s# end", pem.p, pem.p);
    Str   half = arena_fmt(&a, "%s-----BEGIN CERTIFICATE-----\nMIIB\n", pem.p);
    Str   damaged = arena_fmt(&a, "%s-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n", pem.p);
    Str   other = arena_fmt(&a, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    Str   longer = arena_fmt(&a, "%.*s%c", 0, "", 'x');
    struct { Str bytes; size_t n; const char *want; } cases[] = {
        {pem, 1, NULL}, {two, 2, NULL}, {der, 1, NULL},
        {STR(""), 0, "there is no certificate in it"}, {STR("hello"), 0, "there is no certificate in it"},
        {other, 0, "there is no certificate in it"}, {half, 0, "1 of its certificates cannot be read"},
        {damaged, 0, "1 of its certificates cannot be read"}, {(Str){der.p, der.n - 1}, 0, "there is no certificate in it"},
        {longer, 0, "there is no certificate in it"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Roots r;
        Err   err;
        bool  ok = roots_load(str_from(roots_test__file("case", cases[i].bytes)), &r, &err);
        if (ok != !cases[i].want || (ok && (r.n != cases[i].n || !str_eq(r.certs[r.n - 1].der, der))))
            fail_msg("row %zu: %s", i, ok ? "taken" : err.text);
        if (!ok && (!strstr(err.text, cases[i].want) || err.code != E5001 || err.kind != ERR_UNSENT))
            fail_msg("row %zu: %s", i, err.text);
        if (ok)
            roots_free(&r);
    }
    arena_free(&a);
}

/* Cut or bent at any byte, a certificate is one or none, and nothing is read
 * beyond its end. */
static void roots_shape_test(void **state)
{
    Arena a = arena_make((size_t)1 << 20);
    Str   der = roots_test__der(&a), subject;

    (void)state;
    assert_true(roots__subject(guard_copy(der), &subject));
    assert_int_equal(subject.p[0], 0x30);
    for (size_t n = 0; n < der.n; n++)
        assert_false(roots__subject(guard_copy((Str){der.p, n}), &subject));
    for (size_t i = 0; i < der.n; i++)
        for (int bit = 0; bit < 8; bit++) {
            Str copy = guard_copy(der);
            ((char *)(uintptr_t)copy.p)[i] ^= (char)(1 << bit);
            if (roots__subject(copy, &subject))
                assert_true(subject.p >= copy.p && subject.n <= (size_t)(copy.p + copy.n - subject.p));
        }
    assert_false(roots__subject(STR("0\x80"), &subject));
    assert_false(roots__subject(STR("0\x84\0\0\0\0"), &subject));
    arena_free(&a);
}

static void roots_find_test(void **state)
{
    Arena a = arena_make((size_t)1 << 20);
    Roots r;
    Err   err;

    (void)state;
    Str pem = str_from(roots_test__pem);
    assert_true(roots_load(str_from(roots_test__file("two", arena_fmt(&a, "%s%s", pem.p, pem.p))), &r, &err));
    size_t at = 0;
    assert_ptr_equal(roots_next(&r, r.certs[0].subject, &at), &r.certs[0]);
    assert_ptr_equal(roots_next(&r, r.certs[0].subject, &at), &r.certs[1]);
    assert_null(roots_next(&r, r.certs[0].subject, &at));
    at = 0;
    assert_null(roots_next(&r, STR("0\0"), &at));
    roots_free(&r);
    arena_free(&a);
}

/* Who wins, and that what was set is never passed over. */
static void roots_order_test(void **state)
{
    Roots r;
    Err   err;
    char  good[128], dir[128];

    (void)state;
    snprintf(good, sizeof good, "%s", roots_test__file("good.pem", str_from(roots_test__pem)));
    snprintf(dir, sizeof dir, "%s", roots_test__path("hashed"));
    assert_int_equal(mkdir(dir, 0700), 0);
    setenv("SSL_CERT_DIR", dir, 1);
    assert_false(roots_load(STR(""), &r, &err));
    assert_non_null(strstr(err.text, "SSL_CERT_DIR"));
    roots_test__file("hashed/0123abcd.0", str_from(roots_test__pem));
    roots_test__file("hashed/again.pem", str_from(roots_test__pem));        /* the same one, as a rule */
    roots_test__file("hashed/0123abce.0", STR("junk"));
    assert_true(roots_load(STR(""), &r, &err) && r.n == 1 && strcmp(r.from, dir) == 0);
    roots_free(&r);
    assert_int_equal(unlink(roots_test__path("hashed/0123abcd.0")), 0);
    char both[300];
    snprintf(both, sizeof both, "/nowhere::%s", dir);
    setenv("SSL_CERT_DIR", both, 1);
    assert_true(roots_load(STR(""), &r, &err) && r.n == 1);                 /* by its ending */
    roots_free(&r);

    setenv("SSL_CERT_FILE", roots_test__path("missing"), 1);
    assert_false(roots_load(STR(""), &r, &err));
    assert_non_null(strstr(err.text, "SSL_CERT_FILE: cannot open"));
    setenv("SSL_CERT_FILE", good, 1);
    assert_true(roots_load(STR(""), &r, &err) && strcmp(r.from, good) == 0);
    roots_free(&r);
    setenv("ABX_CA_FILE", roots_test__path("missing"), 1);
    assert_false(roots_load(STR(""), &r, &err));
    assert_non_null(strstr(err.text, "ABX_CA_FILE: cannot open"));
    assert_true(roots_load(str_from(good), &r, &err));                      /* the caller's own wins */
    roots_free(&r);
    assert_false(roots_load(str_from(roots_test__dir), &r, &err));          /* a folder is no file */
    unsetenv("ABX_CA_FILE");
    setenv("SSL_CERT_FILE", "", 1);                                         /* empty is as good as not set */
    assert_true(roots_load(STR(""), &r, &err) && strcmp(r.from, both) == 0);
    roots_free(&r);
    unsetenv("SSL_CERT_FILE");
    unsetenv("SSL_CERT_DIR");
}

#ifndef ABX_CA_NONE
static void roots_embedded_test(void **state)
{
    Roots r = {.a = arena_make(4 * LIMIT_ROOTS_FILE)};

    (void)state;
    r.certs = arena_array(&r.a, LIMIT_ROOTS, sizeof *r.certs);
    assert_true(roots__embedded(&r));
    assert_int_equal(r.n, ROOTS_COUNT);
    for (size_t i = 0; i < r.n; i++) {
        Str              der = r.certs[i].der;
        mbedtls_x509_crt crt;
        mbedtls_x509_crt_init(&crt);
        assert_true(r.certs[i].subject.n > 10);
        /* Whole but for its own signature, and TLS can take it apart. */
        assert_int_equal(mbedtls_x509_crt_parse_der(&crt, (const unsigned char *)der.p, der.n), 0);
        assert_int_equal(crt.raw.len, der.n);
        assert_memory_equal(der.p + der.n - 4, "\x03\x02\0\0", 4);
        mbedtls_x509_crt_free(&crt);
    }
    roots_free(&r);
}
#endif

static const struct CMUnitTest roots_tests[] = {
    cmocka_unit_test_setup_teardown(roots_named_test, roots_test__begin, NULL),
    cmocka_unit_test(roots_shape_test),
    cmocka_unit_test(roots_find_test),
#ifndef ABX_CA_NONE
    cmocka_unit_test(roots_embedded_test),
#endif
    cmocka_unit_test_setup_teardown(roots_order_test, NULL, roots_test__end),
};
