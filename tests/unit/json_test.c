#include "base/hex.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "data/json.h"
#include <math.h>

static Arena json_arena = {0};

enum { JSON_TEST_BYTES = 32 << 20 };

/* The tree of a text that must be good; the arena is emptied first. */
static const Json *json_doc(const char *text)
{
    const Json *v = NULL;
    Err         err;

    if (!json_arena.p)
        json_arena = arena_make(ARENA_COMMAND);
    arena_reset(&json_arena);
    if (!json_parse(guard_copy(str_from(text)), &json_arena, &v, &err))
        fail_msg("%s: %s", text, err.text);
    return v;
}

static bool json_refuses(Str text, Err *err)
{
    const Json *v = NULL;

    if (!json_arena.p)
        json_arena = arena_make(ARENA_COMMAND);
    arena_reset(&json_arena);
    memset(err, 0, sizeof *err);
    return !json_parse(guard_copy(text), &json_arena, &v, err) && v == NULL && json_arena.used == 0;
}

/* Read, written again: what came out. */
static void json_again(const char *text, JsonStyle style, Buf *out)
{
    JsonOut w = json_out(out, style);

    buf_clear(out);
    json_put(&w, json_doc(text));
    assert_false(out->over);
}

static void json_round_test(void **state)
{
    static const struct { const char *in, *compact; } cases[] = {
        {" null ", "null"}, {"true", "true"}, {"\tfalse\r\n", "false"}, {"0", "0"}, {"-0", "-0"}, {"1.50", "1.50"},
        {"-12e+3", "-12e+3"}, {"\"\"", "\"\""}, {"[]", "[]"}, {"{}", "{}"}, {"[ [ ] , { } ]", "[[],{}]"},
        {"{ \"a\" : [ 1 , 2 ] , \"b\" : { \"c\" : null } }", "{\"a\":[1,2],\"b\":{\"c\":null}}"},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\\"\\\\/\\b\\f\\n\\r\\t\""},
        {"\"\\u0041\\u00e9\\u4e2d\\uD83D\\uDE00\"", "\"A\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80\""},
        {"\"\\u0000\\u001f\\u007f\"", "\"\\u0000\\u001f\x7f\""},
        {"\"\xe4\xb8\xad\"", "\"\xe4\xb8\xad\""},
        /* a key given twice: the first place, the last value */
        {"{\"a\":1,\"b\":2,\"a\":3}", "{\"a\":3,\"b\":2}"},
        {"{\"\":1,\"\":2,\"\":[]}", "{\"\":[]}"},
        {"{\"a\":1,\"\\u0061\":2,\"ab\":3,\"a\\u0000\":4}", "{\"a\":2,\"ab\":3,\"a\\u0000\":4}"},
    };
    Buf out = buf_make(1000);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        json_again(cases[i].in, JSON_COMPACT, &out);
        if (!str_eq(buf_str(&out), str_from(cases[i].compact)))
            fail_msg("%s became %.*s", cases[i].in, STR_ARG(buf_str(&out)));
        json_again(cases[i].compact, JSON_COMPACT, &out);
        assert_true(str_eq(buf_str(&out), str_from(cases[i].compact)));
    }
    buf_free(&out);
}

static void json_style_test(void **state)
{
    static const char in[] = "{\"a\":[1,{}],\"b\":[],\"c\":{\"d\":\"x\"}}";
    Buf out = buf_make(1000);

    (void)state;
    json_again(in, JSON_SPACED, &out);
    assert_true(str_eq(buf_str(&out), STR("{\"a\": [1, {}], \"b\": [], \"c\": {\"d\": \"x\"}}")));
    json_again(in, JSON_PRETTY, &out);
    assert_true(str_eq(buf_str(&out), STR("{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": [],\n  \"c\": {\n    \"d\": \"x\"\n  }\n}")));
    buf_free(&out);
}

static void json_write_test(void **state)
{
    Buf     out = buf_make(200), small = buf_make(3);
    JsonOut w = json_out(&out, JSON_COMPACT);

    (void)state;
    json_begin(&w, '{');
    json_key(&w, "s");
    json_put_str(&w, STR("a\xff\xf0\x9f\x01\"b"));
    json_key_str(&w, STR("k\n"));
    json_put_int(&w, INT64_MIN);
    json_key(&w, "b");
    json_begin(&w, '[');
    json_put_bool(&w, true);
    json_put_null(&w);
    json_end(&w, ']');
    json_end(&w, '}');
    assert_true(str_eq(buf_str(&out), STR("{\"s\":\"a\xef\xbf\xbd\xef\xbf\xbd\\u0001\\\"b\",\"k\\n\":-9223372036854775808,"
                                          "\"b\":[true,null]}")));
    w = json_out(&small, JSON_COMPACT);
    json_put_str(&w, STR("abc"));
    assert_true(small.over);
    buf_free(&out);
    buf_free(&small);
}

/* As Python prints the same numbers. The hash is of its text of all powers of
 * two, each in a line: below those the next double is nearer than above. */
static void json_real_test(void **state)
{
    static const struct { double v; const char *text; } cases[] = {
        {0x1.8p+0, "1.5"}, {0x1.9p+6, "100.0"}, {0x1.a36e2eb1c432dp-14, "0.0001"}, {0x1.4f8b588e368f1p-17, "1e-05"},
        {0x1.c6bf52634p+49, "1000000000000000.0"}, {0x1.1c37937e08p+53, "1e+16"}, {0x1.1c37937e07fffp+53, "9999999999999998.0"},
        {0x1.d6f34548p+26, "123456789.125"}, {0x1p-1074, "5e-324"}, {0x1p-1022, "2.2250738585072014e-308"},
        {0x1.fffffffffffffp+1023, "1.7976931348623157e+308"}, {0x1p-44, "5.684341886080802e-14"}, {0.0, "0.0"}, {-0.0, "-0.0"},
        {0x1.3333333333334p-2, "0.30000000000000004"}, {0x1.5555555555555p-2, "0.3333333333333333"},
        {0x1.0f0cf064dd592p+73, "1e+22"}, {0x1.52d02c7e14af6p+76, "1e+23"}, {-0x1.0c6f7a0b5ed8dp-22, "-2.5e-07"},
        {0x1.0624dd2f1a9fcp-10, "0.001"}, {(double)INFINITY, "Infinity"}, {-(double)INFINITY, "-Infinity"}, {(double)NAN, "NaN"},
    };
    unsigned char digest[SHA256_SIZE];
    Sha256  all = sha256_make();
    Buf     out = buf_make(100);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        JsonOut w = json_out(&out, JSON_COMPACT);
        buf_clear(&out);
        json_put_real(&w, cases[i].v);
        if (!str_eq(buf_str(&out), str_from(cases[i].text)))
            fail_msg("%s became %.*s", cases[i].text, STR_ARG(buf_str(&out)));
    }
    for (double v = 0x1p-1074; v <= 0x1p1023; v *= 2) {
        JsonOut w = json_out(&out, JSON_COMPACT);
        buf_clear(&out);
        json_put_real(&w, v);
        buf_addc(&out, '\n');
        sha256_add(&all, buf_str(&out));
    }
    sha256_end(&all, digest);
    arena_reset(&json_arena);
    assert_string_equal(hex_encode(&json_arena, (Str){(const char *)digest, sizeof digest}).p,
                        "8aba9d55b380187da683ba0518d653e2e387aac2acf8b9f563a8e2d01a9ccecd");
    buf_free(&out);
}

/* {in, json.dumps(json.loads(in), sort_keys=True)} */
static void json_sorted_test(void **state)
{
    static const struct { const char *in, *ascii; } cases[] = {
        {"{\"b\":1,\"a\":{\"d\":[{\"z\":1,\"y\":2}],\"c\":-0}}", "{\"a\": {\"c\": 0, \"d\": [{\"y\": 2, \"z\": 1}]}, \"b\": 1}"},
        {"{\"\xc3\xa9\":1,\"z\":2,\"\":3,\"zz\":4,\"\xf0\x9f\x98\x80\":5,\"\xef\xbf\xbd\":6}",
         "{\"\": 3, \"z\": 2, \"zz\": 4, \"\\u00e9\": 1, \"\\ufffd\": 6, \"\\ud83d\\ude00\": 5}"},
        {"[1E2,1.50,1e-7,123456789012345678901234567890,-0.0,true,null]",
         "[100.0, 1.5, 1e-07, 123456789012345678901234567890, -0.0, true, null]"},
        {"[\"\x7f\\u0000\\u001f/\\n\\f\xc2\x80\",{},[]]", "[\"\\u007f\\u0000\\u001f/\\n\\f\\u0080\", {}, []]"},
        {"{\"a\":1,\"a\":2}", "{\"a\": 2}"},
    };
    Buf out = buf_make(1000);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        JsonOut w = json_out(&out, JSON_ASCII);
        buf_clear(&out);
        json_put_sorted(&w, json_doc(cases[i].in));
        if (!str_eq(buf_str(&out), str_from(cases[i].ascii)))
            fail_msg("%s became %.*s", cases[i].in, STR_ARG(buf_str(&out)));
    }
    buf_clear(&out);
    JsonOut w = json_out(&out, JSON_ASCII);
    json_put_str(&w, STR("\xff\xf4\x90x"));         /* what is no UTF-8, after and before good bytes */
    json_put_digits(&w, STR("18446744073709551616"));
    assert_true(str_eq(buf_str(&out), STR("\"\\ufffd\\ufffd\\ufffdx\", 18446744073709551616")));
    buf_free(&out);
}

static void json_number_test(void **state)
{
    static const struct { const char *in; JsonType type; int64_t integer; double real; } cases[] = {
        {"0", JSON_INT, 0, 0}, {"-0", JSON_INT, 0, 0}, {"9223372036854775807", JSON_INT, INT64_MAX, 0x1p63},
        {"-9223372036854775808", JSON_INT, INT64_MIN, -0x1p63}, {"9007199254740993", JSON_INT, 9007199254740993, 0x1p53},
        {"9223372036854775808", JSON_REAL, -7, 0x1p63}, {"-9223372036854775809", JSON_REAL, -7, -0x1p63},
        {"9007199254740992.0", JSON_REAL, 9007199254740992, 0x1p53}, {"9007199254740994.0", JSON_REAL, -7, 9007199254740994.0},
        {"1.0", JSON_REAL, 1, 1}, {"1e3", JSON_REAL, 1000, 1000}, {"1.5", JSON_REAL, -7, 1.5}, {"1E-2", JSON_REAL, -7, 0.01},
        {"1e400", JSON_REAL, -7, (double)INFINITY}, {"-1e400", JSON_REAL, -7, -(double)INFINITY},
        {"0.1", JSON_REAL, -7, 0.1}, {"123456789012345678901234567890", JSON_REAL, -7, 123456789012345678901234567890.0},
    };
    char text[100];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        snprintf(text, sizeof text, "[%s,%s]", cases[i].in, cases[i].in);
        for (size_t n = 0; n < 3; n++) {    /* before a comma, before a bracket, at the end */
            const Json *v = n == 2 ? json_doc(cases[i].in) : json_at(json_doc(text), n);
            if (v->type != cases[i].type || json_int(v, -7) != cases[i].integer || json_real(v, -7) != cases[i].real ||
                !str_eq(v->text, str_from(cases[i].in)))
                fail_msg("%s: %lld %g", cases[i].in, (long long)json_int(v, -7), json_real(v, -7));
        }
    }
}

static void json_look_test(void **state)
{
    const Json *v = json_doc("{\"s\":\"x\\u0000y\",\"a\":[true,7],\"o\":{\"k\":\"deep\"},\"n\":null,\"\":1}");

    (void)state;
    assert_true(str_eq(json_str(json_get(v, "s")), STR("x\0y")));
    assert_true(str_eq(json_str(json_get(json_get(v, "o"), "k")), STR("deep")));
    assert_string_equal(json_str(json_get(json_get(v, "o"), "k")).p, "deep");
    assert_true(json_bool(json_at(json_get(v, "a"), 0), false));
    assert_int_equal(json_int(json_at(json_get(v, "a"), 1), 0), 7);
    assert_int_equal(json_int(json_get(v, ""), 0), 1);
    assert_int_equal(json_count(v), 5);
    assert_int_equal(json_count(json_get(v, "a")), 2);
    /* what is not there, and what is something else */
    assert_null(json_get(v, "x"));
    assert_null(json_get(json_get(v, "a"), "s"));
    assert_null(json_get(NULL, "s"));
    assert_null(json_at(json_get(v, "a"), 2));
    assert_null(json_at(v, 0));
    assert_null(json_str(json_get(v, "n")).p);
    assert_null(json_str(NULL).p);
    assert_int_equal(json_int(json_get(v, "s"), 5), 5);
    assert_int_equal(json_int(NULL, 5), 5);
    assert_true(json_bool(json_get(v, "n"), true));
    assert_int_equal(json_count(json_get(v, "s")), 0);
}

static void json_refuse_test(void **state)
{
    static const struct { Str in; const char *say; } cases[] = {
        {{"", 0}, "the text ends where a value should be at byte 0"},
        {{"  ", 2}, "the text ends where a value should be at byte 2"},
        {{"\xef\xbb\xbf{}", 5}, "expected a value at byte 0"},
        {{"[1 2]", 5}, "expected ',' or ']' at byte 3"},
        {{"[1,]", 4}, "expected a value at byte 3"},
        {{"{\"a\":1,}", 8}, "expected a string at byte 7"},
        {{"{\"a\" 1}", 7}, "expected ':' at byte 5"},
        {{"{\"a\":1 2}", 9}, "expected ',' or '}' at byte 7"},
        {{"{1:2}", 5}, "expected a string at byte 1"},
        {{"01", 2}, "something follows the value at byte 1"},
        {{"1\0", 2}, "something follows the value at byte 1"},
        {{"-", 1}, "expected a digit at byte 1"},
        {{"1.", 2}, "expected a digit at byte 2"},
        {{"1e+", 3}, "expected a digit at byte 3"},
        {{"+1", 2}, "expected a value at byte 0"},
        {{"NaN", 3}, "expected a value at byte 0"},
        {{"truE", 4}, "expected a value at byte 0"},
        {{"[1] []", 6}, "something follows the value at byte 4"},
        {{"\"a\nb\"", 5}, "control character in a string at byte 2"},
        {{"\"\x1f\"", 3}, "control character in a string at byte 1"},
        {{"\"abc", 4}, "the text ends inside a string at byte 4"},
        {{"\"a\\", 3}, "the text ends inside a string at byte 2"},
        {{"\"\\x\"", 4}, "unknown escape at byte 1"},
        {{"\"\\\0\"", 4}, "unknown escape at byte 1"},
        {{"\"\\u12g4\"", 8}, "malformed \\u escape, or half of a surrogate pair at byte 1"},
        {{"\"\\u123\"", 7}, "malformed \\u escape, or half of a surrogate pair at byte 1"},
        {{"\"\\ud83d\"", 8}, "malformed \\u escape, or half of a surrogate pair at byte 1"},
        {{"\"\\ude00\"", 8}, "malformed \\u escape, or half of a surrogate pair at byte 1"},
        {{"\"\\ud83d\\ud83d\"", 14}, "malformed \\u escape, or half of a surrogate pair at byte 1"},
        {{"\"\\ud83d\\n\"", 10}, "malformed \\u escape, or half of a surrogate pair at byte 1"},
        {{"\"\\ud83d\\u", 9}, "malformed \\u escape, or half of a surrogate pair at byte 1"},
        {{"[\"\xff\"]", 5}, "not UTF-8 at byte 2"},
        {{"[\"\xed\xa0\x80\"]", 7}, "not UTF-8 at byte 2"},
    };
    char want[200];
    Err  err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        snprintf(want, sizeof want, "JSON: %s", cases[i].say);
        if (!json_refuses(cases[i].in, &err) || err.kind != ERR_INPUT || strcmp(err.text, want) != 0)
            fail_msg("%.*s: %s", STR_ARG(cases[i].in), err.text);
    }
}

/* A document ends nowhere but at its end. */
static void json_cut_test(void **state)
{
    static const Str whole = {"{\"id\": \"\\u4e2d\\ud83d\\ude00\xe4\xb8\xad\", \"n\": [-1.5e+3, true, null], \"o\": {\"\": {}}}", 74};
    Err err;

    (void)state;
    assert_false(json_refuses(whole, &err));
    for (size_t n = 0; n < whole.n; n++)
        if (!json_refuses((Str){whole.p, n}, &err))
            fail_msg("%zu bytes were taken for a document", n);
}

/* `head` so often, then `tail` so often. */
static Str json_many(Buf *b, const char *head, size_t heads, const char *tail, size_t tails)
{
    buf_clear(b);
    for (size_t i = 0; i < heads; i++)
        buf_add(b, str_from(head));
    for (size_t i = 0; i < tails; i++)
        buf_add(b, str_from(tail));
    return buf_str(b);
}

static void json_limit_test(void **state)
{
    enum { D = LIMIT_JSON_DEPTH };
    Buf b = buf_make(JSON_TEST_BYTES);
    Err err;

    (void)state;
    assert_false(json_refuses(json_many(&b, "[", D, "]", D), &err));
    assert_true(json_refuses(json_many(&b, "[", D + 1, "]", D + 1), &err) && err.kind == ERR_LIMIT);
    assert_string_equal(err.text, "JSON: more than 128 levels at byte 128");
    assert_true(json_refuses(json_many(&b, "{\"\":", D + 1, "", 0), &err) && err.kind == ERR_LIMIT);
    assert_true(json_refuses(json_many(&b, "[", 3000000, "", 0), &err) && err.kind == ERR_LIMIT);

    /* the array itself is a value, too */
    json_many(&b, "[0", 1, ",0", LIMIT_JSON_VALUES - 2);
    buf_addc(&b, ']');
    assert_false(json_refuses(buf_str(&b), &err));
    json_many(&b, "[0", 1, ",0", LIMIT_JSON_VALUES - 1);
    buf_addc(&b, ']');
    assert_true(json_refuses(buf_str(&b), &err) && err.kind == ERR_LIMIT);
    assert_string_equal(err.text, "JSON: more than 1000000 values at byte 1999999");

    /* a number of a megabyte */
    const Json *v = NULL;
    arena_reset(&json_arena);
    assert_true(json_parse(json_many(&b, "9", 1 << 20, "", 0), &json_arena, &v, &err));
    assert_true(v->type == JSON_REAL && v->text.n == 1 << 20 && json_real(v, 0) == (double)INFINITY);
    assert_int_equal(json_int(v, 3), 3);
    buf_free(&b);
}

/* One string, as long as a document may be, and one byte more. */
static void json_size_test(void **state)
{
    char       *text = mem_new(LIMIT_JSON_BYTES + 1);
    const Json *v = NULL;
    Err         err;

    (void)state;
    memset(text, 'x', LIMIT_JSON_BYTES + 1);
    text[0] = text[LIMIT_JSON_BYTES - 1] = text[LIMIT_JSON_BYTES] = '"';
    arena_reset(&json_arena);
    assert_true(json_parse((Str){text, LIMIT_JSON_BYTES}, &json_arena, &v, &err));
    assert_int_equal(json_str(v).n, LIMIT_JSON_BYTES - 2);
    assert_false(json_parse((Str){text, LIMIT_JSON_BYTES + 1}, &json_arena, &v, &err));
    assert_int_equal(err.kind, ERR_LIMIT);
    assert_string_equal(err.text, "JSON: 134217729 bytes, more than 134217728");
    mem_free(text);
}

/* The worst documents take 50 MB beside their text. */
static void json_worst_test(void **state)
{
    static const char *const heads[] = {"[[]", "[{}", "[\"\"", "{\"\":0", "{\"a\":{}", "{\"abcdefghijkl\":[]"};
    static const char *const more[] = {",[]", ",{}", ",\"\"", ",\"\":0", ",\"a\":{}", ",\"abcdefghijkl\":[]"};
    Buf         b = buf_make(JSON_TEST_BYTES);
    const Json *v = NULL;
    Err         err;

    (void)state;
    assert_int_equal(sizeof(Json), 32);
    for (size_t i = 0; i < COUNT_OF(heads); i++) {
        size_t count = JSON_TEST_BYTES / strlen(more[i]) - 2;
        if (count > LIMIT_JSON_VALUES - 3)
            count = LIMIT_JSON_VALUES - 3;
        json_many(&b, heads[i], 1, more[i], count);
        buf_addc(&b, heads[i][0] == '[' ? ']' : '}');
        arena_reset(&json_arena);
        assert_true(json_parse(buf_str(&b), &json_arena, &v, &err));
        assert_int_equal(json_count(v), heads[i][0] == '[' ? count + 1 : 1);
        assert_true(json_arena.used < b.n + 50000000);
    }
    /* a million names, each given twice */
    buf_clear(&b);
    for (unsigned i = 0; i < 600000; i++)
        buf_addf(&b, "%s\"%u\":%u", i ? "," : "{", i % 300000, i);
    buf_addc(&b, '}');
    arena_reset(&json_arena);
    assert_true(json_parse(buf_str(&b), &json_arena, &v, &err));
    assert_int_equal(json_count(v), 300000);
    assert_int_equal(json_int(json_get(v, "299999"), 0), 599999);
    assert_true(str_eq(v->keys[7], STR("7")));
    assert_int_equal(json_int(json_at(json_doc("[3]"), 0), 0), 3);
    buf_free(&b);
    arena_free(&json_arena);
}

static const struct CMUnitTest json_tests[] = {
    cmocka_unit_test(json_round_test),
    cmocka_unit_test(json_style_test),
    cmocka_unit_test(json_write_test),
    cmocka_unit_test(json_real_test),
    cmocka_unit_test(json_sorted_test),
    cmocka_unit_test(json_number_test),
    cmocka_unit_test(json_look_test),
    cmocka_unit_test(json_refuse_test),
    cmocka_unit_test(json_cut_test),
    cmocka_unit_test(json_limit_test),
    cmocka_unit_test(json_size_test),
    cmocka_unit_test(json_worst_test),
};
