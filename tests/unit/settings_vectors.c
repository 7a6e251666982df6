#include "vectors.h"

#include "host/settings.h"

/* What the action was for is true of a text of config.toml. */
static bool settings_vector_done(Str text, Str action, Str id, Arena *a)
{
    const Toml *doc;
    Err         unheard;

    if (!toml_parse(text, a, &doc, &unheard))
        return false;
    const Toml *provider = toml_get(toml_get(doc, "core"), "provider");
    if (str_eq(action, STR("purge")))
        return !toml_get_str(toml_get(doc, "providers"), id);
    return str_eq(action, STR("set-default")) && !str_eq(id, STR("alicloud-express")) ? str_eq(toml_str(provider), id) : !provider;
}

/* The other host counts these as line ends, and writes them all as LF. */
static bool settings_vector_odd_lines(Str text)
{
    static const char *const ends[] = {"\r", "\f", "\v", "\x1c", "\x1d", "\x1e", "\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9"};

    for (size_t i = 0; i < COUNT_OF(ends); i++)
        if (text.n && memmem(text.p, text.n, ends[i], strlen(ends[i])))
            return true;
    return false;
}

/* It takes lines inside of a multi-line string for headers and keys. */
static bool settings_vector_multi(Str text)
{
    return text.n && (memmem(text.p, text.n, "\"\"\"", 3) || memmem(text.p, text.n, "'''", 3));
}

static bool settings_vector_toml(Vector *v, Str action, Str id)
{
    Str         before = json_str(json_get(v->row, "before")), after = json_str(json_get(v->row, "after")), got = {0};
    const Toml *doc;
    Err         err = {0};
    bool        ok = str_eq(action, STR("purge")) ? settings_purge_toml(before, id, v->a, &got, &err)
                                                  : settings_default(before, id, v->a, &got, &err);

    if (ok && !got.p == !after.p && str_eq(got, after))
        return true;
    if (!ok)    /* no TOML: it is left as it is */
        return err.code == E8002 && !toml_parse(before, v->a, &doc, &err) ? vector_differs(v, 10) : vector_fail(v, "%s", err.text);
    if (settings_vector_done(got, action, id, v->a) &&
        (settings_vector_odd_lines(before) || settings_vector_multi(before) || !settings_vector_done(after, action, id, v->a)))
        return vector_differs(v, str_eq(action, STR("purge")) ? 9 : 10);
    return vector_fail(v, "%.*s: <%.*s>, not <%.*s>", STR_ARG(before), STR_ARG(got), STR_ARG(after));
}

/* There is a plugin demo-2, whose variables begin as those of demo. */
static bool settings_vector_env(Vector *v, Str id)
{
    Str               before = json_str(json_get(v->row, "env_before")), after = json_str(json_get(v->row, "env_after")), got;
    const DotenvSpan *spans = NULL;
    size_t            n = 0;
    Err               err = {0};

    if (!settings_purge_env(before, id, &STR("demo-2"), 1, v->a, &got, &err))
        return vector_fail(v, "%s", err.text);
    if (!got.p == !after.p && str_eq(got, after))
        return true;
    if (!dotenv_spans(got, v->a, &spans, &n, &err))
        return vector_fail(v, "%s", err.text);
    Str  own = config_variable(id, STR(""), v->a);
    bool left = false, other = memmem(before.p, before.n, "ABX_DEMO_2_", 11) != NULL;
    for (size_t i = 0; i < n; i++)
        left |= str_starts(spans[i].key, own) && !str_starts(spans[i].key, STR("ABX_DEMO_2_"));
    if (!left && (other || settings_vector_odd_lines(before) || memchr(after.p, '\'', after.n)))
        return vector_differs(v, 9);
    return vector_fail(v, "<%.*s>, not <%.*s>", STR_ARG(got), STR_ARG(after));
}

static bool settings_vector(Vector *v)
{
    Str id = json_str(json_get(v->row, "action")), action = {0};

    str_cut(&id, ' ', &action);
    if (!settings_vector_toml(v, action, id))
        return false;
    return !str_eq(action, STR("purge")) || settings_vector_env(v, id);
}
