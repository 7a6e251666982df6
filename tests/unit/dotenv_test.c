#include "data/dotenv.h"

/* What the tests have for a process environment. */
static Str dotenv_test_env(void *ctx, Str name)
{
    static const struct { Str name, value; } vars[] = {
        {{"OUT", 3}, {"out side", 8}}, {{"EMPTY", 5}, {"", 0}}, {{"A", 1}, {"env", 3}},
    };

    for (size_t i = 0; !ctx && i < COUNT_OF(vars); i++)
        if (str_eq(vars[i].name, name))
            return vars[i].value;
    return (Str){0};
}

static Dotenv dotenv_test_read(Str text, bool env, Arena *a)
{
    static int nothing;
    Dotenv     d = {0};
    Err        err;

    if (!dotenv_parse(guard_copy(text), (DotenvLookup){dotenv_test_env, env ? NULL : &nothing}, a, &d, &err))
        fail_msg("%.*s: %s", STR_ARG(text), err.text);
    return d;
}

static void dotenv_vectors_test(void **state)
{
    (void)state;
    vectors_whole("dotenv", 109);
}

/* Lines that are passed over, and do not take the next one with them. */
static void dotenv_broken_test(void **state)
{
    static const char *const lines[] = {"''=1", "'A=1", "=1", "A B=1", "A='x' y", "A=\"x", "export =1", "export"};
    Arena a = arena_make(1 << 20);
    char  text[100];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        arena_reset(&a);
        snprintf(text, sizeof text, "%s\nB=2\n", lines[i]);
        Dotenv d = dotenv_test_read(str_from(text), false, &a);
        bool   word = strcmp(lines[i], "export") == 0;      /* a key without a value */
        if (d.n != (word ? 2u : 1u) || !dotenv_get(&d, STR("B")) || !str_eq(dotenv_get(&d, STR("B"))->value, STR("2")))
            fail_msg("%s: %zu keys", lines[i], d.n);
    }
    arena_free(&a);
}

/* One key, V: its value, and whether it came from outside. */
static void dotenv_fill_test(void **state)
{
    static const struct { const char *text, *v; bool outside; } cases[] = {
        {"V=${OUT}", "out side", true}, {"V='${OUT}'", "out side", true}, {"V=x${OUT}y${OUT}", "xout sideyout side", true},
        {"V=${EMPTY:-d}", "", true}, {"V=${NOPE:-d}", "d", false}, {"V=${NOPE}", "", false}, {"V=${A}", "env", true},
        {"A=1\nV=${A}", "1", false}, {"A\nV=${A}", "", false}, {"W=${OUT}\nV=${W}", "out side", true},
        {"W=${OUT}\nW=2\nV=${W}", "2", false}, {"V=${W}\nW=1", "", false}, {"V=${A}\nA=1", "env", true}, {"V=${OUT}\nV=1", "1", false},
        {"V=\\${OUT}", "\\out side", true}, {"V=$OUT", "$OUT", false}, {"V=${", "${", false}, {"V=${OUT", "${OUT", false},
        {"V=${OUT:", "${OUT:", false}, {"V=${OUT:-", "${OUT:-", false}, {"V=${OUT:-x", "${OUT:-x", false}, {"V=${}", "", false},
        {"V=${:-d}", "d", false}, {"V=${OUT:+x}", "${OUT:+x}", false}, {"V=${x:+${OUT}}", "${x:+out side}", true},
        {"V=${x${OUT}", "", false}, {"V=${NOPE:-${OUT}}", "${OUT}", false}, {"V=${OUT:-a:b}", "out side", true},
    };
    Arena a = arena_make(1 << 20);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        arena_reset(&a);
        Dotenv             d = dotenv_test_read(str_from(cases[i].text), true, &a);
        const DotenvEntry *e = dotenv_get(&d, STR("V"));
        if (!e || !str_eq(e->value, str_from(cases[i].v)) || e->outside != cases[i].outside)
            fail_msg("%s: <%.*s> %d", cases[i].text, STR_ARG(e ? e->value : STR("missing")), e && e->outside);
    }
    arena_free(&a);
}

static void dotenv_cut_test(void **state)
{
    static const char text[] = "\xef\xbb\xbf" "export A = \"x\\n\xe4\xb8\xad ${OUT:-d}\" # c\r\n'k'='\\''\rB=x\xc2\xa0#\n";
    const Str whole = {text, sizeof text - 1};
    Arena a = arena_make(1 << 20);
    Err   err;

    (void)state;
    for (size_t n = 0; n <= whole.n; n++) {
        Dotenv d = {0};
        arena_reset(&a);
        bool ok = dotenv_parse(guard_copy((Str){whole.p, n}), (DotenvLookup){dotenv_test_env, NULL}, &a, &d, &err);
        assert_true(ok == utf8_valid((Str){whole.p, n}));
        assert_true(ok || strncmp(err.text, "not UTF-8 at byte ", 18) == 0);
        if (n == whole.n)
            assert_true(d.n == 3 && str_eq(dotenv_get(&d, STR("A"))->value, STR("x\n\xe4\xb8\xad out side")) &&
                        str_eq(dotenv_get(&d, STR("k"))->value, STR("'")) && str_eq(dotenv_get(&d, STR("B"))->value, STR("x")));
    }
    arena_free(&a);
}

/* Limits on both sides; and texts made to be slow or to grow. */
static void dotenv_limit_test(void **state)
{
    static const char *const slow[] = {"${", "A=${\n", "A=${B\n", "A='\n", "A=\"\\\n", "'", "A=\" ", "\\\"'A=", "A=${B:-\n", "A #"};
    Arena        a = arena_make(256 << 20);
    Buf          b = buf_make(2 * LIMIT_DOTENV);
    DotenvLookup env = {dotenv_test_env, NULL};
    Dotenv       d;
    Err          err;

    (void)state;
    buf_add(&b, STR("A="));
    while (b.n < LIMIT_DOTENV)
        buf_addc(&b, 'x');
    assert_true(dotenv_parse(buf_str(&b), env, &a, &d, &err) && d.v[0].value.n == LIMIT_DOTENV - 2);
    buf_addc(&b, 'x');
    assert_false(dotenv_parse(buf_str(&b), env, &a, &d, &err));
    assert_string_equal(err.text, "1048577 bytes, more than 1048576");

    /* each line twice as long as the one before: 1, 2, 4, ... */
    for (int lines = 23; lines <= 24; lines++) {
        buf_clear(&b);
        buf_add(&b, STR("A=x\n"));
        for (int i = 1; i < lines - 1; i++)
            buf_add(&b, STR("A=${A}${A}\n"));
        buf_add(&b, STR("B=y\n"));
        arena_reset(&a);
        assert_true(dotenv_parse(buf_str(&b), env, &a, &d, &err) == (lines == 23));
        assert_true(lines == 23 || err.kind == ERR_LIMIT);
    }
    for (size_t i = 0; i < COUNT_OF(slow); i++) {
        buf_clear(&b);
        buf_add(&b, i == 0 ? STR("A=") : STR(""));
        while (b.n + 8 < LIMIT_DOTENV)
            buf_add(&b, str_from(slow[i]));
        arena_reset(&a);
        assert_true(dotenv_parse(buf_str(&b), env, &a, &d, &err));
    }
    buf_clear(&b);
    for (int i = 0; b.n + 24 < LIMIT_DOTENV; i++)
        buf_addf(&b, "K%d=${K%d}\n", i, i / 2);
    arena_reset(&a);
    assert_true(dotenv_parse(buf_str(&b), env, &a, &d, &err) && d.n > 50000);
    buf_free(&b);
    arena_free(&a);
}

static Str dotenv_test_none(void *ctx, Str name)
{
    (void)ctx;
    (void)name;
    return (Str){0};
}

/* What is quoted is read back, alone and between other characters; and in one line. */
static void dotenv_quote_test(void **state)
{
    static const char *const frames[][2] = {{"", ""}, {"a", "b"}, {"$", "{A}"}, {"${A:-", "}"}, {"'", "'"}, {"\"", "\""}, {"\\", "\\"}, {"#", " #"}};
    Arena a = arena_make(8 << 20);

    (void)state;
    for (size_t f = 0; f < COUNT_OF(frames); f++)
        for (int c = 1; c < 256; c++) {
            Arena  own = a;
            char   middle[4] = "";
            Dotenv d;
            Err    err;
            utf8_put(middle, (uint32_t)(c == 0x85 ? 0x2028 : c));
            Str value = arena_fmt(&own, "%s%s%s", frames[f][0], middle, frames[f][1]);
            Str line = arena_fmt(&own, "K=%.*s", STR_ARG(dotenv_quote(guard_copy(value), &own)));
            assert_true(dotenv_parse(line, (DotenvLookup){dotenv_test_none, NULL}, &own, &d, &err));
            const DotenvEntry *e = dotenv_get(&d, STR("K"));
            if (!e || !str_eq(utf8_trim(e->value), utf8_trim(value)) || str_has(line, '\n') || str_has(line, '\r'))
                fail_msg("%.*s", STR_ARG(line));
        }
    arena_free(&a);
}

static void dotenv_spans_test(void **state)
{
    static const char text[] = "\xef\xbb\xbf# c\r\n export A = 1 # d\r\n\r\nB='x\r\ny'\rbad line\n\tC\n'D'=\"open\nE=2";
    static const struct { const char *key; size_t from, to; } want[] = {{"A", 8, 27}, {"B", 29, 38}, {"C", 47, 50}, {"E", 60, 63}};
    const DotenvSpan *spans;
    Arena  a = arena_make(8 << 20);
    size_t n;
    Err    err;

    (void)state;
    assert_true(dotenv_spans(guard_copy(STR(text)), &a, &spans, &n, &err) && n == COUNT_OF(want));
    for (size_t i = 0; i < n; i++)
        if (!str_eq(spans[i].key, str_from(want[i].key)) || spans[i].from != want[i].from || spans[i].to != want[i].to)
            fail_msg("%s: %zu to %zu", want[i].key, spans[i].from, spans[i].to);
    for (size_t cut = 0; cut < sizeof text; cut++) {
        if (!dotenv_spans(guard_copy((Str){text, cut}), &a, &spans, &n, &err))
            continue;               /* in the middle of a character */
        for (size_t i = 0; i < n; i++)
            assert_true(spans[i].from < spans[i].to && spans[i].to <= cut && (i == 0 || spans[i].from >= spans[i - 1].to));
    }
    arena_free(&a);
}

static const struct CMUnitTest dotenv_tests[] = {
    cmocka_unit_test(dotenv_quote_test),
    cmocka_unit_test(dotenv_spans_test),
    cmocka_unit_test(dotenv_vectors_test),
    cmocka_unit_test(dotenv_broken_test),
    cmocka_unit_test(dotenv_fill_test),
    cmocka_unit_test(dotenv_cut_test),
    cmocka_unit_test(dotenv_limit_test),
};
