/* Edits of .env: the first byte says how much of the rest is the value, the
 * others are the file. The value that was put in is read back, whatever else
 * stands there; what was taken out or purged is gone. */
#include "data/dotenv.h"
#include "host/settings.h"

static Str fuzz_settings__env(void *ctx, Str name)
{
    (void)ctx;
    return name.n % 2 ? name : (Str){0};
}

static bool fuzz_settings__has(Str text, Str variable, Str *value, Arena *a)
{
    Dotenv d;
    Err    err;

    if (!dotenv_parse(text, (DotenvLookup){fuzz_settings__env, NULL}, a, &d, &err))
        return false;
    const DotenvEntry *e = dotenv_get(&d, variable);
    *value = e ? e->value : (Str){0};
    return e != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static Arena a = {0};
    Str          all = {(const char *)data, size}, variable = STR("ABX_DEMO_TOKEN"), put, cut, purged, got;
    bool         there;
    Err          err;

    if (!a.p)
        a = arena_make((size_t)256 << 20);
    arena_reset(&a);
    if (size == 0)
        return 0;
    size_t n = (size_t)data[0] < size - 1 ? data[0] : size - 1;
    Str    value = {all.p + 1, n}, text = {all.p + 1 + n, size - 1 - n};
    if (!settings_env(text, variable, value, &a, &put, &there, &err))
        return 0;
    if (!fuzz_settings__has(put, variable, &got, &a) || !str_eq(got, value))
        __builtin_trap();
    if (!settings_env(put, variable, (Str){0}, &a, &cut, &there, &err) || !there ||
        fuzz_settings__has(cut, variable, &got, &a))
        __builtin_trap();
    if (!settings_purge_env(put, STR("demo"), NULL, 0, &a, &purged, &err) || fuzz_settings__has(purged, variable, &got, &a))
        __builtin_trap();
    return 0;
}
