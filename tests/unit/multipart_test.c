#include "net/multipart.h"

/* Everything a body says, as text: "[name|file]data;" for each part, "." at
 * the end, "!" for a refusal, "?" when the end is missing. */
static void multipart_test__feed(Multipart *m, Str in, Buf *out, bool *failed)
{
    MultipartEvent ev;
    Err            err;
    Step           step;

    if (*failed)
        return;
    while ((step = multipart_next(m, &in, &ev, &err)) == STEP_DONE) {
        if (ev.kind == MULTIPART_PART) {
            buf_addf(out, "[%.*s", STR_ARG(ev.name));
            if (ev.has_filename)
                buf_addf(out, "|%.*s", STR_ARG(ev.filename));
            buf_addc(out, ']');
        } else if (ev.kind == MULTIPART_DATA) {
            assert_true(ev.data.n > 0);
            buf_add(out, ev.data);
        } else {
            buf_addc(out, ev.kind == MULTIPART_PART_END ? ';' : '.');
        }
    }
    if (step == STEP_ERR) {
        *failed = true;
        buf_addc(out, '!');
    } else {
        assert_true(in.n == 0);
    }
}

static void multipart_test__end(Multipart *m, Buf *out, bool failed)
{
    Err err;

    if (!failed && !multipart_ended(m, &err))
        buf_addc(out, '?');
    multipart_free(m);
}

#define PART "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n"

static void multipart_read_test(void **state)
{
    static const struct { const char *in, *want; } cases[] = {
        {PART "one\r\n--B--\r\n", "[a]one;."},
        {PART "one\r\n--B--", "[a]one;."},
        {PART "\r\n--B--", "[a];."},
        {PART "\r\n\r\n--B--", "[a]\r\n;."},
        {PART "x\r\n" PART "y\r\n--B--\r\nepilogue --B\r\n", "[a]x;[a]y;."},
        {"preamble\r\nof --B two lines\r\n" PART "x\r\n--B--", "[a]x;."},
        {PART "\r\n--A\r--B\r\r\n-\r\n\r\n--B--", "[a]\r\n--A\r--B\r\r\n-\r\n;."},
        {PART "\r\r\n--B--", "[a]\r;."},
        {"--B \t\r\ncontent-disposition:form-data;name=a\r\n\r\nx\r\n--B--", "[a]x;."},
        {"--B\r\nContent-Type: text/plain\r\nContent-Disposition: form-data; name=\"m\"; filename=\"a \\\"b\\\" \\\\ C:\\d\"\r\n\r\n"
         "x\r\n--B--", "[m|a \"b\" \\ C:\\d]x;."},
        {"--B\r\nContent-Disposition: form-data; filename=\"\"; name=m\r\n\r\nx\r\n--B--", "[m|]x;."},
        {"--B--\r\n", "."},
        /* cut short */
        {"", "?"},
        {"--B\r\n", "?"},
        {PART, "[a]?"},
        {PART "x\r\n--B", "[a]x;?"},
        {PART "x\r\n--B-", "[a]x;?"},
        /* refused */
        {PART "x\r\n--Bx", "[a]x;!"},
        {PART "x\r\n--B-\r\n", "[a]x;!"},
        {PART "x\r\n--B --", "[a]x;!"},
        {PART "x\r\n--B\n", "[a]x;!"},
        {PART "x\r\n--B\rx", "[a]x;!"},
        {"--B\r\n\r\nx", "!"},
        {"--B\r\nContent-Disposition: form-data\r\n\r\nx", "!"},
        {"--B\r\nContent-Disposition: form-data; name=\r\n\r\nx", "!"},
        {"--B\r\nContent-Disposition: form-data; name=\"\"\r\n\r\nx", "!"},
        {"--B\r\nContent-Disposition: form-data; name=\"a\r\n\r\nx", "!"},
        {"--B\r\nContent-Disposition: form-data; name=a b\r\n\r\nx", "!"},
        {"--B\r\nContent-Disposition: attachment; name=a\r\n\r\nx", "!"},
        {"--B\r\nContent-Disposition: form-data; name=a\n\r\nx", "!"},
        {"--B\r\nContent-Disposition: form-data; name=\"a\001\"\r\n\r\nx", "!"},
        {"--B\r\nno colon\r\n\r\nx", "!"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Str all = str_from(cases[i].in);
        for (size_t cut = 0; cut <= all.n; cut++) {
            Multipart m = multipart_make(STR("B"));
            Buf       out = buf_make(1 << 16);
            bool      failed = false;
            multipart_test__feed(&m, guard_copy(str_from_to(all, 0, cut)), &out, &failed);
            multipart_test__feed(&m, guard_copy(str_from_to(all, cut, all.n)), &out, &failed);
            multipart_test__end(&m, &out, failed);
            buf_addc(&out, '\0');
            if (strcmp(out.p, cases[i].want) != 0)
                fail_msg("case %zu cut %zu: %s, not %s", i, cut, out.p, cases[i].want);
            buf_free(&out);
        }
    }
}

static void multipart_limits_test(void **state)
{
    Multipart m = multipart_make(STR("B"));
    Buf       in = buf_make(1 << 20), out = buf_make(1 << 20);
    bool      failed = false;

    (void)state;
    for (int i = 0; i < LIMIT_PARTS; i++)
        buf_add(&in, STR(PART "\r\n"));
    multipart_test__feed(&m, buf_str(&in), &out, &failed);
    assert_false(failed);
    multipart_test__feed(&m, STR(PART), &out, &failed);
    assert_true(failed);
    multipart_free(&m);

    for (size_t over = 0; over < 2; over++) {
        static const char head[] = "Content-Disposition: form-data; name=\"a\"\r\n";
        m = multipart_make(STR("B"));
        failed = false;
        buf_clear(&in);
        buf_addf(&in, "--B\r\n%sX:", head);
        while (in.n < 5 + LIMIT_PART_HEAD - 4 + over)
            buf_addc(&in, 'x');
        buf_add(&in, STR("\r\n\r\n"));
        multipart_test__feed(&m, buf_str(&in), &out, &failed);
        assert_int_equal(failed, over);
        multipart_free(&m);
    }
    buf_free(&in);
    buf_free(&out);
}

static void multipart_boundary_test(void **state)
{
    static const struct { const char *in, *want; } cases[] = {
        {"multipart/form-data; boundary=B", "B"},
        {"Multipart/Form-Data;charset=utf-8 ;BOUNDARY=\"a b\"", "a b"},
        {"multipart/form-data; boundary=----WebKitFormBoundary7MA4", "----WebKitFormBoundary7MA4"},
        {"multipart/form-data; boundary=1234567890123456789012345678901234567890123456789012345678901234567890",
         "1234567890123456789012345678901234567890123456789012345678901234567890"},
        {"multipart/form-data; boundary=12345678901234567890123456789012345678901234567890123456789012345678901", NULL},
        {"multipart/form-data", NULL}, {"multipart/form-data; boundary=", NULL}, {"", NULL},
        {"multipart/form-data; boundary=\"\"", NULL}, {"multipart/form-data; boundary=\"a \"", NULL},
        {"multipart/form-data; boundary=\"a", NULL}, {"multipart/form-data; boundary=\"a\tb\"", NULL},
        {"multipart/mixed; boundary=B", NULL}, {"application/json", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char   got[MULTIPART_BOUNDARY];
        size_t n = 0;
        Err    err;
        bool   ok = multipart_boundary(guard_copy(str_from(cases[i].in)), got, &n, &err);
        if (ok != (cases[i].want != NULL) || (ok && !str_eq((Str){got, n}, str_from(cases[i].want))))
            fail_msg("%s: %d %.*s", cases[i].in, ok, (int)n, got);
    }
}

/* What is written is read again, whatever it is and however it is cut, and its
 * size was known before. */
static void multipart_upload_test(void **state)
{
    static const char *files[] = {"", "x", "\r\n--B", "\r\n--0123456789abcde\r\n--0123456789abcdef", "a\r\n"};
    Arena             a = arena_make(1 << 16);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        for (size_t cap = 1; cap < 300; cap += 7) {
            Str             file = str_from(files[i]);
            MultipartUpload u;
            Source          from = multipart_upload(&u, &a, STR("0123456789abcdefg"), STR("{\"path\":\"/x\"}"), flow_from_str(&file));
            Multipart       m = multipart_make(STR("0123456789abcdefg"));
            Buf             out = buf_make(1 << 16);
            char            piece[300];
            int64_t         size = 0;
            size_t          n;
            bool            failed = false;
            Err             err;
            while (from.read(from.ctx, piece, cap, &n, &err) && n) {
                size += (int64_t)n;
                multipart_test__feed(&m, (Str){piece, n}, &out, &failed);
            }
            multipart_test__end(&m, &out, failed);
            Str want = arena_fmt(&a, "[metadata|metadata]{\"path\":\"/x\"};[file|file]%s;.", files[i]);
            assert_true(str_eq(buf_str(&out), want));
            assert_int_equal(size, from.size);
            buf_free(&out);
        }
        arena_reset(&a);
    }
    assert_int_equal(multipart_upload(&(MultipartUpload){0}, &a, STR("B"), STR("{}"), (Source){.size = -1}).size, -1);
    assert_true(str_eq(multipart_type(&a, STR("B")), STR("multipart/form-data; boundary=B")));
    arena_free(&a);
}

#undef PART

static const struct CMUnitTest multipart_tests[] = {
    cmocka_unit_test(multipart_read_test),
    cmocka_unit_test(multipart_limits_test),
    cmocka_unit_test(multipart_boundary_test),
    cmocka_unit_test(multipart_upload_test),
};
