#include "data/tar.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"

#include <stdio.h>

/* Where the fields of a header stand: offset and length. */
static const struct TarField { size_t at, n; } tar__name = {0, 100}, tar__mode = {100, 8}, tar__size = {124, 12},
    tar__sum = {148, 8}, tar__type = {156, 1}, tar__target = {157, 100}, tar__magic = {257, 6}, tar__prefix = {345, 155};

static const int64_t tar__size_most = 077777777777;     /* what a size's field holds, with a NUL behind it */

typedef enum TarState {
    TAR_HEAD,           /* a block of a header gathers */
    TAR_CONTENT,        /* `left` bytes of a file, then `fill` more up to the block's end */
    TAR_EXTRA,          /* the same of a header that belongs to the next entry: they gather in `extra` */
    TAR_FILL,           /* `fill` bytes that say nothing */
    TAR_BEHIND,         /* behind the end: nothing but zero bytes */
    TAR_BAD,
} TarState;

struct TarReader {
    TarState state;
    char     block[TAR_BLOCK];
    size_t   have;              /* bytes of block that are there */
    int64_t  left;
    size_t   fill;
    char     type;              /* TAR_EXTRA: what gathers */
    bool     records;           /* TAR_RECORD is known */
    Buf      extra;
    Buf      name, target;      /* for the next entry: of GNU's long headers, */
    bool     has_name, has_target;
    Buf      pax_name, pax_target;      /* and of a pax header, which wins */
    int64_t  pax_size;          /* -1: not given */
    bool     pending;           /* such a header came, and its entry did not */
    Buf      whole;             /* "prefix/name" */
    ErrKind  kind;              /* TAR_BAD */
    char     text[200];
};

TarReader *tar_open(void)
{
    TarReader *r = mem_new(sizeof *r);

    r->extra = buf_make(LIMIT_TAR_EXTRA);
    r->name = buf_make(LIMIT_TAR_EXTRA);
    r->target = buf_make(LIMIT_TAR_EXTRA);
    r->pax_name = buf_make(LIMIT_TAR_EXTRA);
    r->pax_target = buf_make(LIMIT_TAR_EXTRA);
    r->whole = buf_make(TAR_BLOCK);
    r->pax_size = -1;
    return r;
}

TarReader *tar_open_copy(void)
{
    TarReader *r = tar_open();

    r->records = true;
    return r;
}

void tar_close(TarReader *r)
{
    if (!r)
        return;
    buf_free(&r->extra);
    buf_free(&r->name);
    buf_free(&r->target);
    buf_free(&r->pax_name);
    buf_free(&r->pax_target);
    buf_free(&r->whole);
    mem_free(r);
}

static Step tar__bad(TarReader *r, ErrKind kind, const char *what, Err *err)
{
    if (r->state != TAR_BAD) {
        r->state = TAR_BAD;
        r->kind = kind;
        memcpy(r->text, what, strlen(what) + 1);
    }
    err_set(err, r->kind, E0000, "%s", r->text);
    return STEP_ERR;
}

/* --- fields of a header --------------------------------------------------------- */

/* Up to its first NUL, or all of it. */
static Str tar__text(const TarReader *r, struct TarField f)
{
    return (Str){r->block + f.at, strnlen(r->block + f.at, f.n)};
}

/* Octal digits between blanks and NULs; or, where the first bit is set, GNU's
 * binary form, the highest byte first. */
static bool tar__number(const TarReader *r, struct TarField f, int64_t *out)
{
    const unsigned char *p = (const unsigned char *)r->block + f.at;
    uint64_t v = 0;
    size_t   i = 0;

    if (p[0] & 0x80) {
        if (p[0] & 0x40)                            /* negative */
            return false;
        for (v = p[0] & 0x3f, i = 1; i < f.n; i++) {
            if (v > (uint64_t)INT64_MAX >> 8)
                return false;
            v = v << 8 | p[i];
        }
        *out = (int64_t)v;
        return true;
    }
    while (i < f.n && p[i] == ' ')
        i++;
    for (; i < f.n && p[i] >= '0' && p[i] <= '7'; i++)
        v = v << 3 | (p[i] - '0');
    for (; i < f.n; i++)
        if (p[i] != ' ' && p[i] != 0)
            return false;
    *out = (int64_t)v;                              /* 12 digits have 36 bits */
    return true;
}

/* The sum of all bytes, those of the sum itself as blanks. Old programs added
 * signed ones. */
static bool tar__sum_ok(const TarReader *r)
{
    int64_t want, plain = 0, with_sign = 0;

    for (size_t i = 0; i < TAR_BLOCK; i++) {
        char c = i - tar__sum.at < tar__sum.n ? ' ' : r->block[i];
        plain += (unsigned char)c;
        with_sign += (signed char)c;
    }
    return tar__number(r, tar__sum, &want) && (want == plain || want == with_sign);
}

static bool tar__zero(const TarReader *r)
{
    for (size_t i = 0; i < TAR_BLOCK; i++)
        if (r->block[i])
            return false;
    return true;
}

/* --- headers that belong to the next entry ---------------------------------------- */

static bool tar__is_sparse(Str key)
{
    return str_starts(key, STR("GNU.sparse.")) || str_eq(key, STR("SCHILY.realsize"));
}

/* One "LENGTH KEY=VALUE\n" off the front of *in. */
static bool tar__record(Str *in, Str *key, Str *value)
{
    size_t   blank = str_find(*in, ' ');
    uint64_t n;

    if (blank == in->n || !num_u64((Str){in->p, blank}, &n) || n > in->n || n < blank + 3 || in->p[n - 1] != '\n')
        return false;
    *value = str_from_to(*in, blank + 1, (size_t)n - 1);
    str_skip(in, (size_t)n);
    size_t equals = str_find(*value, '=');
    if (equals == 0 || equals == value->n)
        return false;
    *key = (Str){value->p, equals};
    str_skip(value, equals + 1);
    return true;
}

static void tar__replace(Buf *b, Str s)
{
    buf_clear(b);
    buf_add(b, s);
}

static Step tar__pax(TarReader *r, bool global, Err *err)
{
    Str      in = buf_str(&r->extra), key, value;
    uint64_t size;

    while (in.n) {
        if (!tar__record(&in, &key, &value))
            return tar__bad(r, ERR_INPUT, "a pax header of the archive is damaged", err);
        bool path = str_eq(key, STR("path")), link = str_eq(key, STR("linkpath")), is_size = str_eq(key, STR("size"));
        if (tar__is_sparse(key))
            return tar__bad(r, ERR_INPUT, "a sparse file is in the archive, and those are not taken", err);
        if (global && (path || link || is_size))
            return tar__bad(r, ERR_INPUT, "a global header of the archive gives all files one name or size", err);
        if (path)
            tar__replace(&r->pax_name, value);
        else if (link)
            tar__replace(&r->pax_target, value);
        else if (is_size && value.n == 0)           /* "as if it had not been given" */
            r->pax_size = -1;
        else if (is_size && num_u64(value, &size) && size <= INT64_MAX)
            r->pax_size = (int64_t)size;
        else if (is_size)
            return tar__bad(r, ERR_INPUT, "a size in the archive is no number", err);
    }
    return STEP_MORE;
}

/* All of an extra header is there. */
static Step tar__extra(TarReader *r, Err *err)
{
    Str text = buf_str(&r->extra);

    if (r->type == 'x' || r->type == 'X' || r->type == 'g')
        return tar__pax(r, r->type == 'g', err);
    text.n = str_find(text, 0);
    if (r->type == 'L') {
        tar__replace(&r->name, text);
        r->has_name = true;
    } else {
        tar__replace(&r->target, text);
        r->has_target = true;
    }
    return STEP_MORE;
}

/* --- headers ------------------------------------------------------------------------ */

static void tar__content(TarReader *r, TarState state, int64_t size)
{
    r->left = size;
    r->fill = tar_pad(size);
    r->state = size ? state : TAR_HEAD;
}

/* A name in two parts is POSIX's alone: GNU's has other things in that field. */
static Str tar__full_name(TarReader *r)
{
    Str name = tar__text(r, tar__name), prefix = tar__text(r, tar__prefix);

    if (memcmp(r->block + tar__magic.at, "ustar", tar__magic.n) != 0 || prefix.n == 0)
        return name;
    tar__replace(&r->whole, prefix);
    buf_addc(&r->whole, '/');
    buf_add(&r->whole, name);
    return buf_str(&r->whole);
}

static bool tar__type_of(char c, Str name, TarType *out)
{
    switch (c) {
    case 0: case '0': case '7':
        *out = c != '7' && str_ends(name, STR("/")) ? TAR_FOLDER : TAR_FILE;    /* v7 has no other folders */
        return true;
    case '1': *out = TAR_HARDLINK; return true;
    case '2': *out = TAR_SYMLINK; return true;
    case '3': case '4': case '6': *out = TAR_SPECIAL; return true;
    case '5': *out = TAR_FOLDER; return true;
    default: return false;
    }
}

static Step tar__entry(TarReader *r, char type, int64_t size, TarEvent *ev, Err *err)
{
    int64_t mode;

    *ev = (TarEvent){.kind = TAR_ENTRY};
    ev->name = r->pax_name.n ? buf_str(&r->pax_name) : r->has_name ? buf_str(&r->name) : tar__full_name(r);
    ev->target = r->pax_target.n ? buf_str(&r->pax_target) : r->has_target ? buf_str(&r->target) : tar__text(r, tar__target);
    if (type == 'S')
        return tar__bad(r, ERR_INPUT, "a sparse file is in the archive, and those are not taken", err);
    if (r->records && type == 'R' && size == 0 && r->pax_size <= 0)
        ev->type = TAR_RECORD;
    else if (!tar__type_of(type, ev->name, &ev->type))
        return tar__bad(r, ERR_INPUT, "an entry of an unknown type is in the archive", err);
    if (!tar__number(r, tar__mode, &mode))
        return tar__bad(r, ERR_INPUT, "a mode in the archive is no number", err);
    ev->mode = (unsigned)mode & 07777;
    ev->size = ev->type != TAR_FILE ? 0 : r->pax_size >= 0 ? r->pax_size : size;
    r->has_name = r->has_target = r->pending = false;
    r->pax_size = -1;
    tar__content(r, TAR_CONTENT, ev->size);
    return STEP_DONE;
}

/* A whole block is there. */
static Step tar__head(TarReader *r, TarEvent *ev, Err *err)
{
    char    type = r->block[tar__type.at];
    int64_t size;

    if (tar__zero(r)) {
        if (r->pending)
            return tar__bad(r, ERR_INPUT, "the archive ends before the entry that a header belongs to", err);
        r->state = TAR_BEHIND;
        *ev = (TarEvent){.kind = TAR_END};
        return STEP_DONE;
    }
    if (!tar__sum_ok(r))
        return tar__bad(r, ERR_INPUT, "this is no tar archive, or it is damaged: a checksum is wrong", err);
    if (!tar__number(r, tar__size, &size))
        return tar__bad(r, ERR_INPUT, "a size in the archive is no number", err);
    if (!type || !strchr("xXgLK", type))
        return tar__entry(r, type, size, ev, err);
    if (size > (int64_t)LIMIT_TAR_EXTRA)
        return tar__bad(r, ERR_LIMIT, "a header of the archive is too long", err);
    r->type = type;
    r->pending |= type != 'g';
    buf_clear(&r->extra);
    tar__content(r, TAR_EXTRA, size);
    return size ? STEP_MORE : tar__extra(r, err);
}

/* --- reading ------------------------------------------------------------------------- */

/* What an entry was given out with is good until the call after it. */
static void tar__forget(TarReader *r)
{
    if (!r->pending && r->state != TAR_EXTRA) {
        buf_clear(&r->pax_name);
        buf_clear(&r->pax_target);
    }
}

static Str tar__take(Str *in, size_t n)
{
    Str s = {in->p, n < in->n ? n : in->n};

    str_skip(in, s.n);
    return s;
}

/* A part of content: of a file it goes out, of a header it gathers. */
static Step tar__part(TarReader *r, Str *in, TarEvent *ev, Err *err)
{
    TarState state = r->state;
    Str      part = tar__take(in, r->left < (int64_t)in->n ? (size_t)r->left : in->n);

    r->left -= (int64_t)part.n;
    if (r->left == 0)
        r->state = r->fill ? TAR_FILL : TAR_HEAD;
    if (state == TAR_CONTENT) {
        *ev = (TarEvent){.kind = TAR_BYTES, .bytes = part};
        return STEP_DONE;
    }
    buf_add(&r->extra, part);
    return r->left ? STEP_MORE : tar__extra(r, err);
}

static bool tar__zeros(Str *in)
{
    while (in->n && *in->p == 0)
        str_skip(in, 1);
    return in->n == 0;
}

Step tar_next(TarReader *r, Str *in, TarEvent *ev, Err *err)
{
    Step step = STEP_MORE;
    Str  part;

    if (r->state == TAR_BAD)
        return tar__bad(r, r->kind, r->text, err);
    tar__forget(r);
    while (in->n && step == STEP_MORE) {
        switch (r->state) {
        case TAR_HEAD:
            part = tar__take(in, TAR_BLOCK - r->have);
            memcpy(r->block + r->have, part.p, part.n);
            r->have += part.n;
            if (r->have == TAR_BLOCK) {
                r->have = 0;
                step = tar__head(r, ev, err);
            }
            break;
        case TAR_CONTENT:
        case TAR_EXTRA:
            step = tar__part(r, in, ev, err);
            break;
        case TAR_FILL:
            r->fill -= tar__take(in, r->fill).n;
            if (r->fill == 0)
                r->state = TAR_HEAD;
            break;
        case TAR_BEHIND:
            if (!tar__zeros(in))
                step = tar__bad(r, ERR_INPUT, "something follows the end of the archive", err);
            break;
        case TAR_BAD:
            return STEP_ERR;
        }
    }
    return step;
}

bool tar_ended(const TarReader *r, Err *err)
{
    return r->state == TAR_BEHIND || err_set(err, ERR_INPUT, E0000, "the archive is cut short");
}

/* --- writing ------------------------------------------------------------------------- */

static void tar__octal(char *block, struct TarField f, uint64_t v)
{
    for (size_t i = f.n - 1; i--; v >>= 3)
        block[f.at + i] = (char)('0' + (v & 7));
}

static void tar__set(char *block, struct TarField f, Str s)
{
    memcpy(block + f.at, s.p ? s.p : "", s.n < f.n ? s.n : f.n);
}

/* The slash at which a name that is longer than its field can be parted; 0: it has none. */
static size_t tar__part_at(Str name)
{
    size_t i = name.n > tar__name.n + 1 ? name.n - tar__name.n - 1 : 1;

    while (i < name.n && name.p[i] != '/')
        i++;
    return i <= tar__prefix.n && i + 1 < name.n ? i : 0;
}

static void tar__put_block(Buf *to, char type, const TarHead *h)
{
    char    *p = buf_room(to, TAR_BLOCK);
    size_t   at = h->name.n > tar__name.n ? tar__part_at(h->name) : 0;
    unsigned sum = 0;

    if (!p)
        return;
    memset(p, 0, TAR_BLOCK);
    if (at)
        tar__set(p, tar__prefix, (Str){h->name.p, at});
    tar__set(p, tar__name, at ? str_from_to(h->name, at + 1, h->name.n) : h->name);
    tar__octal(p, tar__mode, h->mode & 07777);
    tar__octal(p, (struct TarField){108, 8}, 0);                /* owner, group, time */
    tar__octal(p, (struct TarField){116, 8}, 0);
    tar__octal(p, tar__size, h->size > tar__size_most ? 0 : (uint64_t)h->size);
    tar__octal(p, (struct TarField){136, 12}, 0);
    p[tar__type.at] = type;
    tar__set(p, tar__target, h->target);
    memcpy(p + tar__magic.at, "ustar\0" "00", 8);
    memset(p + tar__sum.at, ' ', tar__sum.n);
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += (unsigned char)p[i];
    tar__octal(p, tar__sum, sum);
    buf_grew(to, TAR_BLOCK);
}

/* How long "LENGTH KEY=VALUE\n" is, where LENGTH counts itself. */
static size_t tar__record_size(Str key, Str value)
{
    size_t rest = key.n + value.n + 3, digits = 1;

    for (size_t ten = 10; rest + digits >= ten; ten *= 10)
        digits++;
    return rest + digits;
}

bool tar_put(Buf *to, const TarHead *h, Err *err)
{
    static const char types[] = {[TAR_FILE] = '0', [TAR_FOLDER] = '5', [TAR_SYMLINK] = '2', [TAR_RECORD] = 'R'};
    ABX_UNSET char number[24];
    TarHead extra = {.name = STR("pax_header"), .mode = 0600};
    struct { Str key, value; } records[] = {{STR("path"), {NULL, 0}}, {STR("linkpath"), {NULL, 0}}, {STR("size"), {NULL, 0}}};

    if (h->name.n > tar__name.n && !tar__part_at(h->name))
        records[0].value = h->name;
    if (h->target.n > tar__target.n)
        records[1].value = h->target;
    if (h->size > tar__size_most)
        records[2].value = (Str){number, (size_t)snprintf(number, sizeof number, "%lld", (long long)h->size)};
    for (size_t i = 0; i < COUNT_OF(records); i++)
        if (records[i].value.n)
            extra.size += (int64_t)tar__record_size(records[i].key, records[i].value);
    if (extra.size > (int64_t)LIMIT_TAR_EXTRA)
        return err_set(err, ERR_LIMIT, E4003, "a name of %zu bytes is longer than an archive holds", h->name.n + h->target.n);
    if (extra.size) {
        tar__put_block(to, 'x', &extra);
        for (size_t i = 0; i < COUNT_OF(records); i++) {
            Str key = records[i].key, value = records[i].value;
            if (!value.n)
                continue;
            buf_addf(to, "%zu %s=", tar__record_size(key, value), key.p);
            buf_add(to, value);
            buf_addc(to, '\n');
        }
        size_t pad = tar_pad(extra.size);
        buf_add(to, (Str){(const char[TAR_BLOCK]){0}, pad});
    }
    tar__put_block(to, types[h->type], h);
    return true;
}

void tar_put_nothing(Buf *to)
{
    tar__put_block(to, 'g', &(TarHead){.name = STR("pax_global_header")});
}

size_t tar_pad(int64_t size)
{
    return (size_t)(-size & (TAR_BLOCK - 1));
}
