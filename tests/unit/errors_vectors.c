#include "vectors.h"

#include "base/str.h"
#include "base/utf8.h"
#include "provider/epp_error.h"

/* One line, as an Err is, and no longer than one. */
static Str errors_vector_line(Str s, Arena *a)
{
    char *p = arena_cstr(a, s);

    for (size_t i = 0; i < s.n; i++)
        if (p[i] == '\n' || p[i] == '\t')
            p[i] = ' ';
    return utf8_trim((Str){p, s.n});
}

/* The plugin's own words, as they were told on. */
static bool errors_vector_text(Vector *v, const char *what, const Json *told, Str want, const char *got, const Str *secrets,
                               size_t n)
{
    Str is = str_from(got);

    want = errors_vector_line(want, v->a);
    if (json_str(told).n == 0 || str_eq(is, want) || want.n == 0)
        return true;
    if (want.n >= ERR_TEXT_SIZE - 4 && str_starts(want, (Str){is.p, ERR_TEXT_SIZE - 8}))
        return true;
    if (sanitize_row_11(json_str(told), n) && sanitize_safe(is, secrets, n))
        return vector_differs(v, 11);
    return vector_fail(v, "%s <%s>, not <%.*s>", what, got, STR_ARG(want));
}

static bool errors_vector(Vector *v)
{
    const Json *list = json_get(v->row, "secrets"), *error = json_get(v->row, "error");
    Str        *secrets = arena_array(v->a, json_count(list), sizeof *secrets);
    EppVoice    voice = {.id = json_str(json_get(v->row, "provider")), .secrets = secrets, .secret_count = json_count(list)};
    char        code[6];
    Err         err = {0};

    for (size_t i = 0; i < json_count(list); i++)
        secrets[i] = json_str(json_at(list, i));
    epp_error_set(&voice, error, &err);
    code_name(err.code, code);
    if (!str_eq(str_from(code), json_str(json_get(v->row, "code"))) || code_exit(err.code) != json_int(json_get(v->row, "exit"), -1))
        return vector_fail(v, "%s, exit %d", code, code_exit(err.code));
    return errors_vector_text(v, "message", json_get(error, "message"), json_str(json_get(v->row, "message")), err.text, secrets,
                              voice.secret_count) &&
           errors_vector_text(v, "suggestion", json_get(json_get(error, "data"), "suggestion"),
                              json_str(json_get(v->row, "suggestion")), err.hint, secrets, voice.secret_count);
}
