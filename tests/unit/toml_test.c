#include "base/limits.h"
#include "data/toml.h"

static bool toml_read(Str text, Arena *a, const Toml **doc, Err *err)
{
    *doc = NULL;
    return toml_parse(guard_copy(text), a, doc, err);
}

/* The member at "a.b.2": names, or numbers of elements; "" is v itself. */
static const Toml *toml_at(const Toml *v, const char *path)
{
    Str      rest = str_from(path), part;
    uint64_t i;

    while (*path && v && str_cut(&rest, '.', &part)) {
        if (v->type == TOML_ARRAY)
            v = num_u64(part, &i) && i < v->count ? &v->items[i] : NULL;
        else
            v = toml_get_str(v, part);
    }
    return v;
}

#define TOML_TOP "# top\ncore.provider = \"x\" # c\n\n"
#define TOML_BODY "\n  a = [ 1, {b='c', d.e = 2}, [] ]\r\nm = \"\"\"\n[no.header]\nx\"\"\"\n# of the next\n"
#define TOML_DOC TOML_TOP "[ \"box\" ]\n" TOML_BODY " [providers.demo.sub] # c\nk = 2024-01-01 10:00:00\n" \
                 "[providers.demo]\n[[t]]\nq=1\n[t.u]\n[[t]]"

/* Where a value stands: `pair` is [key_at, end), `value` [at, end). */
static void toml_place_test(void **state)
{
    enum { HEADER = 1, DOTTED = 2, INLINED = 4 };
    static const struct { const char *path, *pair, *value; int how; } cases[] = {
        {"", TOML_TOP, TOML_TOP, HEADER},
        {"core", "", "", DOTTED},
        {"core.provider", "core.provider = \"x\"", "\"x\"", 0},
        {"box", "[ \"box\" ]\n" TOML_BODY, TOML_BODY, HEADER},
        {"box.a", "a = [ 1, {b='c', d.e = 2}, [] ]", "[ 1, {b='c', d.e = 2}, [] ]", INLINED},
        {"box.a.0", "1", "1", 0},
        {"box.a.1", "{b='c', d.e = 2}", "{b='c', d.e = 2}", INLINED},
        {"box.a.1.b", "b='c'", "'c'", 0},
        {"box.a.1.d", "", "", DOTTED},
        {"box.a.1.d.e", "d.e = 2", "2", 0},
        {"box.a.2", "[]", "[]", INLINED},
        {"box.m", "m = \"\"\"\n[no.header]\nx\"\"\"", "\"\"\"\n[no.header]\nx\"\"\"", 0},
        {"providers", "", "", 0},
        {"providers.demo", "[providers.demo]\n", "", HEADER},
        {"providers.demo.sub", "[providers.demo.sub] # c\nk = 2024-01-01 10:00:00\n", "k = 2024-01-01 10:00:00\n", HEADER},
        {"providers.demo.sub.k", "k = 2024-01-01 10:00:00", "2024-01-01 10:00:00", 0},
        {"t", "", "", 0},
        {"t.0", "[[t]]\nq=1\n", "q=1\n", HEADER},
        {"t.0.q", "q=1", "1", 0},
        {"t.0.u", "[t.u]\n", "", HEADER},
        {"t.1", "[[t]]", "", HEADER},
    };
    Arena       a = arena_make(1 << 20);
    const Str   in = STR(TOML_DOC);
    const Toml *doc;
    Err         err;

    (void)state;
    if (!toml_read(in, &a, &doc, &err))
        fail_msg("%s", err.text);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const Toml *v = toml_at(doc, cases[i].path);
        if (!v)
            fail_msg("%s: missing", cases[i].path);
        Str pair = str_from_to(in, v->key_at, v->end), value = str_from_to(in, v->at, v->end);
        if (!str_eq(pair, str_from(cases[i].pair)) || !str_eq(value, str_from(cases[i].value)))
            fail_msg("%s: <%.*s> <%.*s>", cases[i].path, STR_ARG(pair), STR_ARG(value));
        if ((v->header ? HEADER : 0) + (v->dotted ? DOTTED : 0) + (v->inlined ? INLINED : 0) != cases[i].how)
            fail_msg("%s: header %d, dotted %d, inlined %d", cases[i].path, v->header, v->dotted, v->inlined);
    }
    arena_free(&a);
}

/* Every value of every document, so also of the toml-test data, stands inside
 * its text, and where it says; the members of a body lie in it. */
static void toml_inside(const Toml *v, Str in)
{
    assert_true(v->key_at <= v->at && v->at <= v->end && v->end <= in.n);
    if (v->header && v->key_at != v->at)
        assert_true(in.p[v->key_at] == '[' && (v->at == in.n || in.p[v->at - 1] == '\n'));
    if (v->type == TOML_STRING)
        assert_true(v->at < v->end && in.p[v->at] == in.p[v->end - 1]);
    for (uint32_t i = 0; (v->type == TOML_TABLE || v->type == TOML_ARRAY) && i < v->count; i++) {
        const Toml *m = &v->items[i];
        toml_inside(m, in);
        if (v->inlined || (v->header && !m->header && m->at != m->end))
            assert_true(m->key_at >= v->at && m->end <= v->end);
    }
}

/* Cut at every byte: read, or refused with a place, and nothing read behind the
 * end. What is whole is the same with CR LF for each LF. */
static void toml_cut_test(void **state)
{
    static const char *const more[] = {
        TOML_DOC "\n", "a = \"\\u00e9\\U0001F600\\t\\\\\"\nb = '''\n''x'''''\nc = \"\"\"\\\n  \n y\"\"\"\n",
        "a = [ # c\n -0x, ]\n", "a = 0xdead_beef\nb = 0o17\nc = 0b1_0\nd = -1_000\ne = +9223372036854775807\nf = 9223372036854775808\n",
        "a = -1.5e+1_0\nb = +inf\nc = nan\nd = 6.626e-34\n", "a=1979-05-27T07:32:00.999999-07:30\nb = 1979-05-27\nc = 07:32:00\n",
        "\"\xc3\xa9\" = true\n'' = false\n[[a]]\n[[a.b]]\n[a.b.c.d]\n",
    };
    Arena       a = arena_make(1 << 20);
    const Toml *doc;
    Err         err;
    size_t      read = 0;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(more); i++)
        for (size_t n = 0; n <= strlen(more[i]); n++) {
            Str in = {more[i], n};
            arena_reset(&a);
            if (toml_read(in, &a, &doc, &err)) {
                toml_inside(doc, in);
                read++;
            } else {
                assert_true(err.kind == ERR_INPUT && err.code == E0000 && strncmp(err.text, "line ", 5) == 0);
            }
        }
    assert_int_equal(read, 191);     /* as many as Python reads */
    arena_free(&a);
}

static void toml_value_test(void **state)
{
    static const struct { const char *in; TomlType type; int64_t integer; double real; const char *text; } cases[] = {
        {"9223372036854775807", TOML_INT, INT64_MAX, 0, NULL}, {"-9223372036854775808", TOML_INT, INT64_MIN, 0, NULL},
        {"9_223_372_036_854_775_808", TOML_BIG, 0, 0, "9223372036854775808"}, {"0x7fff_ffff_ffff_ffff", TOML_INT, INT64_MAX, 0, NULL},
        {"0x8000000000000000", TOML_BIG, 0, 0, "9223372036854775808"}, {"-9223372036854775809", TOML_BIG, 0, 0, "-9223372036854775809"},
        {"0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", TOML_BIG, 0, 0, "340282366920938463463374607431768211455"},
        {"0o7777777777777777777777", TOML_BIG, 0, 0, "73786976294838206463"}, {"-0", TOML_INT, 0, 0, NULL}, {"+0", TOML_INT, 0, 0, NULL},
        {"0b1", TOML_INT, 1, 0, NULL}, {"1000000000000000000000000000", TOML_BIG, 0, 0, "1000000000000000000000000000"},
        {"1e3", TOML_FLOAT, 0, 1000, "1e3"}, {"-1_0.5", TOML_FLOAT, 0, -10.5, "-1_0.5"}, {"1e400", TOML_FLOAT, 0, (double)INFINITY, "1e400"},
        {"\"a\\u0000b\"", TOML_STRING, 0, 0, "a"}, {"'''\r\na\r\nb'''", TOML_STRING, 0, 0, "a\nb"},
        {"\"\"\"\\  \r\n  x\"\"\"", TOML_STRING, 0, 0, "x"}, {"0000-02-29", TOML_DATE, 0, 0, "0000-02-29"}, {"1900-02-28", TOML_DATE, 0, 0, "1900-02-28"},
    };
    Arena       a = arena_make(1 << 20);
    char        text[100];
    const Toml *doc;
    Err         err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        snprintf(text, sizeof text, "v = %s", cases[i].in);
        if (!toml_read(str_from(text), &a, &doc, &err))
            fail_msg("%s: %s", text, err.text);
        const Toml *v = toml_get(doc, "v");
        if (v->type != cases[i].type || v->integer != cases[i].integer || v->real != cases[i].real ||
            (cases[i].text && strcmp(v->text.p, cases[i].text) != 0))
            fail_msg("%s: type %d, %lld, %g, %s", text, v->type, (long long)v->integer, v->real, v->text.p);
    }
    assert_true(toml_get(NULL, "v") == NULL && toml_get(toml_get(doc, "v"), "v") == NULL && !toml_str(NULL).p && !toml_str(doc).p);
    arena_free(&a);
}

static void toml_refuse_test(void **state)
{
    static const struct { const char *in, *text; } cases[] = {
        {"a", "line 1, column 2: expected '=' behind the key"},
        {"\n\xc3\xa9 = 1", "line 2, column 1: expected a key"},
        {"x = \"\xc3\xa9\xe4\xb8\xad\" y", "line 1, column 10: expected the end of the line"},
        {"a = 1\r\nb = 2\rc = 3\n", "line 2, column 6: a carriage return without a line feed"},
        {"# \x01", "line 1, column 3: a control character"}, {"a = 'b\x7f'", "line 1, column 7: a control character"},
        {"\xef\xbb\xbf" "a = 1", "line 1, column 1: expected a key"}, {"a = '\xff'", "line 1, column 6: this is not UTF-8"},
        {"a = '\xed\xa0\x80'", "line 1, column 6: this is not UTF-8"}, {"a = \"\\ud800\"", "line 1, column 6: this escape is no character"},
        {"a.b = 1\n[a]\n", "line 2, column 2: a is there already"}, {"[a]\n[a]", "line 2, column 2: a is there already"},
        {"[a.b]\n[a]\nb.c = 1", "line 3, column 1: b has a header: dotted keys cannot add to it"},
        {"a = {}\na.b = 1", "line 2, column 1: a is complete: nothing can be added to an inline table"},
        {"a = {}\n[a.b]", "line 2, column 2: a is complete: nothing can be added to an inline table"},
        {"a = 1\na.b = 1", "line 2, column 1: a is no table"}, {"a = []\n[[a]]", "line 2, column 3: a is there already, and is no array of tables"},
        {"[[a]]\n[a]", "line 2, column 2: a is there already"}, {"a=1\n\"a\"=2", "line 2, column 1: \"a\" stands here a second time"},
        {"[[a]]\n[[a.b]]\n[a]\nb.c=1", "line 3, column 2: a is there already"},
        {"'\xc2\x9b' = 1\n'\xc2\x9b' = 1", "line 2, column 1: '' stands here a second time"},
        {"a = {b = 1\n}", "line 1, column 11: expected ',' or '}' on the same line"}, {"a = [1 2]", "line 1, column 8: expected ',' or ']'"},
        {"[a", "line 1, column 3: expected ']'"}, {"[[a]", "line 1, column 4: expected ']]'"}, {"a = 1979-02-29", "line 1, column 5: this is no date or time that exists"},
        {"a = 1.", "line 1, column 5: this is no number"}, {"a = 01.5", "line 1, column 5: this is no number"},
        {"a = 1900-02-29", "line 1, column 5: this is no date or time that exists"},
        {"a = 24:00:00", "line 1, column 5: this is no date or time that exists"}, {"a = 'b", "line 1, column 5: this string does not end"},
        {"\"\"\"a\"\"\" = 1", "line 1, column 1: a multi-line string cannot be a key"}, {"a = ", "line 1, column 5: expected a value"},
        {"a = \"\\q\"", "line 1, column 6: unknown escape in a string"},
    };
    Arena       a = arena_make(1 << 20);
    const Toml *doc;
    Err         err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (toml_read(str_from(cases[i].in), &a, &doc, &err) || strcmp(err.text, cases[i].text) != 0)
            fail_msg("%s: %s", cases[i].in, doc ? "read" : err.text);
    assert_false(toml_read((Str){"a = 'b\0c'", 9}, &a, &doc, &err));
    assert_string_equal(err.text, "line 1, column 7: a control character");
    arena_free(&a);
}

static Str toml_many(Buf *b, const char *head, size_t heads, const char *tail, size_t tails)
{
    buf_clear(b);
    for (size_t i = 0; i < heads; i++)
        buf_add(b, str_from(head));
    for (size_t i = 0; i < tails; i++)
        buf_add(b, str_from(tail));
    return buf_str(b);
}

/* Both sides of each limit, in each way of going deep or wide. */
static void toml_limit_test(void **state)
{
    enum { D = LIMIT_TOML_DEPTH };
    static const struct { const char *head; int heads; const char *tail; int tails; const char *last; bool good; } cases[] = {
        {"[", D + 1, "]", D + 1, NULL, false}, {"{a=", D - 1, "1", 1, "}", true}, {"{a=", D, "1", 1, "}", false},
        {"[", 500000, "", 0, NULL, false}, {"{a=", 300000, "", 0, NULL, false},
    };
    Arena       a = arena_make(ARENA_COMMAND);
    Buf         b = buf_make(2 * LIMIT_TOML_BYTES), in = buf_make(2 * LIMIT_TOML_BYTES);
    const Toml *doc;
    Err         err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        buf_clear(&in);
        buf_add(&in, STR("a="));
        buf_add(&in, toml_many(&b, cases[i].head, (size_t)cases[i].heads, cases[i].tail, (size_t)cases[i].tails));
        for (int k = 0; cases[i].last && k < cases[i].heads; k++)
            buf_add(&in, str_from(cases[i].last));
        arena_reset(&a);
        bool ok = toml_read(buf_str(&in), &a, &doc, &err);
        if (ok != cases[i].good || (!ok && err.kind != ERR_LIMIT))
            fail_msg("case %zu: %s", i, ok ? "read" : err.text);
    }
    /* arrays that are still open when the text ends */
    buf_clear(&in);
    buf_add(&in, STR("a="));
    buf_add(&in, toml_many(&b, "[", D - 1, "", 0));
    assert_true(!toml_read(buf_str(&in), &a, &doc, &err) && err.kind == ERR_INPUT);
    /* dotted keys and headers */
    for (int extra = 0; extra < 2; extra++) {
        toml_many(&b, "a.", D - 1 + (size_t)extra, "a = 1", 1);
        assert_true(toml_read(buf_str(&b), &a, &doc, &err) == !extra);
        toml_many(&b, "a.", D - 1 + (size_t)extra, "a]", 1);
        buf_clear(&in);
        buf_addc(&in, '[');
        buf_add(&in, buf_str(&b));
        assert_true(toml_read(buf_str(&in), &a, &doc, &err) == !extra);
        assert_true(!extra || err.kind == ERR_LIMIT);
    }
    /* values: the array is one */
    for (int extra = 0; extra < 2; extra++) {
        toml_many(&b, "a=[", 1, "1,", LIMIT_TOML_VALUES - 1 + (size_t)extra);
        buf_addc(&b, ']');
        arena_reset(&a);
        assert_true(toml_read(buf_str(&b), &a, &doc, &err) == !extra);
        assert_true(!extra || err.kind == ERR_LIMIT);
        assert_true(a.used < (size_t)40 << 20);
    }
    /* bytes */
    for (int extra = 0; extra < 2; extra++) {
        toml_many(&b, "#", LIMIT_TOML_BYTES + (size_t)extra, "", 0);
        assert_true(toml_read(buf_str(&b), &a, &doc, &err) == !extra);
        assert_true(!extra || err.kind == ERR_LIMIT);
    }
    /* digits */
    for (int extra = 0; extra < 2; extra++)
        for (int hex = 0; hex < 2; hex++) {
            toml_many(&b, hex ? "a=0x" : "a=", 1, "f" + !hex, 0);
            for (size_t i = 0; i < LIMIT_TOML_DIGITS + (size_t)extra; i++)
                buf_addc(&b, hex ? 'f' : '9');
            assert_true(toml_read(buf_str(&b), &a, &doc, &err) == !extra);
            assert_true(extra ? err.kind == ERR_LIMIT : doc->items[0].text.n == (hex ? 5178 : LIMIT_TOML_DIGITS));
        }
    buf_free(&in);
    buf_free(&b);
    arena_free(&a);
}

/* Made to be slow: many keys, many tables, many long numbers. */
static void toml_slow_test(void **state)
{
    Arena       a = arena_make(ARENA_COMMAND);
    Buf         b = buf_make(LIMIT_TOML_BYTES);
    const Toml *doc;
    Err         err;

    (void)state;
    for (int i = 0; b.n + 20 < LIMIT_TOML_BYTES && i < LIMIT_TOML_VALUES; i++)
        buf_addf(&b, "k%d=%d\n", i, i);
    assert_true(toml_read(buf_str(&b), &a, &doc, &err) && doc->count > 70000);
    arena_reset(&a);
    buf_clear(&b);
    for (int i = 0; b.n + 20 < LIMIT_TOML_BYTES; i++)
        buf_addf(&b, "[a.b%d.c]\n", i);
    assert_true(toml_read(buf_str(&b), &a, &doc, &err) || err.kind == ERR_LIMIT);
    arena_reset(&a);
    buf_clear(&b);
    for (int i = 0; b.n + LIMIT_TOML_DIGITS + 20 < LIMIT_TOML_BYTES; i++) {
        buf_addf(&b, "k%d = 0x", i);
        for (int k = 0; k < LIMIT_TOML_DIGITS; k++)
            buf_addc(&b, 'f');
        buf_addc(&b, '\n');
    }
    assert_true(toml_read(buf_str(&b), &a, &doc, &err) && doc->count > 200);
    buf_free(&b);
    arena_free(&a);
}

static const struct CMUnitTest toml_tests[] = {
    cmocka_unit_test(toml_place_test),
    cmocka_unit_test(toml_cut_test),
    cmocka_unit_test(toml_value_test),
    cmocka_unit_test(toml_refuse_test),
    cmocka_unit_test(toml_limit_test),
    cmocka_unit_test(toml_slow_test),
};
