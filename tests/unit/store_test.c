#include "host/store.h"
#include "os/folder.h"

/* A store in ./home, and a plugin in ./VERSION. */
typedef struct StoreWorld { Arena a; Store s; StoreLock lock; StoreChange change; Err err; } StoreWorld;

static void store_open(StoreWorld *w)
{
    *w = (StoreWorld){.a = arena_make(ARENA_COMMAND)};
    w->s = store_make(STR("home"), &w->a);
}

static bool store_put_version(StoreWorld *w, Str id, const char *version, bool keep)
{
    Tree t = tree_make();
    char hex[TREE_HEX];

    assert_true(tree_put(&t, "abx-provider.toml", false, version, &w->err) && tree_put(&t, "bin/run", true, "run", &w->err));
    if (version[0] != '1')
        assert_true(tree_put(&t, "bin/more", false, version, &w->err));
    assert_true(tree_seal(&t, &w->err));
    tree_digest(&t, hex);
    Str receipt = arena_fmt(&w->a, "{\"id\": \"../else\", \"trust\": \"local\", \"tree_sha256\": \"%s\", \"version\": \"%s\"}\n",
                            hex, version);
    bool ok = store_put(&w->lock, id, &t, receipt, &w->change, &w->err);
    if (ok && keep)
        store_keep(&w->lock, &w->change);
    tree_free(&t);
    return ok;
}

static const char *store_version(StoreWorld *w, const char *id)
{
    Receipt r;

    if (!store_receipt(&w->s, str_from(id), &w->a, &r) || !store_check(&w->s, str_from(id), &w->err))
        return NULL;
    return arena_cstr(&w->a, r.version);
}

static void store_locked(StoreWorld *w)
{
    if (!store_lock(&w->s, -1, &w->lock, &w->err))
        fail_msg("%s", w->err.text);
}

/* Nothing but what shall stay. */
static void store_tidy(void)
{
    assert_int_equal(system("test -z \"$(ls -A home/providers/.staging home/providers/.trash | grep -v :)\""), 0);
    assert_int_equal(system("test -z \"$(ls -A home/providers | grep lock)\""), 0);
}

static void store_life_test(void **state)
{
    StoreWorld  w;
    StoreVerdict v;
    const Str  *ids;
    size_t      n;
    const char *data;
    Receipt     r;

    (void)state;
    store_open(&w);
    assert_true(store_ids(&w.s, &ids, &n, &w.err) && n == 0 && access("home", F_OK) != 0);
    assert_true(!store_check(&w.s, STR("demo"), &w.err) && w.err.code == E8001);
    store_locked(&w);
    assert_true(store_put_version(&w, STR("demo"), "1", true) && store_put_version(&w, STR("other"), "1", true));
    assert_string_equal(store_version(&w, "demo"), "1");
    assert_true(store_ids(&w.s, &ids, &n, &w.err) && n == 2 && str_eq(ids[0], STR("demo")) && str_eq(ids[1], STR("other")));
    assert_true(store_receipt(&w.s, STR("demo"), &w.a, &r) && str_eq(r.id, STR("demo")));    /* not what the file says */
    assert_string_equal(store_files(&w.s, &r), "home/providers/demo");
    assert_true(fs_mode("home/providers") == 0700 && fs_mode("home/providers/demo") == 0700 &&
                fs_mode("home/providers/demo/.abx-install.json") == 0600);

    /* data comes along, at every change */
    assert_true(store_data(&w.s, STR("demo"), &data, &w.err) && data[0] == '/');
    fs_put("home/providers/demo/data/state", "s");
    assert_true(chmod("home/providers/demo/data", 0755) == 0);
    assert_true(store_data(&w.s, STR("demo"), &data, &w.err) && fs_mode(data) == 0700);
    assert_true(store_put_version(&w, STR("demo"), "2", true) && fs_holds("home/providers/demo/data/state", "s"));
    assert_string_equal(store_version(&w, "demo"), "2");
    assert_true(store_put_version(&w, STR("demo"), "3", false) && fs_holds("home/providers/demo/data/state", "s"));
    assert_string_equal(store_version(&w, "demo"), "3");
    assert_true(store_undo(&w.lock, &w.change, &w.err) && fs_holds("home/providers/demo/data/state", "s"));
    assert_string_equal(store_version(&w, "demo"), "2");

    /* there and back again */
    assert_true(store_rollback(&w.lock, STR("demo"), &w.change, &w.err));
    store_keep(&w.lock, &w.change);
    assert_string_equal(store_version(&w, "demo"), "1");
    assert_true(fs_holds("home/providers/demo/data/state", "s"));
    assert_true(store_rollback(&w.lock, STR("demo"), &w.change, &w.err) && store_undo(&w.lock, &w.change, &w.err));
    assert_string_equal(store_version(&w, "demo"), "1");
    assert_true(store_verify(&w.s, STR("demo"), &w.a, &v, &w.err) && v.same && v.n == 0);
    fs_put("home/providers/.previous/demo/bin/more", "x");
    assert_true(!store_rollback(&w.lock, STR("demo"), &w.change, &w.err) && w.err.code == E8011);
    assert_true(!store_rollback(&w.lock, STR("other"), &w.change, &w.err) && w.err.code == E8001);
    assert_true(!store_rollback(&w.lock, STR("none"), &w.change, &w.err) && w.err.code == E8001);

    /* gone, but for the data; and back */
    assert_true(store_remove(&w.lock, STR("demo"), false, &w.err) && store_has(&w.s, STR("demo")));
    assert_int_equal(system("test \"$(ls -A home/providers/demo)\" = data"), 0);
    assert_true(fs_holds("home/providers/demo/data/state", "s") && access("home/providers/.previous/demo", F_OK) != 0);
    assert_true(store_remove(&w.lock, STR("demo"), false, &w.err) && fs_holds("home/providers/demo/data/state", "s"));
    assert_true(store_put_version(&w, STR("demo"), "2", true) && fs_holds("home/providers/demo/data/state", "s"));
    assert_true(!store_rollback(&w.lock, STR("demo"), &w.change, &w.err));
    assert_true(store_remove(&w.lock, STR("demo"), true, &w.err) && !store_has(&w.s, STR("demo")));
    assert_true(store_remove(&w.lock, STR("other"), false, &w.err) && !store_has(&w.s, STR("other")));
    assert_int_equal(system("test -z \"$(ls -A home/providers/.files home/providers/.previous | grep -v :)\""), 0);
    store_unlock(&w.lock);
    store_tidy();
    arena_free(&w.a);
}

static void store_link_test(void **state)
{
    StoreWorld  w;
    StoreVerdict v;
    Receipt     r;
    Str         link = STR("{\"trust\": \"link\", \"source\": {\"type\": \"link\", \"path\": \"/somewhere\"}}\n");

    (void)state;
    store_open(&w);
    store_locked(&w);
    assert_true(store_put_version(&w, STR("demo"), "1", true));
    assert_true(store_put(&w.lock, STR("demo"), NULL, link, &w.change, &w.err));
    store_keep(&w.lock, &w.change);
    assert_true(store_receipt(&w.s, STR("demo"), &w.a, &r) && store_check(&w.s, STR("demo"), &w.err));
    assert_string_equal(store_files(&w.s, &r), "/somewhere");
    assert_int_equal(system("test \"$(ls -A home/providers/demo)\" = .abx-install.json"), 0);
    assert_true(store_verify(&w.s, STR("demo"), &w.a, &v, &w.err) && v.link && v.same);
    assert_true(store_rollback(&w.lock, STR("demo"), &w.change, &w.err));
    assert_string_equal(store_version(&w, "demo"), "1");
    assert_true(store_rollback(&w.lock, STR("demo"), &w.change, &w.err));       /* back to the link */
    assert_true(store_receipt(&w.s, STR("demo"), &w.a, &r) && str_eq(r.trust, STR("link")));

    /* the receipt alone, if it is the one that was read */
    assert_true(store_rewrite(&w.lock, STR("demo"), STR("other"), STR("{}"), &w.err));
    assert_true(store_receipt(&w.s, STR("demo"), &w.a, &r) && str_eq(r.text, link));
    assert_true(store_rewrite(&w.lock, STR("demo"), link, STR("{\"a\": 1}"), &w.err));
    assert_true(store_receipt(&w.s, STR("demo"), &w.a, &r) && str_eq(r.text, STR("{\"a\": 1}")));
    assert_int_equal(fs_mode("home/providers/demo/.abx-install.json"), 0600);
    store_unlock(&w.lock);
    store_tidy();
    arena_free(&w.a);
}

static void store_verify_test(void **state)
{
    static const struct { const char *change, *want; } cases[] = {
        {"true", ""},
        {"echo >> bin/run", "0bin/run"},
        {"chmod -x bin/run", "0bin/run"},
        {"rm bin/run", "2bin/run"},
        {"echo > aaa; echo > zzz; rm bin/more; mkdir empty; echo x > data/x", "1aaa 2bin/more 1zzz"},
        {"rm -r *", "2abx-provider.toml 2bin/more 2bin/run"},
        {"mkdir new; cp bin/run new/run", "1new/run"},
        {"for f in ../.files/demo-*; do printf x >> $f; done; rm bin/run", "?"},
        {"rm ../.files/demo-*; rm bin/run", "?"},
        {"sed -i s/bin/bim/ ../.files/demo-*; rm bin/run", "?"},        /* it does not have the receipt's digest */
        {"for f in ../.files/demo-*; do : > $f; done; rm bin/run", "?"},
        {"sed -i s/e_sha256.*,/e_sha256\\\":\\\"..\\\",/ .abx-install.json", "?"},
        {"ln -s bin link", "!"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        StoreWorld   w;
        StoreVerdict v;
        char         got[300] = "", command[300];
        store_open(&w);
        store_locked(&w);
        assert_true(store_put_version(&w, STR("demo"), "2", true));
        store_unlock(&w.lock);
        snprintf(command, sizeof command, "cd home/providers/demo && mkdir data && %s", cases[i].change);
        assert_int_equal(system(command), 0);
        if (store_verify(&w.s, STR("demo"), &w.a, &v, &w.err)) {
            for (size_t k = 0; k < v.n; k++)
                snprintf(got + strlen(got), sizeof got - strlen(got), "%s%d%s", k ? " " : "", v.v[k].how, v.v[k].path.p);
            if (!v.listed)
                strcpy(got, "?");
            assert_int_equal(v.same, !*cases[i].want);
        } else {
            strcpy(got, w.err.code == E8011 ? "!" : "??");
        }
        if (strcmp(got, cases[i].want) != 0)
            fail_msg("%s: %s", cases[i].change, got);
        bool ok = store_check(&w.s, STR("demo"), &w.err);
        assert_true(ok == !*cases[i].want && (ok || w.err.code == E8011));
        arena_free(&w.a);
        assert_int_equal(system("rm -r home"), 0);
    }
}

/* What a crash, another host or a person may have left. */
static void store_odd_test(void **state)
{
    static const struct { const char *make, *ids, *demo, *after; } cases[] = {
        /* commands in the store, where `demo` is at version 2 and has data; its ids; its version after the lock was
         * taken; a command that then is true */
        {"true", "demo", "2", "true"},
        {"mkdir .hidden Bad a data-only default; for d in .hidden Bad a default; do cp demo/.abx-install.json $d; done; "
         "echo > file", "demo", "2", "true"},
        {"mv demo real; ln -s real demo; mv real elsewhere; ln -sfn elsewhere demo", "demo elsewhere", "2", "true"},
        {"mkdir broken; echo { > broken/.abx-install.json", "broken demo", "2", "true"},
        {"mkdir broken; ln -s nowhere broken/.abx-install.json", "demo", "2", "true"},
        {"mkdir broken; mkfifo broken/.abx-install.json", "broken demo", "2", "true"},
        {"printf '\\xff' > demo/.abx-install.json", "demo", NULL, "true"},
        {"echo [] > demo/.abx-install.json", "demo", NULL, "true"},
        {"rm demo/.abx-install.json", "", NULL, "true"},
        /* old leftovers go, young ones stay, what is marked goes at once */
        {"mkdir .staging/demo-01234567 .staging/git-x .trash/demo-00000000; echo > .trash/file; touch -d '-301 sec' "
         ".staging/* .trash/*", "demo", "2", "test -z \"$(ls .staging .trash | grep -v :)\""},
        {"mkdir .staging/demo-01234567 .trash/demo-00000000; touch -d '-298 sec' .staging/* .trash/*", "demo", "2",
         "test -d .staging/demo-01234567 -a -d .trash/demo-00000000"},
        {"mkdir -p .trash/.gone-1/a/b; chmod 0 .trash/.gone-1/a", "demo", "2", "! test -e .trash/.gone-1"},
        {"mkdir keep; echo > keep/x; ln -s ../../keep .trash/.gone-1; ln -s ../keep .staging/l; touch -h -d '-301 sec' "
         ".staging/l", "demo", "2", "test -e keep/x -a -z \"$(ls .staging .trash | grep -v :)\""},
        /* data on its way: from another host's uninstall, its update, ours */
        {"mv demo/data .trash/demo-data-01234567", "demo", "2", "test $(cat demo/data/s) = s -a -z \"$(ls .trash)\""},
        {"mv demo/data .trash/demo-data-01234567; rm -r demo", "", NULL, "test $(cat demo/data/s) = s"},
        {"mkdir .staging/demo-01234567; mv demo/data .staging/demo-01234567; mkdir demo/data", "demo", "2",
         "test $(cat demo/data/s) = s"},
        {"cp -r demo .trash/demo-01234567; echo new > demo/data/s; touch -d '-301 sec' .trash/*", "demo", "2",
         "test $(cat demo/data/s) = new -a $(cat .trash/demo-01234567/data/s) = s"},
        {"mv demo/data .staging/demo-01234567; mkdir .staging/demo-76543210; mv .staging/demo-01234567 "
         ".staging/demo-76543210/data; ln -s ../.staging/demo-76543210/data demo/data", "demo", "2",
         "test $(cat demo/data/s) = s -a ! -h demo/data -a ! -e .staging/demo-76543210/data"},
        {"rm -r demo/data; ln -s ../.staging/gone/data demo/data", "demo", "2", "! test -h demo/data"},
        /* no exchange: a crash between the two renames, behind both, and while data was moved */
        {"mv demo .trash/.swap-demo", "demo", "2", "test $(cat demo/data/s) = s -a -z \"$(ls -A .trash)\""},
        {"cp -r demo .trash/.swap-demo; rm -r demo/data", "demo", "2",
         "test $(cat demo/data/s) = s -a -z \"$(ls -A .trash)\""},
        {"cp -r demo .trash/.swap-demo; rm -r demo/data; ln -s ../.trash/.swap-demo/data demo/data", "demo", "2",
         "test $(cat demo/data/s) = s -a -z \"$(ls -A .trash)\" -a ! -h demo/data"},
        {"cp -r demo .trash/.swap-demo; echo new > demo/data/s", "demo", "2",
         "test $(cat demo/data/s) = new -a $(cat .trash/demo-*/data/s) = s -a ! -e .trash/.swap-demo"},
        {"mkdir .trash/.swap-Bad", "demo", "2", "true"},
        /* another host's uninstall knows nothing of .previous and .files */
        {"rm -r demo", "", NULL, "test -z \"$(ls -A .previous .files | grep -v :)\""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        StoreWorld  w;
        const Str  *ids;
        size_t      n;
        const char *data, *version;
        char        got[300] = "", command[600];
        store_open(&w);
        store_locked(&w);
        assert_true(store_put_version(&w, STR("demo"), "1", true) && store_put_version(&w, STR("demo"), "2", true));
        assert_true(store_data(&w.s, STR("demo"), &data, &w.err));
        fs_put("home/providers/demo/data/s", "s");
        store_unlock(&w.lock);
        snprintf(command, sizeof command, "cd home/providers && { %s; }", cases[i].make);
        assert_int_equal(system(command), 0);
        assert_true(store_ids(&w.s, &ids, &n, &w.err));
        for (size_t k = 0; k < n; k++)
            snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s", k ? " " : "", ids[k].p);
        if (strcmp(got, cases[i].ids) != 0)
            fail_msg("%s: ids %s", cases[i].make, got);
        store_locked(&w);
        store_unlock(&w.lock);
        version = store_version(&w, "demo");
        if (!version != !cases[i].demo || (version && strcmp(version, cases[i].demo) != 0))
            fail_msg("%s: version %s", cases[i].make, version ? version : "none");
        snprintf(command, sizeof command, "cd home/providers && %s", cases[i].after);
        if (system(command) != 0)
            fail_msg("%s: not true: %s", cases[i].make, cases[i].after);
        arena_free(&w.a);
        assert_int_equal(system("chmod -R u+rwx home; rm -r home"), 0);
    }
}

static void store_refuse_test(void **state)
{
    static const char *const makes[] = {
        "mkdir home; echo > home/providers", "mkdir -p home/providers; ln -s /tmp home/providers/.trash",
        "mkdir -p home/providers; echo > home/providers/.staging", "echo > home",
        "mkdir -p home/providers home/x; ln -s ../x home/providers/.previous",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(makes); i++) {
        StoreWorld w;
        store_open(&w);
        assert_int_equal(system(makes[i]), 0);
        if (store_lock(&w.s, -1, &w.lock, &w.err) || w.err.code != E8010)
            fail_msg("%s", makes[i]);
        arena_free(&w.a);
        assert_int_equal(system("! test -e home/providers/.lock && rm -r home"), 0);
    }

    /* an id is no path */
    StoreWorld w;
    Receipt    r;
    store_open(&w);
    assert_int_equal(system("mkdir -p home/providers home/x; echo {} > home/x/.abx-install.json"), 0);
    assert_true(!store_receipt(&w.s, STR("../x"), &w.a, &r) && !store_has(&w.s, STR("../x")) && !store_has(&w.s, STR("..")));
    assert_true(!store_check(&w.s, STR("../x"), &w.err) && w.err.code == E8001);

    /* a plugin that is a link to a folder: the link is exchanged, not what it leads to */
    store_locked(&w);
    assert_int_equal(system("ln -s ../x home/providers/demo"), 0);
    assert_true(store_put_version(&w, STR("demo"), "1", true));
    assert_string_equal(store_version(&w, "demo"), "1");
    assert_int_equal(system("test -e home/x/.abx-install.json && ! test -h home/providers/demo"), 0);
    assert_int_equal(system("rm -r home/providers/demo; ln -s ../x home/providers/demo"), 0);
    assert_true(store_remove(&w.lock, STR("demo"), true, &w.err));
    assert_int_equal(system("test -e home/x/.abx-install.json && ! test -h home/providers/demo"), 0);
    store_unlock(&w.lock);
    arena_free(&w.a);
}

/* Deep and closed folders go, too. */
static void store_remove_test(void **state)
{
    int  at = open(".", O_RDONLY | O_DIRECTORY), fd = at;

    (void)state;
    for (int i = 0; i < 700; i++) {
        assert_true(mkdirat(fd, "d", 0700) == 0 && mkdirat(fd, "e", 0) == 0);
        int next = openat(fd, "d", O_RDONLY | O_DIRECTORY);
        if (fd != at)
            close(fd);
        fd = next;
    }
    close(fd);
    folder_remove(at, "d");
    folder_remove(at, "e");
    folder_remove(at, "none");
    assert_int_equal(fs_entries(), 0);
    assert_true(mkdir("a", 0700) == 0 && mkdir("b", 0700) == 0 && folder_move(at, "a", at, "b") == EEXIST &&
                folder_move(at, "c", at, "d") == ENOENT && folder_move(at, "a", at, "c") == 0 &&
                folder_exchange(at, "none", at, "b") == ENOENT);
    close(at);
}

static const struct CMUnitTest store_tests[] = {
    cmocka_unit_test_setup_teardown(store_life_test, fs_enter, tree_leave),
    cmocka_unit_test_setup_teardown(store_link_test, fs_enter, tree_leave),
    cmocka_unit_test_setup_teardown(store_verify_test, fs_enter, tree_leave),
    cmocka_unit_test_setup_teardown(store_odd_test, fs_enter, tree_leave),
    cmocka_unit_test_setup_teardown(store_refuse_test, fs_enter, tree_leave),
    cmocka_unit_test_setup_teardown(store_remove_test, fs_enter, tree_leave),
};
