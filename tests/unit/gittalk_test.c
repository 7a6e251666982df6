/* Git's conversation with servers made of text. The lines are those that real
 * servers were seen to send; the packs are those of pack_test.c. */
#include "host/gittalk.h"

/* A link: over HTTP an answer for each request, else all of them in one. Piece
 * by piece, and cut off where the test says. */
typedef struct GitTalkScript {
    GitLink    link;
    const Str *answers;     /* the first is the advertisement */
    size_t     count, answer, at;
    size_t     piece;       /* 0: as it is */
    size_t     cut, given;  /* cut 0: nowhere */
    size_t     again;       /* the last answer comes so many times more */
    Buf        sent;
    bool       closed, was_cut;
} GitTalkScript;

static bool gittalk_script__read(GitLink *l, Str *piece, Err *err)
{
    GitTalkScript *s = (GitTalkScript *)l;

    (void)err;
    *piece = (Str){0};
    if (s->answer >= s->count || (s->cut && s->given == s->cut))
        return true;
    Str rest = s->answers[s->answer];
    if (s->at == rest.n && !l->http && s->answer + 1 < s->count) {
        rest = s->answers[++s->answer];
        s->at = 0;
    }
    if (s->at == rest.n && s->again && s->answer + 1 == s->count) {
        s->again--;
        s->at = 0;
    }
    str_skip(&rest, s->at);
    if (s->piece && rest.n > s->piece)
        rest.n = s->piece;
    if (s->cut && rest.n > s->cut - s->given)
        rest.n = s->cut - s->given;
    s->at += rest.n;
    s->given += rest.n;
    *piece = rest;
    return true;
}

static bool gittalk_script__send(GitLink *l, Str request, Err *err)
{
    GitTalkScript *s = (GitTalkScript *)l;

    (void)err;
    buf_add(&s->sent, request);
    buf_addc(&s->sent, '|');
    if (l->http) {
        s->answer++;
        s->at = 0;
    }
    return true;
}

static bool gittalk_script__cut(GitLink *l, Err *err)
{
    ((GitTalkScript *)l)->was_cut = true;
    return err_set(err, ERR_CLOSED, E8010, "cut");
}

static bool gittalk_script__goes_on(GitLink *l, Err *err)
{
    (void)l, (void)err;
    return true;
}

static void gittalk_script__close(GitLink *l)
{
    ((GitTalkScript *)l)->closed = true;
}

static const GitLinkOps gittalk_script = {gittalk_script__read, gittalk_script__send, gittalk_script__cut,
                                          gittalk_script__goes_on, gittalk_script__close};

/* --- what servers say ------------------------------------------------------------- */

#define GITTALK_C "98fd6470164bb71c53a2a2c647413f1bff5b9226"
#define GITTALK_D "d67d8fbb0d0c1c9c2d4e5f60718293a4b5c6d7e8"
#define GITTALK_T "821c8ad200112233445566778899aabbccddeeff"
#define GITTALK_SERVICE "001e# service=git-upload-pack\n0000"
#define GITTALK_CAPS "000eversion 2\n0015agent=git/2.39.5\n0013ls-refs=unborn\n0027fetch=shallow wait-for-done filter\n" \
                     "0012server-option\n0017object-format=sha1\n0010object-info\n0000"
#define GITTALK_REFS "0050" GITTALK_C " HEAD symref-target:refs/heads/main\n003d" GITTALK_C " refs/heads/main\n" \
                     "003d" GITTALK_D " refs/heads/side\n006a" GITTALK_T " refs/tags/v1 peeled:" GITTALK_C "\n0000"
#define GITTALK_OLD_CAPS "multi_ack thin-pack side-band side-band-64k ofs-delta shallow deepen-since no-progress include-tag " \
                         "no-done symref=HEAD:refs/heads/main filter object-format=sha1 agent=git/2.39.5"
#define GITTALK_OLD_REFS "003d" GITTALK_C " refs/heads/main\n003d" GITTALK_D " refs/heads/side\n003a" GITTALK_T " refs/tags/v1\n" \
                         "003d" GITTALK_C " refs/tags/v1^{}\n0000"

/* A text packet in front of more text. */
static Str gittalk_test__packet(Buf *b, Str text, Str after)
{
    buf_clear(b);
    buf_addf(b, "%04zx", text.n + 4);
    buf_add(b, text);
    buf_add(b, after);
    return buf_str(b);
}

static Str gittalk_test__old(Buf *b, const char *before, Str caps)
{
    Buf first = buf_make(4096), line = buf_make(4096);

    buf_add(&first, STR(GITTALK_C " HEAD"));
    buf_addc(&first, 0);
    buf_add(&first, caps);
    buf_addc(&first, '\n');
    gittalk_test__packet(&line, buf_str(&first), STR(GITTALK_OLD_REFS));
    *b = buf_make(8192);
    buf_addf(b, "%s", before);
    buf_add(b, buf_str(&line));
    buf_free(&first);
    buf_free(&line);
    return buf_str(b);
}

/* An answer with the pack in pieces of n bytes on the side band. */
static Str gittalk_test__banded(Buf *b, const char *before, size_t n, const char *end)
{
    Str pack = {(const char *)pack_ofs, sizeof pack_ofs};

    *b = buf_make(64 << 10);
    buf_addf(b, "%s", before);
    buf_add(b, STR("000b\2note\r\n" "0005\1" "0004"));
    while (pack.n) {
        size_t take = n < pack.n ? n : pack.n;
        buf_addf(b, "%04zx\1", take + 5);
        buf_add(b, (Str){pack.p, take});
        str_skip(&pack, take);
    }
    buf_addf(b, "%s", end);
    return buf_str(b);
}

static const ObjectId *gittalk_test__id(const char *hex)
{
    static ObjectId id;

    assert_true(object_id_read(OBJECT_SHA1, str_from(hex), &id));
    return &id;
}

/* The whole way: the advertisement, the name, the pack. */
static bool gittalk_test__run(GitTalkScript *s, const char *name, bool history, bool no_blobs, GitTip *tip, Err *err)
{
    Buf      store = buf_make(1 << 20);
    Pack    *pack = pack_open(OBJECT_SHA1, &(PackStore){{pack_test__write, &store}, pack_test__get}, 4096, 8192);
    ObjectId id;
    GitTalk  t;

    *err = (Err){0};
    s->link.ops = &gittalk_script;
    s->answer = s->at = s->given = 0;
    s->closed = s->was_cut = false;
    s->sent = buf_make((size_t)1 << 20);
    bool ok = gittalk_begin(&t, &s->link, str_from(name), err);
    if (ok) {
        ok = gittalk_find(&t, tip, err);
        id = tip->id;
        ok = ok && gittalk_fetch(&t, &(GitWant){&id, 1, history, no_blobs && t.filter}, pack, err);
        ok = ok && pack_find(pack, gittalk_test__id(pack_ids[0])) && pack_find(pack, gittalk_test__id(pack_ids[4]));
        gittalk_end(&t);
    }
    assert_true(s->closed);
    assert_true(ok || err->code == E8010);
    pack_free(pack);
    buf_free(&store);
    return ok;
}

static void gittalk_test__sent(GitTalkScript *s, const char *want)
{
    if (!str_eq(buf_str(&s->sent), str_from(want)))
        fail_msg("sent %.*s", STR_ARG(buf_str(&s->sent)));
    buf_free(&s->sent);
}

/* --- version 2 -------------------------------------------------------------------- */

static void gittalk_two_test(void **state)
{
    static const size_t pieces[] = {0, 1, 7, 65536};
    Buf b;
    Str pack = gittalk_test__banded(&b, "0011shallow-info\n0034shallow " GITTALK_C "0001000dpackfile\n", 100, "0000");

    (void)state;
    for (int http = 0; http < 2; http++) {
        for (size_t i = 0; i < COUNT_OF(pieces); i++) {
            Str           answers[] = {http ? STR(GITTALK_SERVICE GITTALK_CAPS) : STR(GITTALK_CAPS), STR(GITTALK_REFS), pack};
            GitTalkScript s = {.link = {.http = http}, .answers = answers, .count = 3, .piece = pieces[i]};
            GitTip        tip;
            Err           err;
            if (!gittalk_test__run(&s, "main", true, true, &tip, &err))
                fail_msg("%s", err.text);
            assert_int_equal(object_id_cmp(&tip.id, gittalk_test__id(GITTALK_C)), 0);
            assert_false(tip.peeled);
            gittalk_test__sent(&s, "0014command=ls-refs\n0014agent=abx/" ABX_VERSION "\n0017object-format=sha1\n0001" "0009peel\n"
                               "0014ref-prefix main\n0019ref-prefix refs/main\n001eref-prefix refs/tags/main\n"
                               "001fref-prefix refs/heads/main\n0021ref-prefix refs/remotes/main\n"
                               "0026ref-prefix refs/remotes/main/HEAD\n0000|"
                               "0012command=fetch\n0014agent=abx/" ABX_VERSION "\n0017object-format=sha1\n0001" "0010no-progress\n"
                               "000eofs-delta\n0032want " GITTALK_C "\n000ddeepen 1\n0015filter blob:none\n0009done\n0000|");
        }
    }
    buf_free(&b);
}

/* What was not advertised is not sent. */
static void gittalk_little_test(void **state)
{
    Buf           b;
    Str           answers[] = {STR("000eversion 2\n000cls-refs\n000afetch\n0000"), STR(GITTALK_REFS),
                               gittalk_test__banded(&b, "000dpackfile\n", 1000, "0000")};
    GitTalkScript s = {.link = {.http = true}, .answers = answers, .count = 3};
    GitTip        tip;
    Err           err;

    (void)state;
    assert_true(gittalk_test__run(&s, "v1", true, true, &tip, &err));
    assert_int_equal(object_id_cmp(&tip.id, gittalk_test__id(GITTALK_T)), 0);
    assert_true(tip.peeled);
    assert_int_equal(object_id_cmp(&tip.commit, gittalk_test__id(GITTALK_C)), 0);
    gittalk_test__sent(&s, "0014command=ls-refs\n00010009peel\n0012ref-prefix v1\n0017ref-prefix refs/v1\n001cref-prefix refs/tags/v1\n"
                       "001dref-prefix refs/heads/v1\n001fref-prefix refs/remotes/v1\n0024ref-prefix refs/remotes/v1/HEAD\n0000|"
                       "0012command=fetch\n00010010no-progress\n000eofs-delta\n0032want " GITTALK_T "\n0009done\n0000|");
    buf_free(&b);
}

/* --- versions 0 and 1 ------------------------------------------------------------- */

static void gittalk_old_test(void **state)
{
    static const struct { const char *before; bool http; } kinds[] = {
        {GITTALK_SERVICE, true}, {GITTALK_SERVICE "000eversion 1\n", true}, {"", false}, {"000eversion 1\n", false},
    };
    Buf b, refs;
    Str pack = gittalk_test__banded(&b, "0034shallow " GITTALK_C "0000" "0008NAK\n", 100, "0000");

    (void)state;
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        Str           answers[] = {gittalk_test__old(&refs, kinds[i].before, STR(GITTALK_OLD_CAPS)), pack};
        GitTalkScript s = {.link = {.http = kinds[i].http}, .answers = answers, .count = 2, .piece = i};
        GitTip        tip;
        Err           err;
        if (!gittalk_test__run(&s, "v1", true, true, &tip, &err))
            fail_msg("kind %zu: %s", i, err.text);
        assert_int_equal(object_id_cmp(&tip.id, gittalk_test__id(GITTALK_T)), 0);
        assert_int_equal(object_id_cmp(&tip.commit, gittalk_test__id(GITTALK_C)), 0);
        gittalk_test__sent(&s, "0079want " GITTALK_T " side-band-64k ofs-delta no-progress agent=abx/" ABX_VERSION
                           " object-format=sha1\n000ddeepen 1\n00000009done\n|");
        buf_free(&refs);
    }
    buf_free(&b);
}

/* Without a side band the pack is the rest of everything. */
static void gittalk_raw_test(void **state)
{
    Buf refs, b = buf_make(4096);

    (void)state;
    buf_add(&b, STR("0008NAK\n"));
    buf_add(&b, (Str){(const char *)pack_ofs, sizeof pack_ofs});
    for (size_t cut = 0; cut < b.n; cut++) {
        Str           answers[] = {gittalk_test__old(&refs, GITTALK_SERVICE, STR("multi_ack")), buf_str(&b)};
        GitTalkScript s = {.link = {.http = true}, .answers = answers, .count = 2, .piece = 11, .cut = cut ? answers[0].n + cut : 0};
        GitTip        tip;
        Err           err;
        assert_int_equal(gittalk_test__run(&s, "HEAD", true, true, &tip, &err), cut == 0);
        assert_int_equal(s.was_cut, cut > 0);
        gittalk_test__sent(&s, "0032want " GITTALK_C "\n00000009done\n|");
        buf_free(&refs);
    }
    buf_free(&b);
}

/* --- names ------------------------------------------------------------------------ */

static void gittalk_names_test(void **state)
{
    /* The same name in each place; the first that there is. */
    static const char *const places[] = {"n", "refs/n", "refs/tags/n", "refs/heads/n", "refs/remotes/n", "refs/remotes/n/HEAD"};

    (void)state;
    for (size_t first = 0; first <= COUNT_OF(places); first++) {
        Buf refs = buf_make(8192), line = buf_make(256);
        for (size_t i = COUNT_OF(places); i-- > first;) {
            buf_clear(&line);
            buf_addf(&line, "%040zx %s\n", i + 1, places[i]);
            buf_addf(&refs, "%04zx%.*s", line.n + 4, STR_ARG(buf_str(&line)));
        }
        buf_addf(&refs, "003a%040d refs/heads/x\n0035%040d refs/nn\n0000", 9, 9);
        Str           answers[] = {STR(GITTALK_CAPS), buf_str(&refs)};
        GitTalkScript s = {.link = {.http = true, .ops = &gittalk_script}, .answers = answers, .count = 2, .sent = buf_make(4096)};
        GitTalk       t;
        GitTip        tip;
        Err           err;
        assert_true(gittalk_begin(&t, &s.link, STR("n"), &err));
        bool found = gittalk_find(&t, &tip, &err);
        if (found != (first < COUNT_OF(places)))
            fail_msg("first %zu: %s", first, err.text);
        if (found)
            assert_int_equal(tip.id.b[19], first + 1);
        else
            assert_int_equal(err.kind, ERR_NOT_FOUND);
        gittalk_end(&t);
        buf_free(&s.sent);
        buf_free(&refs);
        buf_free(&line);
    }
}

/* --- what is refused ------------------------------------------------------------------ */

/* Cut off anywhere: never a success, and it says so. */
static void gittalk_cut_test(void **state)
{
    Buf           b, refs;
    Str           new_ones[] = {STR(GITTALK_SERVICE GITTALK_CAPS), STR(GITTALK_REFS),
                                gittalk_test__banded(&b, "0011shallow-info\n0034shallow " GITTALK_C "0001000dpackfile\n", 200, "0000")};
    Buf           c;
    Str           old_ones[] = {gittalk_test__old(&refs, GITTALK_SERVICE, STR(GITTALK_OLD_CAPS)),
                                gittalk_test__banded(&c, "0034shallow " GITTALK_C "00000008NAK\n", 200, "0000")};

    (void)state;
    for (int old = 0; old < 2; old++) {
        size_t all = old ? old_ones[0].n + old_ones[1].n : new_ones[0].n + new_ones[1].n + new_ones[2].n;
        for (size_t cut = 1; cut < all; cut++) {
            GitTalkScript s = {.link = {.http = true}, .answers = old ? old_ones : new_ones, .count = old ? 2 : 3, .cut = cut};
            GitTip        tip;
            Err           err;
            assert_false(gittalk_test__run(&s, "main", true, true, &tip, &err));
            assert_true(s.was_cut);
            buf_free(&s.sent);
        }
    }
    buf_free(&b);
    buf_free(&c);
    buf_free(&refs);
}

typedef struct GitTalkBad { Str caps, refs, pack; const char *text; } GitTalkBad;

static void gittalk_bad_test(void **state)
{
#define GITTALK_S(lit) {lit, sizeof lit - 1}
#define GITTALK_GOOD_CAPS GITTALK_S(GITTALK_CAPS)
#define GITTALK_GOOD_REFS GITTALK_S(GITTALK_REFS)
    static const GitTalkBad cases[] = {
        /* the advertisement */
        {GITTALK_S("<!DOCTYPE html>"), {0}, {0}, "bad length"},
        {GITTALK_S("0015ERR not allowed\x1b[m\n0000"), {0}, {0}, "the git server says: not allowed"},
        {GITTALK_S(GITTALK_SERVICE), {0}, {0}, "cut"},
        {GITTALK_S("0000"), {0}, {0}, "empty"},
        {GITTALK_S("0001"), {0}, {0}, "another end"},
        {GITTALK_S("000eversion 2\n0000"), {0}, {0}, "nothing can be fetched"},
        {GITTALK_S("000eversion 2\n0001"), {0}, {0}, "another end"},
        {GITTALK_S("000eversion 2\n0017object-format=sha9\n0000"), {0}, {0}, "does not know"},
        {GITTALK_S("000eversion 3\n0000"), {0}, {0}, "a ref that is none"},
        {GITTALK_S("003dx67d8fbb0d0c1c9c2d4e5f60718293a4b5c6d7e8 refs/heads/main\n0000"), {0}, {0}, "a ref that is none"},
        /* the names */
        {GITTALK_GOOD_CAPS, GITTALK_S(""), {0}, "cut"},
        {GITTALK_GOOD_CAPS, GITTALK_S("0000"), {0}, "no branch, tag or commit 'main'"},
        {GITTALK_GOOD_CAPS, GITTALK_S("0009 main0000"), {0}, "a ref that is none"},
        {GITTALK_GOOD_CAPS, GITTALK_S("0001"), {0}, "another end"},
        {GITTALK_GOOD_CAPS, GITTALK_S("0009ERR \n0000"), {0}, "the git server says: "},
        {GITTALK_GOOD_CAPS, GITTALK_S("002eunborn HEAD symref-target:refs/heads/main\n0000"), {0}, "no branch, tag or commit"},
        /* the pack */
        {GITTALK_GOOD_CAPS, GITTALK_GOOD_REFS, GITTALK_S(""), "cut"},
        {GITTALK_GOOD_CAPS, GITTALK_GOOD_REFS, GITTALK_S("0000"), "without a pack"},
        {GITTALK_GOOD_CAPS, GITTALK_GOOD_REFS, GITTALK_S("0011shallow-info\n0000"), "without a pack"},
        {GITTALK_GOOD_CAPS, GITTALK_GOOD_REFS, GITTALK_S("0049ERR upload-pack: not our ref 1111111111111111111111111111111111111111"),
         "the git server says: upload-pack: not our ref 1111"},
        {GITTALK_GOOD_CAPS, GITTALK_GOOD_REFS, GITTALK_S("000dpackfile\n0000"), "ends too early"},
        {GITTALK_GOOD_CAPS, GITTALK_GOOD_REFS, GITTALK_S("000dpackfile\n0001"), "something else"},
        {GITTALK_GOOD_CAPS, GITTALK_GOOD_REFS, GITTALK_S("000dpackfile\n0006\4x0000"), "a side band that there is not"},
        {GITTALK_GOOD_CAPS, GITTALK_GOOD_REFS, GITTALK_S("000dpackfile\n0006\1P0000"), "ends too early"},
        {GITTALK_GOOD_CAPS, GITTALK_GOOD_REFS, GITTALK_S("000dpackfile\n0011\1PICKxxxxxxxx0000"), "damaged git pack"},
        {GITTALK_GOOD_CAPS, GITTALK_GOOD_REFS, GITTALK_S("000dpackfile\n000b\2fatal:0010\3the \x1b[1mend\n"), "the git server says: the end"},
        /* a heading only where one may be */
        {GITTALK_GOOD_CAPS, GITTALK_GOOD_REFS, GITTALK_S("0011shallow-info\n000dpackfile\n0000"), "without a pack"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Str           answers[] = {cases[i].caps, cases[i].refs, cases[i].pack};
        GitTalkScript s = {.link = {.http = true}, .answers = answers, .count = 3};
        GitTip        tip;
        Err           err;
        const char   *name = strcmp(cases[i].text, "empty") == 0 ? "HEAD" : "main";
        if (gittalk_test__run(&s, name, true, true, &tip, &err) || !strstr(err.text, cases[i].text))
            fail_msg("case %zu: %s", i, err.text);
        for (const char *p = err.text; *p; p++)
            assert_true((unsigned char)*p >= ' ');
        buf_free(&s.sent);
    }
}

/* More names than anybody has: it ends, and little was held. */
static void gittalk_limit_test(void **state)
{
    char         *packet = malloc(PKT_LONGEST);
    Str           answers[] = {STR(GITTALK_CAPS), {packet, 60000}};
    GitTalkScript s = {.link = {.http = true}, .answers = answers, .count = 2, .again = 100000};
    GitTip        tip;
    Err           err;

    (void)state;
    memset(packet, 'x', PKT_LONGEST);
    memcpy(packet, "ea60" GITTALK_C " ", 45);
    assert_false(gittalk_test__run(&s, "main", true, true, &tip, &err));
    assert_int_equal(err.kind, ERR_LIMIT);
    assert_in_range(s.given, LIMIT_GIT_REFS, LIMIT_GIT_REFS + (1 << 20));
    buf_free(&s.sent);
    free(packet);
}

static const struct CMUnitTest gittalk_tests[] = {
    cmocka_unit_test(gittalk_two_test),
    cmocka_unit_test(gittalk_little_test),
    cmocka_unit_test(gittalk_old_test),
    cmocka_unit_test(gittalk_raw_test),
    cmocka_unit_test(gittalk_names_test),
    cmocka_unit_test(gittalk_cut_test),
    cmocka_unit_test(gittalk_bad_test),
    cmocka_unit_test(gittalk_limit_test),
};
