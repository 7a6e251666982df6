#include "cli/cmd_look.h"

#include <stdio.h>

#include "base/limits.h"
#include "base/str.h"
#include "cli/below.h"
#include "cli/document.h"
#include "cli/screen.h"
#include "cli/values.h"
#include "data/glob.h"

enum { CMD_LOOK_PIECE = 32 << 10 };     /* of text, before it is printed */

typedef struct CmdLook {
    Run         *run;
    abx_sandbox *box;
    Buf          text;
    JsonOut      w;
    bool         begun;         /* the array of the document */
    bool         nul, longer, whole;    /* -0, -l; paths are shown from the root on */
    const char  *root;
    const char  *name;          /* a pattern, or NULL */
    const char  *type;          /* a letter, or NULL */
    int          printed;       /* the exit status of a standard output that failed */
    int          status;
} CmdLook;

/* ---- one entry ---- */

static const char *const cmd_look__types[] = {
    [ABX_FILE] = "file", [ABX_FOLDER] = "folder", [ABX_LINK] = "link", [ABX_OTHER] = "other",
};

static void cmd_look__document(JsonOut *w, Str path, const abx_file_info *f)
{
    ABX_UNSET char mode[16];

    json_begin(w, '{');
    document_bytes(w, "path", path);
    document_string(w, "type", cmd_look__types[f->type]);
    if (f->size >= 0) {
        json_key(w, "size");
        json_put_int(w, f->size);
    }
    if (f->mode >= 0) {
        snprintf(mode, sizeof mode, "%04o", (unsigned)f->mode);
        document_string(w, "mode", mode);
    }
    if (f->modified)
        document_string(w, "modified", f->modified);
    if (f->target)
        document_string(w, "target", f->target);
    json_end(w, '}');
}

/* "drwxr-xr-x        4096  2026-11-30T14:57:00Z  ": of one width, so that lines need not wait for each other. */
static void cmd_look__columns(Buf *to, const abx_file_info *f)
{
    static const char bits[] = "rwxrwxrwx";
    char mode[] = "??????????", size[24] = "-";

    mode[0] = "-dl?"[f->type];
    for (int i = 0; f->mode >= 0 && i < 9; i++)
        mode[i + 1] = f->mode >> (8 - i) & 1 ? bits[i] : '-';
    for (int i = 0; f->mode >= 0 && i < 3; i++)     /* setuid, setgid, sticky: in the place of x */
        if (f->mode >> (11 - i) & 1)
            mode[3 * i + 3] = "SSTsst"[i + 3 * (mode[3 * i + 3] == 'x')];
    if (f->size >= 0)
        snprintf(size, sizeof size, "%lld", (long long)f->size);
    buf_addf(to, "%s  %10s  ", mode, size);
    if (f->modified && strlen(f->modified) >= 20)   /* whole seconds */
        buf_addf(to, "%.19sZ  ", f->modified);
    else
        buf_addf(to, "%-20s  ", "-");
}

static bool cmd_look__flush(CmdLook *l)
{
    if (l->text.n && !l->printed)
        l->printed = run_result(l->run, buf_str(&l->text));
    buf_clear(&l->text);
    return !l->printed;
}

static bool cmd_look__put(CmdLook *l, Str path, Str shown, const abx_file_info *f)
{
    Arena a = *l->run->a;

    if (l->run->out.json) {
        if (!l->begun)
            json_begin(&l->w, '[');
        l->begun = true;
        cmd_look__document(&l->w, path, f);
    } else {
        if (l->longer)
            cmd_look__columns(&l->text, f);
        buf_add(&l->text, l->run->out.out_terminal ? screen_line(&a, shown, true) : shown);
        buf_addc(&l->text, l->nul ? '\0' : '\n');
    }
    return l->text.n < CMD_LOOK_PIECE || cmd_look__flush(l);
}

static bool cmd_look__wanted(const CmdLook *l, const abx_file_info *f)
{
    return (!l->name || glob_match(str_from(l->name), str_from(f->name))) &&
           (!l->type || *l->type == "fdlo"[f->type]);
}

static bool cmd_look__below(void *ctx, Str path, const abx_file_info *f)
{
    CmdLook *l = ctx;
    Str      root = str_from(l->root);
    Buf      whole = buf_make(2 * LIMIT_SYNC_PATH + root.n + 1);

    if (!cmd_look__wanted(l, f))
        return true;
    buf_add(&whole, root);
    if (!str_ends(root, STR("/")))
        buf_addc(&whole, '/');
    buf_add(&whole, path);
    bool more = cmd_look__put(l, buf_str(&whole), l->whole ? buf_str(&whole) : path, f);
    buf_free(&whole);
    return more;
}

/* ---- several of them ---- */

/* NULL: run_fail(). */
static abx_sandbox *cmd_look__begin(CmdLook *l, Run *r, abx_error *e)
{
    *l = (CmdLook){.run = r, .text = buf_make(CMD_LOOK_PIECE + LIMIT_ANSWER)};
    l->w = json_out(&l->text, JSON_PRETTY);
    l->box = run_can_print(e) ? run_attach(r, e) : NULL;
    return l->box;
}

static int cmd_look__end(CmdLook *l)
{
    run_signal(l->run);         /* what was found is printed nevertheless */
    if (l->begun)
        json_end(&l->w, ']');
    else if (!l->status && !l->text.n && l->run->out.json)
        buf_add(&l->text, STR("[]"));
    if (l->run->out.json && l->text.n)
        buf_addc(&l->text, '\n');
    cmd_look__flush(l);
    buf_free(&l->text);
    abx_sandbox_free(l->box);
    return l->status ? l->status : l->printed;
}

/* False: the others need not be tried. */
static bool cmd_look__list(CmdLook *l, const char *path, int64_t deepest, bool alone)
{
    Below     b = {.run = l->run, .box = l->box, .root = path, .deepest = deepest, .each = cmd_look__below, .ctx = l,
                   .status = 0};
    ABX_UNSET abx_error e, no;

    l->root = path;
    if (below_list(&b, &e) != 0) {
        const abx_file_info *f = alone ? abx_stat(l->box, path, &no) : NULL;
        if (f && f->type != ABX_FOLDER)
            return cmd_look__put(l, str_from(path), str_from(path), f);
        return run_fail_one(l->run, &e, &l->status);
    }
    l->status = l->status ? l->status : b.status;
    return !b.stop;
}

int cmd_look_ls(Run *r)
{
    const Args *args = r->args;
    ABX_UNSET abx_error e;
    CmdLook     l;

    if (!cmd_look__begin(&l, r, &e))
        return run_fail(r, &e);
    l.nul = args_flag(args, "null");
    l.longer = args_flag(args, "long");
    l.whole = args->word_count > 2;
    for (size_t i = 1; i < args->word_count || i == 1; i++)
        if (!cmd_look__list(&l, args->word_count > 1 ? args->words[i] : "/", args_flag(args, "recursive") ? LIMIT_SYNC_DEPTH : 1, true))
            break;
    return cmd_look__end(&l);
}

/* ---- find ---- */

static bool cmd_look__find(CmdLook *l, const char *path, int64_t deepest)
{
    ABX_UNSET abx_error e;
    const abx_file_info *f = abx_stat(l->box, path, &e);

    if (!f)
        return run_fail_one(l->run, &e, &l->status);
    bool folder = f->type == ABX_FOLDER || str_ends(str_from(path), STR("/"));
    if (cmd_look__wanted(l, f) && !cmd_look__put(l, str_from(path), str_from(path), f))
        return false;
    return !folder || deepest == 0 || cmd_look__list(l, path, deepest, false);
}

int cmd_look_find(Run *r)
{
    const Args *args = r->args;
    const char *depth = args_value(args, "max-depth"), *type = args_value(args, "type");
    int64_t     deepest = LIMIT_SYNC_DEPTH;
    ABX_UNSET abx_error e;
    CmdLook     l;
    ABX_UNSET Err err;

    if (depth && !values_number("--max-depth", depth, 0, LIMIT_SYNC_DEPTH - 1, &deepest, &err))
        return run_fail_own(r, &err);
    if (type && (strlen(type) != 1 || !strchr("fdlo", *type))) {
        err_set(&err, ERR_USAGE, E8002, "--type: '%s' is none of f, d, l and o", type);
        return run_fail_own(r, &err);
    }
    if (!cmd_look__begin(&l, r, &e))
        return run_fail(r, &e);
    l.nul = args_flag(args, "null");
    l.name = args_value(args, "name");
    l.type = type;
    l.whole = true;
    for (size_t i = 1; i < args->word_count || i == 1; i++)
        if (!cmd_look__find(&l, args->word_count > 1 ? args->words[i] : "/", deepest))
            break;
    return cmd_look__end(&l);
}

/* ---- stat ---- */

static void cmd_look__lines(CmdLook *l, Str path, const abx_file_info *f)
{
    Arena a = *l->run->a;

    if (l->begun)
        buf_addc(&l->text, '\n');
    l->begun = true;
    buf_addf(&l->text, "path: %s\ntype: %s\n", screen_line(&a, path, false).p, cmd_look__types[f->type]);
    if (f->size >= 0)
        buf_addf(&l->text, "size: %lld\n", (long long)f->size);
    if (f->mode >= 0)
        buf_addf(&l->text, "mode: %04o\n", (unsigned)f->mode);
    if (f->modified)
        buf_addf(&l->text, "modified: %s\n", f->modified);
    if (f->target)
        buf_addf(&l->text, "target: %s\n", screen_line(&a, str_from(f->target), false).p);
}

int cmd_look_stat(Run *r)
{
    const Args *args = r->args;
    bool        list = args->word_count > 2;
    ABX_UNSET abx_error e;
    CmdLook     l;

    if (!cmd_look__begin(&l, r, &e))
        return run_fail(r, &e);
    for (size_t i = 1; i < args->word_count; i++) {
        const abx_file_info *f = abx_stat(l.box, args->words[i], &e);
        Str                  path = str_from(args->words[i]);
        if (!f && !run_fail_one(r, &e, &l.status))
            break;
        if (!f)
            continue;
        if (!r->out.json)
            cmd_look__lines(&l, path, f);
        else if (list)
            cmd_look__put(&l, path, path, f);
        else
            cmd_look__document(&l.w, path, f);
    }
    if (!r->out.json)
        l.begun = false;
    return cmd_look__end(&l);
}
