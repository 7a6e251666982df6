#include "sync/have.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/glob.h"
#include "os/folder.h"
#include "sync/draft.h"
#include "sync/order.h"
#include "sync/target.h"
#include "sync/walk.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HAVE_KEY = 16, HAVE_FIRST = 64 };

typedef struct HaveFile {
    unsigned char key[HAVE_KEY];        /* of its kind and path: too long for two to be alike, even on purpose */
    bool          hashed;
    int64_t       size;
    unsigned char sha256[SHA256_SIZE];
} HaveFile;

struct Have {
    HaveFile *v;
    size_t    n, cap;
    uint32_t *slots;            /* twice cap, a power of two: the number of a file, and one; 0: free */
};

Have *have_make(void)
{
    return mem_new(sizeof(Have));
}

void have_free(Have *h)
{
    if (!h)
        return;
    mem_free(h->v);
    mem_free(h->slots);
    mem_free(h);
}

/* A partial file's line has its own path, made from that of its file. */
static void have__key(ItemKind kind, Str path, unsigned char key[static HAVE_KEY])
{
    unsigned char sum[SHA256_SIZE];
    Sha256        h = sha256_make();

    sha256_add(&h, kind == ITEM_PART ? STR("part ") : STR("have "));
    sha256_add(&h, path);
    sha256_end(&h, sum);
    memcpy(key, sum, HAVE_KEY);
}

/* Where it is, or could be. */
static uint32_t *have__slot(const Have *h, const unsigned char key[static HAVE_KEY])
{
    size_t at, mask = 2 * h->cap - 1;

    memcpy(&at, key, sizeof at);
    for (at &= mask; h->slots[at] && memcmp(h->v[h->slots[at] - 1].key, key, HAVE_KEY) != 0;)
        at = (at + 1) & mask;
    return &h->slots[at];
}

static void have__grow(Have *h)
{
    h->cap = h->cap ? 2 * h->cap : HAVE_FIRST;
    h->v = mem_grow(h->v, h->cap, sizeof *h->v);
    mem_free(h->slots);
    h->slots = mem_new(2 * h->cap * sizeof *h->slots);
    for (size_t i = 0; i < h->n; i++)
        *have__slot(h, h->v[i].key) = (uint32_t)i + 1;
}

bool have_add(Have *h, const Item *i, Err *err)
{
    HaveFile f = {.hashed = i->hashed, .size = i->size};

    if (h->n == LIMIT_SYNC_HAVE)
        return err_set(err, ERR_LIMIT, E4003, "more than %zu files are there already", LIMIT_SYNC_HAVE);
    if (h->n == h->cap)
        have__grow(h);
    have__key(i->kind, i->path, f.key);
    memcpy(f.sha256, i->sha256, SHA256_SIZE);
    uint32_t *slot = have__slot(h, f.key);
    if (*slot == 0)
        *slot = (uint32_t)++h->n;
    h->v[*slot - 1] = f;
    return true;
}

/* The path of a file's partial one. */
static Str have__part(Str path, char room[static LIMIT_SYNC_PATH + DRAFT_NAME])
{
    Str    name = order_name(path);
    size_t n = path.n - name.n;

    memcpy(room, path.p, n);
    draft_part_name(name, room + n);
    return (Str){room, n + strlen(room + n)};
}

bool have_find(const Have *h, ItemKind kind, Str path, Item *i)
{
    ABX_UNSET char room[LIMIT_SYNC_PATH + DRAFT_NAME];
    unsigned char key[HAVE_KEY];

    if (h->n == 0 || path.n > LIMIT_SYNC_PATH)
        return false;
    have__key(kind, kind == ITEM_PART ? have__part(path, room) : path, key);
    uint32_t number = *have__slot(h, key);
    if (number == 0)
        return false;
    const HaveFile *f = &h->v[number - 1];
    *i = (Item){.kind = kind, .hashed = f->hashed, .size = f->size, .path = path};
    memcpy(i->sha256, f->sha256, SHA256_SIZE);
    return true;
}

/* ---- what is there ---- */

bool have_sum(int fd, int64_t size, Sha256 *sum, int64_t *got)
{
    char   *block = mem_new(LIMIT_COPY_BLOCK);
    ssize_t n = 1;

    for (*got = 0; n > 0 && *got != size;) {
        int64_t left = size < 0 ? (int64_t)LIMIT_COPY_BLOCK : size - *got;
        n = pread(fd, block, left < (int64_t)LIMIT_COPY_BLOCK ? (size_t)left : LIMIT_COPY_BLOCK, *got);
        if (n < 0 && errno == EINTR) {
            n = 1;
            continue;
        }
        sha256_add(sum, (Str){block, n > 0 ? (size_t)n : 0});
        *got += n > 0 ? n : 0;
    }
    int sys = errno;
    mem_free(block);
    errno = sys;
    return n >= 0;
}

bool have_hash(int fd, int64_t size, int64_t *got, unsigned char sha256[static SHA256_SIZE])
{
    Sha256 sum = sha256_make();

    if (!have_sum(fd, size, &sum, got))
        return false;
    sha256_end(&sum, sha256);
    return true;
}

typedef struct HaveTeller {
    Sink to;
    Buf  line;
    bool partials;
} HaveTeller;

static bool have__tell(HaveTeller *t, const Item *i, Err *err)
{
    buf_clear(&t->line);
    item_put(&t->line, i);
    return t->to.write(t->to.ctx, buf_str(&t->line), err);
}

static bool have__tell_file(HaveTeller *t, ItemKind kind, int fd, Str path, Err *err)
{
    Item i = {.kind = kind, .hashed = true, .path = path};

    return !have_hash(fd, -1, &i.size, i.sha256) || have__tell(t, &i, err);
}

/* What lies beside the root itself, were it a file. */
static bool have__tell_beside(HaveTeller *t, Str at, Str name, Err *err)
{
    ABX_UNSET char room[LIMIT_SYNC_PATH + DRAFT_NAME];
    Str         path = have__part(at, room);
    int         fd = open(path.p, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd < 0)
        return true;
    bool ok = !draft_is_ours(fd) || have__tell_file(t, ITEM_PART, fd, have__part(name, room), err);
    close(fd);
    return ok;
}

static bool have__tell_below(HaveTeller *t, const char *at, Str name, Err *err)
{
    WalkRoot  root = {.path = at, .name = name};
    Walk     *w = walk_open(&root, 1);
    WalkEntry e;
    bool      ok = true;

    while (ok && walk_next(w, &e))
        if (e.kind == WALK_FILE)
            ok = have__tell_file(t, t->partials && draft_is_part(order_name(e.path)) && draft_is_ours(e.fd) ? ITEM_PART : ITEM_HAVE,
                                 e.fd, e.path, err);
    walk_close(w);
    return ok;
}

/* The root itself, unless it is a link, which the copy would replace. */
static bool have__tell_root(HaveTeller *t, const char *at, Str name, Err *err)
{
    ABX_UNSET struct stat st;

    return lstat(at, &st) != 0 || S_ISLNK(st.st_mode) || have__tell_below(t, at, name, err);
}

/* What a pattern made, and the parts of it, of which nobody knows the names yet. */
static bool have__tell_matches(HaveTeller *t, const char *folder, Str pattern, Err *err)
{
    Arena      a = arena_make(ARENA_COMMAND);
    const Str *names;
    int        fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    ptrdiff_t  n = folder_names(fd, LIMIT_SYNC_ROOTS, &a, &names);
    bool       ok = true;

    for (ptrdiff_t i = 0; ok && i < n; i++)
        if (glob_name(pattern, names[i]) || str_eq(pattern, names[i]) || (t->partials && draft_is_part(names[i])))
            ok = have__tell_root(t, arena_fmt(&a, "%s%s", folder, names[i].p).p, names[i], err);
    if (fd >= 0)
        close(fd);
    arena_free(&a);
    return ok;
}

/* Where a copy of `name` to the target would go: into a folder that is there, or
 * to where the target leads. */
static Str have__where(const char *target, Str name, Buf *at)
{
    ABX_UNSET char real[PATH_MAX];
    ABX_UNSET struct stat st;
    bool        into = stat(target, &st) == 0 && S_ISDIR(st.st_mode) && !str_eq(name, STR(".")) && !target_making(target);

    buf_add(at, str_from(into || !realpath(target, real) ? target : real));
    if (into) {
        buf_addc(at, '/');
        buf_add(at, name);
    }
    buf_addc(at, '\0');
    return (Str){at->p, at->n - 1};
}

bool have_list(const char *target, Str name, bool partials, Sink to, Err *err)
{
    HaveTeller  t = {.to = to, .line = buf_make(ITEM_WORDS + LIMIT_SYNC_PATH + 2), .partials = partials};
    Buf         room = buf_make(LIMIT_SYNC_PATH);
    Str         at = have__where(target, name, &room);
    ABX_UNSET struct stat st;
    bool        fits = !room.over && name.n <= LIMIT_SYNC_PATH, ok = true;

    if (fits && str_ends(str_from(target), STR("/")) && walk_is_pattern(name)) {
        ok = have__tell_matches(&t, target, name, err);
    } else if (fits) {
        if (partials && !(lstat(at.p, &st) == 0 && S_ISDIR(st.st_mode)) && order_name(at).n)
            ok = have__tell_beside(&t, at, name, err);
        ok = ok && have__tell_root(&t, at.p, name, err);
    }
    ok = ok && have__tell(&t, &(Item){.kind = ITEM_END}, err);
    buf_free(&t.line);
    buf_free(&room);
    return ok;
}
