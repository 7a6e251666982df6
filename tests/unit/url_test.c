#include "net/url.h"

/* scheme|host|6 or 4|port|path|query, or the refusal. */
static void url_parse_test(void **state)
{
    static const struct { const char *in, *want; } cases[] = {
        {"http://h", "http|h|4|80|/|(none)"},
        {"https://h", "https|h|4|443|/|(none)"},
        {"WS://H.Example.", "ws|h.example.|4|80|/|(none)"},
        {"wss://h:1/a/../b%2F?x=1&y", "wss|h|4|1|/a/../b%2F|x=1&y"},
        {"http://h?q", "http|h|4|80|/|q"},
        {"http://h/?", "http|h|4|80|/|"},
        {"http://h:/p", "http|h|4|80|/p|(none)"},
        {"http://h:65535//p//", "http|h|4|65535|//p//|(none)"},
        {"http://h/a@b:c?d/e@f", "http|h|4|80|/a@b:c|d/e@f"},
        {"http://127.0.0.1:8080", "http|127.0.0.1|4|8080|/|(none)"},
        {"http://[::1]:8080/x", "http|::1|6|8080|/x|(none)"},
        {"http://[FE80::1%25Eth0]/", "http|fe80::1%Eth0|6|80|/|(none)"},
        {"http://[fe80::1%lo]", "http|fe80::1%lo|6|80|/|(none)"},
        {"http://[::ffff:127.0.0.1]", "http|::ffff:127.0.0.1|6|80|/|(none)"},
        {"http://a_b-c.d", "http|a_b-c.d|4|80|/|(none)"},
        {"http://1a.b2", "http|1a.b2|4|80|/|(none)"},
        {"http://1password", "http|1password|4|80|/|(none)"},
        {"", "begin with"}, {"h", "begin with"}, {"ftp://h", "begin with"}, {"http:/h", "begin with"},
        {"http:", "begin with"}, {"://h", "begin with"}, {"httpss://h", "begin with"}, {"//h", "begin with"},
        {"http://", "no host"}, {"http:///p", "no host"}, {"http://:80", "no host"}, {"http://?q", "no host"},
        {"http://u@h", "user name"}, {"http://u:p@h/", "user name"}, {"http://h:80@evil", "user name"},
        {"http://h\\@evil", "backslash"}, {"http://h/#f", "fragment"}, {"http://h#@evil", "fragment"},
        {"http://h /", "blank"}, {"http://h\t", "blank"}, {"http://h\r\nX: y", "blank"}, {"http://\x7f", "blank"},
        {"http://h/\xc3\xa4", "beyond ASCII"}, {"http://m\xc3\xbcnchen/", "beyond ASCII"},
        {"http://h:0", "port"}, {"http://h:65536", "port"}, {"http://h:8o", "port"}, {"http://h:-1", "port"},
        {"http://h:000080", "port"}, {"http://h:1:2", "port"}, {"http://[::1]:x", "port"},
        {"http://[::1", "not closed"}, {"http://[::1]x", "other than a port"}, {"http://[]", "not an IPv6"},
        {"http://[1.2.3.4]", "not an IPv6"}, {"http://[::g]", "not an IPv6"}, {"http://[::1%]", "zone"},
        {"http://[::1%25]", "zone"}, {"http://[::1%a/b]", "not closed"}, {"http://[::1%a%b]", "zone"},
        {"http://::1/", "no host"}, {"http://h%41", "other characters"}, {"http://h,i", "other characters"},
        {"http://a..b", "empty part"}, {"http://.a", "empty part"}, {"http://.", "empty part"},
        {"http://127.1", "looks like"}, {"http://2130706433", "looks like"}, {"http://0x7f000001", "looks like"},
        {"http://1.2.3.4.", "looks like"}, {"http://1.2.3.256", "looks like"}, {"http://0177.0.0.1", "looks like"},
        {"http://a.1", "looks like"}, {"http://7", "looks like"},
    };
    Arena a = arena_make(1 << 20);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Url url;
        Err err;
        arena_reset(&a);
        if (!url_parse(guard_copy(str_from(cases[i].in)), &a, &url, &err)) {
            if (!strstr(err.text, cases[i].want) || err.code != E8002 || err.kind != ERR_USAGE)
                fail_msg("%s: %s", cases[i].in, err.text);
            continue;
        }
        Str got = arena_fmt(&a, "%.*s|%.*s|%d|%d|%.*s|%.*s", STR_ARG(url.scheme), STR_ARG(url.host), url.ipv6 ? 6 : 4,
                            url.port, STR_ARG(url.path), STR_ARG(url.query.p ? url.query : STR("(none)")));
        bool tls = str_eq(url.scheme, STR("https")) || str_eq(url.scheme, STR("wss"));
        if (!str_eq(got, str_from(cases[i].want)) || url.tls != tls)
            fail_msg("%s: %s", cases[i].in, got.p);
    }
    arena_free(&a);
}

static void url_limit_test(void **state)
{
    Arena a = arena_make(1 << 20);
    char  text[LIMIT_URL + 2];
    Url   url;
    Err   err;

    (void)state;
    memset(text, 'a', sizeof text);
    memcpy(text, "http://h/", 9);
    assert_true(url_parse((Str){text, LIMIT_URL}, &a, &url, &err));
    assert_false(url_parse((Str){text, LIMIT_URL + 1}, &a, &url, &err));
    memset(text + 7, 'a', sizeof text - 7);
    assert_true(url_parse((Str){text, 7 + 253}, &a, &url, &err));
    assert_false(url_parse((Str){text, 7 + 254}, &a, &url, &err));
    arena_free(&a);
}

static void url_text_test(void **state)
{
    static const struct { const char *in, *authority, *text; } cases[] = {
        {"http://H:80/a?b", "h", "http://h/a"}, {"http://h:443", "h:443", "http://h:443/"},
        {"https://h:443", "h", "https://h/"}, {"wss://h:80", "h:80", "wss://h:80/"},
        {"http://[::1]:81/", "[::1]:81", "http://[::1]:81/"}, {"http://[fe80::1%25lo]", "[fe80::1]", "http://[fe80::1]/"},
    };
    static const struct { const char *base, *path, *query, *want; } joins[] = {
        {"http://h", "/x", NULL, "/x"}, {"http://h/", "/x/", NULL, "/x/"}, {"http://h/v1", "x", NULL, "/v1/x"},
        {"http://h/v1/", "/x", "a=b", "/v1/x?a=b"}, {"http://h/v1?old", "", NULL, "/v1/"},
        {"http://h/a//", "//b", "", "/a//b?"},
    };
    Arena a = arena_make(1 << 20);
    Url   url;
    Err   err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_true(url_parse(str_from(cases[i].in), &a, &url, &err));
        assert_string_equal(arena_cstr(&a, url_authority(&url, &a)), cases[i].authority);
        assert_string_equal(url_text(&url, &a).p, cases[i].text);
    }
    for (size_t i = 0; i < COUNT_OF(joins); i++) {
        assert_true(url_parse(str_from(joins[i].base), &a, &url, &err));
        Url got = url_join(&url, str_from(joins[i].path), str_from(joins[i].query), &a);
        Str text = arena_fmt(&a, "%.*s%s%.*s", STR_ARG(got.path), got.query.p ? "?" : "", STR_ARG(got.query));
        assert_string_equal(text.p, joins[i].want);
    }
    assert_string_equal(url_encode(STR("aZ09-._~ /%?&=+#\xe4\xbd\xa0\0!"), &a).p,
                        "aZ09-._~%20%2F%25%3F%26%3D%2B%23%E4%BD%A0%00%21");
    assert_int_equal(url_encode(STR(""), &a).n, 0);
    arena_free(&a);
}

static void url_loopback_test(void **state)
{
    static const struct { const char *in; bool is; } cases[] = {
        {"http://localhost", true}, {"http://a.LocalHost:1", true}, {"http://localhost.", true},
        {"http://127.0.0.1", true}, {"http://127.255.1.2", true}, {"http://[::1]", true}, {"http://[0:0::1]", true},
        {"http://[::ffff:127.0.0.1]", true},
        {"http://localhost.example", false}, {"http://notlocalhost", false}, {"http://128.0.0.1", false},
        {"http://[::2]", false}, {"http://[::ffff:10.0.0.1]", false}, {"http://0.0.0.0", false},
    };
    Arena a = arena_make(1 << 20);
    Url   url;
    Err   err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_true(url_parse(str_from(cases[i].in), &a, &url, &err));
        if (url_is_loopback(&url) != cases[i].is)
            fail_msg("%s", cases[i].in);
    }
    arena_free(&a);
}

/* RFC 3986, 5.4, without what has a fragment, and some of ours. */
static void url_resolve_test(void **state)
{
    static const struct { const char *ref, *want; } rows[] = {
        {"g", "http://a/b/c/g"}, {"./g", "http://a/b/c/g"}, {"g/", "http://a/b/c/g/"}, {"/g", "http://a/g"}, {"//g", "http://g/"},
        {"?y", "http://a/b/c/d;p?y"}, {"g?y", "http://a/b/c/g?y"}, {";x", "http://a/b/c/;x"}, {"g;x", "http://a/b/c/g;x"},
        {"g;x?y", "http://a/b/c/g;x?y"}, {"", "http://a/b/c/d;p?q"}, {".", "http://a/b/c/"}, {"./", "http://a/b/c/"},
        {"..", "http://a/b/"}, {"../", "http://a/b/"}, {"../g", "http://a/b/g"}, {"../..", "http://a/"}, {"../../", "http://a/"},
        {"../../g", "http://a/g"}, {"../../../g", "http://a/g"}, {"../../../../g", "http://a/g"}, {"/./g", "http://a/g"},
        {"/../g", "http://a/g"}, {"g.", "http://a/b/c/g."}, {".g", "http://a/b/c/.g"}, {"g..", "http://a/b/c/g.."},
        {"..g", "http://a/b/c/..g"}, {"./../g", "http://a/b/g"}, {"./g/.", "http://a/b/c/g/"}, {"g/./h", "http://a/b/c/g/h"},
        {"g/../h", "http://a/b/c/h"}, {"g;x=1/./y", "http://a/b/c/g;x=1/y"}, {"g;x=1/../y", "http://a/b/c/y"},
        {"g?y/./x", "http://a/b/c/g?y/./x"}, {"g?y/../x", "http://a/b/c/g?y/../x"}, {"https://h:8443/x?y", "https://h:8443/x?y"},
        {"//u@g/x", NULL}, {"ftp://g/x", NULL}, {"g:h", NULL}, {"http:g", NULL}, {"a b", NULL}, {"\\\\g", NULL}, {"#", NULL},
        {"//", NULL}, {"./a:b", "http://a/b/c/a:b"}, {"g?http://x/", "http://a/b/c/g?http://x/"},
    };
    Arena a = arena_make(1 << 20);
    Url   base, url;
    Err   err;

    (void)state;
    assert_true(url_parse(STR("http://a/b/c/d;p?q"), &a, &base, &err));
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        bool ok = url_resolve(&base, guard_copy(str_from(rows[i].ref)), &a, &url, &err);
        if (ok != (rows[i].want != NULL))
            fail_msg("'%s': %s", rows[i].ref, ok ? "taken" : err.text);
        if (ok)
            assert_string_equal(arena_fmt(&a, "%s%s%.*s", url_text(&url, &a).p, url.query.p ? "?" : "", STR_ARG(url.query)).p,
                                rows[i].want);
    }
    assert_true(url_parse(STR("https://[::1]:8443"), &a, &base, &err));
    assert_true(url_resolve(&base, STR("x/../y"), &a, &url, &err));
    assert_string_equal(url_text(&url, &a).p, "https://[::1]:8443/y");
    arena_free(&a);
}

static const struct CMUnitTest url_tests[] = {
    cmocka_unit_test(url_parse_test),
    cmocka_unit_test(url_limit_test),
    cmocka_unit_test(url_text_test),
    cmocka_unit_test(url_loopback_test),
    cmocka_unit_test(url_resolve_test),
};
