#include "serve/kit.h"

#include "base/buf.h"
#include "base/arena.h"
#include "base/limits.h"
#include "base/str.h"
#include "os/clock.h"
#include "os/random.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define KIT_UNKNOWN "does-not-exist-0000"   /* no sandbox has this id */

typedef struct Kit {
    abx_options  options;
    abx_details  what;          /* the provider's; good as long as the host handle */
    abx_session *session;       /* of the sandbox under test */
    abx_sandbox *box;           /* NULL: none was made */
    bool         skipped;
    bool         cancelled;
    char         why[3000];     /* of the test that runs */
} Kit;

static bool kit__fail(Kit *k, const char *fmt, ...) ABX_PRINTF(2, 3);
static bool kit__fail(Kit *k, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(k->why, sizeof k->why, fmt, args);
    va_end(args);
    return false;
}

/* A call of abx.h that should have worked did not. */
static bool kit__broke(Kit *k, const char *what, const abx_error *e)
{
    if (e->kind == ABX_CANCELLED)
        k->cancelled = true;
    return kit__fail(k, "%s: [%s] %.2000s", what, e->code, e->message);
}

static bool kit__skip(Kit *k, const char *why)
{
    k->skipped = true;
    return kit__fail(k, "%s", why);
}

static bool kit__declares(const Kit *k, const char *feature)
{
    for (size_t i = 0; i < k->what.features.n; i++)
        if (strcmp(k->what.features.v[i], feature) == 0)
            return true;
    return false;
}

/* ---- sessions and sandboxes ---- */

static abx_session *kit__open(Kit *k)
{
    ABX_UNSET abx_error e;
    abx_session *s = abx_open(&k->options, &e);

    if (!s)
        kit__broke(k, "opening a session", &e);
    return s;
}

static bool kit__create(Kit *k)
{
    ABX_UNSET abx_error e;

    k->session = kit__open(k);
    if (!k->session)
        return false;
    k->box = abx_create(k->session, NULL, &e);
    return k->box || kit__broke(k, "create", &e);
}

/* The sandbox goes, whatever became of the test. True unless that failed. */
static bool kit__clear(Kit *k)
{
    ABX_UNSET abx_error e;
    bool      ok = true;

    if (k->session && k->cancelled)
        abx_ignore_cancel(k->session);
    if (k->box && abx_kill(k->box, NULL, &e) != 0)
        ok = kit__broke(k, "removing the sandbox at the end", &e);
    abx_sandbox_free(k->box);
    abx_close(k->session);
    k->box = NULL;
    k->session = NULL;
    return ok;
}

/* A new session, and in it one call by id. */
static bool kit__kill_by_id(Kit *k, const char *id)
{
    abx_session *s = kit__open(k);
    ABX_UNSET abx_error e;
    abx_sandbox *b = s ? abx_attach(s, id, &e) : NULL;
    bool         ok = b && abx_kill(b, NULL, &e) == 0;

    if (s && !ok)
        kit__broke(k, "kill by id", &e);
    abx_sandbox_free(b);
    abx_close(s);
    return ok;
}

/* Ask for a sandbox by its id; *e when it is not there. */
static bool kit__connect(Kit *k, const char *id, bool *found, abx_error *e)
{
    abx_session    *s = kit__open(k);
    abx_sandbox    *b = s ? abx_attach(s, id, e) : NULL;
    const abx_info *info = b ? abx_get_info(b, e) : NULL;
    bool            ok = s != NULL;

    *found = info != NULL;
    if (info && strcmp(info->sandbox_id, id) != 0)
        ok = kit__fail(k, "connect to %s found %s", id, info->sandbox_id);
    if (s && !info && e->kind == ABX_CANCELLED)
        ok = kit__broke(k, "connect", e);
    abx_sandbox_free(b);
    abx_close(s);
    return ok;
}

static bool kit__is_unknown(Kit *k)
{
    bool      found;
    ABX_UNSET abx_error e;

    if (!kit__connect(k, KIT_UNKNOWN, &found, &e))
        return false;
    if (found)
        return kit__fail(k, "connect to an unknown id found a sandbox");
    return strcmp(e.code, "E2009") == 0 || kit__fail(k, "connect to an unknown id is %s, not E2009: %s", e.code, e.message);
}

typedef struct KitSeek { const char *id; bool found; } KitSeek;

static int kit__seek(void *ctx, const abx_info *i)
{
    KitSeek *s = ctx;

    s->found = strcmp(i->sandbox_id, s->id) == 0;
    return s->found;
}

static bool kit__listed(Kit *k, const char *id)
{
    abx_session *s = kit__open(k);
    KitSeek      seek = {.id = id};
    ABX_UNSET abx_error e;
    bool         ok = s != NULL;

    if (ok && abx_list(s, &(abx_list_options){.limit = 100}, kit__seek, &seek, NULL, &e) != 0)
        ok = kit__broke(k, "list", &e);
    else if (ok && !seek.found)
        ok = kit__fail(k, "the list does not name %s", id);
    abx_close(s);
    return ok;
}

/* ---- commands ---- */

typedef struct KitRun {
    Buf     out, err;
    int     code;           /* -1: a signal */
    bool    exited;
} KitRun;

static KitRun kit__ran(void)
{
    return (KitRun){.out = buf_make(LIMIT_GATHER), .err = buf_make(LIMIT_GATHER)};
}

static void kit__ran_free(KitRun *r)
{
    buf_free(&r->out);
    buf_free(&r->err);
}

/* Run it to its end. False: *e. */
static bool kit__exec(Kit *k, const abx_exec_options *o, KitRun *r, abx_error *e)
{
    abx_exec *x = abx_exec_start(k->box, o, e);
    abx_event ev;
    bool      ok = x != NULL;

    while (ok && !r->exited && (ok = abx_exec_next(x, 1, &ev, e) == 1)) {
        r->exited = ev.kind == ABX_EXIT;
        if (r->exited)
            r->code = ev.exit_code;
        else
            buf_add(ev.kind == ABX_STDERR ? &r->err : &r->out, (Str){ev.bytes, ev.size});
    }
    /* Exactly one exit, and nothing behind it. */
    if (ok && abx_exec_next(x, 1, &ev, e) != -1) {
        memset(e, 0, sizeof *e);
        snprintf(e->code, sizeof e->code, "E8020");
        snprintf(e->message, sizeof e->message, "something followed the exit of the command");
        ok = false;
    }
    abx_exec_free(x);
    return ok;
}

static bool kit__has(const Buf *text, const char *what)
{
    return memmem(text->p ? text->p : "", text->n, what, strlen(what)) != NULL;
}

/* A line for the shell; its end and a word that its output must hold. */
static bool kit__shell(Kit *k, const char *line, const abx_pair *env, int code, const char *out, const char *err)
{
    KitRun    r = kit__ran();
    ABX_UNSET abx_error e;
    bool      ok = kit__exec(k, &(abx_exec_options){.argv = &line, .argc = 1, .env = env, .env_count = env ? 1 : 0,
                                                .timeout_ms = 60000}, &r, &e) || kit__broke(k, line, &e);

    if (ok && r.code != code)
        ok = kit__fail(k, "%s: exit %d, not %d", line, r.code, code);
    if (ok && !kit__has(&r.out, out))
        ok = kit__fail(k, "%s: stdout lacks %s", line, out);
    if (ok && !kit__has(&r.err, err))
        ok = kit__fail(k, "%s: stderr lacks %s", line, err);
    kit__ran_free(&r);
    return ok;
}

/* ---- files ---- */

static ptrdiff_t kit__give(void *ctx, void *p, size_t size)
{
    Str   *rest = ctx;
    size_t n = rest->n < size ? rest->n : size;

    memcpy(p, rest->n ? rest->p : "", n);
    str_skip(rest, n);
    return (ptrdiff_t)n;
}

static int kit__take(void *ctx, const void *p, size_t size)
{
    Buf *b = ctx;

    buf_add(b, (Str){p, size});
    errno = EFBIG;
    return b->over ? -1 : 0;
}

static bool kit__write(Kit *k, const char *path, Str content)
{
    ABX_UNSET abx_error e;
    int64_t   size = (int64_t)content.n;

    return abx_write_file(k->box, path, -1, size, kit__give, &content, &e) == size || kit__broke(k, path, &e);
}

static bool kit__reads(Kit *k, const char *path, Str content)
{
    Buf       b = buf_make(LIMIT_GATHER);
    ABX_UNSET abx_error e;
    bool      ok = abx_read_file(k->box, path, kit__take, &b, &e) >= 0 || kit__broke(k, path, &e);

    if (ok && !str_eq(buf_str(&b), content))
        ok = kit__fail(k, "%s: %zu bytes read back differ from the %zu written", path, b.n, content.n);
    buf_free(&b);
    return ok;
}

static bool kit__exists(Kit *k, const char *path, bool should)
{
    ABX_UNSET abx_error e;
    bool      there = abx_stat(k->box, path, &e) != NULL;

    if (!there && e.kind == ABX_CANCELLED)
        return kit__broke(k, path, &e);
    return there == should || kit__fail(k, "%s %s", path, there ? "is still there" : "is not there");
}

typedef struct KitName { const char *name; bool found; } KitName;

static int kit__named(void *ctx, const abx_file_info *f)
{
    KitName *n = ctx;

    n->found |= strcmp(f->name, n->name) == 0;
    return n->found;
}

/* ---- the tests ---- */

/* The words of the specification (2.5). */
static const char *const kit__known[] = {
    "sandbox.lifecycle", "sandbox.timeout", "sandbox.pause", "exec.run", "exec.stream", "process.manage", "pty", "files.rw",
    "files.watch", "files.transfer", "templates.read", "templates.build", "templates.deploy", "ports.url", "ports.domain",
    "storage.mount", "network.vpc", "sessions",
};

static bool kit__features(Kit *k)
{
    for (size_t i = 0; i < k->what.features.n; i++) {
        bool known = false;
        for (size_t j = 0; j < COUNT_OF(kit__known); j++)
            known |= strcmp(kit__known[j], k->what.features.v[i]) == 0;
        if (!known)
            return kit__fail(k, "there is no feature %s", k->what.features.v[i]);
    }
    return true;
}

static bool kit__defaults(Kit *k)
{
    for (size_t i = 0; i < k->what.field_count; i++) {
        const abx_field *f = &k->what.fields[i];
        if (f->secret && strcmp(f->fallback, "null") != 0 && strcmp(f->fallback, "\"\"") != 0)
            return kit__fail(k, "the secret field %s has a default", f->key);
    }
    return true;
}

static bool kit__lifecycle(Kit *k)
{
    bool      found;
    ABX_UNSET abx_error e;

    if (!kit__create(k))
        return false;
    const char *id = abx_sandbox_id(k->box);
    if (strcmp(abx_session_provider(k->session), k->what.id) != 0)
        return kit__fail(k, "the session is of provider %s", abx_session_provider(k->session));
    if (!kit__connect(k, id, &found, &e))
        return false;
    if (!found)
        return kit__broke(k, "connect", &e);
    if (!kit__listed(k, id))
        return false;
    if (abx_kill(k->box, NULL, &e) != 0)
        return kit__broke(k, "kill", &e);
    return kit__kill_by_id(k, id) && kit__is_unknown(k);
}

static bool kit__kills(Kit *k)
{
    ABX_UNSET abx_error e;

    if (!kit__create(k))
        return false;
    const char *id = abx_sandbox_id(k->box);
    return (abx_kill(k->box, NULL, &e) == 0 || kit__broke(k, "kill", &e)) && kit__kill_by_id(k, id) &&
           kit__kill_by_id(k, id) && kit__kill_by_id(k, KIT_UNKNOWN);
}

static bool kit__timeout(Kit *k)
{
    ABX_UNSET abx_error e;

    return kit__create(k) && (abx_set_timeout(k->box, 600, &e) || kit__broke(k, "set timeout", &e));
}

static bool kit__pause(Kit *k)
{
    ABX_UNSET abx_error e;

    return kit__create(k) && (abx_pause(k->box, &e) || kit__broke(k, "pause", &e)) &&
           (abx_resume(k->box, &e) || kit__broke(k, "resume", &e)) &&
           (!kit__declares(k, "exec.run") || kit__shell(k, "echo back", NULL, 0, "back", ""));
}

static bool kit__run(Kit *k)
{
    static const char *const argv[] = {"echo", "contract"};
    KitRun                   r = kit__ran();
    ABX_UNSET abx_error e;
    bool                     ok = kit__create(k);

    ok = ok && (kit__exec(k, &(abx_exec_options){.argv = argv, .argc = 2, .timeout_ms = 60000}, &r, &e) ||
                kit__broke(k, "echo contract", &e));
    if (ok && r.code != 0)
        ok = kit__fail(k, "echo contract: exit %d", r.code);
    if (ok && !kit__has(&r.out, "contract"))
        ok = kit__fail(k, "echo contract: stdout lacks the word");
    kit__ran_free(&r);
    return ok;
}

static bool kit__exit_code(Kit *k)
{
    static const abx_pair env[] = {{"CONTRACT_VAR", "v1"}};
    const char           *line = "echo $CONTRACT_VAR";
    KitRun                r = kit__ran();
    ABX_UNSET abx_error e;
    bool                  ok = kit__create(k) && kit__shell(k, "echo oops >&2; exit 3", NULL, 3, "", "oops");

    ok = ok && (kit__exec(k, &(abx_exec_options){.argv = &line, .argc = 1, .env = env, .env_count = 1, .timeout_ms = 60000},
                          &r, &e) || kit__broke(k, line, &e));
    if (ok && !str_eq(str_trim(buf_str(&r.out)), STR("v1")))
        ok = kit__fail(k, "%s: the variable did not arrive", line);
    kit__ran_free(&r);
    return ok;
}

static bool kit__stream(Kit *k)
{
    const char *line = "echo one; sleep 0.3; echo two; exit 4";
    KitRun      r = kit__ran();
    ABX_UNSET abx_error e;
    bool        ok = kit__create(k);

    ok = ok && (kit__exec(k, &(abx_exec_options){.argv = &line, .argc = 1, .timeout_ms = 60000}, &r, &e) ||
                kit__broke(k, line, &e));
    const char *one = ok ? memmem(r.out.p ? r.out.p : "", r.out.n, "one", 3) : NULL;
    const char *two = ok ? memmem(r.out.p ? r.out.p : "", r.out.n, "two", 3) : NULL;
    if (ok && (!one || !two || one > two))
        ok = kit__fail(k, "%s: stdout does not hold one, then two", line);
    if (ok && r.code != 4)
        ok = kit__fail(k, "%s: exit %d, not 4", line, r.code);
    kit__ran_free(&r);
    return ok;
}

static bool kit__enforced(Kit *k)
{
    static const char *const argv[] = {"sleep", "60"};
    KitRun                   r = kit__ran();
    abx_error                e = {.kind = ABX_OK};
    bool                     ok = kit__create(k);
    int64_t                  start = clock_mono_ms();

    if (ok && kit__exec(k, &(abx_exec_options){.argv = argv, .argc = 2, .timeout_ms = 2000}, &r, &e) && r.code == 0)
        ok = kit__fail(k, "a command of 60 seconds ended well within a timeout of 2");
    else if (ok && e.kind == ABX_CANCELLED)
        ok = kit__broke(k, "sleep 60", &e);
    if (ok && clock_mono_ms() - start >= 45000)
        ok = kit__fail(k, "the timeout of 2 seconds took %lld ms", (long long)(clock_mono_ms() - start));
    kit__ran_free(&r);
    return ok;
}

static int kit__any(void *ctx, const abx_process *p)
{
    (void)ctx;
    (void)p;
    return 0;
}

static bool kit__processes(Kit *k)
{
    ABX_UNSET abx_error e;

    return kit__create(k) && (abx_processes(k->box, kit__any, NULL, &e) == 0 || kit__broke(k, "process list", &e));
}

static bool kit__roundtrip(Kit *k)
{
    return kit__create(k) && kit__write(k, "/contract.txt", STR("hello")) && kit__reads(k, "/contract.txt", STR("hello"));
}

static bool kit__binary(Kit *k)
{
    static const char text[] = "h\xc3\xa9llo \xe4\xb8\x96\xe7\x95\x8c";
    ABX_UNSET char bytes[1024];

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)i;
    return kit__create(k) && kit__write(k, "/blob.bin", (Str){bytes, sizeof bytes}) &&
           kit__reads(k, "/blob.bin", (Str){bytes, sizeof bytes}) && kit__write(k, "/uni.txt", str_from(text)) &&
           kit__reads(k, "/uni.txt", str_from(text)) && kit__write(k, "/uni.txt", STR("short")) &&
           kit__reads(k, "/uni.txt", STR("short"));
}

static bool kit__folders(Kit *k)
{
    char      dir[32] = "/contract-", a[48], b[48];
    KitName   name = {.name = "a.txt"};
    ABX_UNSET abx_error e;

    random_hex(dir + strlen(dir), 6);
    snprintf(a, sizeof a, "%s/a.txt", dir);
    snprintf(b, sizeof b, "%s/b.txt", dir);
    if (!kit__create(k))
        return false;
    if (abx_make_folder(k->box, dir, &e) != 0)
        return kit__broke(k, "mkdir", &e);
    if (!kit__write(k, a, STR("a")))
        return false;
    if (abx_list_files(k->box, dir, kit__named, &name, &e) != 0)
        return kit__broke(k, "list", &e);
    if (!name.found)
        return kit__fail(k, "the folder's list lacks a.txt");
    if (!kit__exists(k, a, true))
        return false;
    if (abx_move(k->box, a, b, &e) != 0)
        return kit__broke(k, "move", &e);
    if (!kit__reads(k, b, STR("a")) || !kit__exists(k, a, false))
        return false;
    if (abx_remove(k->box, b, &e) != 0)
        return kit__broke(k, "remove", &e);
    return kit__exists(k, b, false);
}

static bool kit__missing(Kit *k)
{
    Buf       b = buf_make(LIMIT_GATHER);
    abx_error e = {.kind = ABX_OK};
    bool      ok = kit__create(k);

    if (ok && abx_read_file(k->box, "/definitely/not/here.txt", kit__take, &b, &e) >= 0)
        ok = kit__fail(k, "a file that is not there was read");
    else if (ok && strcmp(e.code, "E4001") != 0 && strcmp(e.code, "E8005") != 0)
        ok = kit__broke(k, "a file that is not there is neither E4001 nor E8005", &e);
    buf_free(&b);
    return ok;
}

static bool kit__url(Kit *k)
{
    ABX_UNSET abx_error e;

    if (!kit__create(k))
        return false;
    const abx_url *u = abx_port_url(k->box, 8080, &e);
    if (!u)
        return kit__broke(k, "the URL of a port", &e);
    return str_starts(str_from(u->url), STR("http://")) || str_starts(str_from(u->url), STR("https://")) ||
           kit__fail(k, "the URL of a port is %s", u->url);
}

/* Calls that a feature stands for: 0, or what the call said. */
static int kit__try(Kit *k, int which, abx_error *e)
{
    const char *line = "true";
    Buf         none = buf_make(0);
    abx_exec   *x;

    switch (which) {
    case 0:
        return abx_pause(k->box, e) ? 0 : -1;
    case 1:
        return abx_require(k->session, "files.watch", e);
    case 2:
        x = abx_exec_start(k->box, &(abx_exec_options){.argv = &line, .argc = 1}, e);
        abx_exec_free(x);
        return x ? 0 : -1;
    case 3:
        return abx_read_file(k->box, "/x", kit__take, &none, e) >= 0 ? 0 : -1;
    default:
        return abx_processes(k->box, kit__any, NULL, e);
    }
}

static bool kit__undeclared(Kit *k)
{
    static const char *const features[] = {"sandbox.pause", "files.watch", "exec.run", "files.rw", "process.manage"};
    ABX_UNSET abx_error e;
    bool                     any = false;

    for (size_t i = 0; i < COUNT_OF(features); i++)
        any |= !kit__declares(k, features[i]);
    if (!any)
        return kit__skip(k, "it declares all features");
    if (!kit__create(k))
        return false;
    for (int i = 0; i < (int)COUNT_OF(features); i++) {
        if (kit__declares(k, features[i]))
            continue;
        if (kit__try(k, i, &e) == 0)
            return kit__fail(k, "%s is not declared, and works", features[i]);
        if (strcmp(e.code, "E8004") != 0)
            return kit__broke(k, "what is not declared must be E8004", &e);
    }
    return true;
}

static bool kit__leaks(const abx_error *e, const char *canary)
{
    return strstr(e->message, canary) || strstr(e->suggestion, canary) || strstr(e->request_id, canary);
}

/* Every secret is a word that must not turn up again. */
static bool kit__secrets(Kit *k)
{
    char         canary[44] = "abx-canary-";
    Arena        a = arena_make(ARENA_COMMAND);
    abx_options  given = k->options;
    abx_pair    *config = arena_array(&a, given.config_count + k->what.field_count, sizeof *config);
    size_t       n = given.config_count;
    abx_error    e = {.kind = ABX_OK};
    bool         ok, found;

    random_hex(canary + strlen(canary), 32);
    for (size_t i = 0; i < n; i++)
        config[i] = given.config[i];
    for (size_t i = 0; i < k->what.field_count; i++)
        if (k->what.fields[i].secret)
            config[n++] = (abx_pair){k->what.fields[i].key, canary};
    if (n == given.config_count) {
        arena_free(&a);
        return kit__skip(k, "it has no secret settings");
    }
    k->options.config = config;
    k->options.config_count = n;
    k->session = abx_open(&k->options, &e);
    k->box = k->session ? abx_create(k->session, NULL, &e) : NULL;
    ok = !kit__leaks(&e, canary);
    if (ok && k->box)
        ok = kit__connect(k, KIT_UNKNOWN, &found, &e) && !kit__leaks(&e, canary);
    if (!ok)
        kit__fail(k, "an error holds the value of a secret setting");
    if (e.kind == ABX_CANCELLED)
        ok = kit__broke(k, "create", &e);
    ok = kit__clear(k) && ok;
    if (kit__has(&(Buf){.p = k->why, .n = strlen(k->why)}, canary))
        ok = kit__fail(k, "an error holds the value of a secret setting");
    k->options = given;
    arena_free(&a);
    return ok;
}

static const struct KitTest {
    const char *name;
    const char *needs[2];       /* features */
    bool      (*run)(Kit *k);   /* false: k->why; and k->skipped for a rule of its own */
} kit__tests[] = {
    {"declared_features_are_known", {0}, kit__features},
    {"describe_never_exposes_secret_defaults", {0}, kit__defaults},
    {"lifecycle", {"sandbox.lifecycle"}, kit__lifecycle},
    {"kill_is_idempotent", {"sandbox.lifecycle"}, kit__kills},
    {"set_timeout", {"sandbox.lifecycle", "sandbox.timeout"}, kit__timeout},
    {"pause_resume", {"sandbox.lifecycle", "sandbox.pause"}, kit__pause},
    {"exec_run", {"exec.run"}, kit__run},
    {"exec_exit_code_stderr_and_env", {"exec.run"}, kit__exit_code},
    {"exec_stream_order_and_single_exit", {"exec.run", "exec.stream"}, kit__stream},
    {"exec_timeout_is_enforced", {"exec.run"}, kit__enforced},
    {"process_list", {"exec.run", "process.manage"}, kit__processes},
    {"files_roundtrip", {"files.rw"}, kit__roundtrip},
    {"files_binary_and_unicode", {"files.rw"}, kit__binary},
    {"files_directory_operations", {"files.rw"}, kit__folders},
    {"missing_file_is_a_typed_not_found", {"files.rw"}, kit__missing},
    {"ports_url", {"ports.url"}, kit__url},
    {"undeclared_feature_fails_with_e8004", {"sandbox.lifecycle"}, kit__undeclared},
    {"secret_options_are_redacted_from_errors", {0}, kit__secrets},
};

const char *kit_word(KitOutcome outcome)
{
    static const char *const words[] = {"passed", "failed", "skipped"};

    return words[outcome];
}

static KitOutcome kit__test(Kit *k, const struct KitTest *t)
{
    k->why[0] = '\0';
    k->skipped = false;
    for (size_t i = 0; i < COUNT_OF(t->needs) && t->needs[i]; i++)
        if (!kit__declares(k, t->needs[i])) {
            kit__fail(k, "needs %s, which is not declared", t->needs[i]);
            return KIT_SKIPPED;
        }
    bool ok = t->run(k);
    ok = kit__clear(k) && ok;
    return ok ? KIT_PASSED : k->skipped ? KIT_SKIPPED : KIT_FAILED;
}

bool kit_run(const abx_options *options, const char *id, void (*each)(void *ctx, const KitResult *r), void *ctx,
             KitCount *count, abx_error *e)
{
    Kit       k = {.options = *options};
    abx_host *h;

    k.options.provider = id;
    *count = (KitCount){0};
    h = abx_host_open(&k.options, e);
    if (!h)
        return false;
    const abx_details *d = abx_provider_details(h, id, e);
    if (d)
        k.what = *d;
    for (size_t i = 0; d && i < COUNT_OF(kit__tests) && !k.cancelled; i++) {
        KitResult r = {.name = kit__tests[i].name};
        r.outcome = kit__test(&k, &kit__tests[i]);
        r.detail = k.why;
        if (k.cancelled)
            break;
        count->of[r.outcome]++;
        each(ctx, &r);
    }
    abx_host_close(h);
    if (k.cancelled) {
        memset(e, 0, sizeof *e);
        e->kind = ABX_CANCELLED;
        snprintf(e->code, sizeof e->code, "E0000");
        e->exit_status = 1;
        snprintf(e->message, sizeof e->message, "the tests were interrupted");
    }
    return d && !k.cancelled;
}
