#include <fnmatch.h>

#include "cli/progress.h"

/* The bar of a copy that began `ms` ago. */
static void progress_test_line(const abx_copy_event *ev, int64_t ms, size_t cols, Buf *line)
{
    int64_t  now = clock_mono_ms();
    Progress p = {.marks = {{.at = now - ms}, {.at = now}}};

    buf_clear(line);
    progress__line(&p, ev, cols, line);
}

static void progress_line_test(void **state)
{
    static const int64_t giant = (int64_t)1 << 40;
    static const struct { int64_t bytes, total, files, total_files; size_t cols; const char *want; } cases[] = {
        {0, -1, 0, -1, 80, "0 B"},
        {999, -1, 0, -1, 80, "999 B  9* B/s"},
        {1000, -1, 7, -1, 80, "1.0 KiB  100 B/s  7 files"},
        {0, 0, 0, 1, 80, "0 B of 0 B"},
        {50 << 20, 100 << 20, 0, 1, 100, "[===============>              ] 50%  50.0 MiB of 100.0 MiB  5.0 MiB/s  0:00:10 left"},
        {50 << 20, 100 << 20, 3, 12, 40, "50%  50.0 MiB of 100.0 MiB  5.0 MiB/s  "},
        {50 << 20, 100 << 20, 3, 12, 80, "[====>    ] 50%  50.0 MiB of 100.0 MiB  5.0 MiB/s  0:00:10 left  3 of 12 files"},
        {100 << 20, 100 << 20, 12, 12, 100, "[==============================] 100%  100.0 MiB of 100.0 MiB  10.0 MiB/s  12 of 12 files"},
        {300, 200, 1, 1, 80, "[==============================] 100%  300 B of 200 B  * B/s"},
        {20000, giant, 0, 2, 100, "[>                          ] 0%  19.5 KiB of 1.0 TiB  2.0 KiB/s  *:*:* left  0 of 2 files"},
        {50 << 20, 100 << 20, 0, 1, 2, "5"},
        {50 << 20, 100 << 20, 0, 1, 1, ""},
    };
    Buf line = buf_make(1000);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        progress_test_line(&(abx_copy_event){.bytes = cases[i].bytes, .total = cases[i].total, .files = cases[i].files,
                                             .total_files = cases[i].total_files}, 10000, cases[i].cols, &line);
        Str got = buf_str(&line);
        Arena a = arena_make(ARENA_COMMAND);
        if (line.n > cases[i].cols + 3 || got.p[0] != '\r' || !str_ends(got, STR("\033[K")) ||
            fnmatch(arena_fmt(&a, "\r%s\033\\[K", *cases[i].want == '[' ? arena_fmt(&a, "\\%s", cases[i].want).p : cases[i].want).p,
                    arena_cstr(&a, got), 0) != 0)
            fail_msg("%zu: '%.*s'", i, STR_ARG(got));
        arena_free(&a);
    }
    buf_free(&line);
}

/* Any numbers, any terminal: never wider, never a character that steers. */
static void progress_any_test(void **state)
{
    static const int64_t numbers[] = {-1, 0, 1, 1023, 1024, 5000000, (int64_t)1 << 40, (int64_t)1 << 60};
    Buf line = buf_make(1000);

    (void)state;
    for (size_t i = 0; i < 8 * 8 * 8; i++) {
        abx_copy_event ev = {.bytes = numbers[i / 64] < 0 ? 0 : numbers[i / 64], .total = numbers[i / 8 % 8],
                             .files = numbers[(i + 3) % 8], .total_files = numbers[i % 8]};
        for (size_t cols = 1; cols < 140; cols += 7) {
            progress_test_line(&ev, (int64_t)cols % 2 * 1000, cols, &line);
            assert_true(line.n <= cols + 3 && line.p[0] == '\r');
            for (size_t k = 1; k < line.n - 3; k++)
                assert_in_range(line.p[k], ' ', '~');
        }
    }
    buf_free(&line);
}

static const struct CMUnitTest progress_tests[] = {
    cmocka_unit_test(progress_line_test),
    cmocka_unit_test(progress_any_test),
};
