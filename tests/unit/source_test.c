#include "host/source.h"

#include <sys/stat.h>
#include <unistd.h>

static void source_vectors_test(void **state)
{
    (void)state;
    vectors_whole("sources", 88);
}

static void source_refusals_test(void **state)
{
    static const struct { const char *source, *ref, *subdir, *sha256; bool insecure; Code code; const char *said; } rows[] = {
        {"owner/..", NULL, NULL, NULL, false, E8010, "is no path that exists"},
        {"../x", NULL, NULL, NULL, false, E8010, "is no path that exists"},
        {"owner/.", NULL, NULL, NULL, false, E8010, "is no path that exists"},
        {"", NULL, NULL, NULL, false, E8010, "is no path that exists"},
        {"  ", NULL, NULL, NULL, false, E8010, "is no path that exists"},
        {"-owner/repo", NULL, NULL, NULL, false, E8012, "begins with '-'"},
        {"-x@host:y", NULL, NULL, NULL, false, E8012, "begins with '-'"},
        {"git+-x@host:y", NULL, NULL, NULL, false, E8012, "begins with '-'"},
        {"x@-host:y", NULL, NULL, NULL, false, E8012, "for an option"},
        {"x@host:-y", NULL, NULL, NULL, false, E8012, "for an option"},
        {"ssh://-oProxyCommand=x/y", NULL, NULL, NULL, false, E8012, "for an option"},
        {"ssh://-u@host/y", NULL, NULL, NULL, false, E8012, "for an option"},
        {"ssh://u@-host/y", NULL, NULL, NULL, false, E8012, "for an option"},
        {"file:-x", NULL, NULL, NULL, true, E8012, "for an option"},
        {"file://-x/y", NULL, NULL, NULL, true, E8012, "for an option"},
        {"https://user:geheim@host/x", NULL, NULL, NULL, false, E8012, "'https://host/x'"},
        {"https://user:ge/heim@host/x", NULL, NULL, NULL, false, E8012, "'https://host/x'"},
        {"ssh://git:geheim@host/x", NULL, NULL, NULL, false, E8012, "'ssh://host/x'"},
        {"ftp://u:geheim@host/x", NULL, NULL, NULL, false, E8012, "'ftp://host/x'"},
        {"http://u:geheim@host/x", NULL, NULL, NULL, false, E8012, "'http://host/x'"},
        {"u:geheim@host:x", NULL, NULL, NULL, false, E8012, "'host:x'"},
        {"https://host/x\ny", NULL, NULL, NULL, false, E8012, "do not belong there"},
        {"https://host/\xff", NULL, NULL, NULL, false, E8012, "do not belong there"},
        {"o/r", "--upload-pack=x", NULL, NULL, false, E8010, "'--upload-pack=x' is no name of a branch"},
        {"o/r", "a b", NULL, NULL, false, E8010, "is no name of a branch"},
        {"o/r", "a\n", NULL, NULL, false, E8010, "is no name of a branch"},
        {"o/r", "a\x7f", NULL, NULL, false, E8010, "is no name of a branch"},
        {"o/r", "a\xff", NULL, NULL, false, E8010, "is no name of a branch"},
        {"o/r", "a~1", NULL, NULL, false, E8010, "is no name of a branch"},
        {"o/r", "a^{}", NULL, NULL, false, E8010, "is no name of a branch"},
        {"o/r", "a:b", NULL, NULL, false, E8010, "is no name of a branch"},
        {"o/r", "a?", NULL, NULL, false, E8010, "is no name of a branch"},
        {"o/r", "a*", NULL, NULL, false, E8010, "is no name of a branch"},
        {"o/r", "a[", NULL, NULL, false, E8010, "is no name of a branch"},
        {"o/r", "a\\b", NULL, NULL, false, E8010, "is no name of a branch"},
        {"o/r", "a..b", NULL, NULL, false, E8010, "is no name of a branch"},
        {"o/r", "a@{1}", NULL, NULL, false, E8010, "is no name of a branch"},
        {"o/r", "@", NULL, NULL, false, E8010, "is no name of a branch"},
        {"o/r", "/a", NULL, NULL, false, E8010, "is no name of a branch"},
        {"o/r", "a/", NULL, NULL, false, E8010, "is no name of a branch"},
        {"o/r", "a//b", NULL, NULL, false, E8010, "is no name of a branch"},
        {"o/r", "a/.b", NULL, NULL, false, E8010, "is no name of a branch"},
        {"o/r", "a.lock/b", NULL, NULL, false, E8010, "is no name of a branch"},
        {"o/r", "a.", NULL, NULL, false, E8010, "is no name of a branch"},
        {"o/r@a", "b", NULL, NULL, false, E8010, "--ref another"},
        {"o/r//a", NULL, "b", NULL, false, E8010, "--subdir another"},
        {"registry:demo", "main", NULL, NULL, false, E8010, "has no ref"},
        {"tests", "main", NULL, NULL, false, E8010, "has no ref"},
        {"tests", NULL, NULL, "ABCDEFabcdef0123456789ABCDEFabcdef0123456789ABCDEFabcdef0123456789", false, E8002, "64 hex"},
        {"tests", NULL, NULL, "0123456789abcdef0123456789ABCDEF0123456789abcdef0123456789ABCDEF", false, E8010, "no archive"},
        {"o/r", NULL, NULL, "0123456789abcdef0123456789ABCDEF0123456789abcdef0123456789ABCDEF", false, E8010, "no archive"},
    };
    Arena     a = arena_make(ARENA_COMMAND);
    SourceRef ref;
    Err       err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        SourceAsk ask = {.source = str_from(rows[i].source), .ref = str_from(rows[i].ref), .subdir = str_from(rows[i].subdir),
                         .archive_sha256 = str_from(rows[i].sha256), .allow_insecure = rows[i].insecure};
        if (source_parse(&ask, &a, &ref, &err))
            fail_msg("row %zu: '%s' was taken", i, rows[i].source);
        if (err.code != rows[i].code || !strstr(err.text, rows[i].said) || strstr(err.text, "heim"))
            fail_msg("row %zu: '%s': E%d %s", i, rows[i].source, err.code, err.text);
    }
    char *many = arena_alloc(&a, LIMIT_SOURCE + 2);
    memset(many, 'a', LIMIT_SOURCE + 1);
    memcpy(many, "o/", 2);
    assert_true(source_parse(&(SourceAsk){.source = {many, LIMIT_SOURCE}}, &a, &ref, &err));
    assert_int_equal(ref.location.n, LIMIT_SOURCE + sizeof "https://github.com/.git" - 1);
    assert_false(source_parse(&(SourceAsk){.source = {many, LIMIT_SOURCE + 1}}, &a, &ref, &err));
    assert_int_equal(err.code, E8010);
    arena_free(&a);
}

static void source_shown_test(void **state)
{
    static const char *const rows[][2] = {
        {"https://github.com/o/r.git", "https://github.com/o/r.git"},
        {"https://u:p@host/x", "https://host/x"},
        {"https://u@host/x@y", "https://host/x@y"},
        {"https://host/x@y", "https://host/x@y"},
        {"https://host:8443/x@y", "https://host:8443/x@y"},
        {"https://[::1]/x@y", "https://[::1]/x@y"},
        {"https://u:p/q@host/x", "https://host/x"},
        {"https://a@b@host/x", "https://host/x"},
        {"ssh://git@host/x", "ssh://git@host/x"},
        {"SSH://git@host:22/x", "SSH://git@host:22/x"},
        {"ssh://git:pw@host/x", "ssh://host/x"},
        {"git@host:x", "git@host:x"},
        {"u:p@host:x", "host:x"},
        {"a\x1b[31mb\nc", "ab c"},
        {"", ""}, {"://", "://"}, {"x://@", "x://@"},
    };
    Arena a = arena_make(ARENA_COMMAND);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        Str got = source_shown(guard_copy(str_from(rows[i][0])), &a);
        if (!str_eq(got, str_from(rows[i][1])))
            fail_msg("'%s' is shown as '%.*s'", rows[i][0], STR_ARG(got));
    }
    arena_free(&a);
}

/* What lies on the disk: folders, files, links, and things of neither kind. */
static void source_local_test(void **state)
{
    Arena     a = arena_make(ARENA_COMMAND);
    char      base[] = "/tmp/abx-source-XXXXXX", here[4096];
    SourceRef ref;
    Err       err;

    (void)state;
    assert_non_null(mkdtemp(base));
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(base), 0);
    assert_int_equal(mkdir("owner", 0755) | mkdir("owner/repo", 0755) | symlink("owner/repo", "link"), 0);
    assert_int_equal(mkfifo("fifo", 0600) | mkdir(" blanks ", 0755), 0);
    FILE *f = fopen("x.tar", "w");
    assert_non_null(f);
    fclose(f);
    static const struct { const char *source; SourceKind kind; const char *at; } rows[] = {
        {"owner/repo", SOURCE_FOLDER, "/owner/repo"},       /* what is there wins over the short form */
        {" owner/repo ", SOURCE_FOLDER, "/owner/repo"},
        {"./owner/../owner/repo/", SOURCE_FOLDER, "/owner/repo"},
        {"link", SOURCE_FOLDER, "/owner/repo"},
        {"x.tar", SOURCE_ARCHIVE, "/x.tar"},
        {"fifo", SOURCE_FOLDER, "/fifo"},                   /* refused when it is read */
        {" blanks ", SOURCE_FOLDER, "/ blanks "},
        {"~", SOURCE_FOLDER, ""}, {"~/link", SOURCE_FOLDER, "/owner/repo"},
    };
    Str home = env_home(&a);
    assert_int_equal(setenv("HOME", base, 1), 0);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        SourceAsk ask = {.source = str_from(rows[i].source), .subdir = STR("/a/b/")};
        if (!source_parse(&ask, &a, &ref, &err))
            fail_msg("'%s': %s", rows[i].source, err.text);
        assert_int_equal(ref.kind, rows[i].kind);
        assert_string_equal(ref.location.p, arena_fmt(&a, "%s%s", base, rows[i].at).p);
        assert_string_equal(ref.subdir.p, "a/b");
    }
    assert_int_equal(setenv("HOME", home.p, 1), 0);
    assert_false(source_parse(&(SourceAsk){.source = STR("link"), .ref = STR("v1")}, &a, &ref, &err));
    assert_string_equal(err.hint, arena_fmt(&a, "A commit of a local clone is installed with `file://%s/owner/repo --ref "
                                                "COMMIT --allow-insecure-transport`.", base).p);
    assert_int_equal(unlink("x.tar") | unlink("fifo") | unlink("link") | rmdir(" blanks ") | rmdir("owner/repo") |
                     rmdir("owner"), 0);
    assert_int_equal(chdir(here) | rmdir(base), 0);
    arena_free(&a);
}

static const struct CMUnitTest source_tests[] = {
    cmocka_unit_test(source_vectors_test),
    cmocka_unit_test(source_refusals_test),
    cmocka_unit_test(source_shown_test),
    cmocka_unit_test(source_local_test),
};
