/* Receipts, and the listings beside them: a receipt that is rewritten reads the
 * same but for what was asked; a listing that has its digest is written as it
 * was read. */
#include "base/limits.h"
#include "base/str.h"
#include "host/listing.h"
#include "host/receipt.h"

static void fuzz_receipt__listing(Str text, Arena *a)
{
    Listing     l, none = listing_make(a);
    size_t      n;
    Str         digest = str_from_to(text, 0, text.n < 64 ? text.n : 64);

    if (listing_read(str_from_to(text, digest.n, text.n), digest, a, &l))
        listing_compare(&none, &l, a, &n);
    listing_compare(&l, &none, a, &n);
    if (n != l.n)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static Arena a = {0};
    Receipt      r, again;
    Str          text = {(const char *)data, size};

    if (!a.p)
        a = arena_make((size_t)64 << 20);
    arena_reset(&a);
    fuzz_receipt__listing(text, &a);
    if (size < 65536 && receipt_parse(text, &a, &r)) {
        Buf out = buf_make(LIMIT_RECEIPT);
        receipt_rewrite(r.doc, STR("new"), a, &out);
        /* A key of any JSON text fits, written six times as long and indented */
        if (!out.over) {
            Arena b = arena_make((size_t)64 << 20);
            if (!receipt_parse(buf_str(&out), &b, &again) || !str_eq(r.id, again.id) || !str_eq(r.trust, again.trust) ||
                r.source.type != again.source.type || !str_eq(r.source.url, again.source.url) ||
                (json_get(r.doc, "source") && !str_eq(again.source.archive_sha256, STR("new"))))
                __builtin_trap();
            arena_free(&b);
        }
        buf_free(&out);
    }
    return 0;
}
