#include "provider/epp_error.h"

#include "base/limits.h"
#include "base/str.h"

enum { EPP_ERROR_NO_METHOD = -32601 };

#define EPP_ERROR_ROOM (6 * LIMIT_EPP_VOICE)    /* message, suggestion, feature, each in a sentence */

/* What a plugin may say in sdk_code. */
static const struct { const char *name; Code code; } epp_error__codes[] = {
    {"E1001", E1001}, {"E1002", E1002}, {"E1003", E1003}, {"E1004", E1004}, {"E2001", E2001}, {"E2002", E2002},
    {"E2003", E2003}, {"E2009", E2009}, {"E3001", E3001}, {"E4001", E4001}, {"E4002", E4002}, {"E5000", E5000},
    {"E5001", E5001},
};

static const struct { int number; Code code; bool says_more; } epp_error__rows[] = {
    {-32001, E1000, true},  {-32002, E8005, true},  {-32003, E8004, false}, {-32004, E2002, false},
    {-32005, E8022, false}, {-32006, E8002, false}, {-32000, E8000, true},
};

static Code epp_error__code(const Json *error)
{
    int64_t number = json_int(json_get(error, "code"), 0);
    Str     more = json_str(json_get(json_get(error, "data"), "sdk_code"));
    size_t  i = 0;

    while (i < COUNT_OF(epp_error__rows) && epp_error__rows[i].number != number)
        i++;
    if (i == COUNT_OF(epp_error__rows))
        return E8020;
    for (size_t k = 0; epp_error__rows[i].says_more && k < COUNT_OF(epp_error__codes); k++)
        if (str_eq(more, str_from(epp_error__codes[k].name)))
            return epp_error__codes[k].code;
    return epp_error__rows[i].code;
}

static ErrKind epp_error__kind(Code code)
{
    switch (code_exit(code)) {
    case 2:  return ERR_USAGE;
    case 3:  return ERR_DENIED;
    case 4:  return ERR_NOT_FOUND;
    case 5:  return ERR_TIMEOUT;
    default: return ERR_REMOTE;
    }
}

/* Null, false, zero and what is empty are no text. */
static bool epp_error__is_text(const Json *v)
{
    return v && v->type != JSON_NULL && !(v->type == JSON_BOOL && !v->boolean) && !(v->type == JSON_INT && !v->integer) &&
           !((v->type == JSON_ARRAY || v->type == JSON_OBJECT) && v->count == 0);
}

/* Text as it is, anything else as the JSON that it is. */
static Str epp_error__text(const EppVoice *voice, const Json *v, Arena *a)
{
    Str text = json_str(v);
    Buf b = buf_make(LIMIT_EPP_SPOKEN);

    if (epp_error__is_text(v) && v->type != JSON_STRING) {
        JsonOut w = json_out(&b, JSON_SPACED);
        json_put(&w, v);
        text = buf_str(&b);
    }
    text = epp_voice_line(voice, text, a);
    buf_free(&b);
    return text;
}

static Str epp_error__feature(const EppVoice *voice, const Json *data, Arena *a)
{
    Str name = json_str(json_get(json_get(data, "details"), "feature"));

    if (!name.n)
        name = json_str(json_get(data, "feature"));
    name = epp_voice_line(voice, name, a);
    return name.n ? name : STR("unknown");
}

/* What helps where the plugin itself says nothing about it. */
static void epp_error__hint(const EppVoice *voice, Err *err)
{
    if (err->code == E8004)
        err_hint(err, "`abx provider info %.*s` shows what it can do.", STR_ARG(voice->id));
    else if (err->code == E1001 && voice->credential.n)
        err_hint(err, "Check %.*s: it is where the key of provider %.*s is read from.", STR_ARG(voice->credential),
                 STR_ARG(voice->id));
}

bool epp_error_set(const EppVoice *voice, const Json *error, Err *err)
{
    Arena       scratch = arena_make(EPP_ERROR_ROOM);
    const Json *data = json_get(error, "data");
    Code        code = epp_error__code(error);
    Str         text = epp_error__text(voice, json_get(error, "message"), &scratch);
    Str         advice = epp_error__text(voice, json_get(data, "suggestion"), &scratch);

    if (!text.n && code == E8004)
        text = arena_fmt(&scratch, "provider %.*s has not implemented %.*s", STR_ARG(voice->id),
                         STR_ARG(epp_error__feature(voice, data, &scratch)));
    if (!text.n)
        text = STR("provider error");
    err_set(err, epp_error__kind(code), code, "%.*s", STR_ARG(text));
    if (advice.n)
        err_hint(err, "%.*s", STR_ARG(advice));
    else
        epp_error__hint(voice, err);
    arena_free(&scratch);
    return false;
}

bool epp_error_is_no_method(const Json *error)
{
    return json_int(json_get(error, "code"), 0) == EPP_ERROR_NO_METHOD;
}
