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
