#include "host/install.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/shell.h"
#include "base/time.h"
#include "host/consented.h"
#include "os/clock.h"
#include "os/fs.h"
#include <errno.h>
#include <stdlib.h>

#define INSTALL_BUILTIN "alicloud-express"      /* what every host has, and no plugin can be */

/* Something that is to be installed, checked up to the question. */
typedef struct InstallWork {
    const Store       *s;
    const InstallHost *host;
    Arena             *a;
    Manifest           manifest;
    Receipt            old;         /* when plan.old is set */
    InstallPlan        plan;
    const Tree        *tree;        /* NULL: a link */
} InstallWork;

/* ---- what would change ---- */

static const Json *install__consented(const Manifest *m, Arena *a)
{
    Buf         text = buf_make(LIMIT_RECEIPT);
    JsonOut     w = json_out(&text, JSON_COMPACT);
    const Json *doc = NULL;
    ABX_UNSET Err err;

    consented_put(m, &w, false);
    if (text.over || !json_parse(buf_str(&text), a, &doc, &err))
        BUG("a manifest within its limit has a summary within that of receipts");
    buf_free(&text);
    return doc;
}

/* The same value, whatever the order of keys. */
static bool install__same(const Json *x, const Json *y)
{
    Buf     one = buf_make(LIMIT_RECEIPT), two = buf_make(LIMIT_RECEIPT);
    JsonOut to_one = json_out(&one, JSON_COMPACT), to_two = json_out(&two, JSON_COMPACT);

    if (x)
        json_put_sorted(&to_one, x);
    if (y)
        json_put_sorted(&to_two, y);
    bool same = !x == !y && !one.over && !two.over && str_eq(buf_str(&one), buf_str(&two));
    buf_free(&one);
    buf_free(&two);
    return same;
}

static bool install__within(const Json *some, const Json *all)
{
    for (size_t i = 0; i < json_count(some); i++) {
        bool found = false;
        for (size_t k = 0; k < json_count(all) && !found; k++)
            found = str_eq(json_str(&some->items[i]), json_str(&all->items[k]));
        if (!found)
            return false;
    }
    return true;
}

/* The aspects in their order (3.5). They inform, and refuse nothing. */
static void install__changes(InstallWork *w)
{
    static const char *const aspects[] = {
        "runtime", "security", "features", "inherit", "fields", "commands", "operation_contract_version", "operations",
        "workflow_inputs", "startup_modes",
    };
    InstallPlan *p = &w->plan;
    Str         *v = arena_array(w->a, COUNT_OF(aspects), sizeof *v);

    p->changes = v;
    for (size_t i = 0; p->old && i < COUNT_OF(aspects); i++) {
        const Json *was = json_get(p->old->consented, aspects[i]), *is = json_get(p->consented, aspects[i]);
        bool        same = install__same(was, is);
        if (strcmp(aspects[i], "inherit") == 0)         /* less is no change that somebody must hear of */
            same = install__within(is, was);
        else if (strcmp(aspects[i], "commands") == 0 && !was)
            same = json_count(is) == 0;                 /* receipts from before there were commands */
        if (!same)
            v[p->change_count++] = str_from(aspects[i]);
    }
}

static void install__str(JsonOut *w, const char *key, Str value)
{
    json_key(w, key);
    json_put_str(w, value);
}

static void install__part(JsonOut *w, const Json *consented, const char *key)
{
    json_key(w, key);
    json_put(w, json_get(consented, key));
}

static void install__runtime(const Manifest *m, JsonOut *w)
{
    json_key(w, "runtime");
    json_begin(w, '[');
    if (m->kind == MANIFEST_EXEC) {
        for (size_t i = 0; i < m->command.n; i++)
            json_put_str(w, m->command.v[i]);
    } else {
        json_put_str(w, manifest_kind_word(m->kind));
        json_put_str(w, m->base_url);
    }
    json_end(w, ']');
}

static void install__fields(const Manifest *m, JsonOut *w)
{
    json_key(w, "fields");
    json_begin(w, '[');
    for (size_t i = 0; i < m->field_count; i++) {
        json_begin(w, '{');
        install__str(w, "key", m->fields[i].key);
        json_key(w, "secret");
        json_put_bool(w, m->fields[i].secret);
        json_end(w, '}');
    }
    json_end(w, ']');
}

void install_plan(const InstallPlan *p, JsonOut *w)
{
    static const char *const parts[] = {
        "features", "operation_contract_version", "operations", "workflow_inputs", "startup_modes", "commands", "security",
    };
    const Manifest *m = p->manifest;

    json_begin(w, '{');
    install__str(w, "id", m->id);
    install__str(w, "name", m->name);
    install__str(w, "name_zh", m->name_zh);
    install__str(w, "version", m->version);
    json_key(w, "source");
    receipt_source(&p->source, w);
    install__str(w, "tree_sha256", p->tree_sha256);
    install__str(w, "trust", receipt_trust_word(p->trust));
    install__runtime(m, w);
    install__str(w, "kind", manifest_kind_word(m->kind));
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        install__part(w, p->consented, parts[i]);
    install__fields(m, w);
    install__part(w, p->consented, "inherit");
    json_key(w, "changes");
    json_begin(w, '[');
    for (size_t i = 0; i < p->change_count; i++)
        json_put_str(w, p->changes[i]);
    json_end(w, ']');
    json_end(w, '}');
}

/* ---- may it be done? ---- */

/* The manifest of a tree, and what is in place under its id. */
static bool install__examine(InstallWork *w, Err *err)
{
    const TreeFile *f = tree_find(w->tree, STR(MANIFEST_FILE));

    if (!f)
        return err_set(err, ERR_INPUT, E8014, "there is no %s at the top of the plugin", MANIFEST_FILE) ||
               err_hint(err, "If the plugin is in a folder of the source, name that folder with --subdir.");
    return manifest_parse(f->bytes, STR(MANIFEST_FILE), w->a, &w->manifest, err);
}

static void install__settle(InstallWork *w)
{
    InstallPlan *p = &w->plan;

    p->manifest = &w->manifest;
    p->consented = install__consented(&w->manifest, w->a);
    p->old = store_receipt(w->s, w->manifest.id, w->a, &w->old) ? &w->old : NULL;
    install__changes(w);
}

/* A word as it can be typed. */
static void install__word(Buf *to, const char *option, Str word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@+,";
    bool              quote = word.n == 0;

    for (size_t i = 0; i < word.n; i++)
        quote = quote || !word.p[i] || !strchr(plain, word.p[i]);
    buf_addf(to, " %s", option);
    if (quote)
        shell_quote(to, word);
    else
        buf_add(to, word);
}

/* The command that pins what was found. `update`: the id, of what is there. */
static bool install__pin(const InstallWork *w, Str update, bool force, Err *err)
{
    const ReceiptSource *s = &w->plan.source;
    Buf                  line = buf_make(ERR_TEXT_SIZE);

    install__word(&line, update.n ? "provider update " : "provider install ", update.n ? update : s->url);
    if (!update.n && s->subdir.n)
        install__word(&line, "--subdir ", s->subdir);
    install__word(&line, "--ref ", w->plan.commit);
    if (!str_starts(s->url, STR("https:")) && !str_starts(s->url, STR("ssh:")) && str_has(s->url, ':') &&
        str_starts(str_from_to(s->url, str_find(s->url, ':'), s->url.n), STR("://")))
        buf_add(&line, STR(" --allow-insecure-transport"));
    if (force)
        buf_add(&line, STR(" --force"));
    err_hint(err, "Pin what it is now: `abx%.*s --yes`. --allow-unpinned takes whatever it becomes.", STR_ARG(buf_str(&line)));
    buf_free(&line);
    return false;
}

/* 3.5: a ref that moves is accepted by whoever reads the plan, or by name. */
static bool install__may_move(const InstallWork *w, bool yes, bool allow, Str update, bool force, Err *err)
{
    if (w->plan.trust != TRUST_UNPINNED || allow || (w->host->consent && !yes))
        return true;
    err_set(err, ERR_DENIED, E8012, "Refusing an unpinned git source in non-interactive mode.");
    return install__pin(w, update, force, err);
}

static bool install__ask(const InstallWork *w, bool yes, Err *err)
{
    if (yes)
        return true;
    if (!w->host->consent) {
        err_set(err, ERR_DENIED, E8012, "nobody can be asked whether to install `%.*s`", STR_ARG(w->manifest.id));
        return err_hint(err, "Look at what it asks for, and repeat the command with --yes.");
    }
    if (w->host->consent(w->host->consent_ctx, &w->plan))
        return true;
    err_set(err, ERR_DENIED, E8012, "`%.*s` was not installed: nobody agreed to it", STR_ARG(w->manifest.id));
    return err_hint(err, "Repeat the command with --yes to agree.");
}

/* ---- doing it ---- */

/* How long the plugin that is now in place may take to start: up to an hour. */
static int64_t install__startup(const Store *s, Str id, Arena *a)
{
    Buf      text = buf_make((size_t)LIMIT_TREE_FILE);
    Receipt  r;
    Manifest m;
    ABX_UNSET Err err;
    bool     ok = store_receipt(s, id, a, &r) &&
                  fs_read(arena_fmt(a, "%s/" MANIFEST_FILE, store_files(s, &r)).p, &text, &err) &&
                  manifest_parse(buf_str(&text), STR(MANIFEST_FILE), a, &m, &err);

    buf_free(&text);
    return ok ? m.startup_ms : 0;
}

/* Verification, with what was changed taken back when it fails. */
static bool install__verify(StoreLock *l, Str id, const InstallHost *host, StoreChange *c, Err *err)
{
    ABX_UNSET Err undo;

    if (!host->verify || (store_renew(l, install__startup(l->store, id, l->store->a), err) &&
                          host->verify(host->verify_ctx, id, err))) {
        store_keep(l, c);
        return true;
    }
    if (err->kind != ERR_CANCELLED)
        err->code = E8010;
    if (!store_undo(l, c, &undo))
        return err_wrap(err, "%s", undo.text);
    return err_wrap(err, c->old ? "`%.*s` was left as it was" : "`%.*s` was not installed", STR_ARG(id));
}

static bool install__is_still(const InstallWork *w, bool force, Err *err)
{
    Str     id = w->manifest.id;
    Receipt now;
    bool    there = store_receipt(w->s, id, w->a, &now);

    if (force || (!there && !w->plan.old) || (there && w->plan.old && str_eq(now.text, w->plan.old->text)))
        return true;
    if (there && !w->plan.old)
        return err_set(err, ERR_INPUT, E8003, "`%.*s` was installed by somebody else meanwhile", STR_ARG(id));
    return err_set(err, ERR_INPUT, E8010, "`%.*s` was changed by somebody else meanwhile", STR_ARG(id));
}

/* Under the lock (3.4, 16 to 18). */
static bool install__put(const InstallWork *w, bool force, Buf *printed, Err *err)
{
    ABX_UNSET char at[TIME_SIZE];
    Str         id = w->manifest.id;
    Buf         receipt = buf_make(LIMIT_RECEIPT);
    JsonOut     out = json_out(printed, JSON_PRETTY);
    StoreLock   lock;
    StoreChange change;
    ReceiptNew  new = {
        .manifest = &w->manifest, .source = w->plan.source, .trust = w->plan.trust, .tree_sha256 = w->plan.tree_sha256,
        .installed_by = force ? NULL : w->plan.old ? json_get(w->plan.old->doc, "installed_by") : NULL,
    };

    if (!time_text(clock_unix_ms(), false, at))
        return err_set(err, ERR_SYSTEM, E8010, "the clock of this machine has no year of four digits");
    new.installed_at = str_from(at);
    receipt_print(&new, &out);
    receipt_write(&new, *w->a, &receipt);
    if (receipt.over || printed->over)
        BUG("a manifest within its limit has a receipt within its own");
    bool ok = store_lock(w->s, w->host->source.cancel_fd, &lock, err);
    if (ok) {
        ok = install__is_still(w, force, err) && store_put(&lock, id, w->tree, buf_str(&receipt), &change, err) &&
             install__verify(&lock, id, w->host, &change, err);
        store_unlock(&lock);
    }
    buf_free(&receipt);
    return ok;
}

/* ---- install ---- */

/* The folder that a link leads to (3.10), resolved. */
static bool install__folder(const SourceRef *ref, Arena *a, Str *out, Err *err)
{
    const char *path = ref->subdir.n ? arena_fmt(a, "%.*s/%.*s", STR_ARG(ref->location), STR_ARG(ref->subdir)).p
                                     : arena_cstr(a, ref->location);

    if (ref->subdir.n && !tree_path(ref->subdir, err))
        return err_wrap(err, "--subdir");
    char *real = realpath(path, NULL);
    if (!real)
        return err_sys(err, errno, E8010, "cannot find %s", path);
    *out = arena_str(a, str_from(real));
    mem_free(real);
    return true;
}

/* 5: the manifest is read from where it lies; nothing else of the folder is. */
static bool install__link(InstallWork *w, const SourceRef *ref, Err *err)
{
    Buf text = buf_make((size_t)LIMIT_TREE_FILE);

    if (ref->kind != SOURCE_FOLDER)
        return err_set(err, ERR_INPUT, E8010, "--link wants a folder of this machine");
    if (!install__folder(ref, w->a, &w->plan.source.path, err))
        return false;
    w->plan.source.type = RECEIPT_LINK;
    w->plan.trust = TRUST_LINK;
    w->plan.tree_sha256 = STR("");
    const char *path = arena_fmt(w->a, "%s/" MANIFEST_FILE, w->plan.source.path.p).p;
    bool ok = fs_read(path, &text, err);
    if (!ok)
        err->code = E8014;
    ok = ok && manifest_parse(buf_str(&text), str_from(path), w->a, &w->manifest, err);
    buf_free(&text);
    return ok;
}

/* 6 to 9. */
static bool install__take(InstallWork *w, const SourceGot *got, Str sha256, Err *err)
{
    char *hex = arena_alloc(w->a, TREE_HEX);
    bool  matched = false;

    w->tree = &got->tree;
    if (!install__examine(w, err))
        return false;
    tree_digest(&got->tree, hex);
    if (sha256.p) {
        matched = str_eq_nocase(sha256, str_from(hex));
        if (!matched)
            return err_set(err, ERR_INPUT, E8011, "the files have the SHA-256 %s, and not %.*s", hex, STR_ARG(sha256));
    }
    if (got->source.type == RECEIPT_CATALOG && !str_eq(got->catalog_id, w->manifest.id))
        return err_set(err, ERR_INPUT, E8010, "the catalog's `%.*s` is a plugin with the id `%.*s`",
                       STR_ARG(got->catalog_id), STR_ARG(w->manifest.id));
    w->plan.source = got->source;
    w->plan.commit = got->source.commit;
    w->plan.tree_sha256 = str_from(hex);
    w->plan.trust = matched || got->pinned ? TRUST_PINNED : got->source.type == RECEIPT_GIT ? TRUST_UNPINNED : TRUST_LOCAL;
    return true;
}

/* 10 to 18. */
static bool install__go(InstallWork *w, const InstallAsk *ask, Buf *printed, Err *err)
{
    if (!manifest_supported(&w->manifest, err))
        return false;
    if (ask->link && !ask->yes) {
        err_set(err, ERR_DENIED, E8012, "a link is never verified: what is in the folder runs, whatever it becomes");
        return err_hint(err, "Repeat the command with --yes if that is wanted.");
    }
    if (!install__may_move(w, ask->yes, ask->allow_unpinned, (Str){0}, ask->force, err))
        return false;
    install__settle(w);
    if (w->plan.old && !ask->force) {
        err_set(err, ERR_INPUT, E8003, "`%.*s` is installed already, version %.*s", STR_ARG(w->manifest.id),
                STR_ARG(w->old.version));
        return err_hint(err, "Repeat the command with --force to replace it, or use `abx provider update %.*s`.",
                        STR_ARG(w->manifest.id));
    }
    return install__ask(w, ask->yes, err) && install__put(w, ask->force, printed, err);
}

bool install_add(const Store *s, const InstallAsk *ask, const InstallHost *host, Arena *a, Installed *out, Err *err)
{
    InstallWork w = {.s = s, .host = host, .a = a};
    Buf         printed = buf_make(LIMIT_RECEIPT);
    SourceRef   ref;
    SourceGot   got = {0};

    bool ok = source_parse(&ask->source, a, &ref, err) &&
              (ask->link ? install__link(&w, &ref, err)
                         : source_fetch(&ref, &host->source, a, &got, err) && install__take(&w, &got, ask->sha256, err)) &&
              install__go(&w, ask, &printed, err);
    tree_free(&got.tree);
    if (!ok) {
        buf_free(&printed);
        return false;
    }
    *out = (Installed){.id = w.manifest.id, .version = w.manifest.version, .receipt = printed};
    return true;
}

/* ---- update ---- */

static bool install__missing(Str id, Err *err)
{
    return err_set(err, ERR_NOT_FOUND, E8001, "no plugin `%.*s` is installed", STR_ARG(id));
}

/* 1 to 6: what needs no source. *done: that was all. */
static bool install__settled(const InstallWork *w, Str id, const UpdateAsk *ask, Updated *out, bool *done, Err *err)
{
    const Receipt *r = w->plan.old;

    *done = true;
    if (str_eq(id, STR(INSTALL_BUILTIN))) {
        if (ask->ref.p)
            return err_set(err, ERR_INPUT, E8010, "`%.*s` is built in and has no ref", STR_ARG(id));
        *out = (Updated){.id = id, .status = STR("bundled"), .installed = STR(ABX_VERSION),
                         .message = STR("It comes with abx itself, and is updated with it.")};
        return true;
    }
    if (!r)
        return install__missing(id, err);
    *done = false;
    if (r->source.type == RECEIPT_CATALOG)
        return true;
    if (r->source.type != RECEIPT_GIT) {
        err_set(err, ERR_INPUT, E8010, "`%.*s` was installed from a folder or an archive, which is not asked for news",
                STR_ARG(id));
        return err_hint(err, "Install it again: `abx provider install SOURCE --force`.");
    }
    if (!str_eq(r->trust, STR("pinned")) || ask->ref.p)
        return true;
    *done = true;
    *out = (Updated){.id = id, .status = STR("pinned"), .installed = r->source.commit};
    return true;
}

/* Where the receipt says it came from, asked again. */
static bool install__again(InstallWork *w, const UpdateAsk *ask, SourceGot *got, Err *err)
{
    const ReceiptSource *s = &w->plan.old->source;
    SourceHost host = w->host->source;
    SourceAsk  source = {.allow_insecure = ask->allow_insecure, .allow_unverified = ask->allow_unverified};
    SourceRef  ref;

    if (s->type == RECEIPT_CATALOG) {
        source.source = arena_fmt(w->a, "registry:%.*s", STR_ARG(s->id));
        if (s->registry.n)
            host.registry = s->registry;
    } else {
        source.source = s->url;
        source.ref = ask->ref.p ? ask->ref : str_eq(s->ref, STR("HEAD")) || !s->ref.n ? (Str){0} : s->ref;
        source.subdir = s->subdir.n ? s->subdir : (Str){0};
    }
    return source_parse(&source, w->a, &ref, err) && source_fetch(&ref, &host, w->a, got, err) &&
           install__take(w, got, (Str){0}, err);
}

/* The catalog's archive is another one with the same files: only that is noted. */
static bool install__note_archive(const InstallWork *w, Err *err)
{
    const Receipt *r = w->plan.old;
    Str            sum = w->plan.source.archive_sha256;
    Buf            text = buf_make(LIMIT_RECEIPT);
    StoreLock      lock;

    if (!sum.n || str_eq(sum, r->source.archive_sha256))
        return true;
    receipt_rewrite(r->doc, sum, *w->a, &text);
    bool ok = store_lock(w->s, w->host->source.cancel_fd, &lock, err);
    if (ok) {
        ok = store_rewrite(&lock, r->id, r->text, buf_str(&text), err);
        store_unlock(&lock);
    }
    buf_free(&text);
    return ok;
}

/* 8 to 14, with what was fetched. */
static bool install__renew(InstallWork *w, Str id, const UpdateAsk *ask, Updated *out, Err *err)
{
    bool catalog = w->plan.source.type == RECEIPT_CATALOG;
    Buf  printed = buf_make(LIMIT_RECEIPT);

    if (!str_eq(w->manifest.id, id))
        return err_set(err, ERR_INPUT, E8010, "the source of `%.*s` is now a plugin with the id `%.*s`", STR_ARG(id),
                       STR_ARG(w->manifest.id));
    *out = (Updated){.id = id, .status = STR("up-to-date"),
                     .installed = catalog ? w->old.version : w->old.source.commit,
                     .available = catalog ? w->manifest.version : w->plan.source.commit};
    w->plan.manifest = &w->manifest;
    w->plan.consented = install__consented(&w->manifest, w->a);
    install__changes(w);
    out->changes = w->plan.changes;
    out->change_count = w->plan.change_count;
    if (str_eq(w->plan.tree_sha256, w->old.tree_sha256))
        return ask->check || !catalog || install__note_archive(w, err);
    out->status = STR("available");
    if (ask->check)
        return true;
    if (!catalog && !install__may_move(w, ask->yes, ask->allow_unpinned, id, false, err))
        return false;
    if (!manifest_supported(&w->manifest, err))
        return false;
    if (catalog && !ask->yes) {
        err_set(err, ERR_DENIED, E8012, "`%.*s` has an update in the catalog, and nobody agreed to it", STR_ARG(id));
        return err_hint(err, "Look at it with --check, and repeat the command with --yes.");
    }
    bool ok = install__ask(w, ask->yes, err) && install__put(w, false, &printed, err) &&
              (!catalog || json_parse(buf_str(&printed), w->a, &out->receipt, err));
    buf_free(&printed);
    out->status = STR("updated");
    return ok;
}

bool install_update(const Store *s, Str id, const UpdateAsk *ask, const InstallHost *host, Arena *a, Updated *out, Err *err)
{
    InstallWork w = {.s = s, .host = host, .a = a};
    SourceGot   got = {0};
    bool        done;

    w.plan.old = store_receipt(s, id, a, &w.old) ? &w.old : NULL;
    if (!install__settled(&w, id, ask, out, &done, err))
        return false;
    if (done)
        return true;
    bool ok = install__again(&w, ask, &got, err) && install__renew(&w, id, ask, out, err);
    tree_free(&got.tree);
    return ok;
}

/* ---- uninstall, rollback ---- */

bool install_remove(const Store *s, Str id, bool purge, int cancel_fd, Err *err)
{
    StoreLock lock;

    if (str_eq(id, STR(INSTALL_BUILTIN)))
        return err_set(err, ERR_INPUT, E8003, "`%.*s` is built in and cannot be uninstalled", STR_ARG(id));
    if (!store_has(s, id))
        return install__missing(id, err);
    if (!store_lock(s, cancel_fd, &lock, err))
        return false;
    bool ok = store_remove(&lock, id, purge, err);
    store_unlock(&lock);
    return ok;
}

bool install_rollback(const Store *s, Str id, const InstallHost *host, Arena *a, Installed *out, Err *err)
{
    StoreLock   lock;
    StoreChange change;
    Receipt     r;
    Buf         printed = buf_make(LIMIT_RECEIPT);
    JsonOut     w = json_out(&printed, JSON_PRETTY);

    if (!store_receipt(s, id, a, &r))
        return install__missing(id, err);
    if (!store_lock(s, host->source.cancel_fd, &lock, err))
        return false;
    bool ok = store_rollback(&lock, id, &change, err) && install__verify(&lock, id, host, &change, err);
    if (ok && !store_receipt(s, id, a, &r))
        ok = install__missing(id, err);
    store_unlock(&lock);
    if (!ok)
        return false;
    json_put(&w, r.doc);
    *out = (Installed){.id = r.id, .version = r.version, .receipt = printed};
    return true;
}
