#include "host/receipt.h"

#include "base/limits.h"
#include "base/str.h"
#include "host/consented.h"
#include "os/fs.h"

static const Str receipt__types[] = {
    [RECEIPT_LOCAL] = STR("local"), [RECEIPT_GIT] = STR("git"),
    [RECEIPT_LINK] = STR("link"), [RECEIPT_CATALOG] = STR("catalog"),
};

Str receipt_trust_word(ReceiptTrust trust)
{
    static const Str words[] = {
        [TRUST_LOCAL] = STR("local"), [TRUST_PINNED] = STR("pinned"),
        [TRUST_UNPINNED] = STR("unpinned"), [TRUST_LINK] = STR("link"),
    };

    return words[trust];
}

/* ---- writing ---- */

static void receipt__put(JsonOut *w, const char *key, Str value)
{
    json_key(w, key);
    json_put_str(w, value);
}

void receipt_source(const ReceiptSource *s, JsonOut *w)
{
    json_begin(w, '{');
    receipt__put(w, "type", receipt__types[s->type]);
    switch (s->type) {
    case RECEIPT_LOCAL:
    case RECEIPT_LINK:
        receipt__put(w, "path", s->path);
        break;
    case RECEIPT_GIT:
        receipt__put(w, "url", s->url);
        receipt__put(w, "ref", s->ref);
        receipt__put(w, "commit", s->commit);
        receipt__put(w, "subdir", s->subdir);
        break;
    case RECEIPT_CATALOG:
        receipt__put(w, "id", s->id);
        receipt__put(w, "registry", s->registry);
        if (s->archive_sha256.n)
            receipt__put(w, "archive_sha256", s->archive_sha256);
        break;
    }
    json_end(w, '}');
}

void receipt_print(const ReceiptNew *r, JsonOut *w)
{
    json_begin(w, '{');
    json_key(w, "receipt_version");
    json_put_int(w, 1);
    receipt__put(w, "id", r->manifest->id);
    receipt__put(w, "version", r->manifest->version);
    json_key(w, "source");
    receipt_source(&r->source, w);
    receipt__put(w, "tree_sha256", r->tree_sha256);
    receipt__put(w, "manifest_sha256", str_from(r->manifest->sha256));
    receipt__put(w, "trust", receipt_trust_word(r->trust));
    json_key(w, "consented");
    consented_put(r->manifest, w, false);
    receipt__put(w, "installed_at", r->installed_at);
    json_key(w, "installed_by");
    if (r->installed_by && r->installed_by->type == JSON_OBJECT && r->installed_by->count) {
        json_put(w, r->installed_by);
    } else {
        json_begin(w, '{');
        receipt__put(w, "name", STR("abx"));
        receipt__put(w, "version", STR(ABX_VERSION));
        json_end(w, '}');
    }
    json_end(w, '}');
}

/* What was printed in the order of the day, as files hold it. */
static void receipt__sorted(Buf *printed, Arena scratch, Buf *to)
{
    JsonOut     w = json_out(to, JSON_PRETTY);
    const Json *doc;
    ABX_UNSET Err err;

    if (printed->over || !json_parse(buf_str(printed), &scratch, &doc, &err)) {
        to->over = true;
    } else {
        json_put_sorted(&w, doc);
        buf_addc(to, '\n');
    }
    buf_free(printed);
}

void receipt_write(const ReceiptNew *r, Arena scratch, Buf *to)
{
    Buf     printed = buf_make(LIMIT_RECEIPT);
    JsonOut w = json_out(&printed, JSON_COMPACT);

    receipt_print(r, &w);
    receipt__sorted(&printed, scratch, to);
}

static void receipt__member(JsonOut *w, const Json *object, size_t i)
{
    json_key_str(w, object->keys[i]);
    json_put(w, &object->items[i]);
}

void receipt_rewrite(const Json *doc, Str archive_sha256, Arena scratch, Buf *to)
{
    Buf     printed = buf_make(LIMIT_RECEIPT);
    JsonOut w = json_out(&printed, JSON_COMPACT);

    json_begin(&w, '{');
    for (size_t i = 0; i < json_count(doc); i++) {
        const Json *source = &doc->items[i];
        if (!str_eq(doc->keys[i], STR("source"))) {
            receipt__member(&w, doc, i);
            continue;
        }
        json_key(&w, "source");
        json_begin(&w, '{');
        for (size_t k = 0; k < json_count(source); k++)
            if (!str_eq(source->keys[k], STR("archive_sha256")))
                receipt__member(&w, source, k);
        receipt__put(&w, "archive_sha256", archive_sha256);
        json_end(&w, '}');
    }
    json_end(&w, '}');
    receipt__sorted(&printed, scratch, to);
}

/* ---- reading ---- */

static ReceiptSource receipt__source_of(const Json *v)
{
    ReceiptSource s = {.type = RECEIPT_LOCAL};
    Str           type = json_str(json_get(v, "type"));

    for (size_t i = 0; i < COUNT_OF(receipt__types); i++)
        if (str_eq(type, receipt__types[i]))
            s.type = (ReceiptType)i;
    s.path = json_str(json_get(v, "path"));
    s.url = json_str(json_get(v, "url"));
    s.ref = json_str(json_get(v, "ref"));
    s.commit = json_str(json_get(v, "commit"));
    s.subdir = json_str(json_get(v, "subdir"));
    s.id = json_str(json_get(v, "id"));
    s.registry = json_str(json_get(v, "registry"));
    s.archive_sha256 = json_str(json_get(v, "archive_sha256"));
    return s;
}

bool receipt_parse(Str text, Arena *a, Receipt *out)
{
    const Json *doc;
    ABX_UNSET Err err;

    if (!json_parse(text, a, &doc, &err) || doc->type != JSON_OBJECT)
        return false;
    *out = (Receipt){
        .doc = doc, .text = arena_str(a, text),
        .id = json_str(json_get(doc, "id")), .version = json_str(json_get(doc, "version")),
        .tree_sha256 = json_str(json_get(doc, "tree_sha256")), .trust = json_str(json_get(doc, "trust")),
        .source = receipt__source_of(json_get(doc, "source")), .consented = json_get(doc, "consented"),
    };
    return true;
}

bool receipt_read(const char *folder, Arena *a, Receipt *out)
{
    Buf  text = buf_make(LIMIT_RECEIPT);
    ABX_UNSET Err err;
    bool ok = fs_read(arena_fmt(a, "%s/%s", folder, RECEIPT_FILE).p, &text, &err) && receipt_parse(buf_str(&text), a, out);

    buf_free(&text);
    return ok;
}
