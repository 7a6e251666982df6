#include "vectors.h"

#include "base/str.h"
#include "base/utf8.h"
#include "host/source.h"
#include <stdlib.h>
#include <unistd.h>

static Str sources_vector_text(const Json *row, const char *key)
{
    return json_str(json_get(row, key));
}

/* Row 17: a word of a short form is "." or "..". */
static bool sources_vector_dots(Str source)
{
    Str word;

    source.n = str_find(source, '@');
    while (str_cut(&source, '/', &word))
        if (str_eq(word, STR(".")) || str_eq(word, STR("..")))
            return true;
    return false;
}

/* Row 34: a part that a program could take for an option, and what no ref holds. */
static bool sources_vector_option(Str source, Str ref)
{
    static const char *const bad[] = {"--", "..", "@{", "//", ".lock"};
    bool odd = str_starts(source, STR("-")) || str_starts(ref, STR("-")) || str_has_control(source) || str_has_control(ref);

    for (size_t i = 0; i + 1 < source.n; i++)
        odd = odd || (source.p[i + 1] == '-' && memchr(":/@+", source.p[i], 4));
    for (size_t i = 0; i < ref.n; i++)
        odd = odd || memchr(" ~^:?*[\\", ref.p[i], 8);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        odd = odd || memmem(ref.p, ref.n, bad[i], strlen(bad[i]));
    return odd || str_starts(ref, STR("/")) || str_ends(ref, STR("/")) || str_ends(ref, STR(".")) || str_eq(ref, STR("@")) ||
           memmem(ref.p, ref.n, "/.", 2) || str_starts(ref, STR("."));
}

static bool sources_vector_same(const Json *row, bool ok, const SourceRef *ref, Code got)
{
    Str  code = sources_vector_text(row, "code");
    char name[6];

    if (!ok) {
        code_name(got, name);
        return str_eq(str_from(name), code) && code_exit(got) == json_int(json_get(row, "exit"), -1);
    }
    /* What was recorded was asked behind that step. */
    if (ref->kind == SOURCE_CATALOG)
        return str_eq(code, STR("E8012"));
    return ref->kind == SOURCE_GIT && str_eq(sources_vector_text(row, "kind"), STR("git")) &&
           str_eq(ref->location, sources_vector_text(row, "location")) && str_eq(ref->ref, sources_vector_text(row, "out_ref")) &&
           str_eq(ref->subdir, sources_vector_text(row, "out_subdir"));
}

static bool sources_vector(Vector *v)
{
    SourceAsk ask = {
        .source = sources_vector_text(v->row, "source"), .ref = sources_vector_text(v->row, "ref"),
        .subdir = sources_vector_text(v->row, "subdir"), .allow_insecure = json_bool(json_get(v->row, "allow_insecure"), false),
    };
    char      here[4096], empty[] = "/tmp/abx-vectors-XXXXXX";
    SourceRef ref;
    Err       err = {0};

    /* "No local path of these names exists." */
    if (!getcwd(here, sizeof here) || !mkdtemp(empty) || chdir(empty) != 0)
        return vector_fail(v, "cannot go to an empty folder");
    bool ok = source_parse(&ask, v->a, &ref, &err);
    if (chdir(here) != 0 || rmdir(empty) != 0)
        return vector_fail(v, "cannot leave the empty folder");
    if (sources_vector_same(v->row, ok, &ref, err.code))
        return true;
    if (!ok && err.code == E8010 && sources_vector_dots(utf8_trim(ask.source)))
        return vector_differs(v, 17);
    Str given = ask.ref.n ? ask.ref : sources_vector_text(v->row, "out_ref");
    if (!ok && (err.code == E8010 || err.code == E8012) && sources_vector_option(utf8_trim(ask.source), given))
        return vector_differs(v, 34);
    return vector_fail(v, "%.*s: %s", STR_ARG(ask.source), ok ? ref.location.p : err.text);
}
