/* start.c - the first instructions of the program: its relocation, packed, and
 * what was relocated made read-only.
 *
 * A static-pie has a record for each pointer in its data: 24 bytes as RELA, about
 * two bits as RELR (System V gABI, "Relocation", SHT_RELR), which the linker
 * writes with -z pack-relative-relocs. That is 36 KB of the program; but musl
 * reads RELR from 1.2.4 on, and Debian 12 has 1.2.3. So this reads it, ahead of
 * musl's own start, and then sets the table's size to zero: a musl that knows
 * RELR would add the load address a second time.
 *
 * PT_GNU_RELRO says what is never written again. A dynamic linker would see to it,
 * and musl has none in a static-pie, so this does. Whole pages: what is written
 * later begins on a page of its own (layout.ld, or ld where that is not used).
 *
 * Nothing is relocated here yet, and there is no thread pointer, where a stack
 * protector would look for its value: this calls nothing, uses no pointer from
 * data and has no array on the stack.
 */
#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { START_RELRSZ = 35, START_RELR = 36, START_PAGE = 4096 };    /* musl 1.2.3's elf.h has neither */

void start_relocate(uintptr_t base, Elf64_Dyn *dynamic);

__asm__(".globl abx_start\n"
        ".hidden start_relocate, __ehdr_start, _DYNAMIC\n"
        "abx_start:\n"
        "    mov %rsp, %rbx\n"      /* _start wants it as the kernel left it */
        "    lea __ehdr_start(%rip), %rdi\n"
        "    lea _DYNAMIC(%rip), %rsi\n"
        "    call start_relocate\n" /* the kernel aligns the stack to 16 bytes */
        "    mov %rbx, %rsp\n"
        "    jmp _start\n");

static void start__protect(uintptr_t base, const Elf64_Ehdr *file)
{
    const Elf64_Phdr *h = (const Elf64_Phdr *)(base + file->e_phoff);

    for (size_t i = 0; i < file->e_phnum; i++)
        if (h[i].p_type == PT_GNU_RELRO) {
            uintptr_t from = (base + h[i].p_vaddr) & -(uintptr_t)START_PAGE;
            uintptr_t size = (base + h[i].p_vaddr + h[i].p_memsz - from + START_PAGE - 1) & -(uintptr_t)START_PAGE;
            long      n = SYS_mprotect;     /* where it fails, all is as it was */
            __asm__ volatile("syscall" : "+a"(n) : "D"(from), "S"(size), "d"((long)PROT_READ) : "rcx", "r11", "memory");
        }
}

void start_relocate(uintptr_t base, Elf64_Dyn *dynamic)
{
    const uint64_t *entry = NULL;
    uintptr_t      *where = NULL;
    size_t          n = 0;

    for (Elf64_Dyn *d = dynamic; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == START_RELR)
            entry = (const uint64_t *)(base + d->d_un.d_ptr);
        if (d->d_tag == START_RELRSZ) {
            n = d->d_un.d_val / sizeof *entry;
            d->d_un.d_val = 0;
        }
    }
    for (; n > 0; n--, entry++) {
        if (*entry % 2 == 0) {      /* an address, */
            where = (uintptr_t *)(base + *entry);
            *where++ += base;
            continue;
        }                           /* or which of the 63 words behind the last */
        for (size_t i = 0; i < 63; i++)
            if (*entry >> (i + 1) & 1)
                where[i] += base;
        where += 63;
    }
    start__protect(base, (const Elf64_Ehdr *)base);
}
