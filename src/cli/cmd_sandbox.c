#include "cli/cmd_sandbox.h"

#include <stdio.h>

#include "base/limits.h"
#include "base/str.h"
#include "cli/document.h"
#include "cli/screen.h"
#include "cli/values.h"

/* ---- what several verbs share ---- */

static int cmd_sandbox__print(const Run *r, Buf *text)
{
    if (r->out.json)
        buf_addc(text, '\n');
    int status = run_result(r, buf_str(text));
    buf_free(text);
    return status;
}

/* One line whatever the server called it: others read ids line by line. */
static void cmd_sandbox__id_line(Buf *to, Arena *a, const char *id)
{
    buf_add(to, screen_line(a, str_from(id), false));
    buf_addc(to, '\n');
}

static void cmd_sandbox__info(const Run *r, const abx_info *info, Buf *text)
{
    if (r->out.json) {
        JsonOut w = json_out(text, JSON_PRETTY);
        document_info(&w, info);
    } else {
        document_info_text(text, r->a, info);
    }
}

/* The end of a verb that answers with a sandbox; without `info`, of its failure. */
static int cmd_sandbox__answer(const Run *r, abx_sandbox *box, const abx_info *info, const abx_error *e)
{
    Buf text = buf_make(LIMIT_DOCUMENT);
    int status;

    if (info) {
        cmd_sandbox__info(r, info, &text);
        status = cmd_sandbox__print(r, &text);
    } else {
        status = run_fail(r, e);
    }
    abx_sandbox_free(box);
    return status;
}

static int cmd_sandbox__about(Run *r, const abx_info *(*ask)(abx_sandbox *, abx_error *))
{
    ABX_UNSET abx_error e;
    abx_sandbox *box = run_can_print(&e) ? run_attach(r, &e) : NULL;

    return cmd_sandbox__answer(r, box, box ? ask(box, &e) : NULL, &e);
}

int cmd_sandbox_info(Run *r)
{
    return cmd_sandbox__about(r, abx_get_info);
}

int cmd_sandbox_pause(Run *r)
{
    return cmd_sandbox__about(r, abx_pause);
}

int cmd_sandbox_resume(Run *r)
{
    return cmd_sandbox__about(r, abx_resume);
}

/* ---- create ---- */

static bool cmd_sandbox__entrypoint(const Run *r, abx_create_options *o, Err *err)
{
    const char *const *list;
    size_t n = args_list(r->args, "entrypoint", r->a, &list);

    if (n && r->args->word_count)
        return err_set(err, ERR_USAGE, E8002, "The entrypoint is given twice: by --entrypoint and behind `--`");
    o->entrypoint = n ? list : r->args->words;
    o->entrypoint_count = n ? n : r->args->word_count;
    if (o->entrypoint_count == 0)
        o->entrypoint = NULL;
    return true;
}

static bool cmd_sandbox__create_options(const Run *r, abx_create_options *o, Err *err)
{
    const Args *args = r->args;
    const char *timeout = args_value(args, "timeout");
    ValuesPairs env = {0}, metadata = {0};

    *o = (abx_create_options){
        .template_name = args_value(args, "template"),
        .cpu = args_value(args, "cpu"),
        .memory = args_value(args, "memory"),
    };
    if (timeout && !values_seconds("--timeout", timeout, &o->timeout_s, err))
        return false;
    if (!values_env(args, r->out.cancel_fd, r->a, &env, err) || !values_pairs(args, "metadata", r->a, &metadata, err))
        return false;
    o->env = env.p;
    o->env_count = env.n;
    o->metadata = metadata.p;
    o->metadata_count = metadata.n;
    return cmd_sandbox__entrypoint(r, o, err);
}

/* Ctrl-C arrived with the last answer or behind it: nobody has seen the id yet. */
static int cmd_sandbox__take_back(Run *r, abx_sandbox *box)
{
    abx_error e = {.kind = ABX_CANCELLED, .code = "E0000"}, unheard;

    run_release(r);
    if (abx_kill(box, NULL, &unheard) == 0)
        snprintf(e.message, sizeof e.message, "interrupted: sandbox %s was removed again", abx_sandbox_id(box));
    else
        snprintf(e.message, sizeof e.message, "interrupted: sandbox %s was created and still runs", abx_sandbox_id(box));
    return run_fail(r, &e);
}

/* The result that could not be printed held the name of something that runs. */
static int cmd_sandbox__name(const Run *r, const abx_sandbox *box, Err *err)
{
    err_wrap(err, "sandbox %s was created", abx_sandbox_id(box));
    err_hint(err, "`abx sandbox kill %s` removes it.", abx_sandbox_id(box));
    return run_fail_told(r, err);
}

static int cmd_sandbox__created(Run *r, abx_sandbox *box)
{
    Buf text = buf_make(LIMIT_DOCUMENT);
    ABX_UNSET Err err;

    if (run_signal(r))
        return cmd_sandbox__take_back(r, box);
    if (r->out.quiet && !r->out.json)
        cmd_sandbox__id_line(&text, r->a, abx_sandbox_id(box));
    else
        cmd_sandbox__info(r, abx_last_info(box), &text);
    if (r->out.json)
        buf_addc(&text, '\n');
    bool told = output_result(&r->out, buf_str(&text), &err);
    buf_free(&text);
    if (told)
        return 0;
    return err.kind == ERR_CANCELLED ? cmd_sandbox__take_back(r, box) : cmd_sandbox__name(r, box, &err);
}

int cmd_sandbox_create(Run *r)
{
    abx_create_options o;
    ABX_UNSET abx_error e;
    ABX_UNSET Err err;

    if (!cmd_sandbox__create_options(r, &o, &err))
        return run_fail_own(r, &err);
    if (!run_can_print(&e) || !run_open(r, NULL, &e))
        return run_fail(r, &e);
    abx_sandbox *box = abx_create(r->session, &o, &e);
    int status = box ? cmd_sandbox__created(r, box) : run_fail(r, &e);
    abx_sandbox_free(box);
    return status;
}

/* ---- list ---- */

typedef struct CmdSandboxList {
    const Run    *run;
    Buf           text;
    JsonOut       json;
    DocumentTable table;
} CmdSandboxList;

static void cmd_sandbox__row(CmdSandboxList *l, const abx_info *i)
{
    Buf pairs = buf_make(LIMIT_DOCUMENT);

    for (size_t k = 0; k < i->metadata_count; k++)
        buf_addf(&pairs, "%s%s=%s", k ? "," : "", i->metadata[k].key, i->metadata[k].value);
    document_cell(&l->table, str_from(i->sandbox_id));
    document_cell(&l->table, str_from(i->status));
    document_cell(&l->table, str_from(i->template_name));
    document_cell(&l->table, str_from(i->started_at));
    document_cell(&l->table, str_from(i->end_at));
    document_cell(&l->table, buf_str(&pairs));
    buf_free(&pairs);
}

static int cmd_sandbox__each(void *ctx, const abx_info *i)
{
    CmdSandboxList *l = ctx;

    if (l->run->out.json)
        document_info(&l->json, i);
    else if (l->run->out.quiet)
        cmd_sandbox__id_line(&l->text, l->run->a, i->sandbox_id);
    else
        cmd_sandbox__row(l, i);
    return l->text.over;
}

static int cmd_sandbox__list_print(CmdSandboxList *l, int more, int64_t limit)
{
    const Run *r = l->run;

    if (r->out.json)
        json_end(&l->json, ']');
    else if (!r->out.quiet)
        document_table_end(&l->table, &l->text);
    if (l->text.over) {
        ABX_UNSET Err err;
        err_set(&err, ERR_LIMIT, E0000, "the list is longer than %zu bytes", LIMIT_DOCUMENT);
        err_hint(&err, "Ask for fewer with --limit or --metadata.");
        buf_free(&l->text);
        return run_fail_own(r, &err);
    }
    if (more)
        output_notice((void *)&r->out, arena_fmt(r->a, "there are more than these %lld", (long long)limit).p);
    return cmd_sandbox__print(r, &l->text);
}

int cmd_sandbox_list(Run *r)
{
    static const char *const heads[] = {"SANDBOX ID", "STATUS", "TEMPLATE", "STARTED", "ENDS", "METADATA"};
    CmdSandboxList l = {.run = r, .table = document_table(r->a, COUNT_OF(heads), r->out.out_terminal)};
    abx_list_options o = {.limit = 0};
    const char *limit = args_value(r->args, "limit");
    ValuesPairs metadata = {0};
    ABX_UNSET abx_error e;
    ABX_UNSET Err err;
    int         more = 0;

    if (limit && !values_number("--limit", limit, 1, INT64_MAX, &o.limit, &err))
        return run_fail_own(r, &err);
    if (!values_pairs(r->args, "metadata", r->a, &metadata, &err))
        return run_fail_own(r, &err);
    o.metadata = metadata.p;
    o.metadata_count = metadata.n;
    if (!run_can_print(&e) || !run_open(r, NULL, &e))
        return run_fail(r, &e);
    l.text = buf_make(LIMIT_DOCUMENT);
    l.json = json_out(&l.text, JSON_PRETTY);
    if (r->out.json)
        json_begin(&l.json, '[');
    for (size_t i = 0; i < COUNT_OF(heads); i++)
        document_cell(&l.table, str_from(heads[i]));
    if (abx_list(r->session, &o, cmd_sandbox__each, &l, &more, &e) != 0) {
        buf_free(&l.text);
        return run_fail(r, &e);
    }
    return cmd_sandbox__list_print(&l, more, o.limit);
}

/* ---- timeout, url, kill ---- */

int cmd_sandbox_timeout(Run *r)
{
    ABX_UNSET abx_error e;
    ABX_UNSET Err err;
    int64_t   seconds;

    if (!values_seconds("DURATION", r->args->words[1], &seconds, &err))
        return run_fail_own(r, &err);
    if (seconds < 0) {
        err_set(&err, ERR_USAGE, E8002, "DURATION: a sandbox cannot be made to stay for ever afterwards");
        err_hint(&err, "`abx sandbox create --timeout none` makes one that does.");
        return run_fail_own(r, &err);
    }
    abx_sandbox *box = run_can_print(&e) ? run_attach(r, &e) : NULL;
    return cmd_sandbox__answer(r, box, box ? abx_set_timeout(box, seconds, &e) : NULL, &e);
}

static void cmd_sandbox__url(const Run *r, const abx_url *u, Buf *text)
{
    if (!r->out.json) {
        buf_addf(text, "%s\n", u->url);
        for (size_t i = 0; i < u->header_count; i++)
            buf_addf(text, "%s: %s\n", u->headers[i].key, u->headers[i].value);
        return;
    }
    JsonOut w = json_out(text, JSON_PRETTY);
    json_begin(&w, '{');
    json_key(&w, "url");
    json_put_str(&w, str_from(u->url));
    if (u->header_count) {
        json_key(&w, "headers");
        json_begin(&w, '{');
        for (size_t i = 0; i < u->header_count; i++) {
            json_key_str(&w, str_from(u->headers[i].key));
            json_put_str(&w, str_from(u->headers[i].value));
        }
        json_end(&w, '}');
    }
    json_end(&w, '}');
}

int cmd_sandbox_url(Run *r)
{
    ABX_UNSET abx_error e;
    ABX_UNSET Err err;
    int64_t   port;

    if (!values_number("PORT", r->args->words[1], 1, 65535, &port, &err))
        return run_fail_own(r, &err);
    abx_sandbox   *box = run_can_print(&e) ? run_attach(r, &e) : NULL;
    const abx_url *url = box ? abx_port_url(box, (int)port, &e) : NULL;
    int            status;
    if (url) {
        Buf text = buf_make(LIMIT_DOCUMENT);
        cmd_sandbox__url(r, url, &text);
        status = cmd_sandbox__print(r, &text);
    } else {
        status = run_fail(r, &e);
    }
    abx_sandbox_free(box);
    return status;
}

static void cmd_sandbox__killed(const Run *r, const char *id, int killed, JsonOut *w)
{
    if (!r->out.json) {
        buf_addf(w->to, killed ? "%s killed\n" : "%s was gone\n", id);
        return;
    }
    json_begin(w, '{');
    json_key(w, "sandbox_id");
    json_put_str(w, str_from(id));
    json_key(w, "killed");
    json_put_bool(w, killed);
    json_end(w, '}');
}

/* In the session at hand, or in one of the provider that `ref` names. */
static abx_sandbox *cmd_sandbox__attach(Run *r, const char *ref, abx_error *e)
{
    abx_sandbox *box = r->session ? abx_attach(r->session, ref, e) : NULL;

    if (!box && (!r->session || strcmp(e->code, "E8030") == 0))
        box = run_open(r, ref, e) ? abx_attach(r->session, ref, e) : NULL;
    return box;
}

/* Every id is tried; the first failure decides the exit status. */
static int cmd_sandbox__kill_one(Run *r, const char *ref, JsonOut *w)
{
    ABX_UNSET abx_error e;
    int          killed = 0, status = 0;
    abx_sandbox *box = cmd_sandbox__attach(r, ref, &e);

    if (!box || abx_kill(box, &killed, &e) != 0)
        status = run_fail(r, &e);
    else
        cmd_sandbox__killed(r, abx_sandbox_id(box), killed, w);
    abx_sandbox_free(box);
    return status;
}

int cmd_sandbox_kill(Run *r)
{
    ABX_UNSET abx_error e;
    Buf       text = buf_make(LIMIT_DOCUMENT);
    JsonOut   w = json_out(&text, JSON_PRETTY);
    bool      list = r->args->word_count > 1 && r->out.json;
    size_t    failed = 0;
    int       status = 0;

    if (!run_can_print(&e))
        return run_fail(r, &e);
    /* `abx rm ID PATH`: somebody wants to be rid of a file, and not of all of them. */
    for (size_t i = 1; i < r->args->word_count; i++)
        if (*r->args->words[i] == '/') {
            ABX_UNSET Err err;
            err_set(&err, ERR_USAGE, E8002, "'%s' is the path of a file: no sandbox was ended", r->args->words[i]);
            err_hint(&err, "`abx file rm` removes files.");
            return run_fail_own(r, &err);
        }
    if (list)
        json_begin(&w, '[');
    for (size_t i = 0; i < r->args->word_count && !run_signal(r); i++) {
        int one = cmd_sandbox__kill_one(r, r->args->words[i], &w);
        failed += one != 0;
        status = status ? status : one;
    }
    if (list)
        json_end(&w, ']');
    if (failed == r->args->word_count)
        buf_clear(&text);
    int printed = text.n ? cmd_sandbox__print(r, &text) : 0;
    return status ? status : printed;
}
