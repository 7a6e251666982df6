/* finish.c - the last step of a release: finish PROGRAM.
 *
 * Takes off the table of sections and their names, which nothing reads that runs
 * a program (1.6 KB), and writes the header PT_GNU_RELRO over the empty one that
 * vendor/layout.ld left: all of the segment that .dynamic lies in. Runs on the
 * machine that builds; both are little-endian with 64 bits, or it says so.
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void fail(const char *path, const char *what)
{
    fprintf(stderr, "finish: %s: %s\n", path, what);
    exit(1);
}

int main(int argc, char **argv)
{
    const char *path = argc == 2 ? argv[1] : "";
    FILE       *file = fopen(path, "r+b");
    Elf64_Ehdr  e;
    Elf64_Phdr  headers[16], *once = NULL, *empty = NULL;
    Elf64_Off   end = 0;

    if (!file || fread(&e, sizeof e, 1, file) != 1)
        fail(path, "cannot be read");
    if (memcmp(e.e_ident, "\x7f" "ELF\x02\x01", 6) != 0 || e.e_phentsize != sizeof *headers ||
        e.e_phnum > sizeof headers / sizeof *headers || e.e_phoff != sizeof e)
        fail(path, "is no ELF file of the kind that is made here");
    if (fread(headers, sizeof *headers, e.e_phnum, file) != e.e_phnum)
        fail(path, "cannot be read");

    for (Elf64_Phdr *h = headers; h < headers + e.e_phnum; h++) {
        if (h->p_type == PT_LOAD && h->p_offset + h->p_filesz > end)
            end = h->p_offset + h->p_filesz;
        if (h->p_type == PT_NULL)
            empty = h;
        for (Elf64_Phdr *of = headers; h->p_type == PT_DYNAMIC && of < headers + e.e_phnum; of++)
            if (of->p_type == PT_LOAD && h->p_vaddr - of->p_vaddr < of->p_memsz)
                once = of;
    }
    if (!once || !empty)
        fail(path, "was not linked with vendor/layout.ld");
    *empty = *once;
    empty->p_type = PT_GNU_RELRO;
    empty->p_flags = PF_R;
    empty->p_align = 1;
    e.e_shoff = e.e_shnum = e.e_shstrndx = 0;

    rewind(file);
    if (fwrite(&e, sizeof e, 1, file) != 1 || fwrite(headers, sizeof *headers, e.e_phnum, file) != e.e_phnum ||
        fclose(file) != 0 || truncate(path, (off_t)end) != 0)
        fail(path, "cannot be written");
    return 0;
}
