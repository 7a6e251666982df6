#include "abx.h"

#include "api/error.h"
#include "api/session.h"
#include "base/limits.h"
#include "base/str.h"

int abx_processes(abx_sandbox *b, int (*each)(void *ctx, const abx_process *p), void *ctx, abx_error *e)
{
    Provider   *p = b->session->provider;
    Arena       a = arena_make(ARENA_COMMAND);
    ProcessList list = {0};
    ABX_UNSET Err err;
    bool        ok = session_can(p, p->kind->process_list != NULL, "process.manage", &err) &&
              p->kind->process_list(p, str_from(b->id), &a, &list, DEADLINE_NONE, &err);

    for (size_t i = 0; ok && i < list.count; i++) {
        Arena       one = a;
        abx_process process = {arena_cstr(&one, list.items[i].pid), arena_cstr(&one, list.items[i].command),
                               arena_cstr(&one, list.items[i].status)};
        if (each(ctx, &process) != 0)
            break;
    }
    arena_free(&a);
    return ok ? 0 : error_give(e, &err);
}

int abx_process_stdin(abx_sandbox *b, const char *pid, const void *p, size_t size, abx_error *e)
{
    Provider *provider = b->session->provider;
    ABX_UNSET Err err;
    bool      ok = session_can(provider, provider->kind->process_stdin != NULL, "process.manage", &err) &&
              provider->kind->process_stdin(provider, str_from(b->id), str_from(pid), (Str){p, size}, DEADLINE_NONE, &err);

    return ok ? 0 : error_give(e, &err);
}

int abx_process_signal(abx_sandbox *b, const char *pid, int number, abx_error *e)
{
    Provider *p = b->session->provider;
    ABX_UNSET Err err;
    bool      ok = session_can(p, p->kind->process_signal != NULL, "process.manage", &err) &&
              p->kind->process_signal(p, str_from(b->id), str_from(pid), number, DEADLINE_NONE, &err);

    return ok ? 0 : error_give(e, &err);
}
