#include "sync/item.h"

#include "base/hex.h"
#include "base/limits.h"
#include "base/num.h"
#include "base/str.h"

#include <stdio.h>

static const char item__names[][8] = {
    [ITEM_TOTAL] = "total", [ITEM_FROM] = "from", [ITEM_SPARSE] = "sparse", [ITEM_HASH] = "hash", [ITEM_FAILED] = "failed",
    [ITEM_KEPT] = "kept", [ITEM_END] = "end", [ITEM_HAVE] = "have", [ITEM_PART] = "part", [ITEM_DONE] = "done",
    [ITEM_CREATED] = "created", [ITEM_CHANGED] = "changed", [ITEM_REMOVED] = "removed", [ITEM_LOST] = "lost",
    [ITEM_READY] = "ready",
};

Str item_words(const Item *i, char words[static ITEM_WORDS])
{
    size_t n = (size_t)snprintf(words, ITEM_WORDS, "%s %lu %lld ", item__names[i->kind], (unsigned long)i->number,
                                (long long)i->size);

    if (!i->hashed) {
        words[n] = '-';
        return (Str){words, n + 1};
    }
    hex_write((Str){(const char *)i->sha256, SHA256_SIZE}, words + n);
    return (Str){words, n + 2 * SHA256_SIZE};
}

void item_put(Buf *to, const Item *i)
{
    ABX_UNSET char words[ITEM_WORDS];

    buf_add(to, item_words(i, words));
    buf_addc(to, ' ');
    buf_add(to, i->path);
    buf_addc(to, 0);
}

static bool item__hash(Str hex, Item *i)
{
    uint64_t v;

    i->hashed = !str_eq(hex, STR("-"));
    for (size_t k = 0; i->hashed && k < SHA256_SIZE; k++) {
        if (hex.n != 2 * SHA256_SIZE || !num_hex((Str){hex.p + 2 * k, 2}, &v))
            return false;
        i->sha256[k] = (unsigned char)v;
    }
    return true;
}

bool item_parse(Str words, Item *i)
{
    Item     is = {.path = i->path};
    ABX_UNSET char again[ITEM_WORDS];
    Str      rest = words, word, number, size;
    uint64_t n, bytes;
    size_t   kind = 0;

    if (!str_cut(&rest, ' ', &word) || !str_cut(&rest, ' ', &number) || !str_cut(&rest, ' ', &size))
        return false;
    while (kind < COUNT_OF(item__names) && !str_eq(word, str_from(item__names[kind])))
        kind++;
    if (kind == COUNT_OF(item__names) || !num_u64(number, &n) || n > UINT32_MAX || !num_u64(size, &bytes)
        || bytes > INT64_MAX || !item__hash(rest, &is))
        return false;
    is.kind = (ItemKind)kind;
    is.number = (uint32_t)n;
    is.size = (int64_t)bytes;
    if (!str_eq(item_words(&is, again), words))         /* one way to write each: no zeros in front, no capitals */
        return false;
    *i = is;
    return true;
}

ItemReader item_reader(void)
{
    return (ItemReader){.held = buf_make(ITEM_WORDS + LIMIT_SYNC_PATH)};
}

void item_reader_free(ItemReader *r)
{
    buf_free(&r->held);
}

/* A line without its NUL. */
static bool item__line(Str line, Item *i)
{
    size_t at = 0;

    for (int blanks = 0; at < line.n && (line.p[at] != ' ' || ++blanks < 4); at++)
        ;
    if (at == line.n)
        return false;
    i->path = str_from_to(line, at + 1, line.n);
    return i->path.n <= LIMIT_SYNC_PATH && item_parse((Str){line.p, at}, i);
}

Step item_next(ItemReader *r, Str *in, Item *i, Err *err)
{
    bool over = r->held.over;

    buf_drop(&r->held, over ? 0 : r->given);
    r->given = 0;
    while (in->n && !over) {
        Str  part = {in->p, str_find(*in, 0)}, line = part;
        bool whole = part.n < in->n;
        if (r->held.n || !whole) {
            buf_add(&r->held, part);
            line = buf_str(&r->held);
            over = r->held.over;
        }
        str_skip(in, part.n + whole);
        if (!whole)
            continue;
        r->given = r->held.n;
        if (!over && item__line(line, i))
            return STEP_DONE;
        over = true;
    }
    if (!over)
        return STEP_MORE;
    r->held.over = true;                                /* and so says every later call */
    err_set(err, ERR_INPUT, E8020, "the other end of the copy wrote a line of another form");
    return STEP_ERR;
}
