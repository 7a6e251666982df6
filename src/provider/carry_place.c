#include "provider/carry_place.h"

#include "base/num.h"
#include "base/str.h"

static const char *const carry_place__bases[CARRY_PLACE_BASES] = {"/tmp", "/var/tmp", "$HOME", "/run"};

static const struct { const char *word; CarryMark mark; } carry_place__words[] = {
    {"need", CARRY_MARK_NEED}, {"noexec", CARRY_MARK_NOEXEC}, {"nowrite", CARRY_MARK_NOWRITE},
    {"nodir", CARRY_MARK_NODIR}, {"unsafe", CARRY_MARK_UNSAFE},
};

const char *carry_place_base(const CarryPlace *at)
{
    return carry_place__bases[at->base];
}

/* `-x` alone does not tell a noexec mount (busybox says yes there), and what
 * looks at the folder must not cost when all is well: so the trial, a script of
 * one empty line, is made only where there is nothing to start. */
static const char carry_place__trial[] =
    "w=need; if echo >.t$$ && chmod 700 .t$$; then ./.t$$; [ $? -eq 126 ] && w=noexec; else w=nowrite; fi >/dev/null 2>&1; "
    "rm -f .t$$; echo \"ABX1 $w $d\"; ";

void carry_place_line(const CarryPlace *at, const char *name, const char *mode, Buf *to)
{
    buf_addf(to, "d=%s/.abx-%s; ", carry_place_base(at), at->own[0] ? at->own : "${EUID:-$(id -u)}");
    buf_add(to, STR("[ -e \"$d\" ] || [ -L \"$d\" ] || (umask 077; mkdir \"$d\") 2>/dev/null || [ -e \"$d\" ] || "
                    "{ echo \"ABX1 nodir $d\"; exit; }; "
                    "if [ ! -L \"$d\" ] && cd -P \"$d\" 2>/dev/null && [ -O . ] && "));
    /* An upload makes a folder that was just taken away, for all to read. */
    if (at->fresh[0])
        buf_addf(to, "{ [ \"$(ls -A)\" != %s ] || chmod 700 .; } && ", at->fresh);
    buf_add(to, STR("case $(ls -ldn .) in drwx------*) :;; *) false;; esac; then "));
    if (at->fresh[0])       /* a size that is wrong was cut short: it never gets the name */
        buf_addf(to, "if [ -f ./%s ] && [ ! -L ./%s ] && [ $(wc -c <./%s) -eq %llu ]; then chmod 755 ./%s && mv -f ./%s ./%s; "
                     "else rm -f ./%s; fi; ", at->fresh, at->fresh, at->fresh, (unsigned long long)at->size, at->fresh,
                 at->fresh, name, at->fresh);
    if (mode)
        buf_addf(to, "[ -f ./%s ] && [ ! -L ./%s ] && [ -x ./%s ] && ", name, name, name);
    if (mode && at->own[0] && strcmp(mode, "listen") == 0)      /* it has gone to the background: its file is not needed any more */
        buf_addf(to, "./%s agent listen && { rm -f ./%s; exit; }; ", name, name);
    else if (mode)
        buf_addf(to, "exec ./%s agent %s; ", name, mode);
    buf_add(to, str_from(carry_place__trial));
    buf_add(to, STR("else echo \"ABX1 unsafe $d\"; fi"));
}

/* The folder that was asked about? Its number is the user's, and $HOME may be
 * anything that an upload takes literally. */
static bool carry_place__is_it(const CarryPlace *at, Str folder)
{
    Str      base = str_from(carry_place_base(at)), leaf = STR("/.abx-"), rest = folder;
    size_t   digits = 0;
    uint64_t number;

    if (folder.n > CARRY_PLACE_PATH || str_has_control(folder) || folder.n == 0 || folder.p[0] != '/')
        return false;
    if (at->own[0]) {
        if (!str_ends(rest, str_from(at->own)))
            return false;
        rest.n -= CARRY_PLACE_HEX;
    } else {
        while (digits < rest.n && rest.p[rest.n - 1 - digits] >= '0' && rest.p[rest.n - 1 - digits] <= '9')
            digits++;
        if (digits > 10 || !num_u64(str_from_to(rest, rest.n - digits, rest.n), &number) || number > UINT32_MAX)
            return false;
        rest.n -= digits;
    }
    if (!str_ends(rest, leaf))
        return false;
    rest.n -= leaf.n;
    if (base.p[0] == '/')
        return str_eq(rest, base);
    return !str_has(rest, '$') && !memmem(folder.p, folder.n, "/../", 4);
}

CarryMark carry_place_mark(const CarryPlace *at, Str line, Str *folder, int *port)
{
    Str      word;
    uint64_t number;

    if (line.n && line.p[line.n - 1] == '\r')
        line.n--;
    if (!str_starts(line, STR("ABX1 ")))
        return CARRY_MARK_NONE;
    str_skip(&line, 5);
    str_cut(&line, ' ', &word);
    if (str_eq(word, STR("port"))) {
        bool good = num_u64(line, &number) && line.p[0] != '0' && number <= 65535;
        *port = good ? (int)number : 0;
        return good ? CARRY_MARK_PORT : CARRY_MARK_LIE;
    }
    for (size_t i = 0; i < COUNT_OF(carry_place__words); i++)
        if (str_eq(word, str_from(carry_place__words[i].word)) && carry_place__is_it(at, line)) {
            *folder = line;
            return carry_place__words[i].mark;
        }
    return CARRY_MARK_LIE;
}
