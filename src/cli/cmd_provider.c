#include "cli/cmd_provider.h"

#include "base/limits.h"
#include "base/str.h"
#include "cli/document.h"
#include "cli/screen.h"

/* ---- list ---- */

typedef struct CmdProviderList {
    const Run *run;
    Buf        text;
    JsonOut    json;
} CmdProviderList;

static void cmd_provider__document(JsonOut *w, const abx_provider *p)
{
    const char *name = p->name ? p->name : p->id;

    json_begin(w, '{');
    document_string(w, "id", p->id);
    document_string(w, "name", name);
    document_string(w, "name_zh", p->name_zh ? p->name_zh : name);
    document_string(w, "version", p->version);
    document_string(w, "kind", p->kind);
    document_string(w, "trust", p->trust);
    document_strings(w, "features", (abx_strings){p->features, p->feature_count});
    if (p->error)
        document_string(w, "error", p->error);
    document_flag(w, "default", p->is_default);
    json_end(w, '}');
}

/* "sandbox.lifecycle", "sandbox.timeout", "pty" become "sandbox(lifecycle,timeout) pty".
 * They come ordered, so a group stands together. */
static void cmd_provider__features(Buf *to, const abx_provider *p)
{
    Str group = STR("");

    for (size_t i = 0; i < p->feature_count; i++) {
        Str    all = str_from(p->features[i]), next = str_from(i + 1 < p->feature_count ? p->features[i + 1] : "");
        size_t dot = str_find(all, '.');
        Str    head = {all.p, dot}, tail = {all.p + dot, all.n - dot};
        bool   same = i > 0 && tail.n && str_eq(head, group);
        bool   goes_on = tail.n && str_find(next, '.') < next.n && str_eq(head, (Str){next.p, str_find(next, '.')});
        if (!same) {
            buf_add(to, i ? STR(" ") : STR(""));
            buf_add(to, head);
        }
        if (tail.n) {
            buf_add(to, same ? STR(",") : STR("("));
            buf_add(to, (Str){tail.p + 1, tail.n - 1});
            buf_add(to, goes_on ? STR("") : STR(")"));
        }
        group = head;
    }
}

static void cmd_provider__padded(Buf *to, const char *text, size_t width, Arena scratch)
{
    Str shown = screen_line(&scratch, str_from(text), false);

    buf_add(to, shown);
    for (size_t n = screen_width(shown); n < width; n++)
        buf_addc(to, ' ');
    buf_addc(to, ' ');
}

static int cmd_provider__each(void *ctx, const abx_provider *p)
{
    CmdProviderList *l = ctx;

    if (l->run->out.json) {
        cmd_provider__document(&l->json, p);
        return 0;
    }
    if (l->run->out.quiet) {
        buf_addf(&l->text, "%s\n", p->id);
        return 0;
    }
    buf_add(&l->text, p->is_default ? STR("* ") : STR("  "));
    cmd_provider__padded(&l->text, p->id, 24, *l->run->a);
    cmd_provider__padded(&l->text, p->version, 10, *l->run->a);
    cmd_provider__padded(&l->text, p->kind, 8, *l->run->a);
    cmd_provider__padded(&l->text, p->trust, 9, *l->run->a);
    if (p->error)
        buf_addf(&l->text, "(unusable: %.*s)", STR_ARG(screen_line(l->run->a, str_from(p->error), false)));
    else
        cmd_provider__features(&l->text, p);
    buf_addc(&l->text, '\n');
    return 0;
}

int cmd_provider_list(Run *r)
{
    CmdProviderList l = {.run = r};
    abx_options o;
    ABX_UNSET abx_error e;
    ABX_UNSET Err err;

    if (!run_options(r, &o, &err))
        return run_fail_own(r, &err);
    l.text = buf_make(LIMIT_DOCUMENT);
    l.json = json_out(&l.text, JSON_PRETTY);
    if (r->out.json)
        json_begin(&l.json, '[');
    if (abx_providers(&o, cmd_provider__each, &l, &e) != 0) {
        buf_free(&l.text);
        return run_fail(r, &e);
    }
    if (r->out.json) {
        json_end(&l.json, ']');
        buf_addc(&l.text, '\n');
    }
    return run_end(r, &l.text);
}

/* ---- info ---- */

static void cmd_provider__field(JsonOut *w, const abx_field *f, const Arena *a)
{
    json_begin(w, '{');
    document_string(w, "key", f->key);
    document_string(w, "type", f->type);
    document_flag(w, "secret", f->secret);
    document_flag(w, "credential", f->credential);
    document_flag(w, "required", f->required);
    document_text(w, "default", f->fallback, *a);
    document_string(w, "env", f->variable);
    document_strings(w, "aliases", f->aliases);
    document_string(w, "description", f->description);
    document_string(w, "description_zh", f->description_zh);
    json_end(w, '}');
}

static void cmd_provider__details(JsonOut *w, const abx_details *d, const Arena *a)
{
    json_begin(w, '{');
    document_string(w, "id", d->id);
    document_string(w, "name", d->name);
    document_string(w, "name_zh", d->name_zh);
    document_string(w, "version", d->version);
    document_string(w, "kind", d->kind);
    document_strings(w, "features", d->features);
    json_key(w, "operation_contract_version");
    json_put_int(w, 1);
    json_key(w, "operations");
    json_begin(w, '{');
    document_strings(w, "cli", d->cli);
    document_strings(w, "python", d->python);
    json_end(w, '}');
    document_strings(w, "workflow_inputs", d->inputs);
    document_strings(w, "startup_modes", d->startups);
    document_strings(w, "extensions", (abx_strings){0});
    json_key(w, "config_fields");
    json_begin(w, '[');
    for (size_t i = 0; i < d->field_count; i++)
        cmd_provider__field(w, &d->fields[i], a);
    json_end(w, ']');
    document_strings(w, "inherit", d->inherit);
    document_text(w, "receipt", d->receipt, *a);
    json_end(w, '}');
}

/* The text form is the document, too. */
int cmd_provider_info(Run *r)
{
    ABX_UNSET abx_error e;
    abx_host          *h = run_host(r, &e);
    const abx_details *d = h ? abx_provider_details(h, r->args->words[0], &e) : NULL;

    if (!d)
        return run_fail(r, &e);
    Buf     text = buf_make(LIMIT_DOCUMENT);
    JsonOut w = json_out(&text, JSON_PRETTY);
    cmd_provider__details(&w, d, r->a);
    buf_addc(&text, '\n');
    return run_end(r, &text);
}

/* ---- default ---- */

static int cmd_provider__print_default(Run *r, const char *id, const char *source, Str line)
{
    Buf text = buf_make(LIMIT_ERROR_BODY);

    if (r->out.json) {
        JsonOut w = json_out(&text, JSON_PRETTY);
        json_begin(&w, '{');
        document_string(&w, "default", id);
        document_string(&w, "source", source);
        json_end(&w, '}');
        buf_addc(&text, '\n');
    } else {
        buf_add(&text, r->out.quiet ? str_from(id) : line);
        buf_addc(&text, '\n');
    }
    return run_end(r, &text);
}

/* What was set, and whether it is also what counts. */
static int cmd_provider__set_default(Run *r, const char *id)
{
    char        now[64], source[16];
    abx_options o;
    ABX_UNSET abx_error e;
    ABX_UNSET Err err;
    abx_host   *h = run_host(r, &e);

    if (!h || abx_set_default_provider(h, id, &e) != 0)
        return run_fail(r, &e);
    if (!run_options(r, &o, &err))
        return run_fail_own(r, &err);
    if (abx_default_provider(&o, now, source, &e) != 0)
        return run_fail(r, &e);
    if (strcmp(now, id) != 0)
        output_notice(&r->out, arena_fmt(r->a, "warning: %s is used all the same (source: %s)", now, source).p);
    return cmd_provider__print_default(r, id, strcmp(id, "alicloud-express") == 0 ? "builtin" : "toml",
                                       arena_fmt(r->a, "Default provider: %s", id));
}

int cmd_provider_default(Run *r)
{
    char        id[64], source[16];
    abx_options o;
    ABX_UNSET abx_error e;
    ABX_UNSET Err err;

    if (r->args->word_count)
        return cmd_provider__set_default(r, r->args->words[0]);
    if (!run_options(r, &o, &err))
        return run_fail_own(r, &err);
    if (abx_default_provider(&o, id, source, &e) != 0)
        return run_fail(r, &e);
    return cmd_provider__print_default(r, id, source, arena_fmt(r->a, "%s (source: %s)", id, source));
}
