#include "host/forge.h"

static void forge_archive_test(void **state)
{
#define C "0123456789abcdef0123456789abcdef01234567"
    static const struct { const char *url, *want, *other; } rows[] = {
        {"https://github.com/o/r.git", "https://github.com/o/r/archive/" C ".tar.gz", "codeload.github.com"},
        {"https://GitHub.com/o/r", "https://github.com/o/r/archive/" C ".tar.gz", "codeload.github.com"},
        {"https://github.com:443/o/r.git/", "https://github.com/o/r/archive/" C ".tar.gz", "codeload.github.com"},
        {"https://gitlab.com/o/r.git", "https://gitlab.com/o/r/-/archive/" C "/r-" C ".tar.gz", ""},
        {"https://gitlab.com/g/s/t/r", "https://gitlab.com/g/s/t/r/-/archive/" C "/r-" C ".tar.gz", ""},
        {"https://codeberg.org/o/r", "https://codeberg.org/o/r/archive/" C ".tar.gz", ""},
        {"https://gitea.com/o/r", "https://gitea.com/o/r/archive/" C ".tar.gz", ""},
        {"https://bitbucket.org/o/r.git", "https://bitbucket.org/o/r/get/" C ".tar.gz", ""},
        {"http://github.com/o/r", NULL, NULL}, {"https://github.com:8443/o/r", NULL, NULL}, {"https://github.com/o/r?x", NULL, NULL},
        {"https://github.com/o", NULL, NULL}, {"https://github.com/o/r/s", NULL, NULL}, {"https://github.com/o//r", NULL, NULL},
        {"https://github.com/o/..", NULL, NULL}, {"https://github.com/./r", NULL, NULL}, {"https://github.com/o/.git", NULL, NULL},
        {"https://github.com", NULL, NULL}, {"https://gitlab.com/r", NULL, NULL}, {"https://github.com.evil.example/o/r", NULL, NULL},
        {"https://example.com/o/r", NULL, NULL}, {"ssh://git@github.com/o/r", NULL, NULL}, {"git@github.com:o/r", NULL, NULL},
        {"wss://github.com/o/r", NULL, NULL}, {"", NULL, NULL},
    };
    Arena a = arena_make(1 << 20);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        Str other = {0}, got = forge_archive(str_from(rows[i].url), STR(C), &a, &other);
        if (!str_eq(got, str_from(rows[i].want)) || !str_eq(other, str_from(rows[i].other)))
            fail_msg("%s: '%.*s', '%.*s'", rows[i].url, STR_ARG(got), STR_ARG(other));
    }
    arena_free(&a);
#undef C
}

static const struct CMUnitTest forge_tests[] = {
    cmocka_unit_test(forge_archive_test),
};
