#include "cli/cmd_config.h"

#include "base/limits.h"
#include "base/str.h"
#include "cli/document.h"
#include "cli/screen.h"
#include "cli/values.h"

/* What `each` of abx_config_list() adds to. */
typedef struct CmdConfig {
    const Run    *run;
    Buf           text;
    JsonOut       json;
    DocumentTable table;
} CmdConfig;

static CmdConfig cmd_config__begin(Run *r, size_t columns)
{
    CmdConfig c = {.run = r, .text = buf_make(LIMIT_DOCUMENT)};

    c.table = document_table(r->a, columns, r->out.out_terminal);
    return c;
}

static int cmd_config__end(CmdConfig *c)
{
    if (c->run->out.json)
        buf_addc(&c->text, '\n');
    int status = run_result(c->run, buf_str(&c->text));
    buf_free(&c->text);
    return status;
}

static int cmd_config__fail(CmdConfig *c, const abx_error *e)
{
    buf_free(&c->text);
    return run_fail(c->run, e);
}

static void cmd_config__raw(JsonOut *w, const char *key, const char *json)
{
    json_key(w, key);
    if (json)
        json_put(w, &(Json){.type = JSON_REAL, .text = str_from(json)});
    else
        json_put_null(w);
}

static void cmd_config__text(JsonOut *w, const char *key, const char *text)
{
    json_key(w, key);
    json_put_str(w, str_from(text));
}

/* ---- list ---- */

static int cmd_config__list_each(void *ctx, const abx_setting *s)
{
    CmdConfig *c = ctx;

    if (c->run->out.quiet)
        buf_addf(&c->text, "%s\n", s->full_key);
    else if (c->run->out.json && s->value)
        cmd_config__raw(&c->json, s->key, s->json);
    else if (!c->run->out.json && s->value) {
        document_cell(&c->table, str_from(s->key));
        document_cell(&c->table, str_from(s->value));
    }
    return 0;
}

int cmd_config_list(Run *r)
{
    CmdConfig   c = cmd_config__begin(r, 2);
    bool        reveal = args_flag(r->args, "show-secrets");
    abx_options o;
    ABX_UNSET abx_error e;
    ABX_UNSET Err err;

    if (!run_options(r, &o, &err))
        return run_fail_own(r, &err);
    if (r->out.json && !r->out.quiet) {
        c.json = json_out(&c.text, JSON_PRETTY);
        json_begin(&c.json, '{');
    }
    if (abx_config_list(&o, reveal, cmd_config__list_each, &c, &e) != 0)
        return cmd_config__fail(&c, &e);
    if (r->out.json && !r->out.quiet)
        json_end(&c.json, '}');
    document_table_end(&c.table, &c.text);
    return cmd_config__end(&c);
}

/* ---- get ---- */

static int cmd_config__get_each(void *ctx, const abx_setting *s)
{
    CmdConfig *c = ctx;

    if (!c->run->out.json) {
        if (s->value) {
            buf_add(&c->text, str_from(s->value));
            buf_addc(&c->text, '\n');
        }
        return 0;
    }
    JsonOut w = json_out(&c->text, JSON_PRETTY);
    json_begin(&w, '{');
    cmd_config__text(&w, "key", s->full_key);
    cmd_config__raw(&w, "value", s->json);
    cmd_config__text(&w, "source", s->source);
    cmd_config__text(&w, "name", s->name);
    json_key(&w, "secret");
    json_put_bool(&w, s->secret);
    json_end(&w, '}');
    return 0;
}

int cmd_config_get(Run *r)
{
    CmdConfig   c = cmd_config__begin(r, 1);
    bool        reveal = args_flag(r->args, "show-secrets");
    abx_options o;
    ABX_UNSET abx_error e;
    ABX_UNSET Err err;

    if (!run_options(r, &o, &err))
        return run_fail_own(r, &err);
    if (abx_config_get(&o, r->args->words[0], reveal, cmd_config__get_each, &c, &e) != 0)
        return cmd_config__fail(&c, &e);
    return cmd_config__end(&c);
}

/* ---- set, unset ---- */

static int cmd_config__stored(Run *r, const char *key, const abx_stored *s, const char *flag, bool value)
{
    CmdConfig c = cmd_config__begin(r, 1);

    if (r->out.json) {
        JsonOut w = json_out(&c.text, JSON_PRETTY);
        json_begin(&w, '{');
        cmd_config__text(&w, "key", key);
        cmd_config__text(&w, "file", s->file);
        cmd_config__text(&w, "name", s->name);
        if (flag) {
            json_key(&w, flag);
            json_put_bool(&w, value);
        }
        json_end(&w, '}');
    } else if (!r->out.quiet) {
        buf_addf(&c.text, "%s ", s->name);
        buf_add(&c.text, !flag ? STR("is kept in ") : value ? STR("was taken out of ") : STR("was not in "));
        buf_add(&c.text, screen_line(r->a, str_from(s->file), r->out.out_terminal));
        buf_addc(&c.text, '\n');
    }
    return cmd_config__end(&c);
}

int cmd_config_set(Run *r)
{
    const char *key = r->args->words[0], *value;
    bool        exposed;
    abx_stored  stored;
    abx_options o;
    ABX_UNSET abx_error e;
    ABX_UNSET Err err;

    if (!run_options(r, &o, &err) ||
        !values_given("config set", r->args->words[1], r->out.cancel_fd, r->a, &value, &exposed, &err))
        return run_fail_own(r, &err);
    if (abx_config_set(&o, key, value, exposed, &stored, &e) != 0)
        return run_fail(r, &e);
    return cmd_config__stored(r, key, &stored, NULL, false);
}

int cmd_config_unset(Run *r)
{
    const char *key = r->args->words[0];
    int         removed;
    abx_stored  stored;
    abx_options o;
    ABX_UNSET abx_error e;
    ABX_UNSET Err err;

    if (!run_options(r, &o, &err))
        return run_fail_own(r, &err);
    if (abx_config_unset(&o, key, &stored, &removed, &e) != 0)
        return run_fail(r, &e);
    return cmd_config__stored(r, key, &stored, "removed", removed != 0);
}

/* ---- explain ---- */

static void cmd_config__explain_json(JsonOut *w, const abx_setting *s)
{
    bool first = strcmp(s->key, "provider") == 0;

    /* As the other hosts have it: of `provider` they say no more than its value. */
    json_key(w, s->key);
    json_begin(w, '{');
    cmd_config__raw(w, "value", s->json);
    cmd_config__text(w, "source", first ? "n/a" : s->source);
    cmd_config__text(w, "name", first ? "" : s->name);
    json_key(w, "secret");
    json_put_bool(w, s->secret);
    json_end(w, '}');
}

static int cmd_config__explain_each(void *ctx, const abx_setting *s)
{
    CmdConfig *c = ctx;

    if (!s->value)
        return 0;
    if (c->run->out.json) {
        cmd_config__explain_json(&c->json, s);
        return 0;
    }
    document_cell(&c->table, str_from(s->key));
    document_cell(&c->table, str_from(s->value));
    document_cell(&c->table, str_from(s->source));
    document_cell(&c->table, *s->file ? arena_fmt(c->run->a, "%s in %s", s->name, s->file) : str_from(s->name));
    return 0;
}

int cmd_config_explain(Run *r)
{
    CmdConfig   c = cmd_config__begin(r, 4);
    abx_options o;
    ABX_UNSET abx_error e;
    ABX_UNSET Err err;

    if (!run_options(r, &o, &err))
        return run_fail_own(r, &err);
    c.json = json_out(&c.text, JSON_PRETTY);
    if (r->out.json)
        json_begin(&c.json, '{');
    if ((r->args->word_count ? abx_config_get(&o, r->args->words[0], 0, cmd_config__explain_each, &c, &e)
                             : abx_config_list(&o, 0, cmd_config__explain_each, &c, &e)) != 0)
        return cmd_config__fail(&c, &e);
    if (r->out.json)
        json_end(&c.json, '}');
    document_table_end(&c.table, &c.text);
    return cmd_config__end(&c);
}

/* ---- path ---- */

int cmd_config_path(Run *r)
{
    CmdConfig        c = cmd_config__begin(r, 1);
    abx_config_paths p;
    abx_options      o;
    ABX_UNSET abx_error e;
    ABX_UNSET Err err;

    if (!run_options(r, &o, &err))
        return run_fail_own(r, &err);
    if (abx_config_files(&o, &p, &e) != 0)
        return cmd_config__fail(&c, &e);
    if (r->out.json) {
        JsonOut w = json_out(&c.text, JSON_PRETTY);
        json_begin(&w, '{');
        cmd_config__text(&w, "home", p.home);
        cmd_config__text(&w, "config", p.config);
        cmd_config__text(&w, "secrets", p.secrets);
        json_end(&w, '}');
    } else {
        buf_addf(&c.text, "%s\n", p.config);
    }
    return cmd_config__end(&c);
}
