#include "host/catalog.h"

#include <sys/stat.h>
#include <unistd.h>

static const char catalog_test__index[] =
    "{\"providers\": [3, null, {\"id\": 7}, {\"version\": \"9\"}, \"demo\","
    "{\"id\": \"demo\", \"version\": \"1.2\", \"url\": \"p\", \"sha256\": \"abc\"},"
    "{\"id\": \"demo\", \"version\": \"2\", \"url\": \"nowhere\"},"
    "{\"id\": \"up\", \"url\": \"../%s/p\"}, {\"id\": \"abs\", \"url\": \"%s/p\"}, {\"id\": \"file\", \"url\": \"file://%s/p\"},"
    "{\"id\": \"gone\", \"url\": \"nowhere\"}, {\"id\": \"index\", \"url\": \"index.json\"}, {\"id\": \"none\"},"
    "{\"id\": \"blank\", \"url\": \"\"}, {\"id\": \"odd\", \"url\": 3}, {\"id\": \"http\", \"url\": \"http://127.0.0.1:1/x\"},"
    "{\"id\": \"nosum\", \"url\": \"https://127.0.0.1:1/x\"}, {\"id\": \"down\", \"url\": \"https://127.0.0.1:1/x\", \"sha256\": \"a\"}"
    "]}";

static void catalog_test__write(const char *path, Str text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_int_equal(fwrite(text.p, 1, text.n, f), text.n);
    fclose(f);
}

static bool catalog_test__fetch(Str registry, const char *id, Arena *a, SourceGot *got, Err *err)
{
    SourceAsk  ask = {.source = arena_fmt(a, "registry: %s ", id)};
    SourceHost host = {.cancel_fd = -1, .registry = registry};
    SourceRef  ref;

    assert_true(source_parse(&ask, a, &ref, err));
    return source_fetch(&ref, &host, a, got, err);
}

static void catalog_rows_test(void **state)
{
    static const struct { const char *id; Code code; const char *said; } rows[] = {
        {"demo", E0000, NULL}, {"up", E0000, NULL}, {"abs", E0000, NULL}, {"file", E0000, NULL},
        {"other", E8001, "has no provider 'other'"}, {"", E8001, "has no provider ''"}, {"Demo", E8001, "has no provider"},
        {"gone", E8002, "is no folder"}, {"index", E8002, "is no folder"}, {"none", E8002, "(`url`)"}, {"blank", E8002, "(`url`)"},
        {"odd", E8002, "(`url`)"}, {"http", E8002, "does not come over https"}, {"nosum", E8002, "no `sha256`"},
#ifdef ABX_TLS_NONE
        {"down", E5001, "without TLS"},
#else
        {"down", E8010, "127.0.0.1"},
#endif
    };
    Arena     a = arena_make(ARENA_COMMAND);
    char      base[] = "/tmp/abx-catalog-XXXXXX", here[4096];
    SourceGot got;
    Err       err;

    (void)state;
    assert_non_null(mkdtemp(base));
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(base) | mkdir("p", 0700), 0);
    catalog_test__write("p/file", STR("x"));
    catalog_test__write("index.json", arena_fmt(&a, catalog_test__index, base + 5, base, base));
    Str places[] = {arena_fmt(&a, " %s/index.json\n", base), arena_fmt(&a, "file:%s/index.json", base),
                    arena_fmt(&a, "file:///%s/index.json", base), STR("index.json")};
    for (size_t k = 0; k < COUNT_OF(places); k++)
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
            bool ok = catalog_test__fetch(places[k], rows[i].id, &a, &got, &err);
            if (ok != !rows[i].said || (!ok && (err.code != rows[i].code || !strstr(err.text, rows[i].said))))
                fail_msg("'%s' at '%s': E%d %s", rows[i].id, places[k].p, err.code, ok ? "taken" : err.text);
            if (!ok)
                continue;
            assert_int_equal(got.tree.n, 1);
            assert_int_equal(got.source.type, RECEIPT_CATALOG);
            assert_string_equal(got.source.id.p, rows[i].id);
            assert_string_equal(got.catalog_id.p, rows[i].id);
            assert_true(str_eq(got.row_version, i ? (Str){0} : STR("1.2")));
            assert_true(str_eq(got.source.archive_sha256, i ? (Str){0} : STR("abc")));
            /* A receipt outlives the working directory. */
            Str at = k == 1 || k == 2 ? places[k] : arena_fmt(&a, "%s/index.json", base);
            assert_true(str_eq(got.source.registry, at));
            tree_free(&got.tree);
        }
    assert_int_equal(unlink("p/file") | unlink("index.json") | rmdir("p"), 0);
    assert_int_equal(chdir(here) | rmdir(base), 0);
    arena_free(&a);
}

static void catalog_index_test(void **state)
{
    static const struct { const char *text; Code code; const char *said; } rows[] = {
        {"", E8010, "the catalog "}, {"[]", E8010, "no JSON object"}, {"<html>", E8010, "the catalog "}, {"{}", E8001, "has no provider"},
        {"{\"providers\": {}}", E8001, "has no provider"}, {"{\"providers\": [{\"id\": \"\"}]}", E8001, "has no provider"},
        {"{\"providers\": [[\"x\"]]}", E8001, "has no provider"}, {"{\"providers\": [{\"id\": \"x\"}]", E8010, "the catalog "},
    };
    Arena     a = arena_make(ARENA_COMMAND);
    char      path[] = "/tmp/abx-catalog-XXXXXX";
    SourceGot got;
    Err       err;
    int       fd = mkstemp(path);

    (void)state;
    close(fd);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        catalog_test__write(path, str_from(rows[i].text));
        assert_false(catalog_test__fetch(str_from(path), "x", &a, &got, &err));
        if (err.code != rows[i].code || !strstr(err.text, rows[i].said))
            fail_msg("'%s': E%d %s", rows[i].text, err.code, err.text);
    }
    unlink(path);
    Str places[] = {STR("/tmp"), STR("file:/nowhere/at all"), STR("nowhere/at/all"), STR("ftp://x/y"), STR("http://127.0.0.1:1/x"),
                    STR("http://u:geheim@127.0.0.1:1/x"), STR("file:")};
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        assert_false(catalog_test__fetch(places[i], "x", &a, &got, &err));
        if (err.code != E8010 || strstr(err.text, "geheim"))
            fail_msg("'%s': E%d %s", places[i].p, err.code, err.text);
    }
    arena_free(&a);
}

static const struct CMUnitTest catalog_tests[] = {
    cmocka_unit_test(catalog_rows_test),
    cmocka_unit_test(catalog_index_test),
};
