#include "host/tree.h"

#include "base/buf.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "data/casefold.h"
#include "data/clean.h"
#include <stdlib.h>

bool tree_refuse(Err *err, Str path, const char *why)
{
    ABX_UNSET char room[TREE_SHOWN];
    Arena a = {.p = room, .size = sizeof room};
    Str   shown = clean_path(path, &a);

    return err_set(err, ERR_INPUT, E8010, "unsafe entry %.*s: %s", STR_ARG(shown), why);
}

/* ---- paths ---- */

/* A device of old systems, alone or before a dot. What the other hosts' pattern
 * makes of line feeds is kept: one at the very end is passed over, and behind
 * the dot it hides the name (specification, S1). */
static bool tree__device(Str part)
{
    static const char *const names[] = {"con", "prn", "aux", "nul"};
    Str  name = part, rest = {0};
    bool named = false;

    if (str_ends(part, STR("\n")))
        part.n--;
    name.n = str_find(part, '.');
    rest = str_from_to(part, name.n, part.n);
    if (str_has(rest, '\n'))
        return false;
    for (size_t i = 0; i < COUNT_OF(names); i++)
        named = named || str_eq_nocase(name, str_from(names[i]));
    if (name.n == 4 && name.p[3] >= '1' && name.p[3] <= '9') {
        name.n = 3;
        named = str_eq_nocase(name, STR("com")) || str_eq_nocase(name, STR("lpt"));
    }
    return named;
}

bool tree_path(Str path, Err *err)
{
    Str rest = path, part;

    if (path.n == 0)
        return err_set(err, ERR_INPUT, E8010, "unsafe entry: a file without a name");
    if (!utf8_valid(path))
        return tree_refuse(err, path, "the name is not UTF-8");
    if (str_has(path, '\0') || str_has(path, '\\'))
        return tree_refuse(err, path, "a NUL or a backslash in the name");
    if (path.p[0] == '/')
        return tree_refuse(err, path, "an absolute path");
    if (path.n > 1 && path.p[1] == ':' && ((path.p[0] | 0x20) >= 'a' && (path.p[0] | 0x20) <= 'z'))
        return tree_refuse(err, path, "a drive letter in front");
    while (str_cut(&rest, '/', &part)) {
        if (part.n == 0 || str_eq(part, STR(".")) || str_eq(part, STR("..")))
            return tree_refuse(err, path, "an empty part, `.` or `..` in the path");
        if (part.p[part.n - 1] == '.' || part.p[part.n - 1] == ' ')
            return tree_refuse(err, path, "a part of the path ends in a dot or a blank");
        if (tree__device(part))
            return tree_refuse(err, path, "the name of a device");
    }
    return true;
}

/* ---- building ---- */

Tree tree_make(void)
{
    /* Each allocation is rounded up to 16 bytes, and a path has a NUL. */
    return (Tree){.own = arena_make((size_t)LIMIT_TREE_BYTES + LIMIT_TREE_PATHS + (size_t)LIMIT_TREE_FILES * 48)};
}

void tree_free(Tree *t)
{
    mem_free(t->v);
    arena_free(&t->own);
    *t = (Tree){0};
}

static bool tree__reserved(Str path, Err *err)
{
    Str top = str_from_to(path, 0, str_find(path, '/'));

    if (str_eq(top, STR("data")))
        return tree_refuse(err, path, "`data` is for what the plugin writes itself");
    if (str_eq(top, STR(".git")) || str_eq(top, STR(".abx-install.json")))
        return tree_refuse(err, path, "the name is reserved: an installed tree could not be verified");
    return true;
}

/* What could be written, and then not be walked through any more, would never
 * verify. */
static bool tree__shallow(Str path, Err *err)
{
    size_t folders = 0;

    for (size_t i = 0; i < path.n; i++)
        folders += path.p[i] == '/';
    return folders <= LIMIT_TREE_DEPTH || tree_refuse(err, path, "too many folders in one another");
}

static bool tree__fits(const Tree *t, Str path, int64_t size, Err *err)
{
    if (t->n == LIMIT_TREE_FILES)
        return err_set(err, ERR_LIMIT, E8010, "more than %d files", LIMIT_TREE_FILES);
    if (!tree_path(path, err) || !tree__reserved(path, err) || !tree__shallow(path, err))
        return false;
    if (size < 0 || size > LIMIT_TREE_FILE)
        return tree_refuse(err, path, "larger than 10 MiB");
    if (size > LIMIT_TREE_BYTES - t->total)
        return err_set(err, ERR_LIMIT, E8010, "more than 50 MiB in all files together");
    return path.n <= LIMIT_TREE_PATHS - t->paths ||
           err_set(err, ERR_LIMIT, E8010, "more than %zu bytes in all paths together", LIMIT_TREE_PATHS);
}

bool tree_take(Tree *t, Str path, bool executable, Str bytes, Err *err)
{
    if (!tree__fits(t, path, (int64_t)bytes.n, err))
        return false;
    if (t->n == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 64;
        t->v = mem_grow(t->v, t->cap, sizeof *t->v);
    }
    t->v[t->n++] = (TreeFile){.path = arena_str(&t->own, path), .executable = executable, .bytes = bytes};
    t->total += (int64_t)bytes.n;
    t->paths += path.n;
    return true;
}

bool tree_add(Tree *t, Str path, bool executable, int64_t size, char **bytes, Err *err)
{
    if (!tree__fits(t, path, size, err))
        return false;
    *bytes = arena_alloc(&t->own, (size_t)size);
    return tree_take(t, path, executable, (Str){*bytes, (size_t)size}, err);
}

const TreeFile *tree_find(const Tree *t, Str path)
{
    for (size_t i = 0; i < t->n; i++)
        if (str_eq(t->v[i].path, path))
            return &t->v[i];
    return NULL;
}

/* ---- what may not stand side by side ---- */

static int tree__by_path(const void *a, const void *b)
{
    return str_order(((const TreeFile *)a)->path, ((const TreeFile *)b)->path);
}

typedef struct TreeKey { Str key, path; } TreeKey;

static int tree__by_key(const void *a, const void *b)
{
    return str_order(((const TreeKey *)a)->key, ((const TreeKey *)b)->key);
}

/* The keys lie one behind the other in the Buf, which moves no more. */
static void tree__place(TreeKey *keys, size_t n, const Buf *room)
{
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        keys[i].key.p = room->p + at;
        at += keys[i].key.n;
    }
}

/* Refuse two paths that are one when case does not count. Sorted by their
 * folded forms, they are neighbours. */
static bool tree__distinct(const Tree *t, TreeKey *keys, Buf *room, Err *err)
{
    size_t at = 0;

    for (size_t i = 0; i < t->n; i++) {
        casefold_add(room, t->v[i].path);
        keys[i] = (TreeKey){{NULL, room->n - at}, t->v[i].path};
        at = room->n;
    }
    tree__place(keys, t->n, room);
    qsort(keys, t->n, sizeof *keys, tree__by_key);
    for (size_t i = 1; i < t->n; i++)
        if (str_eq(keys[i - 1].key, keys[i].key))
            return tree_refuse(err, keys[i].path, str_eq(keys[i - 1].path, keys[i].path) ?
                                "it is there twice" : "another name differs from it in case alone");
    return true;
}

/* Refuse a file that is also a folder. With "/" as the lowest of all bytes
 * (a path holds no NUL), what is in the folder `a` comes right behind `a`. */
static bool tree__no_folder(const Tree *t, TreeKey *keys, Buf *room, Err *err)
{
    size_t at = 0;

    for (size_t i = 0; i < t->n; i++) {
        buf_add(room, t->v[i].path);
        for (size_t k = at; k < room->n; k++)
            if (room->p[k] == '/')
                room->p[k] = '\0';
        keys[i] = (TreeKey){{NULL, room->n - at}, t->v[i].path};
        at = room->n;
    }
    tree__place(keys, t->n, room);
    qsort(keys, t->n, sizeof *keys, tree__by_key);
    for (size_t i = 1; i < t->n; i++)
        if (str_starts(keys[i].path, keys[i - 1].path) && keys[i].path.p[keys[i - 1].path.n] == '/')
            return tree_refuse(err, keys[i - 1].path, "it is a file and a folder");
    return true;
}

size_t tree_shared(Str path, Str before)
{
    size_t same = 0, from = 0;

    while (same < path.n && same < before.n && path.p[same] == before.p[same])
        if (path.p[same++] == '/')
            from = same;
    return from;
}

/* As many names as a walk through the written tree meets. */
static bool tree__entries(const Tree *t, Err *err)
{
    size_t n = t->n;
    Str    before = {0};

    for (size_t i = 0; i < t->n; i++) {
        Str path = t->v[i].path;
        for (size_t k = tree_shared(path, before); k < path.n; k++)
            n += path.p[k] == '/';
        before = path;
    }
    return n <= LIMIT_TREE_ENTRIES || err_set(err, ERR_LIMIT, E8010, "more than %d names in all folders", LIMIT_TREE_ENTRIES);
}

bool tree_seal(Tree *t, Err *err)
{
    TreeKey *keys = mem_new((t->n + 1) * sizeof *keys);
    Buf      room = buf_make(CASEFOLD_MOST * t->paths + 1);

    bool ok = tree__distinct(t, keys, &room, err);
    buf_clear(&room);
    ok = ok && tree__no_folder(t, keys, &room, err);
    buf_free(&room);
    mem_free(keys);
    if (!ok)
        return false;
    if (t->n)
        qsort(t->v, t->n, sizeof *t->v, tree__by_path);
    if (!tree__entries(t, err))
        return false;
    for (size_t i = 0; i < t->n; i++) {
        Sha256 h = sha256_make();
        sha256_add(&h, t->v[i].bytes);
        sha256_end(&h, t->v[i].sha256);
    }
    return true;
}

/* ---- the digest ---- */

void tree_digest_file(Sha256 *outer, Str path, bool executable, const unsigned char sha256[static SHA256_SIZE])
{
    ABX_UNSET char hex[TREE_HEX];

    hex_write((Str){(const char *)sha256, SHA256_SIZE}, hex);
    hex[TREE_HEX - 1] = '\n';
    sha256_add(outer, path);
    sha256_add(outer, executable ? (Str){"\0x", 3} : (Str){"\0-", 3});
    sha256_add(outer, (Str){hex, sizeof hex});
}

void tree_digest_end(Sha256 *outer, char hex[static TREE_HEX])
{
    unsigned char out[SHA256_SIZE];

    sha256_end(outer, out);
    hex_write((Str){(const char *)out, sizeof out}, hex);
    hex[TREE_HEX - 1] = '\0';
}

void tree_digest(const Tree *t, char hex[static TREE_HEX])
{
    Sha256 outer = sha256_make();

    for (size_t i = 0; i < t->n; i++)
        tree_digest_file(&outer, t->v[i].path, t->v[i].executable, t->v[i].sha256);
    tree_digest_end(&outer, hex);
}
