/* The shapes of refusals in the wire document, 14, and what stands between. */
#include "base/str.h"
#include "provider/refusal.h"

static const struct {
    int         status;
    const char *type, *body, *code, *message;
    bool        json;
    Code        e;
} refusal_cases[] = {
    {404, "application/json", "{\"code\":\"DOCKER::SANDBOX_NOT_FOUND\",\"message\":\"Sandbox x not found.\"}",
     "SANDBOX_NOT_FOUND", "Sandbox x not found.", true, E8005},
    {422, "application/json",
     "{\"detail\":[{\"type\":\"t\",\"loc\":[\"body\",\"resourceLimits\",\"cpu\"],\"msg\":\"Input should be a valid string\"},"
     "{\"loc\":[\"query\",\"page\"],\"msg\":\"too small\"}]}",
     "", "resourceLimits.cpu: Input should be a valid string; page: too small", true, E8002},
    {422, "application/json", "{\"detail\":[{\"loc\":[\"body\",1],\"msg\":\"JSON decode error\"}]}", "", "1: JSON decode error",
     true, E8002},
    {404, "application/json", "{\"detail\":\"Not Found\"}", "", "Not Found", true, E8005},
    {401, "application/json", "{\"error\":\"Unauthorized: key s3cret!\"}", "", "Unauthorized: key ***!", true, E1001},
    {403, "application/json", "{\"code\":\"KUBERNETES::QUOTA_EXCEEDED\"}", "QUOTA_EXCEEDED", "QUOTA_EXCEEDED", true, E1001},
    {503, "text/plain; charset=utf-8", "Service Unavailable\n", "", "Service Unavailable", false, E9003},
    {502, "text/html", "<html><h1>Bad Gateway</h1></html>", "",
     "status 502 with a body of type text/html, which is not this server's", false, E9003},
    {500, "application/json", "", "", "status 500 with nothing more", false, E8000},
    {500, "application/json", "{\"code\":", "", "status 500 with a body of type application/json, which is not this server's",
     false, E8000},
    {500, "application/json", "{\"code\":7,\"message\":[]}", "",
     "status 500 with a body of type application/json, which is not this server's", false, E8000},
    {400, "application/json", "{\"code\":\"X\",\"message\":\"a\\u001b[31mb\\n\\u0007c\"}", "X", "ab c", true, E8002},
    {429, "", "{\"code\":\"A::B::C\",\"message\":\"m\"}", "B::C", "m", true, E9005},
    {301, "", "", "", "status 301 with nothing more", false, E5001},
    {413, "", "", "", "status 413 with nothing more", false, E9004},
    {418, "", "", "", "status 418 with nothing more", false, E8000},
};

static void refusal_shapes_test(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(refusal_cases); i++) {
        Arena   a = arena_make((size_t)1 << 20);
        Header  fields[2] = {{STR("Content-Type"), str_from(refusal_cases[i].type)}, {STR("X-Request-ID"), STR("r-1")}};
        Headers headers = {fields, 2};
        Err     err = {0};
        Refusal r = refusal_read(refusal_cases[i].status, headers, guard_copy(str_from(refusal_cases[i].body)), STR("s3cret"), &a);

        assert_false(refusal_err(&r, headers, "try it", &err));
        if (!str_eq(r.code, str_from(refusal_cases[i].code)) || !str_eq(r.message, str_from(refusal_cases[i].message)) ||
            r.json != refusal_cases[i].json || err.code != refusal_cases[i].e)
            fail_msg("case %zu: %.*s, %.*s, %d, %d", i, STR_ARG(r.code), STR_ARG(r.message), r.json, err.code);
        assert_int_equal(err.status, refusal_cases[i].status);
        assert_string_equal(err.request_id, "r-1");
        arena_free(&a);
    }
}

static const struct CMUnitTest refusal_tests[] = {
    cmocka_unit_test(refusal_shapes_test),
};
