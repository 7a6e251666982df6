#include "cli/cmd_doctor.h"

#include "base/limits.h"
#include "base/str.h"
#include "cli/document.h"
#include "cli/screen.h"

enum { CMD_DOCTOR_BAD = 2 };        /* the exit status of a provider that is not well: that of a bad setting */

/* The document is the result, whatever it says; the status tells good from bad. */
static int cmd_doctor__end(Run *r, Buf *text, bool ok, int bad)
{
    int status = run_end(r, text);

    return status || ok ? status : bad;
}

/* ---- doctor ---- */

static void cmd_doctor__report(JsonOut *w, const abx_report *d)
{
    json_begin(w, '{');
    document_string(w, "id", d->id);
    document_flag(w, "ok", d->ok);
    json_key(w, "checks");
    json_begin(w, '[');
    for (size_t i = 0; i < d->count; i++) {
        const abx_check *c = &d->checks[i];
        json_begin(w, '{');
        document_string(w, "name", c->name);
        document_flag(w, "ok", c->ok);
        document_string(w, "detail", c->detail);
        if (*c->suggestion)
            document_string(w, "suggestion", c->suggestion);
        json_end(w, '}');
    }
    json_end(w, ']');
    json_end(w, '}');
}

static void cmd_doctor__lines(Buf *to, const abx_report *d, Arena *a)
{
    for (size_t i = 0; i < d->count; i++) {
        const abx_check *c = &d->checks[i];
        buf_addf(to, "%s %s", c->ok ? "ok  " : "FAIL", c->name);
        if (*c->detail) {
            buf_add(to, STR(": "));
            buf_add(to, screen_line(a, str_from(c->detail), false));
        }
        buf_addc(to, '\n');
        if (*c->suggestion) {
            buf_add(to, STR("     "));
            buf_add(to, screen_line(a, str_from(c->suggestion), false));
            buf_addc(to, '\n');
        }
    }
}

int cmd_doctor_check(Run *r)
{
    const Args *args = r->args;
    ABX_UNSET abx_error e;
    abx_host   *h = run_host(r, &e);
    const abx_report *d =
        h ? abx_doctor(h, args->word_count ? args->words[0] : NULL, !args_flag(args, "no-handshake"), &e) : NULL;

    if (!d)
        return run_fail(r, &e);
    Buf     text = buf_make(LIMIT_DOCUMENT);
    JsonOut w = json_out(&text, JSON_PRETTY);
    if (r->out.json) {
        cmd_doctor__report(&w, d);
        buf_addc(&text, '\n');
    } else {
        cmd_doctor__lines(&text, d, r->a);
    }
    return cmd_doctor__end(r, &text, d->ok, CMD_DOCTOR_BAD);
}

/* ---- verify ---- */

static void cmd_doctor__verified(JsonOut *w, const abx_verified *v)
{
    json_begin(w, '{');
    document_string(w, "id", v->id);
    document_flag(w, "ok", v->ok);
    document_string(w, "trust", v->trust);
    document_string(w, "tree_sha256", v->tree_sha256);
    document_string(w, "detail", v->detail);
    if (v->named) {
        document_strings(w, "changed", v->changed);
        document_strings(w, "added", v->added);
        document_strings(w, "missing", v->missing);
    }
    json_end(w, '}');
}

static void cmd_doctor__paths(Buf *to, const char *what, abx_strings paths, Arena *a)
{
    for (size_t i = 0; i < paths.n; i++) {
        buf_addf(to, "     %-8s ", what);
        buf_add(to, screen_line(a, str_from(paths.v[i]), false));
        buf_addc(to, '\n');
    }
}

static void cmd_doctor__verified_lines(Buf *to, const abx_verified *v, Arena *a)
{
    buf_addf(to, "%s %s", v->ok ? "ok  " : "FAIL", v->id);
    if (*v->detail || *v->tree_sha256) {
        buf_add(to, STR(": "));
        buf_add(to, screen_line(a, str_from(*v->detail ? v->detail : v->tree_sha256), false));
    }
    buf_addc(to, '\n');
    cmd_doctor__paths(to, "changed", v->changed, a);
    cmd_doctor__paths(to, "added", v->added, a);
    cmd_doctor__paths(to, "missing", v->missing, a);
}

typedef struct CmdDoctorIds { Arena *a; const char **v; size_t n; } CmdDoctorIds;

enum { CMD_DOCTOR_IDS = 10000 };    /* as many as a store lists */

static int cmd_doctor__id(void *ctx, const abx_provider *p)
{
    CmdDoctorIds *ids = ctx;

    if (strcmp(p->trust, "builtin") != 0)
        ids->v[ids->n++] = arena_cstr(ids->a, str_from(p->id));
    return ids->n == CMD_DOCTOR_IDS;
}

/* One provider, or every installed one. */
static bool cmd_doctor__ids(Run *r, CmdDoctorIds *ids, abx_error *e)
{
    abx_options o;
    ABX_UNSET Err err;

    *ids = (CmdDoctorIds){r->a, arena_array(r->a, CMD_DOCTOR_IDS, sizeof *ids->v), 0};
    if (r->args->word_count) {
        ids->v[ids->n++] = r->args->words[0];
        return true;
    }
    if (run_options(r, &o, &err))
        return abx_providers(&o, cmd_doctor__id, ids, e) == 0;
    output_own(e, &err);
    return false;
}

int cmd_doctor_verify(Run *r)
{
    bool         all = r->args->word_count == 0, ok = true;
    ABX_UNSET abx_error e;
    CmdDoctorIds ids;
    abx_host    *h = run_host(r, &e);

    if (!h || !cmd_doctor__ids(r, &ids, &e))
        return run_fail(r, &e);
    Buf     text = buf_make(LIMIT_DOCUMENT);
    JsonOut w = json_out(&text, JSON_PRETTY);
    if (all && r->out.json)
        json_begin(&w, '[');
    for (size_t i = 0; i < ids.n; i++) {
        const abx_verified *v = abx_verify(h, ids.v[i], &e);
        if (!v) {
            buf_free(&text);
            return run_fail(r, &e);
        }
        ok = ok && v->ok;
        if (r->out.json)
            cmd_doctor__verified(&w, v);
        else
            cmd_doctor__verified_lines(&text, v, r->a);
    }
    if (all && r->out.json)
        json_end(&w, ']');
    if (r->out.json)
        buf_addc(&text, '\n');
    return cmd_doctor__end(r, &text, ok, abx_code_exit("E8011"));
}
