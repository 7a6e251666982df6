/* A hostile sender: a script of entries (a letter, a path, a word, a line each)
 * becomes a stream, and that files. Outside the target nothing changes; what was
 * said to be done is there, once each and below a folder that was; nothing is
 * left of what was not. */
#include "base/limits.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "data/tar.h"
#include "os/folder.h"
#include "sync/draft.h"
#include "sync/receiver.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FUZZ_ASSERT(x) do { if (!(x)) __builtin_trap(); } while (0)

typedef struct FuzzDone { char *path; size_t n; bool file; int64_t size; } FuzzDone;

static FuzzDone fuzz_done[2000];
static size_t   fuzz_dones;
static bool     fuzz_several;

static void fuzz_put(Buf *to, TarType type, Str name, Str target, Str content, unsigned mode)
{
    Err err;

    if (tar_put(to, &(TarHead){.type = type, .name = name, .target = target, .mode = mode, .size = (int64_t)content.n}, &err)) {
        buf_add(to, content);
        buf_add(to, (Str){(const char[TAR_BLOCK]){0}, tar_pad((int64_t)content.n)});
    }
}

static void fuzz_record(Buf *to, ItemKind kind, Str path, Str word)
{
    char     words[ITEM_WORDS];
    uint64_t n;
    Item     i = {.kind = kind, .path = path, .hashed = kind == ITEM_HASH, .size = (int64_t)word.n};
    Sha256   h = sha256_make();

    if (kind != ITEM_HASH && num_u64(word, &n)) {
        i.size = (int64_t)(n & INT64_MAX);
        i.number = (uint32_t)n;
    }
    sha256_add(&h, word);
    sha256_end(&h, i.sha256);
    fuzz_put(to, TAR_RECORD, path, item_words(&i, words), STR(""), 0);
}

static void fuzz_line(Buf *to, Str line)
{
    Str  path, word = line;
    char verb = line.n ? *line.p : 0;

    str_skip(&word, line.n ? 1 : 0);
    if (!str_cut(&word, ' ', &path))
        path = (Str){0};
    switch (verb) {
    case 'd': fuzz_put(to, TAR_FOLDER, path, STR(""), STR(""), word.n ? (unsigned char)*word.p : 0755); break;
    case 'l': fuzz_put(to, TAR_SYMLINK, path, word, STR(""), 0777); break;
    case 'f':
    case 'c': fuzz_put(to, TAR_FILE, path, STR(""), word, 0644); break;
    case 'F': fuzz_record(to, ITEM_FAILED, path, word); break;
    case 'k': fuzz_record(to, ITEM_KEPT, path, word); break;
    case 'S': fuzz_record(to, ITEM_SPARSE, path, word); break;
    case 'B': fuzz_record(to, ITEM_FROM, path, word); break;
    case 't': fuzz_record(to, ITEM_TOTAL, path, word); break;
    case 'e': fuzz_record(to, ITEM_END, path, word); break;
    case 'r': fuzz_put(to, TAR_RECORD, path, word, STR(""), 0); break;
    default: buf_add(to, line); break;
    }
    if (verb == 'f' || verb == 'h')
        fuzz_record(to, ITEM_HASH, path, word);
}

static void fuzz_item(void *ctx, const Item *i)
{
    Str  path = i->path;
    bool below = false;

    (void)ctx;
    if (i->kind != ITEM_DONE || fuzz_dones == COUNT_OF(fuzz_done))
        return;
    const char *slash = memrchr(path.p, '/', path.n);
    for (size_t k = 0; k < fuzz_dones && !fuzz_several; k++) {
        const FuzzDone *d = &fuzz_done[k];
        FUZZ_ASSERT(!str_eq((Str){d->path, d->n}, path));
        below |= slash && !d->file && str_eq((Str){d->path, d->n}, (Str){path.p, (size_t)(slash - path.p)});
    }
    FUZZ_ASSERT(!slash || below || fuzz_several);
    fuzz_done[fuzz_dones++] = (FuzzDone){mem_str(path), path.n, i->hashed, i->size};
}

static size_t fuzz_count(const char *folder, const char *with)
{
    static Arena a = {0};
    const Str   *names;
    int          fd = folder_open(AT_FDCWD, folder);
    size_t       n = 0;

    if (!a.p)
        a = arena_make(8 << 20);
    arena_reset(&a);
    ptrdiff_t all = folder_names(fd, 10000, &a, &names);
    for (ptrdiff_t i = 0; i < all; i++)
        n += !with || (str_starts(names[i], str_from(with)) && names[i].n == 21);
    close(fd);
    return n;
}

/* Each file that was done is there, and in its folder there is nothing else that has a temporary name. */
static void fuzz_look(bool resume)
{
    char        path[LIMIT_SYNC_PATH + 10];
    struct stat st;

    for (size_t k = 0; k < fuzz_dones; k++) {
        const FuzzDone *d = &fuzz_done[k];
        snprintf(path, sizeof path, "T/%s", d->path);
        if (!fuzz_several && d->n < 4000)
            FUZZ_ASSERT(lstat(path, &st) == 0 && (!d->file || (S_ISREG(st.st_mode) && st.st_size == d->size)));
        if (d->n < 4000 && !d->file && !resume && lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
            FUZZ_ASSERT(fuzz_count(path, ".abx-") == 0 || memmem(path, d->n + 2, ".abx-", 5));
        mem_free(d->path);
    }
    fuzz_dones = 0;
    FUZZ_ASSERT(stat("victim", &st) == 0 && st.st_size == 3 && st.st_nlink == 1 && (st.st_mode & 07777) == 0640);
    FUZZ_ASSERT(fuzz_count("out", NULL) == 0 && fuzz_count(".", NULL) == 3);
}

static char fuzz_folder[] = "/dev/shm/abx-fuzz-receiver-XXXXXX", fuzz_other[] = "/tmp/abx-fuzz-receiver-XXXXXX";

static void fuzz_leave(void)
{
    folder_remove(AT_FDCWD, fuzz_folder);
    folder_remove(AT_FDCWD, fuzz_other);
}

static void fuzz_enter(void)
{
    static bool entered = false;

    if (entered)
        return;
    entered = atexit(fuzz_leave) == 0;
    umask(022);
    FUZZ_ASSERT((mkdtemp(fuzz_folder) ? chdir(fuzz_folder) : mkdtemp(fuzz_other) ? chdir(fuzz_other) : -1) == 0);
    int fd = open("victim", O_WRONLY | O_CREAT, 0640);
    FUZZ_ASSERT(write(fd, "old", 3) == 3 && mkdir("out", 0755) == 0);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Str   script = {(const char *)data, size}, line;
    Buf   stream = buf_make(1 << 20);
    Err   err;
    bool  ok = true, resume;

    if (size < 2 || size > 1 << 16) {
        buf_free(&stream);
        return 0;
    }
    fuzz_enter();
    fuzz_several = data[0] & 1;
    resume = data[0] & 2;
    size_t piece = data[0] & 4 ? 1 + data[1] : SIZE_MAX;
    str_skip(&script, 2);
    while (str_cut(&script, '\n', &line))
        fuzz_line(&stream, line);
    if (data[0] & 8)
        buf_add(&stream, (Str){(const char[TAR_TAIL]){0}, TAR_TAIL});
    /* What is there already: ways out, and other types. */
    FUZZ_ASSERT(mkdir("T", 0755) == 0 && mkdir("T/a", 0755) == 0 && symlink("../out", "T/o") == 0 && symlink("../victim", "T/v") == 0 &&
                symlink("../../out", "T/a/o") == 0 && symlink("../../victim", "T/a/v") == 0 && mkdir("T/a/d", 0755) == 0);
    if (resume) {
        char part[DRAFT_NAME + 4] = "T/a/";
        draft_part_name(STR("x"), part + 4);
        int fd = open(part, O_WRONLY | O_CREAT, 0600);
        FUZZ_ASSERT(write(fd, "abc", 3) == 3);
        close(fd);
    }
    Receiver *r = receiver_open(&(ReceiverRequest){.target = "T", .several = fuzz_several, .resume = resume, .item = fuzz_item});
    for (Str in = buf_str(&stream); in.n && ok;) {
        Str part = {in.p, piece < in.n ? piece : in.n};
        ok = receiver_feed(r, part, &err);
        str_skip(&in, part.n);
    }
    ok = ok && receiver_end(r, &err);
    if (!ok)
        FUZZ_ASSERT(err.code == E8020 || err.code == E4000);
    FUZZ_ASSERT(!receiver_feed(r, (Str){"d", 1}, &err) || !ok);
    receiver_close(r);
    fuzz_look(resume);
    folder_remove(AT_FDCWD, "T");
    buf_free(&stream);
    return 0;
}
