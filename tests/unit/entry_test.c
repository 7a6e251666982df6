/* What the commands of entry.c and process.c say, and what they are made of:
 * judged by real shells. */
#include "base/str.h"
#include "provider/entry.h"
#include "provider/process.h"

#include <stdio.h>

static void entry_said_test(void **state)
{
    static const struct { const char *said; bool ok; FileType type; int mode; int64_t size; const char *modified; } cases[] = {
        {"81a4 17 1796026150 0:0\n", true, FILE_REGULAR, 0644, 17, "2026-11-30T08:09:10Z"},
        {"41ed 4096 0 root:staff", true, FILE_FOLDER, 0755, 4096, "1970-01-01T00:00:00Z"},
        {"a1ff 3 1796026150", true, FILE_LINK, 0777, 3, "2026-11-30T08:09:10Z"},
        {"11a4 0 1796026150 .", true, FILE_OTHER, 0644, 0, "2026-11-30T08:09:10Z"},
        {"89ed 5 1796026150 0:0", true, FILE_REGULAR, 04755, 5, "2026-11-30T08:09:10Z"},
        {"81a4 5 9223372036854775807 0:0", false, FILE_REGULAR, 0, 0, ""},
        {"81a4 5 99999999999999 0:0", true, FILE_REGULAR, 0644, 5, ""},
        {"", false, FILE_REGULAR, 0, 0, ""}, {"81a4", false, FILE_REGULAR, 0, 0, ""}, {"x 1 2", false, FILE_REGULAR, 0, 0, ""},
        {"81a4 x 2", false, FILE_REGULAR, 0, 0, ""}, {"81a4 1 x", false, FILE_REGULAR, 0, 0, ""},
    };

    (void)state;
    Arena a = arena_make((size_t)1 << 20);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Entry e = {0};
        bool  ok = entry__from_command(guard_copy(str_from(cases[i].said)), &e, &a);
        if (ok != cases[i].ok || (ok && (e.type != cases[i].type || e.mode != cases[i].mode || e.size != cases[i].size ||
                                         !str_eq(e.modified, str_from(cases[i].modified)))))
            fail_msg("case %zu: %d %d %o %.*s", i, ok, e.type, (unsigned)e.mode, STR_ARG(e.modified));
    }
    arena_free(&a);
}

static void entry_name_test(void **state)
{
    static const struct { const char *rest, *name, *left; } cases[] = {
        {"./a//\nb", "a", "b"}, {"./a\nb//\n", "a\nb", ""}, {"./x/ry//\n", "x\ry", ""}, {"./a", NULL, ""}, {".//\n", NULL, ""},
        {"./a//", NULL, ""}, {"./a/b//\n", NULL, ""}, {"a//\n", NULL, ""}, {"", NULL, ""}, {"./\xff//\n", "\xef\xbf\xbd", ""},
        {"./a///\n", NULL, ""},
    };

    (void)state;
    Arena a = arena_make((size_t)1 << 20);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Str  rest = guard_copy(str_from(cases[i].rest)), name = {0};
        bool ok = entry__cut_name(&rest, &a, &name);
        if (ok != (cases[i].name != NULL) || (ok && (!str_eq(name, str_from(cases[i].name)) || !str_eq(rest, str_from(cases[i].left)))))
            fail_msg("case %zu: %d %.*s", i, ok, STR_ARG(name));
    }
    arena_free(&a);
}

static void entry_path_test(void **state)
{
    static const struct { const char *in, *folder, *file; } cases[] = {     /* NULL: refused */
        {"/a/b", "/a/b", "/a/b"}, {"a", "/a", "/a"}, {"/a/", "/a", NULL}, {"/", "/", NULL}, {"///", "/", NULL}, {"", NULL, NULL},
        {"\xff", NULL, NULL}, {"a//", "/a", NULL},
    };
    Err err;
    Str out;

    (void)state;
    Arena a = arena_make((size_t)1 << 20);
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (int folder = 0; folder < 2; folder++) {
            const char *want = folder ? cases[i].folder : cases[i].file;
            bool        ok = entry_path(guard_copy(str_from(cases[i].in)), folder, &a, &out, &err);
            if (ok != (want != NULL) || (ok && !str_eq(out, str_from(want))))
                fail_msg("case %zu: %d %.*s", i, ok, STR_ARG(out));
            assert_true(ok || err.code == E8002);
        }
    char *longest = arena_alloc(&a, ENTRY_PATH + 1);
    memset(longest, 'x', ENTRY_PATH);
    longest[0] = '/';
    assert_true(entry_path((Str){longest, ENTRY_PATH - 1}, false, &a, &out, &err));
    assert_false(entry_path((Str){longest, ENTRY_PATH}, false, &a, &out, &err));
    assert_false(entry_path((Str){longest + 1, ENTRY_PATH - 1}, false, &a, &out, &err));
    arena_free(&a);
}

/* Each shell's printf writes every byte back, in any company. */
static void entry_feed_test(void **state)
{
    static const char *const shells[] = {"sh", "bash", "busybox sh"};
    char                     all[1024], got[2048], command[64];

    (void)state;
    for (size_t i = 0; i < 256; i++) {
        all[4 * i] = (char)i;
        all[4 * i + 1] = '7';           /* a digit behind an octal number */
        all[4 * i + 2] = (char)(255 - i);
        all[4 * i + 3] = '-';
    }
    for (size_t i = 0; i < COUNT_OF(shells); i++) {
        Arena a = arena_make((size_t)1 << 20);
        Str   format = process__format((Str){all, sizeof all}, &a);
        snprintf(command, sizeof command, "%s -s >/tmp/abx-entry-test-%d", shells[i], (int)getpid());
        FILE *f = popen(command, "w");
        assert_non_null(f);
        fprintf(f, "printf '%.*s'\n", (int)format.n, format.p);
        if (pclose(f) == 0) {
            FILE *back = fopen(strchr(command, '/'), "r");
            assert_non_null(back);
            size_t n = fread(got, 1, sizeof got, back);
            fclose(back);
            if (n != sizeof all || memcmp(got, all, n) != 0)
                fail_msg("%s writes %zu other bytes", shells[i], n);
        } else if (i == 0) {
            fail_msg("there is no sh");
        }
        remove(strchr(command, '/'));
        arena_free(&a);
    }
}

static void entry_pid_test(void **state)
{
    static const struct { const char *pid; bool one, group; } cases[] = {
        {"1", true, true}, {"123", true, true}, {"2147483647", true, true}, {"-2", false, true}, {"-123", false, true},
        {"-1", false, false}, {"0", false, false}, {"-0", false, false}, {"", false, false}, {"2147483648", false, false},
        {"01", false, false}, {"1 ", false, false}, {"+1", false, false}, {"1;x", false, false}, {"$$", false, false},
        {"-2147483648", false, false}, {"%1", false, false},
    };
    Err err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Str pid = guard_copy(str_from(cases[i].pid));
        if (process__pid(pid, false, &err) != cases[i].one || process__pid(pid, true, &err) != cases[i].group)
            fail_msg("case %zu: %s", i, cases[i].pid);
    }
}

static const struct CMUnitTest entry_tests[] = {
    cmocka_unit_test(entry_said_test), cmocka_unit_test(entry_name_test), cmocka_unit_test(entry_path_test),
    cmocka_unit_test(entry_feed_test), cmocka_unit_test(entry_pid_test),
};
