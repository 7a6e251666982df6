#include "provider/carry_file.h"

#include "base/buf.h"
#include "base/hex.h"
#include "base/mem.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CARRY_FILE_SEGMENTS = 64,
    CARRY_FILE_NOTES = 4096,
    CARRY_FILE_ID = 8,          /* bytes of the build id in the name */
};

static bool carry_file__get(const CarryFile *f, void *to, size_t n, uint64_t at)
{
    return at <= (uint64_t)f->size && n <= (uint64_t)f->size - at && pread(f->fd, to, n, (off_t)at) == (ssize_t)n;
}

/* The build id among the notes of a segment. */
static bool carry_file__note(const CarryFile *f, const Elf64_Phdr *segment, char name[static 64])
{
    ABX_UNSET char notes[CARRY_FILE_NOTES];
    Elf64_Nhdr head;
    size_t     n = segment->p_filesz < sizeof notes ? (size_t)segment->p_filesz : sizeof notes;

    if (!carry_file__get(f, notes, n, segment->p_offset))
        return false;
    for (size_t at = 0; n - at >= sizeof head;) {
        memcpy(&head, notes + at, sizeof head);
        at += sizeof head;
        if (head.n_namesz > n - at || head.n_descsz > n - at)
            return false;
        size_t desc = at + ((head.n_namesz + 3) & ~(size_t)3), next = desc + ((head.n_descsz + 3) & ~(size_t)3);
        if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 && memcmp(notes + at, "GNU", 4) == 0 &&
            head.n_descsz >= CARRY_FILE_ID && desc + CARRY_FILE_ID <= n) {
            size_t version = (size_t)snprintf(name, 64, "abx-%.24s-", ABX_VERSION);
            hex_write((Str){notes + desc, CARRY_FILE_ID}, name + version);
            return true;
        }
        if (next > n)
            return false;
        at = next;
    }
    return false;
}

/* NULL, and its name, when it can be carried; else what it is not. */
static const char *carry_file__wrong(CarryFile *f)
{
    Elf64_Ehdr head;
    Elf64_Phdr segment;
    bool       named = false;

    if (!carry_file__get(f, &head, sizeof head, 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB || head.e_machine != EM_X86_64)
        return "is not a program for Linux on x86_64";
    if (head.e_phentsize != sizeof segment || head.e_phnum > CARRY_FILE_SEGMENTS)
        return "is not a program that is understood";
    for (size_t i = 0; i < head.e_phnum; i++) {
        if (!carry_file__get(f, &segment, sizeof segment, head.e_phoff + i * sizeof segment))
            return "is cut short";
        if (segment.p_type == PT_INTERP)
            return "is not linked statically, so it would not start everywhere";
        named = named || (segment.p_type == PT_NOTE && carry_file__note(f, &segment, f->name));
    }
    return named ? NULL : "has no build id";
}

bool carry_file_open(CarryFile *f, Str path, Err *err)
{
    char       *name = mem_str(path);
    ABX_UNSET struct stat st;
    const char *wrong;

    *f = (CarryFile){.fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
    if (f->fd < 0)
        err_sys(err, errno, E8004, "cannot open %s", name);
    else if (fstat(f->fd, &st) != 0 || !S_ISREG(st.st_mode))
        err_set(err, ERR_USAGE, E8004, "%s is no ordinary file", name);
    else if (f->size = st.st_size, (wrong = carry_file__wrong(f)) != NULL)
        err_set(err, ERR_USAGE, E8004, "%s %s", name, wrong);
    else {
        mem_free(name);
        return true;
    }
    mem_free(name);
    carry_file_close(f);
    return false;
}

static bool carry_file__read(void *ctx, char *p, size_t cap, size_t *n, Err *err)
{
    CarryFile *f = ctx;
    ssize_t    got = pread(f->fd, p, cap, (off_t)f->at);

    if (got < 0)
        return err_sys(err, errno, E0000, "cannot read the program that is carried");
    *n = (size_t)got;
    f->at += got;
    return true;
}

Source carry_file_source(CarryFile *f)
{
    f->at = 0;
    return (Source){carry_file__read, f, f->size};
}

void carry_file_close(CarryFile *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}
