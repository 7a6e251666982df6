#include "host/gittalk.h"

#include "base/limits.h"
#include "base/str.h"
#include "data/clean.h"

static const struct { const char *head, *tail; } gittalk__names[GITTALK_NAMES] = {
    {"", ""}, {"refs/", ""}, {"refs/tags/", ""}, {"refs/heads/", ""}, {"refs/remotes/", ""}, {"refs/remotes/", "/HEAD"},
};

/* --- packets -------------------------------------------------------------------- */

/* Says what the server said, as far as it may be shown. */
static bool gittalk__says(Err *err, Str text)
{
    Arena scratch = arena_make(64 << 10);

    text.n = text.n < 1000 ? text.n : 1000;
    err_set(err, ERR_REMOTE, E8010, "the git server says: %s", clean_message(str_trim(text), NULL, 0, &scratch).p);
    arena_free(&scratch);
    return false;
}

static bool gittalk__strange(Err *err, const char *what)
{
    return err_set(err, ERR_INPUT, E8010, "not git's protocol: %s", what);
}

/* More bytes; false at the end too, *err says why they should not end. */
static bool gittalk__more(GitTalk *t, Err *err)
{
    return gitlink_read(t->link, &t->in, err) && (t->in.n || gitlink_cut(t->link, err));
}

/* The next packet. An `ERR` may come in the place of any. */
static bool gittalk__packet(GitTalk *t, Pkt *out, Err *err)
{
    Step step;

    while ((step = pktline_next(&t->pkt, &t->in, out, err)) == STEP_MORE)
        if (!gittalk__more(t, err))
            return false;
    if (step == STEP_ERR)
        return false;
    return out->kind != PKT_DATA || !str_starts(out->bytes, STR("ERR ")) ||
           gittalk__says(err, str_from_to(out->bytes, 4, out->bytes.n));
}

/* A request; what was read of the answer before is over. */
static bool gittalk__send(GitTalk *t, const Buf *request, Err *err)
{
    if (request->over)
        BUG("a request that is longer than what may be wanted");
    t->in = (Str){0};
    return gitlink_send(t->link, buf_str(request), err);
}

/* --- names ---------------------------------------------------------------------- */

/* `line` is "ID NAME" and, in version 2, attributes. */
static bool gittalk__line(GitTalk *t, Str line, Err *err)
{
    Str      id, name, attribute;
    ObjectId v, peeled;
    bool     is_peeled = false, tag = t->version < 2 && str_ends(line, STR("^{}"));

    if (!str_cut(&line, ' ', &id) || !line.p || !object_id_read(t->hash, id, &v))
        return str_eq(id, STR("unborn")) || gittalk__strange(err, "a ref that is none");
    if (tag)
        line.n -= 3;
    name = line;
    if (t->version == 2 && str_cut(&line, ' ', &name))
        while (str_cut(&line, ' ', &attribute))
            if (str_starts(attribute, STR("peeled:")))
                is_peeled = object_id_read(t->hash, str_from_to(attribute, 7, attribute.n), &peeled);
    for (size_t i = 0; i < GITTALK_NAMES; i++) {
        Str head = str_from(gittalk__names[i].head), tail = str_from(gittalk__names[i].tail);
        if (name.n != head.n + t->name.n + tail.n || !str_starts(name, head) || !str_ends(name, tail) ||
            memcmp(name.p + head.n, t->name.p, t->name.n) != 0)
            continue;
        GitTip *tip = &t->tips[i];
        if (tag)
            *tip = (GitTip){tip->id, v, tip->found, tip->found};
        else
            *tip = (GitTip){v, is_peeled ? peeled : v, true, is_peeled};
    }
    return true;
}

static bool gittalk__listed(GitTalk *t, Str line, Err *err)
{
    t->listed += line.n;
    return t->listed <= LIMIT_GIT_REFS ||
           err_set(err, ERR_LIMIT, E8010, "the git server lists more than %zu bytes of names", LIMIT_GIT_REFS);
}

static bool gittalk__ls_refs(GitTalk *t, Err *err)
{
    Buf  b = buf_make(64 << 10);
    Pkt  pkt = {.kind = PKT_FLUSH};
    bool ok;

    pktline_putf(&b, "command=ls-refs\n");
    if (t->agent)
        pktline_putf(&b, "agent=abx/" ABX_VERSION "\n");
    if (t->format)
        pktline_putf(&b, "object-format=%s\n", t->hash == OBJECT_SHA1 ? "sha1" : "sha256");
    pktline_sign(&b, PKT_DELIM);
    pktline_putf(&b, "peel\n");
    for (size_t i = 0; i < GITTALK_NAMES; i++)
        pktline_putf(&b, "ref-prefix %s%.*s%s\n", gittalk__names[i].head, (int)t->name.n, t->name.p, gittalk__names[i].tail);
    pktline_sign(&b, PKT_FLUSH);
    ok = gittalk__send(t, &b, err);
    buf_free(&b);
    while (ok && (ok = gittalk__packet(t, &pkt, err)) && pkt.kind == PKT_DATA)
        ok = gittalk__listed(t, pkt.bytes, err) && gittalk__line(t, pktline_text(pkt.bytes), err);
    return ok && (pkt.kind == PKT_FLUSH || gittalk__strange(err, "a list of names with another end"));
}

bool gittalk_find(GitTalk *t, GitTip *out, Err *err)
{
    Arena scratch;

    if (t->version == 2 && !gittalk__ls_refs(t, err))
        return false;
    for (size_t i = 0; i < GITTALK_NAMES; i++)
        if (t->tips[i].found) {
            *out = t->tips[i];
            return true;
        }
    if (str_eq(t->name, STR("HEAD")))
        return err_set(err, ERR_NOT_FOUND, E8010, "the repository is empty, or has no default branch");
    scratch = arena_make(64 << 10);
    err_set(err, ERR_NOT_FOUND, E8010, "the repository has no branch, tag or commit '%s'",
            clean_message(t->name, NULL, 0, &scratch).p);
    arena_free(&scratch);
    return false;
}

/* --- the advertisement ----------------------------------------------------------- */

/* The value of a capability "name=value", in version 2 a line of its own. */
static bool gittalk__value(Str capability, Str name, Str *value)
{
    if (!str_starts(capability, name))
        return false;
    str_skip(&capability, name.n);
    if (capability.n && capability.p[0] != '=')
        return false;
    str_skip(&capability, capability.n > 0);
    *value = capability;
    return true;
}

static bool gittalk__format(GitTalk *t, Str value, Err *err)
{
    t->format = true;
    if (str_eq(value, STR("sha1")))
        t->hash = OBJECT_SHA1;
    else if (str_eq(value, STR("sha256")))
        t->hash = OBJECT_SHA256;
    else
        return err_set(err, ERR_INPUT, E8010, "the repository has ids of a kind that abx does not know");
    return true;
}

static bool gittalk__has_word(Str words, Str word)
{
    Str one;

    while (str_cut(&words, ' ', &one))
        if (str_eq(one, word))
            return true;
    return false;
}

static bool gittalk__capabilities(GitTalk *t, Err *err)
{
    Pkt pkt;
    Str value;

    for (;;) {
        if (!gittalk__packet(t, &pkt, err))
            return false;
        if (pkt.kind != PKT_DATA)
            break;
        Str line = pktline_text(pkt.bytes);
        if (!gittalk__listed(t, line, err))
            return false;
        t->agent = t->agent || gittalk__value(line, STR("agent"), &value);
        t->ls_refs = t->ls_refs || gittalk__value(line, STR("ls-refs"), &value);
        if (gittalk__value(line, STR("object-format"), &value) && !gittalk__format(t, value, err))
            return false;
        if (gittalk__value(line, STR("fetch"), &value)) {
            t->fetch = true;
            t->shallow = gittalk__has_word(value, STR("shallow"));
            t->filter = gittalk__has_word(value, STR("filter"));
        }
    }
    if (pkt.kind != PKT_FLUSH)
        return gittalk__strange(err, "a list of capabilities with another end");
    return (t->fetch && t->ls_refs) || gittalk__strange(err, "a server from which nothing can be fetched");
}

/* The capabilities behind the NUL of the first ref. */
static bool gittalk__old_capabilities(GitTalk *t, Str words, Err *err)
{
    Str word, value;

    while (str_cut(&words, ' ', &word)) {
        t->agent = t->agent || gittalk__value(word, STR("agent"), &value);
        t->shallow = t->shallow || str_eq(word, STR("shallow"));
        t->side_band = t->side_band || str_eq(word, STR("side-band-64k"));
        t->ofs_delta = t->ofs_delta || str_eq(word, STR("ofs-delta"));
        t->no_progress = t->no_progress || str_eq(word, STR("no-progress"));
        if (gittalk__value(word, STR("object-format"), &value) && !gittalk__format(t, value, err))
            return false;
    }
    return true;
}

/* All refs, the first of which is there already. */
static bool gittalk__refs(GitTalk *t, Pkt pkt, Err *err)
{
    for (bool first = true; pkt.kind == PKT_DATA; first = false) {
        Str    line = pktline_text(pkt.bytes);
        size_t nul = str_find(line, '\0');
        if (!gittalk__listed(t, line, err) ||
            (first && nul < line.n && !gittalk__old_capabilities(t, str_from_to(line, nul + 1, line.n), err)))
            return false;
        line.n = nul;
        /* An empty repository's only line; a shallow one's boundary. */
        if (!str_ends(line, STR(" capabilities^{}")) && !str_starts(line, STR("shallow ")) && !gittalk__line(t, line, err))
            return false;
        if (!gittalk__packet(t, &pkt, err))
            return false;
    }
    return pkt.kind == PKT_FLUSH || gittalk__strange(err, "a list of refs with another end");
}

static bool gittalk__begin(GitTalk *t, Err *err)
{
    Pkt pkt;
    Str line;

    if (!gittalk__packet(t, &pkt, err))
        return false;
    line = pktline_text(pkt.bytes);
    if (t->link->http && pkt.kind == PKT_DATA && str_eq(line, STR("# service=git-upload-pack"))) {
        if (!gittalk__packet(t, &pkt, err))
            return false;
        if (pkt.kind != PKT_FLUSH)
            return gittalk__strange(err, "a service line without its end");
        if (!gittalk__packet(t, &pkt, err))
            return false;
        line = pktline_text(pkt.bytes);
    }
    if (pkt.kind == PKT_DATA && str_eq(line, STR("version 2"))) {
        t->version = 2;
        return gittalk__capabilities(t, err);
    }
    if (pkt.kind == PKT_DATA && str_eq(line, STR("version 1"))) {
        t->version = 1;
        if (!gittalk__packet(t, &pkt, err))
            return false;
    }
    return gittalk__refs(t, pkt, err);
}

bool gittalk_begin(GitTalk *t, GitLink *link, Str name, Err *err)
{
    *t = (GitTalk){.link = link, .pkt = pktline_reader(), .hash = OBJECT_SHA1, .name = name};
    if (gittalk__begin(t, err))
        return true;
    gittalk_end(t);
    return false;
}

void gittalk_end(GitTalk *t)
{
    pktline_free(&t->pkt);
    gitlink_close(t->link);
    *t = (GitTalk){0};
}

/* --- fetching --------------------------------------------------------------------- */

static void gittalk__wants(GitTalk *t, const GitWant *w, Buf *b)
{
    ABX_UNSET char hex[OBJECT_HEX];

    pktline_putf(b, "command=fetch\n");
    if (t->agent)
        pktline_putf(b, "agent=abx/" ABX_VERSION "\n");
    if (t->format)
        pktline_putf(b, "object-format=%s\n", t->hash == OBJECT_SHA1 ? "sha1" : "sha256");
    pktline_sign(b, PKT_DELIM);
    pktline_putf(b, "no-progress\n");
    pktline_putf(b, "ofs-delta\n");
    for (size_t i = 0; i < w->n; i++) {
        object_id_hex(t->hash, &w->ids[i], hex);
        pktline_putf(b, "want %s\n", hex);
    }
    if (w->history && t->shallow)
        pktline_putf(b, "deepen 1\n");
    if (w->no_blobs)
        pktline_putf(b, "filter blob:none\n");
    pktline_putf(b, "done\n");
    pktline_sign(b, PKT_FLUSH);
}

/* Wants and `done` at once: the server reads on while it answers. */
static void gittalk__old_wants(GitTalk *t, const GitWant *w, Buf *b)
{
    ABX_UNSET char hex[OBJECT_HEX];

    object_id_hex(t->hash, &w->ids[0], hex);
    pktline_putf(b, "want %s%s%s%s%s%s\n", hex, t->side_band ? " side-band-64k" : "", t->ofs_delta ? " ofs-delta" : "",
                 t->no_progress ? " no-progress" : "", t->agent ? " agent=abx/" ABX_VERSION : "",
                 !t->format ? "" : t->hash == OBJECT_SHA1 ? " object-format=sha1" : " object-format=sha256");
    if (t->shallow)
        pktline_putf(b, "deepen 1\n");
    pktline_sign(b, PKT_FLUSH);
    pktline_putf(b, "done\n");
}

/* Version 2: up to where the pack begins. The sections before it say nothing
 * that is needed. */
static bool gittalk__to_pack(GitTalk *t, Err *err)
{
    Pkt  pkt;
    bool heading = true;

    for (;; heading = pkt.kind == PKT_DELIM) {
        if (!gittalk__packet(t, &pkt, err))
            return false;
        if (pkt.kind == PKT_FLUSH || pkt.kind == PKT_END)
            return gittalk__strange(err, "an answer without a pack");
        if (heading && pkt.kind == PKT_DATA && str_eq(pktline_text(pkt.bytes), STR("packfile")))
            return true;
        if (!gittalk__listed(t, pkt.bytes, err))
            return false;
    }
}

/* Versions 0 and 1: the shallow part with its flush, if one was asked for, and NAK. */
static bool gittalk__to_old_pack(GitTalk *t, Err *err)
{
    Pkt pkt = {.kind = PKT_DATA};

    while (t->shallow && pkt.kind == PKT_DATA)
        if (!gittalk__packet(t, &pkt, err) || !gittalk__listed(t, pkt.bytes, err))
            return false;
    if (!gittalk__packet(t, &pkt, err))
        return false;
    return (pkt.kind == PKT_DATA && str_eq(pktline_text(pkt.bytes), STR("NAK"))) ||
           gittalk__strange(err, "an answer without NAK");
}

/* The pack in the packets of the side band, up to the flush. */
static bool gittalk__band(GitTalk *t, Pack *pack, Err *err)
{
    Step fed = STEP_MORE, step;
    Pkt  pkt;

    for (;;) {
        while ((step = pktline_next(&t->pkt, &t->in, &pkt, err)) == STEP_MORE)
            if (!gittalk__more(t, err))
                return false;
        if (step == STEP_ERR)
            return false;
        if (pkt.kind == PKT_FLUSH)
            return fed == STEP_DONE || gittalk__strange(err, "a pack that ends too early");
        if (pkt.kind != PKT_DATA)
            return gittalk__strange(err, "a pack with something else in between");
        Str data = pkt.bytes.n ? str_from_to(pkt.bytes, 1, pkt.bytes.n) : (Str){0};
        if (pkt.bytes.n == 0 || pkt.bytes.p[0] == 2 || (pkt.bytes.p[0] == 1 && data.n == 0))
            continue;
        if (pkt.bytes.p[0] == 3)
            return gittalk__says(err, data);
        if (pkt.bytes.p[0] != 1)
            return gittalk__strange(err, "a side band that there is not");
        if ((fed = pack_feed(pack, data, err)) == STEP_ERR)
            return false;
    }
}

/* The pack as it is, to the end of everything. */
static bool gittalk__raw(GitTalk *t, Pack *pack, Err *err)
{
    Step fed = STEP_MORE;

    for (;;) {
        if (t->in.n && (fed = pack_feed(pack, t->in, err)) == STEP_ERR)
            return false;
        if (!gitlink_read(t->link, &t->in, err))
            return false;
        if (t->in.n == 0)
            return fed == STEP_DONE || gitlink_cut(t->link, err);
    }
}

bool gittalk_fetch(GitTalk *t, const GitWant *want, Pack *pack, Err *err)
{
    Buf  b = buf_make((size_t)1 << 20);
    Step step;
    bool ok;

    if (t->version == 2)
        gittalk__wants(t, want, &b);
    else
        gittalk__old_wants(t, want, &b);
    ok = gittalk__send(t, &b, err);
    buf_free(&b);
    t->listed = 0;
    if (!ok || !(t->version == 2 ? gittalk__to_pack(t, err) : gittalk__to_old_pack(t, err)))
        return false;
    if (!(t->version == 2 || t->side_band ? gittalk__band(t, pack, err) : gittalk__raw(t, pack, err)))
        return false;
    while ((step = pack_resolve(pack, err)) == STEP_MORE)
        if (!gitlink_goes_on(t->link, err))
            return false;
    return step == STEP_DONE;
}
