#include "host/install.h"

/* A plugin in ./plug, a store in ./home, and a person who says what they are
 * told to. */
typedef struct InstallWorld {
    Arena       a;
    Store       s;
    InstallHost host;
    bool        yes, good;      /* what is answered: to the plan, by the verification */
    int         asked, verified;
    time_t      ahead;          /* by so much the lock was renewed beforehand */
    char        changes[300];
    Err         err;
} InstallWorld;

static const char install_manifest[] =
    "manifest_version = 1\noperation_contract_version = 1\n[provider]\nid = \"%s\"\nversion = \"%s\"\n"
    "[runtime]\nkind = \"exec\"\ncommand = [\"./run\"]\n[features]\nsupported = [\"exec.run\"]\n"
    "[operations]\ncli = [\"exec.run\"]\npython = []\n[workflow]\ninputs = []\nstartups = [\"exec\"]\n%s";

static void install_plugin(const char *id, const char *version, const char *more)
{
    char text[2000];

    snprintf(text, sizeof text, install_manifest, id, version, more);
    assert_true(mkdir("plug", 0755) == 0 || errno == EEXIST);
    fs_put("plug/abx-provider.toml", text);
    tree_make_file("plug/run", "#!/bin/sh\n", 0755);
}

static bool install_consent(void *ctx, const InstallPlan *plan)
{
    InstallWorld *w = ctx;
    Buf     b = buf_make(1 << 20);
    JsonOut to = json_out(&b, JSON_COMPACT);

    w->asked++;
    install_plan(plan, &to);
    buf_addc(&b, '\0');
    snprintf(w->changes, sizeof w->changes, "%s", strstr(b.p, "\"changes\":"));
    buf_free(&b);
    return w->yes;
}

static bool install_verify(void *ctx, Str id, Err *err)
{
    InstallWorld *w = ctx;

    w->verified++;
    assert_true(store_check(&w->s, id, err));       /* it is in place */
    struct stat st;
    assert_true(stat("home/providers/.lock", &st) == 0);
    w->ahead = st.st_mtime - time(NULL);
    return w->good || err_set(err, ERR_REMOTE, E8021, "handshake: it said %s", "no");
}

static void install_open(InstallWorld *w)
{
    *w = (InstallWorld){.a = arena_make(ARENA_COMMAND), .good = true};
    w->s = store_make(STR("home"), &w->a);
    w->host = (InstallHost){.source = {.cancel_fd = -1}, .consent = install_consent, .consent_ctx = w,
                            .verify = install_verify, .verify_ctx = w};
    install_plugin("demo", "1.0", "");
}

static bool install_do(InstallWorld *w, InstallAsk ask)
{
    Installed out;

    if (!ask.source.source.p)
        ask.source.source = STR("plug");
    if (!install_add(&w->s, &ask, &w->host, &w->a, &out, &w->err))
        return false;
    assert_true(out.receipt.n > 0 && out.receipt.p[0] == '{' && out.receipt.p[out.receipt.n - 1] == '}');
    buf_free(&out.receipt);
    return true;
}

static const char *install_version(InstallWorld *w)
{
    Receipt r;

    return store_receipt(&w->s, STR("demo"), &w->a, &r) ? arena_cstr(&w->a, r.version) : "none";
}

static void install_add_test(void **state)
{
    InstallWorld w;
    Receipt      r;

    (void)state;
    install_open(&w);
    assert_true(!install_do(&w, (InstallAsk){0}) && w.err.code == E8012 && w.asked == 1 && w.verified == 0);
    assert_true(access("home", F_OK) != 0);
    w.yes = true;
    assert_true(install_do(&w, (InstallAsk){0}) && w.asked == 2 && w.verified == 1);
    assert_string_equal(w.changes, "\"changes\":[]}");
    assert_true(store_receipt(&w.s, STR("demo"), &w.a, &r) && str_eq(r.trust, STR("local")) &&
                r.source.type == RECEIPT_LOCAL && r.source.path.p[0] == '/');
    assert_true(str_eq(json_str(json_get(json_get(r.doc, "installed_by"), "name")), STR("abx")));

    /* again: not without --force, which nobody is asked before */
    assert_true(!install_do(&w, (InstallAsk){.yes = true}) && w.err.code == E8003 && code_exit(E8003) == 1);
    install_plugin("demo", "2.0", "[core]\ninherit = [\"sandbox_api_key\"]\n[config.fields.zone]\ntype = \"string\"\n"
                                  "[security]\nnetwork = [\"x.example\"]\n");
    assert_true(install_do(&w, (InstallAsk){.force = true}) && w.asked == 3);
    assert_string_equal(w.changes, "\"changes\":[\"security\",\"inherit\",\"fields\"]}");
    assert_string_equal(install_version(&w), "2.0");
    install_plugin("demo", "3.0", "");
    assert_true(install_do(&w, (InstallAsk){.force = true, .yes = true}) && w.asked == 3);
    assert_string_equal(install_version(&w), "3.0");
    install_plugin("demo", "4.0", "[security]\nnetwork = [\"x.example\"]\n");
    assert_true(install_do(&w, (InstallAsk){.force = true}));
    assert_string_equal(w.changes, "\"changes\":[\"security\"]}");      /* less is inherited: no change */

    /* back, and forth */
    Installed out;
    assert_true(install_rollback(&w.s, STR("demo"), &w.host, &w.a, &out, &w.err) && str_eq(out.version, STR("3.0")));
    buf_free(&out.receipt);
    w.good = false;
    assert_true(!install_rollback(&w.s, STR("demo"), &w.host, &w.a, &out, &w.err) && w.err.code == E8010);
    assert_string_equal(install_version(&w), "3.0");
    assert_true(!install_rollback(&w.s, STR("none"), &w.host, &w.a, &out, &w.err) && w.err.code == E8001);

    /* what does not pass is taken back */
    install_plugin("demo", "5.0", "");
    assert_true(!install_do(&w, (InstallAsk){.force = true, .yes = true}) && w.err.code == E8010);
    assert_string_equal(w.err.text, "`demo` was left as it was: handshake: it said no");
    assert_string_equal(install_version(&w), "3.0");
    install_plugin("fresh", "1.0", "");
    assert_true(!install_do(&w, (InstallAsk){.yes = true}) && w.err.code == E8010 && !store_has(&w.s, STR("fresh")));
    w.host.verify = NULL;
    assert_true(install_do(&w, (InstallAsk){.yes = true}) && store_has(&w.s, STR("fresh")));
    w.host.consent = NULL;
    install_plugin("other", "1.0", "");
    assert_true(!install_do(&w, (InstallAsk){0}) && w.err.code == E8012);

    /* what may be slow to start is given its time with the lock held */
    assert_true(w.ahead < 10);
    w.host.verify = install_verify;
    w.good = true;
    install_plugin("slow", "1.0", "");
    assert_int_equal(system("sed -i 's/^kind =/startup_timeout_ms = 600000\\nkind =/' plug/abx-provider.toml"), 0);
    assert_true(install_do(&w, (InstallAsk){.yes = true}) && w.ahead > 590);

    /* gone */
    assert_true(!install_remove(&w.s, STR("alicloud-express"), false, -1, &w.err) && w.err.code == E8003);
    assert_true(!install_remove(&w.s, STR("opensandbox"), false, -1, &w.err) && w.err.code == E8001);
    assert_true(!install_remove(&w.s, STR("../home"), true, -1, &w.err) && w.err.code == E8001 && access("home", F_OK) == 0);
    assert_true(install_remove(&w.s, STR("fresh"), false, -1, &w.err) && !store_has(&w.s, STR("fresh")));
    store_tidy();
    arena_free(&w.a);
}

/* The order of 3.4: whatever comes first is what is said. */
static void install_order_test(void **state)
{
    static const char sum[] = "0000000000000000000000000000000000000000000000000000000000000000";
    InstallWorld w;

    (void)state;
    install_open(&w);
    w.yes = true;
    assert_true(install_do(&w, (InstallAsk){.yes = true}));
    InstallAsk bad = {.source = {.source = STR("http://user:pw@h/x")}, .sha256 = str_from(sum)};
    assert_true(!install_do(&w, bad) && w.err.code == E8012 && !strstr(w.err.text, "pw"));
    bad.source.source = STR("plug");
    assert_int_equal(mkfifo("plug/fifo", 0600), 0);
    install_plugin("demo", "1.0", "nonsense");
    assert_true(!install_do(&w, bad) && w.err.code == E8010 && strstr(w.err.text, "fifo"));
    unlink("plug/fifo");
    assert_true(!install_do(&w, bad) && w.err.code == E8014);
    unlink("plug/abx-provider.toml");
    assert_true(!install_do(&w, bad) && w.err.code == E8014 && strstr(w.err.text, "abx-provider.toml"));
    install_plugin("demo", "1.0", "[compat]\nrequires = { sdk = \">=99\" }\n");
    assert_true(!install_do(&w, bad) && w.err.code == E8011 && strstr(w.err.text, sum));
    bad.sha256 = (Str){0};
    assert_true(!install_do(&w, bad) && w.err.code == E8013);
    install_plugin("demo", "1.0", "");
    assert_true(!install_do(&w, bad) && w.err.code == E8003 && w.asked == 0);

    /* the digest of the tree is a pin, in either case of letters */
    Receipt r;
    assert_true(store_receipt(&w.s, STR("demo"), &w.a, &r));
    char *upper = arena_cstr(&w.a, r.tree_sha256);
    for (char *p = upper; *p; p++)
        *p = *p >= 'a' ? (char)(*p - 32) : *p;
    assert_true(install_do(&w, (InstallAsk){.sha256 = str_from(upper), .force = true, .yes = true}));
    assert_true(store_receipt(&w.s, STR("demo"), &w.a, &r) && str_eq(r.trust, STR("pinned")));
    arena_free(&w.a);
}

static void install_link_test(void **state)
{
    InstallWorld w;
    Receipt      r;
    Updated      u;
    UpdateAsk    none = {0};

    (void)state;
    install_open(&w);
    w.yes = true;
    assert_true(!install_do(&w, (InstallAsk){.link = true}) && w.err.code == E8012 && w.asked == 0);
    assert_true(!install_do(&w, (InstallAsk){.link = true, .yes = true, .source = {.source = STR("https://h/x.git")}}) &&
                w.err.code == E8010);
    install_plugin("demo", "1.0", "nonsense");
    assert_true(!install_do(&w, (InstallAsk){.link = true}) && w.err.code == E8014);
    install_plugin("demo", "1.0", "");
    assert_int_equal(symlink("/etc/passwd", "plug/data"), 0);           /* nothing but the manifest is looked at */
    assert_true(install_do(&w, (InstallAsk){.link = true, .yes = true, .sha256 = STR("x")}) && w.verified == 1);
    assert_true(store_receipt(&w.s, STR("demo"), &w.a, &r) && str_eq(r.trust, STR("link")) && r.tree_sha256.n == 0 &&
                r.source.type == RECEIPT_LINK);
    assert_int_equal(system("test \"$(ls -A home/providers/demo)\" = .abx-install.json"), 0);
    assert_true(!install_do(&w, (InstallAsk){.link = true, .yes = true}) && w.err.code == E8003);
    assert_true(!install_update(&w.s, STR("demo"), &none, &w.host, &w.a, &u, &w.err) && w.err.code == E8010);
    unlink("plug/data");
    assert_true(install_do(&w, (InstallAsk){.yes = true, .force = true}));
    assert_true(!install_update(&w.s, STR("demo"), &none, &w.host, &w.a, &u, &w.err) && w.err.code == E8010);
    assert_true(!install_update(&w.s, STR("none"), &none, &w.host, &w.a, &u, &w.err) && w.err.code == E8001);
    assert_true(install_update(&w.s, STR("alicloud-express"), &none, &w.host, &w.a, &u, &w.err) &&
                str_eq(u.status, STR("bundled")) && !u.available.p && u.message.n);
    none.ref = STR("x");
    assert_true(!install_update(&w.s, STR("alicloud-express"), &none, &w.host, &w.a, &u, &w.err) && w.err.code == E8010);
    arena_free(&w.a);
}

/* A git source, as far as it needs no server: what was fetched is given. */
static bool install_git(InstallWorld *w, const char *ref, const char *commit, bool pinned, const InstallAsk *ask)
{
    InstallWork work = {.s = &w->s, .host = &w->host, .a = &w->a};
    SourceGot   got = {.pinned = pinned, .source = {.type = RECEIPT_GIT, .url = STR("https://h.example/o/r.git"),
                                                    .ref = str_from(ref), .commit = str_from(commit)}};
    Buf         printed = buf_make(LIMIT_RECEIPT);

    assert_true(treefs_read("plug", &got.tree, &w->err));
    bool ok = install__take(&work, &got, ask->sha256, &w->err) && install__go(&work, ask, &printed, &w->err);
    tree_free(&got.tree);
    buf_free(&printed);
    return ok;
}

static bool install_again(InstallWorld *w, const char *ref, const char *commit, bool pinned, const UpdateAsk *ask, Updated *out)
{
    InstallWork work = {.s = &w->s, .host = &w->host, .a = &w->a};
    SourceGot   got = {.pinned = pinned, .source = {.type = RECEIPT_GIT, .url = STR("https://h.example/o/r.git"),
                                                    .ref = str_from(ref), .commit = str_from(commit)}};
    bool        done;

    work.plan.old = store_receipt(&w->s, STR("demo"), &w->a, &work.old) ? &work.old : NULL;
    if (!install__settled(&work, STR("demo"), ask, out, &done, &w->err))
        return false;
    if (done)
        return true;
    assert_true(treefs_read("plug", &got.tree, &w->err));
    bool ok = install__take(&work, &got, (Str){0}, &w->err) && install__renew(&work, STR("demo"), ask, out, &w->err);
    tree_free(&got.tree);
    return ok;
}

static void install_pin_test(void **state)
{
    static const char one[] = "1111111111111111111111111111111111111111", two[] = "2222222222222222222222222222222222222222";
    InstallWorld w;
    Receipt      r;
    Updated      u;
    UpdateAsk    none = {0}, check = {.check = true}, yes = {.yes = true}, sure = {.yes = true, .allow_unpinned = true};

    (void)state;
    install_open(&w);
    w.yes = true;
    assert_false(install_git(&w, "HEAD", one, false, &(InstallAsk){.yes = true}));
    assert_true(w.err.code == E8012 && code_exit(E8012) == 2 && strstr(w.err.hint, one));
    assert_non_null(strstr(w.err.text, "Refusing an unpinned git source in non-interactive mode."));
    w.host.consent = NULL;
    assert_true(!install_git(&w, "HEAD", one, false, &(InstallAsk){0}) && w.err.code == E8012);
    w.host.consent = install_consent;
    assert_true(install_git(&w, "HEAD", one, false, &(InstallAsk){0}) && w.asked == 1);       /* who reads the plan may */
    assert_true(store_receipt(&w.s, STR("demo"), &w.a, &r) && str_eq(r.trust, STR("unpinned")) && str_eq(r.source.commit, str_from(one)));
    assert_true(install_git(&w, "main", one, false, &(InstallAsk){.yes = true, .allow_unpinned = true, .force = true}));
    assert_true(install_git(&w, "main", one, false, &(InstallAsk){.yes = true, .force = true, .sha256 = r.tree_sha256}));
    assert_true(store_receipt(&w.s, STR("demo"), &w.a, &r) && str_eq(r.trust, STR("pinned")));
    assert_true(install_git(&w, two, two, true, &(InstallAsk){.yes = true, .force = true}));
    assert_true(store_receipt(&w.s, STR("demo"), &w.a, &r) && str_eq(r.trust, STR("pinned")) && str_eq(r.source.commit, str_from(two)));

    /* what is pinned stays, whatever there is, until it is told otherwise */
    assert_true(install_again(&w, two, two, true, &none, &u) && str_eq(u.status, STR("pinned")) &&
                str_eq(u.installed, str_from(two)) && !u.available.p);
    none.ref = STR("main");
    assert_true(install_again(&w, "main", one, false, &none, &u) && str_eq(u.status, STR("up-to-date")) &&
                str_eq(u.available, str_from(one)));
    assert_true(store_receipt(&w.s, STR("demo"), &w.a, &r) && str_eq(r.source.commit, str_from(two)));  /* untouched */
    install_plugin("demo", "2.0", "[security]\nspawns_processes = true\n");
    check.ref = yes.ref = sure.ref = STR("main");
    assert_true(install_again(&w, "main", one, false, &check, &u) && str_eq(u.status, STR("available")) &&
                u.change_count == 1 && str_eq(u.changes[0], STR("security")));
    assert_string_equal(install_version(&w), "1.0");
    assert_true(!install_again(&w, "main", one, false, &yes, &u) && w.err.code == E8012);
    int asked = w.asked;
    assert_true(install_again(&w, "main", one, false, &sure, &u) && str_eq(u.status, STR("updated")) && w.asked == asked);
    assert_string_equal(install_version(&w), "2.0");
    install_plugin("demo", "3.0", "");
    w.yes = false;
    assert_true(!install_again(&w, "main", two, false, &none, &u) && w.err.code == E8012 && w.asked == asked + 1);
    w.yes = true;
    assert_true(install_again(&w, "main", two, false, &none, &u) && str_eq(u.status, STR("updated")));
    install_plugin("else", "3.0", "");
    assert_true(!install_again(&w, "main", two, false, &check, &u) && w.err.code == E8010 && strstr(w.err.text, "else"));
    arena_free(&w.a);
}

/* An update keeps who installed it; somebody else's change in the middle is
 * noticed. */
static bool install_meddle(void *ctx, const InstallPlan *plan)
{
    (void)ctx;
    (void)plan;
    return system("sed -i s/1.0/1.0.1/ home/providers/demo/.abx-install.json") == 0;
}

static void install_meanwhile_test(void **state)
{
    InstallWorld w;
    Receipt      r;
    Updated      u;
    UpdateAsk    yes = {.yes = true, .allow_unpinned = true}, ask = {0};

    (void)state;
    install_open(&w);
    assert_true(install_git(&w, "main", "c", false, &(InstallAsk){.yes = true, .allow_unpinned = true}));
    assert_int_equal(system("sed -i 's/\"name\": \"abx\"/\"tool\": \"x\"/' home/providers/demo/.abx-install.json"), 0);
    install_plugin("demo", "2.0", "");
    assert_true(install_again(&w, "main", "d", false, &yes, &u));
    assert_true(store_receipt(&w.s, STR("demo"), &w.a, &r) &&
                str_eq(json_str(json_get(json_get(r.doc, "installed_by"), "tool")), STR("x")));
    assert_int_equal(system("sed -i s/2.0/1.0/ home/providers/demo/.abx-install.json"), 0);
    install_plugin("demo", "3.0", "");
    w.host.consent = install_meddle;
    assert_true(!install_again(&w, "main", "e", false, &ask, &u) && w.err.code == E8010 && strstr(w.err.text, "meanwhile"));
    assert_string_equal(install_version(&w), "1.0.1");
    arena_free(&w.a);
}

/* A catalog of one row, whose plugin lies in ./plug. */
static void install_index(const char *id, const char *version, const char *sum)
{
    char text[500];

    snprintf(text, sizeof text, "{\"providers\": [{\"id\": \"%s\", \"version\": \"%s\", \"url\": \"plug\"%s%s%s}]}", id,
             version, *sum ? ", \"sha256\": \"" : "", sum, *sum ? "\"" : "");
    fs_put("index.json", text);
}

static const char *install_archive(InstallWorld *w)
{
    Receipt r;

    assert_true(store_receipt(&w->s, STR("demo"), &w->a, &r) && r.source.type == RECEIPT_CATALOG);
    return arena_cstr(&w->a, r.source.archive_sha256);
}

static void install_catalog_test(void **state)
{
    InstallWorld w;
    Updated      u;
    UpdateAsk    none = {0}, check = {.check = true}, yes = {.yes = true, .ref = STR("ignored")};
    InstallAsk   ask = {.source = {.source = STR("registry:demo")}, .yes = true};
    char         path[4200], *dir = getcwd(NULL, 0), *sums[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        sums[i] = calloc(1, TREE_HEX);
        memset(sums[i], 'a' + i, TREE_HEX - 1);
    }
    install_open(&w);
    snprintf(path, sizeof path, "file:%s/index.json", dir);
    w.host.source.registry = str_from(path);
    install_index("demo", "9", sums[0]);
    if (!install_do(&w, ask))
        fail_msg("%s", w.err.text);
    assert_string_equal(install_archive(&w), sums[0]);
    ask.source.source = STR("registry:other");
    assert_true(!install_do(&w, ask) && w.err.code == E8001);
    install_index("other", "9", "");
    assert_true(!install_do(&w, ask) && w.err.code == E8010);           /* it is the plugin `demo` */

    /* the same files in another archive: noted, but not by --check */
    install_index("demo", "10", sums[1]);
    w.host.source.registry = STR("file:/nowhere");                      /* the receipt says where it is from */
    assert_true(install_update(&w.s, STR("demo"), &check, &w.host, &w.a, &u, &w.err) && str_eq(u.status, STR("up-to-date")) &&
                str_eq(u.installed, STR("1.0")) && str_eq(u.available, STR("1.0")));
    assert_string_equal(install_archive(&w), sums[0]);
    assert_true(install_update(&w.s, STR("demo"), &none, &w.host, &w.a, &u, &w.err) && str_eq(u.status, STR("up-to-date")));
    assert_string_equal(install_archive(&w), sums[1]);
    assert_true(store_check(&w.s, STR("demo"), &w.err));

    /* other files: an update, whatever the versions say; nobody is asked, --yes agrees */
    install_plugin("demo", "0.5", "");
    assert_true(install_update(&w.s, STR("demo"), &check, &w.host, &w.a, &u, &w.err) && str_eq(u.status, STR("available")) &&
                str_eq(u.available, STR("0.5")));
    w.yes = true;
    assert_true(!install_update(&w.s, STR("demo"), &none, &w.host, &w.a, &u, &w.err) && w.err.code == E8012 && w.asked == 0);
    assert_true(install_update(&w.s, STR("demo"), &yes, &w.host, &w.a, &u, &w.err) && str_eq(u.status, STR("updated")) &&
                str_eq(json_str(json_get(u.receipt, "version")), STR("0.5")));
    assert_string_equal(install_version(&w), "0.5");
    install_plugin("demo", "0.6", "[compat]\nrequires = { sdk = \">=99\" }\n");
    assert_true(!install_update(&w.s, STR("demo"), &none, &w.host, &w.a, &u, &w.err) && w.err.code == E8013);
    install_plugin("other", "0.6", "");
    assert_true(!install_update(&w.s, STR("demo"), &check, &w.host, &w.a, &u, &w.err) && w.err.code == E8010);
    install_index("other", "1", "");
    assert_true(!install_update(&w.s, STR("demo"), &check, &w.host, &w.a, &u, &w.err) && w.err.code == E8001);
    assert_string_equal(install_version(&w), "0.5");
    free(sums[0]);
    free(sums[1]);
    free(dir);
    arena_free(&w.a);
}

static const struct CMUnitTest install_tests[] = {
    cmocka_unit_test_setup_teardown(install_add_test, fs_enter, tree_leave),
    cmocka_unit_test_setup_teardown(install_order_test, fs_enter, tree_leave),
    cmocka_unit_test_setup_teardown(install_link_test, fs_enter, tree_leave),
    cmocka_unit_test_setup_teardown(install_pin_test, fs_enter, tree_leave),
    cmocka_unit_test_setup_teardown(install_meanwhile_test, fs_enter, tree_leave),
    cmocka_unit_test_setup_teardown(install_catalog_test, fs_enter, tree_leave),
};
