#include "data/object.h"

#include "base/hex.h"
#include "base/num.h"
#include "base/str.h"
#include <stdio.h>

/* --- ids ---------------------------------------------------------------------- */

size_t object_id_size(ObjectHash hash)
{
    return hash == OBJECT_SHA1 ? SHA1_SIZE : SHA256_SIZE;
}

bool object_id_read(ObjectHash hash, Str hex, ObjectId *out)
{
    ObjectId id = {0};
    uint64_t v;

    if (hex.n != 2 * object_id_size(hash))
        return false;
    for (size_t i = 0; i < hex.n; i += 2) {
        if (!num_hex((Str){hex.p + i, 2}, &v))
            return false;
        id.b[i / 2] = (unsigned char)v;
    }
    *out = id;
    return true;
}

void object_id_hex(ObjectHash hash, const ObjectId *id, char hex[static OBJECT_HEX])
{
    size_t n = object_id_size(hash);

    hex_write((Str){(const char *)id->b, n}, hex);
    hex[2 * n] = '\0';
}

int object_id_cmp(const ObjectId *a, const ObjectId *b)
{
    return memcmp(a->b, b->b, sizeof a->b);
}

const char *object_type_name(ObjectType type)
{
    static const char *const names[] = {"object", "commit", "tree", "blob", "tag"};

    return names[type];
}

ObjectDigest object_digest(ObjectHash hash)
{
    ObjectDigest d = {.hash = hash};

    if (hash == OBJECT_SHA1)
        d.u.one = sha1_make();
    else
        d.u.two = sha256_make();
    return d;
}

ObjectDigest object_digest_of(ObjectHash hash, ObjectType type, uint64_t size)
{
    ObjectDigest d = object_digest(hash);
    ABX_UNSET char head[40];
    int          n = snprintf(head, sizeof head, "%s %llu", object_type_name(type), (unsigned long long)size);

    object_digest_add(&d, (Str){head, (size_t)n + 1});      /* with its NUL */
    return d;
}

void object_digest_add(ObjectDigest *d, Str bytes)
{
    if (d->hash == OBJECT_SHA1)
        sha1_add(&d->u.one, bytes);
    else
        sha256_add(&d->u.two, bytes);
}

void object_digest_end(ObjectDigest *d, ObjectId *out)
{
    *out = (ObjectId){{0}};
    if (d->hash == OBJECT_SHA1)
        sha1_end(&d->u.one, out->b);
    else
        sha256_end(&d->u.two, out->b);
}

void object_id_of(ObjectHash hash, ObjectType type, Str content, ObjectId *out)
{
    ObjectDigest d = object_digest_of(hash, type, content.n);

    object_digest_add(&d, content);
    object_digest_end(&d, out);
}

/* --- commits and tags --------------------------------------------------------- */

/* The line "KEY VALUE" that *rest begins with. */
static bool object__line(Str *rest, Str key, Str *value)
{
    size_t end = str_find(*rest, '\n');

    if (end == rest->n || !str_starts(*rest, key) || end <= key.n || rest->p[key.n] != ' ')
        return false;
    *value = str_from_to(*rest, key.n + 1, end);
    str_skip(rest, end + 1);
    return true;
}

bool object_commit_tree(ObjectHash hash, Str commit, ObjectId *tree, Err *err)
{
    Str value;

    return (object__line(&commit, STR("tree"), &value) && object_id_read(hash, value, tree)) ||
           err_set(err, ERR_INPUT, E8010, "a commit without a tree");
}

bool object_tag_target(ObjectHash hash, Str tag, ObjectId *target, ObjectType *type, Err *err)
{
    Str value;

    if (object__line(&tag, STR("object"), &value) && object_id_read(hash, value, target) &&
        object__line(&tag, STR("type"), &value))
        for (ObjectType t = OBJECT_COMMIT; t <= OBJECT_TAG; t++)
            if (str_eq(value, str_from(object_type_name(t)))) {
                *type = t;
                return true;
            }
    return err_set(err, ERR_INPUT, E8010, "a tag that names no object");
}

/* --- trees -------------------------------------------------------------------- */

ObjectTree object_tree(ObjectHash hash, Str content)
{
    return (ObjectTree){.hash = hash, .rest = content};
}

/* The order of git's trees: bytes, a folder's name as if a slash followed. */
static int object__order(Str a, bool a_tree, Str b, bool b_tree)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int    c = memcmp(a.p, b.p, n);

    if (c)
        return c;
    int x = a.n > n ? (unsigned char)a.p[n] : a_tree ? '/' : 0;
    int y = b.n > n ? (unsigned char)b.p[n] : b_tree ? '/' : 0;
    return x - y;
}

/* The octal digits before the blank: no leading zero. */
static bool object__mode(Str s, unsigned *mode)
{
    unsigned v = 0;

    if (s.n == 0 || s.n > 6 || s.p[0] == '0')
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '7')
            return false;
        v = v << 3 | (unsigned)(s.p[i] - '0');
    }
    *mode = v;
    return true;
}

static bool object__bad_name(Str name)
{
    return name.n == 0 || name.n > OBJECT_NAME_MAX || str_has(name, '/') || str_eq(name, STR(".")) ||
           str_eq(name, STR("..")) || str_eq_nocase(name, STR(".git"));
}

/* A file `a` and a folder `a` need not stand side by side: `a.b` comes between
 * them. All that does begins with `a`. */
static bool object__twice(ObjectTree *t, Str name, bool tree)
{
    size_t same = 0;

    while (same < name.n && same < t->last.n && name.p[same] == t->last.p[same])
        same++;
    for (size_t n = same + 1; n <= t->last.n; n++)
        t->file[n] = false;
    if (!tree)
        t->file[name.n] = true;
    return tree && t->file[name.n];
}

static Step object__bad_tree(const char *what, Err *err)
{
    err_set(err, ERR_INPUT, E8010, "%s", what);
    return STEP_ERR;
}

Step object_tree_next(ObjectTree *t, ObjectEntry *out, Err *err)
{
    ObjectEntry e = {.id = {{0}}};
    size_t      id = object_id_size(t->hash), blank = str_find(t->rest, ' '), nul = str_find(t->rest, '\0');

    if (t->rest.n == 0)
        return STEP_MORE;
    if (nul >= t->rest.n || blank > nul || t->rest.n - nul - 1 < id ||
        !object__mode(str_from_to(t->rest, 0, blank), &e.mode))
        return object__bad_tree("a git tree that is damaged", err);
    e.name = str_from_to(t->rest, blank + 1, nul);
    memcpy(e.id.b, t->rest.p + nul + 1, id);
    str_skip(&t->rest, nul + 1 + id);
    if (object__bad_name(e.name))
        return object__bad_tree("a git tree with a name that no file may have", err);
    bool tree = e.mode == OBJECT_MODE_TREE;
    if ((t->last.p && object__order(t->last, t->last_tree, e.name, tree) >= 0) || object__twice(t, e.name, tree))
        return object__bad_tree("a git tree that is out of order, or has one name twice", err);
    t->last = e.name;
    t->last_tree = tree;
    *out = e;
    return STEP_DONE;
}
