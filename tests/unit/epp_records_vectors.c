#include "vectors.h"

#include "base/str.h"
#include "provider/epp_record.h"

/* docs/differences.md, row 56: Python's text of what is no text. abx has none of
 * null, and JSON of the rest. */
static bool epp_records_row_48(const Json *v)
{
    return v && (v->type == JSON_NULL || v->type == JSON_BOOL || v->type == JSON_ARRAY || v->type == JSON_OBJECT ||
                 v->type == JSON_REAL);
}

static bool epp_records_text(Vector *v, const char *what, const Json *given, Str got, const Json *want)
{
    if (str_eq(got, json_str(want)))
        return true;
    if (epp_records_row_48(given) && (given->type != JSON_NULL || got.n == 0))
        return vector_differs(v, 56);
    return vector_fail(v, "%s is <%.*s>, not <%.*s>", what, STR_ARG(got), STR_ARG(json_str(want)));
}

/* The same point in time, to the millisecond. */
static bool epp_records_time(Vector *v, const char *what, Str got, const Json *want)
{
    int64_t is = INT64_MIN, should = INT64_MIN;

    if (!want || want->type == JSON_NULL)
        return got.n == 0 || vector_fail(v, "%s is %.*s", what, STR_ARG(got));
    if (!epp_record_time(got, &is) || !epp_record_time(json_str(want), &should) || is / 1000 != should / 1000)
        return vector_fail(v, "%s is <%.*s>, not %.*s", what, STR_ARG(got), STR_ARG(json_str(want)));
    return true;
}

static bool epp_records_metadata(Vector *v, const SandboxInfo *got, const Json *given, const Json *want)
{
    if (got->metadata_count != json_count(want))
        return vector_fail(v, "%zu metadata", got->metadata_count);
    for (size_t i = 0; i < got->metadata_count; i++) {
        char *key = arena_cstr(v->a, got->metadata[i].key);
        if (!epp_records_text(v, "metadata", json_get(given, key), got->metadata[i].value, json_get(want, key)))
            return false;
    }
    return true;
}

/* A refusal of a record that the other host takes. */
static bool epp_records_refused(Vector *v, const Json *record, const char *what)
{
    const Json *id = json_get(record, "sandbox_id"), *token = json_get(record, "envd_access_token");

    if (id && id->type == JSON_STRING && id->text.n)
        return token && token->type != JSON_STRING ? vector_differs(v, 12) : vector_differs(v, 38);
    if (id && (id->type == JSON_NULL || id->type == JSON_BOOL || id->type == JSON_ARRAY || id->type == JSON_OBJECT))
        return vector_differs(v, 12);
    return vector_fail(v, "refused: %s", what);
}

static bool epp_records_vector(Vector *v)
{
    const Json *record = json_get(v->row, "record"), *want = json_get(v->row, "info");
    const char *what = "";
    SandboxInfo got;
    bool        ok = epp_record_sandbox(record, v->a, &got, &what);

    if (!want) {
        bool same = str_eq(json_str(json_get(v->row, "code")), STR("E8020")) || json_get(v->row, "uncaught");
        return !ok && same ? true : vector_fail(v, "%s", ok ? "accepted" : "refused with another code");
    }
    if (!ok)
        return epp_records_refused(v, record, what);
    int64_t seconds = got.timeout_s < 0 ? 0 : got.timeout_s;
    if (seconds != json_int(json_get(want, "timeout"), -1))
        return vector_fail(v, "timeout %lld", (long long)got.timeout_s);
    return epp_records_text(v, "sandbox_id", json_get(record, "sandbox_id"), got.id, json_get(want, "sandbox_id")) &&
           epp_records_text(v, "template", json_get(record, "template"), got.template, json_get(want, "template")) &&
           epp_records_text(v, "status", NULL, got.status, json_get(want, "status")) &&
           epp_records_text(v, "region", json_get(record, "region"), got.region, json_get(want, "region")) &&
           epp_records_time(v, "started_at", got.started_at, json_get(want, "started_at")) &&
           epp_records_time(v, "end_at", got.end_at, json_get(want, "end_at")) &&
           epp_records_metadata(v, &got, json_get(record, "metadata"), json_get(want, "metadata"));
}
