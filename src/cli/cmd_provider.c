#include "cli/cmd_provider.h"

#include "base/limits.h"
#include "base/str.h"
#include "cli/document.h"
#include "cli/screen.h"

static int cmd_provider__end(const Run *r, Buf *text)
{
    int status = run_result(r, buf_str(text));

    buf_free(text);
    return status;
}

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
    json_key(w, "id");
    json_put_str(w, str_from(p->id));
    json_key(w, "name");
    json_put_str(w, str_from(name));
    json_key(w, "name_zh");
    json_put_str(w, str_from(p->name_zh ? p->name_zh : name));
    json_key(w, "version");
    json_put_str(w, str_from(p->version));
    json_key(w, "kind");
    json_put_str(w, str_from(p->kind));
    json_key(w, "trust");
    json_put_str(w, str_from(p->trust));
    json_key(w, "features");
    json_begin(w, '[');
    for (size_t i = 0; i < p->feature_count; i++)
        json_put_str(w, str_from(p->features[i]));
    json_end(w, ']');
    if (p->error) {
        json_key(w, "error");
        json_put_str(w, str_from(p->error));
    }
    json_key(w, "default");
    json_put_bool(w, p->is_default);
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

static void cmd_provider__padded(Buf *to, const char *text, size_t width)
{
    buf_add(to, str_from(text));
    for (size_t n = screen_width(str_from(text)); n < width; n++)
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
    cmd_provider__padded(&l->text, p->id, 24);
    cmd_provider__padded(&l->text, p->version, 10);
    cmd_provider__padded(&l->text, p->kind, 8);
    cmd_provider__padded(&l->text, p->trust, 9);
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
    abx_error   e;
    Err         err;

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
    return cmd_provider__end(r, &l.text);
}

/* ---- info ---- */

static void cmd_provider__strings(JsonOut *w, const char *key, abx_strings s)
{
    json_key(w, key);
    json_begin(w, '[');
    for (size_t i = 0; i < s.n; i++)
        json_put_str(w, str_from(s.v[i]));
    json_end(w, ']');
}

static void cmd_provider__string(JsonOut *w, const char *key, const char *text)
{
    json_key(w, key);
    json_put_str(w, str_from(text));
}

/* A document inside a document. */
static void cmd_provider__json(JsonOut *w, const char *key, const char *text, Arena a)
{
    const Json *doc;
    Err         err;

    json_key(w, key);
    if (text && json_parse(str_from(text), &a, &doc, &err))
        json_put(w, doc);
    else
        json_put_null(w);
}

static void cmd_provider__field(JsonOut *w, const abx_field *f, const Arena *a)
{
    json_begin(w, '{');
    cmd_provider__string(w, "key", f->key);
    cmd_provider__string(w, "type", f->type);
    json_key(w, "secret");
    json_put_bool(w, f->secret);
    json_key(w, "credential");
    json_put_bool(w, f->credential);
    json_key(w, "required");
    json_put_bool(w, f->required);
    cmd_provider__json(w, "default", f->fallback, *a);
    cmd_provider__string(w, "env", f->variable);
    cmd_provider__strings(w, "aliases", f->aliases);
    cmd_provider__string(w, "description", f->description);
    cmd_provider__string(w, "description_zh", f->description_zh);
    json_end(w, '}');
}

static void cmd_provider__details(JsonOut *w, const abx_details *d, const Arena *a)
{
    json_begin(w, '{');
    cmd_provider__string(w, "id", d->id);
    cmd_provider__string(w, "name", d->name);
    cmd_provider__string(w, "name_zh", d->name_zh);
    cmd_provider__string(w, "version", d->version);
    cmd_provider__string(w, "kind", d->kind);
    cmd_provider__strings(w, "features", d->features);
    json_key(w, "operation_contract_version");
    json_put_int(w, 1);
    json_key(w, "operations");
    json_begin(w, '{');
    cmd_provider__strings(w, "cli", d->cli);
    cmd_provider__strings(w, "python", d->python);
    json_end(w, '}');
    cmd_provider__strings(w, "workflow_inputs", d->inputs);
    cmd_provider__strings(w, "startup_modes", d->startups);
    cmd_provider__strings(w, "extensions", (abx_strings){0});
    json_key(w, "config_fields");
    json_begin(w, '[');
    for (size_t i = 0; i < d->field_count; i++)
        cmd_provider__field(w, &d->fields[i], a);
    json_end(w, ']');
    cmd_provider__strings(w, "inherit", d->inherit);
    cmd_provider__json(w, "receipt", d->receipt, *a);
    json_end(w, '}');
}

/* The text form is the document, too. */
int cmd_provider_info(Run *r)
{
    abx_options o;
    abx_error   e;
    Err         err;

    if (!run_options(r, &o, &err))
        return run_fail_own(r, &err);
    abx_host          *h = abx_host_open(&o, &e);
    const abx_details *d = h ? abx_provider_details(h, r->args->words[0], &e) : NULL;
    if (!d) {
        abx_host_close(h);
        return run_fail(r, &e);
    }
    Buf     text = buf_make(LIMIT_DOCUMENT);
    JsonOut w = json_out(&text, JSON_PRETTY);
    cmd_provider__details(&w, d, r->a);
    buf_addc(&text, '\n');
    abx_host_close(h);
    return cmd_provider__end(r, &text);
}

/* ---- default ---- */

int cmd_provider_default(Run *r)
{
    char        id[64], source[16];
    abx_options o;
    abx_error   e;
    Err         err;

    if (!run_options(r, &o, &err))
        return run_fail_own(r, &err);
    if (abx_default_provider(&o, id, source, &e) != 0)
        return run_fail(r, &e);
    Buf text = buf_make(LIMIT_ERROR_BODY);
    if (r->out.json) {
        JsonOut w = json_out(&text, JSON_PRETTY);
        json_begin(&w, '{');
        json_key(&w, "default");
        json_put_str(&w, str_from(id));
        json_key(&w, "source");
        json_put_str(&w, str_from(source));
        json_end(&w, '}');
        buf_addc(&text, '\n');
    } else if (r->out.quiet) {
        buf_addf(&text, "%s\n", id);
    } else {
        buf_addf(&text, "%s (source: %s)\n", id, source);
    }
    return cmd_provider__end(r, &text);
}
