#include "host/listing.h"

#include "base/hex.h"
#include "base/limits.h"
#include "base/str.h"

enum {
    LISTING_SUM = 2 * SHA256_SIZE,
    LISTING_MODE = LISTING_SUM + 2,     /* where in a line it stands */
    LISTING_PATH = LISTING_MODE + 2,
};

Listing listing_make(Arena *a)
{
    return (Listing){.v = arena_array(a, LIMIT_TREE_FILES, sizeof(ListingFile)), .a = a};
}

void listing_seen(void *listing, Str path, bool executable, const unsigned char sha256[static SHA256_SIZE])
{
    Listing *l = listing;

    if (l->n == LIMIT_TREE_FILES)
        return;
    ListingFile *f = &l->v[l->n++];
    *f = (ListingFile){.path = arena_str(l->a, path), .executable = executable};
    memcpy(f->sha256, sha256, SHA256_SIZE);
}

void listing_write(const Tree *t, Buf *to)
{
    for (size_t i = 0; i < t->n; i++) {
        for (size_t k = 0; k < SHA256_SIZE; k++)
            buf_addf(to, "%02x", t->v[i].sha256[k]);
        buf_addf(to, "  %c ", t->v[i].executable ? 'x' : '-');
        buf_add(to, t->v[i].path);
        buf_add(to, (Str){"\0\n", 2});
    }
}

static bool listing__line(Str *text, Listing *to)
{
    Str sum, path = text->n > LISTING_PATH ? str_from_to(*text, LISTING_PATH, text->n) : (Str){0};

    path.n = str_find(path, '\0');
    size_t end = LISTING_PATH + path.n + 2;
    if (text->n < end || text->p[end - 1] != '\n' || to->n == LIMIT_TREE_FILES ||
        !hex_decode(to->a, str_from_to(*text, 0, LISTING_SUM), &sum))
        return false;
    listing_seen(to, path, text->p[LISTING_MODE] == 'x', (const unsigned char *)sum.p);
    str_skip(text, end);
    return true;
}

bool listing_read(Str text, Str digest, Arena *a, Listing *out)
{
    Sha256 outer = sha256_make();
    ABX_UNSET char hex[TREE_HEX];

    *out = listing_make(a);
    while (text.n)
        if (!listing__line(&text, out))
            return false;
    for (size_t i = 0; i < out->n; i++)
        tree_digest_file(&outer, out->v[i].path, out->v[i].executable, out->v[i].sha256);
    tree_digest_end(&outer, hex);
    return str_eq(str_from(hex), digest);
}

const ListingDiff *listing_compare(const Listing *was, const Listing *is, Arena *a, size_t *n)
{
    ListingDiff *v = arena_array(a, was->n + is->n, sizeof *v);
    size_t       i = 0, k = 0, count = 0;

    while (i < was->n || k < is->n) {
        const ListingFile *x = i < was->n ? &was->v[i] : NULL, *y = k < is->n ? &is->v[k] : NULL;
        int order = !x ? 1 : !y ? -1 : strcmp(x->path.p, y->path.p);
        i += order <= 0;
        k += order >= 0;
        if (order != 0)
            v[count++] = order < 0 ? (ListingDiff){x->path, LISTING_MISSING} : (ListingDiff){y->path, LISTING_ADDED};
        else if (x->executable != y->executable || memcmp(x->sha256, y->sha256, SHA256_SIZE) != 0)
            v[count++] = (ListingDiff){x->path, LISTING_CHANGED};
    }
    *n = count;
    return v;
}
