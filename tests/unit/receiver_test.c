#include "sync/have.h"
#include "sync/receiver.h"
#include "data/tar.h"
#include "os/folder.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- streams, from a few words ---- */

static void receiver_put_record(Buf *to, ItemKind kind, Str path, uint32_t number, int64_t size, const char *text)
{
    Item   i = {.kind = kind, .number = number, .size = size, .path = path};
    char   words[ITEM_WORDS];
    Err    err;

    if (text) {
        Sha256 h = sha256_make();
        sha256_add(&h, str_from(text));
        sha256_end(&h, i.sha256);
        i.hashed = true;
    }
    assert_true(tar_put(to, &(TarHead){.type = TAR_RECORD, .name = path, .target = item_words(&i, words)}, &err));
}

static void receiver_put_file(Buf *to, Str path, unsigned mode, Str text)
{
    Err err;

    assert_true(tar_put(to, &(TarHead){.type = TAR_FILE, .name = path, .mode = mode, .size = (int64_t)text.n}, &err));
    buf_add(to, text);
    for (size_t pad = tar_pad((int64_t)text.n); pad; pad--)
        buf_addc(to, 0);
}

/* Another type of entry than tar_put() makes. */
static void receiver_put_type(Buf *to, Str path, char type)
{
    size_t   at = to->n;
    unsigned sum = 0;

    receiver_put_file(to, path, 0644, STR(""));
    to->p[at + 156] = type;
    memset(to->p + at + 148, ' ', 8);
    for (size_t i = 0; i < 512; i++)
        sum += (unsigned char)to->p[at + i];
    snprintf(to->p + at + 148, 8, "%06o", sum);
}

static void receiver_put_end(Buf *to)
{
    for (size_t i = 0; i < TAR_TAIL; i++)
        buf_addc(to, 0);
}

/* One line of a script: a letter, a path, and a word more.
 *   d PATH [MODE]     a folder          f PATH TEXT [MODE]   a file and its hash
 *   l PATH TO         a link            c PATH TEXT          a file, and nothing behind it
 *   h PATH TEXT       the hash of TEXT  F PATH NUMBER        failed
 *   k PATH            kept              S -                  sparse
 *   B - NUMBER        from              t - NUMBER           total
 *   H PATH TEXT       the same, with another size        z -  the archive's end alone
 *   e -               the end           T PATH TYPE          a type of entry
 *   r PATH WORDS      a record of any words, with _ for blanks */
static void receiver_put_line(Buf *to, Str line)
{
    Str      verb, path, word = {0}, mode = {0};
    uint64_t n, m = 0755;
    char     text[200];
    Err      err;

    str_cut(&line, ' ', &verb);
    str_cut(&line, ' ', &path);
    (void)(str_cut(&line, ' ', &word) && str_cut(&line, ' ', &mode));
    snprintf(text, sizeof text, "%.*s", STR_ARG(word));
    if (!num_u64(word, &n))
        n = 0;
    if (*verb.p == 'd' && word.n)
        m = strtoul(text, NULL, 8);
    if (*verb.p == 'f' || *verb.p == 'c')
        m = mode.n ? strtoul(mode.p, NULL, 8) : 0644;
    switch (*verb.p) {
    case 'd': assert_true(tar_put(to, &(TarHead){.type = TAR_FOLDER, .name = path, .mode = (unsigned)m}, &err)); break;
    case 'l': assert_true(tar_put(to, &(TarHead){.type = TAR_SYMLINK, .name = path, .target = word}, &err)); break;
    case 'f':
    case 'c':
        receiver_put_file(to, path, (unsigned)m, word);
        if (*verb.p == 'f')
            receiver_put_record(to, ITEM_HASH, path, 0, (int64_t)word.n, text);
        break;
    case 'H': receiver_put_record(to, ITEM_HASH, path, 0, (int64_t)word.n + 1, text); break;
    case 'z': receiver_put_end(to); break;
    case 'h': receiver_put_record(to, ITEM_HASH, path, 0, (int64_t)word.n, text); break;
    case 'F': receiver_put_record(to, ITEM_FAILED, path, (uint32_t)n, 0, NULL); break;
    case 'k': receiver_put_record(to, ITEM_KEPT, path, 0, 3, "abc"); break;
    case 'S': receiver_put_record(to, ITEM_SPARSE, path, 0, 0, NULL); break;
    case 'B': receiver_put_record(to, ITEM_FROM, path, 0, (int64_t)n, NULL); break;
    case 't': receiver_put_record(to, ITEM_TOTAL, path, (uint32_t)n, 0, NULL); break;
    case 'e':
        receiver_put_record(to, ITEM_END, path, 0, 0, NULL);
        receiver_put_end(to);
        break;
    case 'T': receiver_put_type(to, path, text[0]); break;
    case 'r':
        for (char *p = text; *p; p++)
            *p = *p == '_' ? ' ' : *p;
        assert_true(tar_put(to, &(TarHead){.type = TAR_RECORD, .name = path, .target = str_from(text)}, &err));
        break;
    default: fail_msg("%s", verb.p);
    }
}

static Buf receiver_stream(const char *script)
{
    Buf to = buf_make(64 << 20);
    Str rest = str_from(script), line;

    while (str_cut(&rest, '\n', &line))
        if (line.n)
            receiver_put_line(&to, line);
    return to;
}

/* ---- what comes of it ---- */

/* In memory that a child of ours shares. */
typedef struct ReceiverResult {
    bool    ok;
    Err     err;
    size_t  items;
    int64_t moved;
    char    log[100000];         /* an item a line, without hashes */
} ReceiverResult;

static const char *receiver_sys(uint32_t n)
{
    static const struct { uint32_t n; const char *name; } names[] = {
        {EACCES, "EACCES"}, {EIO, "EIO"}, {EISDIR, "EISDIR"}, {ENOTDIR, "ENOTDIR"}, {ELOOP, "ELOOP"}, {EBUSY, "EBUSY"},
        {ENAMETOOLONG, "ENAMETOOLONG"}, {EROFS, "EROFS"}, {EPERM, "EPERM"}, {EFBIG, "EFBIG"}, {ENOENT, "ENOENT"},
    };

    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (names[i].n == n)
            return names[i].name;
    return "other";
}

static void receiver_noted(void *ctx, const Item *i)
{
    static const char *const names[] = {[ITEM_TOTAL] = "total", [ITEM_FAILED] = "failed", [ITEM_KEPT] = "kept",
                                        [ITEM_END] = "end", [ITEM_DONE] = "done"};
    ReceiverResult *res = ctx;
    size_t at = strlen(res->log);

    res->items++;
    if (i->kind == ITEM_FAILED)
        snprintf(res->log + at, sizeof res->log - at, "failed %.*s %s\n", STR_ARG(i->path), receiver_sys(i->number));
    else if (i->kind == ITEM_END || i->kind == ITEM_TOTAL)
        snprintf(res->log + at, sizeof res->log - at, "%s %u %lld\n", names[i->kind], i->number, (long long)i->size);
    else
        snprintf(res->log + at, sizeof res->log - at, "%s %.*s\n", names[i->kind], STR_ARG(i->path));
}

static void receiver_moved_on(void *ctx, int64_t bytes)
{
    ((ReceiverResult *)ctx)->moved += bytes;
}

static ReceiverRequest receiver_rq(const char *target, const char *options, ReceiverResult *res)
{
    memset(res, 0, sizeof *res);
    return (ReceiverRequest){.target = target, .several = strchr(options, 's'), .resume = strchr(options, 'r'),
                             .lasting = strchr(options, 'l') ? 1 : 0, .item = receiver_noted, .moved = receiver_moved_on, .ctx = res};
}

/* In pieces of at most `piece` bytes, each with nothing that can be read behind it. */
static void receiver_run(Str stream, size_t piece, const char *target, const char *options, ReceiverResult *res)
{
    ReceiverRequest rq = receiver_rq(target, options, res);
    Receiver       *r = receiver_open(&rq);

    res->ok = true;
    while (res->ok && stream.n) {
        Str part = str_from_to(stream, 0, piece < stream.n ? piece : stream.n);
        res->ok = receiver_feed(r, piece < 4096 ? guard_copy(part) : part, &res->err);
        str_skip(&stream, part.n);
    }
    res->ok = res->ok && receiver_end(r, &res->err);
    receiver_close(r);
}

static void receiver_script(const char *script, const char *target, const char *options, ReceiverResult *res)
{
    Buf stream = receiver_stream(script);

    receiver_run(buf_str(&stream), SIZE_MAX, target, options, res);
    buf_free(&stream);
}

/* Whatever its mode, which is then to be set again. */
static int receiver_look_into(int at, const char *name, const struct stat *st)
{
    int flags = S_ISDIR(st->st_mode) ? O_RDONLY | O_DIRECTORY : O_RDONLY | O_NONBLOCK, fd = openat(at, name, flags);

    if (fd < 0 && fchmodat(at, name, 0700, 0) == 0)
        fd = openat(at, name, flags);
    assert_true(fd >= 0);
    return fd;
}

static void receiver_list_into(int at, Str above, Buf *to, Arena a)
{
    const Str *names;
    ptrdiff_t  n = folder_names(at, 1000, &a, &names);

    for (ptrdiff_t i = 0; i < n; i++) {
        struct stat st;
        char        text[4096] = "";
        Str         path = arena_fmt(&a, "%.*s%.*s", STR_ARG(above), STR_ARG(names[i]));
        assert_int_equal(fstatat(at, names[i].p, &st, AT_SYMLINK_NOFOLLOW), 0);
        if (S_ISLNK(st.st_mode)) {
            assert_true(readlinkat(at, names[i].p, text, sizeof text - 1) >= 0);
            buf_addf(to, "l %s -> %s\n", path.p, text);
        } else if (S_ISDIR(st.st_mode)) {
            int fd = receiver_look_into(at, names[i].p, &st);
            buf_addf(to, "d %s %o\n", path.p, st.st_mode & 07777);
            receiver_list_into(fd, arena_fmt(&a, "%s/", path.p), to, a);
            close(fd);
        } else {
            int fd = receiver_look_into(at, names[i].p, &st);
            ssize_t got = S_ISREG(st.st_mode) ? read(fd, text, 40) : 0;
            buf_addf(to, "f %s %o %.*s\n", path.p, st.st_mode & 07777, (int)(got > 0 ? got : 0), text);
            close(fd);
        }
        if (!S_ISLNK(st.st_mode) && st.st_uid == geteuid())
            assert_int_equal(fchmodat(at, names[i].p, st.st_mode & 07777, 0), 0);
    }
}

/* All that is in a folder, a line each; good until the next call. */
static const char *receiver_tree(const char *folder)
{
    static Buf   b = {0};
    static Arena a = {0};
    int          fd = folder_open(AT_FDCWD, folder);

    if (!b.limit) {
        b = buf_make(16 << 20);
        a = arena_make(64 << 20);
    }
    buf_clear(&b);
    assert_true(fd >= 0);
    receiver_list_into(fd, STR(""), &b, a);
    buf_addc(&b, 0);
    close(fd);
    return b.p;
}

static void receiver_setup(const char *commands)
{
    if (commands)
        assert_int_equal(system(commands), 0);
}

/* In a child, so that it can be somebody else, and lack what we have. */
static void receiver_apart(void (*child)(void *ctx), void *ctx)
{
    int   status;
    pid_t pid = fork();

    if (pid == 0) {
        child(ctx);
        _exit(0);
    }
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    assert_int_equal(status, 0);
}

static ReceiverResult *receiver_shared(void)
{
    void *p = mmap(NULL, sizeof(ReceiverResult), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(p != MAP_FAILED);
    return p;
}

/* ---- the matrix: what comes, on what is there ---- */

typedef struct ReceiverCase {
    const char *what, *before, *target, *options, *script;
    Code        code;           /* E0000: it succeeds */
    int         sys;
    const char *log, *tree;     /* NULL: not looked at */
} ReceiverCase;

static void receiver_cases(const ReceiverCase *c, size_t n)
{
    ReceiverResult *res = mem_new(sizeof *res);

    for (; n; n--, c++) {
        assert_int_equal(mkdir("w", 0755), 0);
        assert_int_equal(chdir("w"), 0);
        receiver_setup(c->before);
        receiver_script(c->script, c->target, c->options, res);
        if (res->ok ? c->code != E0000 : res->err.code != c->code || res->err.sys != c->sys || c->code == E0000)
            fail_msg("%s: %s E%d %d %s", c->what, res->ok ? "ok" : "failed", res->err.code, res->err.sys, res->err.text);
        if (!res->ok && c->code == E8020)
            assert_int_equal(res->err.kind, ERR_INPUT);
        if (c->log && strcmp(res->log, c->log) != 0)
            fail_msg("%s: %s", c->what, res->log);
        if (c->tree && strcmp(receiver_tree("."), c->tree) != 0)
            fail_msg("%s: %s", c->what, receiver_tree("."));
        assert_int_equal(chdir(".."), 0);
        folder_remove(AT_FDCWD, "w");
    }
    mem_free(res);
}

#define RECEIVER_TREE "d a 750\nf a/x 644 one\n"

/* The table in receiver.h. */
static void receiver_target_test(void **state)
{
    static const char file[] = "f a one\ne -", folder[] = "d a 750\nf a/x one\ne -", inside[] = "d . 750\nf ./x one\ne -",
                      several[] = "f b two\nd a 750\nf a/x one\ne -";
    static const ReceiverCase cases[] = {
        {"file, folder", "mkdir T", "T", "", file, 0, 0, "done a\nend 1 3\n", "d T 755\nf T/a 644 one\n"},
        {"file, folder/", "mkdir T", "T/", "", file, 0, 0, NULL, "d T 755\nf T/a 644 one\n"},
        {"file, file", "echo old > T; chmod 600 T", "T", "", file, 0, 0, "done a\nend 1 3\n", "f T 644 one\n"},
        {"file, nothing", NULL, "T", "", file, 0, 0, NULL, "f T 644 one\n"},
        {"file, nothing/", NULL, "T/", "", file, 0, 0, NULL, "d T 755\nf T/a 644 one\n"},
        {"file, nothing/.", NULL, "T//./", "", file, 0, 0, NULL, "d T 755\nf T/a 644 one\n"},
        {"folder, folder", "mkdir T", "T", "", folder, 0, 0, "done a\ndone a/x\nend 1 3\n", "d T 755\nd T/a 750\nf T/a/x 644 one\n"},
        {"folder, file", "echo old > T", "T", "", folder, E4000, ENOTDIR, "", "f T 644 old\n\n"},
        {"folder, nothing", NULL, "T", "", folder, 0, 0, NULL, "d T 750\nf T/x 644 one\n"},
        {"folder, nothing/", NULL, "T/", "", folder, 0, 0, NULL, "d T 755\nd T/a 750\nf T/a/x 644 one\n"},
        {"inside, folder", "mkdir -m 711 T", "T", "", inside, 0, 0, "done .\ndone ./x\nend 1 3\n", "d T 711\nf T/x 644 one\n"},
        {"inside, file", "echo old > T", "T", "", inside, E4000, ENOTDIR, "", "f T 644 old\n\n"},
        {"inside, nothing", NULL, "T", "", inside, 0, 0, NULL, "d T 750\nf T/x 644 one\n"},
        {"inside, nothing/", NULL, "T/", "", inside, 0, 0, NULL, "d T 750\nf T/x 644 one\n"},
        {"several, folder", "mkdir T", "T", "s", several, 0, 0, NULL, "d T 755\nd T/a 750\nf T/a/x 644 one\nf T/b 644 two\n"},
        {"several, file", "echo old > T", "T", "s", several, E4000, ENOTDIR, "", "f T 644 old\n\n"},
        {"several, nothing", NULL, "T", "s", several, E4001, ENOENT, "", ""},
        {"several, nothing/", NULL, "T/", "s", several, 0, 0, NULL, "d T 755\nd T/a 750\nf T/a/x 644 one\nf T/b 644 two\n"},
        {"several with inside", "mkdir T", "T", "s", "d . 700\nf ./x 1\nf a 2\nd .\nf ./y 3\ne -", 0, 0, NULL,
         "d T 755\nf T/a 644 2\nf T/x 644 1\nf T/y 644 3\n"},
        {"missing parents", NULL, "n1//n2/T", "", file, 0, 0, NULL, "d n1 755\nd n1/n2 755\nf n1/n2/T 644 one\n"},
        {"missing parents, folder", NULL, "./n1/n2/T/", "", folder, 0, 0, NULL,
         "d n1 755\nd n1/n2 755\nd n1/n2/T 755\nd n1/n2/T/a 750\nf n1/n2/T/a/x 644 one\n"},
        {"a parent is a file", "echo old > n", "n/T", "", file, E4000, ENOTDIR, "", "f n 644 old\n\n"},
        {"file/", "echo old > T", "T/", "", file, E4000, ENOTDIR, "", "f T 644 old\n\n"},
        {"link to a folder", "mkdir t; ln -s t T", "T", "", file, 0, 0, NULL, "l T -> t\nd t 755\nf t/a 644 one\n"},
        {"link to a folder, inside", "mkdir t; ln -s t T", "T", "", inside, 0, 0, NULL, "l T -> t\nd t 755\nf t/x 644 one\n"},
        {"link to a file", "mkdir d; echo old > d/t; ln -s d/t T", "T", "", file, 0, 0, NULL, "l T -> d/t\nd d 755\nf d/t 644 one\n"},
        {"link to a file, folder", "echo old > t; ln -s t T", "T", "", folder, E4000, ENOTDIR, NULL, "l T -> t\nf t 644 old\n\n"},
        {"dangling link", "ln -s nowhere T", "T", "", file, E4001, ENOENT, "", "l T -> nowhere\n"},
        {"dangling link, folder", "ln -s nowhere T", "T", "", folder, E4001, ENOENT, "", "l T -> nowhere\n"},
        {"dangling link/", "ln -s nowhere T", "T/", "", file, E4001, ENOENT, "", "l T -> nowhere\n"},
        {"dangling parent", "ln -s nowhere n", "n/T", "", file, E4001, ENOENT, "", "l n -> nowhere\n"},
        {"loop of links", "ln -s T T", "T", "", file, E4000, ELOOP, "", "l T -> T\n"},
        {"a FIFO", "mkfifo T", "T", "", file, E4000, EOPNOTSUPP, "", "f T 644 \n"},
        {"a device", NULL, "/dev/null", "", file, E4000, EOPNOTSUPP, "", ""},
        {"nothing", NULL, "", "", file, E4001, ENOENT, "", ""},
        {"..", NULL, "n/..", "", file, E4001, ENOENT, "", ""},
        {".", NULL, ".", "", folder, 0, 0, NULL, RECEIVER_TREE},
        {"./", NULL, "./", "", folder, 0, 0, NULL, RECEIVER_TREE},
        {"a link comes, nothing", NULL, "T", "", "l a to\ne -", 0, 0, "done a\nend 0 0\n", "l T -> to\n"},
        {"a link comes, file", "echo old > T", "T", "", "l a to\ne -", 0, 0, NULL, "l T -> to\n"},
        {"a link comes, folder", "mkdir T", "T", "", "l a to\ne -", 0, 0, NULL, "d T 755\nl T/a -> to\n"},
        {"nothing could be read", NULL, "T/", "", "F a 13\ne -", 0, 0, "failed a EACCES\nend 0 0\n", ""},
        {"inside could not be read", NULL, "T/", "", "F . 13\ne -", 0, 0, "failed . EACCES\nend 0 0\n", ""},
        {"nothing is new", "mkdir T; printf abc > T/a", "T/", "", "k a\ne -", 0, 0, "kept a\nend 0 0\n", "d T 755\nf T/a 644 abc\n"},
        {"kept, and not there", NULL, "T/", "", "k a\ne -", 0, 0, "failed a ENOENT\nend 0 0\n", "d T 755\n"},
        {"kept, and of another size", "mkdir T; printf ab > T/a", "T/", "", "k a\ne -", 0, 0, "failed a other\nend 0 0\n",
         "d T 755\nf T/a 644 ab\n"},
        {"kept, and a link", "mkdir T; printf abc > b; ln -s ../b T/a", "T/", "", "k a\ne -", 0, 0, "failed a other\nend 0 0\n",
         "d T 755\nl T/a -> ../b\nf b 644 abc\n"},
    };

    (void)state;
    receiver_cases(cases, COUNT_OF(cases));
}

/* What a sender that lies can say. In the folder beside the target is what it is after. */
static void receiver_hostile_test(void **state)
{
    static const struct { const char *script; Code code; const char *log, *tree; } cases[] = {
        /* names */
        {"d a\nf ../x 1\ne -", E8020, "done a\n", "d a 755\n"},
        {"d a\nf a/../../x 1\ne -", E8020, "done a\n", "d a 755\n"},
        {"d ..\nf ../x 1\ne -", E8020, "", ""},
        {"d a\nd a/..\ne -", E8020, "done a\n", NULL},
        {"f /tmp/abx-hostile 1\ne -", E8020, "", ""},
        {"d /\ne -", E8020, "", ""},
        {"d \ne -", E8020, "", ""},
        {"d a/\ne -", E8020, "", ""},
        {"d a\nf a//x 1\ne -", E8020, "done a\n", NULL},
        {"d a\nf a/./x 1\ne -", E8020, "done a\n", NULL},
        {"d a\nf a/x/ 1\ne -", E8020, "done a\n", NULL},        /* the form of a folder in old archives */
        {"f . 1\ne -", E8020, "", ""},
        {"l . /etc\ne -", E8020, "", ""},
        {"d ./.\ne -", E8020, "", ""},
        {"d .\nd ./..\ne -", E8020, "done .\n", ""},
        /* order */
        {"d a\nf a/x 1\nf a/x 2\ne -", E8020, "done a\ndone a/x\n", "d a 755\nf a/x 644 1\n"},
        {"d a\nf a/y 1\nf a/x 2\ne -", E8020, "done a\ndone a/y\n", "d a 755\nf a/y 644 1\n"},
        {"d a\nd a/b\nf a/b/x 1\nd a/b\ne -", E8020, NULL, NULL},
        {"d a\nd a/b\nd a/c\nf a/b/x 1\ne -", E8020, "done a\ndone a/b\ndone a/c\n", NULL},
        {"d a\nd a/b\nd a\ne -", E8020, NULL, NULL},
        {"d a\nf a/b/x 1\ne -", E8020, "done a\n", NULL},
        {"f a/x 1\ne -", E8020, "", ""},
        {"f a 1\nf b 1\ne -", E8020, "done a\n", NULL},
        {"d a\nd a/b\nf a/b 1\ne -", E8020, NULL, NULL},
        {"d a\nf a/b 1\nf a/b- 1\nf a/b/c 1\ne -", E8020, NULL, NULL},
        {"k a\nf a 1\ne -", E8020, "failed a ENOENT\n", ""},
        {"F a 5\nd a\ne -", E8020, "failed a EIO\n", ""},
        /* through what came */
        {"d a\nl a/l ../../out\nf a/l/x 1\ne -", E8020, "done a\ndone a/l\n", "d a 755\nl a/l -> ../../out\n"},
        {"d a\nl a/l /etc\nd a/l\nf a/l/x 1\ne -", E8020, "done a\ndone a/l\n", NULL},
        {"d a\nf a/f 1\nf a/f/x 1\ne -", E8020, "done a\ndone a/f\n", NULL},
        {"d a\nF a/f 13\nf a/f/x 1\ne -", E8020, "done a\nfailed a/f EACCES\n", NULL},
        {"d a\nk a/f\nf a/f/x 1\ne -", E8020, "done a\nfailed a/f ENOENT\n", NULL},
        {"l a ../out\nf a/x 1\ne -", E8020, "done a\n", "l a -> ../out\n"},
        /* through what was there: to ../out, to a file, to nothing */
        {"d link\nf link/x 1\ne -", E0000, "failed link ELOOP\nend 0 0\n", "l link -> ../out\n"},
        {"f link 1\ne -", E0000, "done link\nend 1 1\n", "f link 644 1\n"},
        {"l link other\ne -", E0000, "done link\nend 0 0\n", "l link -> other\n"},
        /* types */
        {"d a\nT a/h 1\ne -", E8020, "done a\n", NULL},
        {"T h 1\ne -", E8020, "", ""},
        {"T c 3\ne -", E8020, "", ""},
        {"T b 4\ne -", E8020, "", ""},
        {"T p 6\ne -", E8020, "", ""},
        {"T s S\ne -", E8020, "", ""},
        {"T g Z\ne -", E8020, "", ""},
        /* contents */
        {"d a\nc a/x one\ne -", E8020, "done a\n", "d a 755\n"},
        {"d a\nc a/x one\nf a/y 1\ne -", E8020, "done a\n", "d a 755\n"},
        {"d a\nc a/x one\nk a/y\ne -", E8020, "done a\n", "d a 755\n"},
        {"d a\nc a/x one\nS -\ne -", E8020, "done a\n", "d a 755\n"},
        {"d a\nc a/x one\nB - 7\ne -", E8020, "done a\n", "d a 755\n"},
        {"d a\nc a/x one\nt - 7\ne -", E8020, "done a\n", "d a 755\n"},
        {"d a\nc a/x one\nd a/y\ne -", E8020, "done a\n", "d a 755\n"},
        {"d a\nc a/x one\nl a/y z\ne -", E8020, "done a\n", "d a 755\n"},
        {"d a\nc a/x one\nh a/y one\ne -", E8020, "done a\n", "d a 755\n"},
        {"d a\nc a/x one\nF a/y 5\ne -", E8020, "done a\n", "d a 755\n"},
        {"d a\nh a one\ne -", E8020, "done a\n", "d a 755\n"},
        {"d a\nf a/x one\nh a/x one\ne -", E8020, "done a\ndone a/x\n", NULL},
        {"d a\nc a/x one\nr a/x hash_0_3_-\ne -", E8020, "done a\n", "d a 755\n"},
        {"d a\nc a/x one\nh a/x two\nf a/y 1\ne -", E0000, "done a\nfailed a/x EIO\ndone a/y\nend 1 1\n", "d a 755\nf a/y 644 1\n"},
        {"d a\nc a/x one\nH a/x one\nf a/y 1\ne -", E0000, "done a\nfailed a/x EIO\ndone a/y\nend 1 1\n", NULL},
        {"d a\nc a/x one\nh a/x one!\nf a/y 1\ne -", E0000, "done a\nfailed a/x EIO\ndone a/y\nend 1 1\n", NULL},
        {"d a\nc a/x one\nF a/x 61\nf a/y 1\ne -", E0000, "done a\nfailed a/x other\ndone a/y\nend 1 1\n", "d a 755\nf a/y 644 1\n"},
        {"d a\nc a/x one\nF a/x 0\nf a/y 1\ne -", E0000, "done a\nfailed a/x EIO\ndone a/y\nend 1 1\n", NULL},
        {"d a\nB - 1\nf a/x one\nf a/y 1\ne -", E0000, "done a\nfailed a/x EIO\ndone a/y\nend 1 1\n", NULL},
        {"d a\nB - 1\nc a/x one\nF a/x 13\ne -", E0000, "done a\nfailed a/x EIO\nend 0 0\n", NULL},
        {"d a\nB - 0\nf a/x one\ne -", E0000, "done a\ndone a/x\nend 1 3\n", NULL},
        /* records */
        {"d a\nr a/x nonsense\ne -", E8020, "done a\n", NULL},
        {"d a\nr a/x done_0_0_-\ne -", E8020, "done a\n", NULL},
        {"d a\nr a/x have_0_0_-\ne -", E8020, "done a\n", NULL},
        {"d a\nr a/x from_0_9223372036854775808_-\ne -", E8020, "done a\n", NULL},
        {"t - 1\nd a\nt - 1\ne -", E8020, "total 1 0\ndone a\n", NULL},
        {"t - 1\nt - 1\nd a\ne -", E8020, "total 1 0\n", ""},
        {"S -\nd a\ne -", E8020, "", ""},
        {"B - 3\nl a x\ne -", E8020, "", ""},
        {"S -\nk a\ne -", E8020, "", ""},
        {"S -\ne -", E8020, "", ""},
        {"B - 3\nB - 4\nf a x\ne -", E8020, "", ""},
        {"B - 9223372036854775807\nf a x\ne -", E0000, "failed a EIO\nend 0 0\n", ""},
        /* ends */
        {"e -", E0000, "end 0 0\n", ""},
        {"d a\ne -\nd b", E8020, NULL, NULL},
        {"d a\nr - end_0_0_-\nr - end_0_0_-\ne -", E8020, NULL, NULL},
        {"d a\nr - end_0_0_-\nf a/x 1", E8020, "done a\n", "d a 755\n"},
        {"d a\nr - end_0_0_-", E8020, "done a\n", NULL},
        {"d a 500\nd a/b 0\nz -", E8020, "done a\ndone a/b\n", "d a 700\nd a/b 700\n"},
        {"d a\nc a/x one\nz -", E8020, "done a\n", "d a 755\n"},
        {"d a", E8020, "done a\n", "d a 755\n"},
        {"", E8020, "", ""},
    };
    ReceiverResult *res = mem_new(sizeof *res);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_true(mkdir("w", 0755) == 0 && mkdir("out", 0755) == 0 && mkdir("w/T", 0755) == 0);
        bool link = strstr(cases[i].script, "link");
        assert_true(!link || symlink("../out", "w/T/link") == 0);
        receiver_script(cases[i].script, "w/T", "", res);
        if (res->ok != (cases[i].code == E0000) || (!res->ok && (res->err.code != E8020 || res->err.kind != ERR_INPUT)))
            fail_msg("%s: %s %s", cases[i].script, res->ok ? "ok" : "failed", res->err.text);
        if (cases[i].log && strcmp(res->log, cases[i].log) != 0)
            fail_msg("%s: %s", cases[i].script, res->log);
        if (cases[i].tree && strcmp(receiver_tree("w/T"), cases[i].tree) != 0)
            fail_msg("%s: %s", cases[i].script, receiver_tree("w/T"));
        assert_null(strstr(receiver_tree("w"), ".abx-"));
        assert_string_equal(receiver_tree("out"), "");
        folder_remove(AT_FDCWD, "w");
        folder_remove(AT_FDCWD, "out");
        assert_string_equal(receiver_tree("."), "");
    }
    mem_free(res);
}

/* What is there already, as another type. */
static void receiver_there_test(void **state)
{
    static const ReceiverCase cases[] = {
        {"a file over a folder", "mkdir -p T/a/x/y", "T", "", "d a\nf a/x 1\nf a/z 2\ne -", 0, 0,
         "done a\nfailed a/x EISDIR\ndone a/z\nend 1 1\n", "d T 755\nd T/a 755\nd T/a/x 755\nd T/a/x/y 755\nf T/a/z 644 2\n"},
        {"a link over a folder", "mkdir -p T/a/x", "T", "", "d a\nl a/x to\nf a/z 2\ne -", 0, 0,
         "done a\nfailed a/x EISDIR\ndone a/z\nend 1 1\n", "d T 755\nd T/a 755\nd T/a/x 755\nf T/a/z 644 2\n"},
        {"a folder over a file", "mkdir -p T/a; echo old > T/a/x", "T", "", "d a\nd a/x\nf a/x/1 1\nd a/x/2\nF a/x/3 5\nk a/x/4\nf a/z 2\ne -",
         0, 0, "done a\nfailed a/x ENOTDIR\ndone a/z\nend 1 1\n", "d T 755\nd T/a 755\nf T/a/x 644 old\n\nf T/a/z 644 2\n"},
        {"a folder over a link", "mkdir -p T/a out; ln -s ../../out T/a/x", "T", "", "d a\nd a/x\nf a/x/1 1\nc a/x/2 1\nF a/x/2 9\nf a/z 2\ne -",
         0, 0, "done a\nfailed a/x ELOOP\ndone a/z\nend 1 1\n", "d T 755\nd T/a 755\nl T/a/x -> ../../out\nf T/a/z 644 2\nd out 755\n"},
        {"a folder over a FIFO", "mkdir -p T/a; mkfifo T/a/x", "T", "", "d a\nd a/x\nf a/z 2\ne -", 0, 0,
         "done a\nfailed a/x ENOTDIR\ndone a/z\nend 1 1\n", NULL},
        {"a file over a link", "mkdir -p T/a; echo old > out; ln -s ../../out T/a/x", "T", "", "d a\nf a/x 1\ne -", 0, 0,
         "done a\ndone a/x\nend 1 1\n", "d T 755\nd T/a 755\nf T/a/x 644 1\nf out 644 old\n\n"},
        {"a file over a FIFO", "mkdir -p T/a; mkfifo T/a/x", "T", "", "d a\nf a/x 1\ne -", 0, 0, NULL, "d T 755\nd T/a 755\nf T/a/x 644 1\n"},
        {"a file over a file that cannot be written", "mkdir -p T/a; echo old > T/a/x; chmod 0 T/a/x", "T", "", "d a\nf a/x 1 600\ne -", 0, 0,
         NULL, "d T 755\nd T/a 755\nf T/a/x 600 1\n"},
        {"a file over one with two names", "mkdir -p T/a; echo old > T/a/x; ln T/a/x other", "T", "", "d a\nf a/x 1\ne -", 0, 0, NULL,
         "d T 755\nd T/a 755\nf T/a/x 644 1\nf other 644 old\n\n"},
        {"a link over a link and a file", "mkdir -p T/a; ln -s 1 T/a/x; echo old > T/a/y", "T", "", "d a\nl a/x 2\nl a/y 3\ne -", 0, 0,
         "done a\ndone a/x\ndone a/y\nend 0 0\n", "d T 755\nd T/a 755\nl T/a/x -> 2\nl T/a/y -> 3\n"},
        {"folders keep their mode", "mkdir -p T/a/b; chmod 711 T/a; chmod 2770 T/a/b", "T", "", "d a 500\nd a/b 0\nf a/b/x 1\ne -", 0, 0,
         NULL, "d T 755\nd T/a 711\nd T/a/b 2770\nf T/a/b/x 644 1\n"},
        {"new ones have the sender's", "umask 77; mkdir T", "T", "", "d a 7777\nd a/b 0\nf a/b/x 1 4755\nd a/c 1777\nf a/d 1 0\nf a/e 1 777\ne -",
         0, 0, NULL, "d T 700\nd T/a 777\nd T/a/b 0\nf T/a/b/x 755 1\nd T/a/c 777\nf T/a/d 0 1\nf T/a/e 777 1\n"},
        {"one that an interrupted copy left", "mkdir -p T/a/b; chmod 1700 T/a/b T/a", "T", "", "d a 711\nd a/b 500\nf a/b/x 1\ne -", 0, 0,
         NULL, "d T 755\nd T/a 711\nd T/a/b 500\nf T/a/b/x 644 1\n"},
        {"the target that one left", "mkdir -p T/b; chmod 1700 T", "T", "r", "d a 711\nd a/b\nf a/b/x 1\ne -", 0, 0, NULL,
         "d T 711\nd T/b 755\nf T/b/x 644 1\n"},
        {"the target that one left, further up", "mkdir -p p/T; chmod 1700 p/T", "p//T", "r", "d a 711\ne -", 0, 0, NULL, "d p 755\nd p/T 711\n"},
        {"the target that one left/", "mkdir T; chmod 1700 T", "T/", "r", "d a 711\ne -", 0, 0, NULL, "d T 1700\nd T/a 711\n"},
        {"the target that one left, a file", "mkdir T; chmod 1700 T", "T", "r", "f a 1\ne -", 0, 0, NULL, "d T 1700\nf T/a 644 1\n"},
        {"the target that one left, inside", "mkdir T; chmod 1700 T", "T", "r", "d . 711\nf ./a 1\ne -", 0, 0, NULL, "d T 711\nf T/a 644 1\n"},
        {"the target that one left, several", "mkdir T; chmod 1700 T", "T", "sr", "d a 711\ne -", 0, 0, NULL, "d T 1700\nd T/a 711\n"},
        {"a target of somebody's own with its mode", "mkdir -p T/b; chmod 1700 T", "T", "", "d a 711\ne -", 0, 0, NULL,
         "d T 1700\nd T/a 711\nd T/b 755\n"},
        {"a link to the target that one left", "mkdir t; chmod 1700 t; ln -s t T", "T", "r", "d a 711\ne -", 0, 0, NULL,
         "l T -> t\nd t 1700\nd t/a 711\n"},
        {"links as they are", "mkdir T", "T", "", "d a\nl a/1 /etc/passwd\nl a/2 ../../../x\nl a/3 .\nl a/4 \ne -", 0, 0,
         "done a\ndone a/1\ndone a/2\ndone a/3\nfailed a/4 ENOENT\nend 0 0\n",
         "d T 755\nd T/a 755\nl T/a/1 -> /etc/passwd\nl T/a/2 -> ../../../x\nl T/a/3 -> .\n"},
        {"a folder that could not be read", "mkdir T", "T", "", "d a\nd a/b\nf a/b/x 1\nF a/b 5\nF a 13\nf a/c 1\ne -", 0, 0,
         "done a\ndone a/b\ndone a/b/x\nfailed a/b EIO\nfailed a EACCES\ndone a/c\nend 2 2\n", NULL},
        {"roots twice", "mkdir T", "T", "s", "f a 1\nd b\nf a 2\ne -", E8020, 0, "done a\ndone b\n", "d T 755\nf T/a 644 1\nd T/b 755\n"},
        {"a root of the name of a folder's", "mkdir T", "T", "s", "d a\nd a/b\nd b\nf b/a 2\ne -", 0, 0, NULL,
         "d T 755\nd T/a 755\nd T/a/b 755\nd T/b 755\nf T/b/a 644 2\n"},
    };

    (void)state;
    receiver_cases(cases, COUNT_OF(cases));
}

static void receiver_put_folder(Buf *to, Str path)
{
    Err err;

    assert_true(tar_put(to, &(TarHead){.type = TAR_FOLDER, .name = path, .mode = 0755}, &err));
}

/* A name that is asked of the target, as file, folder and link, and between two others. */
static void receiver_named(Str name, bool *ok, ReceiverResult *res)
{
    Buf  to = buf_make(1 << 20);
    Err  err;
    char path[9000] = "a/";

    memcpy(path + 2, name.p, name.n);
    Str whole = {path, name.n + 2};
    for (int type = 0; type < 3; type++) {
        buf_clear(&to);
        receiver_put_line(&to, STR("d a"));
        receiver_put_line(&to, STR("f a/\x01 1"));
        if (type == 0) {
            receiver_put_file(&to, whole, 0644, STR("abc"));
            receiver_put_record(&to, ITEM_HASH, whole, 0, 3, "abc");
        } else if (type == 1) {
            receiver_put_folder(&to, whole);
        } else {
            assert_true(tar_put(&to, &(TarHead){.type = TAR_SYMLINK, .name = whole, .target = STR("to")}, &err));
        }
        receiver_put_line(&to, STR("f a/\xff\xff 2"));
        receiver_put_line(&to, STR("e -"));
        receiver_run(buf_str(&to), SIZE_MAX, "T", "", res);
        ok[type] = res->ok && !strstr(res->log, "failed");
        if (res->ok)
            assert_true(strstr(res->log, "done a/\xff\xff\n") && (ok[type] || strstr(res->log, "ENAMETOOLONG\ndone a/\xff\xff\n")));
        else
            assert_int_equal(res->err.code, E8020);
        folder_remove(AT_FDCWD, "T");
    }
    buf_free(&to);
}

static void receiver_names_test(void **state)
{
    static const struct { Str name; bool fine, refused; } cases[] = {
        {STR("x y"), true, false}, {STR("'\"$\\`*?[a]"), true, false}, {STR("\n\t\r\x1b[31m\x7f"), true, false},
        {STR("\xe4\xbd\xa0\xe5\xa5\xbd"), true, false}, {STR("\xff\xfe\x80"), true, false}, {STR("..."), true, false},
        {STR(".. "), true, false}, {STR("-rf"), true, false}, {STR(".abx-0123456789abcdef.part"), true, false},
        {STR("nul\0nul-----------------------------------------------------------------------------------------------------------------------------------------------------------------------"), false, true},
        {STR(""), false, true}, {STR("."), false, true},
        {STR(".."), false, true},
    };
    static const struct { size_t n; bool fine, refused; } lengths[] = {
        {255, true, false}, {256, false, false}, {5000, false, false}, {LIMIT_SYNC_PATH - 2, false, false},
        {LIMIT_SYNC_PATH - 1, false, true},
    };
    ReceiverResult *res = mem_new(sizeof *res);
    char name[9000];
    bool ok[3];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases) + COUNT_OF(lengths); i++) {
        bool by_length = i >= COUNT_OF(cases);
        const size_t k = i - COUNT_OF(cases);
        memset(name, 'n', sizeof name);
        receiver_named(by_length ? (Str){name, lengths[k].n} : cases[i].name, ok, res);
        bool fine = by_length ? lengths[k].fine : cases[i].fine, refused = by_length ? lengths[k].refused : cases[i].refused;
        if (ok[0] != fine || ok[1] != fine || ok[2] != fine || res->ok == refused)
            fail_msg("%zu: %d %d %d %s %s", i, ok[0], ok[1], ok[2], res->err.text, res->log);
    }
    mem_free(res);
}

/* A link may lead to 4,095 bytes, and no NUL. */
static void receiver_long_link_test(void **state)
{
    ReceiverResult *res = mem_new(sizeof *res);
    char text[5000];

    (void)state;
    memset(text, 'x', sizeof text);
    for (size_t n = 4095; n <= 4097; n++) {
        Buf to = buf_make(1 << 20);
        text[17] = n == 4097 ? 0 : 'x';
        Err err;
        receiver_put_line(&to, STR("d a"));
        assert_true(tar_put(&to, &(TarHead){.type = TAR_SYMLINK, .name = STR("a/l"), .target = (Str){text, n}}, &err));
        receiver_put_line(&to, STR("f a/m 1"));
        receiver_put_line(&to, STR("e -"));
        receiver_run(buf_str(&to), SIZE_MAX, "T", "", res);
        assert_int_equal(res->ok, n < 4097);
        assert_string_equal(res->log, n == 4097 ? "done a\n" : n == 4095 ? "done a\ndone a/l\ndone a/m\nend 1 1\n"
                                                : "done a\nfailed a/l ENAMETOOLONG\ndone a/m\nend 1 1\n");
        buf_free(&to);
    }
    mem_free(res);
}

/* As deep as descriptors may be, and one deeper. */
static void receiver_deep_test(void **state)
{
    ReceiverResult *res = mem_new(sizeof *res);
    Buf  to = buf_make(4 << 20), path = buf_make(LIMIT_SYNC_PATH);

    (void)state;
    buf_add(&path, STR("d"));
    for (int i = 1; i <= LIMIT_SYNC_DEPTH + 2; i++, buf_add(&path, STR("/d")))
        receiver_put_folder(&to, buf_str(&path));
    receiver_put_line(&to, STR("f d/x 1"));
    receiver_put_line(&to, STR("e -"));
    receiver_run(buf_str(&to), SIZE_MAX, "T", "", res);
    assert_true(res->ok && res->items == LIMIT_SYNC_DEPTH + 3);
    assert_non_null(strstr(res->log, "/d ELOOP\ndone d/x\nend 1 1\n"));
    folder_remove(AT_FDCWD, "T");
    buf_free(&to);
    buf_free(&path);
    mem_free(res);
}

/* ---- cut anywhere ---- */

static const char receiver_all[] =
    "t - 3\nd a 750\nf a/1 one 600\nl a/2 to\nd a/3 555\nS -\nf a/3/x two\nF a/4 13\nd a/5 711\nd a/5/d\nf a/5/d/y three\nc a/6 bad\nF a/6 5\n"
    "f a/7 \nk a/8\ne -";
static const char receiver_all_tree[] = "d a 750\nf a/1 600 one\nl a/2 -> to\nd a/3 555\nf a/3/x 644 two\nd a/5 711\nd a/5/d 755\n"
                                        "f a/5/d/y 644 three\nf a/7 644 \n";

static void receiver_cut_test(void **state)
{
    Buf             stream = receiver_stream(receiver_all);
    Str             in = buf_str(&stream);
    ReceiverResult *whole = mem_new(sizeof *whole), *res = mem_new(sizeof *res);
    Err             err;

    (void)state;
    receiver_run(in, SIZE_MAX, "w/", "l", whole);
    assert_true(whole->ok && whole->moved == 14);
    assert_string_equal(receiver_tree("w"), receiver_all_tree);
    folder_remove(AT_FDCWD, "w");
    for (size_t i = 0; i <= in.n; i += i % 512 < 3 || i % 512 > 508 ? 1 : 23) {
        ReceiverRequest rq = receiver_rq("w/", "", res);
        Receiver       *r = receiver_open(&rq);
        assert_true(receiver_feed(r, str_from_to(in, 0, i), &err) && receiver_feed(r, str_from_to(in, i, in.n), &err));
        assert_true(receiver_end(r, &err) && !receiver_end(r, &err) && !receiver_feed(r, STR("\0"), &err));
        receiver_close(r);
        assert_string_equal(res->log, whole->log);
        assert_string_equal(receiver_tree("w"), receiver_all_tree);
        folder_remove(AT_FDCWD, "w");
    }
    for (size_t piece = 1; piece < 600; piece += 97) {
        receiver_run(in, piece, "w/", "", res);
        assert_true(res->ok);
        assert_string_equal(res->log, whole->log);
        assert_string_equal(receiver_tree("w"), receiver_all_tree);
        folder_remove(AT_FDCWD, "w");
    }
    buf_free(&stream);
    mem_free(whole);
    mem_free(res);
}

/* Each line of `some` is one of `all`, the modes of folders aside. */
static bool receiver_within(const char *some, const char *all)
{
    Str rest = str_from(some), line;
    char text[200];

    while (str_cut(&rest, '\n', &line)) {
        if (line.n == 0)
            continue;
        bool folder = *line.p == 'd';
        snprintf(text, sizeof text, "%.*s%s", (int)(folder ? (size_t)((char *)memrchr(line.p, ' ', line.n) - line.p) + 1 : line.n),
                 line.p, folder ? "" : "\n");
        if (!strstr(all, text))
            return false;
    }
    return true;
}

/* At every length the copy fails, and what is there is whole. */
static void receiver_truncated_test(void **state)
{
    Buf             stream = receiver_stream(receiver_all);
    Str             in = buf_str(&stream);
    ReceiverResult *res = mem_new(sizeof *res);

    (void)state;
    for (size_t n = 0; n < in.n; n += n % 512 < 8 || n % 512 > 508 ? 1 : 41) {
        receiver_run((Str){in.p, n}, SIZE_MAX, "w/", n % 2 ? "r" : "", res);
        if (n > in.n - TAR_TAIL) {          /* one block of zeros is an end, as everywhere */
            assert_int_equal(res->ok, n >= in.n - TAR_TAIL + TAR_BLOCK);
        } else {
            assert_true(!res->ok && res->err.code == E8020);
        }
        if (access("w", F_OK) == 0) {
            const char *tree = receiver_tree("w"), *part = strstr(tree, "/.abx-");
            if (n % 2 == 0 || !part)
                assert_true(receiver_within(tree, receiver_all_tree));
            else
                assert_true(strstr(part, ".part 600 "));
        }
        folder_remove(AT_FDCWD, "w");
    }
    buf_free(&stream);
    mem_free(res);
}

/* ---- as somebody who may not do everything ---- */

typedef struct ReceiverChild {
    const char     *script, *target, *options;
    int             call, sys;          /* this system call fails so; 0: none does */
    int             flags;              /* only with these flags in its third argument */
    bool            nobody;
    ReceiverResult *res;
} ReceiverChild;

/* One system call of this process fails from now on. */
static void receiver_fail_call(int call, int sys, int flags)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),                      /* its number */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 16 + 2 * 8),             /* its third argument */
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (unsigned)flags, 0, flags ? 1 : 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)sys),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog all = {.len = COUNT_OF(code), .filter = code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) != 0)
        _exit(7);
}

static void receiver_child(void *ctx)
{
    ReceiverChild *c = ctx;
    Buf            stream = receiver_stream(c->script);

    if (c->nobody && geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
        _exit(8);
    if (c->call)
        receiver_fail_call(c->call, c->sys, c->flags);
    receiver_run(buf_str(&stream), SIZE_MAX, c->target, c->options, c->res);
    buf_free(&stream);
}

static void receiver_nobody_test(void **state)
{
    static const ReceiverCase cases[] = {
        {"a target that cannot be written", "chmod 555 .", "T", "", "f a 1\ne -", 0, 0, "failed a EACCES\nend 0 0\n", ""},
        {"a folder that is to be made there", "chmod 555 .", "T", "", "d a\nf a/x 1\nF a/y 5\nk a/z\ne -", 0, 0, "failed a EACCES\nend 0 0\n", ""},
        {"the target itself", "mkdir -m 555 T", "T", "", "d .\nf ./x 1\ne -", 0, 0, "failed . EACCES\nend 0 0\n", "d T 555\n"},
        {"in it", "mkdir -m 555 T", "T", "", "d a\nf a/x 1\ne -", 0, 0, "failed a EACCES\nend 0 0\n", "d T 555\n"},
        {"in it, several", "mkdir -m 555 T", "T", "s", "d a\nf a/x 1\nf b 1\nl c x\ne -", 0, 0,
         "failed a EACCES\nfailed b EACCES\nfailed c EACCES\nend 0 0\n", "d T 555\n"},
        {"no folders above it", "mkdir -m 555 p", "p/q/T", "", "f a 1\ne -", E4002, EACCES, "", "d p 555\n"},
        {"nor to be seen", "mkdir -m 0 p", "p/T", "", "f a 1\ne -", E4002, EACCES, "", NULL},
        {"a folder that is there", "mkdir -p T/a/b/c T/a/d; chmod 555 T/a/b", "T", "",
         "d a\nf a/1 1\nd a/b 777\nf a/b/1 1\nd a/b/c\nf a/b/c/1 1\nl a/b/l x\nd a/d\nf a/d/1 1\nf a/e 1\ne -", 0, 0,
         "done a\ndone a/1\nfailed a/b EACCES\ndone a/d\ndone a/d/1\ndone a/e\nend 3 3\n",
         "d T 755\nd T/a 755\nf T/a/1 644 1\nd T/a/b 555\nd T/a/b/c 755\nd T/a/d 755\nf T/a/d/1 644 1\nf T/a/e 644 1\n"},
        {"one that cannot be entered", "mkdir -p T/a/b; chmod 666 T/a/b", "T", "", "d a\nd a/b\nf a/b/1 1\nf a/e 1\ne -", 0, 0,
         "done a\nfailed a/b EACCES\ndone a/e\nend 1 1\n", NULL},
        {"one that cannot be listed", "mkdir -p T/a; chmod 333 T/a", "T", "", "d a\nf a/1 1\nl a/2 x\nd a/3\nf a/3/x 1\ne -", 0, 0,
         "done a\ndone a/1\ndone a/2\ndone a/3\ndone a/3/x\nend 2 2\n", NULL},
        {"folders of the sender's without any mode", "mkdir T", "T", "", "d a 0\nf a/1 1\nd a/b 0\nf a/b/1 1 0\nd a/c 555\nf a/c/1 1\ne -", 0, 0,
         "done a\ndone a/1\ndone a/b\ndone a/b/1\ndone a/c\ndone a/c/1\nend 3 3\n", NULL},
        {"going on, where all is there already", "mkdir -p T/a/b; printf abc > T/a/1; printf abc > T/a/b/1; chmod 555 T/a/b T/a", "T", "r", "d a 555\nk a/1\nd a/b 555\nk a/b/1\nf a/c 1\ne -", 0, 0,
         "done a\nkept a/1\ndone a/b\nkept a/b/1\nfailed a/c EACCES\nend 0 0\n", NULL},
        {"a file that cannot be written is replaced", "mkdir T; echo old > T/a; chmod 0 T/a", "T", "", "f a 1\ne -", 0, 0, NULL,
         "d T 755\nf T/a 644 1\n"},
    };
    ReceiverResult *res = receiver_shared();

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const ReceiverCase *c = &cases[i];
        ReceiverChild       child = {.script = c->script, .target = c->target, .options = c->options, .nobody = true, .res = res};
        assert_true(mkdir("w", 0755) == 0 && chdir("w") == 0);
        receiver_setup(c->before);
        receiver_setup("if [ $(id -u) = 0 ]; then chown -R 65534:65534 .; fi");
        receiver_apart(receiver_child, &child);
        if (res->ok ? c->code != E0000 : res->err.code != c->code || res->err.sys != c->sys)
            fail_msg("%s: %s E%d %d %s", c->what, res->ok ? "ok" : "failed", res->err.code, res->err.sys, res->err.text);
        if (c->log && strcmp(res->log, c->log) != 0)
            fail_msg("%s: %s", c->what, res->log);
        receiver_setup("chmod -R u+rwX . || true");
        assert_null(strstr(receiver_tree("."), ".abx-"));
        assert_int_equal(chdir(".."), 0);
        folder_remove(AT_FDCWD, "w");
    }
    munmap(res, sizeof *res);
}

/* ---- when the system cannot ---- */

static void receiver_fault_test(void **state)
{
    static const char script[] = "d a\nf a/1 one\nl a/2 to\nd a/3 700\nf a/3/x two\nS -\nf a/4 three\ne -";
    static const char none[] = "done a\nfailed a/1 %s\ndone a/2\ndone a/3\nfailed a/3/x %s\nfailed a/4 %s\nend 0 0\n",
                      all[] = "done a\ndone a/1\ndone a/2\ndone a/3\ndone a/3/x\ndone a/4\nend 3 11\n",
                      tree[] = "d a 755\nf a/1 644 one\nl a/2 -> to\nd a/3 700\nf a/3/x 644 two\nf a/4 644 three\n",
                      without[] = "d a 1700\nf a/1 600 one\nl a/2 -> to\nd a/3 1700\nf a/3/x 600 two\nf a/4 600 three\n";
    static const struct { const char *what; int call, sys, flags; const char *options, *log; } cases[] = {
        /* a log: it goes on; none: it ends */
        {"write: full", SYS_pwrite64, ENOSPC, 0, "", NULL}, {"write: quota", SYS_pwrite64, EDQUOT, 0, "", NULL},
        {"write: full", SYS_pwrite64, ENOSPC, 0, "r", NULL}, {"write: full", SYS_pwrite64, ENOSPC, 0, "l", NULL},
        {"write: disk", SYS_pwrite64, EIO, 0, "", none}, {"write: too big", SYS_pwrite64, EFBIG, 0, "", none},
        {"create: full", SYS_openat, ENOSPC, O_CREAT, "", NULL}, {"create: full", SYS_openat, EDQUOT, O_CREAT, "r", NULL},
        {"create: descriptors", SYS_openat, EMFILE, O_CREAT, "", NULL}, {"create: memory", SYS_openat, ENOMEM, O_CREAT, "", NULL},
        {"create: denied", SYS_openat, EACCES, O_CREAT, "", none}, {"create: read-only", SYS_openat, EROFS, O_CREAT, "r", none},
        {"folder: full", SYS_mkdirat, ENOSPC, 0, "", NULL}, {"folder: quota", SYS_mkdirat, EDQUOT, 0, "", NULL},
        {"folder: denied", SYS_mkdirat, EPERM, 0, "", "failed a EPERM\nend 0 0\n"},
        {"link: full", SYS_symlinkat, ENOSPC, 0, "", NULL},
        {"link: not here", SYS_symlinkat, EPERM, 0, "", "done a\ndone a/1\nfailed a/2 EPERM\ndone a/3\ndone a/3/x\ndone a/4\nend 3 11\n"},
        {"rename: full", SYS_renameat, ENOSPC, 0, "", NULL}, {"rename: sticky", SYS_renameat, EPERM, 0, "", none},
        {"rename: mounted", SYS_renameat, EBUSY, 0, "r", none},
        {"mode: none here", SYS_fchmod, EPERM, 0, "", all},
        {"mode: disk", SYS_fchmod, EIO, 0, "",
         "done a\nfailed a/1 EIO\ndone a/2\ndone a/3\nfailed a/3/x EIO\nfailed a/3 EIO\nfailed a/4 EIO\nfailed a EIO\nend 0 0\n"},
        {"fsync: full", SYS_fsync, ENOSPC, 0, "l", NULL}, {"fsync: disk", SYS_fsync, EIO, 0, "l", none},
        {"close: quota", SYS_close, EDQUOT, 0, "", NULL}, {"close: quota", SYS_close, EDQUOT, 0, "r", NULL},
        {"close: interrupted", SYS_close, EINTR, 0, "", all},
        {"size: full", SYS_ftruncate, ENOSPC, 0, "", NULL},
        {"lock: none here", SYS_flock, ENOLCK, 0, "r", all},
    };
    ReceiverResult *res = receiver_shared();
    char            want[1000];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ReceiverChild child = {.script = script, .target = "w/", .options = cases[i].options, .call = cases[i].call,
                               .sys = cases[i].sys, .flags = cases[i].flags, .res = res};
        const char   *name = receiver_sys((uint32_t)cases[i].sys);
        assert_int_equal(mkdir("w", 0755), 0);
        receiver_apart(receiver_child, &child);
        if (res->ok != !!cases[i].log || (!res->ok && (res->err.code != E4000 || res->err.kind != ERR_SYSTEM || res->err.sys != cases[i].sys)))
            fail_msg("%s: %d %d %s", cases[i].what, res->ok, res->err.sys, res->err.text);
        snprintf(want, sizeof want, cases[i].log == none ? none : "%.0s%.0s%.0s", name, name, name);
        if (cases[i].log && strcmp(res->log, cases[i].log == none ? want : cases[i].log) != 0)
            fail_msg("%s: %s", cases[i].what, res->log);
        bool modes = cases[i].call != SYS_fchmod || cases[i].sys != EPERM;
        if (!receiver_within(receiver_tree("w"), modes ? tree : without))
            fail_msg("%s: %s", cases[i].what, receiver_tree("w"));
        folder_remove(AT_FDCWD, "w");
    }
    munmap(res, sizeof *res);
}

/* A disk of 64 KiB and 12 names; where none can be mounted, the system says what such a one would. */
static void receiver_full_child(void *ctx)
{
    ReceiverChild *c = ctx;
    char           name[16], *text = calloc(1, 40001);
    Buf            to = buf_make(4 << 20);
    bool           large = c->sys;

    memset(text, 'x', 40000);
    receiver_put_folder(&to, STR("a"));
    for (int i = 10; i < 30; i++) {
        snprintf(name, sizeof name, "a/%d", i);
        receiver_put_file(&to, str_from(name), 0644, str_from(large ? text : "x"));
        receiver_put_record(&to, ITEM_HASH, str_from(name), 0, large ? 40000 : 1, large ? text : "x");
    }
    receiver_put_line(&to, STR("e -"));
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", "w", "tmpfs", 0, "size=64k,nr_inodes=12") != 0)
        receiver_fail_call(large ? SYS_pwrite64 : SYS_openat, ENOSPC, large ? 0 : O_CREAT);
    receiver_run(buf_str(&to), SIZE_MAX, "w", c->options, c->res);
    const char *tree = receiver_tree("w"), *part = strstr(tree, ".abx-");
    if ((part && (!c->options[0] || !strstr(part, ".part"))) || strlen(tree) > 2000)
        _exit(9);
    free(text);
    buf_free(&to);
}

static void receiver_full_test(void **state)
{
    ReceiverResult *res = receiver_shared();

    (void)state;
    assert_int_equal(mkdir("w", 0755), 0);
    for (int large = 0; large < 2; large++)
        for (int resume = 0; resume < 2; resume++) {
            ReceiverChild child = {.sys = large, .options = resume ? "r" : "", .res = res};
            receiver_apart(receiver_full_child, &child);
            assert_true(!res->ok && res->err.code == E4000 && res->err.kind == ERR_SYSTEM && res->err.sys == ENOSPC);
            assert_null(strstr(res->log, "end"));
        }
    munmap(res, sizeof *res);
}

/* ---- going on ---- */

/* Where the partial file of T/a/x lies, for commands too. */
static const char *receiver_part(void)
{
    static char path[64];

    strcpy(path, "T/a/");
    draft_part_name(STR("x"), path + 4);
    assert_int_equal(setenv("P", path, 1), 0);
    return path;
}

/* The first n bytes of a stream; then the sender is gone. */
static void receiver_begin(const char *script, size_t n, const char *options, ReceiverResult *res)
{
    Buf             stream = receiver_stream(script);
    ReceiverRequest rq = receiver_rq("T/", options, res);
    Receiver       *r = receiver_open(&rq);

    res->ok = receiver_feed(r, str_from_to(buf_str(&stream), 0, n), &res->err);
    receiver_close(r);
    buf_free(&stream);
}

static void receiver_resume_test(void **state)
{
    ReceiverResult *res = mem_new(sizeof *res);
    const char     *part = receiver_part(), *rest = strrchr(part, '/') + 1;
    char            want[300];

    (void)state;
    for (int how = 0; how < 4; how++) {
        receiver_begin("d a 711\nf a/x abcdefgh", 1024 + 5, "r", res);
        snprintf(want, sizeof want, "d T 755\nd T/a 1700\nf T/a/%s 600 abcde\n", rest);
        assert_string_equal(receiver_tree("."), want);
        static const struct { const char *script, *log, *tree; } cases[] = {
            {"d a 711\nB a/x 5\nS -\nc a/x fgh\nh a/x abcdefgh\nf a/y y\ne -", "done a\ndone a/x\ndone a/y\nend 2 4\n", "f a/x 644 abcdefgh\n"},
            {"d a 711\nB a/x 3\nc a/x XYZ\nh a/x abcXYZ\nf a/y y\ne -", "done a\ndone a/x\ndone a/y\nend 2 4\n", "f a/x 644 abcXYZ\n"},
            {"d a 711\nB a/x 5\nc a/x XYZ\nh a/x abcdeXYz\nf a/y y\ne -", "done a\nfailed a/x EIO\ndone a/y\nend 1 1\n", ""},
            {"d a 711\nf a/x XYZ\nf a/y y\ne -", "done a\ndone a/x\ndone a/y\nend 2 4\n", "f a/x 644 XYZ\n"},
        };
        receiver_script(cases[how].script, "T/", "r", res);
        assert_true(res->ok);
        assert_string_equal(res->log, cases[how].log);
        snprintf(want, sizeof want, "d a 711\n%sf a/y 644 y\n", cases[how].tree);
        assert_string_equal(receiver_tree("T"), want);
        folder_remove(AT_FDCWD, "T");
    }
    /* More was promised than is there: what is there stays. */
    receiver_begin("d a\nf a/x abcdefgh", 1024 + 5, "r", res);
    receiver_script("d a\nB a/x 6\nc a/x gh\nh a/x abcdefgh\ne -", "T/", "r", res);
    assert_string_equal(res->log, "done a\nfailed a/x EIO\nend 0 0\n");
    assert_true(fs_holds(part, "abcde"));
    assert_int_equal(unlink(part), 0);
    receiver_script("d a\nB a/x 6\nc a/x gh\nh a/x abcdefgh\ne -", "T/", "r", res);
    assert_string_equal(res->log, "done a\nfailed a/x EIO\nend 0 0\n");
    assert_string_equal(receiver_tree("T"), "d a 755\n");
    receiver_begin("d a\nf a/x abcdefgh", 1024 + 5, "r", res);
    /* Who does not go on does not touch it, and has a name of his own. */
    receiver_begin("d a\nf a/x ABCDEFGH", 1024 + 5, "", res);
    receiver_script("d a\nf a/x 1\ne -", "T/", "", res);
    assert_true(fs_holds(part, "abcde") && fs_holds("T/a/x", "1"));
    /* Of no bytes none is kept; of one that is not what it should be, either. */
    folder_remove(AT_FDCWD, "T");
    receiver_begin("d a\nf a/x abcdefgh", 1024, "r", res);
    assert_int_equal(access(part, F_OK), -1);
    receiver_script("d a\nc a/x abc\nF a/x 5\ne -", "T/", "r", res);
    assert_int_equal(access(part, F_OK), -1);
    receiver_begin("d a\nf a/x abcdefgh", 1024 + 5, "", res);
    assert_string_equal(receiver_tree("T"), "d a 755\n");
    mem_free(res);
}

/* Cut anywhere, and begun again: what is there in the end is as if nothing had happened. */
static void receiver_again_test(void **state)
{
    static const char script[] = "d a 711\nf a/1 one 600\nd a/3 555\nf a/3/x two\nd a/3/y 0\nf a/3/y/z three\nf a/7 \ne -",
                      tree[] = "d T 711\nf T/1 600 one\nd T/3 555\nf T/3/x 644 two\nd T/3/y 0\nf T/3/y/z 644 three\nf T/7 644 \n";
    ReceiverResult *res = mem_new(sizeof *res);
    Buf             stream = receiver_stream(script);

    (void)state;
    for (size_t n = 0; n < stream.n - TAR_TAIL; n += n % 512 < 4 ? 1 : 101) {
        receiver_run((Str){stream.p, n}, SIZE_MAX, "T", "r", res);
        receiver_run(buf_str(&stream), SIZE_MAX, "T", "r", res);
        if (!res->ok || strcmp(receiver_tree("."), tree) != 0)
            fail_msg("%zu: %s", n, receiver_tree("."));
        folder_remove(AT_FDCWD, "T");
    }
    buf_free(&stream);
    mem_free(res);
}

/* What somebody else put where a partial file would be. */
static void receiver_planted_test(void **state)
{
    static const struct { const char *before; bool used; } cases[] = {
        {"ln -s ../../victim $P", false}, {"ln -s nowhere $P", false}, {"mkdir $P", false}, {"mkfifo $P", false},
        {"ln victim $P", false}, {"echo longer than what comes > $P; chmod 644 $P", true}, {"echo x > $P; chmod 0 $P", true},
        {"echo x > $P; [ $(id -u) != 0 ] || chown 65534 $P", false},
    };
    ReceiverResult *res = mem_new(sizeof *res);
    const char     *part = receiver_part();

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        receiver_setup("mkdir -p T/a; printf old > victim");
        receiver_setup(cases[i].before);
        receiver_script("d a\nf a/x new\ne -", "T/", "r", res);
        assert_true(res->ok);
        assert_string_equal(res->log, "done a\ndone a/x\nend 1 3\n");
        assert_true(fs_holds("T/a/x", "new") && fs_holds("victim", "old"));
        struct stat st;
        if (geteuid() == 0)
            assert_int_equal(lstat(part, &st), cases[i].used ? -1 : 0);
        /* What is said to be in it is not believed. */
        folder_remove(AT_FDCWD, "T");
        receiver_setup("mkdir -p T/a; printf new > victim");
        if (!cases[i].used) {
            receiver_setup(cases[i].before);
            receiver_script("d a\nB a/x 1\nc a/x ew\nh a/x new\ne -", "T/", "r", res);
            if (geteuid() == 0)
                assert_string_equal(res->log, "done a\nfailed a/x EIO\nend 0 0\n");
            assert_true(fs_holds("victim", "new"));
        }
        folder_remove(AT_FDCWD, "T");
        folder_remove(AT_FDCWD, "victim");
    }
    mem_free(res);
}

static void receiver_busy_test(void **state)
{
    ReceiverResult *res = mem_new(sizeof *res);
    const char     *part = receiver_part();

    (void)state;
    receiver_setup("mkdir -p T/a; printf theirs > $P; chmod 600 $P");
    int fd = open(part, O_RDWR);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    receiver_script("d a\nf a/x new\nf a/y y\ne -", "T/", "r", res);
    assert_true(res->ok);
    assert_string_equal(res->log, "done a\nfailed a/x EBUSY\ndone a/y\nend 1 1\n");
    assert_true(fs_holds(part, "theirs"));
    receiver_script("d a\nf a/x new\nf a/y y\ne -", "T/", "", res);     /* with a name of its own it can */
    assert_string_equal(res->log, "done a\ndone a/x\ndone a/y\nend 2 4\n");
    close(fd);
    receiver_script("d a\nf a/x newer\ne -", "T/", "r", res);
    assert_string_equal(receiver_tree("T"), "d a 755\nf a/x 644 newer\nf a/y 644 y\n");
    mem_free(res);
}

/* Two at once, piece by piece, into one target. */
static void receiver_two_test(void **state)
{
    static const char *const scripts[] = {"d a\nf a/x 11111111111111111111\nf a/y y\nd a/z\nf a/z/1 1\ne -",
                                          "d a\nf a/x 22222222222222222222\nf a/y yy\nd a/z\nf a/z/2 2\ne -"};

    (void)state;
    for (size_t piece = 7; piece < 3000; piece = piece * 3 + 1)
        for (int resume = 0; resume < 2; resume++) {
            ReceiverResult *res[2];
            Receiver       *r[2];
            Buf             streams[2];
            Str             in[2];
            Err             err;
            bool            failed = false;
            for (int i = 0; i < 2; i++) {
                res[i] = mem_new(sizeof *res[i]);
                ReceiverRequest rq = receiver_rq("T/", resume ? "r" : "", res[i]);
                r[i] = receiver_open(&rq);
                streams[i] = receiver_stream(scripts[i]);
                in[i] = buf_str(&streams[i]);
            }
            while (in[0].n || in[1].n)
                for (int i = 0; i < 2; i++) {
                    Str part = str_from_to(in[i], 0, piece < in[i].n ? piece : in[i].n);
                    assert_true(receiver_feed(r[i], part, &err));
                    str_skip(&in[i], part.n);
                }
            for (int i = 0; i < 2; i++) {
                assert_true(receiver_end(r[i], &err));
                failed |= strstr(res[i]->log, "EBUSY") != NULL;
                receiver_close(r[i]);
                buf_free(&streams[i]);
                mem_free(res[i]);
            }
            assert_true(resume || !failed);
            const char *tree = receiver_tree("T");
            assert_null(strstr(tree, ".abx-"));
            assert_true(strstr(tree, " 11111111111111111111\n") || strstr(tree, " 22222222222222222222\n"));
            assert_true(strstr(tree, "d a/z 755\nf a/z/1 644 1\nf a/z/2 644 2\n") && strstr(tree, "d a 755\n"));
            folder_remove(AT_FDCWD, "T");
        }
}

/* ---- holes ---- */

static void receiver_sparse_test(void **state)
{
    enum { SIZE = 1 << 20 };
    char  *text = mem_new(SIZE + 1);
    Item   i = {.kind = ITEM_HASH, .hashed = true, .size = SIZE, .path = STR("a")};
    Sha256 h = sha256_make();
    char   words[ITEM_WORDS];
    Err    err;
    ReceiverResult *res = mem_new(sizeof *res);

    (void)state;
    memset(text + 100000, 'x', 5);
    memset(text + 5 * DRAFT_HOLE, 'y', DRAFT_HOLE);
    text[9 * DRAFT_HOLE - 1] = text[10 * DRAFT_HOLE] = 'z';
    sha256_add(&h, (Str){text, SIZE});
    sha256_end(&h, i.sha256);
    for (int sparse = 0; sparse < 2; sparse++)
        for (size_t piece = sparse ? 1000 : SIZE_MAX; piece; piece = piece == 1000 ? 65536 : piece == 65536 ? 1 << 22 : 0) {
            Buf to = buf_make(4 << 20), back = buf_make(2 << 20);
            struct stat st;
            if (sparse)
                receiver_put_line(&to, STR("S -"));
            receiver_put_file(&to, STR("a"), 0644, (Str){text, SIZE});
            assert_true(tar_put(&to, &(TarHead){.type = TAR_RECORD, .name = i.path, .target = item_words(&i, words)}, &err));
            receiver_put_line(&to, STR("e -"));
            receiver_run(buf_str(&to), piece, "T", "", res);
            assert_true(res->ok && strcmp(res->log, "done a\nend 1 1048576\n") == 0);
            assert_true(stat("T", &st) == 0 && fs_read("T", &back, &err) && back.n == SIZE && memcmp(back.p, text, SIZE) == 0);
            if (sparse)
                assert_in_range(st.st_blocks * 512, 1, 64 << 10);
            else
                assert_true(st.st_blocks * 512 >= SIZE);
            buf_free(&to);
            buf_free(&back);
        }
    mem_free(text);
    mem_free(res);
}

/* ---- entry by entry ---- */

static void receiver_by_entry_test(void **state)
{
    unsigned char   hash[SHA256_SIZE] = {1};
    ReceiverResult *res = mem_new(sizeof *res);
    ReceiverRequest rq = receiver_rq("T", "", res);
    Receiver       *r = receiver_open(&rq);
    Err             err;

    (void)state;
    assert_true(receiver_folder(r, STR("a"), 0750, &err));
    assert_true(receiver_file(r, STR("a/1"), 0604, 3, &err) && receiver_bytes(r, STR("o"), &err) && receiver_bytes(r, STR("ne"), &err));
    assert_true(receiver_whole(r, NULL, &err));
    assert_true(receiver_file(r, STR("a/2"), 0644, -1, &err) && receiver_bytes(r, STR("some"), &err) && receiver_whole(r, NULL, &err));
    assert_true(receiver_file(r, STR("a/3"), 0644, 3, &err) && receiver_bytes(r, STR("some"), &err) && receiver_whole(r, NULL, &err));
    assert_true(receiver_file(r, STR("a/4"), 0644, 5, &err) && receiver_bytes(r, STR("some"), &err) && receiver_whole(r, NULL, &err));
    assert_true(receiver_file(r, STR("a/5"), 0644, 4, &err) && receiver_bytes(r, STR("some"), &err) && receiver_whole(r, hash, &err));
    assert_true(receiver_file(r, STR("a/6"), 0644, 4, &err) && receiver_bytes(r, STR("so"), &err) && receiver_failed(r, STR("a/6"), EPERM, &err));
    assert_true(receiver_file(r, STR("a/7"), 0644, 0, &err) && receiver_whole(r, NULL, &err));
    assert_true(receiver_failed(r, STR("a/8"), EACCES, &err) && receiver_link(r, STR("a/9"), STR("to"), &err));
    assert_true(receiver_folder(r, STR("a/b"), 0700, &err) && receiver_failed(r, STR("a/b"), EACCES, &err));
    assert_true(receiver_end(r, &err) && !receiver_folder(r, STR("a/c"), 0700, &err) && err.code == E8020);
    receiver_close(r);
    assert_string_equal(res->log, "done a\ndone a/1\ndone a/2\nfailed a/3 EIO\nfailed a/4 EIO\nfailed a/5 EIO\nfailed a/6 EPERM\ndone a/7\n"
                                  "failed a/8 EACCES\ndone a/9\ndone a/b\nfailed a/b EACCES\nend 3 7\n");
    assert_int_equal(res->moved, 3 + 4 + 4 + 4 + 4 + 2);
    assert_string_equal(receiver_tree("."), "d T 750\nf T/1 604 one\nf T/2 644 some\nf T/7 644 \nl T/9 -> to\nd T/b 700\n");
    receiver_close(NULL);

    /* Nobody listens, and the end comes too soon, each time. */
    rq = (ReceiverRequest){.target = "U"};
    for (int i = 0; i < 5; i++) {
        r = receiver_open(&rq);
        bool ok = (i < 1 || receiver_folder(r, STR("a"), 0700, &err)) && (i < 2 || receiver_file(r, STR("a/x"), 0600, 5, &err)) &&
                  (i < 3 || receiver_bytes(r, STR("12345"), &err));
        assert_true(ok);
        if (i == 4)
            assert_true(!receiver_file(r, STR("a/y"), 0600, 1, &err) && err.code == E8020);
        else if (i != 1)
            assert_true(!receiver_end(r, &err) && err.code == E8020);
        if (i != 1)
            assert_false(receiver_end(r, &err));
        receiver_close(r);
        assert_true(i == 0 || !strstr(receiver_tree("U"), "f "));
    }
    mem_free(res);
}

static bool receiver_asked(void *ctx, Str name)
{
    return str_eq(name, str_from(ctx));
}

static void receiver_root_test(void **state)
{
    ReceiverRequest rq = {.target = ".", .root = receiver_asked, .ctx = (void *)"asked"};
    Err             err;

    (void)state;
    Receiver *r = receiver_open(&rq);
    assert_true(receiver_folder(r, STR("asked"), 0700, &err) && receiver_folder(r, STR("asked/other"), 0700, &err) && receiver_end(r, &err));
    receiver_close(r);
    r = receiver_open(&rq);
    assert_true(!receiver_file(r, STR(".bashrc"), 0700, 1, &err) && err.code == E8020 && strstr(err.text, ".bashrc"));
    receiver_close(r);
    assert_string_equal(receiver_tree("."), "d asked 700\nd asked/other 700\n");
}

/* ---- from a sender ---- */

static uint64_t receiver_dice(uint64_t *seed, uint64_t n)
{
    *seed = *seed * 6364136223846793005 + 1442695040888963407;
    return (*seed >> 33) % n;
}

/* Files, folders and links with names of any bytes. */
static void receiver_grow(int at, int depth, uint64_t *seed)
{
    static const size_t sizes[] = {0, 1, 511, 512, 513, 4095, 4096, 4097, 65535, 65536, 65537, 300000};
    char                name[256], *text = mem_new(300000);

    for (uint64_t i = receiver_dice(seed, 8); i > 0; i--) {
        size_t n = 1 + receiver_dice(seed, receiver_dice(seed, 8) ? 6 : 255);
        for (size_t k = 0; k < n; k++)
            do
                name[k] = (char)(receiver_dice(seed, 3) ? ' ' + receiver_dice(seed, 95) : 1 + receiver_dice(seed, 255));
            while (name[k] == '/');
        name[n] = 0;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        unsigned mode = 0400 | (unsigned)receiver_dice(seed, 512);
        switch (receiver_dice(seed, 4)) {
        case 0:
            if (depth < 6 && mkdirat(at, name, 0700) == 0) {
                int fd = folder_open(at, name);
                receiver_grow(fd, depth + 1, seed);
                assert_int_equal(fchmod(fd, mode | 0500), 0);
                close(fd);
            }
            break;
        case 1:
            (void)!symlinkat(receiver_dice(seed, 2) ? "../x/\xff y" : "/etc", at, name);
            break;
        default: {
            int fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
            n = sizes[receiver_dice(seed, COUNT_OF(sizes))];
            memset(text, receiver_dice(seed, 2) ? 'a' : 0, n);
            if (n)
                text[receiver_dice(seed, n)] = 'b';
            if (fd >= 0)
                assert_true(pwrite(fd, text, n, receiver_dice(seed, 4) ? 0 : 100000) == (ssize_t)n && fchmod(fd, mode) == 0);
            close(fd);
        }
        }
    }
    mem_free(text);
}

static void receiver_round_test(void **state)
{
    ReceiverResult *res = mem_new(sizeof *res);
    char           *p = mem_new(200000), *tree = mem_new(4 << 20);
    WalkRoot        roots[] = {{"one", STR("one")}, {"two", STR(".")}};

    (void)state;
    umask(0);
    for (uint64_t round = 0; round < 12; round++) {
        uint64_t        seed = round;
        ReceiverRequest rq = receiver_rq("T/", "s", res);
        size_t          n;
        Err             err;
        assert_true(mkdir("one", 0755) == 0 && mkdir("two", 0755) == 0);
        int fds[] = {folder_open(AT_FDCWD, "one"), folder_open(AT_FDCWD, "two")};
        receiver_grow(fds[0], 0, &seed);
        receiver_grow(fds[1], 0, &seed);
        close(fds[0]);
        close(fds[1]);
        Sender   *s = sender_open(&(SenderRequest){.roots = roots, .count = 2, .total = round % 2});
        Receiver *r = receiver_open(&rq);
        do {
            assert_true(sender_read(s, p, 512 + receiver_dice(&seed, 150000), &n, &err));
            size_t cut = receiver_dice(&seed, n + 1);
            if (!receiver_feed(r, (Str){p, cut}, &err) || !receiver_feed(r, (Str){p + cut, n - cut}, &err))
                fail_msg("%s", err.text);
        } while (n);
        assert_true(receiver_end(r, &err));
        receiver_close(r);
        sender_close(s);
        assert_null(strstr(res->log, "failed"));
        strcpy(tree, receiver_tree("one"));
        assert_int_equal(system("mv T/one got && diff -r --no-dereference one got && diff -r --no-dereference two T"), 0);
        assert_string_equal(receiver_tree("got"), tree);
        strcpy(tree, receiver_tree("two"));
        assert_string_equal(receiver_tree("T"), tree);
        receiver_setup("chmod -R u+rwx one two got T; rm -r one two got T");
    }
    mem_free(res);
    mem_free(p);
    mem_free(tree);
}

static mode_t receiver_umask;

static int receiver_enter(void **state)
{
    char dir[] = "/dev/shm/abx-receiver-XXXXXX", other[] = "/tmp/abx-receiver-XXXXXX";

    receiver_umask = umask(022);
    *state = getcwd(NULL, 0);
    return *state && (mkdtemp(dir) ? chdir(dir) : mkdtemp(other) ? chdir(other) : -1) == 0 ? 0 : -1;
}

static int receiver_away(void **state)
{
    char *dir = getcwd(NULL, 0);
    bool  ok = dir && chdir(*state) == 0;

    umask(receiver_umask);
    if (ok)
        folder_remove(AT_FDCWD, dir);
    free(dir);
    free(*state);
    return ok ? 0 : -1;
}

#define RECEIVER_TEST(f) cmocka_unit_test_setup_teardown(f, receiver_enter, receiver_away)

static const struct CMUnitTest receiver_tests[] = {
    RECEIVER_TEST(receiver_target_test), RECEIVER_TEST(receiver_hostile_test), RECEIVER_TEST(receiver_there_test),
    RECEIVER_TEST(receiver_names_test), RECEIVER_TEST(receiver_long_link_test), RECEIVER_TEST(receiver_deep_test),
    RECEIVER_TEST(receiver_cut_test), RECEIVER_TEST(receiver_truncated_test),
    RECEIVER_TEST(receiver_nobody_test), RECEIVER_TEST(receiver_fault_test), RECEIVER_TEST(receiver_full_test),
    RECEIVER_TEST(receiver_resume_test), RECEIVER_TEST(receiver_again_test), RECEIVER_TEST(receiver_planted_test), RECEIVER_TEST(receiver_busy_test),
    RECEIVER_TEST(receiver_two_test), RECEIVER_TEST(receiver_sparse_test), RECEIVER_TEST(receiver_by_entry_test),
    RECEIVER_TEST(receiver_root_test), RECEIVER_TEST(receiver_round_test),
};
